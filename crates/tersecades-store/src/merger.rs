//! Runs are written and merged on a thread of their own, beside whoever writes and reads.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use tersecades_columnar::error::{Error, Result};

use crate::commit::passes;
use crate::store::Store;
use crate::sync::MutexGuard;

/// Runs are written from memory and merged on a thread while this is there.
pub struct Merger {
    store: Arc<Store>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Store {
    /// Writes runs from memory and merges them on a thread of its own until what is given back is
    /// dropped; writers wait for it only when it is far behind.
    ///
    /// # Errors
    /// `InvalidArgument` where there is such a thread already; what the system says.
    pub fn merge_beside(self: &Arc<Self>) -> Result<Merger> {
        let (ask, asked) = sync_channel(1);
        let mut merger = self.lock_merger();
        if merger.is_some() {
            return Err(Error::invalid("runs are merged on a thread already"));
        }
        let store = Arc::clone(self);
        let thread = std::thread::Builder::new().name("merge runs".to_owned());
        let thread = thread.spawn(move || merge(&store, &asked))?;
        *merger = Some(ask);
        Ok(Merger {
            store: Arc::clone(self),
            thread: Some(thread),
        })
    }

    fn lock_merger(&self) -> MutexGuard<'_, Option<std::sync::mpsc::SyncSender<()>>> {
        self.merger.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// Whether a thread of its own writes and merges runs.
    pub(crate) fn merges_beside(&self) -> bool {
        self.lock_merger().is_some()
    }

    /// Writes a run where memory is full and merges where levels are, or asks the thread that does.
    ///
    /// # Errors
    /// What reading and writing say.
    pub(crate) fn tidy_or_ask(&self) -> Result<()> {
        let asked = self.lock_merger().as_ref().is_some_and(|merger| {
            // It looks again when it is done: one word is enough, and a thread that has failed
            // hears none.
            !matches!(
                merger.try_send(()),
                Err(std::sync::mpsc::TrySendError::Disconnected(()))
            )
        });
        match asked && !self.is_behind() {
            true => Ok(()),
            false => self.tidy(),
        }
    }

    /// Writes a run where memory is full and merges where levels are.
    fn tidy(&self) -> Result<()> {
        self.flush_where(true)?;
        self.compact_where_full()
    }
}

/// Writes runs and merges them whenever it is asked to.
fn merge(store: &Store, asked: &Receiver<()>) -> Result<()> {
    while asked.recv().is_ok() {
        match store.tidy() {
            Err(error) if !passes(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl Merger {
    /// Waits for what is being merged and ends.
    ///
    /// # Errors
    /// What merging said.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        *self.store.lock_merger() = None;
        let panicked = |_| {
            Err(Error::internal(
                "the thread that writes and merges runs panicked",
            ))
        };
        let thread = self.thread.take();
        thread.map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked))
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        // Runs that could not be merged are as good as before.
        let _ = self.end();
    }
}
