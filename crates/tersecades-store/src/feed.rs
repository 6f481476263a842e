//! A stream that feeds a store: how many of its rows are there is as durable as they are.
//!
//! A mark in the manifest says how many rows of the stream were in the store when so many rows were
//! there in all, and what tells them from others. While the stream feeds the store nobody else
//! writes, so that after a crash the rows that were recovered say where the stream goes on.

use arrow_array::RecordBatch;
use tersecades_columnar::error::{Error, Result};

use crate::catalog::Catalog;
use crate::commit::State;
use crate::follow::LAG_BYTES;
use crate::store::Store;
use crate::sync::MutexGuard;
use crate::version::Version;
use crate::writer::Writer;

mod mark;
mod time;

pub(crate) use mark::FeedMark;
pub(crate) use time::{Arrived, Times};

/// Appends the rows of one stream to a store; nobody else writes meanwhile.
pub struct FeedWriter<'s> {
    store: &'s Store,
    writer: Writer<'s>,
    /// Rows of the stream that are in the store.
    rows: u64,
    /// Those that were there when it began, and what tells them from others.
    known: (u64, Option<Times>),
    /// Those of them that have come again.
    again: (u64, Times),
    has_ended: bool,
}

impl Store {
    /// Someone who appends the rows of the stream `name`, of which [`FeedWriter::rows`] are there.
    ///
    /// # Errors
    /// `InvalidArgument` while another stream feeds the store, or for a store that was opened for
    /// reading; `Corrupt` where a repair does not know how many rows of the stream are left; what
    /// writing says.
    pub fn feed(&self, name: &str) -> Result<FeedWriter<'_>> {
        let writer = self.writer()?;
        let version = self.snapshot().version;
        let mut marks = version.catalog.feeds.iter();
        let mark = marks.clone().find(|mark| mark.name == name);
        let mark = mark.or_else(|| marks.find(|mark| mark.name.is_empty()));
        if mark.is_some_and(FeedMark::is_in_doubt) {
            let message =
                "the store was repaired: how many rows of the stream are there is unknown";
            return Err(Error::corrupt(format!("{message} (`{name}`)"))
                .hint("keep the stream in another folder, which takes all of its rows"));
        }
        let mut state = self.commit.lock_quiet();
        if let Some(other) = &state.feed {
            return Err(
                Error::invalid(format!("the stream `{other}` feeds this store"))
                    .hint("wait for its end, or keep this stream in another folder"),
            );
        }
        state.feed = Some(name.to_owned());
        state.followers.begin();
        drop(state);
        let begun = self.mark(|catalog| {
            let arrived = self.commit.lock().arrived();
            let mut marks = catalog.feeds.iter_mut();
            marks.try_for_each(|mark| mark.settle(&arrived))?;
            let known = catalog.feeds.iter().position(|mark| mark.name == name);
            let index = known.unwrap_or_else(|| {
                catalog.feeds.push(FeedMark::new(name));
                catalog.feeds.len() - 1
            });
            let mark = &mut catalog.feeds[index];
            mark.open(arrived.end());
            Ok((mark.rows, mark.times))
        });
        let known = begun.inspect_err(|error| self.end_feed(Some(error)))?;
        Ok(FeedWriter {
            store: self,
            writer: writer.of_feed(known.0),
            rows: known.0,
            known,
            again: (0, Times::default()),
            has_ended: false,
        })
    }

    /// Writes the catalogue with changed marks.
    fn mark<T>(&self, change: impl FnOnce(&mut Catalog) -> Result<T>) -> Result<T> {
        let mut upkeep = self.upkeep();
        let version = std::sync::Arc::clone(&self.commit.lock().version);
        let mut catalog = version.catalog.clone();
        let changed = change(&mut catalog)?;
        // Marks count rows that a power cut must not take.
        self.sync_unsafe(&mut self.commit.lock_idle())?;
        self.commit_catalog(&mut upkeep, &catalog)?;
        let runs = version.runs.clone();
        self.install(&mut self.commit.lock(), Version::whole(catalog, runs));
        Ok(changed)
    }

    /// The state in which others may write, or learn that a stream feeds the store: marks are
    /// settled that a failure has left open, as they would count the rows of others.
    ///
    /// # Errors
    /// What writing the manifest says.
    pub(crate) fn settle_feeds(&self) -> Result<MutexGuard<'_, State>> {
        loop {
            let state = self.commit.lock();
            let mut marks = state.version.catalog.feeds.iter();
            if state.feed.is_some() || marks.all(FeedMark::has_ended) {
                return Ok(state);
            }
            drop(state);
            self.mark(|catalog| {
                let state = self.commit.lock();
                let mut marks = catalog.feeds.iter_mut();
                match state.feed {
                    Some(_) => Ok(()),
                    None => marks.try_for_each(|mark| mark.settle(&state.arrived())),
                }
            })?;
        }
    }

    fn end_feed(&self, failure: Option<&Error>) {
        let mut state = self.commit.lock();
        state.feed = None;
        state.followers.end(failure);
    }
}

