//! A stream that is kept in a store: its rows are written as they flow, each once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use tersecades_columnar::error::{Error, Result};
use tersecades_store::{FeedWriter, Merger, Store};

use super::{Interrupt, Running};

/// How long a stream rests that is ahead of those who follow the store.
const REST: Duration = Duration::from_millis(1);

/// A stream whose rows are to be written to a store.
pub struct Feed {
    name: String,
    store: Arc<Store>,
    rows: Running,
    begins_again: bool,
}

/// A stream whose rows are being written to a store, on a thread of its own.
///
/// It stops when this is dropped.
pub struct Feeding {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64>>>,
}

impl Feed {
    /// The rows of `rows`, for `store`, which knows the stream as `name`.
    pub(crate) fn new(name: String, store: &Arc<Store>, rows: Running, begins_again: bool) -> Self {
        Feed {
            name,
            store: Arc::clone(store),
            rows,
            begins_again,
        }
    }

    /// Writes all rows that come, also where the stream could begin again: without this the rows
    /// that an earlier run has written are then left out.
    #[must_use]
    pub fn goes_on(mut self) -> Self {
        self.begins_again = false;
        self
    }

    /// Writes rows until the stream ends; gives the number of its rows that are in the store.
    ///
    /// It waits for those who follow the store: they need threads of their own.
    ///
    /// # Errors
    /// What the stream and the store say; those who follow hear of it, too.
    pub fn run(self) -> Result<u64> {
        let Feed {
            name,
            store,
            rows,
            begins_again,
        } = self;
        let writer = store.feed(&name)?;
        fill(writer, rows, begins_again, &AtomicBool::new(false))
    }

    /// As [`Feed::run`], on a thread of its own; who follows the store from here on sees its rows.
    ///
    /// # Errors
    /// What beginning says.
    pub fn start(self) -> Result<Feeding> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (begun, begins) = channel();
        let thread = std::thread::Builder::new().name(format!("feed {}", self.name));
        let thread = thread.spawn(move || {
            let writer = match self.store.feed(&self.name) {
                Ok(writer) => writer,
                Err(error) => {
                    // Who started it waits for this.
                    let _ = begun.send(Err(error));
                    return Ok(0);
                }
            };
            // Where somebody merges already, that is as good.
            let merger = self.store.merge_beside().ok();
            let _ = begun.send(Ok(()));
            let written = fill(writer, self.rows, self.begins_again, &stopped)?;
            merger.map_or(Ok(()), Merger::finish)?;
            Ok(written)
        })?;
        let ended = |_| Err(Error::internal("the thread of a stream ended early"));
        begins.recv().unwrap_or_else(ended)?;
        Ok(Feeding {
            stop,
            thread: Some(thread),
        })
    }
}

impl Feeding {
    /// Waits for the end of the stream; gives the number of its rows that are in the store.
    ///
    /// # Errors
    /// As [`Feed::run`].
    pub fn finish(mut self) -> Result<u64> {
        self.join()
    }

    /// As [`Feeding::finish`]; when `interrupt` says so the stream is told to stop, and not waited
    /// for.
    ///
    /// # Errors
    /// As [`Feed::run`]; what the interrupt says.
    pub fn finish_unless(&mut self, interrupt: &Interrupt) -> Result<u64> {
        while self.is_running() {
            let checked = interrupt.check();
            checked.inspect_err(|_| self.stop.store(true, Ordering::Relaxed))?;
            std::thread::sleep(REST);
        }
        self.join()
    }

    /// Stops behind the batch that is written; gives the number of its rows that are in the store.
    ///
    /// # Errors
    /// As [`Feed::run`].
    pub fn stop(mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.join()
    }

    /// As [`Feeding::stop`]; when `interrupt` says so the stream is not waited for.
    ///
    /// # Errors
    /// As [`Feed::run`]; what the interrupt says.
    pub fn stop_unless(&mut self, interrupt: &Interrupt) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.finish_unless(interrupt)
    }

    /// As [`Feeding::stop`], but waits no longer than `wait`: `None` for a stream that has given
    /// nothing for so long, which stops by itself when it does.
    ///
    /// # Errors
    /// As [`Feed::run`].
    pub fn stop_within(mut self, wait: Duration) -> Result<Option<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        let until = Instant::now() + wait;
        while self.is_running() && Instant::now() < until {
            std::thread::sleep(REST);
        }
        match self.is_running() {
            false => self.join().map(Some),
            true => {
                self.thread = None;
                Ok(None)
            }
        }
    }

    /// Whether rows are still being written.
    pub fn is_running(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|thread| !thread.is_finished())
    }

    fn join(&mut self) -> Result<u64> {
        let panicked = |_| Err(Error::internal("the thread of a stream panicked"));
        let thread = self.thread.take();
        thread.map_or(Ok(0), |thread| thread.join().unwrap_or_else(panicked))
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Those who follow have heard of a failure.
        let _ = self.join();
    }
}

/// Writes what `rows` gives; of a stream that `begins_again` what is not there.
fn fill(
    mut writer: FeedWriter<'_>,
    rows: Running,
    begins_again: bool,
    stop: &AtomicBool,
) -> Result<u64> {
    let stopped = || stop.load(Ordering::Relaxed);
    let mut write = |rows: RecordBatch| -> Result<()> {
        let rows = match begins_again {
            true => writer.unwritten(&rows)?,
            false => rows,
        };
        if rows.num_rows() > 0 {
            while !writer.has_room() && !stopped() {
                std::thread::sleep(REST);
            }
            writer.append(&rows)?;
        }
        Ok(())
    };
    let mut written = Ok(());
    for batch in rows {
        written = batch.and_then(&mut write);
        if written.is_err() || stopped() {
            break;
        }
    }
    let fewer = begins_again && writer.missing() > 0 && !stopped();
    let written = written.and_then(|()| match fewer {
        true => Err(fewer_rows(writer.missing())),
        false => Ok(()),
    });
    match written {
        Ok(()) => writer.finish(),
        Err(error) => {
            writer.fail(&error);
            Err(error)
        }
    }
}

fn fewer_rows(missing: u64) -> Error {
    Error::invalid(format!(
        "the store has {missing} more rows of the stream than came"
    ))
    .hint("let the stream begin with its first row, or say that it goes on")
}
