//! What moves the watermark besides rows: partitions that end or fall silent, and the clock.

use std::time::Duration;

use tersecades_columnar::error::Result;

use super::Running;
use crate::event_time::clock::whole_ticks;

impl Running {
    /// Takes in how the source's partitions stand after it was asked for a batch, which had
    /// `rows` rows; closes what may close since.
    pub(super) fn observe_source(&mut self, rows: usize) -> Result<()> {
        if self.time.is_none() {
            return Ok(());
        }
        self.hold()?;
        let options = &self.options.time;
        let silent = rows == 0 && options.kind.goes_by_clock();
        let partitions = self.watermark.partitions().count();
        let judged = partitions > 1 || options.future_limit.is_some() || silent;
        if !judged && self.retained.is_none() {
            return Ok(());
        }
        let came_at = self.ingest.came_at();
        let now = came_at.unwrap_or_else(|| options.clock.0.now());
        self.came_at = Some(now);
        let clock = (now, options.idle_timeout);
        if let Some(limit) = options.future_limit {
            self.watermark
                .set_future(self.ticks(now.saturating_add(limit)));
        }
        for partition in 0..partitions {
            let state = self.ingest.partition_state(partition);
            self.watermark.observe(partition, state, clock);
        }
        self.watermark.set_partition(self.ingest.partition());
        let mut moved = self.watermark.settle();
        if silent {
            moved |= self.watermark.advance_to(self.ticks(now));
        }
        match moved {
            true => self.close(self.watermark.current()),
            false => Ok(()),
        }
    }

    /// Holds the watermark back where the source knows of older rows to come.
    fn hold(&mut self) -> Result<()> {
        let computed = self
            .time
            .as_ref()
            .is_none_or(|time| time.computed.is_some());
        let column = self.plan.event_time.expression.as_column();
        let time = column.filter(|_| !computed);
        let oldest = self.ingest.oldest_to_come(time);
        match self.watermark.hold_at(oldest.unwrap_or(i64::MAX)) && self.watermark.settle() {
            true => self.close(self.watermark.current()),
            false => Ok(()),
        }
    }

    fn ticks(&self, since_epoch: Duration) -> i64 {
        whole_ticks(since_epoch, self.tick_ns)
    }
}
