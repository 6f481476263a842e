//! `KEEP 7 DAYS INTO 'folder'`: a stream that is written to a store as it flows.

use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tersecades_columnar::error::{Error, Result};
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
    feeding: Feeding,
}

impl Session {
    /// Begins to write `stream` to a store; readers of `name` get what is there, then what comes.
    ///
    /// # Errors
    /// What opening the store says.
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
        let store = self.open_store(Path::new(&into.folder), schema, options)?;
        // A stream of that name writes no more.
        self.kept().retain(|kept| kept.name != name);
        let rows = store.snapshot().sequence();
        let stream = self.settings.apply(stream);
        let feed = stream.feed(name, &store)?;
        let relation = Relation::of_table(Arc::new(LiveTable::new(&store)?), Some(time))?;
        self.kept().push(KeptStream {
            name: name.to_owned(),
            store: Arc::downgrade(&store),
            feeding: feed.start()?,
        });
        self.catalog.insert(name, relation);
        let folder = &into.folder;
        Ok(Answer::Done(format!(
            "stream {name}: {rows} rows written to {folder} so far, and all that come"
        )))
    }

    /// Waits until the streams that are kept in stores have ended and all their rows are there.
    ///
    /// # Errors
    /// What reading and writing them says; what the session's interrupt says, then they stop.
    pub fn finish(&mut self) -> Result<()> {
        let kept = std::mem::take(&mut *self.kept());
        for mut kept in kept {
            kept.feeding.finish_unless(&self.settings.interrupt)?;
        }
        Ok(())
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
            Some(store) if store.schema() == schema => Ok(store),
            Some(_) => Err(Error::invalid("a stream with other columns is kept there")
                .hint("give each stream a folder of its own")),
            None => Ok(Arc::new(Store::open_or_create(folder, schema, options)?)),
        }
    }
}
