//! `count_distinct`: how many different values there are, exactly.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Value;

use super::Aggregate;
use super::collected::distinct::{DISTINCT, Distinct};
use super::collected::{Collection, Collects, Finish, collected};

/// The number of different values that are not null; all NaN are one value, as are both zeros.
#[derive(Debug)]
pub struct CountDistinct;

impl Aggregate for CountDistinct {
    fn name(&self) -> &'static str {
        "count_distinct"
    }

    fn summary(&self) -> &'static str {
        "number of different values, exact"
    }

    fn collects(&self) -> Option<Collects> {
        Some(DISTINCT)
    }

    fn result_type(&self, _argument: &DataType) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let distinct: &Distinct = collected(from)?;
        finish.column(|id| Ok(Value::from(distinct.count(id))))
    }
}
