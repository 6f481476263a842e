//! Sums, spreads and ends of floats, several at a time.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS};
use crate::fold::{Asked, FloatSum, Fold, Spread};
use crate::kernels::{FLOAT_SUMS, FloatSums, kernels};
use crate::values::float_of_bits;

/// Doubles are put together where one in so many is selected, or fewer.
const CHOSEN_MIN: usize = 8;

/// Folds the floats whose raw bits are `keys`, those of them that `mask` selects.
///
/// # Shape
/// A mask has a bit for each of at most [`BLOCK_ROWS`] keys; bits behind them do not count. Without
/// one there may be more keys.
pub(crate) fn fold_floats(
    keys: &[u64],
    bytes: u8,
    mask: Option<&[u64]>,
    asked: Asked,
    out: &mut Fold,
) {
    let mut room = [0; BLOCK_ROWS];
    for keys in keys.chunks(BLOCK_ROWS) {
        let bits = match bytes {
            8 => keys,
            _ => {
                let double = |key: &u64| float_of_bits(*key, bytes).to_bits();
                let wide = room.iter_mut().zip(keys);
                wide.for_each(|(bits, key)| *bits = double(key));
                &room[..keys.len()]
            }
        };
        match mask {
            Some(words) => fold_chosen(bits, words, asked, out),
            None => fold_doubles(bits, asked, out),
        }
    }
}

/// Folds the doubles that `words` selects: where they are many, beside zeros for the others.
fn fold_chosen(bits: &[u64], words: &[u64], asked: Asked, out: &mut Fold) {
    let words = &words[..bits.len().div_ceil(WORD_ROWS)];
    let (full, rest) = words.split_at(bits.len() / WORD_ROWS);
    let rest = rest
        .iter()
        .map(|word| word & ((1 << (bits.len() % WORD_ROWS)) - 1));
    let count =
        (kernels().bitmap.count)(full) + rest.map(|word| u64::from(word.count_ones())).sum::<u64>();
    if asked.squares || asked.ends || (count as usize) < bits.len() / CHOSEN_MIN {
        let mut block = [0; BLOCK_ROWS];
        let count = choose(bits, words, &mut block);
        return fold_doubles(&block[..count], asked, out);
    }
    out.count += count;
    if asked.sum {
        let mut sums = FloatSums::default();
        (kernels().float.sum_masked)(bits, words, &mut sums);
        out.float_sum.merge(total(&sums));
    }
}

/// Puts the selected doubles next to each other; how many there are.
fn choose(bits: &[u64], words: &[u64], into: &mut [u64; BLOCK_ROWS]) -> usize {
    let mut count = 0;
    for (bits, word) in bits.chunks(WORD_ROWS).zip(words) {
        let mut rest = *word & (u64::MAX >> (WORD_ROWS - bits.len()));
        while rest != 0 {
            into[count] = bits[rest.trailing_zeros() as usize];
            count += 1;
            rest &= rest - 1;
        }
    }
    count
}

fn fold_doubles(bits: &[u64], asked: Asked, out: &mut Fold) {
    if bits.is_empty() {
        return;
    }
    out.count += bits.len() as u64;
    if asked.sum || asked.squares {
        let mut sums = FloatSums::default();
        (kernels().float.sum)(bits, &mut sums);
        let sum = total(&sums);
        if asked.sum {
            out.float_sum.merge(sum);
        }
        if asked.squares {
            add_spread(bits, sum, &mut out.spread);
        }
    }
    if asked.ends {
        let mut keys = [0; BLOCK_ROWS];
        let keys = &mut keys[..bits.len()];
        (kernels().float.keys)(bits, keys);
        let (mut min, mut max) = ([0; GROUPS], [0; GROUPS]);
        (kernels().u64.min_max)(keys, 0, None, &mut min, &mut max);
        for (min, max) in min.into_iter().zip(max).filter(|(min, max)| min <= max) {
            out.add_end(i128::from(min));
            out.add_end(i128::from(max));
        }
    }
}

/// All sums as one.
fn total(sums: &FloatSums) -> FloatSum {
    let mut total = FloatSum::default();
    for parts in sums.sums.into_iter().zip(sums.lost) {
        total.merge(FloatSum::from_parts(parts.into()));
    }
    total
}

