//! Groups in numbers that no array of cells holds: by texts of two columns, and of one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, hop, tumble};

const SECOND: Duration = Duration::from_secs(1);

/// Rows one millisecond apart, by the texts of two columns.
fn batches(rows: &[(usize, usize)], batch_rows: usize) -> Vec<RecordBatch> {
    let batch = |(index, rows): (usize, &[(usize, usize)])| {
        let times = (0..rows.len()).map(|row| (index * batch_rows + row) as i64);
        let time: ArrayRef = Arc::new(Int64Array::from_iter_values(times.clone()));
        let text = |letter: char, of: fn(&(usize, usize)) -> usize| -> ArrayRef {
            let texts = rows.iter().map(|row| format!("{letter}{}", of(row)));
            Arc::new(StringArray::from_iter_values(texts))
        };
        let columns = [
            ("timestamp", Arc::clone(&time)),
            ("a", text('a', |row| row.0)),
            ("b", text('b', |row| row.1)),
            ("v", time),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    rows.chunks(batch_rows).enumerate().map(batch).collect()
}

/// Windows by start, and of each the count and the sum of every group.
type Answer = HashMap<(i64, String), (i64, i64)>;

fn answer(stream: &Stream, window: Window, keys: &[&str], threads: usize) -> Answer {
    let run = stream.clone().threads(threads).window(window);
    let run = run
        .group_by(keys.to_vec())
        .aggregate([count(), call("sum", col("v"))]);
    let mut found = Answer::new();
    for batch in run.run().unwrap() {
        let batch = batch.unwrap();
        let number = |index: usize| {
            let column = batch.column(index);
            arrow_cast::cast(column, &arrow_schema::DataType::Int64).unwrap()
        };
        let last = batch.num_columns() - 1;
        let (starts, counts, sums) = (number(0), number(last - 1), number(last));
        let numbers = [&starts, &counts, &sums].map(|array| array.as_primitive::<Int64Type>());
        let texts = keys.iter().map(|key| {
            let column = batch.column_by_name(key).unwrap();
            arrow_cast::cast(column, &arrow_schema::DataType::Utf8).unwrap()
        });
        let texts: Vec<ArrayRef> = texts.collect();
        for row in 0..batch.num_rows() {
            let texts = texts
                .iter()
                .map(|array| array.as_string::<i32>().value(row));
            let text = texts.collect::<Vec<&str>>().join(" ");
            let key = (numbers[0].value(row), text);
            let value = (numbers[1].value(row), numbers[2].value(row));
            assert_eq!(found.insert(key, value), None, "a group twice");
        }
    }
    found
}

fn expected(rows: &[(usize, usize)], [size, slide]: [i64; 2], keys: &[&str]) -> Answer {
    let mut groups = Answer::new();
    for (time, (a, b)) in rows.iter().enumerate() {
        let time = time as i64;
        let texts = keys.iter().map(|key| match *key {
            "a" => format!("a{a}"),
            _ => format!("b{b}"),
        });
        let key = texts.collect::<Vec<String>>().join(" ");
        let last = time.div_euclid(slide) * slide;
        let starts = (0..size / slide).map(|step| last - step * slide);
        for start in starts.filter(|start| start + size > time) {
            let group = groups.entry((start, key.clone())).or_default();
            (group.0, group.1) = (group.0 + 1, group.1 + time);
        }
    }
    groups
}

fn check(rows: &[(usize, usize)], keys: &[&str], batch_rows: usize) {
    let batches = batches(rows, batch_rows);
    let stream = Stream::from_batches(batches[0].schema(), batches);
    let all = SECOND * 1_000_000;
    for (window, ticks) in [
        (tumble(all), [1_000_000_000, 1_000_000_000]),
        (tumble(SECOND * 20), [20_000, 20_000]),
        (hop(SECOND * 60, SECOND * 20), [60_000, 20_000]),
    ] {
        let expected = expected(rows, ticks, keys);
        for threads in [1, 2, 3] {
            let found = answer(&stream, window, keys, threads);
            assert_eq!(found.len(), expected.len(), "{keys:?}, {threads} threads");
            assert!(found == expected, "{keys:?}, {threads} threads");
        }
    }
}

#[test]
fn pairs_of_texts_beyond_all_cells() {
    let rows: Vec<_> = (0..30_000).map(|row| (row % 700, row * 7 % 601)).collect();
    check(&rows, &["a", "b"], 1_000);
    check(&rows[..600], &["a", "b"], 600);
}

#[test]
fn texts_beyond_all_cells() {
    let texts = (1 << 18) + 20_000;
    let rows: Vec<_> = (0..texts).map(|row| (row * 10_007 % texts, 0)).collect();
    check(&rows, &["a"], 8_192);
}

#[test]
fn cells_that_texts_outgrow_midway() {
    let few = (0..20_000).map(|row| (row % 30, row % 20));
    let many = (0..40_000).map(|row| (row % 900, row * 11 % 870));
    let rows: Vec<_> = few.chain(many).collect();
    check(&rows, &["a", "b"], 2_000);
}
