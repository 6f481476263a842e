//! `product` of numbers, as a float.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::collected::factor::{FACTORS, Factors};
use super::collected::{Collection, Collects, Finish, collected};
use super::{Aggregate, require_numeric};

const NAME: &str = "product";

/// The values of a group multiplied, nulls left out; null where there is none.
#[derive(Debug)]
pub struct Product;

impl Aggregate for Product {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "product of the values, as a float"
    }

    fn collects(&self) -> Option<Collects> {
        Some(FACTORS)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        require_numeric(NAME, argument)?;
        Ok(DataType::Float64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let factors: &Factors = collected(from)?;
        finish.column(|id| Ok(factors.product(id).map_or(Value::Null, Value::Float)))
    }
}
