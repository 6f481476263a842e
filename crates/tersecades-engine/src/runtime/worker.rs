//! Worker threads: each runs its own copy of the first stage on frames from one queue.
//!
//! ```text
//! the run's thread ──frames──▶ queue (bounded) ──▶ workers, and the run itself when it is full
//!        ▲                                            │
//!        └───────── flush: panes, rows, figures ──────┘
//! ```
//! Nobody waits for a hand-over: a worker sleeps only while there is no frame, and the run's thread
//! takes on a frame itself where it would wait for room in the queue.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::{Tally, Work};
use tersecades_columnar::error::{Error, Result};

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::operator::window_aggregate::Partial;

use super::ablation::Ablation;
use super::meter::Meter;
use super::stage::Stage;

/// Frames waiting for a worker, at most, for each worker.
const QUEUE_FRAMES: usize = 8;

/// A frame to be run through the stage.
#[derive(Debug)]
pub struct Job {
    /// The rows.
    pub frame: Box<Frame>,
    /// What the event time says of them.
    pub arrival: Arrival,
    /// Frames of the run before it.
    pub number: u64,
}

/// What the workers hand back when they are flushed.
#[derive(Debug, Default)]
pub struct Flushed {
    /// Partial panes, when the stage groups.
    pub partials: Vec<Partial>,
    /// Rows, when it does not, each batch with the number of its frame.
    pub rows: Vec<(u64, RecordBatch)>,
    /// Work done since the last flush.
    pub tally: Tally,
    /// Figures of the operators since then, where they are taken, of each worker.
    pub meters: Vec<Vec<Meter>>,
}

/// What one worker works on.
struct Bench {
    stage: Stage,
    work: Work,
    rows: Vec<(u64, RecordBatch)>,
    failure: Option<Error>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Frames whose memory waits to be reused.
    #[expect(
        clippy::vec_box,
        reason = "a frame stays in its box, so that none is allocated for a batch"
    )]
    spare: Vec<Box<Frame>>,
    /// Workers with a frame in hand.
    busy: usize,
    /// Workers that wait for a frame.
    asleep: usize,
    closed: bool,
    /// Whether a worker has panicked.
    broken: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    rested: Condvar,
    benches: Vec<Mutex<Bench>>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Running workers; none where one thread is enough.
#[derive(Default)]
pub struct Workers {
    shared: Option<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts a thread for each of `stages`.
    ///
    /// # Errors
    /// `Io` when the system starts no more threads.
    pub fn start(stages: Vec<Stage>, without: Ablation) -> Result<Self> {
        if stages.is_empty() {
            return Ok(Workers::default());
        }
        let bench = |stage| {
            Mutex::new(Bench {
                stage,
                work: without.work(),
                rows: Vec::new(),
                failure: None,
            })
        };
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            rested: Condvar::new(),
            benches: stages.into_iter().map(bench).collect(),
        });
        let mut workers = Workers {
            shared: Some(Arc::clone(&shared)),
            threads: Vec::new(),
        };
        for index in 0..shared.benches.len() {
            let shared = Arc::clone(&shared);
            let name = format!("tersecades-worker-{index}");
            let run = move || work_off(&shared, index);
            let thread = std::thread::Builder::new().name(name).spawn(run)?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Whether there is no worker.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Frames after which rows that must stay in order should be flushed.
    pub fn round(&self) -> u64 {
        (QUEUE_FRAMES * self.threads.len()) as u64
    }

    /// Queues a frame; where there is no room for it, answers the one that has waited longest, for
    /// the caller to run.
    pub fn push(&self, job: Job) -> Option<Job> {
        let Some(shared) = &self.shared else {
            return Some(job);
        };
        let mut queue = shared.queue();
        let room = queue.jobs.len() < QUEUE_FRAMES * self.threads.len();
        queue.jobs.push_back(job);
        if queue.asleep > 0 {
            shared.filled.notify_one();
        }
        match room {
            true => None,
            false => queue.jobs.pop_front(),
        }
    }

    /// Takes a frame off the queue, for the caller to run.
    pub fn take(&self) -> Option<Job> {
        self.shared.as_ref()?.queue().jobs.pop_front()
    }

    /// A frame to reuse, if one has come back.
    pub fn recycled(&self) -> Option<Box<Frame>> {
        self.shared.as_ref()?.queue().spare.pop()
    }

    /// Takes everything the workers hold, once they are through with their frames; the queue must
    /// be empty.
    ///
    /// # Errors
    /// The first error since the last flush; `Internal` when a worker is gone.
    pub fn flush(&self) -> Result<Flushed> {
        let mut flushed = Flushed::default();
        let Some(shared) = &self.shared else {
            return Ok(flushed);
        };
        let mut queue = shared.queue();
        while queue.busy > 0 && !queue.broken {
            queue = shared
                .rested
                .wait(queue)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        if queue.broken {
            return Err(stopped());
        }
        drop(queue);
        for bench in &shared.benches {
            let mut bench = bench.lock().map_err(|_| stopped())?;
            if let Some(error) = bench.failure.take() {
                return Err(error);
            }
            let aggregate = bench.stage.aggregate.as_mut();
            flushed
                .partials
                .extend(aggregate.map(|aggregate| aggregate.take_panes()));
            flushed.rows.append(&mut bench.rows);
            flushed.tally.merge(std::mem::take(&mut bench.work.tally));
            flushed.meters.push(bench.stage.take_meters());
        }
        flushed.rows.sort_by_key(|(number, _)| *number);
        Ok(flushed)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            let mut queue = shared.queue();
            queue.closed = true;
            queue.jobs.clear();
            shared.filled.notify_all();
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has already said so; dropping must not panic again.
            let _ = thread.join();
        }
    }
}

fn stopped() -> Error {
    Error::internal("a worker thread has stopped").hint("its message stands above")
}

/// Says that a worker is through with its frame, or gone.
struct Busy<'a>(&'a Shared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.busy -= 1;
        queue.broken |= std::thread::panicking();
        if queue.busy == 0 || queue.broken {
            self.0.rested.notify_all();
        }
    }
}

fn work_off(shared: &Shared, index: usize) {
    while let Some(mut job) = next_job(shared) {
        let busy = Busy(shared);
        let Ok(mut bench) = shared.benches[index].lock() else {
            return;
        };
        let Bench {
            stage,
            work,
            rows,
            failure,
        } = &mut *bench;
        if failure.is_none() {
            match stage.push(&mut job.frame, &job.arrival, work) {
                Ok(batch) => rows.extend(batch.map(|batch| (job.number, batch))),
                Err(error) => *failure = Some(error),
            }
        }
        drop(bench);
        shared.queue().spare.push(job.frame);
        drop(busy);
    }
}

/// The next frame, once there is one; `None` when the run is over.
fn next_job(shared: &Shared) -> Option<Job> {
    let mut queue = shared.queue();
    loop {
        if queue.closed {
            return None;
        }
        if let Some(job) = queue.jobs.pop_front() {
            queue.busy += 1;
            return Some(job);
        }
        queue.asleep += 1;
        queue = shared
            .filled
            .wait(queue)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        queue.asleep -= 1;
    }
}
