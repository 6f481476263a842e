//! Load and read time by the size of the buffer, beside what the cost model says.

use std::time::Instant;

use tersecades_columnar::error::{Error, Result};
use tersecades_store::{CodecPolicy, Store, StoreOptions};

use crate::Options;
use crate::report::{Bar, Report};

use super::folder::Folder;
use super::rows::{Distribution, Rows};
use super::{APPEND_ROWS, load, points, unsafe_with};

/// Runs of one row, and of one append, that are written to see what a run costs before its rows.
const SMALL_RUNS: usize = 9;
/// Runs that are merged to see what that costs.
const MERGED_RUNS: usize = 5;
/// Rows of the buffers.
const BUFFERS: [usize; 8] = [
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 19,
    1 << 20,
];
/// Times that a load, its terms and reads are measured; the least counts.
const TIMES: usize = 5;

/// What the model of a load is made of, in seconds.
struct Terms {
    /// All rows into log and memory.
    append: f64,
    /// All rows from memory into one run.
    flush: f64,
    /// One append from memory into a run.
    small: f64,
    /// One row from memory into a run: the file of it.
    file: f64,
    /// All rows from runs that do not overlap into one: bytes move, keys are read for the filter.
    merge: f64,
}

impl Terms {
    /// The lesser of each term.
    fn least(self, other: Self) -> Self {
        Terms {
            append: self.append.min(other.append),
            flush: self.flush.min(other.flush),
            small: self.small.min(other.small),
            file: self.file.min(other.file),
            merge: self.merge.min(other.merge),
        }
    }

    /// Each term under a policy.
    ///
    /// # Errors
    /// What the store says.
    fn measure(policy: CodecPolicy, rows: &Rows) -> Result<Self> {
        let (folder, started) = (Folder::new()?, Instant::now());
        let store = load(&folder, rows, unsafe_with(policy))?;
        let append = started.elapsed().as_secs_f64();
        let started = Instant::now();
        store.flush()?;
        let flush = started.elapsed().as_secs_f64();
        Ok(Terms {
            append,
            flush,
            file: small_run(&store, rows, 1)?,
            small: small_run(&store, rows, APPEND_ROWS)?,
            merge: Self::merge_once(rows, policy)?,
        })
    }

