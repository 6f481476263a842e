//! Folding blocks of bases and narrow deltas.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS};
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::predicate::KeyRange;
use crate::types::Physical;

/// A range of keys, and the rows that are tested: all without a bitmap.
pub(crate) type Tested<'a> = (KeyRange, Option<&'a [u64]>);

/// Counts the values of a block that pass a test, and adds their sum if it is asked for; sets
/// `words` to their rows, and says whether there are any.
pub(crate) fn fold_tested<D: KeyLane>(
    (physical, bases): (Physical, &[u64; GROUPS]),
    deltas: &[D],
    (range, kept): Tested<'_>,
    (words, wants_sum): (&mut [u64], bool),
    out: &mut Fold,
) -> bool {
    let range = range.low..=range.high;
    let sum = (D::of(kernels()).range_sum)(deltas, bases, range, kept, words);
    let mut counts = [0; GROUPS];
    (kernels().bitmap.count_groups)(words, &mut counts);
    let count: u64 = counts.iter().sum();
    out.count += count;
    if wants_sum && count > 0 {
        let keys = times(bases, &counts) + sum;
        let zeros = u128::from(physical.flip()) * u128::from(count);
        out.add_sum(keys as i128 - zeros as i128);
    }
    count > 0
}

/// Clears the bits that `kept` lacks, none without it.
pub(crate) fn keep_within(words: &mut [u64], kept: Option<&[u64]>) {
    if let Some(kept) = kept {
        (kernels().bitmap.and)(words, kept);
    }
}

/// The sum of each base times its count, at most the rows of a group.
fn times(bases: &[u64; GROUPS], counts: &[u64; GROUPS]) -> u128 {
    const LOW: u64 = u32::MAX as u64;
    let pairs = || bases.iter().zip(counts);
    let low: u64 = pairs().map(|(base, count)| (base & LOW) * count).sum();
    let high: u64 = pairs().map(|(base, count)| (base >> 32) * count).sum();
    u128::from(low) + (u128::from(high) << 32)
}

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
                (kernels().bitmap.count_groups)(words, &mut counts);
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

    /// Whether the ends found so far enclose the selected values wherever they are; `maxima` are
    /// the largest keys by group.
    pub(crate) fn is_enclosed(&self, maxima: &[u64; GROUPS], out: &Fold) -> bool {
        let (min, max) = (out.min, out.max);
        let encloses =
            |group: usize| min <= i128::from(self.bases[group]) && i128::from(maxima[group]) <= max;
        (0..GROUPS).all(|group| self.counts[group] == 0 || encloses(group))
    }

    /// Adds the selected values.
    pub(crate) fn fold<D: KeyLane>(&self, deltas: &[D], asked: Asked, out: &mut Fold) {
        out.count += self.counts.iter().sum::<u64>();
        let table = D::of(kernels());
        let mut sums = [0u128; GROUPS];
        if asked.squares && self.squares_fit::<D>() {
            let squares = (table.moments)(deltas, self.mask, &mut sums);
            out.squares.add(self.sum_of_squares(&sums, squares));
        } else if asked.sum {
            (table.sum)(deltas, self.mask, &mut sums);
        }
        if asked.squares && !self.squares_fit::<D>() {
            self.fold_squares_singly(deltas, out);
        }
        if asked.sum {
            out.add_sum(self.sum_of_bases() + sums.iter().sum::<u128>() as i128);
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

    /// What the key `base` stands for, modulo 2^64.
    fn value(&self, base: u64) -> i64 {
        base.wrapping_sub(self.zero).cast_signed()
    }

    /// Whether [`GroupFold::sum_of_squares`] can leave no word on its way.
    fn squares_fit<D: KeyLane>(&self) -> bool {
        let fits = |base: &u64| base.abs_diff(self.zero) < 1 << 54;
        size_of::<D>() <= 4 && self.bases.iter().all(fits)
    }

    /// `Σ(b + d)² = b·(n·b + 2·Σd) + Σd²`, group by group but for the last term.
    fn sum_of_squares(&self, sums: &[u128; GROUPS], squares: u128) -> u128 {
        let mut total = squares as i128;
        for ((base, count), sum) in self.bases.iter().zip(self.counts).zip(sums) {
            let base = self.value(*base);
            let mixed = base * count.cast_signed() + 2 * *sum as i64;
            total += i128::from(base) * i128::from(mixed);
        }
        total as u128
    }

    fn fold_squares_singly<D: KeyLane>(&self, deltas: &[D], out: &mut Fold) {
        for (row, delta) in deltas.iter().enumerate() {
            let selected = self
                .mask
                .is_none_or(|words| words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1);
            if selected {
                let value = i128::from(self.bases[row / GROUP_ROWS]) - i128::from(self.zero);
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
