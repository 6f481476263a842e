//! Count, sum, sum of squares, smallest and largest of the selected values of one column.
//!
//! Integer results are exact: sums are 128-bit, sums of squares 192-bit. Float sums are
//! compensated (Neumaier), float spreads use the pairwise update of Chan, Golub and LeVeque, so
//! that merging in any order agrees within 1e-9 relative.

use crate::types::Physical;

/// Which parts of a [`Fold`] are wanted; computing all asked parts takes one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// The sum.
    pub sum: bool,
    /// The sum of squares (integers) or mean and spread (floats).
    pub squares: bool,
    /// The smallest and largest value.
    pub ends: bool,
}

impl Asked {
    /// Whether nothing but the sum is wanted.
    pub fn is_sum_alone(self) -> bool {
        self.sum && !self.squares && !self.ends
    }

    /// Whether nothing but the ends is wanted.
    pub fn is_ends_alone(self) -> bool {
        self.ends && !self.sum && !self.squares
    }

    /// The parts that either side wants.
    pub fn or(self, other: Asked) -> Asked {
        Asked {
            sum: self.sum || other.sum,
            squares: self.squares || other.squares,
            ends: self.ends || other.ends,
        }
    }
}

/// A 192-bit unsigned sum of squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SquareSum {
    low: u128,
    high: u64,
}

impl SquareSum {
    /// Adds `part`.
    #[inline]
    pub fn add(&mut self, part: u128) {
        let (low, carry) = self.low.overflowing_add(part);
        self.low = low;
        self.high += u64::from(carry);
    }

    /// Adds the square of `value`, whose magnitude is below 2^64.
    #[inline]
    pub fn add_square(&mut self, value: i128) {
        self.add(value.unsigned_abs().wrapping_mul(value.unsigned_abs()));
    }

    /// Adds `count` times the square of `value`, whose magnitude is below 2^64.
    pub fn add_square_times(&mut self, value: i128, count: u64) {
        let square = value.unsigned_abs().wrapping_mul(value.unsigned_abs());
        let low = (square & u128::from(u64::MAX)) * u128::from(count);
        let high = (square >> 64) * u128::from(count);
        self.add(low);
        self.add(high << 64);
        self.high += (high >> 64) as u64;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: SquareSum) {
        self.add(other.low);
        self.high += other.high;
    }

    /// Takes another sum away again; it must be part of this one.
    pub fn unmerge(&mut self, other: SquareSum) {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        self.low = low;
        self.high = self.high.wrapping_sub(other.high + u64::from(borrow));
    }

    /// The three 64-bit words, least significant first.
    pub fn words(self) -> [u64; 3] {
        [self.low as u64, (self.low >> 64) as u64, self.high]
    }

    /// The sum with these words.
    pub fn from_words(words: [u64; 3]) -> Self {
        let low = u128::from(words[0]) | u128::from(words[1]) << 64;
        SquareSum {
            low,
            high: words[2],
        }
    }
}

/// The bits of a float but for the last 26 of its 53 digits.
const HIGH_HALF: u64 = u64::MAX << 26;

/// A compensated float sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FloatSum {
    sum: f64,
    lost: f64,
}

impl FloatSum {
    /// Adds `value`.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    /// Adds `count` times `value`; up to a count of 2^26 no digit of the product is lost.
    ///
    /// # Source
    /// Dekker's product (1971) of a value in two halves and a count that needs but one.
    #[inline]
    pub fn add_times(&mut self, value: f64, count: u32) {
        let count = f64::from(count);
        let product = value * count;
        self.add(product);
        let high = f64::from_bits(value.to_bits() & HIGH_HALF);
        self.lost += (high * count - product) + (value - high) * count;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: FloatSum) {
        self.add(other.sum);
        self.lost += other.lost;
    }

    /// The sum; infinities and NaN come out as plain addition gives them.
    pub fn total(self) -> f64 {
        if self.sum.is_finite() {
            self.sum + self.lost
        } else {
            self.sum
        }
    }

    /// The running sum and what rounding lost of it.
    pub fn parts(self) -> [f64; 2] {
        [self.sum, self.lost]
    }

    /// The sum with these parts.
    pub fn from_parts(parts: [f64; 2]) -> Self {
        FloatSum {
            sum: parts[0],
            lost: parts[1],
        }
    }
}

/// Mean and summed squared deviation of `count` floats.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// Values seen.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub deviation: f64,
}

impl Spread {
    /// Adds `value`.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.deviation += delta * (value - self.mean);
    }

    /// Adds another spread.
    pub fn merge(&mut self, other: Spread) {
        if other.count == 0 {
            return;
        }
        // The square of a large mean is no number to take nothing of.
        if self.count == 0 {
            *self = other;
            return;
        }
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.mean += delta * share;
        self.deviation += other.deviation + delta * delta * share * self.count as f64;
        self.count = count;
    }
}

/// The result of folding some values.
///
/// `min` and `max` are ordered keys (see [`crate::values::Values::ordered`]) and mean nothing
/// while `count` is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fold {
    /// Values that are not null.
    pub count: u64,
    /// Exact sum of integers or decimals, of which `carries` are missing.
    pub sum: i128,
    /// How often `sum` left 128 bits upwards, less downwards; only decimals can.
    pub carries: i64,
    /// Exact sum of squares of integers.
    pub squares: SquareSum,
    /// Sum of floats.
    pub float_sum: FloatSum,
    /// Spread of floats.
    pub spread: Spread,
    /// Smallest ordered key.
    pub min: i128,
    /// Largest ordered key.
    pub max: i128,
}

