//! Clauses of calls that the planner passes over, or takes for something else: refused by name, as
//! a call without them gives other values.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Function, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, OrderByExpr,
};
use tersecades_columnar::error::Error;

use super::check::refuse;
use super::spelling::RESPELT;
use crate::function::FUNCTIONS;

/// Refuses those of `function`.
pub(super) fn check_clauses(function: &Function) -> ControlFlow<Error> {
    let name = function.name.to_string();
    let known = name.to_lowercase();
    if function.parameters != FunctionArguments::None {
        let what = format!("`{name}` with two lists of arguments");
        return refuse(&what, function, "write one: quantile(x, 0.5)");
    }
    let of_rows = FUNCTIONS.scalars.contains_key(&known) || RESPELT.contains(&known.as_str());
    if of_rows && let Some(clause) = clause_of(function) {
        let hint = match clause.as_str() {
            "FILTER" => format!("write CASE WHEN condition THEN {name}(x) END"),
            _ => format!("{name} is of single rows: leave it out"),
        };
        return refuse(&format!("`{name}` with {clause}"), function, &hint);
    }
    let aggregate = FUNCTIONS.aggregates.get(&known);
    let of_values = aggregate.is_some_and(|known| known.supports_within_group_clause());
    match of_values && orders_by_another(function) {
        true => {
            let hint = "the order is that of the values: \
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)";
            refuse(&format!("`{name}` in another order"), function, hint)
        }
        false => ControlFlow::Continue(()),
    }
}

/// The first clause of a call that is no argument.
pub(super) fn clause_of(function: &Function) -> Option<String> {
    let of_list = arguments(function).and_then(|list| {
        let doubled = list.duplicate_treatment.map(|it| it.to_string());
        doubled.or_else(|| list.clauses.first().map(name_of))
    });
    let missing = [
        ("FILTER", function.filter.is_none()),
        ("OVER", function.over.is_none()),
        ("WITHIN GROUP", function.within_group.is_empty()),
    ];
    let found = missing.into_iter().find(|(_, is_missing)| !is_missing);
    of_list
        .or_else(|| found.map(|(name, _)| name.to_owned()))
        .or_else(|| function.null_treatment.map(|it| it.to_string()))
}

fn name_of(clause: &FunctionArgumentClause) -> String {
    match clause {
        FunctionArgumentClause::OrderBy(_) => "ORDER BY".to_owned(),
        FunctionArgumentClause::IgnoreOrRespectNulls(nulls) => nulls.to_string(),
        other => format!("`{other}`"),
    }
}

/// Whether a value and a number are followed by an order that is not of this value, which the
/// planner would put in its place.
fn orders_by_another(function: &Function) -> bool {
    let Some([value, _, ..]) = arguments(function).map(|list| list.args.as_slice()) else {
        return false;
    };
    let value = value.to_string();
    order(function).is_some_and(|order| order.iter().any(|by| by.expr.to_string() != value))
}

fn order(function: &Function) -> Option<&[OrderByExpr]> {
    let clauses = arguments(function)?.clauses.iter();
    let mut orders = clauses.filter_map(|clause| match clause {
        FunctionArgumentClause::OrderBy(order) => Some(order.as_slice()),
        _ => None,
    });
    orders.next()
}

fn arguments(function: &Function) -> Option<&FunctionArgumentList> {
    match &function.args {
        FunctionArguments::List(list) => Some(list),
        _ => None,
    }
}
