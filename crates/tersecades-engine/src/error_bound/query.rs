//! How far the results of a query may be off when columns of its stream are.

use arrow_schema::Schema;

use super::expression::{Names, any, influence};
use super::{ErrorBound, Influence, ResultBounds, rows_of};
use crate::plan::{AggregateCall, Query, Step};

/// What the lossy columns of `input`, of which its metadata tells, do to the results of `query`,
/// which have the columns of `output`.
pub fn bounds_of(query: &Query, input: &Schema, output: &Schema) -> ResultBounds {
    let mut bounds = ResultBounds {
        rows: rows_of(input),
        ..ResultBounds::default()
    };
    let fields = input.fields().iter();
    let mut names: Names = fields
        .map(|field| (field.name().clone(), Influence::of_field(field)))
        .filter(|(_, influence)| !influence.is_none())
        .collect();
    for step in &query.steps {
        names = follow(step, names, &mut bounds);
    }
    let fields = output.fields().iter();
    let influenced = fields.filter_map(|field| {
        let influence = names.get(field.name())?.clone();
        Some((field.name().clone(), influence))
    });
    bounds.columns = influenced.collect();
    bounds
}

/// What lossy columns do to the columns behind `step`.
fn follow(step: &Step, mut names: Names, bounds: &mut ResultBounds) -> Names {
    match step {
        Step::Filter(condition) => {
            if !influence(condition, &names).is_none() {
                bounds.rows.extend(any(condition, &names).columns);
            }
            names
        }
        Step::Project(columns) => {
            let columns = columns.iter();
            let computed = columns.map(|(name, from)| (name.clone(), influence(from, &names)));
            computed
                .filter(|(_, influence)| !influence.is_none())
                .collect()
        }
        Step::LookupJoin {
            stream_key,
            columns,
            ..
        } => {
            let key = names.get(stream_key).cloned().unwrap_or_default();
            bounds.rows.extend(key.columns);
            columns
                .iter()
                .for_each(|(_, output)| drop(names.remove(output)));
            names
        }
        Step::Aggregate {
            keys, aggregates, ..
        } => {
            let mut after = Names::new();
            for key in keys {
                if let Some(influence) = names.get(key) {
                    bounds.rows.extend(influence.columns.iter().cloned());
                    after.insert(key.clone(), influence.clone());
                }
            }
            for call in aggregates {
                let influence = aggregate(call, &names);
                if !influence.is_none() {
                    after.insert(call.output.clone(), influence);
                }
            }
            after
        }
        Step::Rows(_) => {
            // What an operator adds, and which rows it lets through, may hang on all of them.
            let all = names
                .values()
                .flat_map(|influence| influence.columns.iter().cloned());
            bounds.rows.extend(all.collect::<Vec<_>>());
            names
        }
    }
}

fn aggregate(call: &AggregateCall, names: &Names) -> Influence {
    let mut all = Influence::default();
    for expression in call.expressions() {
        all.columns.extend(any(expression, names).columns);
    }
    if call.user.is_some() {
        return all.with(ErrorBound::Unknown);
    }
    let steers = |expression: &Option<_>| {
        let steered = expression.as_ref().map(|by| influence(by, names));
        steered.is_some_and(|influence| !influence.is_none())
    };
    let argument = call.argument.as_ref();
    let argument = argument.map_or_else(Influence::default, |it| influence(it, names));
    if steers(&call.filter) || steers(&call.by) {
        return all.with(ErrorBound::Unknown);
    }
    let bound = match (call.function.as_str(), argument.bound) {
        // Counting needs to know what is null, which lossy encoding keeps.
        ("count", _) => return Influence::default(),
        // Moving every value by the bound moves an order statistic or a mean no further.
        (
            "min" | "max" | "mean" | "quantile" | "median" | "any_value" | "first" | "last"
            | "arg_min" | "arg_max" | "stddev_population",
            bound @ ErrorBound::Within(_),
        ) => bound,
        // Of two values and more: n / (n - 1) is at most two.
        ("stddev", ErrorBound::Within(bound)) => ErrorBound::Within(bound * 2f64.sqrt()),
        ("sum", ErrorBound::Within(bound)) => ErrorBound::PerRow(bound),
        _ => ErrorBound::Unknown,
    };
    argument.with(bound)
}
