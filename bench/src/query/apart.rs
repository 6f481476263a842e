//! The reference queries each by itself: hot, again and again, and cold, behind emptied caches.
//!
//! In `queries` they take turns, so that each meets the caches as the others leave them, which is
//! neither. Here a burst of runs of one query follows another, in several rounds; before a cold run
//! more memory is read than any cache holds.

use std::hint::black_box;

use serde_json::Value;
use tersecades_columnar::Result;

use super::{Case, Input, NO_DATA, cases, load};
use crate::Options;
use crate::measure::summarise;
use crate::report::{Bar, Done, Point, Report, share};

/// Rounds of all queries.
const ROUNDS: usize = 5;

/// Runs of a burst that are not timed, after those of another query.
const WARMING: usize = 3;

/// Words that are read to empty the caches: a gibibyte.
const FLUSHED_WORDS: usize = 1 << 27;

/// What two threads are to reach, in rates of one.
const TWO_THREADS_MIN: f64 = 1.7;

/// Bytes a row of the columns that a query reads, as they arrive, and what one thread is to reach,
/// in millions of rows a second: hot, cold.
const AIMS: [(&str, usize, [f64; 2]); 7] = [
    ("q1", 24, [4_000.0, 2_500.0]),
    ("q1_hop", 24, [3_500.0, 2_100.0]),
    ("q2", 24, [2_500.0, 1_800.0]),
    ("q3", 20, [90.0, 80.0]),
    ("q4", 8, [5_000.0, 4_000.0]),
    ("q4_wide", 8, [5_000.0, 3_600.0]),
    ("q5", 12, [4_000.0, 3_000.0]),
];

/// The larger input, which cold runs take where `--data` is a folder that has it.
const LARGE: &str = "pingmesh_50m.arrow";

/// What a query took, in seconds: hot, cold.
type Taken = [Vec<f64>; 2];

/// Measures the queries over `--data`, on one thread and on `--threads`.
///
/// # Errors
/// What reading and the engine say; `Internal` when an answer is wrong.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(path) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    let input = load(&path, report)?;
    let large = options.data.as_ref().map(|data| data.join(LARGE));
    let large = large.filter(|path| path.is_file());
    let large = large.map(|path| load(&path, report)).transpose()?;
    let inputs = [&input, large.as_ref().unwrap_or(&input)];
    let rows = inputs.map(|input| input.stream.rows());
    report.note(&format!("hot over {} rows, cold over {}", rows[0], rows[1]));
    let aimed = |case: &Case| AIMS.iter().any(|(name, ..)| *name == case.query.name);
    let mut cases: Vec<Case> = cases(options)?.into_iter().filter(aimed).collect();
    let mut taken: Vec<Taken> = vec![Taken::default(); cases.len()];
    let flushed = vec![1u64; FLUSHED_WORDS];
    for _ in 0..ROUNDS {
        for (case, taken) in cases.iter_mut().zip(&mut taken) {
            burst(case, (inputs, &flushed), options.repetitions, taken)?;
        }
    }
    let mut hot_of_one = f64::NAN;
    for (case, taken) in cases.iter().zip(taken) {
        let [hot, _] = told(case, taken, rows, report);
        if case.threads == 1 {
            hot_of_one = hot;
            continue;
        }
        let name = format!("{}, {} threads / 1", case.query.name, case.threads);
        report.judge(name, hot / hot_of_one, "x", Bar::AtLeast(TWO_THREADS_MIN));
    }
    Ok(())
}

/// Runs one query, hot at first and then cold.
fn burst(
    case: &mut Case,
    ([input, large], flushed): ([&Input; 2], &[u64]),
    repetitions: usize,
    [hot, cold]: &mut Taken,
) -> Result<()> {
    for repetition in 0..WARMING + repetitions {
        let seconds = case.run(input)?;
        if repetition >= WARMING {
            hot.push(seconds);
        }
    }
    for _ in 0..repetitions.div_ceil(ROUNDS) {
        black_box(flushed.iter().sum::<u64>());
        cold.push(case.run(large)?);
    }
    Ok(())
}

/// Reports the medians of a query, which are returned, in millions of rows a second.
fn told(case: &Case, taken: Taken, rows: [usize; 2], report: &mut Report) -> [f64; 2] {
    let aims = AIMS.iter().find(|(name, ..)| *name == case.query.name);
    let bytes = aims.map_or(0, |(_, bytes, _)| *bytes);
    let mut rates = [f64::NAN; 2];
    for (place, seconds) in taken.into_iter().enumerate() {
        let timing = summarise(seconds);
        let done = Done {
            amount: rows[place] as f64 / 1e6,
            unit: "M rows/s",
            bytes: (bytes * rows[place]) as f64,
            threads: case.threads,
        };
        rates[place] = timing.rate(done.amount);
        let aim = aims
            .filter(|_| case.threads == 1)
            .map(|(_, _, aims)| aims[place]);
        let threads = match case.threads {
            1 => "one thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        report.point(&Point {
            figure: "apart",
            series: &format!(
                "{}, {:.0} M rows, {threads}",
                ["hot", "cold"][place],
                done.amount
            ),
            x: Value::from(case.query.name),
            value: rates[place],
            unit: done.unit,
            spread: timing.spread,
            share: share(&timing, done),
            note: aim.map(|aim| format!("aim {aim}")),
        });
    }
    rates
}
