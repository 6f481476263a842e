//! Aggregates of Python: calls of the aggregates in the engine's list.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::engine::aggregate::{self, AGGREGATES};
use tersecades::engine::plan::AggregateCall;
use tersecades::prelude::Expression;

use crate::error::OrRaise;
use crate::expression::Column;

/// What is computed for each group of a window; made by `count`, `sum` and their like.
///
/// >>> import tersecades as tc
/// >>> tc.quantile("rtt_us", 0.99).alias("p99")
/// quantile(rtt_us, 0.99) AS p99
#[pyclass(name = "Aggregate", module = "tersecades", frozen)]
pub(crate) struct Aggregate {
    pub(crate) call: AggregateCall,
    written: String,
    named: bool,
}

impl Aggregate {
    /// The aggregate that `call` stands for.
    pub(crate) fn new(call: AggregateCall) -> Self {
        let written = match (&call.argument, &call.user) {
            (None, None) => format!("{}()", call.function),
            _ => call.output.clone(),
        };
        Aggregate {
            call,
            written,
            named: false,
        }
    }

    /// The aggregate `function` of `argument`.
    pub(crate) fn of(function: &str, argument: Expression) -> Self {
        Self::new(aggregate::call(function, argument))
    }

    /// An exact quantile.
    pub(crate) fn quantile(argument: Expression, fraction: f64) -> Self {
        Self::new(aggregate::quantile(argument, fraction))
    }
}

#[pymethods]
impl Aggregate {
    /// The same aggregate, whose result is a column called `name`.
    fn alias(&self, name: String) -> Aggregate {
        Aggregate {
            call: self.call.clone().alias(name),
            written: self.written.clone(),
            named: true,
        }
    }

    /// The same aggregate of the rows where the condition is true; groups without one stay.
    ///
    /// >>> import tersecades as tc
    /// >>> tc.count().filter(tc.col("code") != 0).alias("failures")
    /// count() FILTER (WHERE code <> 0) AS failures
    fn filter(&self, condition: Column) -> Aggregate {
        Aggregate {
            written: format!("{} FILTER (WHERE {})", self.written, condition.expression),
            call: self.call.clone().filter(condition.expression),
            named: self.named,
        }
    }

    /// The name of the result column.
    #[getter]
    fn name(&self) -> &str {
        &self.call.output
    }

    fn __repr__(&self) -> String {
        match self.named {
            true => format!("{} AS {}", self.written, self.call.output),
            false => self.written.clone(),
        }
    }
}

