//! Aggregates: what is computed for each group of a window.
//!
//! Every aggregate here is a reading of one [`Fold`] (count, sum, squares, ends), so several
//! aggregates of one argument share one pass over its encoded values, panes merge folds, and
//! a new aggregate is a file with its reading and a line in [`AGGREGATES`].

pub mod count;
pub mod count_if;
pub mod fold_column;
pub mod max;
pub mod mean;
pub mod min;
pub mod stddev;
pub mod sum;
pub mod variance;
mod wide;

use std::fmt::Debug;

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::types::{Physical, Value};

use crate::expression::Expression;
use crate::plan::AggregateCall;

/// A reading of a fold.
pub trait Aggregate: Debug + Send + Sync {
    /// The name users write.
    fn name(&self) -> &'static str;

    /// One line for docs and help.
    fn summary(&self) -> &'static str;

    /// Whether an argument must be given.
    fn needs_argument(&self) -> bool {
        true
    }

    /// The parts of the fold it reads.
    fn asked(&self) -> Asked;

    /// The type of the result for an argument of type `argument`.
    ///
    /// # Errors
    /// `SchemaMismatch` when the argument has no such aggregate.
    fn result_type(&self, argument: &DataType) -> Result<DataType>;

    /// The result.
    ///
    /// # Errors
    /// `LimitExceeded` when an exact result does not fit its type.
    fn finish(&self, fold: &Fold, argument: &DataType) -> Result<Value>;
}

/// Every aggregate, in the order docs list them.
pub const AGGREGATES: &[&dyn Aggregate] = &[
    &count::Count,
    &count_if::CountIf,
    &sum::Sum,
    &min::Min,
    &max::Max,
    &mean::Mean,
    &variance::VARIANCE,
    &variance::VARIANCE_POPULATION,
    &stddev::STDDEV,
    &stddev::STDDEV_POPULATION,
];

/// The aggregate named `name`.
///
/// # Errors
/// `InvalidArgument`, naming the nearest.
pub fn find(name: &str) -> Result<&'static dyn Aggregate> {
    let found = AGGREGATES.iter().find(|aggregate| aggregate.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = AGGREGATES
            .iter()
            .map(|aggregate| aggregate.name())
            .collect();
        let error = Error::invalid(format!("unknown aggregate `{name}`"));
        match nearest(name, &names) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("known aggregates: {}", names.join(", "))),
        }
    })
}

/// `function(argument)`, named so.
pub fn call(function: &str, argument: Expression) -> AggregateCall {
    let output = format!("{function}({argument})");
    AggregateCall {
        function: function.to_owned(),
        argument: Some(argument),
        output,
    }
}

/// The number of rows.
pub fn count() -> AggregateCall {
    AggregateCall {
        function: "count".to_owned(),
        argument: None,
        output: "count".to_owned(),
    }
}

impl AggregateCall {
    /// The same aggregate with its result column named `name`.
    pub fn alias(mut self, name: impl Into<String>) -> Self {
        self.output = name.into();
        self
    }
}

/// Whether values of `data_type` are numbers.
fn is_numeric(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

fn require_numeric(name: &str, argument: &DataType) -> Result<()> {
    match is_numeric(argument) {
        true => Ok(()),
        false => Err(
            Error::schema(format!("{name} needs numbers, got {argument}"))
                .hint("cast the argument, or use count, min or max"),
        ),
    }
}

/// The value behind an ordered key of a column of type `data_type`.
fn value_of_ordered(key: i128, data_type: &DataType) -> Result<Value> {
    Ok(match (Physical::of(data_type)?, data_type) {
        (Physical::Wide, DataType::Decimal128(_, scale)) => Value::Decimal(key, *scale),
        (Physical::Float { .. }, _) => {
            Value::Float(tersecades_columnar::types::float_of(key as u64))
        }
        // Text ends are codes of the argument's dictionary.
        (physical, _) => Value::Integer(physical.value_of(key as u64)),
    })
}
