//! Overlapping windows that slide by a step hold what a look at all their rows says: groups that
//! come and go, texts met late, rows behind windows that came out, threads and restarts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;
use tersecades_testkit::random::Random;

const SECOND: Duration = Duration::from_secs(1);
/// Seconds of the stream, and rows of each.
const SECONDS: i64 = 150;
const EACH: i64 = 60;
const BATCH: usize = 500;
/// Seconds that rows may be late before windows close, and that some are late.
const LATENESS: i64 = 2;
const LATE: usize = 45;
/// Seconds of a window.
const SIZE: i64 = 30;

#[derive(Debug, Clone)]
struct Row {
    time: i64,
    from: Option<String>,
    to: Option<String>,
    number: i64,
    value: Option<i64>,
}

/// Rows whose groups are others every few seconds, one in twenty of them late.
fn rows(seed: u64) -> Vec<Row> {
    let mut random = Random::new(seed);
    let name = |random: &mut Random, second: i64| {
        let name = second / 25 + random.below(4) as i64;
        (!random.one_in(15)).then(|| format!("host-{}", name * 7 % 11))
    };
    let row = |index: i64| {
        let second = index / EACH;
        let late = match random.one_in(20) {
            true => random.below(LATE) as i64,
            false => 0,
        };
        Row {
            time: second - late,
            from: name(&mut random, second),
            to: name(&mut random, second),
            number: second * 41 + random.below(45) as i64,
            value: (!random.one_in(9)).then(|| random.below(1_000) as i64 - 300),
        }
    };
    (0..SECONDS * EACH).map(row).collect()
}

