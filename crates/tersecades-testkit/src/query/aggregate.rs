//! Seeded calls of the aggregates that keep values, sketches among them.

use arrow_schema::DataType;
use tersecades_engine::expression::col;
use tersecades_engine::plan::AggregateCall;

use super::expression::condition;
use super::scope::{Column, Scope};
use crate::random::Random;

/// What a generated call is made of: function, argument, type of the result, whether it is exact.
type Made = (&'static str, Column, DataType, bool);

/// Fractions of quantiles.
const FRACTIONS: [f64; 7] = [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0];

/// Numbers of the line through pairs.
const REGRESSION: [&str; 9] = [
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_count",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// One aggregate, if the columns allow, and what it makes.
pub(super) fn any(
    scope: &Scope,
    output: &str,
    random: &mut Random,
) -> Option<(AggregateCall, Column)> {
    let mut call = AggregateCall {
        output: output.to_owned(),
        ..AggregateCall::default()
    };
    let made = match random.below(11) {
        0..6 => of_values(scope, &mut call, random),
        _ => of_numbers(scope, &mut call, random),
    };
    let (function, argument, data_type, exact) = made?;
    call.function = function.to_owned();
    call.argument = call.argument.or(Some(col(argument.name)));
    let column = Column {
        name: output.to_owned(),
        data_type,
        exact,
        tame: argument.tame,
        samples: Vec::new(),
    };
    Some((call, column))
}

fn pick(columns: Vec<&Column>, random: &mut Random) -> Option<Column> {
    (!columns.is_empty()).then(|| (*random.pick(&columns)).clone())
}

/// Aggregates of values of any type.
fn of_values(scope: &Scope, call: &mut AggregateCall, random: &mut Random) -> Option<Made> {
    let argument = pick(scope.that(|column| column.exact), random)?;
    Some(match random.below(7) {
        4 if argument.data_type != DataType::Binary => {
            call.parameter = Some(*random.pick(&FRACTIONS));
            ("quantile_disc", argument.clone(), argument.data_type, true)
        }
        0 if argument.data_type != DataType::Binary => {
            ("any_value", argument.clone(), argument.data_type, true)
        }
        1 => {
            call.argument = Some(condition(&scope.exact(), 1, random));
            let function = *random.pick(&["bool_and", "bool_or"]);
            (function, argument, DataType::Boolean, true)
        }
        2 => {
            call.parameter = Some(random.between(1, 4) as f64);
            ("top_k", argument, list(), true)
        }
        3 => ("approx_count_distinct", argument, DataType::Int64, false),
        _ => {
            let function = *random.pick(&["first", "last", "mode"]);
            (function, argument.clone(), argument.data_type, true)
        }
    })
}

/// Aggregates of numbers.
fn of_numbers(scope: &Scope, call: &mut AggregateCall, random: &mut Random) -> Option<Made> {
    let numeric = |column: &Column| column.exact && column.data_type.is_numeric();
    let tame = |column: &Column| numeric(column) && column.is_summable() && is_finite(column);
    let argument = pick(scope.that(numeric), random)?;
    Some(match random.below(8) {
        5 => {
            let functions = ["skewness", "kurtosis", "kurtosis_population", "product"];
            let argument = pick(scope.that(tame), random)?;
            (*random.pick(&functions), argument, DataType::Float64, false)
        }
        6 => {
            call.by = Some(col(pick(scope.that(tame), random)?.name));
            let argument = pick(scope.that(tame), random)?;
            match *random.pick(&REGRESSION) {
                "regr_count" => ("regr_count", argument, DataType::Int64, true),
                function => (function, argument, DataType::Float64, false),
            }
        }
        0 => {
            call.parameter = Some(*random.pick(&[0.1, 0.5, 1.0, 10.0, 1e6]));
            ("histogram", argument, list(), true)
        }
        1 => {
            call.parameter = Some(*random.pick(&FRACTIONS));
            ("approx_quantile", argument, DataType::Float64, false)
        }
        2 => ("approx_median", argument, DataType::Float64, false),
        3 => {
            let argument = pick(scope.that(tame), random)?;
            let data_type = super::window::sum_type(&argument.data_type);
            let exact = !argument.data_type.is_floating();
            match random.below(2) {
                0 => ("mean_distinct", argument, DataType::Float64, false),
                _ => ("sum_distinct", argument, data_type, exact),
            }
        }
        4 => {
            let integers = |column: &Column| column.exact && column.data_type.is_integer();
            let argument = pick(scope.that(integers), random)?;
            let function = *random.pick(&["bit_and", "bit_or", "bit_xor"]);
            (function, argument.clone(), argument.data_type, true)
        }
        _ => {
            let functions = ["covariance", "covariance_population", "correlation"];
            call.by = Some(col(pick(scope.that(tame), random)?.name));
            let argument = pick(scope.that(tame), random)?;
            (*random.pick(&functions), argument, DataType::Float64, false)
        }
    })
}

/// Floats of tame columns may still be infinite or NaN, which sums of products do not bear.
fn is_finite(column: &Column) -> bool {
    !column.data_type.is_floating() && !column.samples.is_empty()
}

/// Stands for any list.
fn list() -> DataType {
    DataType::new_list(DataType::Int64, true)
}
