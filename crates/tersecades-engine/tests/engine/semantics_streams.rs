//! The examples of `docs/semantics.md` of updates, joins and rows are what the engine answers, and
//! the tests that it names beside its other rules exist.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::TimeUnit;
use tersecades_columnar::error::{Error, ErrorKind};
use tersecades_engine::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, count as rows, global, session, tumble};

const PAGE: &str = include_str!("../../../../docs/semantics.md");

/// The rows below the header `header`, cell by cell.
fn table(header: &str) -> Vec<Vec<&'static str>> {
    let lines = PAGE.lines().skip_while(|line| *line != header).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    let rows: Vec<Vec<&str>> = rows.map(cells).collect();
    assert!(rows.len() >= 5, "{header} has {} rows", rows.len());
    rows
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.parse().unwrap())
}

/// Words of the page, `null` being none.
fn words(text: &str) -> impl Iterator<Item = Option<&str>> {
    text.split(' ').map(|word| (word != "null").then_some(word))
}

fn shown(batch: &RecordBatch, column: &str, row: usize) -> Option<String> {
    let column = batch.column_by_name(column)?;
    let value = || array_value_to_string(column, row).unwrap();
    column.is_valid(row).then(value)
}

fn seconds_of(batch: &RecordBatch, column: &str) -> Vec<i64> {
    let column = batch.column_by_name(column).unwrap();
    let column = arrow_cast::cast(column, &arrow_schema::DataType::Int64).unwrap();
    let column = column.as_any().downcast_ref::<Int64Array>().unwrap();
    column.values().to_vec()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The rows as a stream of batches of `batch_rows`.
fn stream(rows: &RecordBatch, batch_rows: usize, time: &str) -> Stream {
    let starts = (0..rows.num_rows()).step_by(batch_rows);
    let parts = starts.map(|at| rows.slice(at, batch_rows.min(rows.num_rows() - at)));
    Stream::from_batches(rows.schema(), parts.collect())
        .event_time(col(time), Duration::ZERO)
        .event_time_unit(TimeUnit::Second)
}

fn batches(stream: Stream) -> Vec<RecordBatch> {
    stream.run().unwrap().collect::<Result<_>>().unwrap()
}

#[test]
fn the_updates_of_the_page_hold() {
    for case in table("| window | emit | allowed | rows | results, in order |") {
        let window = match case[0].split_once(' ') {
            Some(("session", gap)) => session(seconds(gap)),
            Some(("count", number)) => rows(number.parse().unwrap()),
            Some((_, length)) => tumble(seconds(length)),
            None => global(),
        };
        let emit = match case[1].split_once(' ') {
            Some((_, every)) => Emit::Every(seconds(every)),
            None if case[1] == "update" => Emit::Update,
            None => Emit::Final,
        };
        let times = case[3].split(' ').map(|time| time.parse().unwrap());
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
        let windows = stream(&batch(vec![("time", times)]), 1, "time").window(window);
        let mut windows = windows.emit(emit);
        if case[2] != "0" {
            windows = windows.allowed_lateness(seconds(case[2]));
        }
        let mut found = Vec::new();
        for batch in batches(windows.aggregate([count()])) {
            let at = |end: &str, row: usize| seconds_of(&batch, end)[row];
            for row in 0..batch.num_rows() {
                let rows = shown(&batch, "count", row).unwrap();
                let change = shown(&batch, "change", row);
                let change = change.map_or_else(String::new, |change| format!(" {change}"));
                let name = match case[0].split(' ').next() {
                    Some("global") => String::new(),
                    Some("session" | "count") => {
                        format!("{}-{}:", at("window_start", row), at("window_end", row))
                    }
                    _ => format!("{}:", at("window_start", row)),
                };
                found.push(format!("{name}{rows}{change}"));
            }
        }
        assert_eq!(found.join(", "), case[4], "{case:?}");
    }
}

/// `a:5 b:7` as columns `key` and `time`, each behind `side`; keys are numbers where all are.
fn side(text: &str, [key, time]: [&str; 2]) -> RecordBatch {
    let rows: Vec<(&str, &str)> = text
        .split(' ')
        .map(|row| row.split_once(':').unwrap())
        .collect();
    let keys = || rows.iter().map(|(key, _)| (*key != "null").then_some(*key));
    let numbers: Option<Vec<Option<f64>>> = keys()
        .map(|key| key.map_or(Some(None), |key| key.parse().ok().map(Some)))
        .collect();
    let keys: ArrayRef = match numbers {
        Some(numbers) => Arc::new(Float64Array::from(numbers)),
        None => Arc::new(keys().collect::<StringArray>()),
    };
    let times = rows.iter().map(|(_, time)| time.parse().unwrap());
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
    batch(vec![(key, keys), (time, times)])
}

fn kind(name: &str) -> JoinKind {
    match name {
        "inner" => JoinKind::Inner,
        "left" => JoinKind::Left,
        "right" => JoinKind::Right,
        "full" => JoinKind::Full,
        "left_semi" => JoinKind::LeftSemi,
        "left_anti" => JoinKind::LeftAnti,
        "right_semi" => JoinKind::RightSemi,
        "right_anti" => JoinKind::RightAnti,
        other => panic!("{other} is no kind of join"),
    }
}

/// `join left`, `window_join 10 inner`, `interval_join -2 3 full`, `asof_join nearest 2 left`.
fn joined(how: &str, left: Stream, right: Stream) -> Stream {
    let words: Vec<&str> = how.split(' ').collect();
    let kind = kind(words.last().unwrap());
    let on = &[("left_key", "right_key")];
    let nanos = |index: usize| words[index].parse::<i64>().unwrap() * 1_000_000_000;
    let joined = match words[0] {
        "join" => left.join(right, kind, on, JoinOptions::default()),
        "window_join" => left.window_join(right, tumble(seconds(words[1])), kind, on),
        "interval_join" => left.interval_join(right, on, (nanos(1), nanos(2)), kind),
        _ => {
            let direction = match words[1] {
                "backward" => Direction::Backward,
                "forward" => Direction::Forward,
                "before" => Direction::Before,
                "after" => Direction::After,
                _ => Direction::Nearest,
            };
            let tolerance = (words.len() > 3).then(|| seconds(words[2]));
            left.asof_join(right, on, (direction, tolerance), kind)
        }
    };
    joined.unwrap()
}

#[test]
fn the_joins_of_the_page_hold() {
    for case in table("| join | left | right | pairs |") {
        for batch_rows in [1, 100] {
            let left = side(case[1], ["left_key", "left_time"]);
            let right = side(case[2], ["right_key", "right_time"]);
            let left = stream(&left, batch_rows, "left_time");
            let right = stream(&right, batch_rows, "right_time");
            let mut found = Vec::new();
            for batch in batches(joined(case[0], left, right)) {
                for row in 0..batch.num_rows() {
                    let time = |side: &str| shown(&batch, &format!("{side}_time"), row);
                    let side = |side| time(side).unwrap_or_else(|| "·".to_owned());
                    found.push(format!("{}-{}", side("left"), side("right")));
                }
            }
            assert_eq!(found.join(" "), case[3], "{case:?}");
        }
    }
}

/// What `step` makes of the values, a row each, and the column to look at.
fn stepped(step: &str, rows: Stream) -> (Stream, &'static str) {
    let words: Vec<&str> = step.split(' ').collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let order = SortOrder {
        descending: words.contains(&"descending"),
        nulls_first: step.contains("nulls first"),
    };
    match words[0] {
        "sort" => (rows.sort([(col("value"), order)]), "value"),
        "limit" => (rows.limit(number(1), number(2)), "value"),
        "distinct" => (rows.project([("value", col("value"))]).distinct(), "value"),
        "filter" => (rows.filter(col("value").gt(1)), "value"),
        "group" => (rows.group_by(["value"]).aggregate([count()]), "value"),
        "lag" => {
            let keys: [&str; 0] = [];
            (rows.lag("value", number(1) as usize, keys, "lag"), "lag")
        }
        "changes" => {
            let keys: [&str; 0] = [];
            (rows.changes(["value"], keys), "previous_value")
        }
        other => panic!("{other} is no step"),
    }
}

#[test]
fn the_steps_of_the_page_hold() {
    for case in table("| step | values | column | results |") {
        let values = words(case[1]).map(|word| word.map(|word| word.parse().unwrap()));
        let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
        let rows = batch(vec![("time", times), ("value", values)]);
        for batch_rows in [1, 100] {
            let (results, column) = stepped(case[0], stream(&rows, batch_rows, "time"));
            assert_eq!(column, case[2], "{case:?}");
            let mut found = Vec::new();
            for batch in batches(results) {
                let rows = 0..batch.num_rows();
                let value = |row| shown(&batch, column, row).unwrap_or_else(|| "null".to_owned());
                found.extend(rows.map(value));
            }
            assert_eq!(found.join(" "), case[3], "{case:?}");
        }
    }
}

#[test]
fn lookups_match_equal_keys_and_refuse_doubled_ones() {
    let keys = |keys: [Option<i64>; 3]| Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
    let names: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "none"]));
    let found = |table_keys| {
        let times: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 2]));
        let own = keys([Some(2), None, Some(7)]);
        let rows = batch(vec![("time", times), ("key", own)]);
        let table = LookupTable::new(
            "names",
            batch(vec![("id", table_keys), ("name", names.clone())]),
        );
        let looked = stream(&rows, 100, "time");
        let looked = looked.lookup_join(&Arc::new(table), ("key", "id"), &[("name", "name")]);
        let results: Vec<RecordBatch> = looked.run()?.collect::<Result<_>>()?;
        let shown = results
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(|row| shown(batch, "name", row).unwrap()));
        Ok::<Vec<String>, Error>(shown.collect())
    };
    assert_eq!(found(keys([Some(1), Some(2), None])).unwrap(), ["two"]);
    let doubled = found(keys([Some(1), Some(2), Some(2)])).unwrap_err();
    assert_eq!(doubled.kind(), ErrorKind::InvalidArgument, "{doubled}");
}

