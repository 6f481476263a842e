//! Rows into windows: every row is copied into each open window that holds it, then sorted.

use std::time::Duration;

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Value;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::window::{Shape, Window};

use super::aggregate::{compute, result_type};
use super::evaluate::position;
use super::order::order_rows;
use super::{Answer, Columns, Flow, Traveller, tick_ns};

/// A window, in ticks.
type Span = (i128, i128);

/// The windows that hold each time, in ticks.
#[derive(Debug, Clone, Copy)]
enum Windows {
    /// All rows together.
    Global,
    /// `[k * slide + offset, k * slide + offset + size)`.
    Hop {
        size: i128,
        slide: i128,
        offset: i128,
    },
}

impl Windows {
    fn of(window: &Window, tick: i128) -> Result<Self> {
        let ticks = |duration: Duration| {
            let nanos = i128::try_from(duration.as_nanos())
                .map_err(|_| Error::invalid("a window is too long"))?;
            match nanos % tick {
                0 => Ok(nanos / tick),
                _ => Err(Error::invalid("a window is no whole number of ticks")),
            }
        };
        let length = |duration: Duration| match ticks(duration)? {
            0 => Err(Error::invalid("a window must be longer than zero")),
            ticks => Ok(ticks),
        };
        let offset = ticks(window.offset)?;
        Ok(match window.shape {
            Shape::Global => Windows::Global,
            Shape::Tumble { size } => Windows::Hop {
                size: length(size)?,
                slide: length(size)?,
                offset,
            },
            Shape::Hop { size, slide } => Windows::Hop {
                size: length(size)?,
                slide: length(slide)?,
                offset,
            },
        })
    }

    /// All windows that hold `time`, ascending.
    fn holding(self, time: i128) -> Vec<Span> {
        let mut spans = Vec::new();
        match self {
            Windows::Global => spans.push((i128::MIN, i128::MAX)),
            Windows::Hop {
                size,
                slide,
                offset,
            } => {
                let mut start = (time - offset).div_euclid(slide) * slide + offset;
                while start + size > time {
                    spans.push((start, start + size));
                    start -= slide;
                }
            }
        }
        spans.reverse();
        spans
    }
}

/// One row in one of its windows.
struct Member {
    span: Span,
    keys: Vec<Value>,
    row: Traveller,
}

/// The rows of a window result, as they arrive at the next window.
pub(crate) fn rearrive(mut flow: Flow) -> Result<Flow> {
    let start = position("window_start", &flow.columns)?;
    let DataType::Timestamp(unit, _) = flow.columns[start].1 else {
        return Err(Error::schema("`window_start` is no longer a timestamp"));
    };
    let mut newest = None;
    for (arrival, row) in flow.rows.iter_mut().enumerate() {
        let Value::Integer(ticks) = row.values[start] else {
            return Err(Error::schema("`window_start` is null"));
        };
        row.arrival = arrival;
        row.time_ns = ticks * tick_ns(unit);
        row.watermark_ns = newest;
        newest = newest.max(Some(row.time_ns));
    }
    flow.unit = unit;
    Ok(flow)
}

/// The result rows of a group-by, in the order in which the next one sees them.
pub(crate) fn renumber(mut flow: Flow) -> Flow {
    for (arrival, row) in flow.rows.iter_mut().enumerate() {
        row.arrival = arrival;
    }
    flow
}

/// Groups rows by window and keys and computes the aggregates of each group.
pub(crate) fn aggregate(
    mut flow: Flow,
    window: &Window,
    (keys, calls): (&[String], &[AggregateCall]),
    result: &mut Answer,
) -> Result<Flow> {
    let windows = Windows::of(window, tick_ns(flow.unit))?;
    if matches!(windows, Windows::Global) {
        // A group-by of the whole stream knows no time: rows are in order of arrival.
        flow.rows.iter_mut().for_each(|row| row.time_ns = 0);
    }
    let columns = result_columns(&flow, window, keys, calls)?;
    let key_positions: Result<Vec<usize>> = keys
        .iter()
        .map(|key| position(key, &flow.columns))
        .collect();
    let mut members = members(&flow, windows, &key_positions?, result);
    let order = |a: &Member, b: &Member| {
        a.span
            .cmp(&b.span)
            .then_with(|| order_rows(&a.keys, &b.keys))
    };
    members.sort_by(order);
    let mut rows = Vec::new();
    for group in members.chunk_by(|a, b| order(a, b).is_eq()) {
        rows.push(result_row(group, windows, calls, &flow.columns)?);
    }
    if rows.is_empty() && keys.is_empty() && matches!(windows, Windows::Global) {
        rows.push(result_row(&[], windows, calls, &flow.columns)?);
    }
    Ok(Flow {
        columns,
        rows,
        unit: flow.unit,
    })
}

/// Every row in each of its windows that is still open when it arrives.
fn members(flow: &Flow, windows: Windows, keys: &[usize], result: &mut Answer) -> Vec<Member> {
    let tick = tick_ns(flow.unit);
    let mut members = Vec::new();
    for row in &flow.rows {
        let holding = windows.holding(row.time_ns.div_euclid(tick));
        if holding.is_empty() {
            result.skipped_rows += 1;
            continue;
        }
        let is_open = |span: &&Span| {
            let watermark = row.watermark_ns.map(|watermark| watermark.div_euclid(tick));
            watermark.is_none_or(|watermark| span.1 > watermark)
        };
        let open: Vec<&Span> = holding.iter().filter(is_open).collect();
        if open.is_empty() {
            result.late.push(row.arrival);
        }
        for span in open {
            let keys = keys.iter().map(|key| row.values[*key].clone()).collect();
            members.push(Member {
                span: *span,
                keys,
                row: row.clone(),
            });
        }
    }
    members
}

fn result_columns(
    flow: &Flow,
    window: &Window,
    keys: &[String],
    calls: &[AggregateCall],
) -> Result<Columns> {
    let mut columns = Vec::new();
    if !matches!(window.shape, Shape::Global) {
        let time = DataType::Timestamp(flow.unit, None);
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
    group: &[Member],
    windows: Windows,
    calls: &[AggregateCall],
    columns: &[(String, DataType)],
) -> Result<Traveller> {
    let mut values = Vec::new();
    if let Some(first) = group.first() {
        if !matches!(windows, Windows::Global) {
            values.extend([Value::Integer(first.span.0), Value::Integer(first.span.1)]);
        }
        values.extend(first.keys.iter().cloned());
    }
    let mut slack = vec![0.0; values.len()];
    let rows: Vec<&Traveller> = group.iter().map(|member| &member.row).collect();
    for call in calls {
        let (value, off) = compute(call, columns, &rows)?;
        values.push(value);
        slack.push(off);
    }
    Ok(Traveller {
        values,
        slack,
        arrival: 0,
        time_ns: 0,
        watermark_ns: None,
    })
}
