//! What a store does beside reading and writing rows: merging, opening, replaying its log.

use std::sync::Arc;
use std::time::Instant;

use tersecades_columnar::error::Result;
use tersecades_store::{CodecPolicy, Durability, Store, StoreOptions};

use crate::Options;
use crate::report::{Bar, Report};

use super::folder::Folder;
use super::rows::{Distribution, Rows, Series};
use super::{load, run_bytes, unsafe_with};

/// Series whose merges are looked at: few enough that each has a chunk of its own in every run.
const MERGED_SERIES: usize = 100;

/// How much of time series that arrive in the order of time merges move without decoding.
///
/// # Errors
/// What the store says.
pub(super) fn merges(options: &Options, report: &mut Report) -> Result<()> {
    let rows = Rows::Series(Series::of_rows(options.scaled(10_000_000)).of_series(MERGED_SERIES));
    let folder = Folder::new()?;
    let options = StoreOptions {
        buffer_rows: rows.count() / 20,
        level_ratio: 4,
        ..unsafe_with(CodecPolicy::Auto)
    };
    let store = load(&folder, &rows, options)?;
    let done = store.activity();
    let undecoded = (done.spliced_bytes + done.moved_bytes) as f64;
    let share = undecoded / (undecoded + done.decoded_bytes as f64) * 100.0;
    report.add("merges of time series", done.compactions as f64, "");
    let bar = Bar::AtLeast(90.0);
    report.judge("bytes that merges moved undecoded", share, "%", bar);
    Ok(())
}

/// How long opening a store takes.
///
/// # Errors
/// What the store says.
pub(super) fn opening(options: &Options, report: &mut Report) -> Result<()> {
    let rows = Rows::Pairs(Distribution::Sequential, options.scaled(10_000_000));
    let folder = Folder::new()?;
    let stored = StoreOptions {
        level_ratio: 1_000,
        ..unsafe_with(CodecPolicy::Auto)
    };
    let store = load(&folder, &rows, stored)?;
    store.flush()?;
    let raw = rows.count() as f64 * rows.row_bytes() / 1e9;
    report.add("raw bytes of the store", raw, "GB");
    report.add("bytes of its runs", run_bytes(&store)? / 1e9, "GB");
    store.close()?;
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let store = Store::open(folder.path())?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        store.close()?;
    }
    times.sort_by(f64::total_cmp);
    report.judge("opening it", times[2], "ms", Bar::AtMost(100.0));
    Ok(())
}

/// How long a log takes to be read when a store is opened that was not closed.
///
/// # Errors
/// What the store says.
pub(super) fn replay(options: &Options, report: &mut Report) -> Result<()> {
    for (name, policy) in [("encoded", CodecPolicy::Auto), ("plain", CodecPolicy::None)] {
        let rows = Rows::Pairs(Distribution::Uniform, options.scaled(10_000_000));
        let folder = Folder::new()?;
        let stored = StoreOptions {
            durability: Durability::Os,
            buffer_rows: usize::MAX,
            buffer_bytes: usize::MAX,
            ..unsafe_with(policy)
        };
        drop(load(&folder, &rows, stored)?);
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder.path().join("log"))? {
            bytes += entry?.metadata()?.len();
        }
        let started = Instant::now();
        let store = Arc::new(Store::open(folder.path())?);
        let seconds = started.elapsed().as_secs_f64();
        let rate = rows.count() as f64 / 1e6 / seconds;
        report.add(format!("replay, {name}"), rate, "M rows/s");
        report.judge(
            format!("replay of a GB of log, {name}"),
            seconds / (bytes as f64 / 1e9),
            "s",
            Bar::AtMost(1.0),
        );
        drop(store);
    }
    Ok(())
}
