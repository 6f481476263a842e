//! `first` and `last`: a column's value in the earliest and the latest row.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;

use super::Aggregate;
use super::collected::extreme::{EARLIEST, Extreme, LATEST};
use super::collected::{Collection, Collects, Finish, collected};

/// The value at an end of time.
#[derive(Debug)]
pub struct FirstLast {
    name: &'static str,
    summary: &'static str,
    collects: Collects,
}

/// The value in the earliest row.
pub const FIRST: FirstLast = FirstLast {
    name: "first",
    summary: "value in the row of the earliest event time, the first to arrive of several",
    collects: EARLIEST,
};

/// The value in the latest row.
pub const LAST: FirstLast = FirstLast {
    name: "last",
    summary: "value in the row of the latest event time, the last to arrive of several",
    collects: LATEST,
};

impl Aggregate for FirstLast {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(self.collects)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        Ok(argument.clone())
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let extreme: &Extreme = collected(from)?;
        finish.column(|id| Ok(extreme.value(id, finish.argument)))
    }
}
