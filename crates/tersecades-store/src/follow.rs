//! Rows as they arrive: who follows a store has a snapshot, and then every batch behind it.
//!
//! In the process that writes:
//!
//! ```text
//! one look at the state ─┬─▶ snapshot: rows 0..n
//!                        └─▶ queue: every batch from row n on, in the order of their numbers
//! ```
//! Both are taken under one lock, so that no row is in neither or in both. Other processes read on
//! in the log: [`Tail`]. Who comes back with a [`Bookmark`] reads the log from there, and then, in
//! the process that writes, the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::bookmark::{self, Bookmark, Keeper};
use crate::commit::State;
use crate::encode::conform;
use crate::fs::Directory;
use crate::log::Segment;
use crate::store::Store;
use crate::tail::{self, Held, Tail};
use crate::version::Snapshot;

/// Encoded bytes behind which a stream that feeds the store waits for those who follow.
pub(crate) const LAG_BYTES: usize = 16 << 20;
/// Encoded bytes behind which a follower that other writers do not wait for is given up.
pub(crate) const LAG_BYTES_MAX: usize = 256 << 20;

/// What comes next of a store that is followed.
#[derive(Debug, Clone)]
pub enum Arrival {
    /// Rows that last.
    Rows(Arc<Batch>),
    /// Nothing so far.
    Nothing,
    /// The stream that fed the store has ended, or the store was closed.
    End,
}

/// The rows behind a snapshot, as they arrive.
pub struct Arrivals {
    directory: Directory,
    /// What is read first, and up to which row where a queue goes on.
    log: Option<Box<Tail>>,
    /// Rows that this process writes itself.
    queue: Option<Queue>,
    keeper: Keeper,
}

/// A batch, and the number of the segment of the log that has it.
type Sent = (Arc<Batch>, u64);

struct Queue {
    batches: Receiver<Result<Sent>>,
    lag: Arc<AtomicUsize>,
    /// What keeps the rows to come in the log, for bookmarks, or why nothing does.
    segment: Result<Held>,
    /// Number of the first row, then of the next.
    next: u64,
    /// Columns of the snapshot, which batches get of writers that have not seen one added.
    fields: SchemaRef,
}

impl Arrivals {
    /// The rows behind a snapshot of the store in `directory`, which another process writes.
    fn of_log(directory: &Directory, tail: Tail, keeper: Keeper) -> Self {
        Arrivals {
            directory: directory.clone(),
            log: Some(Box::new(tail)),
            queue: None,
            keeper,
        }
    }

    /// Leaves a bookmark behind the rows that were taken: a later [`Store::follow_from`] goes on
    /// there, while less than 256 MiB of log come behind it. The two last ones hold.
    ///
    /// # Errors
    /// What writing it to the folder of the store says; `LimitExceeded` where the rows to come have
    /// left the log; what opening the log says.
    pub fn bookmark(&mut self) -> Result<Bookmark> {
        let (segment, next) = match (&self.log, &self.queue) {
            (Some(tail), _) => tail.place(),
            (None, Some(queue)) => match &queue.segment {
                Ok(segment) => (segment.number, queue.next),
                Err(error) => return Err(error.clone()),
            },
            (None, None) => return Err(Error::internal("arrivals come from nowhere")),
        };
        self.keeper.keep(&self.directory, segment, next)
    }

    /// What comes next, waiting for it no longer than `wait`.
    ///
    /// # Errors
    /// Where the stream that feeds the store has failed, and why, if it is of this process;
    /// `LimitExceeded` where rows came much faster than they were taken; of what another process
    /// writes, what reading says.
    pub fn next(&mut self, wait: Duration) -> Result<Arrival> {
        let Some(queue) = &mut self.queue else {
            return self
                .log
                .as_mut()
                .map_or(Ok(Arrival::End), |tail| tail.next(wait));
        };
        if let Some(tail) = &mut self.log {
            if tail.place().1 < queue.next {
                return tail.next(wait);
            }
            self.log = None;
        }
        queue.take(&self.directory, wait)
    }
}

impl Queue {
    fn take(&mut self, directory: &Directory, wait: Duration) -> Result<Arrival> {
        match self.batches.recv_timeout(wait) {
            Ok(sent) => {
                let (batch, segment) = sent?;
                self.lag.fetch_sub(batch.byte_size(), Ordering::Relaxed);
                self.next += batch.rows() as u64;
                let is_held = |held: &Held| held.number == segment;
                if !self.segment.as_ref().is_ok_and(is_held) {
                    // Only bookmarks need it.
                    self.segment = tail::hold(directory, segment);
                }
                if *batch.schema() == self.fields {
                    return Ok(Arrival::Rows(batch));
                }
                let batch = conform(Arc::unwrap_or_clone(batch), &self.fields)?;
                Ok(Arrival::Rows(Arc::new(batch)))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Arrival::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrival::End),
        }
    }
}

