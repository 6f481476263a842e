//! The store: the experiments of "Compression: CPU vs. Memory Tradeoff", and how small and fast
//! history is.
//!
//! Keys and values of 8 bytes; every codec of a level beside `auto`. Stores lie in the folder for
//! temporary files, which should be on the device that is meant; times of reads are with a warm
//! cache of pages.

mod folder;
mod ingest;
mod rows;

use std::time::Instant;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_store::{CodecPolicy, Durability, Scan, Store, StoreOptions, StoreSchema};

use crate::Options;
use crate::report::{Bar, Report};
use folder::Folder;
use rows::{Distribution, Rows, Series};

/// Bytes of a pair.
const PAIR_BYTES: f64 = 16.0;
/// Rows of an append where they are not what is measured.
const APPEND_ROWS: usize = 16_384;
/// Keys that are read to measure a read.
const POINTS: usize = 2_000;

/// Prints every figure.
///
/// # Errors
/// What the store says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    ratios(report)?;
    mixed(report)?;
    buffers(report)?;
    history(options, report)?;
    ingest::run(options, report)
}

/// A store with all of `rows`.
fn load(folder: &Folder, rows: &Rows, options: StoreOptions) -> Result<Store> {
    let schema = StoreSchema::new(&rows.batch(0..1)?.schema())?;
    let schema = match rows {
        Rows::Pairs(..) => schema.key(&["k"])?,
        Rows::Series(_) => schema.key(&["k"])?.time("ts")?,
    };
    let store = Store::create(folder.path(), schema, options)?;
    let mut writer = store.writer()?;
    for start in (0..rows.count()).step_by(APPEND_ROWS) {
        writer.append(&rows.batch(start..rows.count().min(start + APPEND_ROWS))?)?;
    }
    Ok(store)
}

fn unsafe_with(policy: CodecPolicy) -> StoreOptions {
    StoreOptions {
        durability: Durability::Os,
        codecs: vec![policy],
        ..StoreOptions::default()
    }
}

/// Bytes of all runs.
fn run_bytes(store: &Store) -> Result<f64> {
    let stats = store.snapshot().stats(false)?;
    Ok(stats.levels.iter().map(|level| level.bytes as f64).sum())
}

/// Compression ratios by distribution, size and codec.
fn ratios(report: &mut Report) -> Result<()> {
    report.note("compression ratio, merged into one run");
    report.head(&["values", "rows", "codecs", "ratio"]);
    for distribution in Distribution::ALL {
        for count in [10_000, 100_000, 1_000_000] {
            for policy in CodecPolicy::all() {
                let folder = Folder::new()?;
                let store = load(
                    &folder,
                    &Rows::Pairs(distribution, count),
                    unsafe_with(policy),
                )?;
                store.compact()?;
                let ratio = PAIR_BYTES * count as f64 / run_bytes(&store)?;
                let cells = [
                    distribution.name().to_owned(),
                    count.to_string(),
                    policy.to_string(),
                    format!("{ratio:.2}"),
                ];
                report.row(&cells, ratio, "x");
            }
        }
    }
    Ok(())
}

/// Run time by size where every other operation reads a pair.
fn mixed(report: &mut Report) -> Result<()> {
    report.note("run time, half of the operations read a pair and half write one");
    report.head(&["rows", "codecs", "s"]);
    for count in [5_000, 10_000, 20_000] {
        for policy in CodecPolicy::all() {
            let folder = Folder::new()?;
            let rows = Rows::Pairs(Distribution::Uniform, count);
            let options = StoreOptions {
                buffer_rows: 4_096,
                ..unsafe_with(policy)
            };
            let store = load(&folder, &Rows::Pairs(Distribution::Uniform, 1), options)?;
            let started = Instant::now();
            let mut writer = store.writer()?;
            for key in 1..count {
                writer.append(&rows.batch(key..key + 1)?)?;
                read_key(&store, key / 2)?;
            }
            let seconds = started.elapsed().as_secs_f64();
            let cells = [
                count.to_string(),
                policy.to_string(),
                format!("{seconds:.3}"),
            ];
            report.row(&cells, seconds, "s");
        }
    }
    Ok(())
}

/// Load and read time by size of the buffer, and what the model says of reads.
fn buffers(report: &mut Report) -> Result<()> {
    const COUNT: usize = 1_000_000;
    report.note("load and read time by buffer, a million pairs with values below a million");
    report.head(&[
        "buffer rows",
        "codecs",
        "load s",
        "read us",
        "read us by the model",
    ]);
    for buffer_rows in (13..=20).map(|bits| 1_usize << bits) {
        for policy in CodecPolicy::all() {
            let folder = Folder::new()?;
            let options = StoreOptions {
                buffer_rows,
                ..unsafe_with(policy)
            };
            let started = Instant::now();
            let store = load(&folder, &Rows::Pairs(Distribution::Uniform, COUNT), options)?;
            store.flush()?;
            let load_s = started.elapsed().as_secs_f64();
            let (read_us, _) = points(&store, COUNT)?;
            let model = store.snapshot().explain()?;
            let model = model.map_or(f64::NAN, |model| model.point_model_us);
            let cells = [
                buffer_rows.to_string(),
                policy.to_string(),
                format!("{load_s:.3}"),
                format!("{read_us:.1}"),
                format!("{model:.1}"),
            ];
            report.row(&cells, load_s, "s");
        }
    }
    Ok(())
}

/// Reads one pair; its rows.
fn read_key(store: &Store, key: usize) -> Result<usize> {
    let wanted = Scan::default().equal("k", key as i64);
    let mut rows = 0;
    for found in store.snapshot().scan(&wanted)? {
        rows += found?.to_arrow()?.num_rows();
    }
    Ok(rows)
}

/// Median and 99th percentile of reads of a key, in microseconds.
fn points(store: &Store, keys: usize) -> Result<(f64, f64)> {
    let mut times = Vec::with_capacity(POINTS);
    for turn in 0..POINTS {
        let key = turn * 7_919 % keys;
        let started = Instant::now();
        let rows = read_key(store, key)?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
        if rows == 0 {
            return Err(Error::internal(format!("key {key} is missing")));
        }
    }
    times.sort_by(f64::total_cmp);
    Ok((times[POINTS / 2], times[POINTS * 99 / 100]))
}

/// How small large stores are, and how fast they are read.
fn history(options: &Options, report: &mut Report) -> Result<()> {
    let count = options.scaled(10_000_000);
    let series = Series::of_rows(count);
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
        ("time series", Rows::Series(series), 2.2),
    ];
    for (name, rows, bar) in cases {
        let folder = Folder::new()?;
        let started = Instant::now();
        let store = load(&folder, &rows, unsafe_with(CodecPolicy::Auto))?;
        report.add(
            format!("{name}: load"),
            count as f64 / 1e6 / started.elapsed().as_secs_f64(),
            "M rows/s",
        );
        let runs = store.snapshot().stats(false)?;
        let runs: usize = runs.levels.iter().map(|level| level.runs).sum();
        if matches!(rows, Rows::Pairs(..)) {
            let (median, worst) = points(&store, count)?;
            report.judge(
                format!("{name}: read of a key in {runs} runs, p50"),
                median,
                "us",
                Bar::AtMost(2.5),
            );
            report.add(format!("{name}: the same, p99"), worst, "us");
        }
        store.compact()?;
        let bytes = run_bytes(&store)? / count as f64;
        report.judge(format!("{name}: size"), bytes, "B/row", Bar::AtMost(bar));
        scan(&store, name, count, report)?;
    }
    Ok(())
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
