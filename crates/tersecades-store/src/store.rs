//! A store: opened by one writer and any number of readers.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use tersecades_columnar::error::{Error, ErrorKind, Result};

use crate::catalog::{Catalog, new_identity};
use crate::commit::{Commit, State, passes};
use crate::counters::Counters;
use crate::feed::Arrived;
use crate::fs::{Directory, FileSystem, Lock, RealFileSystem};
use crate::log::{self, Segment};
use crate::maintenance::read_only;
use crate::manifest::{self, Manifest};
use crate::memory::Memory;
use crate::option::StoreOptions;
use crate::recovery::{Recovered, holds_rows, recover, remove_orphans, remove_segments};
use crate::repair;
use crate::schema::StoreSchema;
use crate::sync::{Mutex, MutexGuard};
use crate::version::{Snapshot, Version};
use crate::workload::Workload;
use crate::writer::Writer;

/// What is open for writing beside the log.
pub(crate) struct Upkeep {
    /// `None` for readers.
    pub(crate) manifest: Option<Manifest>,
    /// Number of the next run.
    pub(crate) next_run: u64,
    /// Number of the next log segment.
    pub(crate) next_segment: u64,
    /// Runs that the manifest may name, as it could not be written, until it is.
    pub(crate) left_over: Vec<u64>,
}

impl Upkeep {
    /// The number of a run that is to be written.
    pub(crate) fn take_run_number(&mut self) -> u64 {
        let number = self.next_run;
        self.next_run += 1;
        number
    }
}

/// History on disk.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tersecades_store::{Scan, Store, StoreOptions, StoreSchema};
/// let folder = tempfile::tempdir()?;
/// let ticks: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
/// let rows = RecordBatch::try_from_iter([("tick", ticks)])?;
/// let schema = StoreSchema::new(&rows.schema())?.time("tick")?;
/// let store = Store::create(folder.path(), schema, StoreOptions::default())?;
/// assert_eq!(store.writer()?.append(&rows)?, 1_000); // on disk when this returns
/// let late = Scan::default().between("tick", 900, 949);
/// let mut count = 0;
/// for found in store.snapshot().scan(&late)? {
///     count += found?.rows();
/// }
/// assert_eq!(count, 50);
/// store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    pub(crate) directory: Directory,
    pub(crate) commit: Commit,
    pub(crate) upkeep: Mutex<Upkeep>,
    pub(crate) counters: Counters,
    pub(crate) workload: Arc<Workload>,
    /// Held while runs are merged or go; locked before `upkeep`.
    pub(crate) merging: Mutex<()>,
    /// Who merges on a thread of its own, if somebody does.
    pub(crate) merger: Mutex<Option<SyncSender<()>>>,
    /// Held while the store is open for writing.
    lock: Option<Box<dyn Lock>>,
}

impl Store {
    /// Makes a store in the folder at `path`, and opens it for writing.
    ///
    /// # Errors
    /// `InvalidArgument` where there is one, or rows of one; what the system says.
    pub fn create(path: &Path, schema: StoreSchema, options: StoreOptions) -> Result<Self> {
        Self::create_in(Arc::new(RealFileSystem), path, schema, options)
    }

