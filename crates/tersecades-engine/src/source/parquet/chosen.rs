//! Rows that a query may want, by the columns that it tests them by: where they are few, the others
//! are left out, or nothing is read of them in columns that stay open.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::error::Result;
use tersecades_columnar::input::Lanes;
use tersecades_columnar::kernels::{Lane, WORD_LANES, kernels};
use tersecades_columnar::predicate::{KeyRange, Predicate};
use tersecades_columnar::types::Physical;

use super::tested::mark_keys;

/// Rows are few where there is at most one in so many: finding single codes takes about four times
/// as long as a code takes where all are read.
const FEW_SHARE: usize = 8;

/// The rows of a batch that matter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Only<'a> {
    /// Which they are, ascending.
    pub(super) rows: &'a [u32],
    /// Whether the others are left out; else they hold any value of the column.
    pub(super) alone: bool,
}

impl Only<'_> {
    /// How many values come of `rows` rows.
    pub(super) fn length(&self, rows: usize) -> usize {
        match self.alone {
            true => self.rows.len(),
            false => rows,
        }
    }

    /// Where the values of `taken` rows from `start` on go, of which those `here` matter, the first
    /// of those `ahead`.
    pub(super) fn places(
        &self,
        start: usize,
        taken: usize,
        (ahead, here): (&[u32], &[u32]),
    ) -> Range<usize> {
        match self.alone {
            true => {
                let first = self.rows.len() - ahead.len();
                first..first + here.len()
            }
            false => start..start + taken,
        }
    }
}

/// The rows of a batch that passed so far.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    rows: usize,
    passing: Vec<u64>,
    found: Vec<u64>,
    /// Of one range.
    part: Vec<u64>,
    list: Vec<u32>,
    few: bool,
    /// The rows that are given where others are left out.
    given: Vec<u32>,
    leaves_out: bool,
}

impl Chosen {
    /// Starts a batch of `rows`, all of which may be wanted.
    pub(super) fn start(&mut self, rows: usize) {
        self.rows = rows;
        self.few = false;
        self.leaves_out = false;
        self.passing.clear();
        self.passing.resize(rows.div_ceil(WORD_LANES), u64::MAX);
        if let Some(last) = self.passing.last_mut() {
            *last >>= self.rows.wrapping_neg() % WORD_LANES;
        }
    }

    /// The rows that may be wanted, if they are few.
    pub(super) fn few(&self) -> Option<Only<'_>> {
        let (rows, alone) = (&self.list, false);
        self.few.then_some(Only { rows, alone })
    }

    /// The rows that are given, if others are left out.
    pub(super) fn given(&self) -> Option<Only<'_>> {
        let (rows, alone) = (&self.given, true);
        self.leaves_out.then_some(Only { rows, alone })
    }

    /// Leaves out the rows that are not wanted, if those are few.
    pub(super) fn leave_out(&mut self) {
        self.leaves_out = self.few;
        self.given.clone_from(&self.list);
    }

    /// Leaves out the rows that are not in `given`, which has all that are wanted.
    pub(super) fn leave_out_others(&mut self, given: Vec<u32>) {
        self.leaves_out = true;
        self.given = given;
    }

    /// A bit for each row, set where it may be wanted.
    pub(super) fn passing(&self) -> &[u64] {
        &self.passing
    }

    /// Leaves out the rows whose value in `column` fails one of `tests`; nulls are left to the
    /// query.
    pub(super) fn narrow(&mut self, column: &ArrayRef, tests: &[Arc<Predicate>]) {
        let Ok(physical) = Physical::of(column.data_type()) else {
            return;
        };
        for test in tests {
            let Predicate::Keys(ranges) = &**test else {
                continue;
            };
            self.found.clear();
            self.found.resize(self.passing.len(), 0);
            match lanes(column) {
                Some(Lanes::U32(values)) => self.test(values, ranges, physical.flip()),
                Some(Lanes::U64(values)) => self.test(values, ranges, physical.flip()),
                _ => continue,
            }
            if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
                let valid = nulls.inner().bit_chunks();
                let words = self.found.iter_mut().zip(valid.iter_padded());
                words.for_each(|(word, valid)| *word |= !valid);
            }
            (kernels().bitmap.and)(&mut self.passing, &self.found);
        }
        self.count();
    }

    /// Leaves out the rows whose bit `mark` clears.
    pub(super) fn narrow_by(&mut self, mark: impl FnOnce(&mut [u64]) -> Result<()>) -> Result<()> {
        self.found.clear();
        self.found.resize(self.passing.len(), 0);
        mark(&mut self.found)?;
        (kernels().bitmap.and)(&mut self.passing, &self.found);
        self.count();
        Ok(())
    }

    /// Sees whether few rows pass, and lists them.
    fn count(&mut self) {
        let count = (kernels().bitmap.count)(&self.passing) as usize;
        self.few = count * FEW_SHARE <= self.rows;
        if self.few {
            self.list.clear();
            (kernels().bitmap.to_rows)(&self.passing, 0, &mut self.list);
        }
    }

    /// Sets the bits of the lanes whose key is in one of `ranges`.
    fn test<W: Lane>(&mut self, values: &[W], ranges: &[KeyRange], flip: u64) {
        self.part.resize(self.found.len(), 0);
        for range in ranges {
            mark_keys(values, *range, flip, &mut self.part);
            (kernels().bitmap.or)(&mut self.found, &self.part);
        }
    }
}
