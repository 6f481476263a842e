//! State of windows of so many rows that come out more than once.
//!
//! ```text
//! rows ──▶ windows ──results come──▶ those that filled, in this order, then those that got rows,
//!                                    by keys; what came out of one before is taken back first
//! ```
//! A window is named by its ends, which rows move, and two windows of one key may have equal ends.
//! So nothing is updated: rows that came out are kept until their window fills, and are taken back
//! as they were.

use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::global::Forever;
use crate::window::{Emission, Rhythm};

use super::count::CountState;
use super::pane::NO_GROUP;
use super::shown::{Shown, ShownRows, rows_of};
use super::slot::touch;
use super::state::{Shared, WindowState};
use super::update::{DELETE, INSERT, with_change};

/// Windows that fill up, and what came out of them.
#[derive(Debug)]
pub struct UpdatingCounts {
    emission: Emission,
    counts: CountState,
    /// By how many rows a window had when it came out.
    shown: ShownRows<u64>,
    /// Slots with rows since windows that are not full last came out.
    touched: Vec<u32>,
    /// The watermark when results last came.
    closed_to: i64,
}

impl UpdatingCounts {
    /// No window; each takes `rows` rows.
    pub(super) fn new(shared: &Shared, rows: u64, emission: Emission) -> Self {
        UpdatingCounts {
            emission,
            counts: CountState::new(shared, rows),
            shown: ShownRows::new(),
            touched: Vec::new(),
            closed_to: i64::MIN,
        }
    }

    /// Whether windows that are not full come out at `watermark`.
    fn passes(&self, watermark: i64) -> bool {
        self.emission.rhythm == Rhythm::Batch
            || self.emission.passes(&Forever, self.closed_to, watermark)
    }

    /// The windows with room for more that got rows since they last came out.
    fn take_changed(&mut self) -> Vec<u32> {
        let mut changed = std::mem::take(&mut self.touched);
        changed.sort_unstable();
        changed.dedup();
        let shown = |slot: u32| self.shown.get(slot).map(|shown| shown.window);
        changed.retain(|slot| {
            self.counts.is_filling(*slot) && shown(*slot) != Some(self.counts.rows(*slot))
        });
        changed
    }

    /// Gives touched slots the numbers `targets`; those without one are of windows that came out.
    fn rename_touched(&mut self, targets: &[u32]) {
        self.touched.retain_mut(|slot| {
            *slot = targets[*slot as usize];
            *slot != NO_GROUP
        });
    }

    /// Emits the windows of `slots`, each behind what is taken back of it, in this order if they
    /// are `full`, else by key.
    fn emit_changes(
        &mut self,
        shared: &mut Shared,
        (slots, full): (&[u32], bool),
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let (rows, order) = self.counts.results(shared, slots, !full)?;
        let rows = Arc::new(rows);
        let slots: Vec<u32> = order.iter().map(|at| slots[*at as usize]).collect();
        let before: Vec<Option<Shown<u64>>> =
            slots.iter().map(|slot| self.shown.take(*slot)).collect();
        let (mut places, mut kinds) = (Vec::new(), Vec::new());
        for (row, before) in before.iter().enumerate() {
            if let Some(before) = before {
                places.push(before.place());
                kinds.push(DELETE);
            }
            places.push((&rows, row));
            kinds.push(INSERT);
        }
        out.push(with_change(&rows_of(&places)?, kinds.into_iter())?);
        if full {
            return Ok(());
        }
        let counts = &self.counts;
        let slots = slots.into_iter().map(|slot| (slot, counts.rows(slot)));
        self.shown.keep(&rows, slots)
    }
}

impl WindowState for UpdatingCounts {
    fn admit(&mut self, _: &mut Shared, _: &mut Frame, _: &Arrival, _: &mut Work) -> Result<()> {
        Ok(())
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        self.counts.add(shared, frame, arrival, work)?;
        self.shown.grow(self.counts.len());
        touch(&mut self.touched, self.counts.added(), self.counts.len());
        Ok(())
    }

    fn closes(&self, watermark: i64) -> bool {
        self.passes(watermark) || self.counts.closes(watermark)
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let full = self.counts.take_full();
        self.emit_changes(shared, (&full, true), out)?;
        if self.passes(watermark) {
            let changed = self.take_changed();
            self.emit_changes(shared, (&changed, false), out)?;
        }
        self.closed_to = self.closed_to.max(watermark);
        if let Some(targets) = self.counts.tidy(shared) {
            self.shown.rename(&targets, self.counts.len());
            self.rename_touched(&targets);
        }
        Ok(())
    }

    fn least_start(&self, watermark: i64) -> i64 {
        self.counts.least_start(watermark)
    }

    fn byte_size(&self) -> usize {
        self.counts.byte_size()
            + self.shown.byte_size()
            + self.touched.capacity() * size_of::<u32>()
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.i64(self.closed_to);
        self.counts.snapshot(out)?;
        self.shown.snapshot(out, |rows, out| out.u64(rows))
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.closed_to = from.i64()?;
        self.counts.restore(shared, from)?;
        let slots = self.counts.len();
        self.shown
            .restore(shared, (from, slots), |from| from.u64())?;
        // Which of them changed is told by the rows that they came out with.
        self.touched = self.counts.filling();
        Ok(())
    }
}