struct Follower {
    batches: Sender<Result<Sent>>,
    lag: Arc<AtomicUsize>,
}

/// Who follows, and what there is to follow.
#[derive(Default)]
pub(crate) struct Followers {
    followers: Vec<Follower>,
    /// Whether a stream has fed the store to its end, since when nobody has written.
    ended: bool,
    /// What the last stream that has failed has failed with.
    failure: Option<Error>,
}

impl Followers {
    /// Hands `batch`, which segment `segment` has, to everybody who is still there, and gives up
    /// who was too far behind before it came.
    pub(crate) fn send(&mut self, batch: &Arc<Batch>, segment: u64) {
        let bytes = batch.byte_size();
        self.followers.retain(|follower| {
            let behind = follower.lag.fetch_add(bytes, Ordering::Relaxed);
            // However large a batch is, who has taken those before it has kept up.
            if behind > LAG_BYTES_MAX {
                // Who is gone needs no word.
                let _ = follower.batches.send(Err(overrun(behind)));
                return false;
            }
            let sent = (Arc::clone(batch), segment);
            follower.batches.send(Ok(sent)).is_ok()
        });
    }

    /// Encoded bytes that the slowest follower has not taken yet.
    pub(crate) fn lag(&self) -> usize {
        // Who is gone takes nothing any more, and is let go only with the next batch.
        let there = |follower: &&Follower| Arc::strong_count(&follower.lag) > 1;
        let lags = self.followers.iter().filter(there);
        let lags = lags.map(|follower| follower.lag.load(Ordering::Relaxed));
        lags.max().unwrap_or(0)
    }

    /// A stream begins to feed the store, or others go on writing.
    pub(crate) fn begin(&mut self) {
        self.ended = false;
    }

    /// The stream that fed the store has ended, or failed.
    pub(crate) fn end(&mut self, failure: Option<&Error>) {
        self.ended = true;
        self.failure = failure.cloned();
        for follower in self.followers.drain(..) {
            if let Some(error) = failure {
                let _ = follower.batches.send(Err(error.clone()));
            }
        }
    }

    /// Whoever hears of the rows from number `next` on, with the columns `fields`, the first of
    /// which comes to `segment`; of the failure that is `untold`, where the stream has ended with
    /// it.
    fn join(
        &mut self,
        segment: Result<Held>,
        (next, fields): (u64, SchemaRef),
        untold: Option<Error>,
    ) -> Queue {
        let (batches, received) = channel();
        let lag = Arc::new(AtomicUsize::new(0));
        if !self.ended {
            self.followers.push(Follower {
                batches,
                lag: Arc::clone(&lag),
            });
        } else if let Some(noted) = untold {
            let failure = self.failure.clone().unwrap_or(noted);
            let _ = batches.send(Err(failure));
        }
        Queue {
            batches: received,
            lag,
            segment,
            next,
            fields,
        }
    }
}

fn overrun(bytes: usize) -> Error {
    too_slow(&format!("{bytes} bytes wait"))
}

/// The error of a follower that reads too slowly.
pub(crate) fn too_slow(what: &str) -> Error {
    Error::limit(format!("rows came faster than they were read: {what}"))
        .hint("read them on a thread of their own, or read the store when the rows are in it")
}

impl Store {
    /// The store as it is, and all rows that come later: each row is in one of the two, once.
    ///
    /// Arrivals end when the stream that feeds the store does ([`Store::feed`]), or the store is
    /// closed. A stream that feeds the store waits for those who follow; other writers do not.
    ///
    /// A store that was opened for reading is read anew and followed as another process writes it,
    /// which does not wait.
    ///
    /// # Errors
    /// As [`Store::open_read_only`]; never for a store that was opened for writing.
    pub fn follow(&self) -> Result<(Snapshot, Arrivals)> {
        if self.is_read_only() {
            let (snapshot, tail) = Tail::begin(&self.directory)?;
            let arrivals = Arrivals::of_log(&self.directory, tail, Keeper::new());
            return Ok((snapshot, arrivals));
        }
        let mut state = self.commit.lock_idle();
        let snapshot = Snapshot::of(&state);
        let arrivals = self.join(&mut state, None);
        Ok((snapshot, arrivals))
    }

