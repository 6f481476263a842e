//! Rows into windows: every row is copied into each open window that holds it, then sorted.

mod aligned;
mod calendar;
mod count;
mod session;

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Value;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::window::{Shape, Window};

use super::aggregate::{compute, result_type};
use super::evaluate::position;
use super::order::order_rows;
use super::{Answer, Columns, Flow, Traveller, tick_ns};

/// Start and end of a window, in ticks.
type Span = (i128, i128);

/// The rows of one key in one window.
struct Group {
    /// `None` when the window has no start and end.
    span: Option<Span>,
    keys: Vec<Value>,
    rows: Vec<Traveller>,
}

/// The column that says when a window started, if the flow has it.
fn start_column(flow: &Flow) -> Option<usize> {
    position("window_start", &flow.columns).ok()
}

/// The rows of a result, as they arrive at the next window; none of them is late.
pub(crate) fn rearrive(mut flow: Flow, window: &Window, result: &mut Answer) -> Result<Flow> {
    let start = start_column(&flow);
    if let Some(start) = start {
        let DataType::Timestamp(unit, zone) = flow.columns[start].1.clone() else {
            return Err(Error::schema("`window_start` is no longer a timestamp"));
        };
        (flow.unit, flow.zone) = (unit, zone);
    } else if window.needs_time() {
        return Err(Error::schema("no `window_start`"));
    }
    let tick = tick_ns(flow.unit);
    for (arrival, row) in flow.rows.iter_mut().enumerate() {
        row.arrival = arrival;
        row.watermark_ns = None;
        row.time_ns = match start.map(|start| &row.values[start]) {
            Some(Value::Integer(ticks)) => Some(ticks * tick),
            _ => None,
        };
    }
    let before = flow.rows.len();
    flow.rows
        .retain(|row| row.time_ns.is_some() || !window.needs_time());
    result.untimed_rows += before - flow.rows.len();
    flow.timed = start.is_some();
    Ok(flow)
}

/// Groups rows by window and keys and computes the aggregates of each group.
pub(crate) fn aggregate(
    mut flow: Flow,
    window: &Window,
    (keys, calls): (&[String], &[AggregateCall]),
    result: &mut Answer,
) -> Result<Flow> {
    if matches!(window.shape, Shape::Global) {
        // A group-by of the whole stream knows no time: rows are in order of arrival.
        flow.rows.iter_mut().for_each(|row| row.time_ns = Some(0));
    }
    let columns = result_columns(&flow, window, keys, calls)?;
    let key_positions: Result<Vec<usize>> = keys
        .iter()
        .map(|key| position(key, &flow.columns))
        .collect();
    let key_positions = key_positions?;
    let mut groups = match window.shape {
        Shape::Session { gap } => session::groups(&flow, gap, &key_positions, result)?,
        Shape::Count { rows } => count::groups(&flow, rows, &key_positions),
        _ => aligned::groups(&flow, window, &key_positions, result)?,
    };
    if groups.is_empty() && keys.is_empty() && matches!(window.shape, Shape::Global) {
        groups.push(Group {
            span: None,
            keys: Vec::new(),
            rows: Vec::new(),
        });
    }
    let spans = columns.iter().filter(|(name, _)| name == "window_start");
    let spans = spans.count() > 0 && !matches!(window.shape, Shape::Global);
    let rows = groups
        .iter()
        .map(|group| result_row(group, spans, calls, &flow.columns));
    Ok(Flow {
        rows: rows.collect::<Result<_>>()?,
        columns,
        unit: flow.unit,
        zone: flow.zone.clone(),
        timed: flow.timed,
    })
}

/// The values of the columns `keys` of a row.
fn keys_of(row: &Traveller, keys: &[usize]) -> Vec<Value> {
    keys.iter().map(|key| row.values[*key].clone()).collect()
}

fn same_keys(a: &[Value], b: &[Value]) -> bool {
    order_rows(a, b).is_eq()
}

/// Event time and watermark of a row in ticks; the rows of a window that needs it have a time.
fn ticks_of(flow: &Flow, row: &Traveller) -> (i128, Option<i128>) {
    let ticks = |ns: i128| ns.div_euclid(tick_ns(flow.unit));
    (row.time_ns.map_or(0, ticks), row.watermark_ns.map(ticks))
}

fn result_columns(
    flow: &Flow,
    window: &Window,
    keys: &[String],
    calls: &[AggregateCall],
) -> Result<Columns> {
    let mut columns = Vec::new();
    if flow.timed && !matches!(window.shape, Shape::Global) {
        let time = DataType::Timestamp(flow.unit, flow.zone.clone());
        columns.push(("window_start".to_owned(), time.clone()));
        columns.push(("window_end".to_owned(), time));
    }
    for key in keys {
        columns.push(flow.columns[position(key, &flow.columns)?].clone());
    }
    for call in calls {
        columns.push((call.output.clone(), result_type(call, &flow.columns)?));
    }
    Ok(columns)
}

fn result_row(
    group: &Group,
    spans: bool,
    calls: &[AggregateCall],
    columns: &[(String, DataType)],
) -> Result<Traveller> {
    let mut values = Vec::new();
    let ends = group
        .span
        .map_or([None; 2], |span| [Some(span.0), Some(span.1)]);
    for end in ends.into_iter().filter(|_| spans) {
        let fits = end.is_none_or(|end| i64::try_from(end).is_ok());
        if !fits {
            return Err(Error::limit("a window reaches beyond 64-bit times"));
        }
        values.push(end.map_or(Value::Null, Value::Integer));
    }
    values.extend(group.keys.iter().cloned());
    let mut slack = vec![0.0; values.len()];
    let rows: Vec<&Traveller> = group.rows.iter().collect();
    for call in calls {
        let (value, off) = compute(call, columns, &rows)?;
        values.push(value);
        slack.push(off);
    }
    Ok(Traveller {
        values,
        slack,
        arrival: 0,
        time_ns: None,
        watermark_ns: None,
    })
}
