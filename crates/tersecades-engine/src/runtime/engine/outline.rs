//! What a query would read and give, without running it.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::logical_type;

use crate::aggregate::find;
use crate::error_bound::bounds_of;
use crate::expression::{BoundFilter, Expression};
use crate::frame::Scope;
use crate::operator::row::bound::Reached;
use crate::plan::{AggregateCall, Query, Step};
use crate::runtime::first::first_rows;
use crate::runtime::part::Part;
use crate::runtime::stage::plan_parts;
use crate::runtime::{TimeKind, TimeOptions};
use crate::source::passing::{Failing, FirstRows, Passing};
use crate::window::Emit;

/// Names and logical types of what arrives; columns of other types stay as they are, for queries
/// that do not read them.
///
/// # Errors
/// What the encoder says.
pub(super) fn logical_schema(arriving: &SchemaRef) -> Result<SchemaRef> {
    let is_encoded = |field: &Arc<Field>| ColumnEncoder::new(field.data_type()).is_ok();
    let fields = arriving.fields().iter();
    let encoded: Vec<_> = fields.filter(|field| is_encoded(field)).cloned().collect();
    let metadata = arriving.metadata().clone();
    let encoder = BatchEncoder::new(&Schema::new_with_metadata(encoded, metadata.clone()))?;
    let mut logical = encoder.schema().fields().iter();
    let fields = arriving.fields().iter().map(|field| {
        let known = if is_encoded(field) {
            logical.next()
        } else {
            None
        };
        Arc::clone(known.unwrap_or(field))
    });
    let fields: Vec<_> = fields.collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// Columns of `arriving` that `query` reads; `None` when it needs all.
///
/// # Errors
/// What binding says.
pub fn columns_read(query: &Query, arriving: &SchemaRef) -> Result<Option<Vec<String>>> {
    let (first, _) = plan_parts(query, logical_schema(arriving)?)?;
    Ok(first.columns_read())
}

/// Columns of the results of `query` over what arrives.
///
/// # Errors
/// What binding says.
pub fn output_schema(query: &Query, arriving: &SchemaRef) -> Result<SchemaRef> {
    let (first, parts) = plan_parts(query, logical_schema(arriving)?)?;
    let output = parts.last().map_or(first.output, Part::schema);
    Ok(bounds_of(query, arriving, &output).mark(&output))
}

/// Operators of `query` over what arrives, in order, one line each.
///
/// # Errors
/// What binding says.
pub fn describe(query: &Query, arriving: &SchemaRef) -> Result<Vec<String>> {
    let (first, parts) = plan_parts(query, logical_schema(arriving)?)?;
    let mut lines = first.instantiate(false)?.describe();
    lines.extend(parts.iter().flat_map(Part::describe));
    Ok(lines)
}

/// Predicates that columns of `arriving` must pass for a row to get anywhere: those of the filters
/// that `query` begins with, up to the first that computes, which may fail.
pub fn passing(query: &Query, arriving: &SchemaRef, time: &TimeOptions) -> Passing {
    let mut passing = Passing {
        tests: Vec::new(),
        failing: wanted_of_failing(query, time),
        of_all: query
            .event_time
            .expression
            .columns()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        first: first_of(query, arriving),
        reached: None,
        is_light: false,
    };
    let Ok(schema) = logical_schema(arriving) else {
        return passing;
    };
    let scope = Scope::of_schema(&schema);
    for (at, step) in query.steps.iter().enumerate() {
        let Step::Filter(condition) = step else {
            passing.reached = reached_of(&query.steps[at..], at == 0);
            passing.is_light = is_light(step, &schema);
            break;
        };
        // What is wrong with a filter is said where the query is bound.
        let Ok(filter) = BoundFilter::bind(condition, &scope) else {
            break;
        };
        let (found, goes_on) = filter.into_passing();
        let named = found.into_iter().map(|(slot, predicate)| {
            let field = schema.field(slot);
            let name = field.name().clone();
            (name, field.data_type().clone(), Arc::new(predicate))
        });
        passing.tests.extend(named);
        if !goes_on {
            break;
        }
    }
    passing
}

/// Whether `step` folds columns of numbers as they are, without groups: behind filters that compute
/// nothing this takes less than reading a file does.
fn is_light(step: &Step, arriving: &Schema) -> bool {
    let is_number = |argument: &Expression| {
        let field = argument
            .as_column()
            .map(|name| arriving.field_with_name(name));
        matches!(field, Some(Ok(field)) if field.data_type().is_numeric())
    };
    let folds = |call: &AggregateCall| {
        let known = find(&call.function).is_ok_and(|aggregate| aggregate.collects().is_none());
        known
            && call.user.is_none()
            && call.filter.is_none()
            && call.argument.as_ref().is_none_or(is_number)
    };
    match step {
        Step::Aggregate {
            keys, aggregates, ..
        } => keys.is_empty() && aggregates.iter().all(folds),
        _ => false,
    }
}

/// The first rows of an order, where `query` over `arriving` begins with them.
fn first_of(query: &Query, arriving: &Schema) -> Option<FirstRows> {
    let (by, rows) = first_rows(&query.steps)?;
    let (column, order) = by.first()?;
    Some(FirstRows {
        data_type: logical_type(arriving.field_with_name(column).ok()?.data_type()),
        column: (*column).to_owned(),
        descending: order.descending,
        rows: rows as u64,
    })
}

/// The column that counts before all others in the order whose first rows `steps` begin with, and
/// how far they come; `all` says whether all rows of the source come that far.
fn reached_of(steps: &[Step], all: bool) -> Option<(String, Reached)> {
    let (by, count) = first_rows(steps)?;
    let (column, order) = by.first()?;
    let of_parts = all.then_some((*order, count));
    Some(((*column).to_owned(), Reached::new(of_parts)))
}

/// What windows by time need of rows that a filter drops: they move the watermark.
fn wanted_of_failing(query: &Query, time: &TimeOptions) -> Failing {
    let windows = query.steps.iter().filter_map(|step| match step {
        Step::Aggregate { window, .. } => window.needs_time().then_some(window),
        _ => None,
    });
    // What comes out every so often, and which rows are too new, goes by each time there is.
    let mut by_each = time.kind != TimeKind::Event || time.future_limit.is_some();
    let mut timed = false;
    for window in windows {
        timed = true;
        by_each |= matches!(window.updates.emit, Emit::Every(_));
    }
    match query.event_time.expression.as_column() {
        _ if !timed => Failing::Nothing,
        Some(column) if !by_each => Failing::Newest(column.to_owned()),
        _ => Failing::Time,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow_schema::{DataType, TimeUnit};

    use super::*;
    use crate::aggregate::{call, count, quantile};
    use crate::expression::col;
    use crate::plan::EventTime;
    use crate::window::tumble;

    #[test]
    fn folds_of_numbers_without_groups_are_light_and_all_else_is_not() {
        let types = [
            ("a", DataType::Int64),
            ("b", DataType::Float32),
            ("t", DataType::Utf8),
        ];
        let fields = types.map(|(name, data_type)| Field::new(name, data_type, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let filter = |condition| Step::Filter(condition);
        let aggregate = |keys: &[&str], aggregates: Vec<AggregateCall>| Step::Aggregate {
            window: tumble(Duration::from_secs(1)),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            aggregates,
        };
        let is_light = |steps: &[Step]| {
            let query = Query {
                event_time: EventTime {
                    expression: col("a"),
                    unit: TimeUnit::Millisecond,
                    lateness: Duration::ZERO,
                },
                steps: steps.to_vec(),
            };
            passing(&query, &schema, &TimeOptions::default()).is_light
        };
        let sums = || vec![count(), call("sum", col("a")), call("stddev", col("b"))];
        assert!(is_light(&[aggregate(&[], sums())]));
        let tests = [col("a").gt(3), col("t").eq("x")].map(filter);
        assert!(is_light(&[&tests[..], &[aggregate(&[], sums())]].concat()));
        let computes = filter((col("a") + 2).gt(col("b")));
        for heavy in [
            vec![],
            tests.to_vec(),
            vec![computes, aggregate(&[], sums())],
            vec![aggregate(&["t"], sums())],
            vec![aggregate(&[], vec![quantile(col("a"), 0.5)])],
            vec![aggregate(&[], vec![call("sum", col("a") + 2)])],
            vec![aggregate(&[], vec![call("max", col("t"))])],
            vec![aggregate(&[], vec![count().filter(col("a").gt(3))])],
        ] {
            assert!(!is_light(&heavy), "{heavy:?}");
        }
    }
}
