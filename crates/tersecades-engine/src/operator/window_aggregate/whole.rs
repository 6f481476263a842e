//! State of a group-by without windows: one set of groups until the end of the stream, or several,
//! of the same groups, where workers brought many and their result is made from all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};

use super::first::emit_asked;
use super::joined::{emit_joined, is_shared_out, stay_apart};
use super::pane::{Pane, fold_left_over};
use super::state::{Shared, WindowState, merge_panes, read_panes, write_panes};

/// The name of the pane that rows are added to; panes that stay apart have the names behind it.
pub(super) const WHOLE: i64 = 0;

/// The groups of the whole stream.
#[derive(Debug, Default)]
pub struct WholeState {
    panes: BTreeMap<i64, Pane>,
    /// Whether the result has come out.
    ended: bool,
}

impl WholeState {
    /// Makes one pane of all.
    fn merge(&mut self, shared: &mut Shared) {
        let apart = self.panes.split_off(&(WHOLE + 1));
        for pane in apart.into_values() {
            merge_panes(shared, &mut self.panes, BTreeMap::from([(WHOLE, pane)]));
        }
    }
}

impl WindowState for WholeState {
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
        let plan = Arc::clone(&shared.plan);
        let pane = self
            .panes
            .entry(WHOLE)
            .or_insert_with(|| shared.take_pane());
        if let Some(fold) = fold_left_over(&plan, frame, work) {
            pane.add_folds(fold.count, &[fold]);
            return Ok(());
        }
        let rows = (&*frame, &frame.selection, arrival.rows_before);
        pane.add(&plan, rows, (&mut shared.scratch, work))
    }

    fn closes(&self, watermark: i64) -> bool {
        watermark == i64::MAX
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        if watermark != i64::MAX || self.ended {
            return Ok(());
        }
        self.ended = true;
        let is_large = |pane: &Pane| is_shared_out(&shared.plan, pane);
        if self.panes.len() > 1 || self.panes.values().any(is_large) {
            let panes: Vec<&Pane> = self.panes.values().collect();
            if emit_joined(&shared.plan, &panes, out)? {
                self.panes.clear();
                return Ok(());
            }
            self.merge(shared);
        }
        let one_group = shared.plan.keys.columns.is_empty();
        let mut pane = match self.panes.remove(&WHOLE) {
            Some(pane) => pane,
            None if one_group => shared.take_pane(),
            None => return Ok(()),
        };
        if one_group {
            pane.grow(1);
        }
        out.push(emit_asked(&shared.plan, &pane, &mut shared.sorter)?);
        shared.put_pane(pane);
        Ok(())
    }

    fn least_start(&self, _: i64) -> i64 {
        i64::MIN
    }

    fn byte_size(&self) -> usize {
        self.panes.values().map(Pane::byte_size).sum()
    }

    fn take(&mut self, _watermark: i64) -> BTreeMap<i64, Pane> {
        std::mem::take(&mut self.panes)
    }

    fn absorb(&mut self, shared: &mut Shared, panes: BTreeMap<i64, Pane>) {
        for pane in panes.into_values() {
            let last = self.panes.last_key_value();
            let next = last.map_or(WHOLE, |(last, _)| last + 1);
            let known = self.panes.get(&WHOLE);
            let apart = known.is_none_or(|known| stay_apart(&shared.plan, known, &pane));
            if apart && self.panes.len() <= shared.plan.threads {
                self.panes.insert(next, pane);
                continue;
            }
            merge_panes(shared, &mut self.panes, BTreeMap::from([(WHOLE, pane)]));
        }
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        write_panes(&self.panes, out);
        Ok(())
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.panes = read_panes(&shared.plan, from)?;
        Ok(())
    }
}