    /// As [`Store::create`], in another file system.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create_in(
        files: Arc<dyn FileSystem>,
        path: &Path,
        schema: StoreSchema,
        options: StoreOptions,
    ) -> Result<Self> {
        options.check()?;
        if options.keep_time.is_some_and(|age| age < 0) {
            return Err(Error::invalid("`keep_time` is an age, and not below 0"));
        }
        let expires = options.keep_time.is_some() || options.keep_bytes.is_some();
        if expires && schema.is_primary() {
            return Err(Error::invalid("rows with a primary key do not expire"));
        }
        if options.keep_time.is_some() && schema.time_column().is_none() {
            return Err(Error::invalid("`keep_time` needs a time column"));
        }
        let directory = Directory::new(files, path);
        directory.make()?;
        let lock = directory.lock()?;
        let taken = |message: &str| Error::invalid(message).file(path.display().to_string());
        if manifest::exists(&directory)? {
            let error = taken("there is a store already");
            return Err(error.hint("open it, or take another folder"));
        }
        if holds_rows(&directory)? {
            let error = taken("there are rows of a store that lacks the file `CURRENT`");
            return Err(error.hint("`store repair` brings it back; or take another folder"));
        }
        let catalog = Catalog::new(schema, options);
        // What a crash left of an earlier attempt.
        let nothing = Catalog {
            log_start: u64::MAX,
            ..catalog.clone()
        };
        manifest::remove_others(&directory, "")?;
        remove_orphans(&directory, &nothing, 0)?;
        let directory = directory.of_store(catalog.identity);
        begin_writing(&directory, (catalog.log_start, 0), (0, &catalog))?;
        Self::open_locked(directory, lock)
    }

    /// Opens the store in the folder at `path` for writing.
    ///
    /// # Errors
    /// `InvalidArgument` where there is none or another process writes to it; `Corrupt`, naming the
    /// file, where acknowledged rows cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_in(Arc::new(RealFileSystem), path)
    }

    /// As [`Store::open`], in another file system.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_in(files: Arc<dyn FileSystem>, path: &Path) -> Result<Self> {
        let directory = Directory::new(files, path);
        if !manifest::exists(&directory)? {
            // Says so without making a lock's file.
            manifest::read(&directory)?;
        }
        let lock = directory.lock()?;
        Self::open_locked(directory, lock)
    }

    /// Opens the store in the folder at `path` for writing, or makes it.
    ///
    /// # Errors
    /// `SchemaMismatch` where there is one with other columns, `InvalidArgument` where it lets rows
    /// go at another age; as [`Store::open`] and [`Store::create`].
    pub fn open_or_create(path: &Path, schema: StoreSchema, options: StoreOptions) -> Result<Self> {
        let directory = Directory::new(Arc::new(RealFileSystem), path);
        directory.make()?;
        if !manifest::exists(&directory)? {
            return Self::create(path, schema, options);
        }
        let store = Self::open(path)?;
        let named = |error: Error| error.file(path.display().to_string());
        let there = store.snapshot();
        if *there.schema() != schema {
            return Err(
                named(Error::schema("the store that is there has other columns"))
                    .hint("`store stats` shows them; take another folder, or export"),
            );
        }
        let ages = [there.options(), &options].map(|it| (it.keep_time, it.keep_bytes));
        match ages[0] == ages[1] {
            true => Ok(store),
            false => Err(named(Error::invalid(
                "the store that is there keeps rows for another time",
            ))
            .hint("that is set when a store is made; take another folder, or export")),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.directory.root()
    }

    fn open_locked(directory: Directory, lock: Box<dyn Lock>) -> Result<Self> {
        repair::require_done(&directory)?;
        let mut recovered = recover(&directory)?;
        recovered.version.check(|_| true)?;
        let end = recovered.memory.sequences().end;
        let runs = recovered.version.runs.iter();
        let catalog = &mut recovered.version.catalog;
        // What an earlier release wrote of them lacks their keys.
        catalog.runs = runs.map(|run| run.id().clone()).collect();
        if catalog.identity == 0 {
            catalog.identity = new_identity();
        }
        let directory = directory.of_store(catalog.identity);
        manifest::settle(&directory, recovered.manifest)?;
        // What is left over may be what fills the disk, so that it goes before anything is written.
        remove_orphans(&directory, &recovered.version.catalog, end)?;
        let log_start = recovered.version.catalog.log_start;
        match recovered.version.catalog.closed {
            Some(_) => log::sync(&directory, log_start)?,
            // Its last rows were not synced, or in vain, and others go on behind them.
            None => log::renew(&directory, log_start)?,
        }
        recovered.version.catalog.closed = None;
        let catalog = &mut recovered.version.catalog;
        let arrived = Arrived::new(recovered.memory.clone(), &catalog.schema);
        let mut marks = catalog.feeds.iter_mut();
        // A stream that a crash has cut off goes on, or has ended when others write.
        marks.try_for_each(|mark| mark.count(&arrived))?;
        let has_rows = recovered.memory.rows() > 0;
        if !has_rows {
            // What the segments before held is in runs.
            recovered.version.catalog.log_start = recovered.next_segment;
        }
        let segment = (recovered.next_segment, end);
        let manifest = (recovered.newest_manifest, &recovered.version.catalog);
        let (segment, manifest) =
            begin_writing(&directory, segment, manifest).map_err(|error| match error.kind() {
                ErrorKind::LimitExceeded => error.hint(NO_SPACE_TO_OPEN),
                _ => error,
            })?;
        recovered.next_segment += 1;
        if !has_rows {
            // What is left over goes with the next run, or when the store is opened again.
            let _ = remove_segments(&directory, &recovered.version.catalog);
        }
        Ok(Self::of_recovered(
            directory,
            recovered,
            Some((segment, manifest, lock)),
        ))
    }

    /// Opens the store in the folder at `path` for reading; it stays as it is when opened.
    ///
    /// Where a run is damaged, what needs none of its rows can still be read.
    ///
    /// # Errors
    /// As [`Store::open`], but for damaged runs; another process may write meanwhile.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_read_only_in(Arc::new(RealFileSystem), path)
    }

    /// As [`Store::open_read_only`], in another file system.
    ///
    /// # Errors
    /// As [`Store::open_read_only`].
    pub fn open_read_only_in(files: Arc<dyn FileSystem>, path: &Path) -> Result<Self> {
        let directory = Directory::new(files, path);
        let mut tries = READ_TRIES;
        loop {
            // The writer may remove files between our looks at the manifest and at them.
            match recover(&directory) {
                Ok(recovered) if recovered.version.check(|_| true).is_err() && tries > 0 => {
                    tries -= 1;
                }
                Err(_) if tries > 0 => tries -= 1,
                Err(error) => return Err(error),
                Ok(recovered) => {
                    let directory = directory.of_store(recovered.version.catalog.identity);
                    return Ok(Self::of_recovered(directory, recovered, None));
                }
            }
        }
    }

    fn of_recovered(
        directory: Directory,
        recovered: Recovered,
        writing: Option<(Segment, Manifest, Box<dyn Lock>)>,
    ) -> Self {
        let (segment, manifest, lock) = match writing {
            Some((segment, manifest, lock)) => (Some(segment), Some(manifest), Some(lock)),
            None => (None, None, None),
        };
        let version = Arc::new(recovered.version);
        let state = State::new(segment, recovered.memory, version);
        Store {
            directory,
            workload: Arc::clone(&state.workload),
            commit: Commit::new(state),
            upkeep: Mutex::new(Upkeep {
                manifest,
                next_run: recovered.next_run,
                next_segment: recovered.next_segment,
                left_over: Vec::new(),
            }),
            counters: Counters::default(),
            merging: Mutex::default(),
            merger: Mutex::default(),
            lock,
        }
    }

    /// Whether it was opened for reading.
    pub(crate) fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    pub(crate) fn upkeep(&self) -> MutexGuard<'_, Upkeep> {
        self.upkeep.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// The store as it is, for reading.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.commit.lock())
    }

    /// The columns and what they are for.
    pub fn schema(&self) -> StoreSchema {
        self.commit.lock().version.catalog.schema.clone()
    }

    /// Someone who appends rows; threads take one each.
    ///
    /// # Errors
    /// `InvalidArgument` for a store that was opened for reading.
    pub fn writer(&self) -> Result<Writer<'_>> {
        match self.is_read_only() {
            true => Err(read_only()),
            false => Writer::new(self),
        }
    }

    /// Whether nothing is written any more because of a failure, and which.
    pub fn failure(&self) -> Option<Error> {
        self.commit.lock().failed.clone()
    }

    /// Goes on after a failure that passes: the manifest says what holds, whatever a write that
    /// failed has left in it, and a new segment of the log begins with the first row that was not
    /// acknowledged.
    ///
    /// # Errors
    /// The failure where it does not pass, or has not yet.
    pub(crate) fn resume(&self) -> Result<()> {
        let mut upkeep = self.upkeep();
        if !has_passed(&self.commit.lock_idle())? {
            return Ok(());
        }
        self.settle_manifest(&mut upkeep)?;
        let mut state = self.commit.lock_idle();
        if !has_passed(&state)? {
            return Ok(());
        }
        self.sync_unsafe(&mut state)?;
        let segment = self.begin_segment(&mut upkeep, state.end())?;
        state.segment = Some(segment);
        state.failed = None;
        Ok(())
    }

    /// Begins the next segment of the log with row `first`.
    ///
    /// # Errors
    /// What writing says.
    pub(crate) fn begin_segment(&self, upkeep: &mut Upkeep, first: u64) -> Result<Segment> {
        let number = upkeep.next_segment;
        upkeep.next_segment += 1;
        Segment::create(&self.directory, number, first)
    }

    /// Writes the rows in memory as a run where there are enough, so that whoever opens the store
    /// next need not read them from the log; merges runs where levels are full, which can take
    /// long; and notes in the manifest that all is well, so that rows that go missing later are
    /// missed.
    ///
    /// # Errors
    /// The failure of a store that has failed; what writing says. Where a run could not be written
    /// or merged, but for a full disk, that is said in the end: the store is closed then, and all
    /// rows are stored.
    pub fn close(self) -> Result<()> {
        // A disk that was full may have space again.
        let _ = self.resume();
        let settled = self.settle();
        self.note_closed()?;
        let upkeep = self.commit.lock().upkeep.take();
        let settled = settled.and(upkeep.map_or(Ok(()), Err));
        settled.map_err(|error| error.hint("every row is stored, and the store is closed"))
    }

    fn note_closed(&self) -> Result<()> {
        let mut upkeep = self.upkeep();
        let mut state = self.commit.lock_idle();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let mut catalog = state.version.catalog.clone();
        catalog.closed = Some(state.end());
        let Some(manifest) = &mut upkeep.manifest else {
            return Ok(());
        };
        // What the manifest says is there has to last.
        self.sync_unsafe(&mut state)?;
        manifest.append(&catalog)
    }

    /// Makes `catalog` and `runs` the state of the store.
    pub(crate) fn install(&self, state: &mut State, version: Version) {
        state.version = Arc::new(version);
    }
}

