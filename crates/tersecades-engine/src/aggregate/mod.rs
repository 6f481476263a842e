//! Aggregates: what is computed for each group of a window.
//!
//! Most aggregates are a reading of one [`Fold`] (count, sum, squares, ends), so several
//! aggregates of one argument share one pass over its encoded values and panes merge folds. Those
//! that a fold cannot answer read a [`collected::Collection`], which keeps more of the values;
//! those from outside ([`user::UserAggregate`]) keep what they like. A new aggregate is a file
//! with its reading and a line in [`AGGREGATES`].

pub mod call;
pub mod result;

pub mod batch_fold;
pub mod fold_column;

pub mod any_value;
pub mod bool_end;
pub mod count;
pub mod count_if;
pub mod max;
pub mod mean;
pub mod min;
pub mod stddev;
pub mod sum;
pub mod variance;
mod wide;

pub mod collected;

pub mod approx_count_distinct;
pub mod approx_quantile;
pub mod arg_extreme;
pub mod bitwise;
pub mod count_distinct;
pub mod covariance;
pub mod distinct;
pub mod first_last;
pub mod histogram;
pub mod mode;
mod pair_measure;
pub mod product;
pub mod quantile;
pub mod quantile_disc;
pub mod regression;
pub mod skew;
pub mod string_agg;
pub mod top_k;

pub mod user;

use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::types::Value;

use crate::frame::Scope;
use crate::plan::AggregateCall;

use collected::{Collection, Collects, Finish};

pub use call::{arg_max, arg_min, call, call_by, call_with, count, quantile};
pub use user::{UserAggregate, UserState};

/// A reading of a fold or of a collection.
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

    /// Which ends it reads of a fold that it asked for both of: the smallest, the largest.
    fn ends(&self) -> [bool; 2] {
        [self.asked().ends; 2]
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

    /// A call that answers the same and costs less, if there is one for rows of `scope`.
    fn instead(&self, _call: &AggregateCall, _scope: &Scope) -> Option<AggregateCall> {
        None
    }

    /// The type that arguments of type `argument` are cast to first, where it is not their own.
    fn computes_in(&self, _argument: &DataType) -> Option<DataType> {
        None
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

    /// The results of several readings of the same groups of one collection, each of an aggregate
    /// that collects the same as this one; asked for only where it [`Aggregate::collects`].
    ///
    /// # Errors
    /// `LimitExceeded` when an exact result does not fit its type.
    fn finish_together(
        &self,
        from: &dyn Collection,
        finishes: &[Finish<'_>],
    ) -> Result<Vec<ArrayRef>> {
        let each = finishes.iter();
        each.map(|finish| finish.reading.aggregate.finish_collected(from, finish))
            .collect()
    }

    /// The results of groups; asked for unless it reads several at once.
    ///
    /// # Errors
    /// `LimitExceeded` when an exact result does not fit its type.
    fn finish_collected(&self, _from: &dyn Collection, _finish: &Finish<'_>) -> Result<ArrayRef> {
        Err(Error::internal(format!(
            "{} reads no collection",
            self.name()
        )))
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
    &product::Product,
    &variance::VARIANCE,
    &variance::VARIANCE_POPULATION,
    &stddev::STDDEV,
    &stddev::STDDEV_POPULATION,
    &bool_end::BOOL_AND,
    &bool_end::BOOL_OR,
    &bitwise::BIT_AND,
    &bitwise::BIT_OR,
    &bitwise::BIT_XOR,
    &any_value::AnyValue,
    &first_last::FIRST,
    &first_last::LAST,
    &arg_extreme::ARG_MIN,
    &arg_extreme::ARG_MAX,
    &arg_extreme::ARG_MIN_LAST,
    &arg_extreme::ARG_MAX_LAST,
    &quantile::QUANTILE,
    &quantile::MEDIAN,
    &quantile_disc::QuantileDisc,
    &approx_quantile::APPROX_QUANTILE,
    &approx_quantile::APPROX_MEDIAN,
    &count_distinct::CountDistinct,
    &approx_count_distinct::ApproxCountDistinct,
    &distinct::SUM_DISTINCT,
    &distinct::MEAN_DISTINCT,
    &mode::Mode,
    &top_k::TopK,
    &histogram::Histogram,
    &covariance::COVARIANCE,
    &covariance::COVARIANCE_POPULATION,
    &covariance::CORRELATION,
    &regression::SLOPE,
    &regression::INTERCEPT,
    &regression::R2,
    &regression::PairCount,
    &regression::AVERAGE_X,
    &regression::AVERAGE_Y,
    &regression::SQUARES_X,
    &regression::SQUARES_Y,
    &regression::PRODUCTS,
    &skew::SKEWNESS,
    &skew::KURTOSIS,
    &skew::KURTOSIS_POPULATION,
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

/// The error of a call of `name` without an argument.
pub(crate) fn needs_argument(name: &str) -> Error {
    Error::invalid(format!("{name} needs an argument"))
}

/// The error of a call of `name` with a second argument.
pub(crate) fn takes_one(name: &str) -> Error {
    Error::invalid(format!("{name} takes one argument"))
}

fn require_numeric(name: &str, argument: &DataType) -> Result<()> {
    match argument.is_numeric() {
        true => Ok(()),
        false => Err(
            Error::schema(format!("{name} needs numbers, got {argument}"))
                .hint("cast the argument, or use count, min or max"),
        ),
    }
}

/// The fraction of a quantile named `name`, from the one that was given.
fn fraction(name: &str, given: Option<f64>) -> Result<f64> {
    match given {
        Some(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err(Error::invalid(format!("{name} needs a fraction"))
            .hint("give a number from 0 to 1, such as 0.99")),
    }
}
