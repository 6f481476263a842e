//! Load and read time by the size of the buffer, beside what the cost model says.

use std::time::Instant;

use tersecades_columnar::error::Result;
use tersecades_store::{CodecPolicy, Store, StoreOptions};

use crate::Options;
use crate::report::{Bar, Report};

use super::folder::Folder;
use super::rows::{Distribution, Rows};
use super::{APPEND_ROWS, load, points, unsafe_with};

const COUNT: usize = 1_000_000;
/// Runs of one row that are written to see what a run costs before its rows.
const EMPTY_RUNS: usize = 9;
/// Times that a load and its terms are measured; the least counts.
const TIMES: usize = 3;

/// What the model of a load is made of, in seconds.
struct Terms {
    /// All rows into log and memory.
    append: f64,
    /// All rows from memory into one run.
    flush: f64,
    /// A run, whatever is in it.
    run: f64,
}

impl Terms {
    /// The least of several measurements of each term under a policy.
    ///
    /// # Errors
    /// What the store says.
    fn measure(policy: CodecPolicy) -> Result<Self> {
        let mut least = Self::measure_once(policy)?;
        for _ in 1..TIMES {
            let terms = Self::measure_once(policy)?;
            least.append = least.append.min(terms.append);
            least.flush = least.flush.min(terms.flush);
            least.run = least.run.min(terms.run);
        }
        Ok(least)
    }

    fn measure_once(policy: CodecPolicy) -> Result<Self> {
        let rows = Rows::Pairs(Distribution::Uniform, COUNT);
        let (folder, started) = (Folder::new()?, Instant::now());
        let store = load(&folder, &rows, unsafe_with(policy))?;
        let append = started.elapsed().as_secs_f64();
        let started = Instant::now();
        store.flush()?;
        let flush = started.elapsed().as_secs_f64();
        let mut times = Vec::with_capacity(EMPTY_RUNS);
        for row in 0..EMPTY_RUNS {
            store.writer()?.append(&rows.batch(row..row + 1)?)?;
            let started = Instant::now();
            store.flush()?;
            times.push(started.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(Terms {
            append,
            flush,
            run: times[EMPTY_RUNS / 2],
        })
    }

    /// Seconds of a load with runs of `buffer_rows`: rows are coded once, because merges move what
    /// overlaps nothing, and each run is written and read once more for each level it comes to.
    fn load_s(&self, buffer_rows: usize, level_ratio: usize) -> f64 {
        let mut runs = COUNT as f64 / buffer_rows.next_multiple_of(APPEND_ROWS) as f64;
        let mut written = runs.ceil();
        while runs >= level_ratio as f64 {
            runs /= level_ratio as f64;
            written += runs.floor();
        }
        self.append + self.flush + (written - 1.0) * self.run
    }
}

/// Load and read time by buffer and codec, and the model of both.
///
/// # Errors
/// What the store says.
pub(super) fn run(_: &Options, report: &mut Report) -> Result<()> {
    report.note("load and read time by buffer, a million pairs with values below a million");
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
        let terms = Terms::measure(policy)?;
        for buffer_rows in (13..=20).map(|bits| 1_usize << bits) {
            let options = StoreOptions {
                buffer_rows,
                ..unsafe_with(policy)
            };
            let model_s = terms.load_s(buffer_rows, options.level_ratio);
            let (folder, store, mut load_s) = timed_load(&options)?;
            let (read_us, model_us) = reads(&store)?;
            drop((store, folder));
            for _ in 1..TIMES {
                load_s = load_s.min(timed_load(&options)?.2);
            }
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
fn timed_load(options: &StoreOptions) -> Result<(Folder, Store, f64)> {
    let folder = Folder::new()?;
    let started = Instant::now();
    let rows = Rows::Pairs(Distribution::Uniform, COUNT);
    let store = load(&folder, &rows, options.clone())?;
    store.flush()?;
    let load_s = started.elapsed().as_secs_f64();
    Ok((folder, store, load_s))
}

/// The median of reads of a key, and what the model says of it, in microseconds.
fn reads(store: &Store) -> Result<(f64, f64)> {
    let (read_us, _) = points(store, COUNT)?;
    let model = store.snapshot().explain()?;
    Ok((
        read_us,
        model.map_or(f64::NAN, |model| model.point_model_us),
    ))
}
