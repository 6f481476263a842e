//! Seeded calls of the aggregates that keep values, sketches among them.

use arrow_schema::DataType;
use tersecades_engine::expression::col;
use tersecades_engine::plan::AggregateCall;

use super::expression::condition;
use super::scope::{Column, Scope};
use crate::random::Random;

/// One aggregate, if the columns allow, and what it makes.
pub(super) fn any(
    scope: &Scope,
    output: &str,
    random: &mut Random,
) -> Option<(AggregateCall, Column)> {
    let numeric = |column: &Column| column.exact && column.data_type.is_numeric();
    let tame = |column: &Column| numeric(column) && column.is_summable() && is_finite(column);
    let ordered = |column: &Column| column.exact && column.data_type != DataType::Binary;
    let pick = |columns: Vec<&Column>, random: &mut Random| match columns.is_empty() {
        true => None,
        false => Some((*random.pick(&columns)).clone()),
    };
    let exact = |column: &Column| column.exact;
    let fractions = [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0];
    let mut call = AggregateCall {
        output: output.to_owned(),
        ..AggregateCall::default()
    };
    let (function, argument, data_type, exact_result) = match random.below(11) {
        0 => {
            let argument = pick(scope.that(ordered), random)?;
            ("any_value", argument.clone(), argument.data_type, true)
        }
        1 => {
            call.argument = Some(condition(&scope.exact(), 1, random));
            let function = *random.pick(&["bool_and", "bool_or"]);
            (function, scope.columns[0].clone(), DataType::Boolean, true)
        }
        2 | 3 => {
            let argument = pick(scope.that(exact), random)?;
            let function = *random.pick(&["first", "last", "mode"]);
            (function, argument.clone(), argument.data_type, true)
        }
        4 => {
            call.parameter = Some(random.between(1, 4) as f64);
            let argument = pick(scope.that(exact), random)?;
            ("top_k", argument.clone(), list(), true)
        }
        5 => {
            call.parameter = Some(*random.pick(&[0.1, 0.5, 1.0, 10.0, 1e6]));
            (
                "histogram",
                pick(scope.that(numeric), random)?,
                list(),
                true,
            )
        }
        6 => {
            call.parameter = Some(*random.pick(&fractions));
            let argument = pick(scope.that(numeric), random)?;
            ("approx_quantile", argument, DataType::Float64, false)
        }
        7 => {
            let argument = pick(scope.that(numeric), random)?;
            ("approx_median", argument, DataType::Float64, false)
        }
        8 => {
            let argument = pick(scope.that(exact), random)?;
            ("approx_count_distinct", argument, DataType::Int64, false)
        }
        9 => {
            let argument = pick(scope.that(tame), random)?;
            let data_type = super::window::sum_type(&argument.data_type);
            let exact = !argument.data_type.is_floating();
            ("sum_distinct", argument, data_type, exact)
        }
        _ => {
            let functions = ["covariance", "covariance_population", "correlation"];
            call.by = Some(col(pick(scope.that(tame), random)?.name));
            let argument = pick(scope.that(tame), random)?;
            (*random.pick(&functions), argument, DataType::Float64, false)
        }
    };
    call.function = function.to_owned();
    call.argument = call.argument.or(Some(col(argument.name)));
    let column = Column {
        name: output.to_owned(),
        data_type,
        exact: exact_result,
        tame: argument.tame,
        samples: Vec::new(),
    };
    Some((call, column))
}

/// Floats of tame columns may still be infinite or NaN, which sums of products do not bear.
fn is_finite(column: &Column) -> bool {
    !column.data_type.is_floating() && !column.samples.is_empty()
}

/// Stands for any list.
fn list() -> DataType {
    DataType::new_list(DataType::Int64, true)
}
