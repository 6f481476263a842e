//! Folding blocks of bases and narrow deltas.

use crate::bitmap::WORD_ROWS;
use crate::block::{GROUP_ROWS, GROUPS};
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::types::Physical;

const GROUP_WORDS: usize = GROUP_ROWS / WORD_ROWS;

/// The fold of one block's groups: selected counts, bases as values.
pub(crate) struct GroupFold<'a> {
    bases: [i128; GROUPS],
    base_keys: [u64; GROUPS],
    counts: [u64; GROUPS],
    mask: Option<&'a [u64]>,
}

impl<'a> GroupFold<'a> {
    /// The fold of a block of `rows` rows, of those of `mask` when there is one.
    pub(crate) fn new(
        physical: Physical,
        base_keys: [u64; GROUPS],
        rows: usize,
        mask: Option<&'a [u64]>,
    ) -> Self {
        let counts = std::array::from_fn(|group| match mask {
            None => rows.saturating_sub(group * GROUP_ROWS).min(GROUP_ROWS) as u64,
            Some(words) => {
                let words = words.iter().skip(group * GROUP_WORDS).take(GROUP_WORDS);
                words.map(|word| u64::from(word.count_ones())).sum()
            }
        });
        let bases = base_keys.map(|key| physical.value_of(key));
        GroupFold {
            bases,
            base_keys,
            counts,
            mask,
        }
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
            for (group, deltas_sum) in sums.iter().enumerate() {
                let base_part = self.bases[group] * i128::from(self.counts[group]);
                out.add_sum(base_part + *deltas_sum as i128);
            }
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
                out.add_end(i128::from(self.base_keys[group] + min[group].key()));
                out.add_end(i128::from(self.base_keys[group] + max[group].key()));
            }
        }
    }

    /// `Σ(b + d)² = n·b² + 2b·Σd + Σd²`, or value by value where a part could leave 128 bits.
    fn fold_squares<D: KeyLane>(
        &self,
        deltas: &[D],
        sums: &[u128; GROUPS],
        squares: &[u128; GROUPS],
        out: &mut Fold,
    ) {
        for group in 0..GROUPS {
            let base = self.bases[group];
            if size_of::<D>() <= 4 && base.unsigned_abs() < 1 << 56 {
                let count = i128::from(self.counts[group]);
                let total =
                    count * base * base + 2 * base * sums[group] as i128 + squares[group] as i128;
                out.squares.add(total as u128);
                continue;
            }
            let lanes = deltas
                .iter()
                .enumerate()
                .skip(group * GROUP_ROWS)
                .take(GROUP_ROWS);
            for (row, delta) in lanes {
                let selected = self
                    .mask
                    .is_none_or(|words| words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1);
                if selected {
                    out.squares.add_square(base + i128::from(delta.key()));
                }
            }
        }
    }

    /// Adds the selected values of a block without deltas.
    pub(crate) fn fold_bases(&self, asked: Asked, out: &mut Fold) {
        for group in (0..GROUPS).filter(|group| self.counts[*group] > 0) {
            let (base, count) = (self.bases[group], self.counts[group]);
            out.count += count;
            if asked.sum {
                out.add_sum(base * i128::from(count));
            }
            if asked.squares {
                out.squares.add_square_times(base, count);
            }
            if asked.ends {
                out.add_end(i128::from(self.base_keys[group]));
            }
        }
    }
}
