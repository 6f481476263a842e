//! What several queries over one stream cost together, in costs of one: they share panes.

use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Retained;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, hop, tumble};

use super::NO_DATA;
use crate::Options;
use crate::measure::ratio;
use crate::report::Report;

/// How many queries run together; the first number is one.
const QUERIES: [usize; 3] = [1, 4, 16];

/// Measures queries over `--data`, together and one after the other.
///
/// # Errors
/// What reading and the engine say; `Internal` when both count different rows.
pub(crate) fn run_alone(options: &Options, report: &mut Report) -> Result<()> {
    let Some(path) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    let range = super::range::kept(&path)?;
    run(&range, options.repetitions, report)
}

fn run(range: &Retained, repetitions: usize, report: &mut Report) -> Result<()> {
    let mut together_s = QUERIES.map(|_| Vec::new());
    let mut apart_s = QUERIES.map(|_| Vec::new());
    for repetition in 0..=repetitions {
        for (index, queries) in QUERIES.into_iter().enumerate() {
            let started = Instant::now();
            let together = together(range, queries)?;
            let between = Instant::now();
            let apart = apart(range, queries)?;
            let ended = Instant::now();
            if together != apart {
                return Err(Error::internal(format!(
                    "{queries} queries count {together} rows together, {apart} apart"
                )));
            }
            if repetition > 0 {
                together_s[index].push((between - started).as_secs_f64());
                apart_s[index].push((ended - between).as_secs_f64());
            }
        }
    }
    for (index, queries) in QUERIES.into_iter().enumerate() {
        for (series, seconds) in [
            ("together / one", &together_s[index]),
            ("apart / one", &apart_s[index]),
        ] {
            let cost = ratio(seconds, &apart_s[0]);
            report.middle("standing", (series, queries.into()), cost, "x");
        }
    }
    Ok(())
}

/// Query `index`: its window, over the same groups.
fn window(index: usize) -> Window {
    let size = 10 * (1 + index as u64 / 2 % 6);
    let seconds = Duration::from_secs;
    match index.is_multiple_of(2) {
        true => tumble(seconds(size)),
        false => hop(seconds(size + 10), seconds(10)),
    }
}

fn query(stream: &Stream, index: usize) -> Stream {
    let rtt = |name| call(name, col("rtt_us"));
    let windows = stream.clone().filter(col("rtt_us").gt_eq(100));
    let groups = windows.window(window(index)).group_by(["src_cluster"]);
    let [second, third] = [["sum", "max"], ["min", "mean"], ["variance", "max"]][index % 3];
    groups.aggregate([
        count(),
        rtt(second).alias("second"),
        rtt(third).alias("third"),
    ])
}

/// The sum of the column `count` of all results.
fn together(range: &Retained, queries: usize) -> Result<i64> {
    let stream = Stream::from_retained(range);
    let named = (0..queries).map(|index| (index.to_string(), query(&stream, index)));
    let mut counted = 0;
    for found in stream.clone().standing(named)? {
        counted += rows_of(&found?.1);
    }
    Ok(counted)
}

/// As [`together`], each query by itself.
fn apart(range: &Retained, queries: usize) -> Result<i64> {
    let stream = Stream::from_retained(range);
    let mut counted = 0;
    for index in 0..queries {
        for found in query(&stream, index).run()? {
            counted += rows_of(&found?);
        }
    }
    Ok(counted)
}

fn rows_of(result: &arrow_array::RecordBatch) -> i64 {
    let counts = result.column(3).as_primitive::<Int64Type>();
    counts.values().iter().sum()
}
