//! Frames to the first stage, and closed windows out of it.
//!
//! With workers, the windows that a batch closes come out while the frames after it are worked on
//! already: first the workers hand over their panes, then they get frames again, then the panes are
//! merged and emitted. A frame that this thread runs itself waits for that.

use std::time::{Duration, Instant};

use tersecades_columnar::error::Result;

use super::Running;
use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::operator::window_aggregate::Partial;
use crate::runtime::worker::Job;
use crate::window::Windowing;

/// How long rows of a stage without group-by stay with workers: who keeps them in a store loses no
/// more than that when it is killed.
const HELD_MAX: Duration = Duration::from_secs(1);

/// Windows to be emitted up to a watermark.
pub(super) struct Held {
    watermark: i64,
    /// What the workers have seen before it.
    partials: Vec<Partial>,
}

impl Running {
    pub(super) fn dispatch(&mut self, mut frame: Box<Frame>, arrival: Arrival) -> Result<()> {
        let aggregate = self.stage.aggregate.as_ref();
        if aggregate.is_some_and(|aggregate| !aggregate.wants(&arrival)) {
            self.spare = Some(frame);
            return self.pass_on();
        }
        if self.workers.is_empty() {
            let rows = self.stage.push(&mut frame, &arrival, &mut self.work)?;
            self.spare = Some(frame);
            self.results.extend(rows);
            return self.pass_on();
        }
        if self.goes_by_pane(&arrival) {
            return self.dispatch_by_pane(frame, arrival);
        }
        let job = Job {
            frame,
            arrival,
            number: self.frames,
            is_part: false,
        };
        self.frames += 1;
        if let Some(job) = self.workers.push(job) {
            self.run_here(job)?;
        }
        let in_order = self.plan.aggregate().is_none();
        let is_due =
            self.frames.is_multiple_of(self.workers.round()) || self.flushed.elapsed() >= HELD_MAX;
        match in_order && is_due {
            true => self.flush(),
            false => self.pass_on(),
        }
    }

    /// Runs a frame on this thread.
    fn run_here(&mut self, mut job: Job) -> Result<()> {
        self.emit_held()?;
        let stage = &mut self.stage;
        let rows = stage.push(&mut job.frame, &job.arrival, &mut self.work)?;
        self.spare = Some(job.frame);
        self.unordered.extend(rows.map(|rows| (job.number, rows)));
        Ok(())
    }

    /// Takes over everything the workers hold.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.or_fail(|run| {
            run.end_by_pane()?;
            run.emit_held()?;
            let partials = run.drain_workers(i64::MAX)?;
            run.absorb(partials);
            run.pass_on()
        })
    }

    pub(super) fn absorb(&mut self, partials: Vec<Partial>) {
        if let Some(aggregate) = &mut self.stage.aggregate {
            partials
                .into_iter()
                .for_each(|partial| aggregate.absorb(partial));
        }
    }

    /// Empties the queue, and the workers of what windows up to `watermark` need; their rows become
    /// results, in the order of frames.
    pub(super) fn drain_workers(&mut self, watermark: i64) -> Result<Vec<Partial>> {
        while let Some(job) = self.workers.take() {
            self.run_here(job)?;
        }
        let own = self.stage.aggregate.as_mut();
        let flushed = self.workers.flush(watermark, own)?;
        self.metrics.tally.merge(flushed.tally);
        for meters in &flushed.meters {
            self.stage.absorb_meters(meters);
        }
        self.flushed = Instant::now();
        self.unordered.extend(flushed.rows);
        self.unordered.sort_by_key(|(number, _)| *number);
        let rows = self.unordered.drain(..).map(|(_, rows)| rows);
        self.results.extend(rows);
        Ok(flushed.partials)
    }

    /// Emits the windows that `watermark` has passed, or holds them until the workers have frames.
    pub(super) fn close(&mut self, watermark: i64) -> Result<()> {
        if let Some(aggregate) = &mut self.stage.aggregate {
            aggregate.pull(self.row);
        }
        if self.by_pane.is_on() {
            return self.close_by_pane(watermark);
        }
        if !self.passes_end(watermark) {
            return Ok(());
        }
        self.emit_held()?;
        let final_only = self
            .plan
            .aggregate()
            .is_some_and(|plan| plan.emission.is_none());
        let needed = if final_only { watermark } else { i64::MAX };
        let partials = self.drain_workers(needed)?;
        self.closing = Some(Held {
            watermark,
            partials,
        });
        let more_to_come = self.ingest.never_waits() && watermark != i64::MAX;
        match final_only && more_to_come && !self.workers.is_empty() {
            true => Ok(()),
            false => self.emit_held(),
        }
    }

    /// Whether `watermark` ends windows that have not been emitted and are not held.
    fn passes_end(&self, watermark: i64) -> bool {
        let aggregate = self.stage.aggregate.as_ref();
        let windowing = aggregate.map(|aggregate| &aggregate.plan().window);
        match (&self.closing, windowing) {
            _ if watermark == i64::MAX => true,
            (Some(held), Some(Windowing::Aligned(boundaries))) => {
                boundaries.last_end(watermark) > boundaries.last_end(held.watermark)
            }
            _ => aggregate.is_some_and(|aggregate| aggregate.closes(watermark)),
        }
    }

    /// Emits the windows that are held.
    fn emit_held(&mut self) -> Result<()> {
        let Some(held) = self.closing.take() else {
            return Ok(());
        };
        self.absorb(held.partials);
        self.check_memory()?;
        if let Some(aggregate) = &mut self.stage.aggregate {
            aggregate.advance(held.watermark, &mut self.results)?;
        }
        self.pass_on()
    }
}
