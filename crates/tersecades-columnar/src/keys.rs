//! Blocks of decoded keys: what codecs that decode before they answer share.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS};
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::types::Physical;

/// Widest distance of keys, and largest distance of their base from zero, whose squares are summed
/// as `n·b² + 2b·Σd + Σd²` without leaving 128 bits.
const SPAN_MAX: u64 = u32::MAX as u64;
const BASE_MAX: u128 = 1 << 56;

/// Folds the keys of at most a block, those of `mask` when there is one.
///
/// # Cost
/// A pass of a vector kernel for each part that is asked.
pub(crate) fn fold_keys(
    keys: &[u64],
    physical: Physical,
    asked: Asked,
    mask: Option<&[u64]>,
    out: &mut Fold,
) {
    let count = mask.map_or(keys.len() as u64, kernels().bitmap.count);
    if count == 0 {
        return;
    }
    out.count += count;
    if asked.sum {
        let flips = i128::from(physical.flip()) * i128::from(count);
        out.add_sum(sum(keys, mask) as i128 - flips);
    }
    if asked.ends || asked.squares {
        let (low, high) = ends(keys, mask);
        if asked.ends {
            out.add_end(i128::from(low));
            out.add_end(i128::from(high));
        }
        if asked.squares {
            add_squares(keys, (low, high), physical, mask, out);
        }
    }
}

fn sum(keys: &[u64], mask: Option<&[u64]>) -> u128 {
    let mut sums = [0; GROUPS];
    (kernels().u64.sum)(keys, mask, &mut sums);
    sums.iter().sum()
}

/// The smallest and largest key; there is one.
fn ends(keys: &[u64], mask: Option<&[u64]>) -> (u64, u64) {
    let (mut min, mut max) = ([u64::MAX; GROUPS], [0; GROUPS]);
    (kernels().u64.min_max)(keys, 0, mask, &mut min, &mut max);
    let low = min.into_iter().min().unwrap_or(0);
    (low, max.into_iter().max().unwrap_or(0))
}

fn add_squares(
    keys: &[u64],
    (low, high): (u64, u64),
    physical: Physical,
    mask: Option<&[u64]>,
    out: &mut Fold,
) {
    let base = physical.value_of(low);
    if high - low > SPAN_MAX || base.unsigned_abs() >= BASE_MAX {
        for (row, key) in keys.iter().enumerate() {
            if mask.is_none_or(|words| words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1) {
                out.squares.add_square(physical.value_of(*key));
            }
        }
        return;
    }
    // Keys outside the mask saturate; no kernel reads them.
    let mut deltas = [0; BLOCK_ROWS];
    (kernels().u64_u32.narrow)(keys, 0, &[low; GROUPS], &mut deltas);
    let mut sums = [0; GROUPS];
    let squares = (kernels().u32.moments)(&deltas[..keys.len()], mask, &mut sums);
    let count = mask.map_or(keys.len() as u64, kernels().bitmap.count);
    let deltas = sums.iter().sum::<u128>() as i128;
    let total = i128::from(count) * base * base + 2 * base * deltas + squares as i128;
    out.squares.add(total as u128);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds `keys` both ways, all of them and those of `words`.
    fn check(keys: &[u64], words: &[u64], physical: Physical) {
        let asked = Asked {
            sum: true,
            squares: true,
            ends: true,
        };
        for mask in [None, Some(words)] {
            let selected =
                |row: &usize| mask.is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1);
            let (mut got, mut expected) = (Fold::default(), Fold::default());
            fold_keys(keys, physical, asked, mask, &mut got);
            for row in (0..keys.len()).filter(selected) {
                expected.add_repeats(physical, keys[row], 1, asked);
            }
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn folds_agree_with_a_loop_over_values() {
        let physical = Physical::Integer {
            bytes: 8,
            signed: true,
        };
        let flip = physical.flip();
        let spread = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let columns: [&dyn Fn(u64) -> u64; 5] = [
            &|row| flip + row,
            &|row| flip - 500 + spread(row) % 1_000,
            &|row| spread(row),
            &|row| u64::MAX - row % 3,
            &|row| if row % 2 == 0 { 0 } else { u64::MAX },
        ];
        for column in columns {
            for rows in [1usize, 63, 64, 65, 1023, 1024] {
                let keys: Vec<u64> = (0..rows as u64).map(column).collect();
                let mut words: Vec<u64> =
                    (0..rows.div_ceil(WORD_ROWS) as u64).map(spread).collect();
                crate::selection::clear_tail(&mut words, rows);
                check(&keys, &words, physical);
            }
        }
    }
}
