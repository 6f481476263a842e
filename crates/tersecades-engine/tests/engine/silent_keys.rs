//! Keys that fall silent take the memory of their last rows, not of the stream behind them, and
//! are answered all the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::JoinKind;
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::stream::Stream;

const ROWS: i64 = 1_200_000;
const BATCH: usize = 20_000;
/// One row in so many is the only one of its key until the end.
const SILENT_EVERY: i64 = 1_000;
const SILENT: i64 = ROWS / SILENT_EVERY;

/// Time, key and value of a row.
type Row = (i64, i64, String);

/// Rows of ten keys, between them one of each silent key, and another one of each at the end; there
/// are so many `values`.
fn rows(values: i64) -> Vec<Row> {
    let row = |time: i64| {
        let key = match time % SILENT_EVERY {
            7 => 100 + time / SILENT_EVERY,
            _ => time * 7_919 % 10,
        };
        (time, key, format!("value {}", time / 2 % values))
    };
    let last = (0..SILENT).map(|key| (ROWS + key, 100 + key, format!("last of {key}")));
    (0..ROWS).map(row).chain(last).collect()
}

fn stream(rows: &[Row]) -> Stream {
    let batch = |rows: &[Row]| {
        let times = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
        let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        let values = StringArray::from_iter_values(rows.iter().map(|row| &row.2));
        let columns: [(&str, ArrayRef); 3] = [
            ("time", Arc::new(times)),
            ("key", Arc::new(keys)),
            ("value", Arc::new(values)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<RecordBatch> = rows.chunks(BATCH).map(batch).collect();
    Stream::from_batches(batches[0].schema(), batches).event_time(col("time"), Duration::ZERO)
}

/// The times and values of what comes out, by the names of these columns; no more may be held at
/// any time than twice of what is in the first quarter.
fn answers(query: Stream, [time, value]: [&str; 2]) -> Vec<(i64, Option<String>)> {
    let mut run = query.run().unwrap();
    let (mut held, mut out) = (Vec::new(), Vec::new());
    let mut open = true;
    while open {
        open = run.step().unwrap();
        held.push(run.state().bytes);
        while let Some(batch) = run.take_result() {
            let times = batch.column_by_name(time).unwrap();
            let times = times.as_primitive::<Int64Type>().values().iter().copied();
            let values = batch.column_by_name(value).unwrap();
            let values = cast(values, &DataType::Utf8).unwrap();
            let values = values.as_string::<i32>().iter();
            out.extend(times.zip(values.map(|value| value.map(str::to_owned))));
        }
    }
    let most = |held: &[usize]| held.iter().copied().max().unwrap();
    let (early, late) = (most(&held[..held.len() / 4]), most(&held));
    assert!(late < 2 * early, "{early} bytes at first, {late} later");
    out
}

#[test]
fn a_lag_of_silent_keys() {
    let rows = rows(ROWS);
    let query = stream(&rows).lag("value", 1, ["key"], "earlier");
    let found = answers(query, ["time", "earlier"]);
    let mut last = HashMap::new();
    let wanted = rows
        .iter()
        .map(|(time, key, value)| (*time, last.insert(*key, value).cloned()));
    assert!(found.into_iter().eq(wanted));
}

#[test]
fn changes_of_silent_keys() {
    let rows = rows(ROWS);
    let query = stream(&rows).changes(["value"], ["key"]);
    let found = answers(query, ["time", "previous_value"]);
    let mut last = HashMap::new();
    let wanted = rows.iter().filter_map(|(time, key, value)| {
        let before = last.insert(*key, value).filter(|before| *before != value)?;
        Some((*time, Some(before.clone())))
    });
    assert!(found.into_iter().eq(wanted));
}

#[test]
fn a_join_with_the_last_version_of_silent_keys() {
    let rows = rows(5_000);
    let (versions, asked) = rows.split_at(ROWS as usize);
    let on = [("key", "key")];
    let left = versions.iter().step_by(100).chain(asked);
    let left: Vec<Row> = left.cloned().collect();
    let backward = (Direction::Backward, None);
    let query = stream(&left).asof_join(stream(versions), &on, backward, JoinKind::Left);
    let found = answers(query.unwrap(), ["time", "value_right"]);
    let mut last = HashMap::new();
    let mut versions = versions.iter().peekable();
    let wanted = left.iter().map(|(time, key, _)| {
        while let Some((_, key, value)) = versions.next_if(|version| version.0 <= *time) {
            last.insert(*key, value);
        }
        (*time, last.get(key).copied().cloned())
    });
    assert!(found.into_iter().eq(wanted));
}
