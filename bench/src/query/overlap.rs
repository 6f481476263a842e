//! What overlap costs: one size of window, slides from all of it to a six-hundredth.
//!
//! Rows are added once whatever the overlap; what grows is the number of results. So the cost
//! beside a tumbling window is given with what each further result takes.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use tersecades_columnar::{Error, Result};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Retained;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;

use crate::measure::{middle, ratio};
use crate::report::{Bar, Report};

/// Length of every window.
const SIZE: Duration = Duration::from_secs(60);

/// The overlap with a bar, and what it may cost in costs of no overlap, results and all.
const JUDGED: u32 = 60;
const COST_MAX: f64 = 1.5;

/// Windows that a row is in.
const OVERLAPS: [u32; 7] = [1, 2, 6, 20, 60, 200, 600];

/// Measures every overlap over `stream`; `repetitions` times after a warm-up, in turns.
///
/// # Errors
/// What the engine says; `Internal` when rows are not in as many windows as they should be.
pub(crate) fn run(stream: &Retained, repetitions: usize, report: &mut Report) -> Result<()> {
    let mut seconds = OVERLAPS.map(|_| Vec::new());
    let mut results = OVERLAPS.map(|_| 0);
    let mut counted = OVERLAPS.map(|_| 0);
    for repetition in 0..=repetitions {
        for (index, overlap) in OVERLAPS.into_iter().enumerate() {
            let start = Instant::now();
            let windows = windows(stream, overlap)?;
            if repetition > 0 {
                seconds[index].push(start.elapsed().as_secs_f64());
            }
            results[index] = windows.iter().map(RecordBatch::num_rows).sum();
            counted[index] = windows.iter().map(rows_counted).sum();
            if counted[index] != counted[0] * i64::from(overlap) {
                let message = format!("rows are not in {overlap} windows each");
                return Err(Error::internal(message));
            }
        }
    }
    for (index, overlap) in OVERLAPS.into_iter().enumerate().skip(1) {
        let cost = ratio(&seconds[index], &seconds[0]);
        let at = ("cost / tumble", overlap.into());
        report.middle("overlap", at, cost, "x");
        if overlap == JUDGED {
            let name = format!("cost of overlap {overlap} / tumble");
            report.judge(name, cost.median, "x", Bar::AtMost(COST_MAX));
        }
        let further = (results[index] - results[0]) as f64;
        let turns = seconds[index].iter().zip(&seconds[0]);
        let each = turns.map(|(hop, tumble)| (hop - tumble) * 1e9 / further);
        let at = ("a further result", overlap.into());
        report.middle("overlap", at, middle(each.collect()), "ns");
    }
    Ok(())
}

fn windows(stream: &Retained, overlap: u32) -> Result<Vec<RecordBatch>> {
    let worst = call("max", col("rtt_us"));
    let running = Stream::from_retained(stream)
        .window(hop(SIZE, SIZE / overlap))
        .group_by(["src_cluster"])
        .aggregate([count(), call("sum", col("rtt_us")), worst])
        .run()?;
    running.collect()
}

fn rows_counted(window: &RecordBatch) -> i64 {
    let counts = window.column(3).as_primitive::<Int64Type>();
    counts.values().iter().sum()
}