    /// Seconds to make one run of those of a store, which are as many as never merge by themselves.
    fn merge_once(rows: &Rows, policy: CodecPolicy) -> Result<f64> {
        let options = StoreOptions {
            buffer_rows: rows.count() / MERGED_RUNS,
            ..unsafe_with(policy)
        };
        let folder = Folder::new()?;
        let store = load(&folder, rows, options)?;
        store.flush()?;
        let started = Instant::now();
        store.compact()?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// Seconds of a load of `count` rows with runs of `buffer_rows`: rows are coded once, because
    /// merges move what overlaps nothing, and are moved once, into a file more, for each level they
    /// come to.
    fn load_s(&self, count: usize, buffer_rows: usize, level_ratio: usize) -> f64 {
        let ratio = level_ratio as f64;
        let all = count as f64 / buffer_rows.next_multiple_of(APPEND_ROWS) as f64;
        let (mut runs, mut merged_from) = (all, 1.0);
        let (mut merges, mut moved) = (0.0, 0.0);
        while runs >= ratio {
            runs /= ratio;
            merged_from *= ratio;
            merges += runs.floor();
            moved += runs.floor() * merged_from / all;
        }
        // What a run costs before its rows: its file, and codecs that are chosen anew.
        let row = (self.flush - self.small) / (count - APPEND_ROWS) as f64;
        let run = (self.small - row * APPEND_ROWS as f64).max(self.file);
        let coded = self.append + self.flush + (all.ceil() - 1.0) * run;
        coded + merges * self.file + moved * (self.merge - self.file).max(0.0)
    }
}

/// The median seconds of a run of the first `count` rows.
fn small_run(store: &Store, rows: &Rows, count: usize) -> Result<f64> {
    let mut times = Vec::with_capacity(SMALL_RUNS);
    for _ in 0..SMALL_RUNS {
        store.writer()?.append(&rows.batch(0..count)?)?;
        let started = Instant::now();
        store.flush()?;
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[SMALL_RUNS / 2])
}

/// Load and read time by buffer and codec, and the model of both.
///
/// # Errors
/// `InvalidArgument` for too few rows; what the store says.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let count = options.scaled(1_000_000);
    let least = APPEND_ROWS * MERGED_RUNS;
    if count < least {
        let error = Error::invalid(format!("`buffers` cannot measure {count} rows"));
        return Err(error.hint(format!("ask for {least} at least: --rows {least}")));
    }
    let rows = &Rows::Pairs(Distribution::Uniform, count);
    let what = format!("load and read time by buffer, {count} pairs with values below a million");
    report.note(&what);
    let columns = [
        "buffer rows",
        "codecs",
        "load s",
        "by the model",
        "off",
        "read us",
        "by the model",
        "off",
    ];
    report.head(&columns);
    let mut near = [0, 0];
    let mut cases = 0;
    for policy in CodecPolicy::all() {
        let with = |buffer_rows| StoreOptions {
            buffer_rows,
            ..unsafe_with(policy)
        };
        // In turns, so that what else the machine does slows terms and loads alike.
        let mut terms = Terms::measure(policy, rows)?;
        let mut least_s = [f64::INFINITY; BUFFERS.len()];
        for _ in 0..TIMES {
            for (least_s, buffer_rows) in least_s.iter_mut().zip(BUFFERS) {
                *least_s = least_s.min(timed_load(&with(buffer_rows), rows)?.2);
            }
            terms = terms.least(Terms::measure(policy, rows)?);
        }
        for (load_s, buffer_rows) in least_s.into_iter().zip(BUFFERS) {
            let options = with(buffer_rows);
            let model_s = terms.load_s(count, buffer_rows, options.level_ratio);
            let (_folder, store, _) = timed_load(&options, rows)?;
            let (read_us, model_us) = reads(&store, count)?;
            let off = [model_s / load_s - 1.0, model_us / read_us - 1.0];
            for (near, off) in near.iter_mut().zip(off) {
                *near += usize::from(off.abs() <= 0.25);
            }
            let [load_off, read_off] = off.map(|off| format!("{:+.0} %", off * 100.0));
            cases += 1;
            let cells = [
                buffer_rows.to_string(),
                policy.to_string(),
                format!("{load_s:.3}"),
                format!("{model_s:.3}"),
                load_off,
                format!("{read_us:.1}"),
                format!("{model_us:.1}"),
                read_off,
            ];
            report.row(&cells, load_s, "s");
        }
    }
    for (what, near) in ["loads", "reads"].into_iter().zip(near) {
        let share = near as f64 / cases as f64 * 100.0;
        let name = format!("{what} that the model tells within 25 %");
        report.judge(name, share, "%", Bar::AtLeast(100.0));
    }
    Ok(())
}

/// A store with all rows, and the seconds that they took.
fn timed_load(options: &StoreOptions, rows: &Rows) -> Result<(Folder, Store, f64)> {
    let folder = Folder::new()?;
    let started = Instant::now();
    let store = load(&folder, rows, options.clone())?;
    store.flush()?;
    let load_s = started.elapsed().as_secs_f64();
    Ok((folder, store, load_s))
}

/// The median of reads of a key, and what the model says of it, in microseconds; in turns, as what
/// else the machine does slows both.
fn reads(store: &Store, count: usize) -> Result<(f64, f64)> {
    let mut least_us = (f64::INFINITY, f64::INFINITY);
    for _ in 0..TIMES {
        least_us.0 = least_us.0.min(points(store, count)?.0);
        let model = store.snapshot().explain()?;
        least_us.1 = least_us
            .1
            .min(model.map_or(f64::NAN, |model| model.point_model_us));
    }
    Ok(least_us)
}
