//! What a store does beside taking rows in: runs written from memory, columns added.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::error::{Error, Result};

use crate::catalog::Catalog;
use crate::commit::{self, State, is_full, passes};
use crate::compaction;
use crate::counters::Activity;
use crate::feed::Arrived;
use crate::log;
use crate::manifest::Manifest;
use crate::memory::{Memory, decode_all};
use crate::merging::Place;
use crate::option::Durability;
use crate::recovery::remove_segments;
use crate::run;
use crate::sort_key::SortKey;
use crate::source::{SORTED_BYTES, Source};
use crate::store::{Store, Upkeep, following};
use crate::version::Version;

impl Store {
    /// Writes a run when memory is full, and merges runs where levels are, after an append of
    /// `rows` rows.
    ///
    /// # Errors
    /// What writing says, except that a full disk leaves everything as it is: rows are safe in the
    /// log.
    pub(crate) fn maintain(&self, rows: usize) -> Result<()> {
        let full = {
            let state = self.commit.lock();
            is_full(&state.memory, &state.version.catalog.options)
        };
        if !full {
            return Ok(());
        }
        let wait = self.pace(rows);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        unless_it_passes(self.tidy_or_ask())
    }

    /// How long an append of `rows` rows waits for whoever writes and merges runs; not at all where
    /// nobody else does.
    fn pace(&self, rows: usize) -> Duration {
        if !self.merges_beside() && self.upkeep.try_lock().is_ok() {
            return Duration::ZERO;
        }
        let state = self.commit.lock();
        commit::pace(&state.memory, &state.version.catalog.options, rows)
    }

    /// Writes the rows in memory as a run where they are worth one, and merges runs where levels
    /// are full.
    ///
    /// # Errors
    /// As [`Store::maintain`].
    pub(crate) fn settle(&self) -> Result<()> {
        let worth = {
            let state = self.commit.lock();
            state.failed.is_none() && state.is_worth_a_run()
        };
        if self.is_read_only() || !worth {
            return Ok(());
        }
        unless_it_passes(self.flush().and_then(|()| self.compact_where_full()))
    }

    /// Writes the rows in memory as a run.
    ///
    /// # Errors
    /// What writing says; the rows stay in the log then.
    pub fn flush(&self) -> Result<()> {
        self.flush_where(false)
    }

    /// As [`Store::flush`]; `only_full` leaves memory alone that another thread has just emptied.
    pub(crate) fn flush_where(&self, only_full: bool) -> Result<()> {
        self.resume()?;
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
        let sources = Source::sorted(&key, &rows, SORTED_BYTES)?;
        let mut catalog = version.catalog.clone();
        self.raise_floor(&mut catalog, &rows);
        drop(rows);
        let is_oldest = version.runs.is_empty();
        let number = upkeep.take_run_number();
        let version = Version::whole(catalog, version.runs.clone());
        let sequences = frozen.sequences();
        let place = Place {
            number,
            level: 0,
            sequences,
            is_oldest,
        };
        let written = self.write_run(&version, sources, place)?;
        let mut next = version.catalog.clone();
        next.log_start = log_start;
        next.flushed = frozen.sequences().end;
        let arrived = Arrived::new(Memory::clone(&frozen), &next.schema);
        let mut marks = next.feeds.iter_mut();
        marks.try_for_each(|mark| mark.let_go(&arrived))?;
        let mut runs = version.runs;
        if let Some((run, _)) = written {
            self.counters.flushed(run.id().length);
            next.runs.push(run.id().clone());
            runs.push(Arc::new(run));
        }
        self.commit_catalog(&mut upkeep, &next)?;
        let mut state = self.commit.lock();
        state.frozen = None;
        self.install(&mut state, Version::whole(next.clone(), runs));
        drop(state);
        remove_segments(&self.directory, &next)
    }

    /// Makes rows last that were acknowledged before they did: what is written next counts on them.
    ///
    /// # Errors
    /// What syncing says; nothing is acknowledged any more then.
    pub(crate) fn sync_unsafe(&self, state: &mut State) -> Result<()> {
        let synced = self.sync_log(&state.version.catalog);
        synced.inspect_err(|error| state.failed = Some(error.clone()))
    }

    /// The same while others write, whose rows may be left out.
    fn sync_most(&self) -> Result<()> {
        let version = Arc::clone(&self.commit.lock().version);
        let synced = self.sync_log(&version.catalog);
        synced.inspect_err(|error| self.commit.lock().failed = Some(error.clone()))
    }

