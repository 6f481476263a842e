//! Merging runs: what a level has too many of becomes one run of the next.
//!
//! ```text
//! version ──pick──▶ runs that merge ──read, write; nobody waits──▶ one run ──swap──▶ manifest
//! ```
//! One merge runs at a time. Rows are taken in and runs are written from memory meanwhile: these
//! stand behind the ones that merge.

use std::ops::Range;
use std::sync::Arc;

use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::{Goal, Uses};

use crate::commit::is_overfull;
use crate::compaction::{self, Task};
use crate::encode::Encoder;
use crate::maintenance::read_only;
use crate::merge::{Merge, MergeOptions, Piece, TEXT_BYTES};
use crate::option::StoreOptions;
use crate::placement::Placement;
use crate::run::{self, Run, RunId, RunWriter};
use crate::sort_key::Sorted;
use crate::source::Source;
use crate::store::Store;
use crate::sync::MutexGuard;
use crate::version::Version;
use crate::workload;

/// What a merge did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    spliced_bytes: u64,
    decoded_bytes: u64,
    /// Those of the decoded bytes that came from another tier.
    retiered_bytes: u64,
}

/// Where a run comes to stand.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Number of its file.
    pub(crate) number: u64,
    /// Its level.
    pub(crate) level: u32,
    /// Numbers of its rows.
    pub(crate) sequences: Range<u64>,
    /// Whether no run is older.
    pub(crate) is_oldest: bool,
}

