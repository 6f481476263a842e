//! Frames by pane: all rows of a pane go to one worker, which has the pane's groups to itself.
//!
//! ```text
//! frames    0  1  2  3a 3b 4  5 …    3 has rows of two panes: its parts are two frames
//! pane 10   0  1  2  3a              the worker's that took 0
//! pane 20               3b 4  5      the worker's that took 3b
//! ```
//! Each worker takes what it may in the order of the stream, so that its state is that of a run
//! over its panes alone. A pane belongs to whoever takes its first frame. Where windows close,
//! every worker closes what it has of them after the frames that came before, or hands over the
//! panes that windows share, while others go on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;

use tersecades_columnar::error::Result;

use crate::operator::window_aggregate::Closed;

use super::{Job, Task, Workers, perform, stopped};

/// Watermarks that a worker may be behind in closing windows; fewer in tests, as of panes.
const BEHIND_MAX: usize = if cfg!(test) { 4 } else { 16 };

/// What waits to be run of one pane.
#[derive(Debug, Default)]
struct Lane {
    owner: Option<usize>,
    jobs: VecDeque<Job>,
    /// Whether no further frame has rows of the pane.
    complete: bool,
}

/// What one worker is asked to do besides frames, and has done.
#[derive(Debug, Default)]
struct Asked {
    /// Watermarks to close windows up to, each with how many frames came before and how many
    /// threads may work out a result.
    closings: VecDeque<(u64, i64, usize)>,
    closed: VecDeque<Result<Closed>>,
}

/// What waits to be run, by pane.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By the first time of the pane.
    lanes: BTreeMap<i64, Lane>,
    workers: Vec<Asked>,
    waiting: usize,
}

impl Lanes {
    /// Nothing to do for so many workers.
    pub(super) fn new(workers: usize) -> Self {
        let workers = (0..workers).map(|_| Asked::default());
        Lanes {
            workers: workers.collect(),
            ..Lanes::default()
        }
    }

    /// Frames that no worker has taken.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether some worker has something to do.
    pub(super) fn is_busy(&self) -> bool {
        let closes = |worker: &Asked| !worker.closings.is_empty();
        self.waiting > 0 || self.workers.iter().any(closes)
    }

    /// Adds a frame of which the rows in the pane that starts at `pane` are meant, and late ones.
    pub(super) fn push(&mut self, pane: i64, job: Job) {
        self.waiting += 1;
        self.lanes.entry(pane).or_default().jobs.push_back(job);
    }

    /// Asks every worker to close windows up to `watermark`, after the frames of a number below
    /// `number`; later frames have no rows of panes before `open`.
    pub(super) fn close(&mut self, number: u64, watermark: i64, open: i64) {
        // At the end of the stream more threads than panes may be left.
        let threads = match watermark {
            i64::MAX => self.workers.len() / self.lanes.len().max(1),
            _ => 1,
        };
        for worker in &mut self.workers {
            let closing = (number, watermark, threads.max(1));
            worker.closings.push_back(closing);
        }
        self.lanes.range_mut(..open).for_each(|(_, lane)| {
            lane.complete = true;
        });
        self.lanes
            .retain(|_, lane| !lane.complete || !lane.jobs.is_empty());
    }

    /// What `worker` has to do next, if there is anything.
    pub(super) fn take(&mut self, worker: usize) -> Option<Task> {
        let free = |lane: &Lane| lane.owner.is_none_or(|owner| owner == worker);
        let lanes = self.lanes.iter().filter(|(_, lane)| free(lane));
        let first = |(pane, lane): (&i64, &Lane)| Some((lane.jobs.front()?.number, *pane));
        let next = lanes.filter_map(first).min();
        let closings = &mut self.workers[worker].closings;
        if let Some((number, watermark, threads)) = closings.front().copied()
            && next.is_none_or(|(next, _)| next >= number)
        {
            closings.pop_front();
            return Some(Task::Close { watermark, threads });
        }
        let (_, pane) = next?;
        let lane = self.lanes.get_mut(&pane)?;
        lane.owner = Some(worker);
        let job = lane.jobs.pop_front()?;
        self.waiting -= 1;
        if lane.complete && lane.jobs.is_empty() {
            self.lanes.remove(&pane);
        }
        Some(Task::Run(job))
    }

    /// Takes what `worker` had of the windows that it was asked to close.
    pub(super) fn hand_in(&mut self, worker: usize, closed: Result<Closed>) {
        self.workers[worker].closed.push_back(closed);
    }

