//! `arg_min`, `arg_max` and their like: a column's value in the row where another is least or
//! greatest.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;

use super::Aggregate;
use super::collected::extreme::{Extreme, GREATEST, GREATEST_LAST, LEAST, LEAST_LAST};
use super::collected::{Collection, Collects, Finish, collected};

/// The value at an end of another column.
#[derive(Debug)]
pub struct ArgExtreme {
    name: &'static str,
    summary: &'static str,
    collects: Collects,
}

/// The value where the other column is least.
pub const ARG_MIN: ArgExtreme = ArgExtreme {
    name: "arg_min",
    summary: "value in the row where another column is least, the first of several",
    collects: LEAST,
};

/// The value where the other column is greatest.
pub const ARG_MAX: ArgExtreme = ArgExtreme {
    name: "arg_max",
    summary: "value in the row where another column is greatest, the first of several",
    collects: GREATEST,
};

/// The value where the other column is least, in the last of several rows.
pub const ARG_MIN_LAST: ArgExtreme = ArgExtreme {
    name: "arg_min_last",
    summary: "value in the row where another column is least, the last of several",
    collects: LEAST_LAST,
};

/// The value where the other column is greatest, in the last of several rows.
pub const ARG_MAX_LAST: ArgExtreme = ArgExtreme {
    name: "arg_max_last",
    summary: "value in the row where another column is greatest, the last of several",
    collects: GREATEST_LAST,
};

impl Aggregate for ArgExtreme {
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
