//! Aggregates: what is computed for each group of a window.
//!
//! Most aggregates are a reading of one [`Fold`] (count, sum, squares, ends), so several
//! aggregates of one argument share one pass over its encoded values and panes merge folds. Those
//! that a fold cannot answer read a [`collected::Collection`], which keeps more of the values. A
//! new aggregate is a file with its reading and a line in [`AGGREGATES`].

pub mod arg_extreme;
pub mod collected;
pub mod count;
pub mod count_distinct;
pub mod count_if;
pub mod fold_column;
pub mod max;
pub mod mean;
pub mod min;
pub mod quantile;
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

use collected::Collects;

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
    fn asked(&self) -> Asked {
        Asked::default()
    }

    /// What must be kept of the values for it, where a fold is not enough.
    fn collects(&self) -> Option<Collects> {
        None
    }

    /// The number it takes, from the one that was given.
    ///
    /// # Errors
    /// `InvalidArgument` when it lacks one, or takes none.
    fn parameter(&self, given: Option<f64>) -> Result<f64> {
        match given {
            None => Ok(0.0),
            Some(_) => Err(Error::invalid(format!("{} takes no number", self.name()))),
        }
    }

    /// The type of the result for an argument of type `argument`.
    ///
    /// # Errors
    /// `SchemaMismatch` when the argument has no such aggregate.
    fn result_type(&self, argument: &DataType) -> Result<DataType>;

    /// The result; not asked for where it [`Aggregate::collects`].
    ///
    /// # Errors
    /// `LimitExceeded` when an exact result does not fit its type.
    fn finish(&self, _fold: &Fold, _argument: &DataType) -> Result<Value> {
        Ok(Value::Null)
    }
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
    &count_distinct::CountDistinct,
    &arg_extreme::ARG_MIN,
    &arg_extreme::ARG_MAX,
    &quantile::QUANTILE,
    &quantile::MEDIAN,
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
        ..AggregateCall::default()
    }
}

/// The value of which the share `fraction` of values lies below, interpolated linearly.
pub fn quantile(argument: Expression, fraction: f64) -> AggregateCall {
    let output = format!("quantile({argument}, {fraction})");
    AggregateCall {
        parameter: Some(fraction),
        output,
        ..call("quantile", argument)
    }
}

/// The value of `argument` in the row where `by` is least; of several such, the first to arrive.
pub fn arg_min(argument: Expression, by: Expression) -> AggregateCall {
    arg_extreme("arg_min", argument, by)
}

/// The value of `argument` in the row where `by` is greatest; of several such, the first to arrive.
pub fn arg_max(argument: Expression, by: Expression) -> AggregateCall {
    arg_extreme("arg_max", argument, by)
}

fn arg_extreme(function: &str, argument: Expression, by: Expression) -> AggregateCall {
    let output = format!("{function}({argument}, {by})");
    AggregateCall {
        by: Some(by),
        output,
        ..call(function, argument)
    }
}

/// The number of rows.
pub fn count() -> AggregateCall {
    AggregateCall {
        function: "count".to_owned(),
        output: "count".to_owned(),
        ..AggregateCall::default()
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
