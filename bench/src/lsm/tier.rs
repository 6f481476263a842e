//! Figures 7, 8 and 10 of "Integer Compression in NVRAM-centric Data Stores" on a *modelled* NVRAM:
//! bytes move as fast as the paper's ratios to the DRAM of this machine allow.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::wire;
use tersecades_store::fs::{Bandwidth, FileSystem, Throttled};

use crate::Options;
use crate::limits;
use crate::report::Report;

use super::memory::MemoryFiles;
use super::rows::{Distribution, Rows};

const ROWS: usize = 1 << 20;
const BATCH_ROWS: usize = 65_536;
/// Times that everything is done; the fastest counts.
const TIMES: usize = 5;

/// What rows are encoded with.
const SCHEMES: [(&str, &str); 4] = [
    ("none", "plain"),
    ("bit_pack", "bit_pack"),
    ("delta(bit_pack)", "delta(bit_pack)"),
    ("auto", ""),
];

/// Seconds of a way to move rows.
#[derive(Clone, Copy)]
struct Seconds {
    /// Encoded and written.
    down: f64,
    /// Read and decoded.
    up: f64,
    /// Read and summed as they are.
    sum: f64,
}

/// Prints the figures.
///
/// # Errors
/// What encoding and reading say.
pub(super) fn run(_: &Options, report: &mut Report) -> Result<()> {
    let measured = limits::bandwidth();
    let dram = |threads| {
        let rate = measured.of_threads(threads);
        Bandwidth::dram(rate, rate)
    };
    let media = [
        ("DRAM", 1, dram(1)),
        ("NVRAM, modelled", 1, dram(1).nvram_of_one_thread()),
        ("DRAM", 2, dram(2)),
        ("NVRAM, modelled", 2, dram(2).nvram_of_many_threads()),
    ];
    report.note("figures 7, 8, 10: millions of integers a second; media are modelled");
    let columns = [
        "values",
        "codecs",
        "medium",
        "threads",
        "to it",
        "from it",
        "sum on it",
    ];
    report.head(&columns);
    for distribution in [Distribution::Uniform, Distribution::Sequential] {
        let rows = Rows::Pairs(distribution, ROWS);
        let parts = (0..ROWS).step_by(BATCH_ROWS);
        let parts = parts.map(|start| rows.batch(start..start + BATCH_ROWS));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        for (name, scheme) in SCHEMES {
            for (medium, threads, bandwidth) in media {
                let files = Throttled::new(Arc::new(MemoryFiles::default()), bandwidth);
                let seconds = fastest(&files, &parts, scheme, threads)?;
                let rate = |seconds: f64| (2 * ROWS * threads) as f64 / 1e6 / seconds;
                let cells = [
                    distribution.name().to_owned(),
                    name.to_owned(),
                    medium.to_owned(),
                    threads.to_string(),
                    format!("{:.0}", rate(seconds.down)),
                    format!("{:.0}", rate(seconds.up)),
                    format!("{:.0}", rate(seconds.sum)),
                ];
                report.row(&cells, rate(seconds.sum), "M integers/s");
            }
        }
    }
    Ok(())
}

fn fastest(
    files: &Throttled,
    parts: &[RecordBatch],
    scheme: &str,
    threads: usize,
) -> Result<Seconds> {
    let mut best = Seconds {
        down: f64::INFINITY,
        up: f64::INFINITY,
        sum: f64::INFINITY,
    };
    for _ in 0..TIMES {
        let down = together(threads, |thread| down(files, parts, scheme, thread))?;
        let up = together(threads, |thread| up(files, parts.len(), thread))?;
        let sum = together(threads, |thread| sum(files, parts.len(), thread))?;
        best = Seconds {
            down: best.down.min(down),
            up: best.up.min(up),
            sum: best.sum.min(sum),
        };
    }
    Ok(best)
}

/// Seconds until as many threads as asked have done `work`.
fn together(threads: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<f64> {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let work = &work;
        let running = (0..threads).map(|thread| scope.spawn(move || work(thread)));
        let running: Vec<_> = running.collect();
        let died = |_| Err(Error::internal("a thread panicked"));
        let mut ended = running.into_iter();
        ended.try_for_each(|thread| thread.join().unwrap_or_else(died))
    })?;
    Ok(started.elapsed().as_secs_f64())
}

fn name(thread: usize, part: usize) -> String {
    format!("{thread}-{part}")
}

fn down(files: &Throttled, parts: &[RecordBatch], scheme: &str, thread: usize) -> Result<()> {
    let mut encoder = BatchEncoder::new(&parts[0].schema())?;
    if !scheme.is_empty() {
        for column in encoder.columns_mut() {
            column.pin(scheme.parse::<Scheme>()?);
        }
    }
    let mut bytes = Vec::new();
    for (part, rows) in parts.iter().enumerate() {
        bytes.clear();
        wire::write_batch(&encoder.encode_new(rows)?, &mut bytes)?;
        let mut output = files.create(Path::new(&name(thread, part)))?;
        output.write(&bytes)?;
        output.sync()?;
    }
    Ok(())
}

/// Calls `visit` with the bytes of each part.
fn each(
    files: &Throttled,
    parts: usize,
    thread: usize,
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for part in 0..parts {
        let input = files.open(Path::new(&name(thread, part)))?;
        bytes.resize(input.length()? as usize, 0);
        input.read_at(&mut bytes, 0)?;
        visit(&bytes)?;
    }
    Ok(())
}

fn up(files: &Throttled, parts: usize, thread: usize) -> Result<()> {
    let mut work = Work::default();
    each(files, parts, thread, |bytes| {
        let batch = wire::read_batch(bytes)?;
        let rows = batch.to_arrow(&Selection::all(batch.rows()), &mut work)?;
        match rows.num_rows() {
            BATCH_ROWS => Ok(()),
            rows => Err(Error::internal(format!("{rows} rows came back"))),
        }
    })
}

fn sum(files: &Throttled, parts: usize, thread: usize) -> Result<()> {
    let (mut sum, mut work) = (Fold::default(), Work::default());
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    each(files, parts, thread, |bytes| {
        let batch = wire::read_batch(bytes)?;
        let all = Selection::all(batch.rows());
        for column in batch.columns() {
            column.fold(asked, &all, &mut sum, &mut work);
        }
        Ok(())
    })
}