impl Store {
    /// Writes what `sources` merge to as a run; `None` where nothing is left of it.
    pub(crate) fn write_run(
        &self,
        version: &Version,
        sources: Vec<Source>,
        place: Place,
    ) -> Result<Option<(Run, Moved)>> {
        let Place {
            number,
            level,
            sequences,
            is_oldest,
        } = place;
        let (schema, options) = (&version.catalog.schema, &version.catalog.options);
        let fields = schema.stored();
        let policy = options.codec(level as usize);
        let placement = options.tier(level as usize);
        let bloom_bits = match schema.key_columns().is_empty() {
            true => 0,
            false => options.bloom_bits,
        };
        let merge_options = MergeOptions {
            hashes_keys: bloom_bits > 0,
            ..merge_options(options, &sources, level, is_oldest)
        };
        let retiers = retiers(options, &sources, placement);
        let floor = version.floor();
        let mut merge = Merge::new(schema, Arc::clone(&fields), sources, floor, merge_options)?;
        let goal = Goal {
            uses: self.uses(options, level),
            ..placement.goal()
        };
        let mut encoder = Encoder::for_goal(&fields, policy, goal)?;
        if let Some(last) = schema.sort_columns().last() {
            encoder = encoder.sorted_by(*last)?;
        }
        let mut writer =
            RunWriter::create(&self.directory, number, &fields, sequences, bloom_bits)?;
        let mut moved = Moved::default();
        let added = loop {
            match merge.next() {
                Ok(Some(piece)) => {
                    let added = add_piece(&mut writer, &mut encoder, &merge, piece, &mut moved);
                    if added.is_err() {
                        break added;
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if added.is_err() || writer.is_empty() {
            writer.abandon();
            return added.map(|()| None);
        }
        moved.decoded_bytes = merge.decoded_bytes();
        moved.retiered_bytes = if retiers { moved.decoded_bytes } else { 0 };
        let id = writer.finish(level)?;
        let synced = self.directory.sync_names(crate::fs::RUN_FOLDER);
        let run = synced.and_then(|()| Run::open_placed(&self.directory, id, placement));
        let run = run.inspect_err(|_| {
            // What is left over is removed when the store is opened again.
            let _ = self.directory.remove(&run::file_name(number));
        })?;
        Ok(Some((run, moved)))
    }

    /// What a run of `level` is used for, by what was seen.
    fn uses(&self, options: &StoreOptions, level: u32) -> Uses {
        let (rows, ratio) = (options.buffer_rows as f64, options.level_ratio as f64);
        workload::uses(self.workload.read(), rows, ratio, level)
    }

    /// Held by whoever merges runs or lets them go.
    fn merging(&self) -> MutexGuard<'_, ()> {
        self.merging.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// Merges runs while a level is full, and lets go what is too old or too much.
    ///
    /// # Errors
    /// What reading and writing say; the runs stay as they are then.
    pub fn compact_where_full(&self) -> Result<()> {
        let _merging = self.merging();
        loop {
            self.expire()?;
            let version = Arc::clone(&self.commit.lock().version);
            match compaction::pick(&version) {
                Some(task) => self.merge_runs(&version, task)?,
                None => return Ok(()),
            }
        }
    }

    /// Makes one run of all, or several where one would be more than an eighth of `keep_bytes`.
    ///
    /// # Errors
    /// As [`Store::compact_where_full`].
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let _merging = self.merging();
        let version = Arc::clone(&self.commit.lock().version);
        let mut tasks = compaction::everything(&version).into_iter();
        tasks.try_for_each(|task| self.merge_runs(&version, task))
    }

    /// Whether there are far more runs than merges leave, or far more rows in memory than a run
    /// takes, so that whoever writes has to wait.
    pub(crate) fn is_behind(&self) -> bool {
        let (version, overfull) = {
            let state = self.commit.lock();
            let version = Arc::clone(&state.version);
            let overfull = is_overfull(&state.memory, &version.catalog.options);
            (version, overfull)
        };
        if overfull {
            return true;
        }
        let newest = version.runs.iter().rev();
        let newest = newest.take_while(|run| run.id().level == 0).count();
        newest >= BEHIND * version.catalog.options.level_ratio
    }

    fn merge_runs(&self, version: &Version, task: Task) -> Result<()> {
        let number = {
            let mut upkeep = self.upkeep();
            if upkeep.manifest.is_none() {
                return Err(read_only());
            }
            upkeep.take_run_number()
        };
        let inputs: Vec<Arc<Run>> = version.runs[task.runs.clone()].to_vec();
        let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
            return Ok(());
        };
        let bytes: u64 = inputs.iter().map(|run| run.id().length).sum();
        let merged = if task.moves {
            let moved = inputs.iter().map(|run| {
                let level = task.level;
                let id = RunId {
                    level,
                    ..run.id().clone()
                };
                let placement = version.catalog.options.tier(task.level as usize);
                Run::open_placed(&self.directory, id, placement).map(Arc::new)
            });
            let moved = moved.collect::<Result<Vec<_>>>()?;
            self.counters.moved(bytes);
            moved
        } else {
            let sources = inputs.iter().cloned().map(Source::whole).collect();
            let place = Place {
                number,
                level: task.level,
                sequences: first.id().sequences.start..last.id().sequences.end,
                is_oldest: task.runs.start == 0,
            };
            let written = self.write_run(version, sources, place)?;
            if let Some((run, moved)) = &written {
                let (spliced, decoded) = (moved.spliced_bytes, moved.decoded_bytes);
                self.counters.compacted(run.id().length, spliced, decoded);
                self.counters.retiered(moved.retiered_bytes);
            }
            written.into_iter().map(|(run, _)| Arc::new(run)).collect()
        };
        self.replace_runs(&inputs, merged)
    }

    /// Removes runs that are too old or too much.
    fn expire(&self) -> Result<()> {
        let version = Arc::clone(&self.commit.lock().version);
        let kept = compaction::kept(&version);
        let is_kept = |run: &&Arc<Run>| kept.iter().any(|kept| Arc::ptr_eq(kept, run));
        let gone = version.runs.iter().filter(|run| !is_kept(run));
        let gone: Vec<Arc<Run>> = gone.cloned().collect();
        match gone.is_empty() {
            true => Ok(()),
            false => self.replace_runs(&gone, Vec::new()),
        }
    }

    /// Puts `by` where the first of `runs` stands and removes the files of `runs`.
    fn replace_runs(&self, runs: &[Arc<Run>], by: Vec<Arc<Run>>) -> Result<()> {
        let mut upkeep = self.upkeep();
        // Others may have come behind them since the version was looked at.
        let version = Arc::clone(&self.commit.lock().version);
        let replaced = |run: &Arc<Run>| runs.iter().any(|old| old.id().number == run.id().number);
        let start = version.runs.iter().position(replaced);
        let start = start.ok_or_else(|| Error::internal("the runs that merged are gone"))?;
        let left = version.runs.iter().filter(|run| !replaced(run));
        let mut left: Vec<Arc<Run>> = left.cloned().collect();
        left.splice(start..start, by);
        let mut catalog = version.catalog.clone();
        catalog.runs = left.iter().map(|run| run.id().clone()).collect();
        self.commit_catalog(&mut upkeep, &catalog)?;
        let kept: Vec<u64> = left.iter().map(|run| run.id().number).collect();
        let next = Version::whole(catalog, left);
        self.install(&mut self.commit.lock(), next);
        for run in runs {
            if !kept.contains(&run.id().number) {
                self.directory.remove(&run::file_name(run.id().number))?;
            }
        }
        Ok(())
    }
}

/// Runs of the first level, in levels, that whoever writes waits for.
const BEHIND: usize = 3;

/// How `sources` merge into a run of `level`.
fn merge_options(
    options: &StoreOptions,
    sources: &[Source],
    level: u32,
    is_oldest: bool,
) -> MergeOptions {
    let same = |source: &Source| match source {
        Source::Run(run, _) => options.suits(run.id().level as usize, level as usize),
        Source::Rows(_) => false,
    };
    MergeOptions {
        chunk_rows: options.chunk_rows,
        text_bytes: TEXT_BYTES,
        series_rows: options.series_rows,
        splice_rows: match sources.iter().all(same) {
            true => options.series_rows.min(options.chunk_rows) / 2,
            false => usize::MAX,
        },
        is_oldest,
        hashes_keys: false,
    }
}

/// Whether some of `sources` are encoded anew because they lie elsewhere.
fn retiers(options: &StoreOptions, sources: &[Source], placement: Placement) -> bool {
    let lies = |run: &Run| options.tier(run.id().level as usize);
    sources.iter().any(|source| match source {
        Source::Run(run, _) => lies(run).reencodes_for(placement),
        Source::Rows(_) => false,
    })
}

fn add_piece(
    writer: &mut RunWriter,
    encoder: &mut Encoder,
    merge: &Merge,
    piece: Piece,
    moved: &mut Moved,
) -> Result<()> {
    let key = merge.key();
    match piece {
        Piece::Spliced(run, index) => {
            let group = run.group(index);
            moved.spliced_bytes += group.bytes();
            if writer.wants_keys() {
                let (first, last) = &group.fences;
                match key.series(first) == key.series(last) {
                    true => writer.note_keys(std::iter::once(run::hash(key.series(first)))),
                    false => {
                        let rows = Sorted::already(key, key.rows_of(&run, index)?)?;
                        let keys = (0..rows.rows.num_rows()).map(|row| rows.key(row));
                        writer.note_keys(keys.map(|row| run::hash(key.series(row))));
                    }
                }
            }
            writer.splice(&run, index)
        }
        Piece::Rows(rows, hashes) => {
            writer.note_keys(hashes.into_iter());
            let last = rows.num_rows() - 1;
            let fences = (
                key.bytes(&rows.slice(0, 1))?,
                key.bytes(&rows.slice(last, 1))?,
            );
            writer.add(&encoder.encode(&rows)?, fences)
        }
    }
}
