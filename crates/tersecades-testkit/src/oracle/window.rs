//! Rows into windows: every row is copied into each open window that holds it, then sorted.

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Value;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::window::Window;

use super::aggregate::{compute, result_type};
use super::evaluate::position;
use super::order::{order, order_rows};
use super::{Answer, Columns, Flow, Traveller, tick_ns};

/// A window in ticks.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    size: i128,
    slide: i128,
    offset: i128,
}

fn in_ticks(window: &Window, tick: i128) -> Result<Ticks> {
    let ticks = |nanos: u128| {
        let nanos = i128::try_from(nanos).map_err(|_| Error::invalid("a window is too long"))?;
        match nanos % tick {
            0 => Ok(nanos / tick),
            _ => Err(Error::invalid("a window is no whole number of ticks")),
        }
    };
    let size = ticks(window.size.as_nanos())?;
    let slide = ticks(window.slide.as_nanos())?;
    if size == 0 || slide == 0 {
        return Err(Error::invalid(
            "window size and slide must be longer than zero",
        ));
    }
    Ok(Ticks {
        size,
        slide,
        offset: ticks(window.offset.as_nanos())?,
    })
}

/// Starts of all windows that hold `time`, ascending.
fn starts(window: Ticks, time: i128) -> Vec<i128> {
    let mut starts = Vec::new();
    let mut start = (time - window.offset).div_euclid(window.slide) * window.slide + window.offset;
    while start + window.size > time {
        starts.push(start);
        start -= window.slide;
    }
    starts.reverse();
    starts
}

/// One row in one of its windows.
struct Member {
    start: i128,
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

/// Groups rows by window and keys and computes the aggregates of each group.
pub(crate) fn aggregate(
    flow: Flow,
    window: &Window,
    (keys, calls): (&[String], &[AggregateCall]),
    result: &mut Answer,
) -> Result<Flow> {
    let ticks = in_ticks(window, tick_ns(flow.unit))?;
    let columns = result_columns(&flow, keys, calls)?;
    let key_positions: Result<Vec<usize>> = keys
        .iter()
        .map(|key| position(key, &flow.columns))
        .collect();
    let mut members = members(&flow, ticks, &key_positions?, result);
    members.sort_by(|a, b| {
        a.start
            .cmp(&b.start)
            .then_with(|| order_rows(&a.keys, &b.keys))
    });
    let same = |a: &Member, b: &Member| a.start == b.start && order_rows(&a.keys, &b.keys).is_eq();
    let mut rows = Vec::new();
    for group in members.chunk_by(same) {
        rows.push(result_row(group, ticks.size, calls, &flow.columns)?);
    }
    rows.sort_by(|a, b| {
        let keys = 2..2 + keys.len();
        let starts = order(&a.values[0], &b.values[0]);
        starts.then_with(|| order_rows(&a.values[keys.clone()], &b.values[keys.clone()]))
    });
    Ok(Flow {
        columns,
        rows,
        unit: flow.unit,
    })
}

/// Every row in each of its windows that is still open when it arrives.
fn members(flow: &Flow, ticks: Ticks, keys: &[usize], result: &mut Answer) -> Vec<Member> {
    let tick = tick_ns(flow.unit);
    let mut members = Vec::new();
    for row in &flow.rows {
        let holding = starts(ticks, row.time_ns.div_euclid(tick));
        if holding.is_empty() {
            result.skipped_rows += 1;
            continue;
        }
        let is_open = |start: &&i128| {
            let end_ns = (**start + ticks.size) * tick;
            row.watermark_ns.is_none_or(|watermark| end_ns > watermark)
        };
        let open: Vec<&i128> = holding.iter().filter(is_open).collect();
        if open.is_empty() {
            result.late.push(row.arrival);
        }
        for start in open {
            let keys = keys.iter().map(|key| row.values[*key].clone()).collect();
            members.push(Member {
                start: *start,
                keys,
                row: row.clone(),
            });
        }
    }
    members
}

fn result_columns(flow: &Flow, keys: &[String], calls: &[AggregateCall]) -> Result<Columns> {
    let time = DataType::Timestamp(flow.unit, None);
    let mut columns = vec![
        ("window_start".to_owned(), time.clone()),
        ("window_end".to_owned(), time),
    ];
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
    size: i128,
    calls: &[AggregateCall],
    columns: &[(String, DataType)],
) -> Result<Traveller> {
    let first = &group[0];
    let mut values = vec![
        Value::Integer(first.start),
        Value::Integer(first.start + size),
    ];
    values.extend(first.keys.iter().cloned());
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
