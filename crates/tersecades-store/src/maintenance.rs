//! What a store does beside taking rows in: runs written from memory, runs merged, columns added.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Tier;

use crate::catalog::Catalog;
use crate::commit::{is_full, passes};
use crate::compaction::{self, Task};
use crate::counters::Activity;
use crate::encode::Encoder;
use crate::manifest::Manifest;
use crate::memory::{Memory, decode_all};
use crate::merge::{Merge, MergeOptions, Piece, Source};
use crate::recovery::remove_segments;
use crate::run::{self, Run, RunId, RunWriter};
use crate::sort_key::{SortKey, sort};
use crate::store::{Store, Upkeep, following};
use crate::version::Version;

/// What a merge did.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    spliced_bytes: u64,
    decoded_bytes: u64,
}

impl Store {
    /// Writes a run when memory is full, and merges runs where levels are.
    ///
    /// # Errors
    /// What writing says, except that a full disk leaves everything as it is: rows are safe in the
    /// log.
    pub(crate) fn maintain(&self) -> Result<()> {
        let full = {
            let state = self.commit.lock();
            is_full(&state.memory, &state.version.catalog.options)
        };
        if !full {
            return Ok(());
        }
        let done = self
            .flush_where(true)
            .and_then(|()| self.compact_where_full());
        match done {
            Err(error) if passes(&error) => Ok(()),
            done => done,
        }
    }

    /// Writes the rows in memory as a run.
    ///
    /// # Errors
    /// What writing says; the rows stay in the log then.
    pub fn flush(&self) -> Result<()> {
        self.flush_where(false)
    }

    /// As [`Store::flush`]; `only_full` leaves memory alone that another thread has just emptied.
    fn flush_where(&self, only_full: bool) -> Result<()> {
        let mut upkeep = self.upkeep();
        if upkeep.manifest.is_none() {
            return Err(read_only());
        }
        let Some((frozen, log_start)) = self.freeze(&mut upkeep, only_full)? else {
            return Ok(());
        };
        let version = Arc::clone(&self.commit.lock().version);
        let fields = version.catalog.schema.stored();
        let rows = decode_all(frozen.batches(), &fields)?;
        let key = SortKey::new(&version.catalog.schema)?;
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let sorted = sort(&key, &first.schema(), &rows)?;
        let mut catalog = version.catalog.clone();
        self.raise_floor(&mut catalog, &sorted);
        let is_oldest = version.runs.is_empty();
        let sources = vec![Source::Rows(sorted)];
        let version = Version {
            catalog,
            runs: version.runs.clone(),
        };
        let sequences = frozen.sequences();
        let written = self.write_run(&mut upkeep, &version, sources, (0, sequences, is_oldest))?;
        let mut next = version.catalog.clone();
        next.log_start = log_start;
        next.flushed = frozen.sequences().end;
        let mut runs = version.runs;
        if let Some((run, _)) = written {
            self.counters.flushed(run.id().length);
            next.runs.push(run.id().clone());
            runs.push(Arc::new(run));
        }
        self.commit_catalog(&mut upkeep, &next)?;
        let mut state = self.commit.lock();
        state.frozen = None;
        self.install(
            &mut state,
            Version {
                catalog: next.clone(),
                runs,
            },
        );
        drop(state);
        remove_segments(&self.directory, &next)
    }

    /// Puts the rows in memory aside and begins a new segment; `None` where there are none.
    ///
    /// A failed attempt has put rows aside already: they come first.
    fn freeze(&self, upkeep: &mut Upkeep, only_full: bool) -> Result<Option<(Arc<Memory>, u64)>> {
        let mut state = self.commit.lock_idle();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let rows = state.memory.rows() + state.frozen.as_ref().map_or(0, |frozen| frozen.rows());
        let full = is_full(&state.memory, &state.version.catalog.options);
        if rows == 0 || (only_full && !full) {
            return Ok(None);
        }
        let segment = self.begin_segment(upkeep, state.end())?;
        let log_start = segment.number();
        state.segment = Some(segment);
        let next = following(&state.memory);
        let active = std::mem::replace(&mut state.memory, next);
        let frozen = match state.frozen.take() {
            Some(earlier) => earlier.followed_by(&active),
            None => active,
        };
        let frozen = Arc::new(frozen);
        state.frozen = Some(Arc::clone(&frozen));
        Ok(Some((frozen, log_start)))
    }