/// Whether there is a failure, which may have passed.
///
/// # Errors
/// The failure where it does not pass.
fn has_passed(state: &State) -> Result<bool> {
    match &state.failed {
        Some(error) if !passes(error) => Err(error.clone()),
        failed => Ok(failed.is_some()),
    }
}

const NO_SPACE_TO_OPEN: &str =
    "it can be read, and is opened for writing as soon as there is space for a few KiB";

/// Begins segment `number` of the log with row `first`, and a manifest after number `last` with
/// `catalog`; where one of them fails, nothing is left of both unless the manifest is in use.
fn begin_writing(
    directory: &Directory,
    (number, first): (u64, u64),
    (last, catalog): (u64, &Catalog),
) -> Result<(Segment, Manifest)> {
    let segment = Segment::create(directory, number, first)?;
    match Manifest::begin(directory, last, catalog) {
        Ok(manifest) => Ok((segment, manifest)),
        Err(error) => {
            // A manifest that is in use may begin with this segment, though it may not last.
            if manifest::is_unused(directory, last + 1) {
                segment.abandon();
            }
            Err(error)
        }
    }
}

/// Times that a reader looks again for files that a writer has just removed.
pub(crate) const READ_TRIES: usize = 5;

/// An empty memory that goes on where `memory` ends.
pub(crate) fn following(memory: &Memory) -> Memory {
    Memory::starting_at(memory.sequences().end)
}
