//! Frames to workers by pane, where all batches are at hand and panes have a few of them each.
//!
//! A frame with rows of several panes is dispatched once for each, whose worker finds its rows.
//! What workers have of closed windows is collected where frames are dispatched, in the order in
//! which the watermark passed their ends.

use std::collections::VecDeque;
use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::Result;

use super::Running;
use crate::event_time::{Arrival, time_range};
use crate::frame::Frame;
use crate::operator::window_aggregate::feed::Sharing;
use crate::runtime::option::RunOptions;
use crate::runtime::stage::StagePlan;
use crate::runtime::worker::Job;
use crate::window::{Boundaries, Overlap, Windowing};

/// Most parts of a frame.
const PARTS_MAX: usize = 8;

/// Panes there must be for each thread, so that all have as much to do.
const PANES_PER_THREAD: u64 = 2;

/// Panes of frames that wait for each thread, at most, so that workers lack none while the run's
/// thread works out results; fewer in tests, whose streams are short.
const PANES_WAITING: usize = if cfg!(test) { 1 } else { 8 };

/// Most panes of a window that others share: each is looked at for every frame.
const PANES_SHARED_MAX: i128 = 64;

/// Batches of a pane, at least and at most: with fewer, most frames are of several panes; with
/// more, what waits is long, and workers that take any frame are as well off.
const BATCHES: (usize, usize) = (2, 64);

/// Whether frames go to workers by pane.
pub(super) enum ByPane {
    No,
    /// The first frame will tell.
    Perhaps(Arc<dyn Boundaries>),
    Yes(Panes),
}

/// Panes whose frames are under way.
pub(super) struct Panes {
    boundaries: Arc<dyn Boundaries>,
    /// Watermarks that windows are being closed up to, in order.
    closing: VecDeque<i64>,
    /// The last window end before them.
    closed_to: i128,
    /// Most frames that wait for a worker.
    waiting_max: usize,
}

impl ByPane {
    /// What the plan says: not where panes hold no groups to be merged, or are someone else's.
    ///
    /// Nor where windows only grow: each of their panes is needed until the last one closes.
    pub(super) fn of(plan: &StagePlan, options: &RunOptions) -> Self {
        let aggregate = plan.aggregate().filter(|aggregate| {
            let alone = matches!(aggregate.sharing, Sharing::Alone);
            alone && aggregate.emission.is_none() && !aggregate.keys.columns.is_empty()
        });
        let limited = options.memory_bytes_limit.is_some() || options.threads < 2;
        match aggregate.map(|aggregate| &aggregate.window) {
            Some(Windowing::Aligned(boundaries))
                if !limited
                    && !boundaries.leaves_gaps()
                    && boundaries.overlap() != Overlap::Growing =>
            {
                ByPane::Perhaps(Arc::clone(boundaries))
            }
            _ => ByPane::No,
        }
    }

    /// Whether the first frame will tell.
    pub(super) fn may_be(&self) -> bool {
        matches!(self, ByPane::Perhaps(_))
    }

    /// Whether frames go to workers by pane.
    pub(super) fn is_on(&self) -> bool {
        matches!(self, ByPane::Yes(_))
    }
}

impl Running {
    /// Whether frames go to workers by pane; the first one decides.
    pub(super) fn goes_by_pane(&mut self, arrival: &Arrival) -> bool {
        if let ByPane::Perhaps(boundaries) = &self.by_pane {
            let boundaries = Arc::clone(boundaries);
            let batches = self.batches_of_pane(&*boundaries, arrival);
            self.by_pane = match batches.filter(|_| self.workers.begin_lanes()) {
                Some(batches) => ByPane::Yes(Panes {
                    boundaries,
                    closing: VecDeque::new(),
                    closed_to: i128::MIN,
                    waiting_max: batches * self.options.threads * PANES_WAITING,
                }),
                None => ByPane::No,
            };
        }
        self.by_pane.is_on()
    }

    /// Batches of a pane, if it pays that a worker has them all.
    fn batches_of_pane(&self, boundaries: &dyn Boundaries, arrival: &Arrival) -> Option<usize> {
        let batches = self.ingest.at_hand()?;
        let (first, last) = arrival.time_range;
        let newest = |batch: &&Batch| {
            let time = batch.columns().get(arrival.time_slot)?;
            time_range(time).ok()?.map(|(_, newest)| newest)
        };
        let newest_of_all = batches.last().and_then(newest)?;
        let ticks = newest_of_all.abs_diff(last);
        let pane = boundaries.pane(first);
        let width = u64::try_from(pane.end - pane.start).ok()?;
        let panes = ticks / width.max(1);
        let of_pane = batches.len() / usize::try_from(panes).ok()?.max(1);
        let window = boundaries.ending_after(first);
        let shared = (window.end - window.start) / (pane.end - pane.start).max(1);
        let pays = shared <= PANES_SHARED_MAX
            && last.abs_diff(first) <= width / 2
            && panes >= self.options.threads as u64 * PANES_PER_THREAD
            && (BATCHES.0..=BATCHES.1).contains(&of_pane);
        pays.then_some(of_pane)
    }

