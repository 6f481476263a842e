//! How old results may be that are still to come, where they do not come by their event time.
//!
//! Sessions come by their ends, windows of so many rows as they fill; their event time is where
//! they start. Whoever takes such results as rows must not take a later one as a sign that no
//! earlier one comes.

use super::Running;
use crate::operator::window_aggregate::WindowAggregate;
use crate::runtime::part::Part;
use crate::window::Windowing;

/// The least start of windows that have not been taken.
#[derive(Debug)]
pub(super) struct Oldest {
    /// Of those that are ready, and those to come.
    ready: i64,
    /// Of those to come.
    to_come: i64,
}

impl Oldest {
    /// Any time may come.
    pub(super) fn new() -> Self {
        Oldest {
            ready: i64::MIN,
            to_come: i64::MIN,
        }
    }

    /// No result before `start` comes behind those that are ready; whether some `were_ready`
    /// before.
    pub(super) fn pass(&mut self, start: i64, were_ready: bool) {
        if !were_ready {
            self.ready = self.to_come;
        }
        self.to_come = self.to_come.max(start);
    }
}

impl Running {
    /// The least event time of results that were not taken, those to come included, where they
    /// come in no order of it and it is known.
    pub(crate) fn oldest_to_come(&self) -> Option<i64> {
        let last = self.aggregates().last().map(WindowAggregate::plan);
        match last.map(|plan| &plan.window) {
            Some(Windowing::Aligned(_)) => None,
            Some(_) if self.ready.is_empty() => Some(self.oldest.to_come),
            Some(_) => Some(self.oldest.ready),
            None => self.oldest_row(),
        }
    }

    /// The same of rows that are in no group, as far as their source knows it.
    fn oldest_row(&self) -> Option<i64> {
        let time = self.plan.event_time.expression.as_column();
        let oldest = self.ingest.oldest_to_come(time)?;
        // Workers may have rows of batches before the last.
        let start = match self.workers.is_empty() {
            true => oldest,
            false => i64::MIN,
        };
        let tails = self.tails.iter();
        Some(tails.fold(start, |start, part: &Part| part.least_start(start)))
    }
}
