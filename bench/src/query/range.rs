//! What a retained range holds, and what many queries over one range cost at once.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::Field;
use tersecades_columnar::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::{Keep, Retained, Running};
use tersecades_engine::source::SourceOptions;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;

use super::{KEEP_BYTES, LATENESS, NO_DATA};
use crate::Options;
use crate::measure::{ratio, summarise};
use crate::range::{kept_by, run_through};
use crate::report::{Bar, Report};

/// Queries at once; the last number has bars.
const QUERIES: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Runs of each number of queries, in turns after a warm-up.
const RUNS: usize = 5;

/// Rows held in the budget, in rows of the range with plain columns.
const ROWS_MIN: f64 = 2.0;

/// Memory and time of all queries, in those of one.
const MEMORY_MAX: f64 = 2.0;
const TIME_MAX: f64 = 20.0;

/// Measures ranges over `--data`, by themselves.
///
/// # Errors
/// What reading and the engine say.
pub(crate) fn run_alone(options: &Options, report: &mut Report) -> Result<()> {
    let Some(path) = options.data_file() else {
        report.note(NO_DATA);
        return Ok(());
    };
    run(&path, &kept(&path)?, report)
}

/// Compares the range with one of plain columns, and one query with many.
///
/// # Errors
/// What reading and the engine say.
pub(super) fn run(path: &Path, range: &Retained, report: &mut Report) -> Result<()> {
    let plain = plain(path)?;
    let per_row = |range: &Retained| range.byte_size() as f64 / range.rows() as f64;
    let more = per_row(&plain) / per_row(range);
    report.judge(
        "rows held, chosen / plain",
        more,
        "x",
        Bar::AtLeast(ROWS_MIN),
    );
    let mut seconds = QUERIES.map(|_| Vec::new());
    let mut bytes = QUERIES.map(|_| 0);
    for run in 0..=RUNS {
        for (index, queries) in QUERIES.into_iter().enumerate() {
            let (taken, most) = together(range, queries)?;
            bytes[index] = most.max(bytes[index]);
            if run > 0 {
                seconds[index].push(taken);
            }
        }
    }
    let one_s = summarise(seconds[0].clone()).median_s;
    report.add("one query over the range", one_s * 1e3, "ms");
    let held = range.byte_size() as f64;
    let (mut memory, mut time) = (1.0, 1.0);
    for (index, queries) in QUERIES.into_iter().enumerate().skip(1) {
        let cost = ratio(&seconds[index], &seconds[0]);
        memory = (held + bytes[index] as f64) / (held + bytes[0] as f64);
        time = cost.median;
        let at = ("time / one", queries.into());
        report.middle("many_queries", at, cost, "x");
        let at = ("memory / one", queries.into());
        report.plain("many_queries", at, memory, "x");
    }
    report.judge(
        "memory, 100 queries / one",
        memory,
        "x",
        Bar::AtMost(MEMORY_MAX),
    );
    report.judge("time, 100 queries / one", time, "x", Bar::AtMost(TIME_MAX));
    Ok(())
}

/// The same rows, every column as it arrives: numbers as they are, texts by a dictionary.
fn plain(path: &Path) -> Result<Retained> {
    let stream = Stream::open(path, &SourceOptions::default())?;
    let schema = stream.schema()?;
    let stream = stream.event_time(col("timestamp"), LATENESS);
    let plain = |stream: Stream, field: &Arc<Field>| {
        let scheme = match field.data_type().is_primitive() {
            true => "plain",
            false => "dictionary(plain)",
        };
        stream.encoding(field.name(), scheme)
    };
    hold(schema.fields().iter().fold(stream, plain))
}

/// The rows of the file, encoded and kept whole.
pub(super) fn kept(path: &Path) -> Result<Retained> {
    let stream = Stream::open(path, &SourceOptions::default())?;
    hold(stream.event_time(col("timestamp"), LATENESS))
}

/// Reads a stream to its end and keeps all of it.
pub(super) fn hold(stream: Stream) -> Result<Retained> {
    kept_by(&run_through(stream.keep(Keep::Bytes(KEEP_BYTES)))?)
}

/// Runs `queries` different queries a batch at a time in turns; seconds, and the most bytes of
/// state that all held at once.
fn together(range: &Retained, queries: usize) -> Result<(f64, usize)> {
    let started = Instant::now();
    let query = |index: usize| -> Result<Running> {
        let slow = col("rtt_us").gt_eq(100 * index as i64);
        Stream::from_retained(range)
            .filter(slow.and(col("error_code").eq(0)))
            .window(tumble(Duration::from_secs(1 + index as u64 % 10)))
            .group_by(["src_cluster"])
            .aggregate([count(), call("max", col("rtt_us"))])
            .run()
    };
    let mut running = (0..queries).map(query).collect::<Result<Vec<Running>>>()?;
    let (mut most, mut open) = (0, true);
    while open {
        open = false;
        for run in &mut running {
            open |= run.step()?;
            let results = std::iter::from_fn(|| run.take_result());
            std::hint::black_box(
                results
                    .map(|rows: RecordBatch| rows.num_rows())
                    .sum::<usize>(),
            );
        }
        most = most.max(running.iter().map(|run| run.state().bytes).sum());
    }
    Ok((started.elapsed().as_secs_f64(), most))
}