    /// Queues a frame for the workers that have the panes of its rows.
    pub(super) fn dispatch_by_pane(&mut self, frame: Box<Frame>, arrival: Arrival) -> Result<()> {
        let ByPane::Yes(panes) = &self.by_pane else {
            return Ok(());
        };
        let (boundaries, waiting_max) = (Arc::clone(&panes.boundaries), panes.waiting_max);
        let (first, mut last) = arrival.time_range;
        // Late rows go with those of the first pane that is open.
        let open = match arrival.watermark {
            i64::MIN => i64::MIN,
            watermark => boundaries.ending_after(watermark).first(),
        };
        let least = boundaries.pane(first.max(open));
        let mut parts = Vec::new();
        let mut pane = boundaries.pane(last.max(open));
        while pane.start > least.start {
            if parts.len() + 1 == PARTS_MAX {
                // From here on all frames go to whichever worker is free.
                self.flush()?;
                return self.dispatch(frame, arrival);
            }
            parts.push((pane.first(), (pane.first().max(first), last)));
            last = pane.first() - 1;
            pane = boundaries.pane(last);
        }
        parts.push((least.first(), (first, last)));
        let is_part = parts.len() > 1;
        let mut frames = Vec::with_capacity(parts.len());
        for _ in 1..parts.len() {
            let mut part = self.timed_frame(&frame.batch)?;
            part.selection.copy_from(&frame.selection);
            frames.push(part);
        }
        frames.push(frame);
        for ((pane, time_range), frame) in parts.into_iter().rev().zip(frames) {
            let job = Job {
                frame,
                arrival: Arrival {
                    time_range,
                    ..arrival
                },
                number: self.frames,
                is_part,
            };
            self.frames += 1;
            self.workers.push_to_lane(pane, job);
        }
        self.work_by_pane(waiting_max)
    }

    /// Works off frames on this thread until at most `limit` wait. Windows are emitted one at a
    /// time, so that workers do not run out of frames meanwhile.
    fn work_by_pane(&mut self, limit: usize) -> Result<()> {
        loop {
            self.collect_by_pane()?;
            if !self.workers.run_lane(limit)? {
                return Ok(());
            }
            if self.finished {
                self.check_interrupt()?;
            }
        }
    }

    /// Has the windows closed that `watermark` has passed; at the end of the stream waits for all.
    pub(super) fn close_by_pane(&mut self, watermark: i64) -> Result<()> {
        let ByPane::Yes(panes) = &mut self.by_pane else {
            return Ok(());
        };
        if watermark == i64::MAX {
            panes.closing.push_back(watermark);
            self.workers.close_lanes(self.frames, watermark, watermark);
            self.end_by_pane()?;
            return self.close(watermark);
        }
        let end = panes.boundaries.last_end(watermark);
        if end > panes.closed_to {
            panes.closed_to = end;
            panes.closing.push_back(watermark);
            let open = panes.boundaries.ending_after(watermark).first();
            self.workers.close_lanes(self.frames, watermark, open);
        }
        Ok(())
    }

    /// Emits the windows of the first watermark that all workers have closed, if there is one.
    fn collect_by_pane(&mut self) -> Result<bool> {
        let ByPane::Yes(panes) = &mut self.by_pane else {
            return Ok(false);
        };
        let Some(closed) = self.workers.collect_lanes().transpose() else {
            return Ok(false);
        };
        let watermark = panes.closing.pop_front().unwrap_or(i64::MIN);
        let closed = closed?;
        if self.finished && watermark == i64::MAX {
            // Emitting the last windows takes longer than threads take to leave.
            self.workers.dismiss();
        }
        let mut windows = Vec::new();
        for worker in closed {
            windows.extend(worker.windows);
            self.absorb(vec![worker.partial]);
        }
        windows.sort_by_key(|(start, _)| *start);
        self.results
            .extend(windows.into_iter().map(|(_, rows)| rows));
        if let Some(aggregate) = &mut self.stage.aggregate {
            aggregate.advance(watermark, &mut self.results)?;
        }
        self.pass_on()?;
        Ok(true)
    }

    /// Waits for the frames that are under way; the next ones go to whoever is free.
    pub(super) fn end_by_pane(&mut self) -> Result<()> {
        if self.by_pane.is_on() {
            self.work_by_pane(0)?;
            while self.collect_by_pane()? {}
            self.workers.finish_lanes()?;
            while self.collect_by_pane()? {}
            self.workers.end_lanes();
        }
        self.by_pane = ByPane::No;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
