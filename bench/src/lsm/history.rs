//! How small large stores are, and how fast they are read.

use std::time::Instant;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;
use tersecades_store::{CodecPolicy, Scan, Store, StoreOptions};

use crate::Options;
use crate::report::{Bar, Report};

use super::folder::Folder;
use super::rows::{Distribution, Rows, Series};
use super::{load, run_bytes, unsafe_with};

/// Runs that rows are read across.
const RUNS: usize = 10;
/// Rows that are read by their key.
const POINTS: usize = 200_000;

/// Loads three kinds of rows and reads them.
///
/// # Errors
/// What the store says.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let count = options.scaled(10_000_000);
    let cases = [
        (
            "pairs in order",
            Rows::Pairs(Distribution::Sequential, count),
            0.06,
        ),
        (
            "pairs, values below a million",
            Rows::Pairs(Distribution::Uniform, count),
            3.4,
        ),
        ("time series", Rows::Series(Series::of_rows(count)), 2.2),
    ];
    for (name, rows, bar) in cases {
        let folder = Folder::new()?;
        let started = Instant::now();
        let options = StoreOptions {
            buffer_rows: count.div_ceil(RUNS),
            level_ratio: RUNS + 2,
            ..unsafe_with(CodecPolicy::Auto)
        };
        let store = load(&folder, &rows, options)?;
        store.flush()?;
        let rate = |started: Instant| count as f64 / 1e6 / started.elapsed().as_secs_f64();
        report.add(format!("{name}: load"), rate(started), "M rows/s");
        points(&store, name, &rows, report)?;
        let started = Instant::now();
        store.compact()?;
        report.add(
            format!("{name}: all runs become one"),
            rate(started),
            "M rows/s",
        );
        points(&store, name, &rows, report)?;
        let bytes = run_bytes(&store)? / count as f64;
        let limit = Bar::AtMost(bar);
        report.judge(format!("{name}: size"), bytes, "B/row", limit);
        resident(&store, name, &rows, report)?;
        scan(&store, name, count, report)?;
    }
    Ok(())
}

/// Bytes that stay in memory, as a share of those of the rows.
fn resident(store: &Store, name: &str, rows: &Rows, report: &mut Report) -> Result<()> {
    let stats = store.snapshot().stats(true)?;
    for column in &stats.columns {
        let bytes = column.bytes as f64 / rows.count() as f64;
        let (name, codecs) = (&column.name, &column.codecs);
        report.note(&format!("{name}: {bytes:.3} B/row, {codecs:?}"));
    }
    let resident: usize = stats.levels.iter().map(|level| level.resident_bytes).sum();
    let share = resident as f64 / (rows.count() as f64 * rows.row_bytes()) * 100.0;
    let name = format!("{name}: fences and footers of raw bytes");
    report.judge(name, share, "%", Bar::AtMost(0.5));
    Ok(())
}

/// How long reads of single rows take, and how long the first reads of chunks.
fn points(store: &Store, name: &str, rows: &Rows, report: &mut Report) -> Result<()> {
    let snapshot = store.snapshot();
    let stats = snapshot.stats(false)?;
    let runs: usize = stats.levels.iter().map(|level| level.runs).sum();
    let mut reader = snapshot.point_reader(&["v"])?;
    let mut times = Vec::with_capacity(POINTS);
    let mut first = Vec::new();
    for turn in 0..POINTS {
        // A step without a common factor comes to every row.
        let key = rows.key(turn.wrapping_mul(0x9e37_79b1) % rows.count());
        let opened = reader.opened();
        let started = Instant::now();
        let found = reader.find(&key)?;
        let took = started.elapsed().as_secs_f64() * 1e6;
        match reader.opened() > opened {
            true => first.push(took),
            false => times.push(took),
        }
        let value = found.first().and_then(|row| row.first());
        if found.len() != 1 || value.is_none_or(|value| *value == Value::Null) {
            return Err(Error::internal(format!(
                "{} rows with {key:?}",
                found.len()
            )));
        }
    }
    let name = format!("{name}: read of a row, {runs} runs");
    let [p50, p99] = quantiles(&mut times);
    report.judge(format!("{name}, p50"), p50, "us", Bar::AtMost(2.5));
    report.add(format!("{name}, p99"), p99, "us");
    let [p50, p99] = quantiles(&mut first);
    report.add(format!("{name}, of an unopened chunk, p50"), p50, "us");
    report.add(format!("{name}, of an unopened chunk, p99"), p99, "us");
    Ok(())
}

/// Median and 99th percentile.
pub(super) fn quantiles(times: &mut [f64]) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied();
    [50, 99].map(|share| at(share).unwrap_or(f64::NAN))
}

/// How fast all rows are decoded, and summed encoded.
fn scan(store: &Store, name: &str, count: usize, report: &mut Report) -> Result<()> {
    let started = Instant::now();
    let mut rows = 0;
    for found in store.snapshot().scan(&Scan::default())? {
        rows += found?.to_arrow()?.num_rows();
    }
    if rows != count {
        return Err(Error::internal(format!("{rows} rows of {count}")));
    }
    let rate = rows as f64 / 1e6 / started.elapsed().as_secs_f64();
    report.judge(
        format!("{name}: scan to Arrow"),
        rate,
        "M rows/s",
        Bar::AtLeast(100.0),
    );
    let started = Instant::now();
    let (mut sum, mut work) = (Fold::default(), Work::default());
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    for found in store.snapshot().scan(&Scan::default().columns(["v"]))? {
        let found = found?;
        let column = found.batch.column(0);
        column.fold(asked, &found.selection, &mut sum, &mut work);
    }
    let rate = sum.count as f64 / 1e6 / started.elapsed().as_secs_f64();
    report.judge(
        format!("{name}: sum of a column, encoded"),
        rate,
        "M rows/s",
        Bar::AtLeast(300.0),
    );
    Ok(())
}