    fn sync_log(&self, catalog: &Catalog) -> Result<()> {
        match catalog.options.durability {
            Durability::Os => log::sync(&self.directory, catalog.log_start),
            Durability::Durable | Durability::Group(_) => Ok(()),
        }
    }

    /// Puts the rows in memory aside and begins a new segment; `None` where there are none.
    ///
    /// A failed attempt has put rows aside already: they come first.
    fn freeze(&self, upkeep: &mut Upkeep, only_full: bool) -> Result<Option<(Arc<Memory>, u64)>> {
        self.sync_most()?;
        let mut state = self.commit.lock_idle();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let rows = state.memory.rows() + state.frozen.as_ref().map_or(0, |frozen| frozen.rows());
        let full = is_full(&state.memory, &state.version.catalog.options);
        if rows == 0 || (only_full && !full) {
            return Ok(None);
        }
        self.sync_unsafe(&mut state)?;
        let begun = self.begin_segment(upkeep, state.end());
        // The segment may be there all the same: nothing goes on in the one before it.
        let segment = begun.inspect_err(|error| state.failed = Some(error.clone()))?;
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
    fn raise_floor(&self, catalog: &mut Catalog, rows: &[RecordBatch]) {
        let (Some(keep), Some(column)) = (catalog.options.keep_time, catalog.schema.time_column())
        else {
            return;
        };
        let name = catalog.schema.fields().field(column).name();
        let times = rows.iter().filter_map(|rows| rows.column_by_name(name));
        catalog.raise_floor(times.filter_map(compaction::newest).max(), keep);
    }

    /// Makes `catalog` last; where that fails, nothing is acknowledged any more.
    pub(crate) fn commit_catalog(&self, upkeep: &mut Upkeep, catalog: &Catalog) -> Result<()> {
        let manifest: &mut Manifest = upkeep.manifest.as_mut().ok_or_else(read_only)?;
        if let Err(error) = manifest.append(catalog) {
            let mut state = self.commit.lock();
            let known = &state.version.catalog.runs;
            let is_new = |number: &u64| known.iter().all(|run| run.number != *number);
            let numbers = catalog.runs.iter().map(|run| run.number);
            let new = numbers.filter(is_new).collect::<Vec<_>>();
            upkeep.left_over.extend(new);
            state.failed.get_or_insert_with(|| error.clone());
            return Err(error);
        }
        for number in upkeep.left_over.drain(..) {
            // What is left over is removed when the store is opened again.
            let _ = self.directory.remove(&run::file_name(number));
        }
        Ok(())
    }

    /// Makes the catalogue last that holds, where the manifest may say another, which could not be
    /// written whole: its marks would count rows that others write.
    pub(crate) fn settle_manifest(&self, upkeep: &mut Upkeep) -> Result<()> {
        let manifest = upkeep.manifest.as_ref();
        if !manifest.is_some_and(Manifest::is_in_doubt) {
            return Ok(());
        }
        let version = Arc::clone(&self.commit.lock().version);
        self.commit_catalog(upkeep, &version.catalog)
    }

    /// Adds a column, which is null in rows that are there already.
    ///
    /// # Errors
    /// As [`Store::add_columns`].
    pub fn add_column(&self, name: &str, data_type: &DataType) -> Result<()> {
        let field = Field::new(name, data_type.clone(), true);
        self.add_columns(&Schema::new(vec![field]))
    }

    /// Adds columns, all or none of them, which are null in rows that are there already.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is taken, or a column that may not be null; what writing
    /// says.
    pub fn add_columns(&self, columns: &Schema) -> Result<()> {
        let mut upkeep = self.upkeep();
        let version = Arc::clone(&self.commit.lock().version);
        let mut catalog = version.catalog.clone();
        for field in columns.fields() {
            if !field.is_nullable() {
                let message = "a new column may be null: rows that are there have none";
                let error = Error::invalid(message).column(field.name().as_str());
                return Err(error.hint("leave NOT NULL out"));
            }
            catalog.schema = catalog
                .schema
                .with_column(field.name(), field.data_type())?;
        }
        self.commit_catalog(&mut upkeep, &catalog)?;
        let runs = version.runs.clone();
        self.install(&mut self.commit.lock(), Version::whole(catalog, runs));
        Ok(())
    }

    /// What was done since the store was opened.
    pub fn activity(&self) -> Activity {
        self.counters.read(&self.workload)
    }
}

/// What was `done`, where a full disk is none of its errors: everything stays as it is then.
fn unless_it_passes(done: Result<()>) -> Result<()> {
    match done {
        Err(error) if passes(&error) => Ok(()),
        done => done,
    }
}

pub(crate) fn read_only() -> Error {
    Error::invalid("the store was opened for reading")
}