impl FeedWriter<'_> {
    /// Rows of the stream that are in the store; a stream that begins again leaves them out.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Those of the next rows of a stream that begins again with its first which are not in the
    /// store.
    ///
    /// # Errors
    /// `InvalidArgument` where those that are there had other times; `SchemaMismatch` for times of
    /// another type.
    pub fn unwritten(&mut self, rows: &RecordBatch) -> Result<RecordBatch> {
        let known = usize::try_from(self.missing()).unwrap_or(usize::MAX);
        let known = known.min(rows.num_rows());
        if known > 0 {
            if let Some(times) = self.writer.times(&rows.slice(0, known))? {
                self.again.1.add(&times)?;
            }
            self.again.0 += known as u64;
            let differs = |known: Times| known != self.again.1;
            if self.missing() == 0 && self.known.1.is_some_and(differs) {
                return Err(other_rows(self.again.0));
            }
        }
        Ok(rows.slice(known, rows.num_rows() - known))
    }

    /// Rows that were there when the stream began, and that [`FeedWriter::unwritten`] has not left
    /// out.
    pub fn missing(&self) -> u64 {
        self.known.0 - self.again.0
    }

    /// Appends the next rows of the stream and waits until they last.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn append(&mut self, rows: &RecordBatch) -> Result<()> {
        self.writer.append(rows)?;
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Whether those who follow have kept up, so that more may be appended.
    pub fn has_room(&self) -> bool {
        self.store.commit.lock().followers.lag() <= LAG_BYTES
    }

    /// Ends the stream for those who follow; gives the rows of it that are in the store.
    ///
    /// # Errors
    /// What writing the manifest says.
    pub fn finish(mut self) -> Result<u64> {
        self.end(None)?;
        Ok(self.rows)
    }

    /// Lets those who follow know that the stream has failed.
    pub fn fail(mut self, error: &Error) {
        // That it failed is what counts.
        let _ = self.end(Some(error));
    }

    fn end(&mut self, failure: Option<&Error>) -> Result<()> {
        self.has_ended = true;
        // A disk that was full may have space again.
        let _ = self.store.resume();
        let failed = self.store.failure();
        let noted = match (failure, &failed) {
            // Before others may write, so that it is the stream with the last rows.
            (Some(_), None) => self.store.mark(|catalog| {
                let arrived = self.store.commit.lock().arrived();
                let mut marks = catalog.feeds.iter_mut();
                marks.try_for_each(|mark| mark.fail(&arrived))
            }),
            _ => Ok(()),
        };
        self.store.end_feed(failure.or(failed.as_ref()));
        match failed {
            // Rows that were not acknowledged may be there when the store is opened again: the
            // open mark counts them.
            Some(error) => Err(error),
            None => noted.and_then(|()| self.store.settle_feeds().map(drop)),
        }
    }
}

impl Drop for FeedWriter<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            // Where the manifest cannot be written nothing else is: the open mark stays right.
            let _ = self.end(None);
        }
    }
}

fn other_rows(count: u64) -> Error {
    Error::invalid(format!(
        "the first {count} rows of the stream are others than those of it in the store"
    ))
    .hint(
        "a file may have come in front of others, or have taken the place of one: let the stream \
         begin with the same rows, or keep it in another folder",
    )
}
