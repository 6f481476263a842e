//! The examples of `docs/semantics.md` are what the engine answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampSecondType};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::TimeUnit;
use chrono::DateTime;
use tersecades_engine::aggregate::{AGGREGATES, call, count as rows};
use tersecades_engine::expression::col;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, calendar, count, cumulate, global, hop, session, tumble};

const PAGE: &str = include_str!("../../../../docs/semantics.md");

/// `tumble 10 offset 3`, `day Europe/Berlin`, ...
fn window(text: &str) -> Window {
    let words: Vec<&str> = text.split(' ').collect();
    let seconds = |index: usize| Duration::from_secs(words[index].parse().unwrap());
    let window = match words[0] {
        "tumble" => tumble(seconds(1)),
        "hop" => hop(seconds(1), seconds(2)),
        "cumulate" => cumulate(seconds(1), seconds(2)),
        "session" => session(seconds(1)),
        "count" => count(words[1].parse().unwrap()),
        "global" => global(),
        unit => calendar(unit.parse().unwrap(), words[1]).unwrap(),
    };
    match words.iter().position(|word| *word == "offset") {
        Some(at) => window.offset(seconds(at + 1)),
        None => window,
    }
}

/// Seconds, or a date and time.
fn second(text: &str) -> i64 {
    let date = || DateTime::parse_from_rfc3339(text).unwrap().timestamp();
    text.parse().unwrap_or_else(|_| date())
}

/// `a:5`, or `5` of a group without name.
fn row(text: &str) -> (String, i64) {
    let dated = text.contains('T');
    match text.split_once(':') {
        Some((group, time)) if !dated => (group.to_owned(), second(time)),
        _ => (String::new(), second(text)),
    }
}

fn batches(text: &str, batch_rows: usize) -> Vec<RecordBatch> {
    let rows: Vec<(String, i64)> = text.split(' ').map(row).collect();
    let batch = |rows: &[(String, i64)]| {
        let groups = rows.iter().map(|(group, _)| group);
        let group: ArrayRef = Arc::new(StringArray::from_iter_values(groups));
        let times = rows.iter().map(|(_, time)| *time);
        let time: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
        RecordBatch::try_from_iter([("timestamp", time), ("group", group)]).unwrap()
    };
    rows.chunks(batch_rows).map(batch).collect()
}

/// Results as the page writes them; boundaries in seconds.
fn results(batch: &RecordBatch) -> Vec<String> {
    let keys = batch.num_columns() - 2;
    let groups = arrow_cast::cast(batch.column(keys), &arrow_schema::DataType::Utf8).unwrap();
    let counts = batch.column(keys + 1).as_primitive::<Int64Type>();
    let line = |row: usize| {
        let group = groups.as_string::<i32>().value(row);
        let time = |column: usize| {
            let times = batch.column(column).as_primitive::<TimestampSecondType>();
            times.value(row)
        };
        match keys {
            0 => format!("{group}={}", counts.value(row)),
            _ => format!("{group}[{},{})={}", time(0), time(1), counts.value(row)),
        }
    };
    (0..batch.num_rows()).map(line).collect()
}

/// A result of the page with its boundaries in seconds.
fn in_seconds(text: &str) -> String {
    let Some((group, rest)) = text.split_once('[') else {
        return text.to_owned();
    };
    let (span, count) = rest.split_once(')').unwrap();
    let (start, end) = span.split_once(',').unwrap();
    format!("{group}[{},{}){count}", second(start), second(end))
}

/// Values of the page: integers, or floats if any has a point or is no number; nulls apart.
fn values(text: &str) -> ArrayRef {
    let words = || text.split(' ').map(|word| (word != "null").then_some(word));
    match text.contains(['.', 'N']) {
        true => {
            let floats = words().map(|word| word.map(|word| word.parse().unwrap()));
            Arc::new(floats.collect::<Float64Array>())
        }
        false => {
            let integers = words().map(|word| word.map(|word| word.parse().unwrap()));
            Arc::new(integers.collect::<Int64Array>())
        }
    }
}

#[test]
fn the_aggregates_of_the_page_hold() {
    let lines = PAGE.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &'static str| -> Vec<&str> {
        line.trim_matches('|').split('|').map(str::trim).collect()
    };
    let named = |name: &str| AGGREGATES.iter().any(|known| known.name() == name);
    let cases: Vec<Vec<&str>> = lines
        .map(cells)
        .filter(|cells| cells.len() == 3 && named(cells[0].split(' ').next().unwrap()))
        .collect();
    assert!(cases.len() >= 20, "the page has {} aggregates", cases.len());
    for case in &cases {
        let (name, parameter) = case[0].split_once(' ').unwrap_or((case[0], ""));
        let value = values(case[1]);
        let time: ArrayRef = Arc::new(Int64Array::from_iter_values(0..value.len() as i64));
        let rows = RecordBatch::try_from_iter([("timestamp", time), ("value", value)]).unwrap();
        let aggregate = AggregateCall {
            parameter: parameter.parse().ok(),
            ..call(name, col("value"))
        };
        for batch_rows in [1, 100] {
            let starts = (0..rows.num_rows()).step_by(batch_rows);
            let parts = starts.map(|at| rows.slice(at, batch_rows.min(rows.num_rows() - at)));
            let run = Stream::from_batches(rows.schema(), parts.collect())
                .event_time_unit(TimeUnit::Second)
                .window(tumble(Duration::from_secs(3_600)))
                .aggregate([aggregate.clone()])
                .run()
                .unwrap();
            let found: Vec<RecordBatch> = run.collect::<Result<_, _>>().unwrap();
            let found = found[0].column(2);
            let shown = match found.is_null(0) {
                true => "null".to_owned(),
                false => array_value_to_string(found, 0).unwrap(),
            };
            assert_eq!(shown, case[2], "{case:?}");
        }
    }
}

#[test]
fn the_examples_of_the_page_hold() {
    let lines = PAGE.lines().filter(|line| line.starts_with("| "));
    let cases: Vec<Vec<&str>> = lines
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells.len() == 5 && cells[1].parse::<u64>().is_ok())
        .collect();
    assert!(cases.len() >= 15, "the page has {} examples", cases.len());
    for case in &cases {
        let expected: Vec<String> = case[3].split(' ').map(in_seconds).collect();
        for (batch_rows, threads) in [(100, 1), (1, 1), (2, 3)] {
            let batches = batches(case[2], batch_rows);
            let lateness = Duration::from_secs(case[1].parse().unwrap());
            let mut run = Stream::from_batches(batches[0].schema(), batches)
                .event_time(col("timestamp"), lateness)
                .event_time_unit(TimeUnit::Second)
                .threads(threads)
                .window(window(case[0]))
                .group_by(["group"])
                .aggregate([rows()])
                .run()
                .unwrap();
            let found: Vec<RecordBatch> = run.by_ref().collect::<Result<_, _>>().unwrap();
            let found: Vec<String> = found.iter().flat_map(results).collect();
            assert_eq!(found, expected, "{case:?}");
            assert_eq!(run.metrics().late_rows.to_string(), case[4], "{case:?}");
        }
    }
}
