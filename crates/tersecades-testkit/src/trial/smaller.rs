//! What is a little less than a list, an expression, a query, a stream.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::Schema;
use tersecades_engine::expression::Expression;
use tersecades_engine::plan::{AggregateCall, Query, Step};

use crate::data::Stream;

/// `rows` without a stretch of them: halves first, single rows last.
pub fn rows<T: Clone>(rows: &[T]) -> impl Iterator<Item = Vec<T>> + '_ {
    let halves = std::iter::successors(Some(rows.len()), |length| Some(length / 2));
    let lengths = halves.take_while(|length| *length > 0);
    lengths.flat_map(move |length| {
        (0..rows.len()).step_by(length).map(move |start| {
            let end = (start + length).min(rows.len());
            [&rows[..start], &rows[end..]].concat()
        })
    })
}

/// `list` without one of its items.
fn without_one<T: Clone>(list: &[T]) -> Vec<Vec<T>> {
    let without = |index: usize| [&list[..index], &list[index + 1..]].concat();
    (0..list.len()).map(without).collect()
}

/// The stream with fewer rows, then with fewer of the columns that `query` does not name.
pub fn streams<'a>(stream: &'a Stream, query: &'a Query) -> impl Iterator<Item = Stream> + 'a {
    let fewer_rows = rows(&stream.rows).map(|rows| Stream {
        rows,
        ..stream.clone()
    });
    let named = columns_of(query);
    let unnamed = (0..stream.schema.fields().len())
        .rev()
        .filter(move |index| !named.contains(stream.schema.field(*index).name()));
    fewer_rows.chain(unnamed.map(|index| without_column(stream, index)))
}

/// The stream without its column at `index`.
pub fn without_column(stream: &Stream, index: usize) -> Stream {
    let mut fields: Vec<_> = stream.schema.fields().iter().cloned().collect();
    fields.remove(index);
    let mut smaller = stream.clone();
    smaller.schema = Arc::new(Schema::new(fields));
    smaller.rows.iter_mut().for_each(|row| {
        row.remove(index);
    });
    if let Some(shape) = index.checked_sub(1) {
        smaller.shapes.remove(shape);
    }
    smaller
}

/// Every name that `query` mentions.
pub fn columns_of(query: &Query) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut read = |expression: &Expression| {
        names.extend(expression.columns().into_iter().map(str::to_owned));
    };
    read(&query.event_time.expression);
    let mut keys = Vec::new();
    for step in &query.steps {
        match step {
            Step::Filter(condition) => read(condition),
            Step::Project(list) => list.iter().for_each(|(_, expression)| read(expression)),
            Step::LookupJoin { stream_key, .. } => keys.push(stream_key.clone()),
            Step::Aggregate {
                keys: by,
                aggregates,
                ..
            } => {
                keys.extend(by.iter().cloned());
                let expressions = aggregates.iter().flat_map(AggregateCall::expressions);
                expressions.for_each(&mut read);
            }
            Step::Rows(_) => {}
        }
    }
    names.extend(keys);
    names
}

/// The query with fewer or simpler steps; what has no meaning is refused by every engine alike.
pub fn queries(query: &Query) -> impl Iterator<Item = Query> + '_ {
    let with = |steps| Query {
        steps,
        event_time: query.event_time.clone(),
    };
    let fewer = without_one(&query.steps).into_iter().map(with);
    let simpler = query
        .steps
        .iter()
        .enumerate()
        .flat_map(move |(index, step)| {
            steps(step).into_iter().map(move |step| {
                let mut smaller = query.clone();
                smaller.steps[index] = step;
                smaller
            })
        });
    let in_order = (!query.event_time.lateness.is_zero()).then(|| {
        let mut smaller = query.clone();
        smaller.event_time.lateness = Duration::ZERO;
        smaller
    });
    fewer.chain(simpler).chain(in_order)
}

fn steps(step: &Step) -> Vec<Step> {
    match step {
        Step::Filter(condition) => {
            let parts = expressions(condition);
            parts.into_iter().map(Step::Filter).collect()
        }
        Step::Project(list) => without_one(list).into_iter().map(Step::Project).collect(),
        Step::Aggregate {
            window,
            keys,
            aggregates,
        } => {
            let make = |window, keys, aggregates| Step::Aggregate {
                window,
                keys,
                aggregates,
            };
            let mut smaller = Vec::new();
            for fewer in without_one(aggregates) {
                smaller.push(make(*window, keys.clone(), fewer));
            }
            for fewer in without_one(keys) {
                smaller.push(make(*window, fewer, aggregates.clone()));
            }
            for simpler in calls(aggregates) {
                smaller.push(make(*window, keys.clone(), simpler));
            }
            if !window.offset.is_zero() {
                let window = window.offset(Duration::ZERO);
                smaller.push(make(window, keys.clone(), aggregates.clone()));
            }
            smaller
        }
        Step::LookupJoin { .. } | Step::Rows(_) => Vec::new(),
    }
}

/// The calls with one of their filters gone or simpler.
fn calls(calls: &[AggregateCall]) -> Vec<Vec<AggregateCall>> {
    let mut smaller = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let Some(filter) = &call.filter else { continue };
        let simpler = expressions(filter).into_iter().map(Some);
        for filter in std::iter::once(None).chain(simpler) {
            let mut changed = calls.to_vec();
            changed[index].filter = filter;
            smaller.push(changed);
        }
    }
    smaller
}

/// Parts of a condition that are conditions themselves.
fn expressions(condition: &Expression) -> Vec<Expression> {
    match condition {
        Expression::And(a, b) | Expression::Or(a, b) => vec![(**a).clone(), (**b).clone()],
        Expression::Not(a) => vec![(**a).clone()],
        _ => Vec::new(),
    }
}