    /// Watermarks that the last worker is behind in closing windows.
    fn behind(&self) -> usize {
        let closings = self.workers.iter().map(|worker| worker.closings.len());
        closings.max().unwrap_or(0)
    }

    /// Whether the windows that were closed first wait for `worker` alone.
    fn waits_for(&self, worker: usize) -> bool {
        let mut workers = self.workers.iter().enumerate();
        workers.all(|(index, it)| (index == worker) == it.closed.is_empty())
    }

    /// What all workers had of the windows that were closed first, once all have closed them.
    ///
    /// # Errors
    /// The first error of a worker.
    pub(super) fn collect(&mut self) -> Option<Result<Vec<Closed>>> {
        let is_done = |worker: &Asked| !worker.closed.is_empty();
        if !self.workers.iter().all(is_done) {
            return None;
        }
        let closed = self.workers.iter_mut();
        let closed = closed.filter_map(|worker| worker.closed.pop_front());
        // All of them, also where one has failed.
        let closed: Vec<Result<Closed>> = closed.collect();
        Some(closed.into_iter().collect())
    }
}

impl Workers {
    /// From here on frames go to workers by pane; whether they may.
    pub fn begin_lanes(&self) -> bool {
        let Some(shared) = &self.shared else {
            return false;
        };
        let benches = shared.benches.len();
        if benches == self.threads.len() {
            return false;
        }
        shared.queue().lanes = Some(Lanes::new(benches));
        true
    }

    /// Queues a frame of the pane that starts at `pane`.
    pub fn push_to_lane(&self, pane: i64, job: Job) {
        self.stir_lanes(|lanes| lanes.push(pane, job));
    }

    /// Asks every worker to close windows; see `Lanes::close`.
    pub fn close_lanes(&self, number: u64, watermark: i64, open: i64) {
        self.stir_lanes(|lanes| lanes.close(number, watermark, open));
    }

    /// What all workers had of the windows that were closed first, once all have closed them.
    ///
    /// # Errors
    /// The first error of a worker.
    pub fn collect_lanes(&self) -> Result<Option<Vec<Closed>>> {
        let shared = self.shared.as_ref();
        shared
            .and_then(|shared| shared.queue().lanes.as_mut()?.collect())
            .transpose()
    }

    /// Waits until the workers are through with all that was queued by pane.
    ///
    /// # Errors
    /// `Internal` when a worker is gone.
    pub fn finish_lanes(&self) -> Result<()> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.rest())
    }

    /// From here on frames go to whichever worker is free.
    pub fn end_lanes(&self) {
        if let Some(shared) = &self.shared {
            shared.queue().lanes = None;
        }
    }

    fn stir_lanes(&self, change: impl FnOnce(&mut Lanes)) {
        if let Some(shared) = &self.shared {
            let mut queue = shared.queue();
            queue.lanes.as_mut().map(change);
            shared.stirred.fetch_add(1, Ordering::Relaxed);
            // Whoever may take a frame of a pane is not known to be the first to wake up.
            if queue.asleep > 0 {
                shared.filled.notify_all();
            }
        }
    }

    /// Does a task on this thread, or waits for one of a worker, while more than `limit` frames
    /// wait, windows wait for this thread alone, or a worker is far behind; at none while there is
    /// a task for this thread. False where nothing was to be done.
    ///
    /// # Errors
    /// `Internal` when a worker is gone.
    pub fn run_lane(&self, limit: usize) -> Result<bool> {
        let Some(shared) = &self.shared else {
            return Ok(false);
        };
        let own = self.threads.len();
        let mut queue = shared.queue();
        let lanes = queue.lanes.as_ref();
        let waiting = lanes.map_or(0, Lanes::waiting);
        let awaited = lanes.is_some_and(|lanes| lanes.waits_for(own));
        let behind = lanes.map_or(0, Lanes::behind) > BEHIND_MAX;
        if limit > 0 && waiting <= limit && !awaited && !behind {
            return Ok(false);
        }
        let task = queue.take(own);
        drop(queue);
        match task.map(|task| perform(shared, own, task)) {
            Some(true) => Ok(true),
            Some(false) => Err(stopped()),
            None if limit == 0 && waiting == 0 => Ok(false),
            None => shared.wait_for_one().map(|()| true),
        }
    }
}
