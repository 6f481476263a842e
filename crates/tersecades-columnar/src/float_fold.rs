//! Sums, spreads and ends of floats, several at a time.

use crate::bitmap::WORD_ROWS;
use crate::block::BLOCK_ROWS;
use crate::fold::{Asked, FloatSum, Fold, Spread};
use crate::types::float_key;
use crate::values::float_of_bits;

/// Values that are added side by side.
const LANES: usize = 8;

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
    let mut block = [0.0; BLOCK_ROWS];
    for keys in keys.chunks(BLOCK_ROWS) {
        let count = match mask {
            Some(words) => choose(keys, bytes, words, &mut block),
            None => {
                let values = block.iter_mut().zip(keys);
                values.for_each(|(value, key)| *value = float_of_bits(*key, bytes));
                keys.len()
            }
        };
        fold_values(&block[..count], asked, out);
    }
}

/// Puts the selected floats next to each other; how many there are.
fn choose(keys: &[u64], bytes: u8, words: &[u64], into: &mut [f64; BLOCK_ROWS]) -> usize {
    let mut count = 0;
    for (keys, word) in keys.chunks(WORD_ROWS).zip(words) {
        let mut rest = *word & (u64::MAX >> (WORD_ROWS - keys.len()));
        while rest != 0 {
            into[count] = float_of_bits(keys[rest.trailing_zeros() as usize], bytes);
            count += 1;
            rest &= rest - 1;
        }
    }
    count
}

fn fold_values(values: &[f64], asked: Asked, out: &mut Fold) {
    if values.is_empty() {
        return;
    }
    out.count += values.len() as u64;
    if asked.sum || asked.squares {
        let sum = sum_of(values);
        if asked.sum {
            out.float_sum.merge(sum);
        }
        if asked.squares {
            add_spread(values, sum, &mut out.spread);
        }
    }
    if asked.ends {
        let (mut least, mut greatest) = (u64::MAX, 0);
        for value in values {
            let key = float_key(*value);
            (least, greatest) = (key.min(least), key.max(greatest));
        }
        out.add_end(i128::from(least));
        out.add_end(i128::from(greatest));
    }
}

/// The sum, each lane of it compensated.
///
/// # Source
/// Knuth's exact sum of two floats (TwoSum): six operations and no branch.
fn sum_of(values: &[f64]) -> FloatSum {
    let (mut sums, mut lost) = ([0.0; LANES], [0.0; LANES]);
    let (groups, rest) = values.as_chunks::<LANES>();
    for group in groups {
        for lane in 0..LANES {
            let (known, value) = (sums[lane], group[lane]);
            let sum = known + value;
            let part = sum - known;
            lost[lane] += (known - (sum - part)) + (value - part);
            sums[lane] = sum;
        }
    }
    let mut total = FloatSum::default();
    for parts in sums.into_iter().zip(lost) {
        total.merge(FloatSum::from_parts(parts.into()));
    }
    rest.iter().for_each(|value| total.add(*value));
    total
}

/// Adds mean and summed squared deviation of values whose sum is `sum`.
///
/// # Source
/// The two-pass formula with its correction (Chan, Golub, LeVeque, 1983).
fn add_spread(values: &[f64], sum: FloatSum, out: &mut Spread) {
    let count = values.len() as f64;
    let mean = sum.total() / count;
    if !mean.is_finite() {
        return values.iter().for_each(|value| out.add(*value));
    }
    let (mut squares, mut around) = ([0.0; LANES], [0.0; LANES]);
    for group in values.chunks(LANES) {
        for (lane, value) in group.iter().enumerate() {
            let off = value - mean;
            squares[lane] += off * off;
            around[lane] += off;
        }
    }
    let off: f64 = around.iter().sum();
    out.merge(Spread {
        count: values.len() as u64,
        mean,
        deviation: squares.iter().sum::<f64>() - off * off / count,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

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