macro_rules! of_one_column {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $name(column: Column) -> Aggregate {
                Aggregate::of(stringify!($name), column.expression)
            }
        )*

        fn register_of_one_column(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

of_one_column! {
    /// How many rows of a group the condition is true for.
    ///
    /// >>> import tersecades as tc
    /// >>> tc.count_if(tc.col("code") > 0)
    /// count_if(code > 0)
    count_if,
    /// Sum of the values of a group; null without one.
    sum,
    /// Least value of a group.
    min,
    /// Greatest value of a group.
    max,
    /// Mean of the values of a group.
    mean,
    /// Variance of the values of a group as a sample of more.
    variance,
    /// Variance of the values of a group as all there are.
    variance_population,
    /// Standard deviation of the values of a group as a sample of more.
    stddev,
    /// Standard deviation of the values of a group as all there are.
    stddev_population,
    /// How many different values a group has, exactly.
    count_distinct,
    /// Exact median of the values of a group.
    median,
    /// Median of the values of a group from a sketch, whose error `aggregates()` states.
    approx_median,
    /// How many different values a group has, from a sketch, whose error `aggregates()` states.
    approx_count_distinct,
    /// Sum of the different values of a group.
    sum_distinct,
    /// Mean of the different values of a group.
    mean_distinct,
    /// Product of the values of a group, as a float.
    product,
    /// Bits that all integers of a group have.
    bit_and,
    /// Bits that some integer of a group has.
    bit_or,
    /// Bits that an odd number of the integers of a group has.
    bit_xor,
    /// Whether every condition of a group that is not null is true.
    bool_and,
    /// Whether some condition of a group is true.
    bool_or,
    /// Some value of a group that is not null.
    any_value,
    /// Value in the row of a group of the earliest event time; the first to arrive of several.
    first,
    /// Value in the row of a group of the latest event time; the last to arrive of several.
    last,
    /// Most frequent value of a group; the least of several.
    mode,
    /// Skewness of the values of a group as a sample of more; null below three.
    skewness,
    /// Excess kurtosis of the values of a group as a sample of more; null below four.
    kurtosis,
    /// Excess kurtosis of the values of a group as all there are.
    kurtosis_population,
}

/// How many rows a group has, or how many of its values of a column are not null.
///
/// >>> import tersecades as tc
/// >>> tc.count()
/// count()
/// >>> tc.count("rtt_us")
/// count(rtt_us)
#[pyfunction]
#[pyo3(signature = (column=None))]
fn count(column: Option<Column>) -> Aggregate {
    match column {
        Some(column) => Aggregate::of("count", column.expression),
        None => Aggregate::new(aggregate::count()),
    }
}

macro_rules! of_two_columns {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $name(column: Column, by: Column) -> Aggregate {
                let (argument, by) = (column.expression, by.expression);
                Aggregate::new(aggregate::call_by(stringify!($name), argument, by))
            }
        )*

        fn register_of_two_columns(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

of_two_columns! {
    /// The value of `column` in the row of a group where `by` is least; the first to arrive of
    /// several.
    arg_min,
    /// The value of `column` in the row of a group where `by` is greatest; the first to arrive of
    /// several.
    arg_max,
    /// The value of `column` in the row of a group where `by` is least; the last to arrive of
    /// several.
    arg_min_last,
    /// The value of `column` in the row of a group where `by` is greatest; the last to arrive of
    /// several.
    arg_max_last,
    /// Covariance of two columns of a group as a sample of more.
    covariance,
    /// Covariance of two columns of a group as all there are.
    covariance_population,
    /// Pearson's correlation of two columns of a group; null where one does not vary.
    correlation,
    /// Slope of the line through pairs of `column` over `by`; null where `by` does not vary.
    regr_slope,
    /// Value of the line through pairs of `column` over `by` where `by` is zero.
    regr_intercept,
    /// Share of the variance of `column` that the line over `by` explains.
    regr_r2,
    /// How many rows of a group have neither column null.
    regr_count,
    /// Mean of `by` where neither column is null.
    regr_avgx,
    /// Mean of `column` where neither column is null.
    regr_avgy,
    /// Summed squared deviations of `by` where neither column is null.
    regr_sxx,
    /// Summed squared deviations of `column` where neither column is null.
    regr_syy,
    /// Summed products of the deviations of both columns.
    regr_sxy,
}

macro_rules! of_a_number {
    ($($(#[$doc:meta])* $name:ident($number:ident)),* $(,)?) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $name(column: Column, $number: f64) -> Aggregate {
                let call = aggregate::call_with(stringify!($name), column.expression, $number);
                Aggregate::new(call)
            }
        )*

        fn register_of_a_number(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

of_a_number! {
    /// Exact quantile: the value below which the share `fraction` of a group lies, between two
    /// values by straight line.
    quantile(fraction),
    /// Exact quantile that is one of the values: the least that the share `fraction` of a group is
    /// not greater than.
    quantile_disc(fraction),
    /// Quantile from a sketch, whose error `aggregates()` states.
    approx_quantile(fraction),
    /// How many values of a group lie in each bucket of a width: a list of `bucket` and `count`.
    histogram(width),
    /// The `k` most frequent values of a group, exactly, most frequent first: a list.
    top_k(k),
}

/// The aggregate that the engine's list calls `function`.
///
/// >>> import tersecades as tc
/// >>> tc.aggregate("max", "rtt_us")
/// max(rtt_us)
#[pyfunction(name = "aggregate")]
#[pyo3(signature = (function, column=None, *, by=None, parameter=None))]
fn by_name(
    function: &str,
    column: Option<Column>,
    by: Option<Column>,
    parameter: Option<f64>,
) -> PyResult<Aggregate> {
    aggregate::find(function).or_raise()?;
    let call = match column {
        Some(column) => aggregate::call(function, column.expression),
        None => AggregateCall {
            function: function.to_owned(),
            output: function.to_owned(),
            ..AggregateCall::default()
        },
    };
    Ok(Aggregate::new(AggregateCall {
        by: by.map(|by| by.expression),
        parameter,
        ..call
    }))
}

/// The name and one line on each aggregate of the engine.
///
/// >>> import tersecades as tc
/// >>> tc.aggregates()["count"]
/// 'number of rows, or of values that are not null'
#[pyfunction]
fn aggregates(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let lines = PyDict::new(py);
    for aggregate in AGGREGATES {
        lines.set_item(aggregate.name(), aggregate.summary())?;
    }
    Ok(lines)
}

/// Adds the class and its functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Aggregate>()?;
    register_of_one_column(module)?;
    module.add_function(wrap_pyfunction!(count, module)?)?;
    register_of_two_columns(module)?;
    register_of_a_number(module)?;
    module.add_function(wrap_pyfunction!(by_name, module)?)?;
    module.add_function(wrap_pyfunction!(aggregates, module)?)
}
