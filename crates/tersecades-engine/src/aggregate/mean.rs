//! `mean`: the arithmetic mean, from the exact sum.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::{Physical, Value};

use super::{Aggregate, require_numeric};

/// The arithmetic mean of the values that are not null.
#[derive(Debug)]
pub struct Mean;

impl Aggregate for Mean {
    fn name(&self) -> &'static str {
        "mean"
    }

    fn summary(&self) -> &'static str {
        "arithmetic mean"
    }

    fn asked(&self) -> Asked {
        Asked {
            sum: true,
            ..Asked::default()
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric("mean", argument)?;
        Ok(DataType::Float64)
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        if fold.count == 0 {
            return Ok(Value::Null);
        }
        let sum = match (Physical::of(argument)?, argument) {
            (Physical::Float { .. }, _) => fold.float_sum.total(),
            (_, DataType::Decimal128(_, scale)) => {
                let carried = fold.carries as f64 * 2f64.powi(128);
                (carried + fold.sum as f64) / 10f64.powi(i32::from(*scale))
            }
            _ => fold.sum as f64,
        };
        Ok(Value::Float(sum / fold.count as f64))
    }
}