    /// Lets rows go that are older than `keep_time` against the newest.
    fn raise_floor(&self, catalog: &mut Catalog, rows: &RecordBatch) {
        let (Some(keep), Some(column)) = (catalog.options.keep_time, catalog.schema.time_column())
        else {
            return;
        };
        let name = catalog.schema.fields().field(column).name();
        let newest = rows.column_by_name(name).and_then(compaction::newest);
        if let Some(newest) = newest {
            let floor = newest.saturating_sub(keep);
            catalog.floor = Some(catalog.floor.map_or(floor, |old| old.max(floor)));
        }
    }

    /// Writes what `sources` merge to as a run; `None` where nothing is left of it.
    fn write_run(
        &self,
        upkeep: &mut Upkeep,
        version: &Version,
        sources: Vec<Source>,
        (level, sequences, is_oldest): (u32, std::ops::Range<u64>, bool),
    ) -> Result<Option<(Run, Moved)>> {
        let (schema, options) = (&version.catalog.schema, &version.catalog.options);
        let fields = schema.stored();
        let policy = options.codec(level as usize);
        let same = |source: &Source| match source {
            Source::Run(run, _) => options.codec(run.id().level as usize) == policy,
            Source::Rows(_) => false,
        };
        let merge_options = MergeOptions {
            chunk_rows: options.chunk_rows,
            series_rows: options.series_rows,
            splice_rows: match sources.iter().all(same) {
                true => options.series_rows.min(options.chunk_rows) / 2,
                false => usize::MAX,
            },
            is_oldest,
        };
        let floor = version.floor();
        let mut merge = Merge::new(schema, Arc::clone(&fields), sources, floor, merge_options)?;
        let number = upkeep.next_run;
        upkeep.next_run += 1;
        let bloom_bits = match schema.key_columns().is_empty() {
            true => 0,
            false => options.bloom_bits,
        };
        let mut encoder = Encoder::new(&fields, policy, Tier::Cold)?;
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
        let id = writer.finish(level)?;
        self.directory.sync_names(crate::fs::RUN_FOLDER)?;
        Ok(Some((Run::open(&self.directory, id)?, moved)))
    }

    /// Makes `catalog` last; where that fails, nothing is acknowledged any more.
    pub(crate) fn commit_catalog(&self, upkeep: &mut Upkeep, catalog: &Catalog) -> Result<()> {
        let manifest: &mut Manifest = upkeep.manifest.as_mut().ok_or_else(read_only)?;
        manifest.append(catalog).inspect_err(|error| {
            self.commit
                .lock()
                .failed
                .get_or_insert_with(|| error.clone());
        })
    }

    /// Merges runs while a level is full, and lets go what is too old or too much.
    ///
    /// # Errors
    /// What reading and writing say; the runs stay as they are then.
    pub fn compact_where_full(&self) -> Result<()> {
        let mut upkeep = self.upkeep();
        loop {
            self.expire(&mut upkeep)?;
            let version = Arc::clone(&self.commit.lock().version);
            match compaction::pick(&version) {
                Some(task) => self.merge_runs(&mut upkeep, &version, task)?,
                None => return Ok(()),
            }
        }
    }

