//! State of a group-by without windows whose results come again and again.
//!
//! ```text
//! rows ──▶ fresh groups ──results come──▶ merged into settled ones, which come out as changed
//! ```
//! What comes costs as much as there are groups with rows since it last came.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::global::Forever;
use crate::window::{Emission, Rhythm};

use super::emit::{Windows, emit};
use super::pane::Pane;
use super::state::{Shared, WindowState, read_panes, write_panes};
use super::update::{INSERT, UPDATE, with_change};
use super::whole::{WHOLE, WholeState};

/// The groups of the whole stream, with what changed since results last came apart.
#[derive(Debug)]
pub struct UpdatingWhole {
    emission: Emission,
    /// Rows since results last came.
    fresh: WholeState,
    /// What came out; at most one pane.
    settled: BTreeMap<i64, Pane>,
    /// The watermark when results last came.
    closed_to: i64,
}

impl UpdatingWhole {
    /// No group.
    pub(super) fn new(emission: Emission) -> Self {
        UpdatingWhole {
            emission,
            fresh: WholeState::default(),
            settled: BTreeMap::new(),
            closed_to: i64::MIN,
        }
    }

    /// The groups with rows since results last came; at the end also the one group there is
    /// without keys and rows.
    fn changed(&mut self, shared: &mut Shared, watermark: i64) -> Option<Pane> {
        let one_group = shared.plan.keys.columns.is_empty();
        let mut fresh = match self.fresh.take(watermark).remove(&WHOLE) {
            Some(fresh) => fresh,
            None if one_group && watermark == i64::MAX && self.settled.is_empty() => {
                shared.take_pane()
            }
            None => return None,
        };
        if one_group {
            fresh.grow(1);
        }
        Some(fresh)
    }
}

impl WindowState for UpdatingWhole {
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
        self.fresh.add(shared, frame, arrival, work)
    }

    fn closes(&self, watermark: i64) -> bool {
        self.emission.rhythm == Rhythm::Batch
            || self.emission.passes(&Forever, self.closed_to, watermark)
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        self.closed_to = self.closed_to.max(watermark);
        let Some(fresh) = self.changed(shared, watermark) else {
            return Ok(());
        };
        let one_group = shared.plan.keys.columns.is_empty();
        let settled = self.settled.entry(WHOLE);
        let settled = settled.or_insert_with(|| shared.take_pane());
        let known = settled.len();
        settled.merge(&shared.plan, &fresh);
        if one_group {
            settled.grow(1);
        }
        let sorted = shared.sorter.sort(&shared.plan.keys, &fresh).iter();
        let order: Vec<u32> = sorted
            .map(|id| match one_group {
                true => 0,
                false => settled.groups.assign_one(fresh.groups.key(*id as usize)),
            })
            .collect();
        let emitted = emit(&shared.plan, Windows::None, settled, &order)?;
        let kinds = order.iter().map(|id| match (*id as usize) < known {
            true => UPDATE,
            false => INSERT,
        });
        out.push(with_change(&emitted, kinds)?);
        shared.put_pane(fresh);
        Ok(())
    }

    fn least_start(&self, _: i64) -> i64 {
        i64::MIN
    }

    fn byte_size(&self) -> usize {
        let settled: usize = self.settled.values().map(Pane::byte_size).sum();
        settled + self.fresh.byte_size()
    }

    fn take(&mut self, watermark: i64) -> BTreeMap<i64, Pane> {
        self.fresh.take(watermark)
    }

    fn absorb(&mut self, shared: &mut Shared, panes: BTreeMap<i64, Pane>) {
        self.fresh.absorb(shared, panes);
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.i64(self.closed_to);
        write_panes(&self.settled, out);
        self.fresh.snapshot(out)
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.closed_to = from.i64()?;
        self.settled = read_panes(&shared.plan, from)?;
        self.fresh.restore(shared, from)
    }
}
