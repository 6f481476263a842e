//! `variance` of a sample and of a population.
//!
//! Integers: `n·Σx² − (Σx)²` is computed exactly in 256 bits and rounded once, so large values
//! close together do not cancel. Floats: from mean and summed squared deviation.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::{Physical, Value};

use super::{Aggregate, require_numeric, wide};

/// Squared spread around the mean.
#[derive(Debug)]
pub struct Variance {
    name: &'static str,
    summary: &'static str,
    sample: bool,
}

/// Divides by one less than the number of values.
pub const VARIANCE: Variance = Variance {
    name: "variance",
    summary: "variance of a sample (n - 1)",
    sample: true,
};

/// Divides by the number of values.
pub const VARIANCE_POPULATION: Variance = Variance {
    name: "variance_population",
    summary: "variance of a population (n)",
    sample: false,
};

/// The variance of what `fold` saw; `None` when it saw too few values.
pub(super) fn variance(fold: &Fold, argument: &DataType, sample: bool) -> Result<Option<f64>> {
    let divisor = if sample {
        fold.count.saturating_sub(1)
    } else {
        fold.count
    };
    if divisor == 0 {
        return Ok(None);
    }
    let deviation = match Physical::of(argument)? {
        Physical::Float { .. } => fold.spread.deviation,
        _ => wide::scaled_deviation(fold.count, fold.sum, fold.squares) / fold.count as f64,
    };
    Ok(Some(deviation / divisor as f64))
}

/// Decimals vary as floats: their squares have more digits than anything holds.
pub(super) fn computes_in(argument: &DataType) -> Option<DataType> {
    matches!(argument, DataType::Decimal128(..)).then_some(DataType::Float64)
}

impl Aggregate for Variance {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn asked(&self) -> Asked {
        Asked {
            sum: true,
            squares: true,
            ..Asked::default()
        }
    }

    fn computes_in(&self, argument: &DataType) -> Option<DataType> {
        computes_in(argument)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(self.name, argument)?;
        Ok(DataType::Float64)
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        let variance = variance(fold, argument, self.sample)?;
        Ok(variance.map_or(Value::Null, Value::Float))
    }
}
