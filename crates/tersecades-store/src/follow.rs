//! Rows as they arrive: who follows a store has a snapshot, and then every batch behind it.
//!
//! In the process that writes:
//!
//! ```text
//! one look at the state ─┬─▶ snapshot: rows 0..n
//!                        └─▶ queue: every batch from row n on, in the order of their numbers
//! ```
//! Both are taken under one lock, so that no row is in neither or in both. Other processes read on
//! in the log: [`Tail`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::store::Store;
use crate::tail::Tail;
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
pub struct Arrivals(Origin);

enum Origin {
    /// The process itself writes.
    Queue(Receiver<Result<Arc<Batch>>>, Arc<AtomicUsize>),
    /// Another does.
    Log(Box<Tail>),
}

impl Arrivals {
    /// What comes next, waiting for it no longer than `wait`.
    ///
    /// # Errors
    /// Where the stream that feeds the store has failed, and why, if it is of this process;
    /// `LimitExceeded` where rows came much faster than they were taken; of what another process
    /// writes, what reading says.
    pub fn next(&mut self, wait: Duration) -> Result<Arrival> {
        let (batches, lag) = match &mut self.0 {
            Origin::Queue(batches, lag) => (batches, lag),
            Origin::Log(tail) => return tail.next(wait),
        };
        match batches.recv_timeout(wait) {
            Ok(batch) => {
                let batch = batch?;
                lag.fetch_sub(batch.byte_size(), Ordering::Relaxed);
                Ok(Arrival::Rows(batch))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Arrival::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrival::End),
        }
    }
}

struct Follower {
    batches: Sender<Result<Arc<Batch>>>,
    lag: Arc<AtomicUsize>,
}

/// Who follows, and what there is to follow.
#[derive(Default)]
pub(crate) struct Followers {
    followers: Vec<Follower>,
    /// Whether a stream has fed the store to its end, since when nothing is to come.
    ended: bool,
}

impl Followers {
    /// Hands `batch` to everybody who is still there.
    pub(crate) fn send(&mut self, batch: &Arc<Batch>) {
        let bytes = batch.byte_size();
        self.followers.retain(|follower| {
            let behind = follower.lag.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if behind > LAG_BYTES_MAX {
                // Who is gone needs no word.
                let _ = follower.batches.send(Err(overrun(behind)));
                return false;
            }
            follower.batches.send(Ok(Arc::clone(batch))).is_ok()
        });
    }

    /// Encoded bytes that the slowest follower has not taken yet.
    pub(crate) fn lag(&self) -> usize {
        let lags = self.followers.iter();
        let lags = lags.map(|follower| follower.lag.load(Ordering::Relaxed));
        lags.max().unwrap_or(0)
    }

    /// A stream begins to feed the store.
    pub(crate) fn begin(&mut self) {
        self.ended = false;
    }

    /// The stream that fed the store has ended, or failed.
    pub(crate) fn end(&mut self, failure: Option<&Error>) {
        self.ended = true;
        for follower in self.followers.drain(..) {
            if let Some(error) = failure {
                let _ = follower.batches.send(Err(error.clone()));
            }
        }
    }

    fn join(&mut self) -> Arrivals {
        let (batches, received) = channel();
        let lag = Arc::new(AtomicUsize::new(0));
        if !self.ended {
            self.followers.push(Follower {
                batches,
                lag: Arc::clone(&lag),
            });
        }
        Arrivals(Origin::Queue(received, lag))
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
            return Ok((snapshot, Arrivals(Origin::Log(Box::new(tail)))));
        }
        let mut state = self.commit.lock();
        let snapshot = Snapshot::of(&state);
        Ok((snapshot, state.followers.join()))
    }
}
