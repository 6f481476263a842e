//! `count`: rows, or values that are not null.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::Aggregate;

/// Rows, or values that are not null.
#[derive(Debug)]
pub struct Count;

impl Aggregate for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn summary(&self) -> &'static str {
        "number of rows, or of values that are not null"
    }

    fn needs_argument(&self) -> bool {
        false
    }

    fn asked(&self) -> Asked {
        Asked::default()
    }

    fn result_type(&self, _argument: &DataType) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn finish(&self, fold: &Fold, _argument: &DataType) -> Result<Value> {
        Ok(Value::from(fold.count))
    }
}
