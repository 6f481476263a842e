//! Folding blocks of bases and narrow deltas.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS};
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::types::Physical;

const GROUP_WORDS: usize = GROUP_ROWS / WORD_ROWS;

/// The fold of one block's groups: bases, and how many values of each group are selected.
pub(crate) struct GroupFold<'a> {
    /// The key of the value zero.
    zero: u64,
    bases: [u64; GROUPS],
    counts: [u64; GROUPS],
    mask: Option<&'a [u64]>,
}

impl<'a> GroupFold<'a> {
    /// The fold of a block of `rows` rows, of those of `mask` when there is one.
    pub(crate) fn new(
        physical: Physical,
        bases: [u64; GROUPS],
        rows: usize,
        mask: Option<&'a [u64]>,
    ) -> Self {
        let counts = match mask {
            None if rows == BLOCK_ROWS => [GROUP_ROWS as u64; GROUPS],
            None => std::array::from_fn(|group| {
                rows.saturating_sub(group * GROUP_ROWS).min(GROUP_ROWS) as u64
            }),
            Some(words) => {
                let mut counts = [0; GROUPS];
                for (count, words) in counts.iter_mut().zip(words.chunks(GROUP_WORDS)) {
                    *count = words.iter().map(|word| u64::from(word.count_ones())).sum();
                }
                counts
            }
        };
        GroupFold {
            zero: physical.flip(),
            bases,
            counts,
            mask,
        }
    }

    /// Adds the selected values without a look at them, if only their ends are wanted and those
    /// found so far enclose them wherever they are; `maxima` are the largest keys by group.
    pub(crate) fn add_enclosed(
        &self,
        maxima: &[u64; GROUPS],
        asked: Asked,
        out: &mut Fold,
    ) -> bool {
        let (min, max) = (out.min, out.max);
        let encloses = |group: &usize| {
            min <= i128::from(self.bases[*group]) && i128::from(maxima[*group]) <= max
        };
        let mut used = (0..GROUPS).filter(|group| self.counts[*group] > 0);
        let enclosed = asked.is_ends_alone() && used.all(|group| encloses(&group));
        if enclosed {
            out.count += self.counts.iter().sum::<u64>();
        }
        enclosed
    }

    /// Adds the selected values.
    pub(crate) fn fold<D: KeyLane>(&self, deltas: &[D], asked: Asked, out: &mut Fold) {
        out.count += self.counts.iter().sum::<u64>();
        let table = D::of(kernels());
        let mut sums = [0u128; GROUPS];
        if asked.sum || asked.squares {
            (table.sum)(deltas, self.mask, &mut sums);
        }
        if asked.sum {
            out.add_sum(self.sum_of_bases() + sums.iter().sum::<u128>() as i128);
        }
        if asked.squares {
            let mut squares = [0u128; GROUPS];
            (table.squares)(deltas, self.mask, &mut squares);
            self.fold_squares(deltas, &sums, &squares, out);
        }
        if asked.ends {
            let (mut min, mut max) = ([D::MAX; GROUPS], [D::cut(0); GROUPS]);
            (table.min_max)(deltas, D::cut(0), self.mask, &mut min, &mut max);
            for group in (0..GROUPS).filter(|group| self.counts[*group] > 0) {
                out.add_end(i128::from(self.bases[group] + min[group].key()));
                out.add_end(i128::from(self.bases[group] + max[group].key()));
            }
        }
    }

    /// The sum that the selected values would have if all deltas were zero.
    fn sum_of_bases(&self) -> i128 {
        let (mut keys, mut count) = (0, 0);
        for (base, selected) in self.bases.iter().zip(&self.counts) {
            keys += u128::from(*base) * u128::from(*selected);
            count += selected;
        }
        keys as i128 - (u128::from(self.zero) * u128::from(count)) as i128
    }

    /// `Σ(b + d)² = n·b² + 2b·Σd + Σd²`, or value by value where a part could leave its word.
    fn fold_squares<D: KeyLane>(
        &self,
        deltas: &[D],
        sums: &[u128; GROUPS],
        squares: &[u128; GROUPS],
        out: &mut Fold,
    ) {
        let mut total = 0;
        for group in 0..GROUPS {
            let base = self.bases[group].abs_diff(self.zero);
            if size_of::<D>() > 4 || base >= 1 << 56 {
                self.fold_squares_singly(deltas, group, out);
                continue;
            }
            let whole = u128::from(base * self.counts[group]) * u128::from(base) + squares[group];
            let mixed = u128::from(2 * base) * u128::from(sums[group] as u64);
            total += match self.bases[group] < self.zero {
                true => whole - mixed,
                false => whole + mixed,
            };
        }
        out.squares.add(total);
    }

    fn fold_squares_singly<D: KeyLane>(&self, deltas: &[D], group: usize, out: &mut Fold) {
        let lanes = deltas.iter().enumerate();
        for (row, delta) in lanes.skip(group * GROUP_ROWS).take(GROUP_ROWS) {
            let selected = self
                .mask
                .is_none_or(|words| words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1);
            if selected {
                let value = i128::from(self.bases[group]) - i128::from(self.zero);
                out.squares.add_square(value + i128::from(delta.key()));
            }
        }
    }

    /// Adds the selected values of a block without deltas.
    pub(crate) fn fold_bases(&self, asked: Asked, out: &mut Fold) {
        out.count += self.counts.iter().sum::<u64>();
        if asked.sum {
            out.add_sum(self.sum_of_bases());
        }
        for group in (0..GROUPS).filter(|group| self.counts[*group] > 0) {
            let base = self.bases[group];
            if asked.squares {
                let value = i128::from(base) - i128::from(self.zero);
                out.squares.add_square_times(value, self.counts[group]);
            }
            if asked.ends {
                out.add_end(i128::from(base));
            }
        }
    }
}
