//! Overlapping windows, merged from what neighbours share.
//!
//! ```text
//! panes in the window    a b c d e f g        window slides by one: b c d e f g h
//! front (suffixes)       [abcd] [bcd] [cd] [d]    drop [abcd], use [bcd]
//! back                   [efg]                    becomes [efgh]
//! ```
//! A window is one suffix and the back, so a slide costs about three merges of panes, whatever the
//! overlap; when the suffixes are used up, the panes of the window become suffixes. Windows that
//! only grow need no suffixes. Nothing is subtracted: every aggregate is as if merged directly.
//! Where all aggregates can be subtracted, a [`Total`] takes the place of both.
//!
//! # Source
//! Tangwongsan, Hirzel and Schneider, "Low-latency sliding-window aggregation in worst-case
//! constant time", DEBS 2017: the two-stacks algorithm.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use tersecades_columnar::error::{Error, Result};

use crate::window::{Overlap, Span};

use super::emit::{Windows, emit};
use super::pane::Pane;
use super::plan::AggregatePlan;
use super::state::Shared;
use super::total::Total;

/// With fewer panes to a window, merging them is as cheap.
const PANES_MIN: usize = 4;

/// Suffixes pay while a window has at most so many times the groups of a pane.
const SPREAD_MAX: usize = 4;

/// Merged panes of the last window.
#[derive(Debug)]
pub struct Slide {
    overlap: Overlap,
    /// The window merged last, where panes can be subtracted.
    total: Option<Total>,
    /// Merged panes from the named one up to the back, the shortest first.
    front: Vec<(i64, Pane)>,
    /// Merged panes from the named one on.
    back: Option<(i64, Pane)>,
    /// Panes before this are merged; `None` when nothing is.
    merged_to: Option<i128>,
    /// Groups of the window merged last.
    groups: usize,
}

impl Slide {
    /// Nothing merged.
    pub(super) fn new(overlap: Overlap, plan: &AggregatePlan) -> Self {
        let totals = overlap == Overlap::Hopping && plan.is_invertible();
        Slide {
            overlap,
            total: totals.then(|| Total::new(plan)),
            front: Vec::new(),
            back: None,
            merged_to: None,
            groups: usize::MAX,
        }
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        let panes = self.front.iter().chain(&self.back);
        let merged: usize = panes.map(|(_, pane)| pane.byte_size()).sum();
        merged + self.total.as_ref().map_or(0, Total::byte_size)
    }

    /// Forgets what was merged of the pane that starts at `start`, before rows are added to it.
    pub(super) fn touch(&mut self, shared: &mut Shared, panes: &BTreeMap<i64, Pane>, start: i64) {
        if let Some(total) = &mut self.total {
            total.touch(&shared.plan, start, panes.get(&start));
        } else if self.merged_to.is_some_and(|to| i128::from(start) < to) {
            self.clear(shared);
        }
    }

    /// Takes over the pane that starts at `start`, which no further window holds.
    pub(super) fn retire(&mut self, shared: &mut Shared, start: i64, pane: Pane) {
        match &mut self.total {
            Some(total) => total.retire(shared, start, pane),
            None => shared.put_pane(pane),
        }
    }

    fn clear(&mut self, shared: &mut Shared) {
        self.merged_to = None;
        let panes = self.front.drain(..).chain(self.back.take());
        panes.for_each(|(_, pane)| shared.put_pane(pane));
    }

    /// Whether merging by halves pays for `window`; else its panes are merged one by one.
    fn pays(&self, shared: &Shared, panes: &BTreeMap<i64, Pane>, window: Span) -> bool {
        let inside = panes.range(window.first()..=window.last());
        let (count, groups) = inside.fold((0, 0), |(count, groups), (_, pane)| {
            (count + 1, groups + pane.len())
        });
        let spread = self.groups.saturating_mul(count) / groups.max(1);
        match self.overlap {
            Overlap::None => false,
            Overlap::Growing => true,
            Overlap::Hopping => {
                count >= PANES_MIN && spread <= SPREAD_MAX && shared.plan.is_compact()
            }
        }
    }

