//! Which runs are merged next.
//!
//! ```text
//! tiered    level i: r r r r (level_ratio of them) ─▶ one run of level i + 1
//! leveled   level 0: r r r r + the run of level 1 ─▶ level 1; level i too large + level i + 1
//! ```
//! Runs stand oldest first and those that merge are neighbours, so that the order of arrival never
//! changes. Where bytes are kept up to a limit, which lets whole runs go, runs become one only as
//! long as that takes a small share of it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array};
use arrow_schema::DataType;

use crate::option::Layout;
use crate::retention::time_of;
use crate::run::Run;
use crate::schema::StoreSchema;
use crate::version::Version;

/// Runs that become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Their positions.
    pub(crate) runs: Range<usize>,
    /// The level of what comes out.
    pub(crate) level: u32,
    /// Whether they only change their level.
    pub(crate) moves: bool,
}

/// Share of the bytes that are kept which runs that become one take at most: as much goes at once.
const KEEP_SHARE: u64 = 8;

/// What is to be merged; `None` where no level is full.
pub(crate) fn pick(version: &Version) -> Option<Task> {
    match version.catalog.options.layout {
        Layout::Tiered => pick_tiered(version),
        Layout::Leveled => pick_leveled(version),
    }
}

/// What makes as few runs of the deepest level of all as may be; empty where there is at most one.
pub(crate) fn everything(version: &Version) -> Vec<Task> {
    let runs = &version.runs;
    let deepest = runs.iter().map(|run| run.id().level).max().unwrap_or(0);
    let level = deepest.max(1);
    let mut tasks = Vec::new();
    let mut start = 0;
    while runs.len() > 1 && start < runs.len() {
        let together = oldest_of(version, start..runs.len());
        start = together.end;
        if together.len() > 1 || runs[together.start].id().level < level {
            tasks.push(task(version, together, level));
        }
    }
    tasks
}

/// The oldest of the runs at `positions` that may become one; one at least.
fn oldest_of(version: &Version, positions: Range<usize>) -> Range<usize> {
    let limit = version.catalog.options.keep_bytes;
    let limit = limit.map_or(u64::MAX, |bytes| bytes / KEEP_SHARE);
    let mut bytes = 0u64;
    let fits = |run: &&Arc<Run>| {
        bytes = bytes.saturating_add(run.id().length);
        bytes <= limit
    };
    let count = version.runs[positions.clone()].iter().take_while(fits);
    positions.start..positions.start + count.count().max(1)
}

/// The runs at `positions` become one of `level`.
fn task(version: &Version, positions: Range<usize>, level: u32) -> Task {
    let from = version.runs[positions.start].id().level;
    let same_codec = || {
        let options = &version.catalog.options;
        options.suits(from as usize, level as usize)
    };
    Task {
        moves: positions.len() == 1 && same_codec(),
        runs: positions,
        level,
    }
}

/// Positions of the runs of a level; deeper levels stand before it.
fn level_runs(runs: &[Arc<Run>], level: u32) -> Range<usize> {
    let start = runs.iter().take_while(|run| run.id().level > level).count();
    let count = runs[start..]
        .iter()
        .take_while(|run| run.id().level == level)
        .count();
    start..start + count
}

fn levels(runs: &[Arc<Run>]) -> Range<u32> {
    0..runs.iter().map(|run| run.id().level + 1).max().unwrap_or(0)
}

fn pick_tiered(version: &Version) -> Option<Task> {
    let ratio = version.catalog.options.level_ratio;
    levels(&version.runs).find_map(|level| {
        let full = level_runs(&version.runs, level);
        (full.len() >= ratio).then(|| task(version, oldest_of(version, full), level + 1))
    })
}

fn pick_leveled(version: &Version) -> Option<Task> {
    let (runs, options) = (&version.runs, &version.catalog.options);
    levels(runs).find_map(|level| {
        let here = level_runs(runs, level);
        let bytes: u64 = runs[here.clone()].iter().map(|run| run.id().length).sum();
        let ratio = options.level_ratio as u64;
        let capacity = ratio
            .saturating_pow(level)
            .saturating_mul(options.buffer_bytes as u64);
        let full = match level {
            0 => here.len() >= options.level_ratio,
            _ => here.len() > 1 || bytes > capacity,
        };
        full.then(|| {
            let below = level_runs(runs, level + 1);
            let with_below = oldest_of(version, below.start.min(here.start)..here.end);
            // What is too large to take in more stays as it is, and others come to stand behind it.
            let positions = match with_below.end > here.start {
                true => with_below,
                false => oldest_of(version, here),
            };
            task(version, positions, level + 1)
        })
    })
}

/// The runs that are kept: without those of which every row is too old, and without the oldest
/// where all together are too much.
pub(crate) fn kept(version: &Version) -> Vec<Arc<Run>> {
    let floor = version.floor();
    let old = |run: &Run| run.groups().iter().all(|group| floor.drops(run, group));
    let mut runs: Vec<Arc<Run>> = version
        .runs
        .iter()
        .filter(|run| !old(run))
        .cloned()
        .collect();
    if let Some(limit) = version.catalog.options.keep_bytes {
        let mut bytes: u64 = runs.iter().map(|run| run.id().length).sum();
        while bytes > limit && runs.len() > 1 {
            bytes -= runs.remove(0).id().length;
        }
    }
    runs
}

/// The newest time of a run, by its statistics.
pub(crate) fn newest_of(run: &Run, schema: &StoreSchema) -> Option<i64> {
    let time = schema.fields().field(schema.time_column()?);
    let column = run.fields().index_of(time.name()).ok()?;
    let stats = run.groups().iter().map(|group| group.chunks[column].stats);
    let known = stats.filter(|stats| stats.known);
    known.map(|stats| time_of(stats.max)).max()
}

/// The newest of `times`.
pub(crate) fn newest(times: &ArrayRef) -> Option<i64> {
    let times = arrow_cast::cast(times, &DataType::Int64).ok()?;
    Int64Array::from(times.to_data()).iter().flatten().max()
}