    /// Makes one run of all.
    ///
    /// # Errors
    /// As [`Store::compact_where_full`].
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let mut upkeep = self.upkeep();
        let version = Arc::clone(&self.commit.lock().version);
        match compaction::everything(&version) {
            Some(task) => self.merge_runs(&mut upkeep, &version, task),
            None => Ok(()),
        }
    }

    fn merge_runs(&self, upkeep: &mut Upkeep, version: &Version, task: Task) -> Result<()> {
        if upkeep.manifest.is_none() {
            return Err(read_only());
        }
        let inputs: Vec<Arc<Run>> = version.runs[task.runs.clone()].to_vec();
        let bytes: u64 = inputs.iter().map(|run| run.id().length).sum();
        let mut runs = version.runs.clone();
        let merged = if task.moves {
            let moved = inputs.iter().map(|run| {
                let level = task.level;
                let id = RunId {
                    level,
                    ..run.id().clone()
                };
                Run::open(&self.directory, id).map(Arc::new)
            });
            let moved = moved.collect::<Result<Vec<_>>>()?;
            self.counters.moved(bytes);
            moved
        } else {
            let sources = inputs.iter().cloned().map(whole).collect();
            let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
                return Ok(());
            };
            let sequences = first.id().sequences.start..last.id().sequences.end;
            let is_oldest = task.runs.start == 0;
            let written =
                self.write_run(upkeep, version, sources, (task.level, sequences, is_oldest))?;
            if let Some((run, moved)) = &written {
                let (spliced, decoded) = (moved.spliced_bytes, moved.decoded_bytes);
                self.counters.compacted(run.id().length, spliced, decoded);
            }
            written.into_iter().map(|(run, _)| Arc::new(run)).collect()
        };
        runs.splice(task.runs.clone(), merged);
        self.replace_runs(upkeep, version, runs)
    }

    /// Removes runs that are too old or too much.
    fn expire(&self, upkeep: &mut Upkeep) -> Result<()> {
        let version = Arc::clone(&self.commit.lock().version);
        let runs = compaction::kept(&version);
        match runs.len() == version.runs.len() {
            true => Ok(()),
            false => self.replace_runs(upkeep, &version, runs),
        }
    }

    /// Makes `runs` the runs of the store, and removes the files of those that were.
    fn replace_runs(
        &self,
        upkeep: &mut Upkeep,
        version: &Version,
        runs: Vec<Arc<Run>>,
    ) -> Result<()> {
        let mut catalog = version.catalog.clone();
        catalog.runs = runs.iter().map(|run| run.id().clone()).collect();
        self.commit_catalog(upkeep, &catalog)?;
        let kept: Vec<u64> = runs.iter().map(|run| run.id().number).collect();
        self.install(&mut self.commit.lock(), Version { catalog, runs });
        for run in &version.runs {
            if !kept.contains(&run.id().number) {
                self.directory.remove(&run::file_name(run.id().number))?;
            }
        }
        Ok(())
    }

    /// Adds a column, which is null in rows that are there already.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is taken; what writing says.
    pub fn add_column(&self, name: &str, data_type: &DataType) -> Result<()> {
        let mut upkeep = self.upkeep();
        let version = Arc::clone(&self.commit.lock().version);
        let mut catalog = version.catalog.clone();
        catalog.schema = catalog.schema.with_column(name, data_type)?;
        self.commit_catalog(&mut upkeep, &catalog)?;
        let runs = version.runs.clone();
        self.install(&mut self.commit.lock(), Version { catalog, runs });
        Ok(())
    }

    /// What was done since the store was opened.
    pub fn activity(&self) -> Activity {
        self.counters.read()
    }
}

fn read_only() -> Error {
    Error::invalid("the store was opened for reading")
}

/// All groups of a run.
fn whole(run: Arc<Run>) -> Source {
    let groups = 0..run.groups().len();
    Source::Run(run, groups)
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
                    false => note_keys(writer, key, &key.rows_of(&run, index)?)?,
                }
            }
            writer.splice(&run, index)
        }
        Piece::Rows(rows) => {
            if writer.wants_keys() {
                note_keys(writer, key, &rows)?;
            }
            let last = rows.num_rows() - 1;
            let fences = (
                key.bytes(&rows.slice(0, 1))?,
                key.bytes(&rows.slice(last, 1))?,
            );
            writer.add(&encoder.encode(&rows)?, fences)
        }
    }
}

fn note_keys(writer: &mut RunWriter, key: &SortKey, rows: &RecordBatch) -> Result<()> {
    if let Some(keys) = key.of(rows)? {
        let hash = |row: arrow_row::Row<'_>| run::hash(key.series(row.data()));
        writer.note_keys(keys.iter().map(hash));
    }
    Ok(())
}
