//! `string_agg`: texts stand in the order that was asked for, whatever the threads and batches.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use tersecades_engine::aggregate::string_agg::StringAgg;
use tersecades_engine::expression::col;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, global, hop, tumble};
use tersecades_engine::{ErrorKind, Result};
use tersecades_testkit::random::Random;

const SECOND: Duration = Duration::from_secs(1);

/// `(time, key, rank, text)`, some texts null, ranks with ties, times in disorder.
type Row = (i64, i64, i64, Option<String>);

fn rows(seed: u64) -> Vec<Row> {
    let mut random = Random::new(seed);
    let row = |at: i64| {
        let text = format!("t{}", random.below(40));
        let text = (random.below(8) > 0).then_some(text);
        let time = at * 10 - random.below(500) as i64;
        let (key, rank) = (random.below(5) as i64, random.below(30) as i64);
        (time, key, rank, text)
    };
    (0..2_000).map(row).collect()
}

fn stream(rows: &[Row], batch_rows: usize) -> Stream {
    let batch = |rows: &[Row]| {
        let numbers = |of: fn(&Row) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
        };
        let texts: StringArray = rows.iter().map(|row| row.3.as_deref()).collect();
        let texts: ArrayRef = Arc::new(texts);
        let columns = [
            ("time", numbers(|row| row.0)),
            ("key", numbers(|row| row.1)),
            ("rank", numbers(|row| row.2)),
            ("text", texts),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true))).unwrap()
    };
    let batches: Vec<RecordBatch> = rows.chunks(batch_rows).map(batch).collect();
    Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("time"), Duration::from_millis(500))
}

fn started(rows: &[Row], batch_rows: usize, threads: usize, window: Window) -> Running {
    let ranked = [(col("rank"), SortOrder::DESCENDING)];
    let twice = [
        (col("rank"), SortOrder::ASCENDING),
        (col("text"), SortOrder::DESCENDING),
    ];
    stream(rows, batch_rows)
        .threads(threads)
        .window(window)
        .group_by(["key"])
        .aggregate([
            StringAgg::new("-").of(col("text")).alias("as_given"),
            StringAgg::new(", ")
                .order_by(ranked)
                .of(col("text"))
                .alias("ranked"),
            StringAgg::new("")
                .order_by(twice)
                .distinct()
                .of(col("text"))
                .alias("once"),
            StringAgg::new(";")
                .of(col("text"))
                .filter(col("rank").gt(27))
                .alias("few"),
        ])
        .run()
        .unwrap()
}

/// The results, one line for each row.
fn lines(results: impl IntoIterator<Item = RecordBatch>) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in results {
        for row in 0..batch.num_rows() {
            let cells = batch
                .columns()
                .iter()
                .map(|column| arrow_cast::display::array_value_to_string(column, row).unwrap());
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

/// The texts of each key in the order of `by`, equal ones as they came.
fn plain<K: Ord>(rows: &[Row], separator: &str, by: impl Fn(&Row) -> K) -> Vec<String> {
    let mut groups: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.3.is_some()) {
        groups.entry(row.1).or_default().push(row);
    }
    let joined = groups.into_values().map(|mut group| {
        group.sort_by_key(|row| by(row));
        let texts = group.iter().filter_map(|row| row.3.as_deref());
        texts.collect::<Vec<_>>().join(separator)
    });
    joined.collect()
}

#[test]
fn texts_stand_in_the_order_that_was_asked_for() {
    let rows = rows(1);
    for (batch_rows, threads) in [(2_000, 1), (70, 1), (33, 4)] {
        let run = started(&rows, batch_rows, threads, global());
        let results: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
        let texts = |name: &str| -> Vec<String> {
            let columns = results
                .iter()
                .map(|batch| batch.column_by_name(name).unwrap());
            let texts = columns.flat_map(|column| column.as_string::<i32>().iter());
            texts
                .map(|text| text.unwrap_or("null").to_owned())
                .collect()
        };
        assert_eq!(texts("as_given"), plain(&rows, "-", |_| 0));
        assert_eq!(texts("ranked"), plain(&rows, ", ", |row| -row.2));
        let few: Vec<Row> = rows.iter().filter(|row| row.2 > 27).cloned().collect();
        assert_eq!(texts("few"), plain(&few, ";", |_| 0));
        for once in texts("once") {
            let mut parts: Vec<&str> = once.split('t').skip(1).collect();
            let count = parts.len();
            parts.sort_unstable();
            parts.dedup();
            assert_eq!(parts.len(), count, "{once}");
        }
    }
}

#[test]
fn windows_give_the_same_texts_whatever_the_threads() {
    let rows = rows(2);
    for window in [|| hop(SECOND * 4, SECOND), || tumble(SECOND)] {
        let run = started(&rows, 2_000, 1, window());
        let wanted = lines(run.collect::<Result<Vec<_>>>().unwrap());
        assert!(wanted.len() > 50);
        for (batch_rows, threads) in [(19, 1), (19, 4), (64, 3)] {
            let run = started(&rows, batch_rows, threads, window());
            assert_eq!(lines(run.collect::<Result<Vec<_>>>().unwrap()), wanted);
        }
    }
}

#[test]
fn a_snapshot_keeps_the_texts_of_open_windows() {
    let rows = rows(3);
    let whole = started(&rows, 100, 1, global());
    let wanted = lines(whole.collect::<Result<Vec<_>>>().unwrap());
    for (steps, threads) in [(3, 1), (11, 1), (11, 3)] {
        let (before, after) = rows.split_at(steps * 100);
        let mut first = started(before, 100, threads, global());
        (0..steps).for_each(|_| assert!(first.step().unwrap()));
        let snapshot = first.snapshot().unwrap();
        let mut second = started(after, 100, threads, global());
        second.restore(&snapshot).unwrap();
        assert_eq!(lines(second.collect::<Result<Vec<_>>>().unwrap()), wanted);
    }
}

#[test]
fn what_is_no_text_is_refused() {
    let run = stream(&rows(4), 100)
        .window(global())
        .aggregate([StringAgg::new(",").of(col("rank"))])
        .run();
    let error = run.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.message().contains("string_agg needs text"), "{error}");
}
