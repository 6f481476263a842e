//! `KEEP 7 DAYS INTO 'folder'`: a stream that is written to a store as it flows.

use std::fs;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tersecades_columnar::error::{Error, ErrorKind, Result};
use tersecades_engine::runtime::Feeding;
use tersecades_engine::source::live::LiveTable;
use tersecades_engine::stream::Stream;
use tersecades_store::{Store, StoreOptions, StoreSchema};

use crate::answer::Answer;
use crate::catalog::{Relation, TableTime, logical_schema};
use crate::session::Session;

/// Where a stream is kept, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeepInto {
    /// Folder of the store.
    pub(crate) folder: String,
    /// Age at which rows go; `None` for never.
    pub(crate) age: Option<Duration>,
}

/// A stream that is being written.
pub(crate) struct KeptStream {
    name: String,
    store: Weak<Store>,
    /// Held by what reads the rows, where somebody does.
    readers: Weak<()>,
    /// Whether the name was given to other rows.
    is_replaced: bool,
    feeding: Feeding,
}

impl KeptStream {
    fn writes_to(&self, store: &Arc<Store>) -> bool {
        std::ptr::eq(self.store.as_ptr(), Arc::as_ptr(store))
    }
}

/// The place of a store before it is opened.
struct Place<'p> {
    folder: &'p Path,
    /// The folder and those around it that are not there, from the inside.
    missing: Vec<&'p Path>,
    is_empty: bool,
}

impl<'p> Place<'p> {
    fn of(folder: &'p Path) -> Self {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
        let has_nothing = || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
        Place {
            is_empty: !missing.is_empty() || has_nothing(),
            folder,
            missing,
        }
    }

    /// Makes it what it was if nothing was there, as far as that goes: why a store has to go says
    /// more than why it cannot. Folders in which others have put something meanwhile stay.
    fn restore(&self) {
        if !self.is_empty {
            return;
        }
        for entry in fs::read_dir(self.folder).into_iter().flatten().flatten() {
            let _ = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
        }
        for folder in &self.missing {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// How long a stream that nobody reads any more is waited for.
const STOP_WAIT: Duration = Duration::from_secs(1);

impl Session {
    /// Begins to write `stream` to a store; readers of `name` get what is there, then what comes. A
    /// store that is made for a stream which is then refused goes again.
    ///
    /// # Errors
    /// What opening the store and starting the stream say.
    pub(crate) fn keep_in_store(
        &mut self,
        name: &str,
        stream: Stream,
        into: &KeepInto,
        time: TableTime,
    ) -> Result<Answer> {
        let schema = StoreSchema::new(&logical_schema(stream.schema()?.as_ref()))?;
        let schema = schema.time(&time.column)?;
        let keep_time = into.age.map(|age| schema.time_ticks(age)).transpose()?;
        let options = StoreOptions {
            keep_time,
            ..StoreOptions::default()
        };
        let place = Place::of(Path::new(&into.folder));
        let store = self.open_store(Path::new(&into.folder), schema, options)?;
        let begun = self.begin_to_write(name, stream, &store, time);
        // As long as the store is open here nobody else writes to it.
        if begun.is_err() && store.snapshot().sequence() == 0 {
            place.restore();
        }
        let rows = begun?;
        let folder = &into.folder;
        Ok(Answer::Done(format!(
            "stream {name}: {rows} rows written to {folder} so far, and all that come"
        )))
    }

    /// Gives the number of the rows that are there already.
    fn begin_to_write(
        &mut self,
        name: &str,
        stream: Stream,
        store: &Arc<Store>,
        time: TableTime,
    ) -> Result<u64> {
        let table = LiveTable::new(store)?;
        let feed = self.settings.apply(stream).feed(name, store)?;
        let readers = table.readers();
        let relation = Relation::of_table(Arc::new(table), Some(time))?;
        // One stream at a time writes to a store.
        drop(self.take_kept(|kept| kept.name == name && kept.writes_to(store)));
        let rows = store.snapshot().sequence();
        let feeding = feed.start()?;
        self.give_name(name, relation);
        self.kept().push(KeptStream {
            name: name.to_owned(),
            store: Arc::downgrade(store),
            readers,
            is_replaced: false,
            feeding,
        });
        Ok(rows)
    }

    /// Gives `relation` the name `name`; the stream that was kept under it writes no more once
    /// nobody reads it.
    pub(crate) fn give_name(&mut self, name: &str, relation: Relation) {
        self.catalog.insert(name, relation);
        let mut kept = self.kept();
        let replaced = kept.iter_mut().filter(|kept| kept.name == name);
        replaced.for_each(|kept| kept.is_replaced = true);
        drop(kept);
        self.stop_unread();
    }

    /// Waits until the streams that are kept in stores have ended and all their rows are there,
    /// also those of which another fails.
    ///
    /// # Errors
    /// What reading and writing them says, of several the first; what the session's interrupt
    /// says, then they stop.
    pub fn finish(&mut self) -> Result<()> {
        self.stop_unread();
        let mut finished = Ok(());
        for mut kept in self.take_kept(|_| true) {
            match kept.feeding.finish_unless(&self.settings.interrupt) {
                Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
                ended => finished = finished.and(ended.map(|_| ())),
            }
        }
        finished
    }

    /// Stops the streams whose names were given to other rows, but those that are read elsewhere.
    pub(crate) fn stop_unread(&self) {
        let is_unread =
            |kept: &mut KeptStream| kept.is_replaced && kept.readers.strong_count() == 0;
        for kept in self.take_kept(is_unread) {
            // A pipe without rows stops by itself when some come.
            let _ = kept.feeding.stop_within(STOP_WAIT);
        }
    }

    /// Takes out the streams that `is_meant` says, which stop when they are dropped.
    fn take_kept(&self, is_meant: impl FnMut(&mut KeptStream) -> bool) -> Vec<KeptStream> {
        self.kept().extract_if(.., is_meant).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<KeptStream>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_store(
        &self,
        folder: &Path,
        schema: StoreSchema,
        options: StoreOptions,
    ) -> Result<Arc<Store>> {
        let same = |store: &Arc<Store>| {
            let canonical = |path: &Path| path.canonicalize().ok();
            canonical(store.path()).is_some_and(|path| canonical(folder) == Some(path))
        };
        let kept = self.kept();
        let open = kept.iter().filter_map(|kept| kept.store.upgrade());
        match open.into_iter().find(same) {
            Some(store) if store.schema() != schema => {
                Err(Error::invalid("a stream with other columns is kept there")
                    .hint("give each stream a folder of its own"))
            }
            Some(store) if store.snapshot().options().keep_time != options.keep_time => Err(
                Error::invalid("the store that is there keeps rows for another time")
                    .file(folder.display().to_string())
                    .hint("that is set when a store is made; take another folder, or export"),
            ),
            Some(store) => Ok(store),
            None => Ok(Arc::new(Store::open_or_create(folder, schema, options)?)),
        }
    }
}
