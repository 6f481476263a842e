//! Bytes that a run holds, and what happens at their limit.

use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use super::Running;
use crate::operator::window_aggregate::WindowAggregate;
use crate::plan::EventTime;
use crate::runtime::ingest::Ingest;
use crate::runtime::option::{OnLimit, RunOptions};
use crate::runtime::part::Part;
use crate::runtime::retained::Retained;

/// The range that a run keeps of what `ingest` reads, if it keeps one; empty yet.
pub(super) fn range_of(
    ingest: &Ingest,
    event_time: &EventTime,
    options: &RunOptions,
    tick_ns: i64,
) -> Option<Retained> {
    let schema = Arc::clone(ingest.schema());
    let time = (event_time.clone(), &options.time);
    let partitions = (0..ingest.partitions()).map(|index| ingest.partition_name(index));
    let range = Retained::new(schema, time, (options.keep?, tick_ns), partitions.collect());
    Some(range.observed_as(options.observed.clone()))
}

impl Running {
    /// Bytes of window state, kept rows and retained batches; what worker threads hold is not among
    /// them, as that waits for their frames.
    pub fn state_bytes(&self) -> usize {
        let panes: usize = self.aggregates().map(WindowAggregate::byte_size).sum();
        let rows: usize = self.tails.iter().map(Part::row_bytes).sum();
        let source = self.ingest.source_state().bytes;
        panes + rows + source + self.retained.as_ref().map_or(0, Retained::byte_size)
    }

    /// Keeps a batch of times in `range`, which the watermark has passed, where the stream is kept;
    /// times too far in the future to move it count as the newest that did.
    pub(super) fn retain(&self, batch: &Arc<Batch>, range: Option<(i64, i64)>) {
        if let Some(retained) = &self.retained {
            let last = range.map(|(_, last)| last);
            let moved = self.watermark.newest();
            let newest = match moved.is_some() && last > moved {
                true => moved,
                false => self.ingest.newest().or(last),
            };
            let is_late = newest.is_some_and(|newest| newest < self.watermark.current());
            let at = (self.ingest.partition(), self.came_at);
            let holding = self.watermark.partitions().holding();
            retained.push(batch, (newest, is_late), at, holding);
        }
    }

    /// Stays below the memory limit, by what is asked for of the retained range.
    pub(super) fn check_memory(&self) -> Result<()> {
        let Some(limit) = self.options.memory_bytes_limit else {
            return Ok(());
        };
        let mut used = self.state_bytes() + self.workers.byte_size();
        let mut done = String::new();
        if let Some(retained) = self.retained.as_ref().filter(|_| used > limit) {
            match self.options.on_limit {
                OnLimit::Refuse => {}
                OnLimit::Shorten => {
                    used -= retained.shorten(used - limit);
                    let rows = retained.shortened_rows();
                    done = format!(" although {rows} retained rows were dropped");
                }
                OnLimit::Spill => {
                    used -= retained.spill(used - limit)?;
                    let bytes = retained.spilled_bytes();
                    done = format!(" although {bytes} retained bytes were put into files");
                }
            }
        }
        match used > limit {
            true => {
                let what = "window state and retained batches take";
                let message = format!("{what} {used} bytes{done}, the limit is {limit}");
                Err(Error::limit(message)
                    .hint("raise the limit, shorten windows or retention, or group by fewer keys"))
            }
            false => Ok(()),
        }
    }
}
