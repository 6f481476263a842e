//! Distributions by quantile: a uniform draw goes in, a value of the wished shape comes out.
//!
//! Everything rests on `ln` and `exp` built from the four IEEE operations only. The standard
//! library's versions come from each platform's mathematics library and may differ in the last
//! bit, which would make "same seed, same rows" true on one machine only.

use std::f64::consts::{LN_2, SQRT_2};

use super::random::unit;

/// Natural logarithm of a positive, normal number (error below 1e-15 of the result's scale).
///
/// `x = m * 2^e` with `m` in (1/sqrt 2, sqrt 2]; `ln m = 2 atanh((m-1)/(m+1))` as a series.
pub(super) fn ln(x: f64) -> f64 {
    const MANTISSA_BITS: u32 = 52;
    const EXPONENT_OF_ONE: u64 = 1023 << MANTISSA_BITS;
    let bits = x.to_bits();
    let mut exponent = (bits >> MANTISSA_BITS) as f64 - 1023.0;
    let mut mantissa = f64::from_bits((bits & ((1 << MANTISSA_BITS) - 1)) | EXPONENT_OF_ONE);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1.0;
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0..12)
        .rev()
        .fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent * LN_2 + 2.0 * ratio * series
}

/// e to the power `x`, for `x` in -700 to 700 (what lies outside is cut off).
///
/// `x = k ln 2 + r` with `|r| <= ln 2 / 2`; the Taylor series of `r`, scaled by 2^k.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let power = (x / LN_2).round();
    let rest = x - power * LN_2;
    let series = (1..16)
        .rev()
        .fold(1.0, |sum, n| 1.0 + sum * rest / f64::from(n));
    // `power` lies in -1010..=1010, so the biased exponent is that of a normal number.
    series * f64::from_bits(((power + 1023.0) as u64) << 52)
}

/// The value below which a standard normal variable falls with probability `p` (0 < p < 1).
///
/// # Source
/// P. J. Acklam, "An algorithm for computing the inverse normal cumulative distribution
/// function" (2003); relative error below 1.15e-9.
fn normal_quantile(p: f64) -> f64 {
    const CENTRE_TOP: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239e0,
    ];
    const CENTRE_BOTTOM: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const TAIL_TOP: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838e0,
        -2.549732539343734e0,
        4.374664141464968e0,
        2.938163982698783e0,
    ];
    const TAIL_BOTTOM: [f64; 5] = [
        7.784695709041462e-3,
        3.224671290700398e-1,
        2.445134137142996e0,
        3.754408661907416e0,
        1.0,
    ];
    const TAIL: f64 = 0.02425;
    let tail = |p: f64| {
        let q = (-2.0 * ln(p)).sqrt();
        polynomial(&TAIL_TOP, q) / polynomial(&TAIL_BOTTOM, q)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        polynomial(&CENTRE_TOP, q * q) * q / polynomial(&CENTRE_BOTTOM, q * q)
    }
}

/// Horner's rule, highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients
        .iter()
        .fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Equal steps of probability in a [`LogNormal`] table.
const STEPS: usize = 1 << 16;

/// Log-normal values by table: 16 bits of a draw choose a step, 16 interpolate inside it.
///
/// The 65,537 knots sit at probabilities `i / 65,536`; the two ends, which would be 0 and
/// infinity, sit at a quarter of a step (4.5 standard deviations). Linear interpolation errs by
/// less than 1e-4 of the value in all but the last few steps.
#[derive(Debug)]
pub(super) struct LogNormal {
    knots: Box<[f32; STEPS + 1]>,
}

impl LogNormal {
    /// The table of `median * exp(sigma * z)`, `z` standard normal.
    pub(super) fn new(median: f64, sigma: f64) -> Self {
        let mut knots = Box::new([0.0; STEPS + 1]);
        let step = 1.0 / STEPS as f64;
        for (index, knot) in knots.iter_mut().enumerate() {
            let p = (index as f64 * step).clamp(step / 4.0, 1.0 - step / 4.0);
            *knot = (median * exp(sigma * normal_quantile(p))) as f32;
        }
        LogNormal { knots }
    }

    /// The value at the quantile `bits / 2^32`.
    #[inline]
    pub(super) fn at(&self, bits: u32) -> f32 {
        const FRACTION: f32 = 1.0 / 65_536.0;
        let step = (bits >> 16) as usize;
        let inside = (bits & 0xffff) as f32 * FRACTION;
        let (left, right) = (self.knots[step], self.knots[step + 1]);
        left + (right - left) * inside
    }
}

/// A Pareto value: never below `floor`, above `x` with probability `(floor / x)^shape`.
pub(super) fn pareto(bits: u32, floor: f64, shape: f64) -> f64 {
    floor * exp(-ln(unit(bits)) / shape)
}

/// An exponential value with the given mean.
pub(super) fn exponential(bits: u32, mean: f64) -> f64 {
    -ln(unit(bits)) * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_and_exp_agree_with_the_standard_library() {
        for step in 1..4000 {
            let x = f64::from(step) * 0.0371;
            assert!(
                (ln(x) - x.ln()).abs() < 2e-15 * x.ln().abs().max(1.0),
                "ln {x}"
            );
            let y = x - 74.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "exp {y}");
        }
        assert!((ln(1.0 / 4_294_967_296.0) + 32.0 * LN_2).abs() < 1e-13);
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874)] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
        }
        assert!((normal_quantile(0.001) + normal_quantile(0.999)).abs() < 1e-7);
    }

    #[test]
    fn log_normal_table_is_monotone_and_hits_its_quantiles() {
        let table = LogNormal::new(250.0, 0.6);
        assert!(table.knots.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((table.at(1 << 31) - 250.0).abs() < 0.01);
        let upper = 250.0 * exp(0.6 * normal_quantile(0.75)) as f32;
        assert!((table.at(3 << 30) - upper).abs() < 0.1);
        assert!(table.at(0) > 10.0 && table.at(u32::MAX) < 5000.0);
    }

    #[test]
    fn pareto_and_exponential_have_their_medians() {
        let half = 1 << 31;
        assert!((pareto(half, 100.0, 1.0) - 200.0).abs() < 1e-3);
        assert!((pareto(u32::MAX, 100.0, 1.3) - 100.0).abs() < 1e-9);
        assert!((exponential(half, 10.0) - 10.0 * LN_2).abs() < 1e-3);
    }
}
