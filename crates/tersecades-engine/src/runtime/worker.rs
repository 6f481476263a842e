//! Worker threads: each runs its own copy of the first stage on the frames it is sent.
//!
//! Queues hold a few frames and block when full, so a slow worker slows the source instead of
//! filling memory. Frames travel back for reuse.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Tally;
use tersecades_columnar::error::{Error, Result};

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::operator::window_aggregate::Partial;

use super::ablation::Ablation;
use super::meter::Meter;
use super::stage::Stage;

/// Frames waiting in the queue of one worker, at most.
pub const QUEUE_FRAMES: usize = 4;

enum Job {
    Frame(Box<Frame>, Arrival),
    Flush,
}

/// What a worker hands back when it is flushed.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Partial panes, when the stage groups.
    pub partial: Option<Partial>,
    /// Rows, when it does not, in the order of their frames.
    pub rows: Vec<RecordBatch>,
    /// Work done since the last flush.
    pub tally: Tally,
    /// Figures of the operators since then, where they are taken.
    pub meters: Vec<Meter>,
}

/// A running worker.
#[derive(Debug)]
pub struct Worker {
    jobs: Option<SyncSender<Job>>,
    frames: Receiver<Box<Frame>>,
    flushed: Receiver<Result<Flushed>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that runs `stage`.
    ///
    /// # Errors
    /// `Io` when the system starts no more threads.
    pub fn start(stage: Stage, index: usize, without: Ablation) -> Result<Self> {
        let (jobs, todo) = sync_channel(QUEUE_FRAMES);
        let (done, frames) = sync_channel(2 * QUEUE_FRAMES);
        let (answer, flushed) = sync_channel(1);
        let name = format!("tersecades-worker-{index}");
        let run = move || work_off((stage, without), &todo, &done, &answer);
        let thread = std::thread::Builder::new().name(name).spawn(run)?;
        Ok(Worker {
            jobs: Some(jobs),
            frames,
            flushed,
            thread: Some(thread),
        })
    }

    fn send(&self, job: Job) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).map_err(|_| stopped())
    }

    /// Queues a frame; blocks while the queue is full.
    ///
    /// # Errors
    /// `Internal` when the worker is gone.
    pub fn push(&self, frame: Box<Frame>, arrival: Arrival) -> Result<()> {
        self.send(Job::Frame(frame, arrival))
    }

    /// A frame to reuse, if one has come back.
    pub fn recycled(&self) -> Option<Box<Frame>> {
        self.frames.try_recv().ok()
    }

    /// Asks for everything the worker holds; [`Worker::flushed`] waits for it.
    ///
    /// # Errors
    /// `Internal` when the worker is gone.
    pub fn flush(&self) -> Result<()> {
        self.send(Job::Flush)
    }

    /// Waits for the answer to [`Worker::flush`].
    ///
    /// # Errors
    /// The first error since the last flush.
    pub fn flushed(&self) -> Result<Flushed> {
        self.flushed.recv().map_err(|_| stopped())?
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A worker that panicked has already said so; dropping must not panic again.
            let _ = thread.join();
        }
    }
}

fn stopped() -> Error {
    Error::internal("a worker thread has stopped").hint("its message stands above")
}

fn work_off(
    (mut stage, without): (Stage, Ablation),
    todo: &Receiver<Job>,
    done: &SyncSender<Box<Frame>>,
    answer: &SyncSender<Result<Flushed>>,
) {
    let mut work = without.work();
    let mut rows = Vec::new();
    let mut failure = None;
    while let Ok(job) = todo.recv() {
        match job {
            Job::Frame(mut frame, arrival) => {
                if failure.is_none() {
                    match stage.push(&mut frame, &arrival, &mut work) {
                        Ok(batch) => rows.extend(batch),
                        Err(error) => failure = Some(error),
                    }
                }
                // The engine keeps few spare frames; one too many is dropped.
                let _ = done.try_send(frame);
            }
            Job::Flush => {
                let partial = stage
                    .aggregate
                    .as_mut()
                    .map(|aggregate| aggregate.take_panes());
                let tally = std::mem::take(&mut work.tally);
                let flushed = Flushed {
                    partial,
                    rows: std::mem::take(&mut rows),
                    tally,
                    meters: stage.take_meters(),
                };
                if answer
                    .send(failure.take().map_or(Ok(flushed), Err))
                    .is_err()
                {
                    return;
                }
            }
        }
    }
}
