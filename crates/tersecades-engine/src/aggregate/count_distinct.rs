//! `count_distinct`: how many different values there are, exactly.

use arrow_schema::DataType;
use tersecades_columnar::error::Result;

use super::Aggregate;
use super::collected::Collects;

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
        Some(Collects::Distinct)
    }

    fn result_type(&self, _argument: &DataType) -> Result<DataType> {
        Ok(DataType::Int64)
    }
}
