//! One arithmetic sequence: which rows lie in a range of keys, and what they fold to.

use std::ops::Range;

use crate::bitmap::{count_range, for_each_one};
use crate::fold::{Asked, Fold};
use crate::predicate::KeyRange;
use crate::types::Physical;

/// Below this magnitude of values, no part of the closed sum of squares leaves 127 bits: with `n`
/// at most 2^24 rows, `n a^2`, `2 a d n^2 / 2` and `d^2 n^3 / 3` stay below 2^122.
const SQUARED_MAX: u128 = 1 << 48;

/// Rows whose keys differ by one step.
#[derive(Debug, Clone, Default)]
pub(super) struct Segment {
    pub(super) first: u64,
    pub(super) step: i64,
    pub(super) rows: Range<usize>,
}

impl Segment {
    /// The key of `row`, one of the segment's.
    #[inline]
    pub(super) fn key(&self, row: usize) -> u64 {
        let offset = (row - self.rows.start) as u64;
        self.first
            .wrapping_add((self.step as u64).wrapping_mul(offset))
    }

    /// The key of its last row.
    pub(super) fn last(&self) -> u64 {
        self.key(self.rows.end - 1)
    }

    /// Whether every key is in `0..=key_max`, without wrapping.
    pub(super) fn stays_below(&self, key_max: u64) -> bool {
        let offset = (self.rows.len() - 1) as i128;
        let last = i128::from(self.first) + i128::from(self.step) * offset;
        self.first <= key_max && (0..=i128::from(key_max)).contains(&last)
    }

    /// The rows whose key is in `range`: keys rise, fall or stay, so they are neighbours.
    pub(super) fn rows_in(&self, range: KeyRange) -> Range<usize> {
        let (first, last) = (self.first, self.last());
        let none = self.rows.start..self.rows.start;
        if range.contains(first) && range.contains(last) {
            return self.rows.clone();
        }
        if first.max(last) < range.low || first.min(last) > range.high {
            return none;
        }
        let size = self.step.unsigned_abs();
        // Distance along the step at which the range is entered, and at which it is left.
        let (enter, leave) = match self.step > 0 {
            true => (range.low.saturating_sub(first), range.high - first),
            false => (first.saturating_sub(range.high), first - range.low),
        };
        let (from, to) = (enter.div_ceil(size), leave / size);
        if from > to {
            return none;
        }
        let to = to.min((self.rows.len() - 1) as u64);
        self.rows.start + from as usize..self.rows.start + to as usize + 1
    }

    /// Folds all rows.
    pub(super) fn fold(&self, physical: Physical, asked: Asked, out: &mut Fold) {
        let count = self.rows.len() as i128;
        let (first, step) = (physical.value_of(self.first), i128::from(self.step));
        out.count += self.rows.len() as u64;
        let offsets = count * (count - 1) / 2;
        if asked.sum {
            out.add_sum(count * first + step * offsets);
        }
        if asked.squares {
            let last = physical.value_of(self.last());
            if first.unsigned_abs().max(last.unsigned_abs()) < SQUARED_MAX {
                let squared_offsets = offsets * (2 * count - 1) / 3;
                let squares = count * first * first
                    + 2 * first * step * offsets
                    + step * step * squared_offsets;
                out.squares.add(squares as u128);
            } else {
                let values = self.rows.clone().map(|row| self.key(row));
                values.for_each(|key| out.squares.add_square(physical.value_of(key)));
            }
        }
        if asked.ends {
            out.add_end(i128::from(self.first));
            out.add_end(i128::from(self.last()));
        }
    }

    /// Folds the rows whose bit is set.
    pub(super) fn fold_bits(
        &self,
        physical: Physical,
        asked: Asked,
        words: &[u64],
        out: &mut Fold,
    ) {
        let count = count_range(words, self.rows.clone());
        if count == 0 {
            return;
        }
        if count == self.rows.len() {
            return self.fold(physical, asked, out);
        }
        let (mut offsets, mut ends) = (0u64, (usize::MAX, 0));
        for_each_one(words, self.rows.clone(), |row| {
            offsets += (row - self.rows.start) as u64;
            ends = (ends.0.min(row), row);
            if asked.squares {
                out.squares.add_square(physical.value_of(self.key(row)));
            }
        });
        out.count += count as u64;
        if asked.sum {
            let firsts = physical.value_of(self.first) * count as i128;
            out.add_sum(firsts + i128::from(self.step) * i128::from(offsets));
        }
        if asked.ends {
            out.add_end(i128::from(self.key(ends.0)));
            out.add_end(i128::from(self.key(ends.1)));
        }
    }
}