#[test]
fn a_sum_beyond_its_type_is_an_error() {
    let sum = |values: Vec<i64>| {
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
        let rows = batch(vec![
            ("time", times),
            ("value", Arc::new(Int64Array::from(values))),
        ]);
        let sums = stream(&rows, 1, "time").aggregate([call("sum", col("value"))]);
        let results: Result<Vec<RecordBatch>> = sums.run().unwrap().collect();
        results.map(|results| shown(&results[0], "sum(value)", 0).unwrap())
    };
    let most = i64::MAX;
    assert_eq!(sum(vec![most, 1, -1]).unwrap(), most.to_string());
    let error = sum(vec![most, 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

/// Every Rust file of the workspace's crates, as text.
fn sources(folder: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// A rule is a paragraph with a title; a table below it, or tests that it names, are its examples.
#[test]
fn every_rule_of_the_page_has_an_example_that_is_a_test() {
    let mut texts = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut texts,
    );
    let named = |name: &str| {
        let definition = format!("fn {name}(");
        texts.iter().any(|text| text.contains(&definition))
    };
    let mut rules: Vec<(&str, bool)> = Vec::new();
    for paragraph in PAGE.split("\n\n") {
        if let Some((title, _)) = paragraph
            .strip_prefix("**")
            .and_then(|p| p.split_once("**"))
        {
            rules.push((title, false));
        }
        let Some((_, seen)) = rules.last_mut() else {
            continue;
        };
        *seen |= paragraph.starts_with("| ");
        for tests in paragraph.split("(tests: ").skip(1) {
            let (tests, _) = tests.split_once(')').unwrap();
            for test in tests.split(", ") {
                let test = test.trim().trim_matches('`');
                assert!(named(test), "no test is called {test}");
                *seen = true;
            }
        }
    }
    assert!(rules.len() > 25, "{} rules", rules.len());
    let without = rules.iter().filter(|(_, seen)| !seen);
    let without: Vec<&str> = without.map(|(title, _)| *title).collect();
    assert!(without.is_empty(), "rules without an example: {without:?}");
}
