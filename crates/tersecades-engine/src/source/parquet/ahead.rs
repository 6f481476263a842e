//! Row groups that threads read ahead, each group by one of them.
//!
//! ```text
//! thread 1   group 3: batch batch batch …  ─▶ channel of 3 ─▶ the source, group by group
//! thread 2   group 4: batch batch │ waits while the channel of 4 is full
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use arrow_array::RecordBatch;
use tersecades_columnar::error::{Error, Result};

use super::Input;
use super::group::Wanted;
use crate::source::guard::guard;

/// Batches of a row group that wait for their turn, at most.
const BATCHES: usize = 16;

/// A batch, unless there is none left, and the rows that were left out since the one before.
pub(super) type Step = (Option<RecordBatch>, u64);

/// A row group to be read, and where its batches go.
type Job = (usize, SyncSender<Result<Step>>);

/// Threads that read, and the row groups under way.
pub(super) struct Ahead {
    jobs: Option<Sender<Job>>,
    /// Whether nobody takes batches any more.
    is_given_up: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// The next one first.
    groups: VecDeque<(usize, Receiver<Result<Step>>)>,
}

impl Ahead {
    /// Starts a thread for each of `inputs`, which are the same file.
    ///
    /// # Errors
    /// `Io` when the system starts no more threads.
    pub(super) fn start(inputs: Vec<Input>, wanted: &Arc<Wanted>) -> Result<Self> {
        let (sender, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        let mut ahead = Ahead {
            jobs: Some(sender),
            is_given_up: Arc::default(),
            threads: Vec::new(),
            groups: VecDeque::new(),
        };
        for input in inputs {
            let (jobs, wanted) = (Arc::clone(&jobs), Arc::clone(wanted));
            let is_given_up = Arc::clone(&ahead.is_given_up);
            let thread = thread::Builder::new().name("tersecades-parquet".to_owned());
            let work = move || work_off(&input, &wanted, (&jobs, &is_given_up));
            ahead.threads.push(thread.spawn(work)?);
        }
        Ok(ahead)
    }

    /// Row groups that may begin to be read: one for each thread, beside the one that is taken.
    pub(super) fn room(&self) -> usize {
        (self.threads.len() + 1).saturating_sub(self.groups.len())
    }

    /// Has row group number `group` read.
    pub(super) fn push(&mut self, group: usize) {
        let (sender, steps) = sync_channel(BATCHES);
        let sent = self.jobs.as_ref().map(|jobs| jobs.send((group, sender)));
        // Without threads nobody sends either, which the one who takes the steps is told.
        drop(sent);
        self.groups.push_back((group, steps));
    }

    /// The row group whose batches come next.
    pub(super) fn group(&self) -> Option<usize> {
        self.groups.front().map(|(group, _)| *group)
    }

    /// The next batch of [`Ahead::group`], or `None` at its end, and the rows left out before it.
    ///
    /// # Errors
    /// What reading the group says; `Internal` when its thread is gone.
    pub(super) fn next(&mut self) -> Result<Step> {
        let front = self.groups.front();
        let step = front.and_then(|(_, steps)| steps.recv().ok());
        let stopped = || Error::internal("a thread that read a row group has stopped");
        let step = step.ok_or_else(stopped)??;
        if step.0.is_none() {
            self.groups.pop_front();
        }
        Ok(step)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Nobody waits for a job, or for room in a channel, that will not come, nor begins one.
        self.is_given_up.store(true, Ordering::Relaxed);
        self.jobs = None;
        self.groups.clear();
        for thread in self.threads.drain(..) {
            // It cannot have panicked outside of its guard.
            let _ = thread.join();
        }
    }
}

/// Reads row groups as long as there are any and they are not given up.
fn work_off(
    input: &Input,
    wanted: &Wanted,
    (jobs, is_given_up): (&Mutex<Receiver<Job>>, &AtomicBool),
) {
    let next = || {
        let jobs = jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        jobs.recv()
    };
    while let Ok((group, to)) = next() {
        if is_given_up.load(Ordering::Relaxed) {
            return;
        }
        let read = guard("Parquet", || read(input, wanted, group, &to));
        if let Err(error) = read {
            // Whoever has gone does not want to know.
            let _ = to.send(Err(error));
        }
    }
}

/// Sends all batches of a row group, as long as somebody takes them.
fn read(input: &Input, wanted: &Wanted, group: usize, to: &SyncSender<Result<Step>>) -> Result<()> {
    let mut group = input.open_group(wanted, group)?;
    loop {
        let batch = group.next()?;
        let is_last = batch.is_none();
        let step = (batch, group.take_left_out());
        if to.send(Ok(step)).is_err() || is_last {
            return Ok(());
        }
    }
}