fn batches(rows: &[Row]) -> Vec<RecordBatch> {
    let batch = |rows: &[Row]| {
        let numbers = |of: fn(&Row) -> Option<i64>| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<Int64Array>())
        };
        let texts = |of: fn(&Row) -> Option<&str>| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<StringArray>())
        };
        let columns = [
            ("timestamp", numbers(|row| Some(row.time * 1_000))),
            ("from", texts(|row| row.from.as_deref())),
            ("to", texts(|row| row.to.as_deref())),
            ("number", numbers(|row| Some(row.number))),
            ("value", numbers(|row| row.value)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    rows.chunks(BATCH).map(batch).collect()
}

/// A key as it sorts: null last.
type Key = Vec<(bool, Option<String>)>;

/// Window, key, rows, sum, and the variance in parts of a million.
type Line = (i64, Key, i64, Option<i64>, Option<i64>);

fn key_of(row: &Row, keys: &[&str]) -> Key {
    let part = |name: &&str| match *name {
        "from" => row.from.clone(),
        "to" => row.to.clone(),
        _ => Some(format!("{:09}", row.number)),
    };
    let parts = keys.iter().map(part);
    parts.map(|part| (part.is_none(), part)).collect()
}

/// What a look at all rows of each window says.
fn expected(rows: &[Row], keys: &[&str], slide: i64) -> (Vec<Line>, u64) {
    let mut windows: BTreeMap<(i64, Key), Vec<Option<i64>>> = BTreeMap::new();
    let (mut newest, mut late) = (i64::MIN / 2, 0);
    for row in rows {
        let starts = (row.time - SIZE + 1..=row.time).filter(|start| start.rem_euclid(slide) == 0);
        let open = starts.filter(|start| start + SIZE > newest - LATENESS);
        let open: Vec<i64> = open.collect();
        late += u64::from(open.is_empty());
        for start in open {
            let group = windows.entry((start, key_of(row, keys))).or_default();
            group.push(row.value);
        }
        newest = newest.max(row.time);
    }
    let line = |((start, key), values): ((i64, Key), Vec<Option<i64>>)| {
        let known: Vec<i64> = values.iter().filter_map(|value| *value).collect();
        let (n, sum) = (known.len() as i64, known.iter().sum::<i64>());
        let squares: i64 = known.iter().map(|value| value * value).sum();
        let variance = || (n * squares - sum * sum) as f64 / (n * (n - 1)) as f64;
        let parts = (n > 1).then(|| (variance() * 1e6).round() as i64);
        (
            start,
            key,
            values.len() as i64,
            (n > 0).then_some(sum),
            parts,
        )
    };
    (windows.into_iter().map(line).collect(), late)
}

fn lines(batch: &RecordBatch, keys: &[&str]) -> Vec<Line> {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let number = |name: &str, row: usize| {
        let column = column(name).as_primitive::<Int64Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    let text = |name: &&str, row: usize| {
        let texts = cast(column(name), &DataType::Utf8).unwrap();
        let texts = texts.as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let part = |name: &&str, row: usize| match *name {
        "number" => number("number", row).map(|number| format!("{number:09}")),
        _ => text(name, row),
    };
    let starts = cast(column("window_start"), &DataType::Int64).unwrap();
    let line = |row: usize| {
        let key = keys.iter().map(|name| part(name, row));
        let variance = column("variance(value)").as_primitive::<Float64Type>();
        let parts = variance.is_valid(row).then(|| variance.value(row) * 1e6);
        (
            starts.as_primitive::<Int64Type>().value(row) / 1_000,
            key.map(|part| (part.is_none(), part)).collect(),
            number("count", row).unwrap(),
            number("sum(value)", row),
            parts.map(|parts| parts.round() as i64),
        )
    };
    (0..batch.num_rows()).map(line).collect()
}

/// How a run differs from the next.
#[derive(Debug, Clone, Copy)]
struct Way {
    threads: usize,
    /// Batches before a restart from a snapshot.
    restart: Option<usize>,
    /// Whether an aggregate takes part that cannot be subtracted.
    ends: bool,
}

const WAYS: [Way; 5] = [
    Way {
        threads: 1,
        restart: None,
        ends: false,
    },
    Way {
        threads: 2,
        restart: None,
        ends: false,
    },
    Way {
        threads: 3,
        restart: Some(7),
        ends: false,
    },
    Way {
        threads: 1,
        restart: Some(9),
        ends: false,
    },
    Way {
        threads: 2,
        restart: None,
        ends: true,
    },
];

fn start(batches: &[RecordBatch], keys: &[&str], slide: i64, way: Way) -> Running {
    let value = |name| call(name, col("value"));
    let mut calls = vec![count(), value("sum"), value("variance")];
    calls.extend(way.ends.then(|| value("max")));
    let stream = Stream::from_batches(batches[0].schema(), batches.to_vec())
        .event_time(col("timestamp"), SECOND * LATENESS as u32)
        .threads(way.threads);
    let windows = stream.window(hop(SECOND * SIZE as u32, SECOND * slide as u32));
    let grouped = windows.group_by(keys.iter().copied());
    grouped.aggregate(calls).run().unwrap()
}

/// The results of a run, and its late rows.
fn results(rows: &[Row], keys: &[&str], slide: i64, way: Way) -> (Vec<Line>, u64) {
    let batches = batches(rows);
    let mut found = Vec::new();
    let mut take = |batch: RecordBatch| found.extend(lines(&batch, keys));
    let before = way.restart.unwrap_or(0);
    let mut run = start(&batches[before..], keys, slide, way);
    if before > 0 {
        let mut first = start(&batches[..before], keys, slide, way);
        for _ in 0..before {
            first.step().unwrap();
            std::iter::from_fn(|| first.take_result()).for_each(&mut take);
        }
        run.restore(&first.snapshot().unwrap()).unwrap();
    }
    run.by_ref().for_each(|batch| take(batch.unwrap()));
    (found, run.metrics().late_rows)
}

fn check(keys: &[&str], slide: i64) {
    for seed in 0..2 {
        let rows = rows(seed);
        let (lines, late) = expected(&rows, keys, slide);
        assert!(late > 0, "some rows are behind all windows");
        for way in WAYS {
            let (found, found_late) = results(&rows, keys, slide, way);
            let wrong = lines.iter().zip(&found).find(|(line, found)| line != found);
            assert_eq!(wrong, None, "{keys:?} by {slide}, seed {seed}, {way:?}");
            assert_eq!((found.len(), found_late), (lines.len(), late), "{way:?}");
        }
    }
}

#[test]
fn pairs_of_texts_lie_in_their_order() {
    check(&["from", "to"], 1);
    check(&["to"], 3);
}

#[test]
fn numbers_that_never_come_again_are_forgotten() {
    check(&["number"], 5);
    check(&["number", "from"], 10);
}

#[test]
fn one_group_slides_too() {
    check(&[], 2);
}
