//! Overlapping windows as a running total: panes that enter are added, those that leave subtracted.
//!
//! ```text
//! window    a b c d      total = a + b + c + d
//! next        b c d e    total − a + e
//! ```
//! A slide costs the groups of two panes, whatever the overlap. Where keys are few texts, groups
//! lie in the order of keys, so that a result is read off without sorting; else groups that became
//! empty are left out until there are more of them than others, and then the total is made anew. A
//! pane that rows are added to is taken out before and comes back with the next window.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use tersecades_columnar::error::Result;
use tersecades_columnar::kernels::kernels;

use crate::window::Span;

use super::emit::{Windows, emit, emit_positions};
use super::pane::Pane;
use super::plan::AggregatePlan;
use super::position::{Positions, ranks_of};
use super::state::Shared;

/// Fewer empty groups than this are not worth making the total anew.
const EMPTY_GROUPS_MAX: usize = 1_024;

/// The groups of the last window.
#[derive(Debug)]
pub struct Total {
    groups: Pane,
    /// The panes that are in it, by their starts.
    held: BTreeSet<i64>,
    /// Panes that are in it and in no further window.
    leaving: Vec<Pane>,
    /// Where groups lie, if by position.
    positions: Option<Positions>,
    /// A bit for each position that has rows.
    marks: Vec<u64>,
    /// Groups that have rows, where they lie as they came.
    live: usize,
    targets: Vec<u32>,
    order: Vec<u32>,
}

impl Total {
    /// Nothing added; for plans that are [invertible](AggregatePlan::is_invertible).
    pub(super) fn new(plan: &AggregatePlan) -> Self {
        Total {
            groups: Pane::new(plan),
            held: BTreeSet::new(),
            leaving: Vec::new(),
            positions: None,
            marks: Vec::new(),
            live: 0,
            targets: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        let leaving: usize = self.leaving.iter().map(Pane::byte_size).sum();
        let lists = self.targets.capacity() + self.order.capacity();
        let marks = self.marks.capacity() * size_of::<u64>();
        self.groups.byte_size() + leaving + lists * size_of::<u32>() + marks
    }

    /// Takes out the pane that starts at `start`, which rows are to be added to.
    pub(super) fn touch(&mut self, plan: &AggregatePlan, start: i64, pane: Option<&Pane>) {
        if self.held.remove(&start)
            && let Some(pane) = pane
        {
            self.subtract(plan, pane);
        }
    }

    /// Takes over the pane that starts at `start`, which no further window holds.
    pub(super) fn retire(&mut self, shared: &mut Shared, start: i64, pane: Pane) {
        match self.held.remove(&start) {
            true => self.leaving.push(pane),
            false => shared.put_pane(pane),
        }
    }

    /// The result of `window`, whose panes are in `panes`.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub(super) fn emit(
        &mut self,
        shared: &mut Shared,
        panes: &BTreeMap<i64, Pane>,
        window: Span,
    ) -> Result<RecordBatch> {
        self.leave(shared);
        if self.held.is_empty() {
            self.start_over(&shared.plan, panes, window);
        }
        for (start, pane) in panes.range(window.first()..=window.last()) {
            if self.held.insert(*start) {
                self.add(&shared.plan, pane);
            }
        }
        self.order.clear();
        if self.positions.is_some() {
            (kernels().bitmap.to_rows)(&self.marks, 0, &mut self.order);
        } else {
            let sorted = shared.sorter.sort(&shared.plan.keys, &self.groups);
            let (sorted, rows) = (sorted.iter(), &self.groups.rows);
            self.order
                .extend(sorted.filter(|id| rows[**id as usize] > 0));
            self.live = self.order.len();
        }
        let (plan, windows) = (&shared.plan, Windows::One(window));
        match &self.positions {
            Some(positions) => {
                emit_positions(plan, windows, &self.groups, (&self.order, positions))
            }
            None => emit(plan, windows, &self.groups, &self.order),
        }
    }

    /// Subtracts the panes that leave, or forgets all where that is cheaper.
    fn leave(&mut self, shared: &mut Shared) {
        let positions = self.positions.as_ref();
        let current = positions.is_none_or(|positions| positions.are_current(&shared.plan.keys));
        let empty = self.groups.len().saturating_sub(self.live);
        let untidy = positions.is_none() && empty > self.live.max(EMPTY_GROUPS_MAX);
        if !current || untidy || self.leaving.len() >= self.held.len() {
            self.held.clear();
        }
        for pane in std::mem::take(&mut self.leaving) {
            if !self.held.is_empty() {
                self.subtract(&shared.plan, &pane);
            }
            shared.put_pane(pane);
        }
    }

    /// Makes an empty total, and chooses where groups lie by the panes of `window`.
    fn start_over(&mut self, plan: &AggregatePlan, panes: &BTreeMap<i64, Pane>, window: Span) {
        self.groups.clear();
        let inside = panes.range(window.first()..=window.last());
        let groups = inside.map(|(_, pane)| pane.len()).max().unwrap_or(0);
        self.positions = Positions::of(&plan.keys, &ranks_of(&plan.keys), groups);
        self.marks.clear();
        if let Some(positions) = &self.positions {
            self.groups.grow(positions.count());
            self.marks.resize(positions.count().div_ceil(64), 0);
        }
    }

    fn find_groups(&mut self, plan: &AggregatePlan, pane: &Pane) {
        let Some(positions) = &self.positions else {
            return self.groups.find_groups(plan, pane, &mut self.targets);
        };
        self.targets.clear();
        positions.list(&plan.keys, pane.groups.keys(), &mut self.targets);
    }

    fn add(&mut self, plan: &AggregatePlan, pane: &Pane) {
        self.find_groups(plan, pane);
        let groups = self.targets.iter().max().map_or(0, |id| *id as usize + 1);
        let groups = groups.max(self.groups.len());
        self.groups.merge_into(pane, &self.targets, groups);
        if self.positions.is_some() {
            for at in &self.targets {
                self.marks[*at as usize / 64] |= 1 << (at % 64);
            }
        }
    }

    fn subtract(&mut self, plan: &AggregatePlan, pane: &Pane) {
        self.find_groups(plan, pane);
        self.groups.unmerge_from(pane, &self.targets);
        if self.positions.is_some() {
            for at in &self.targets {
                let empty = u64::from(self.groups.rows[*at as usize] == 0);
                self.marks[*at as usize / 64] &= !(empty << (at % 64));
            }
        }
    }
}
