//! Decimals beside floats: the nearest float, rounded once.
//!
//! ```text
//! 9007199254740993 / 10^1  ─▶ 900719925474099.3, the float that is nearest
//! ```

use std::ops::Range;

/// Digits below which a whole number is one of floats of 64 bits.
const WHOLE: u128 = 1 << 53;

/// The largest power of ten that is a float of 64 bits.
const POWER_MAX: i8 = 22;

/// Digits that a decimal of 128 bits has less than.
const DIGITS_END: i128 = 10i128.pow(38);

/// The float nearest to `digits * 10^-scale`.
///
/// # Cost
/// A division; for digits beyond 2^53, and scales that no float has the power of, reading a text.
///
/// # Examples
/// ```
/// use tersecades_columnar::decimal::nearest_float;
/// assert_eq!(nearest_float(7, 2), 0.07);
/// ```
pub fn nearest_float(digits: i128, scale: i8) -> f64 {
    match scale {
        // Both are floats, so that only their division rounds.
        0..=POWER_MAX if digits.unsigned_abs() <= WHOLE => {
            digits as f64 / 10f64.powi(i32::from(scale))
        }
        // Digits with an exponent are always a number.
        _ => text(digits, scale).parse().unwrap_or(f64::NAN),
    }
}

/// `digits * 10^-scale` as a text that reads as a number.
pub fn text(digits: i128, scale: i8) -> String {
    format!("{digits}e{}", -i32::from(scale))
}

/// The digits of decimals of `scale` whose nearest float is `value`, which is a number; where there
/// are none, the start is the least above it.
pub(crate) fn digits_nearest_to(value: f64, scale: i8) -> Range<i128> {
    let least = |wanted: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (1 - DIGITS_END, DIGITS_END);
        while low < high {
            let middle = low + (high.abs_diff(low) / 2).cast_signed();
            match wanted(nearest_float(middle, scale)) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    };
    least(&|float| float >= value)..least(&|float| float > value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_float_are_all_that_it_is_nearest_to() {
        for (value, scale, expected) in [
            (0.07, 2, 7..8),
            (0.29, 2, 29..30),
            (-1.15, 2, -115..-114),
            (0.071, 2, 8..8),
            (0.0, 5, 0..1),
            (-0.0, 5, 0..1),
            (1.0, -2, 1..1),
            (300.0, -2, 3..4),
            (f64::INFINITY, 3, DIGITS_END..DIGITS_END),
            (f64::NEG_INFINITY, 3, 1 - DIGITS_END..1 - DIGITS_END),
        ] {
            assert_eq!(
                digits_nearest_to(value, scale),
                expected,
                "{value}, {scale}"
            );
        }
        let many = digits_nearest_to(1e20, 5);
        assert!(many.contains(&10i128.pow(25)) && many.end - many.start > 1_000_000_000);
        for digits in [many.start, many.end - 1] {
            assert_eq!(nearest_float(digits, 5), 1e20);
        }
        for digits in [many.start - 1, many.end] {
            assert_ne!(nearest_float(digits, 5), 1e20);
        }
    }
}
