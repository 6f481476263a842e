//! `sum`: exact for integers and decimals, compensated for floats.

use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::{Physical, Value};

use super::{Aggregate, require_numeric};

/// The sum of the values that are not null.
#[derive(Debug)]
pub struct Sum;

/// A sum of so many values of a type leaves the type of sums.
pub(crate) fn too_large(argument: &DataType) -> Error {
    Error::limit(format!("a sum of {argument} does not fit its result type"))
        .hint("cast the argument to a float, or sum shorter windows")
}

impl Aggregate for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn summary(&self) -> &'static str {
        "sum; 64-bit for integers, where overflow is an error and never wraps"
    }

    fn asked(&self) -> Asked {
        Asked {
            sum: true,
            ..Asked::default()
        }
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric("sum", argument)?;
        Ok(match (Physical::of(argument)?, argument) {
            (Physical::Wide, DataType::Decimal128(_, scale)) => {
                DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale)
            }
            (Physical::Float { .. }, _) => DataType::Float64,
            (Physical::Integer { signed: false, .. }, _) => DataType::UInt64,
            _ => DataType::Int64,
        })
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        if fold.count == 0 {
            return Ok(Value::Null);
        }
        let overflow = || too_large(argument);
        match (Physical::of(argument)?, argument) {
            (Physical::Wide, DataType::Decimal128(_, scale)) => {
                let fits = fold.carries == 0 && fold.sum.unsigned_abs() < 10u128.pow(38);
                fits.then_some(Value::Decimal(fold.sum, *scale))
                    .ok_or_else(overflow)
            }
            (Physical::Float { .. }, _) => Ok(Value::Float(fold.float_sum.total())),
            (Physical::Integer { signed: false, .. }, _) => u64::try_from(fold.sum)
                .map(Value::from)
                .map_err(|_| overflow()),
            _ => i64::try_from(fold.sum)
                .map(Value::from)
                .map_err(|_| overflow()),
        }
    }
}
