//! `approx_quantile` and `approx_median`: quantiles within 0.4 %, in memory that does not grow
//! with the number of values.
//!
//! Values are counted in bins whose width grows with their size: 128 to each power of two, which
//! are the sign, the exponent and seven bits of the fraction of a 64-bit float. A quantile is the
//! middle of the bin in which the wanted rank lies.
//!
//! Source: Masson, Rim, Lee, "DDSketch" (VLDB 2019), with the linearly interpolated mapping of its
//! section 2.2's implementation: the bits of the float instead of a logarithm.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Value, float_of};

use super::collected::value_count::{SKETCH, SKETCH_SHIFT, ValueCounts};
use super::collected::{Collection, Collects, Finish, collected};
use super::result::ResultColumn;
use super::{Aggregate, fraction, require_numeric};

/// The relative error that a result may have: half the width of a bin.
pub const RELATIVE_ERROR: f64 = 1.0 / 256.0;

/// A quantile from a sketch.
#[derive(Debug)]
pub struct ApproxQuantile {
    name: &'static str,
    summary: &'static str,
    /// The fraction, unless users give it.
    fraction: Option<f64>,
}

/// The quantile of a given fraction.
pub const APPROX_QUANTILE: ApproxQuantile = ApproxQuantile {
    name: "approx_quantile",
    summary: "quantile of a fraction, from a sketch: the value of a rank within 0.4 %",
    fraction: None,
};

/// The quantile of one half.
pub const APPROX_MEDIAN: ApproxQuantile = ApproxQuantile {
    name: "approx_median",
    summary: "median, from a sketch: the value of a rank within 0.4 %",
    fraction: Some(0.5),
};

/// The middle of bin `bin`.
///
/// A bin of integers below 256 holds one of them, which is given exactly. Numbers too small for a
/// normal float count as zero.
fn middle(bin: i128, integers: bool) -> f64 {
    let low_key = (bin as u64) << SKETCH_SHIFT;
    let high_key = low_key | ((1 << SKETCH_SHIFT) - 1);
    if high_key == u64::MAX {
        return f64::NAN;
    }
    let (low, high) = (float_of(low_key), float_of(high_key));
    let infinite = [low, high].into_iter().find(|end| end.is_infinite());
    if let Some(infinite) = infinite {
        return infinite;
    }
    let middle = low + (high - low) / 2.0;
    match integers {
        _ if middle.abs() < f64::MIN_POSITIVE => 0.0,
        true if middle.abs() < 256.0 => middle.trunc(),
        _ => middle,
    }
}

impl Aggregate for ApproxQuantile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(SKETCH)
    }

    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        match (self.fraction, given) {
            (Some(fraction), None) => Ok(fraction),
            (None, given) => fraction(self.name, given),
            (Some(_), Some(_)) => Err(Error::invalid(format!("{} takes no number", self.name))),
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name, argument)?;
        Ok(DataType::Float64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let counts: &ValueCounts = collected(from)?;
        let integers = finish.argument.data_type.is_integer();
        let mut column = ResultColumn::new(&DataType::Float64, None, finish.order.len())?;
        counts.for_each_group(finish.order, |bins| {
            bins.sort_unstable_by_key(|counted| counted.key);
            let rows: u64 = bins.iter().map(|counted| counted.rows).sum();
            let rank = (finish.reading.parameter * rows.saturating_sub(1) as f64).floor() as u64;
            let mut below = 0;
            let found = bins.iter().find(|counted| {
                below += counted.rows;
                below > rank
            });
            column.push(found.map_or(Value::Null, |counted| {
                Value::Float(middle(counted.key, integers))
            }));
            Ok(())
        })?;
        column.finish(&DataType::Float64)
    }
}

#[cfg(test)]
mod tests {
    use tersecades_columnar::types::float_key;

    use super::*;

    fn through(value: f64, integers: bool) -> f64 {
        middle(i128::from(float_key(value) >> SKETCH_SHIFT), integers)
    }

    #[test]
    fn every_float_comes_back_within_the_error_stated() {
        let mut seed = 1u64;
        for _ in 0..200_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let value = f64::from_bits(seed);
            if !value.is_finite() || value.abs() < f64::MIN_POSITIVE {
                continue;
            }
            let got = through(value, false);
            let off = ((got - value) / value).abs();
            assert!(
                off <= RELATIVE_ERROR,
                "{value:e} became {got:e}, off by {off}"
            );
        }
    }

    #[test]
    fn ends_zeros_and_small_integers_are_exact() {
        for value in [0.0, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(through(value, false), value);
        }
        assert_eq!(through(-0.0, false), 0.0);
        assert_eq!(through(5e-324, false), 0.0);
        assert_eq!(through(-5e-324, false), 0.0);
        assert!(through(f64::NAN, false).is_nan());
        for value in -255..256 {
            assert_eq!(through(f64::from(value), true), f64::from(value));
        }
    }
}