/// Adds mean and summed squared deviation of values whose sum is `sum`.
///
/// # Source
/// The two-pass formula with its correction (Chan, Golub, LeVeque, 1983).
fn add_spread(bits: &[u64], sum: FloatSum, out: &mut Spread) {
    let count = bits.len() as f64;
    let mean = sum.total() / count;
    if !mean.is_finite() {
        let values = bits.iter().map(|bits| f64::from_bits(*bits));
        return values.for_each(|value| out.add(value));
    }
    let (mut squares, mut around) = ([0.0; FLOAT_SUMS], [0.0; FLOAT_SUMS]);
    for group in bits.chunks(FLOAT_SUMS) {
        for (lane, bits) in group.iter().enumerate() {
            let off = f64::from_bits(*bits) - mean;
            squares[lane] += off * off;
            around[lane] += off;
        }
    }
    let off: f64 = around.iter().sum();
    out.merge(Spread {
        count: bits.len() as u64,
        mean,
        deviation: squares.iter().sum::<f64>() - off * off / count,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::float_key;

    /// The fold of one value after the other.
    fn slow(values: &[f64]) -> Fold {
        let mut fold = Fold::default();
        for value in values {
            fold.count += 1;
            fold.float_sum.add(*value);
            fold.spread.add(*value);
            fold.add_end(i128::from(float_key(*value)));
        }
        fold
    }

    const ASKED: Asked = Asked {
        sum: true,
        squares: true,
        ends: true,
    };

    #[test]
    fn folds_are_those_of_one_value_after_the_other() {
        let mut state = 3u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 11
        };
        for case in 0..300 {
            let rows = [0, 1, 7, 8, 63, 64, 65, 1_000, 1_023, 1_024][case % 10];
            let offset = [0.0, 1e9, -1e-7][case % 3];
            let bytes = if case % 4 == 0 { 4 } else { 8 };
            let keys: Vec<u64> = (0..rows)
                .map(|_| offset + next() as f64 / (1u64 << 53) as f64 - 0.5)
                .map(|value| match bytes {
                    4 => u64::from((value as f32).to_bits()),
                    _ => value.to_bits(),
                })
                .collect();
            let words: Vec<u64> = (0..16).map(|_| next() | next() << 40).collect();
            let mask = (case % 2 == 0).then_some(&words[..]);
            let chosen =
                |row: &usize| mask.is_none_or(|words| words[row / 64] >> (row % 64) & 1 == 1);
            let values: Vec<f64> = (0..rows)
                .filter(chosen)
                .map(|row| float_of_bits(keys[row], bytes))
                .collect();
            let (mut all, one) = (Fold::default(), slow(&values));
            fold_floats(&keys, bytes, mask, ASKED, &mut all);
            let near = |a: f64, b: f64, size: f64| (a - b).abs() <= 1e-9 * size;
            let sum_size = 1.0 + offset.abs() * rows as f64;
            assert_eq!(
                (all.count, all.min, all.max),
                (one.count, one.min, one.max),
                "case {case}"
            );
            assert!(
                near(all.float_sum.total(), one.float_sum.total(), sum_size),
                "case {case}"
            );
            assert!(
                near(all.spread.mean, one.spread.mean, offset.abs() + 1.0),
                "case {case}"
            );
            // What all have in common takes digits from the slow form alone.
            let around: Vec<f64> = values.iter().map(|value| value - offset).collect();
            let exact = slow(&around).spread.deviation;
            assert!(
                near(all.spread.deviation, exact, exact + 1e-9),
                "case {case}"
            );
        }
    }

    #[test]
    fn nothing_is_lost_to_rounding_and_the_ends_of_floats_come_out_as_by_adding() {
        let mut keys = vec![1e16f64.to_bits(); 8];
        keys.extend([1.0f64.to_bits(); 16]);
        keys.extend([(-1e16f64).to_bits(); 8]);
        let mut fold = Fold::default();
        fold_floats(&keys, 8, None, ASKED, &mut fold);
        assert_eq!(fold.float_sum.total(), 16.0);
        for (special, sum) in [
            (vec![f64::INFINITY, 1.0], f64::INFINITY),
            (vec![f64::MAX, f64::MAX], f64::INFINITY),
            (vec![f64::INFINITY, f64::NEG_INFINITY], f64::NAN),
            (vec![f64::NAN, 1.0], f64::NAN),
        ] {
            let values: Vec<f64> = special.iter().cycle().take(16).copied().collect();
            let keys: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            let (mut all, one) = (Fold::default(), slow(&values));
            fold_floats(&keys, 8, None, ASKED, &mut all);
            let total = all.float_sum.total();
            assert!(
                total == sum || total.is_nan() && sum.is_nan(),
                "{special:?}: {total}"
            );
            assert_eq!((all.min, all.max), (one.min, one.max));
            assert_eq!(all.spread.deviation.is_nan(), one.spread.deviation.is_nan());
        }
    }
}
