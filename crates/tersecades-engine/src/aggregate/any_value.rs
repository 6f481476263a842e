//! `any_value`: one of the values, the same one however the rows come.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::Aggregate;
use super::min::Min;

/// Some value that is not null: the smallest, so that it does not depend on the order of rows.
#[derive(Debug)]
pub struct AnyValue;

impl Aggregate for AnyValue {
    fn name(&self) -> &'static str {
        "any_value"
    }

    fn summary(&self) -> &'static str {
        "some value that is not null (the smallest)"
    }

    fn asked(&self) -> Asked {
        Min.asked()
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Min.result_type(argument)
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        Min.finish(fold, argument)
    }
}
