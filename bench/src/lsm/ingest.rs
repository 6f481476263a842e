//! Rows that last: how many bytes a second, and how long an acknowledgement takes beside a sync.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use tersecades_columnar::error::{Error, Result};
use tersecades_store::{CodecPolicy, Durability, StoreOptions};

use crate::Options;
use crate::report::{Bar, Report};

use super::folder::Folder;
use super::load;
use super::rows::{Distribution, Rows};

const WRITERS: usize = 8;
/// Rows of an append: as many as fill a group with one, and as few as 150 MB/s leave time for.
const BATCH_ROWS: [usize; 2] = [16_384, 2_048];
/// Syncs that are timed.
const SYNCS: usize = 200;

/// Eight threads append pairs, each waiting until its rows last.
///
/// # Errors
/// What the store says.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    BATCH_ROWS
        .into_iter()
        .try_for_each(|batch_rows| ingest(options, batch_rows, report))
}

fn ingest(options: &Options, batch_rows: usize, report: &mut Report) -> Result<()> {
    let count = 4 * options.scaled(10_000_000);
    let folder = Folder::new()?;
    let before_ms = sync_p99(&folder)?;
    let rows = Rows::Pairs(Distribution::Uniform, count);
    let durable = StoreOptions {
        durability: Durability::Durable,
        codecs: vec![CodecPolicy::Auto],
        ..StoreOptions::default()
    };
    let store = Arc::new(load(
        &folder,
        &Rows::Pairs(Distribution::Uniform, 1),
        durable,
    )?);
    let merger = store.merge_beside()?;
    let share = count / WRITERS;
    let started = Instant::now();
    let append = |writer: usize| -> Result<Vec<f64>> {
        let (first, last) = (writer * share, (writer + 1) * share);
        let mut writer = store.writer()?;
        let mut waits = Vec::new();
        for start in (first..last).step_by(batch_rows) {
            let batch = rows.batch(start..last.min(start + batch_rows))?;
            let started = Instant::now();
            writer.append(&batch)?;
            waits.push(started.elapsed().as_secs_f64() * 1e3);
        }
        Ok(waits)
    };
    let waits = std::thread::scope(|scope| {
        let append = &append;
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || append(writer)));
        let writers: Vec<_> = writers.collect();
        let ended = |_| Err(Error::internal("a writer panicked"));
        let waits = writers.into_iter();
        let waits = waits.map(|writer| writer.join().unwrap_or_else(ended));
        waits.collect::<Result<Vec<_>>>()
    })?;
    let seconds = started.elapsed().as_secs_f64();
    merger.finish()?;
    let mut waits = waits.concat();
    waits.sort_by(f64::total_cmp);
    let rate = (share * WRITERS) as f64 * super::PAIR_BYTES / 1e6 / seconds;
    report.judge(
        format!("durable ingest, 8 writers, {batch_rows} rows an append"),
        rate,
        "MB/s raw",
        Bar::AtLeast(150.0),
    );
    let ack_ms = waits[waits.len() * 99 / 100];
    let sync_ms = before_ms.max(sync_p99(&folder)?);
    report.add("acknowledgement, p50", waits[waits.len() / 2], "ms");
    report.add("sync of 4 KiB, p99", sync_ms, "ms");
    let bar = Bar::AtMost(2.0 * sync_ms + 4.0);
    report.judge("acknowledgement, p99", ack_ms, "ms", bar);
    Ok(())
}

/// The 99th percentile of a write of 4 KiB and its sync, in milliseconds.
fn sync_p99(folder: &Folder) -> Result<f64> {
    let mut file = File::create(folder.path().join("sync"))?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let started = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS * 99 / 100])
}