    /// The result of `window`, whose panes are in `panes`; `None` when there are none.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub(super) fn emit(
        &mut self,
        shared: &mut Shared,
        panes: &BTreeMap<i64, Pane>,
        window: Span,
    ) -> Result<Option<RecordBatch>> {
        let mut inside = panes.range(window.first()..=window.last());
        let (Some((_, first)), second) = (inside.next(), inside.next()) else {
            return Ok(None);
        };
        if let Some(total) = &mut self.total {
            return total.emit(shared, panes, window).map(Some);
        }
        if second.is_none() && self.merged_to.is_none() {
            return result(shared, window, first).map(Some);
        }
        if !self.pays(shared, panes, window) {
            self.clear(shared);
            let inside = panes.range(window.first()..=window.last());
            let merged = merge(shared, inside.map(|(_, pane)| pane));
            return self.finish(shared, window, merged).map(Some);
        }
        self.advance(shared, panes, window);
        match (self.front.last(), &self.back) {
            (Some((_, pane)), None) | (None, Some((_, pane))) => {
                self.groups = pane.len();
                result(shared, window, pane).map(Some)
            }
            (Some((_, front)), Some((_, back))) => {
                let merged = merge(shared, [front, back].into_iter());
                self.finish(shared, window, merged).map(Some)
            }
            (None, None) => Err(Error::internal("a window with panes has none merged")),
        }
    }

    fn finish(&mut self, shared: &mut Shared, window: Span, merged: Pane) -> Result<RecordBatch> {
        self.groups = merged.len();
        let emitted = result(shared, window, &merged);
        shared.put_pane(merged);
        emitted
    }

    /// Makes front and back those of `window`.
    fn advance(&mut self, shared: &mut Shared, panes: &BTreeMap<i64, Pane>, window: Span) {
        let first = window.first();
        while let Some((_, pane)) = self.front.pop_if(|(start, _)| *start < first) {
            shared.put_pane(pane);
        }
        let outdated = |back: &(i64, Pane)| back.0 < first;
        let used_up = self.front.is_empty() && self.back.as_ref().is_none_or(outdated);
        match self.merged_to {
            Some(to) if !used_up && to <= window.end => {
                let from = i64::try_from(to).unwrap_or(i64::MAX).max(first);
                for (start, pane) in panes.range(from..=window.last()) {
                    self.push_back(shared, *start, pane);
                }
            }
            _ => self.start_over(shared, panes, window),
        }
        self.merged_to = Some(window.end);
    }

    fn push_back(&mut self, shared: &mut Shared, start: i64, pane: &Pane) {
        let (_, back) = self.back.get_or_insert_with(|| (start, shared.take_pane()));
        back.merge(&shared.plan, pane);
    }

    /// Turns the panes of the window into suffixes, or into the back if it only grows.
    fn start_over(&mut self, shared: &mut Shared, panes: &BTreeMap<i64, Pane>, window: Span) {
        self.clear(shared);
        let inside = panes.range(window.first()..=window.last());
        if self.overlap == Overlap::Growing {
            inside.for_each(|(start, pane)| self.push_back(shared, *start, pane));
            return;
        }
        for (start, pane) in inside.rev() {
            let shorter = self.front.last().map(|(_, shorter)| shorter);
            let suffix = merge(shared, [pane].into_iter().chain(shorter));
            self.front.push((*start, suffix));
        }
    }
}

fn merge<'a>(shared: &mut Shared, panes: impl Iterator<Item = &'a Pane>) -> Pane {
    let mut merged = shared.take_pane();
    panes.for_each(|pane| merged.merge(&shared.plan, pane));
    merged
}

fn result(shared: &mut Shared, window: Span, pane: &Pane) -> Result<RecordBatch> {
    let order = shared.sorter.sort(&shared.plan.keys, pane);
    emit(&shared.plan, Windows::One(window), pane, order)
}
