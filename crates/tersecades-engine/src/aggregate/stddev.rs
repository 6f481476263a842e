//! `stddev` of a sample and of a population: the root of the variance.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::variance::{VARIANCE, computes_in, variance};
use super::{Aggregate, require_numeric};

/// Spread around the mean.
#[derive(Debug)]
pub struct Stddev {
    name: &'static str,
    summary: &'static str,
    sample: bool,
}

/// Divides by one less than the number of values.
pub const STDDEV: Stddev = Stddev {
    name: "stddev",
    summary: "standard deviation of a sample (n - 1)",
    sample: true,
};

/// Divides by the number of values.
pub const STDDEV_POPULATION: Stddev = Stddev {
    name: "stddev_population",
    summary: "standard deviation of a population (n)",
    sample: false,
};

impl Aggregate for Stddev {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn asked(&self) -> Asked {
        VARIANCE.asked()
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
        // Rounding may leave a variance just below zero; NaN is above.
        let root = |variance: f64| if variance < 0.0 { 0.0 } else { variance.sqrt() };
        Ok(variance.map_or(Value::Null, |variance| Value::Float(root(variance))))
    }
}
