//! `max`: the largest value.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::Aggregate;
use super::result::value_of_ordered;

/// The largest value that is not null; NaN sorts above all numbers.
#[derive(Debug)]
pub struct Max;

impl Aggregate for Max {
    fn name(&self) -> &'static str {
        "max"
    }

    fn summary(&self) -> &'static str {
        "largest value"
    }

    fn asked(&self) -> Asked {
        Asked {
            ends: true,
            ..Asked::default()
        }
    }

    fn ends(&self) -> [bool; 2] {
        [false, true]
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Ok(argument.clone())
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        match fold.count {
            0 => Ok(Value::Null),
            _ => value_of_ordered(fold.max, argument),
        }
    }
}
