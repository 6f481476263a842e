//! 256-bit arithmetic: just enough to take a variance of integers without losing a bit.

use tersecades_columnar::fold::SquareSum;

/// An unsigned 256-bit number, least significant word first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wide([u64; 4]);

impl Wide {
    /// The product of up to three words with one word.
    fn times(words: [u64; 3], factor: u64) -> Self {
        let mut product = [0; 4];
        let mut carry = 0u128;
        for (out, word) in product.iter_mut().zip(words) {
            carry += u128::from(word) * u128::from(factor);
            *out = carry as u64;
            carry >>= 64;
        }
        product[3] = carry as u64;
        Wide(product)
    }

    fn square(value: u128) -> Self {
        let (low, high) = (value as u64, (value >> 64) as u64);
        let mut sum = Self::times([low, high, 0], low);
        let shifted = Self::times([low, high, 0], high);
        let mut carry = 0u128;
        for index in 1..4 {
            carry += u128::from(sum.0[index]) + u128::from(shifted.0[index - 1]);
            sum.0[index] = carry as u64;
            carry >>= 64;
        }
        sum
    }

    /// `self - other`; the caller knows that it is not negative.
    fn minus(self, other: Self) -> Self {
        let mut difference = [0; 4];
        let mut borrow = 0i128;
        for (out, (a, b)) in difference.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let word = i128::from(a) - i128::from(b) + borrow;
            *out = word as u64;
            borrow = word >> 64;
        }
        Wide(difference)
    }

    fn to_float(self) -> f64 {
        self.0
            .iter()
            .rev()
            .fold(0.0, |high, word| high * 2f64.powi(64) + *word as f64)
    }
}

/// `(n·Σx² − (Σx)²)`, computed exactly and rounded once.
pub(super) fn scaled_deviation(count: u64, sum: i128, squares: SquareSum) -> f64 {
    Wide::times(squares.words(), count)
        .minus(Wide::square(sum.unsigned_abs()))
        .to_float()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bit_is_lost_where_floats_cancel() {
        let base = i128::from(i64::MAX) - 2;
        let mut squares = SquareSum::default();
        let values = [base, base + 1, base + 2];
        values.iter().for_each(|value| squares.add_square(*value));
        assert_eq!(scaled_deviation(3, values.iter().sum(), squares), 6.0);
    }
}
