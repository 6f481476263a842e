//! A stream that feeds a store: how many of its rows are there is as durable as they are.
//!
//! A mark in the manifest says how many rows of the stream were in the store when so many rows were
//! there in all. While the stream feeds the store nobody else writes, so that after a crash the
//! rows that were recovered say where the stream goes on.

use arrow_array::RecordBatch;
use tersecades_columnar::error::{Error, Result};

use crate::bytes::{Put as _, Take};
use crate::catalog::Catalog;
use crate::follow::LAG_BYTES;
use crate::store::Store;
use crate::version::Version;
use crate::writer::Writer;

/// What a mark says of its stream, as a byte.
const ENDED: u8 = 0;
const OPEN: u8 = 1;
const FAILED: u8 = 2;

/// Rows of a stream of which nobody knows how many are there.
const UNKNOWN_ROWS: u64 = u64::MAX;

/// How far a stream has fed the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedMark {
    /// The stream.
    name: String,
    /// Its rows that were there when the store had `sequence` rows.
    rows: u64,
    /// Rows that the store had.
    sequence: u64,
    /// What the stream does.
    course: Course,
}

/// What a stream that feeds the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It goes on: all rows behind are of this stream.
    Open,
    /// It has ended.
    Ended,
    /// It has ended with an error.
    Failed,
}

impl FeedMark {
    /// Appends the mark.
    ///
    /// # Errors
    /// `LimitExceeded` for names of 4 GiB and more.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.put_blob(self.name.as_bytes())?;
        out.put_u64(self.rows);
        out.put_u64(self.sequence);
        out.put_u8(match self.course {
            Course::Open => OPEN,
            Course::Ended => ENDED,
            Course::Failed => FAILED,
        });
        Ok(())
    }

    /// Takes a mark off the front of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` for what [`FeedMark::write`] cannot have written.
    pub(crate) fn read(bytes: &mut Take<'_>) -> Result<Self> {
        Ok(FeedMark {
            name: bytes.text()?.to_owned(),
            rows: bytes.u64()?,
            sequence: bytes.u64()?,
            course: match bytes.u8()? {
                ENDED => Course::Ended,
                OPEN => Course::Open,
                FAILED => Course::Failed,
                _ => return Err(Error::corrupt("the mark of a stream makes no sense")),
            },
        })
    }

    /// The mark of streams that an older state does not name, and that may have begun since.
    pub(crate) fn of_unknown() -> Self {
        FeedMark {
            name: String::new(),
            rows: UNKNOWN_ROWS,
            sequence: u64::MAX,
            course: Course::Ended,
        }
    }

    /// Forgets how many rows are there, as some of them may be lost.
    pub(crate) fn doubt(&mut self) {
        self.rows = UNKNOWN_ROWS;
        self.course = Course::Ended;
    }

    /// Whether others may have written since.
    pub(crate) fn has_ended(&self) -> bool {
        self.course != Course::Open
    }

    /// The error of who follows, where the stream has ended with one.
    pub(crate) fn failure(&self) -> Option<Error> {
        let name = &self.name;
        (self.course == Course::Failed).then(|| {
            Error::invalid(format!(
                "the stream `{name}` that feeds the store has failed"
            ))
            .hint("its program says why; follow the store again when the stream goes on")
        })
    }

    /// Whether the stream wrote the last of `rows` rows.
    pub(crate) fn ends_at(&self, rows: u64) -> bool {
        self.sequence == rows
    }

    /// Takes note that the store has `end` rows, and that others may write from here on.
    pub(crate) fn settle(&mut self, end: u64) {
        self.count(end);
        self.course = Course::Ended;
    }

    /// Takes note that the store has `end` rows, and that the stream has failed if it went on.
    fn fail(&mut self, end: u64) {
        self.count(end);
        if self.course == Course::Open {
            self.course = Course::Failed;
        }
    }

    /// Takes note that the store has `end` rows.
    ///
    /// Rows that an unsafe store has lost were the last ones, and so the stream's.
    pub(crate) fn count(&mut self, end: u64) {
        if self.rows != UNKNOWN_ROWS && (self.course == Course::Open || end < self.sequence) {
            let lost = self.sequence.saturating_sub(end);
            let gained = end.saturating_sub(self.sequence);
            self.rows = self.rows.saturating_sub(lost) + gained;
            self.sequence = end;
        }
    }
}

/// Appends the rows of one stream to a store; nobody else writes meanwhile.
pub struct FeedWriter<'s> {
    store: &'s Store,
    writer: Writer<'s>,
    /// Rows of the stream that are in the store.
    rows: u64,
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
        if mark.is_some_and(|mark| mark.rows == UNKNOWN_ROWS) {
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
        let end = state.end();
        drop(state);
        let begun = self.mark(|catalog| {
            let marks = catalog.feeds.iter_mut();
            marks.for_each(|mark| mark.settle(end));
            let known = catalog.feeds.iter().position(|mark| mark.name == name);
            let index = known.unwrap_or_else(|| {
                catalog.feeds.push(FeedMark {
                    name: name.to_owned(),
                    rows: 0,
                    sequence: end,
                    course: Course::Open,
                });
                catalog.feeds.len() - 1
            });
            let mark = &mut catalog.feeds[index];
            (mark.sequence, mark.course) = (end, Course::Open);
            mark.rows
        });
        let rows = begun.inspect_err(|error| self.end_feed(Some(error)))?;
        Ok(FeedWriter {
            store: self,
            writer: writer.of_feed(rows),
            rows,
            has_ended: false,
        })
    }

    /// Writes the catalogue with changed marks.
    fn mark<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> Result<T> {
        let mut upkeep = self.upkeep();
        let version = std::sync::Arc::clone(&self.commit.lock().version);
        let mut catalog = version.catalog.clone();
        let changed = change(&mut catalog);
        // Marks count rows that a power cut must not take.
        self.sync_unsafe(&mut self.commit.lock_idle())?;
        self.commit_catalog(&mut upkeep, &catalog)?;
        let runs = version.runs.clone();
        self.install(&mut self.commit.lock(), Version::whole(catalog, runs));
        Ok(changed)
    }

    /// Settles marks that a failure has left open, before others write.
    ///
    /// # Errors
    /// What writing the manifest says.
    pub(crate) fn settle_feeds(&self) -> Result<()> {
        let has_ended = |catalog: &Catalog| catalog.feeds.iter().all(FeedMark::has_ended);
        if has_ended(&self.commit.lock().version.catalog) {
            return Ok(());
        }
        self.mark(|catalog| {
            let state = self.commit.lock();
            if state.feed.is_none() {
                let marks = catalog.feeds.iter_mut();
                marks.for_each(|mark| mark.settle(state.end()));
            }
        })
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
                let end = self.store.commit.lock().end();
                let marks = catalog.feeds.iter_mut();
                marks.for_each(|mark| mark.fail(end));
            }),
            _ => Ok(()),
        };
        self.store.end_feed(failure.or(failed.as_ref()));
        match failed {
            // Rows that were not acknowledged may be there when the store is opened again: the
            // open mark counts them.
            Some(error) => Err(error),
            None => noted.and_then(|()| self.store.settle_feeds()),
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
