//! Worker threads: each runs its own copy of the first stage on frames from one queue.
//!
//! ```text
//! the run's thread ──frames──▶ queue (bounded) ──▶ workers, and the run itself when it is full
//!        ▲                                            │
//!        └───────── flush: panes, rows, figures ──────┘
//! ```
//! Nobody waits for a hand-over: a worker sleeps only while there is no frame, and the run's thread
//! takes on a frame itself where it would wait for room in the queue. Who would sleep looks for a
//! few microseconds first, since waking up takes longer than a frame. Of a flush, workers keep the
//! panes that no window needs yet, and put in order the values of the others, each its own. Where
//! frames go to workers by pane (`lane.rs`), the run's thread is one of the workers.

mod lane;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use arrow_array::RecordBatch;
use tersecades_columnar::codec::{Tally, Work};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;

use crate::event_time::Arrival;
use crate::frame::{Frame, FrameMemory};
use crate::operator::window_aggregate::{Closed, Partial, WindowAggregate};

use super::ablation::Ablation;
use super::lent_thread::{Lent, lend};
use super::meter::Meter;
use super::stage::Stage;

use lane::Lanes;

/// Frames waiting for a worker, at most, for each worker.
const QUEUE_FRAMES: usize = 16;

/// Looks at a counter before a thread goes to sleep: some tens of microseconds.
const LOOKS: usize = 512;

/// A frame to be run through the stage.
#[derive(Debug)]
pub struct Job {
    /// The rows.
    pub frame: Box<Frame>,
    /// What the event time says of them.
    pub arrival: Arrival,
    /// Frames of the run before it.
    pub number: u64,
    /// Whether only rows in the time range of the arrival are meant.
    pub is_part: bool,
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
    memory: FrameMemory,
    found: Selection,
    rows: Vec<(u64, RecordBatch)>,
    /// Panes that were asked for.
    handed: Option<Partial>,
    failure: Option<Error>,
}

/// What a worker does next.
#[derive(Debug)]
enum Task {
    /// Run a frame through its stage.
    Run(Job),
    /// Hand over the panes of windows up to a watermark.
    HandOver(i64),
    /// Close the windows up to a watermark of which it has all rows.
    Close {
        watermark: i64,
        /// Threads that may work out a result.
        threads: usize,
    },
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Where frames go to workers by pane.
    lanes: Option<Lanes>,
    /// Frames whose memory waits to be reused.
    #[expect(
        clippy::vec_box,
        reason = "a frame stays in its box, so that none is allocated for a batch"
    )]
    spare: Vec<Box<Frame>>,
    /// Of each worker, the watermark that it is to hand over panes for.
    asked: Vec<Option<i64>>,
    /// Workers with a task in hand.
    busy: usize,
    /// Workers that wait for a frame.
    asleep: usize,
    /// Whether the run's thread waits for any task to be done.
    awaited: bool,
    closed: bool,
    /// Whether a worker has panicked.
    broken: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    rested: Condvar,
    benches: Vec<Mutex<Bench>>,
    /// Counts what workers may be waiting for.
    stirred: AtomicU64,
    /// Counts tasks that are done.
    done: AtomicU64,
}

impl Queue {
    /// Whether some worker has something to do.
    fn is_busy(&self) -> bool {
        let by_pane = self.lanes.as_ref().is_some_and(Lanes::is_busy);
        by_pane || self.busy > 0 || self.asked.iter().any(Option::is_some)
    }

    /// What worker `index` has to do next, if there is anything.
    fn take(&mut self, index: usize) -> Option<Task> {
        let by_pane = self.lanes.as_mut().and_then(|lanes| lanes.take(index));
        let job = || self.jobs.pop_front().map(Task::Run);
        let task = by_pane.or_else(job).or_else(|| {
            let asked = self.asked.get_mut(index)?;
            asked.take().map(Task::HandOver)
        })?;
        self.busy += 1;
        Some(task)
    }
}

