//! `min`: the smallest value.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::Aggregate;
use super::result::value_of_ordered;

/// The smallest value that is not null; NaN sorts above all numbers.
#[derive(Debug)]
pub struct Min;

impl Aggregate for Min {
    fn name(&self) -> &'static str {
        "min"
    }

    fn summary(&self) -> &'static str {
        "smallest value"
    }

    fn asked(&self) -> Asked {
        Asked {
            ends: true,
            ..Asked::default()
        }
    }

    fn ends(&self) -> [bool; 2] {
        [true, false]
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Ok(argument.clone())
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        match fold.count {
            0 => Ok(Value::Null),
            _ => value_of_ordered(fold.min, argument),
        }
    }
}
