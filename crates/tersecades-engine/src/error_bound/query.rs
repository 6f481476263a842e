//! How far the results of a query may be off when columns of its stream are.

use std::collections::{BTreeSet, HashSet};

use arrow_schema::Schema;

use super::expression::{Names, any, influence, names_of, of_all};
use super::{ErrorBound, Influence, ResultBounds, rows_of};
use crate::expression::Expression;
use crate::operator::window_aggregate::plan::CHANGE;
use crate::plan::{AggregateCall, Query, Step};

/// What the lossy columns of `input`, of which its metadata tells, do to the results of `query`,
/// which have the columns of `output`.
pub fn bounds_of(query: &Query, input: &Schema, output: &Schema) -> ResultBounds {
    let mut bounds = ResultBounds {
        rows: rows_of(input),
        ..ResultBounds::default()
    };
    let mut names = names_of(input);
    let time = any(&query.event_time.expression, &names);
    let mut known: HashSet<&str> = input.fields().iter().map(|it| it.name().as_str()).collect();
    for (index, step) in query.steps.iter().enumerate() {
        if let Step::Rows(operator) = step
            && !names.is_empty()
        {
            let added = read_behind(&query.steps[index + 1..], output);
            let added = added.filter(|name| !known.contains(name) || !operator.passes(name));
            let unknown = of_all(&names).with(ErrorBound::Unknown);
            let added: Vec<_> = added
                .map(|name| (name.to_owned(), unknown.clone()))
                .collect();
            names.extend(added);
        }
        if goes_by_time(step) {
            bounds.rows.extend(time.columns.iter().cloned());
        }
        names = follow(step, (names, &time), &mut bounds);
        match step {
            Step::Project(columns) => known = columns.iter().map(|it| it.0.as_str()).collect(),
            Step::Aggregate {
                keys, aggregates, ..
            } => {
                let outputs = aggregates.iter().map(|call| call.output.as_str());
                let named = keys.iter().map(String::as_str).chain(outputs);
                known = named
                    .chain(["window_start", "window_end", CHANGE])
                    .collect();
            }
            Step::LookupJoin { columns, .. } => {
                known.extend(columns.iter().map(|(_, output)| output.as_str()));
            }
            Step::Filter(_) | Step::Rows(_) => {}
        }
    }
    let fields = output.fields().iter();
    let influenced = fields.filter_map(|field| {
        let influence = names.get(field.name())?.clone();
        Some((field.name().clone(), influence))
    });
    bounds.columns = influenced.collect();
    bounds
}

/// Names that `steps` read, and those of the results.
fn read_behind<'q>(steps: &'q [Step], output: &'q Schema) -> impl Iterator<Item = &'q str> {
    let read = steps.iter().flat_map(|step| match step {
        Step::Filter(condition) => condition.columns(),
        Step::Project(columns) => columns.iter().flat_map(|it| it.1.columns()).collect(),
        Step::LookupJoin { stream_key, .. } => vec![stream_key.as_str()],
        Step::Aggregate {
            keys, aggregates, ..
        } => {
            let read = aggregates.iter().flat_map(AggregateCall::expressions);
            let read = read.flat_map(Expression::columns);
            read.chain(keys.iter().map(String::as_str)).collect()
        }
        Step::Rows(_) => Vec::new(),
    });
    read.chain(output.fields().iter().map(|field| field.name().as_str()))
}

/// Whether the event time says which rows a result is of.
fn goes_by_time(step: &Step) -> bool {
    match step {
        Step::Aggregate { window, .. } => window.needs_time() || window.reads_time(),
        _ => false,
    }
}

/// What lossy columns do to the columns behind `step`, those among them that `time` depends on.
fn follow(step: &Step, (mut names, time): (Names, &Influence), bounds: &mut ResultBounds) -> Names {
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
            table,
            stream_key,
            table_key,
            columns,
            ..
        } => {
            bounds.rows.extend(rows_of(table.rows.schema_ref()));
            let in_table = names_of(table.rows.schema_ref());
            let keys = [names.get(stream_key), in_table.get(table_key)];
            let key = keys.into_iter().flatten().flat_map(|key| &key.columns);
            let key: BTreeSet<String> = key.cloned().collect();
            for (name, output) in columns {
                let own = in_table.get(name).cloned().unwrap_or_default();
                match own.found_by(&key) {
                    found if found.is_none() => drop(names.remove(output)),
                    found => drop(names.insert(output.clone(), found)),
                }
            }
            bounds.rows.extend(key);
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
                let mut influence = aggregate(call, &names);
                // Of which row it is the value, the time says.
                if matches!(call.function.as_str(), "first" | "last") && call.by.is_none() {
                    influence.columns.extend(time.columns.iter().cloned());
                    if !time.columns.is_empty() {
                        influence = influence.with(ErrorBound::Unknown);
                    }
                }
                if !influence.is_none() {
                    after.insert(call.output.clone(), influence);
                }
            }
            after
        }
        Step::Rows(_) => {
            // What an operator adds, and which rows it lets through, may hang on all of them.
            bounds.rows.extend(of_all(&names).columns);
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
        // Counting needs to know what is null.
        ("count", _) if !argument.may_move_nulls() => return Influence::default(),
        // Moving every value by the bound moves an order statistic or a mean no further.
        (
            "min" | "max" | "mean" | "quantile" | "median" | "any_value" | "first" | "last"
            | "arg_min" | "arg_max" | "arg_min_last" | "arg_max_last" | "stddev_population",
            bound @ ErrorBound::Within(_),
        ) => bound,
        // Of two values and more: n / (n - 1) is at most two.
        ("stddev", ErrorBound::Within(bound)) => ErrorBound::Within(bound * 2f64.sqrt()),
        ("sum", ErrorBound::Within(bound)) => ErrorBound::PerRow(bound),
        _ => ErrorBound::Unknown,
    };
    let may_be_whole = argument.may_be_whole && call.function != "mean";
    Influence {
        may_be_whole,
        ..argument.with(bound)
    }
}
