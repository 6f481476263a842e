//! What is left of a batch whose late rows went to earlier panes: the fold of all rows less theirs.
//!
//! ```text
//! batch   r r l r r r l r r r    fold of all, no row masked     count 10  sum 83  ends 2..19
//! late    · · l · · · l · · ·    folded for the earlier pane    count  2  sum 11  ends 4..7
//! rest                           one less the other             count  8  sum 72  ends 2..19
//! ```
//! Counts, sums and squares of integers are exact, so that they can be taken away again. The ends
//! of all rows are those of the rest, unless a row that went elsewhere attains one. A test that is
//! left over is one of every row that is folded: only folds know how many passed it.

use tersecades_columnar::codec::Work;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;

use crate::frame::Frame;

use super::pane::Pane;
use super::plan::{AggregatePlan, Reading};

/// Below one selected row in this many, single rows are folded faster than blocks under a mask.
const FEW_SHARE: usize = 16;

/// The ends of the stretches that ends are searched for in, as shares of a batch.
const SEARCHED_ENDS: [usize; 3] = [16, 4, 1];

/// The folds of a batch's rows, by argument: of those that went to panes so far, and of the last.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    /// Rows of the batch, selected or not, and how many are selected and in no pane yet, tested or
    /// not.
    rows: usize,
    left: usize,
    taken: Vec<Fold>,
    /// Of all rows, once they are folded.
    all: Vec<Fold>,
    folds: Vec<Fold>,
    folded: u64,
    searched: Selection,
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

    /// Starts with all selected rows of a frame, none of them in a pane; says false where no row
    /// passes what is left over.
    pub(super) fn start(&mut self, plan: &AggregatePlan, frame: &Frame, work: &mut Work) -> bool {
        (self.rows, self.left) = (frame.selection.rows(), frame.selection.count());
        self.taken.clear();
        self.all.clear();
        if frame.left_over.is_some() {
            self.fold_all(plan, frame, work);
        }
        self.all.first().is_none_or(|all| all.count > 0)
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
        let rows = part.count();
        part.settle();
        if rows * FEW_SHARE < self.rows {
            self.fold_all(plan, frame, work);
            part.to_rows();
        }
        fold(plan, (frame, part), &mut self.folds, work);
        self.left -= rows;
        self.count_folded(frame, rows);
        self.taken.resize(self.folds.len(), Fold::default());
        for (taken, fold) in self.taken.iter_mut().zip(&self.folds) {
            taken.merge(fold);
        }
    }

    /// Takes in that `folds` are of so many rows, or of those of them that pass what is left over.
    fn count_folded(&mut self, frame: &Frame, rows: usize) {
        let passed = self.folds.first().filter(|_| frame.left_over.is_some());
        self.folded = passed.map_or(rows as u64, |fold| fold.count);
    }

    /// Folds all rows of the frame, if they were not yet.
    fn fold_all(&mut self, plan: &AggregatePlan, frame: &Frame, work: &mut Work) {
        if self.all.is_empty() {
            fold(plan, (frame, &frame.selection), &mut self.all, work);
        }
    }

    /// Folds all rows of the frame and takes away those in panes; says whether all ends that are
    /// read are right.
    pub(super) fn subtract(
        &mut self,
        plan: &AggregatePlan,
        frame: &Frame,
        work: &mut Work,
    ) -> bool {
        self.fold_all(plan, frame, work);
        self.folds.clone_from(&self.all);
        for (fold, taken) in self.folds.iter_mut().zip(&self.taken) {
            fold.take_away(taken);
        }
        self.count_folded(frame, self.left);
        let mut arguments = 0..self.folds.len();
        self.folded == 0 || arguments.all(|index| self.doubtful_ends(plan, index) == [false; 2])
    }

    /// Which ends of an argument are read and may be those of rows that were taken away alone.
    fn doubtful_ends(&self, plan: &AggregatePlan, index: usize) -> [bool; 2] {
        let of_argument = |reading: &&Reading| reading.argument == Some(index);
        let readings = plan.readings.iter().filter(of_argument);
        let read = readings.fold([false; 2], |[least, largest], reading| {
            let [also_least, also_largest] = reading.aggregate.ends();
            [least | also_least, largest | also_largest]
        });
        let (taken, all) = (&self.taken[index], &self.all[index]);
        [
            read[0] && taken.min <= all.min,
            read[1] && taken.max >= all.max,
        ]
    }

    /// Sets the ends that are read to those of the rows of `rest`, which are left: the search stops
    /// where a row attains those of all rows.
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
        let mut searched = std::mem::take(&mut self.searched);
        for (index, argument) in plan.arguments.iter().enumerate() {
            let doubtful = self.doubtful_ends(plan, index);
            let all = &self.all[index];
            let mut left = Fold::default();
            if !doubtful[0] {
                left.min = all.min;
            }
            if !doubtful[1] {
                left.max = all.max;
            }
            let mut first = 0;
            for end in SEARCHED_ENDS.map(|share| self.rows.div_ceil(share)) {
                if left.min == all.min && left.max == all.max {
                    break;
                }
                searched.set_range(first..end, self.rows);
                searched.intersect(rest);
                frame.fold((argument.slot, ends), &searched, &mut left, work);
                first = end;
            }
            let fold = &mut self.folds[index];
            (fold.min, fold.max) = (left.min, left.max);
        }
        self.searched = searched;
    }

    /// Adds what was folded last to a pane, unless it is of no row.
    pub(super) fn put_into<'a>(&self, pane: impl FnOnce() -> &'a mut Pane) {
        if self.folded > 0 {
            pane().add_folds(self.folded, &self.folds);
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
            frame.fold((argument.slot, argument.asked), within, &mut fold, work);
        }
        folds.push(fold);
    }
}
