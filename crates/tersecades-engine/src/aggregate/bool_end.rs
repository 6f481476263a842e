//! `bool_and` and `bool_or`: whether all conditions are true, or some.

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::types::Value;

use super::Aggregate;
use super::max::Max;
use super::min::Min;

/// The least or the greatest of conditions, nulls left out.
#[derive(Debug)]
pub struct BoolEnd {
    name: &'static str,
    summary: &'static str,
    all: bool,
}

/// Whether all are true.
pub const BOOL_AND: BoolEnd = BoolEnd {
    name: "bool_and",
    summary: "whether every condition that is not null is true",
    all: true,
};

/// Whether some are true.
pub const BOOL_OR: BoolEnd = BoolEnd {
    name: "bool_or",
    summary: "whether some condition is true",
    all: false,
};

impl Aggregate for BoolEnd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn asked(&self) -> Asked {
        Min.asked()
    }

    fn ends(&self) -> [bool; 2] {
        [self.all, !self.all]
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        match argument {
            DataType::Boolean => Ok(DataType::Boolean),
            other => Err(
                Error::schema(format!("{} needs a condition, got {other}", self.name))
                    .hint("write a comparison, such as x > 0"),
            ),
        }
    }

    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value> {
        match self.all {
            true => Min.finish(fold, argument),
            false => Max.finish(fold, argument),
        }
    }
}