impl Shared {
    /// Looks whether `counter` moves on from `seen`, for a while.
    fn watch(counter: &AtomicU64, seen: u64) {
        for _ in 0..LOOKS {
            if counter.load(Ordering::Relaxed) != seen {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Waits until no worker has anything to do, or one has panicked.
    fn rest(&self) -> Result<()> {
        let mut queue = self.queue();
        let mut looked = false;
        while queue.is_busy() && !queue.broken {
            if looked {
                queue = self
                    .rested
                    .wait(queue)
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            }
            let seen = self.done.load(Ordering::Relaxed);
            drop(queue);
            Shared::watch(&self.done, seen);
            queue = self.queue();
            looked = self.done.load(Ordering::Relaxed) == seen;
        }
        match queue.broken {
            true => Err(stopped()),
            false => Ok(()),
        }
    }

    /// Waits until a task is done, if some worker has one.
    fn wait_for_one(&self) -> Result<()> {
        let seen = self.done.load(Ordering::Relaxed);
        if self.queue().is_busy() {
            Shared::watch(&self.done, seen);
        }
        let mut queue = self.queue();
        while self.done.load(Ordering::Relaxed) == seen && queue.is_busy() && !queue.broken {
            queue.awaited = true;
            queue = self
                .rested
                .wait(queue)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        queue.awaited = false;
        match queue.broken {
            true => Err(stopped()),
            false => Ok(()),
        }
    }

    /// Asks every worker that has not been dismissed to hand over panes for `watermark`.
    fn ask(&self, watermark: i64) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        queue.asked.fill(Some(watermark));
        self.stirred.fetch_add(1, Ordering::Relaxed);
        self.filled.notify_all();
    }

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
    threads: Vec<Arc<Lent>>,
}

impl Workers {
    /// Has a thread for each of `stages`; `own` is what the run's thread works with where frames
    /// go to workers by pane, if they may.
    ///
    /// # Errors
    /// `Io` when the system starts no more threads.
    pub fn start(stages: Vec<Stage>, own: Option<Stage>, without: Ablation) -> Result<Self> {
        if stages.is_empty() {
            return Ok(Workers::default());
        }
        let threads = stages.len();
        let bench = |stage| {
            Mutex::new(Bench {
                stage,
                work: without.work(),
                memory: FrameMemory::default(),
                found: Selection::default(),
                rows: Vec::new(),
                handed: None,
                failure: None,
            })
        };
        let queue = Queue {
            asked: vec![None; threads],
            ..Queue::default()
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            stirred: AtomicU64::default(),
            done: AtomicU64::default(),
            filled: Condvar::new(),
            rested: Condvar::new(),
            benches: stages.into_iter().chain(own).map(bench).collect(),
        });
        let mut workers = Workers {
            shared: Some(Arc::clone(&shared)),
            threads: Vec::new(),
        };
        for index in 0..threads {
            let shared = Arc::clone(&shared);
            let thread = lend(move || work_off(&shared, index))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Lets the threads go, each once it is through with its task; what they hold can be flushed.
    pub fn dismiss(&self) {
        if let Some(shared) = &self.shared {
            shared.queue().closed = true;
            shared.stirred.fetch_add(1, Ordering::Relaxed);
            shared.filled.notify_all();
        }
    }

    /// Whether there is no worker.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Bytes of the window state of all workers, once each is through with its frame.
    pub fn byte_size(&self) -> usize {
        let benches = self.shared.iter().flat_map(|shared| &shared.benches);
        let held = benches.map(|bench| {
            let bench = bench
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            let aggregate = bench.stage.aggregate.as_ref();
            aggregate.map_or(0, WindowAggregate::byte_size)
        });
        held.sum()
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
        shared.stirred.fetch_add(1, Ordering::Relaxed);
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

    /// Takes what the workers hold, of panes only those that windows up to `watermark` need, once
    /// they are through with their frames; the queue must be empty. The state of this thread,
    /// `own`, is settled meanwhile and lends memory.
    ///
    /// # Errors
    /// The first error of a worker, from then on; `Internal` when one is gone.
    pub fn flush(&self, watermark: i64, mut own: Option<&mut WindowAggregate>) -> Result<Flushed> {
        let mut flushed = Flushed::default();
        let Some(shared) = &self.shared else {
            return Ok(flushed);
        };
        if let Some(own) = own.as_mut().filter(|own| own.settles()) {
            shared.ask(watermark);
            own.settle(watermark);
        }
        shared.rest()?;
        for bench in &shared.benches {
            let mut bench = bench.lock().map_err(|_| stopped())?;
            if let Some(error) = &bench.failure {
                return Err(error.clone());
            }
            let handed = bench.handed.take();
            if let (Some(own), Some(theirs)) = (&mut own, &mut bench.stage.aggregate) {
                let partial = handed.unwrap_or_else(|| theirs.take_panes(watermark));
                theirs.take_spare(own, &partial);
                flushed.partials.push(partial);
            }
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
        self.dismiss();
        // A worker that panicked has already said so; dropping must not panic again.
        self.threads.drain(..).for_each(|thread| thread.wait());
    }
}

fn stopped() -> Error {
    Error::internal("a worker thread has stopped").hint("its message stands above")
}

/// Says that a worker is through with its task, or gone.
struct Busy<'a>(&'a Shared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.busy -= 1;
        queue.broken |= std::thread::panicking();
        self.0.done.fetch_add(1, Ordering::Relaxed);
        if queue.awaited || !queue.is_busy() || queue.broken {
            self.0.rested.notify_all();
        }
    }
}

fn work_off(shared: &Shared, index: usize) {
    while let Some(task) = next_task(shared, index) {
        if !perform(shared, index, task) {
            return;
        }
    }
}

/// Does a task at bench `index`; false where an earlier one has panicked.
fn perform(shared: &Shared, index: usize, task: Task) -> bool {
    let busy = Busy(shared);
    let Ok(mut bench) = shared.benches[index].lock() else {
        return false;
    };
    let Bench {
        stage,
        work,
        memory,
        found,
        rows,
        handed,
        failure,
    } = &mut *bench;
    match task {
        Task::Run(mut job) => {
            if failure.is_none() {
                // The last to hold the batch is the frame that goes back: whoever made its memory
                // frees it.
                let lent = job.frame.derived_len == 0;
                if lent {
                    job.frame.borrow_memory(memory);
                }
                if job.is_part {
                    job.arrival.narrow(&mut job.frame, found, work);
                }
                let pushed = stage.push(&mut job.frame, &job.arrival, work);
                if lent {
                    job.frame.return_memory(memory);
                }
                match pushed {
                    Ok(batch) => rows.extend(batch.map(|batch| (job.number, batch))),
                    Err(error) => *failure = Some(error),
                }
            }
            shared.queue().spare.push(job.frame);
        }
        Task::HandOver(watermark) => {
            let aggregate = stage.aggregate.as_mut();
            *handed = aggregate.map(|aggregate| aggregate.take_panes(watermark));
        }
        Task::Close { watermark, threads } => {
            let aggregate = stage.aggregate.as_mut();
            let closed = match (&*failure, aggregate) {
                (Some(error), _) => Err(error.clone()),
                (None, Some(aggregate)) => {
                    aggregate.emit_on(threads);
                    aggregate.close(watermark)
                }
                (None, None) => Ok(Closed::default()),
            };
            if let Err(error) = &closed {
                *failure = Some(error.clone());
            }
            if let Some(lanes) = &mut shared.queue().lanes {
                lanes.hand_in(index, closed);
            }
        }
    }
    drop(bench);
    drop(busy);
    true
}

/// The next task of worker `index`, once there is one; `None` when the run is over.
fn next_task(shared: &Shared, index: usize) -> Option<Task> {
    let mut queue = shared.queue();
    let mut looked = false;
    loop {
        if queue.closed {
            return None;
        }
        if let Some(task) = queue.take(index) {
            return Some(task);
        }
        if !looked {
            let seen = shared.stirred.load(Ordering::Relaxed);
            drop(queue);
            Shared::watch(&shared.stirred, seen);
            queue = shared.queue();
            looked = shared.stirred.load(Ordering::Relaxed) == seen;
            continue;
        }
        queue.asleep += 1;
        queue = shared
            .filled
            .wait(queue)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        queue.asleep -= 1;
    }
}
