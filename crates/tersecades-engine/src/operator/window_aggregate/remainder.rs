//! What is left of a batch whose late rows went to earlier panes: the fold of all rows less theirs.
//!
//! ```text
//! batch   r r l r r r l r r r    fold of all, no row masked     count 10  sum 83  ends 2..19
//! late    · · l · · · l · · ·    folded for the earlier pane    count  2  sum 11  ends 4..7
//! rest                           one less the other             count  8  sum 72  ends 2..19
//! ```
//! Counts, sums and squares of integers are exact, so that they can be taken away again. The ends
//! of all rows are those of the rest, unless a row that went elsewhere attains one.

use tersecades_columnar::codec::Work;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;

use crate::frame::Frame;

use super::pane::Pane;
use super::plan::AggregatePlan;

/// Below one selected row in this many, single rows are folded faster than blocks under a mask.
const FEW_SHARE: usize = 16;

/// The folds of a batch's rows, by argument: of those that went to panes so far, and of the last.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    /// Rows of the batch, selected or not, and how many are selected and in no pane yet.
    rows: usize,
    left: usize,
    taken: Vec<Fold>,
    /// Of all rows, once they are folded.
    all: Vec<Fold>,
    folds: Vec<Fold>,
    folded: usize,
}

impl Remainder {
    /// Whether rows of `plan` may be taken away again: one group, and integers.
    pub(super) fn applies(plan: &AggregatePlan) -> bool {
        let integer = |physical: Physical| matches!(physical, Physical::Integer { .. });
        let mut arguments = plan.arguments.iter();
        plan.keys.columns.is_empty()
            && plan.filters.is_empty()
            && plan.collections.is_empty()
            && arguments.all(|argument| integer(argument.physical))
    }

    /// Starts with all rows of `selection`, none of them in a pane.
    pub(super) fn start(&mut self, selection: &Selection) {
        (self.rows, self.left) = (selection.rows(), selection.count());
        self.taken.clear();
        self.all.clear();
    }

    /// Whether so few rows are left that folding them is cheaper than folding all.
    pub(super) fn is_small(&self) -> bool {
        self.left * FEW_SHARE < self.rows
    }

    /// Folds the rows of `part`, which are in no pane yet.
    pub(super) fn fold_part(
        &mut self,
        plan: &AggregatePlan,
        (frame, part): (&Frame, &mut Selection),
        work: &mut Work,
    ) {
        self.folded = part.count();
        part.settle();
        if self.folded * FEW_SHARE < self.rows {
            self.fold_all(plan, frame, work);
            part.to_rows();
        }
        fold(plan, (frame, part), &mut self.folds, work);
        self.left -= self.folded;
        self.taken.resize(self.folds.len(), Fold::default());
        for (taken, fold) in self.taken.iter_mut().zip(&self.folds) {
            taken.merge(fold);
        }
    }

    /// Folds all rows of the frame, if they were not yet.
    fn fold_all(&mut self, plan: &AggregatePlan, frame: &Frame, work: &mut Work) {
        if self.all.is_empty() {
            fold(plan, (frame, &frame.selection), &mut self.all, work);
        }
    }

    /// Folds all rows of the frame and takes away those in panes; says whether all ends are right.
    pub(super) fn subtract(
        &mut self,
        plan: &AggregatePlan,
        frame: &Frame,
        work: &mut Work,
    ) -> bool {
        self.fold_all(plan, frame, work);
        self.folds.clone_from(&self.all);
        self.folded = self.left;
        let mut right = true;
        let folds = self.folds.iter_mut().zip(&self.taken);
        for ((fold, taken), argument) in folds.zip(&plan.arguments) {
            right &= fold.take_away(taken) || !argument.asked.ends;
        }
        right
    }

    /// Sets the ends to those of the rows of `rest`, which are left.
    pub(super) fn fold_ends(
        &mut self,
        plan: &AggregatePlan,
        (frame, rest): (&Frame, &Selection),
        work: &mut Work,
    ) {
        let ends = Asked {
            ends: true,
            ..Asked::default()
        };
        let arguments = plan.arguments.iter().zip(&mut self.folds);
        for (argument, fold) in arguments.filter(|(argument, _)| argument.asked.ends) {
            let mut left = Fold::default();
            let column = frame.column(argument.slot);
            column.fold(ends, rest, &mut left, work);
            (fold.min, fold.max) = (left.min, left.max);
        }
    }

    /// Adds what was folded last to a pane, unless it is of no row.
    pub(super) fn put_into<'a>(&self, pane: impl FnOnce() -> &'a mut Pane) {
        if self.folded > 0 {
            pane().add_folds(self.folded as u64, &self.folds);
        }
    }
}

/// Sets `folds` to those of the rows `within`, by argument.
fn fold(
    plan: &AggregatePlan,
    (frame, within): (&Frame, &Selection),
    folds: &mut Vec<Fold>,
    work: &mut Work,
) {
    folds.clear();
    for argument in &plan.arguments {
        let mut fold = Fold::default();
        if argument.folded {
            let column = frame.column(argument.slot);
            column.fold(argument.asked, within, &mut fold, work);
        }
        folds.push(fold);
    }
}
