//! Figure 10: the lengths of windows and of batches.

use std::time::{Duration, Instant};

use tersecades_columnar::Result;
use tersecades_engine::runtime::Keep;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;

use crate::Options;
use crate::measure::summarise;
use crate::report::{Done, Report};

use super::{CHOSEN, Design, Input, LOSSY, NUMBERS, PLAIN, Query, TEXTS, pairs, probes};

const SWEPT: [&Design; 3] = [&PLAIN, &CHOSEN, &LOSSY];
const WINDOWS_S: [u64; 6] = [1, 10, 30, 60, 120, 300];
const BATCH_ROWS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Six minutes of rows, unless there are to be fewer.
const ROWS: usize = 18_000_000;
const ROWS_PER_SECOND: u64 = 50_000;

/// Prints both parts of the figure.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let (batches, _) = probes(options.scaled(ROWS), ROWS_PER_SECOND)?;
    let columns = [&NUMBERS[..], &TEXTS[..]].concat();
    let input = Input::new(&batches, &columns)?;
    let repetitions = options.repetitions.min(3);
    for seconds in WINDOWS_S {
        point(
            report,
            "window",
            (&input, seconds),
            seconds.into(),
            repetitions,
        )?;
    }
    for rows in BATCH_ROWS {
        let input = Input::in_batches(&batches, &columns, rows)?;
        point(report, "batch", (&input, 60), rows.into(), repetitions)?;
    }
    Ok(())
}

fn point(
    report: &mut Report,
    figure: &'static str,
    (input, seconds): (&Input, u64),
    x: serde_json::Value,
    repetitions: usize,
) -> Result<()> {
    let size = Duration::from_secs(seconds);
    let slide = Duration::from_secs((seconds / 6).max(1));
    let query = |stream: Stream| pairs(stream, hop(size, slide));
    let query: Query<'_> = &query;
    let mut taken = SWEPT.map(|_| Vec::new());
    for repetition in 0..=repetitions {
        for (design, taken) in SWEPT.iter().zip(&mut taken) {
            let start = Instant::now();
            input.arrive(design, query, Keep::Duration(size))?;
            if repetition > 0 {
                taken.push(start.elapsed().as_secs_f64());
            }
        }
    }
    for (design, taken) in SWEPT.iter().zip(taken) {
        let done = Done {
            amount: input.rows as f64 / 1e6,
            unit: "M rows/s",
            bytes: 0.0,
            threads: 1,
        };
        report.timed(figure, (design.name, x.clone()), &summarise(taken), done);
    }
    Ok(())
}
