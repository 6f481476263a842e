//! The store: the experiments of "Compression: CPU vs. Memory Tradeoff", and how small and fast
//! history is.
//!
//! Keys and values of 8 bytes; every codec of a level beside `auto`. Stores lie in the folder for
//! temporary files, which should be on the device that is meant; times of reads are with a warm
//! cache of pages.

mod buffer;
mod folder;
mod history;
mod ingest;
mod memory;
#[cfg(feature = "fjall")]
mod rival;
mod rows;
mod tier;
mod upkeep;

use std::time::Instant;

use tersecades_columnar::error::{Error, Result};
use tersecades_store::{CodecPolicy, Durability, Scan, Store, StoreOptions, StoreSchema};

use crate::Options;
use crate::report::Report;
use folder::Folder;
use rows::{Distribution, Rows};

/// Bytes of a pair.
const PAIR_BYTES: f64 = 16.0;
/// Rows of an append where they are not what is measured.
const APPEND_ROWS: usize = 16_384;
/// Keys that are read to measure a read.
const POINTS: usize = 2_000;

/// Prints every figure.
///
/// # Errors
/// `InvalidArgument` for an experiment that is not there; what the store says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let names: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = options
        .queries
        .iter()
        .find(|it| !names.contains(&it.as_str()))
    {
        let error = Error::invalid(format!("lsm has no experiment `{unknown}`"));
        return Err(error.hint(format!("they are: {}", names.join(", "))));
    }
    let asked = |name: &str| options.queries.iter().any(|query| query == name);
    for (name, experiment) in EXPERIMENTS {
        if options.queries.is_empty() || asked(name) {
            experiment(options, report)?;
        }
    }
    Ok(())
}

/// An experiment: its name for `--queries` and what it runs.
type Experiment = (&'static str, fn(&Options, &mut Report) -> Result<()>);

const EXPERIMENTS: &[Experiment] = &[
    ("ratios", ratios),
    ("mixed", mixed),
    ("buffers", buffer::run),
    ("history", history::run),
    ("merges", upkeep::merges),
    ("opening", upkeep::opening),
    ("replay", upkeep::replay),
    ("ingest", ingest::run),
    ("tiers", tier::run),
    #[cfg(feature = "fjall")]
    ("rival", rival::run),
];

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

/// The asked number of rows, or each of `counts`.
///
/// # Errors
/// `InvalidArgument` for less than one row.
fn counts_of(options: &Options, counts: &[usize]) -> Result<Vec<usize>> {
    match options.rows {
        Some(0) => Err(Error::invalid("`--rows` asks for no rows").hint("ask for one at least")),
        Some(count) => Ok(vec![count]),
        None => Ok(counts.to_vec()),
    }
}

/// Compression ratios by distribution, size and codec.
fn ratios(options: &Options, report: &mut Report) -> Result<()> {
    let counts = counts_of(options, &[10_000, 100_000, 1_000_000])?;
    report.note("compression ratio, merged into one run");
    report.head(&["values", "rows", "codecs", "ratio"]);
    for distribution in Distribution::ALL {
        for &count in &counts {
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
fn mixed(options: &Options, report: &mut Report) -> Result<()> {
    let counts = counts_of(options, &[5_000, 10_000, 20_000])?;
    report.note("run time, half of the operations read a pair and half write one");
    report.head(&["rows", "codecs", "s"]);
    for count in counts {
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
        // A step without a common factor comes to every row, far from the one before.
        let key = turn.wrapping_mul(0x9e37_79b1) % keys;
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
