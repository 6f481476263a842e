//! The naive engine: the answer to a query, row by row, as the semantics page defines it.
//!
//! ```text
//! rows ──event time, watermark──▶ filter, project, look up ──▶ sort into windows ──▶ rows
//!                                        ▲                                            │
//!                                        └──────────── the next window ───────────────┘
//! ```
//! Rows are plain vectors of [`Value`]. The watermark before row `i` is the largest event time of
//! the rows before it less the lateness; a row counts in every window that holds it and does not
//! end at or before that watermark. Everything closes at the end of input.

pub mod aggregate;
mod collected;
pub mod compare;
pub mod evaluate;
pub mod join;
pub mod order;
pub mod partition;
pub mod rows;
mod statistic;
pub mod step;
pub mod window;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Value, logical_type};
use tersecades_engine::plan::{Query, Step};
use tersecades_engine::window::Window;

pub use compare::{assert_same, batch_difference, difference};
pub use partition::{Event, Partitioned};

/// One row.
pub type Row = Vec<Value>;

/// Names and types of the columns at one point of a query.
pub type Columns = Vec<(String, DataType)>;

/// The answer to a query.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Names and types of the result columns.
    pub columns: Columns,
    /// The result rows, in order.
    pub rows: Vec<Row>,
    /// Arriving rows, counted from 0, whose windows were all closed.
    pub late: Vec<usize>,
    /// Rows that reached a window step and are in no window, because windows leave gaps.
    pub skipped_rows: usize,
    /// Arriving rows without event time.
    pub untimed_rows: usize,
    /// How far off each float of `rows` may be; empty means relative tolerance alone.
    pub slack: Vec<Vec<f64>>,
}

impl Answer {
    /// An answer that came as record batches; counts are left 0.
    pub fn from_batches(schema: &Schema, batches: &[RecordBatch]) -> Self {
        Answer {
            columns: columns_of(schema),
            rows: batches.iter().flat_map(crate::data::from_batch).collect(),
            ..Answer::default()
        }
    }
}

/// A row on its way: the values, where it arrived, when it happened, what had been seen by then.
#[derive(Debug, Clone)]
pub(crate) struct Traveller {
    pub(crate) values: Row,
    /// How far off each float may be.
    pub(crate) slack: Vec<f64>,
    pub(crate) arrival: usize,
    /// Event time in nanoseconds, if it has one.
    pub(crate) time_ns: Option<i128>,
    /// Watermark in nanoseconds before the row; `None` before the first.
    pub(crate) watermark_ns: Option<i128>,
}

/// All rows at one point of a query, and the unit of their event time.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) columns: Columns,
    pub(crate) rows: Vec<Traveller>,
    pub(crate) unit: TimeUnit,
    /// The zone that event times are shown in.
    pub(crate) zone: Option<Arc<str>>,
    /// Whether rows have event times at all.
    pub(crate) timed: bool,
}

/// Names and logical types of `schema`.
pub fn columns_of(schema: &Schema) -> Columns {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), logical_type(field.data_type())))
        .collect()
}

/// Nanoseconds of one tick.
pub fn tick_ns(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The answer to `query` over `rows` of `schema`, in order of arrival.
///
/// # Errors
/// `InvalidArgument` or `SchemaMismatch` for queries without meaning, `LimitExceeded` when a
/// result does not fit its type.
pub fn answer(query: &Query, schema: &Schema, rows: &[Row]) -> Result<Answer> {
    answer_partitioned(query, schema, rows, None)
}

/// As [`answer`], of a source with partitions.
///
/// # Errors
/// As [`answer`].
pub fn answer_partitioned(
    query: &Query,
    schema: &Schema,
    rows: &[Row],
    partitioned: Option<&Partitioned>,
) -> Result<Answer> {
    let mut result = Answer::default();
    let window = first_window(&query.steps);
    let mut flow = match window {
        Some(window) if !window.reads_time() => arrive_untimed(schema, rows),
        _ => arrive(query, schema, rows)?,
    };
    if let Some(partitioned) = partitioned {
        let lateness_ns = query.event_time.lateness.as_nanos() as i128;
        partition::judge(&mut flow, partitioned, lateness_ns);
    }
    if window.is_none_or(Window::needs_time) {
        flow.rows.retain(|row| row.time_ns.is_some());
        result.untimed_rows = rows.len() - flow.rows.len();
    }
    for (index, next) in query.steps.iter().enumerate() {
        flow = match next {
            Step::Filter(condition) => step::filter(flow, condition)?,
            Step::Project(list) => step::project(flow, list)?,
            Step::LookupJoin {
                table,
                stream_key,
                table_key,
                columns,
                ..
            } => step::look_up(flow, table, (stream_key, table_key), columns)?,
            Step::Aggregate {
                window,
                keys,
                aggregates,
            } => {
                let windows = window::aggregate(flow, window, (keys, aggregates), &mut result)?;
                match first_window(&query.steps[index + 1..]) {
                    Some(next) => window::rearrive(windows, next, &mut result)?,
                    None => windows,
                }
            }
            Step::Rows(operator) => {
                let message = format!("{} is checked by `oracle::rows`", operator.describe());
                return Err(Error::unsupported(message));
            }
        };
    }
    result.columns = flow.columns;
    (result.rows, result.slack) = flow
        .rows
        .into_iter()
        .map(|row| (row.values, row.slack))
        .unzip();
    Ok(result)
}

/// The window of the first group-by.
fn first_window(steps: &[Step]) -> Option<&Window> {
    steps.iter().find_map(|step| match step {
        Step::Aggregate { window, .. } => Some(window),
        _ => None,
    })
}

/// All arriving rows, where nothing asks for their event time.
fn arrive_untimed(schema: &Schema, rows: &[Row]) -> Flow {
    let rows = rows.iter().enumerate().map(|(arrival, values)| Traveller {
        values: values.clone(),
        slack: vec![0.0; values.len()],
        arrival,
        time_ns: None,
        watermark_ns: None,
    });
    Flow {
        columns: columns_of(schema),
        rows: rows.collect(),
        unit: TimeUnit::Millisecond,
        zone: None,
        timed: false,
    }
}

/// Gives every arriving row its event time, if it has one, and the watermark before it.
fn arrive(query: &Query, schema: &Schema, rows: &[Row]) -> Result<Flow> {
    let columns = columns_of(schema);
    let time = &query.event_time;
    let (unit, zone) = match evaluate::type_of(&time.expression, &columns)? {
        DataType::Timestamp(unit, zone) => (unit, zone),
        data_type if data_type.is_integer() => (time.unit, None),
        other => {
            return Err(Error::schema(format!(
                "event time cannot be of type {other}"
            )));
        }
    };
    let lateness_ns = i128::try_from(time.lateness.as_nanos())
        .map_err(|_| Error::invalid("the lateness is too long"))?;
    let mut newest_ns: Option<i128> = None;
    let mut travellers = Vec::new();
    for (arrival, values) in rows.iter().enumerate() {
        let time_ns = match evaluate::value_of(&time.expression, &columns, values)? {
            Value::Integer(ticks) => Some(ticks * tick_ns(unit)),
            _ => None,
        };
        travellers.push(Traveller {
            values: values.clone(),
            slack: vec![0.0; values.len()],
            arrival,
            time_ns,
            watermark_ns: newest_ns.map(|newest| newest - lateness_ns),
        });
        newest_ns = newest_ns.max(time_ns);
    }
    Ok(Flow {
        columns,
        rows: travellers,
        unit,
        zone,
        timed: true,
    })
}