    /// What comes behind `bookmark`, whatever became of runs meanwhile: each row once, in the order
    /// of the log. Otherwise as [`Store::follow`].
    ///
    /// # Errors
    /// `LimitExceeded` where rows behind it have left the log, and how many; `Corrupt` for another
    /// store, and where rows are lost that were read; as [`Store::follow`].
    pub fn follow_from(&self, bookmark: &Bookmark) -> Result<Arrivals> {
        let directory = &self.directory;
        if self.is_read_only() {
            let tail = Tail::resume(directory, bookmark)?;
            let keeper = Keeper::taking_over(directory, bookmark);
            return Ok(Arrivals::of_log(directory, tail, keeper));
        }
        let mut state = self.commit.lock_idle();
        let (catalog, end) = (&state.version.catalog, state.end());
        bookmark.check(catalog, end)?;
        let tail = match bookmark.next < end {
            true => Some(Tail::resume_within(
                directory,
                &catalog.schema,
                bookmark,
                end,
            )?),
            false => {
                bookmark::require(directory, bookmark)?;
                None
            }
        };
        let arrivals = self.join(&mut state, tail);
        drop(state);
        Ok(Arrivals {
            keeper: Keeper::taking_over(directory, bookmark),
            ..arrivals
        })
    }

    /// What arrives from here on, behind what `tail` reads.
    fn join(&self, state: &mut State, tail: Option<Tail>) -> Arrivals {
        let segment = state.segment.as_ref().map(Segment::number);
        // Only bookmarks need it.
        let held = segment
            .ok_or_else(|| too_slow("the log of the rows to come is gone"))
            .and_then(|number| tail::hold(&self.directory, number));
        let end = state.end();
        // Who has rows to read yet has not been told.
        let untold = tail.as_ref();
        let untold = untold.and_then(|_| state.version.catalog.failure_at(end));
        let fields = state.version.catalog.schema.stored();
        Arrivals {
            directory: self.directory.clone(),
            log: tail.map(Box::new),
            queue: Some(state.followers.join(held, (end, fields), untold)),
            keeper: Keeper::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch};
    use arrow_schema::DataType;
    use tersecades_columnar::goal::Tier;
    use tersecades_columnar::wire;

    use super::*;
    use crate::encode::{Encoder, decode};
    use crate::option::StoreOptions;
    use crate::schema::StoreSchema;

    #[test]
    fn rows_of_a_writer_that_has_not_seen_a_column_added_arrive_with_nulls() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let schema = StoreSchema::new(&rows.schema()).unwrap();
        let store = Store::create(folder.path(), schema, StoreOptions::default()).unwrap();
        let before = store.schema().stored();
        store.add_column("w", &DataType::Int64).unwrap();
        let (_, mut arrivals) = store.follow().unwrap();
        let policy = StoreOptions::default().codec(0);
        let mut encoder = Encoder::new(&before, policy, Tier::Hot).unwrap();
        let batch = encoder.encode(&rows).unwrap();
        let mut bytes = Vec::new();
        wire::write_batch(&batch, &mut bytes).unwrap();
        let state = store.commit.lock();
        store.commit.append(state, (batch, bytes), false).unwrap();
        let arrived = arrivals.next(Duration::from_secs(10)).unwrap();
        let Arrival::Rows(batch) = arrived else {
            panic!("{arrived:?}");
        };
        let arrived = decode(&batch).unwrap();
        assert_eq!(arrived.column_by_name("n"), rows.column_by_name("n"));
        assert_eq!(arrived.column_by_name("w").unwrap().logical_null_count(), 5);
    }

    #[test]
    fn who_has_kept_up_hears_of_a_batch_however_large() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let policy = StoreOptions::default().codec(0);
        let mut encoder = Encoder::new(&rows.schema(), policy, Tier::Hot).unwrap();
        let batch = Arc::new(encoder.encode(&rows).unwrap());
        let mut followers = Followers::default();
        let segment = || Err(Error::limit("no segment is held"));
        let queue = followers.join(segment(), (0, rows.schema()), None);
        // As many bytes wait as may, with which any batch would be more.
        queue.lag.store(LAG_BYTES_MAX, Ordering::Relaxed);
        followers.send(&batch, 1);
        assert!(queue.batches.try_recv().unwrap().is_ok());
        followers.send(&batch, 1);
        let error = queue.batches.try_recv().unwrap().unwrap_err();
        assert!(error.message().contains("came faster"), "{error}");
        assert!(followers.followers.is_empty());
    }
}