/// Adds `part` to a sum, and to its carries how often that left 128 bits upwards, less downwards.
///
/// # Examples
/// ```
/// use tersecades_columnar::fold::add_carrying;
/// let (mut sum, mut carries) = (0, 0);
/// for part in [i128::MAX, i128::MAX, -i128::MAX, -i128::MAX] {
///     add_carrying((&mut sum, &mut carries), part);
/// }
/// assert_eq!((sum, carries), (0, 0));
/// ```
#[inline]
pub fn add_carrying((sum, carries): (&mut i128, &mut i64), part: i128) {
    let (total, left) = sum.overflowing_add(part);
    *sum = total;
    // -1 where the part is negative.
    let sign = 1 | (part >> 127) as i64;
    *carries += sign * i64::from(left);
}

impl Default for Fold {
    fn default() -> Self {
        Fold {
            count: 0,
            sum: 0,
            carries: 0,
            squares: SquareSum::default(),
            float_sum: FloatSum::default(),
            spread: Spread::default(),
            min: i128::MAX,
            max: i128::MIN,
        }
    }
}

impl Fold {
    /// Adds an exact part to the sum.
    #[inline]
    pub fn add_sum(&mut self, part: i128) {
        add_carrying((&mut self.sum, &mut self.carries), part);
    }

    /// Widens the ends by a key.
    #[inline]
    pub fn add_end(&mut self, key: i128) {
        self.min = self.min.min(key);
        self.max = self.max.max(key);
    }

    /// Adds `count` times the integer whose key is `key`.
    pub fn add_repeats(&mut self, physical: Physical, key: u64, count: usize, asked: Asked) {
        if count == 0 {
            return;
        }
        let value = physical.value_of(key);
        self.count += count as u64;
        if asked.sum {
            self.add_sum(value * count as i128);
        }
        if asked.squares {
            self.squares.add_square_times(value, count as u64);
        }
        if asked.ends {
            self.add_end(i128::from(key));
        }
    }

    /// Adds the fold of other values.
    pub fn merge(&mut self, other: &Fold) {
        self.count += other.count;
        self.add_sum(other.sum);
        self.carries += other.carries;
        self.squares.merge(other.squares);
        self.float_sum.merge(other.float_sum);
        self.spread.merge(other.spread);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Takes away the fold of some of the values, which must be integers, but for the ends: these
    /// still are those of what is left, unless a value taken away attains one.
    pub fn take_away(&mut self, part: &Fold) {
        self.count -= part.count;
        self.sum = self.sum.wrapping_sub(part.sum);
        self.squares.unmerge(part.squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_the_largest_values_stay_exact() {
        let mut sum = SquareSum::default();
        let largest = i128::from(u64::MAX);
        for _ in 0..5 {
            sum.add_square(largest);
            sum.add_square(-largest);
        }
        // 10 * (2^64 - 1)^2 = 10 * 2^128 - 20 * 2^64 + 10
        assert_eq!(sum.words(), [10, 0u64.wrapping_sub(20), 9]);
        let ten = sum;
        sum.merge(ten);
        sum.unmerge(ten);
        assert_eq!(sum, ten);
    }

    #[test]
    fn compensated_sums_do_not_depend_on_order() {
        let values = [1e16, 3.25, -1e16, 2.71, 1e-3];
        let mut forward = FloatSum::default();
        values.iter().for_each(|v| forward.add(*v));
        let mut backward = FloatSum::default();
        values.iter().rev().for_each(|v| backward.add(*v));
        assert!((forward.total() - 5.961).abs() < 1e-12);
        assert!((backward.total() - 5.961).abs() < 1e-12);
        let mut infinite = FloatSum::default();
        [1.0, f64::INFINITY, 2.0]
            .iter()
            .for_each(|v| infinite.add(*v));
        assert_eq!(infinite.total(), f64::INFINITY);
    }

    #[test]
    fn repeated_values_are_added_as_one_after_the_other() {
        let cases = [
            (1.0 / 3.0, 9_000, -3_000.0, -3_000.0 / (1u64 << 54) as f64),
            (1.0 + f64::EPSILON, 1 << 26, -67_108_864.0, 2f64.powi(-26)),
            (f64::from_bits(1), 3, 0.0, f64::from_bits(3)),
            (f64::MAX, 2, -f64::MAX, f64::INFINITY),
            (f64::NEG_INFINITY, 5, 1.0, f64::NEG_INFINITY),
            (f64::INFINITY, 5, f64::NEG_INFINITY, f64::NAN),
            (f64::from_bits(0x7FF0_0000_0000_0001), 1, 1.0, f64::NAN),
        ];
        for (value, count, rest, expected) in cases {
            let mut sum = FloatSum::default();
            sum.add_times(value, count);
            sum.add(rest);
            let same = sum.total() == expected || (sum.total().is_nan() && expected.is_nan());
            assert!(same, "{count} times {value:e}: {:e}", sum.total());
        }
    }

    #[test]
    fn spreads_merge_as_if_seen_together() {
        let values: Vec<f64> = (0..100).map(|i| 1e9 + f64::from(i * i)).collect();
        let mut whole = Spread::default();
        values.iter().for_each(|v| whole.add(*v));
        let (mut a, mut b) = (Spread::default(), Spread::default());
        values[..30].iter().for_each(|v| a.add(*v));
        values[30..].iter().for_each(|v| b.add(*v));
        a.merge(b);
        assert!((a.deviation - whole.deviation).abs() <= 1e-9 * whole.deviation);
        assert_eq!(a.count, 100);
        // Of large numbers, too, none add nothing.
        let mut large = Spread::default();
        [1e200, 1e200].iter().for_each(|value| large.add(*value));
        let (mut empty, whole) = (Spread::default(), large);
        empty.merge(whole);
        large.merge(Spread::default());
        for spread in [empty, large] {
            assert_eq!((spread.mean, spread.deviation), (1e200, 0.0));
        }
    }
}
