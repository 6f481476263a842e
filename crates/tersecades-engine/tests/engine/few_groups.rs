//! Groups of few values, folded by cell where batches are long, row by row where they are short.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use tersecades_engine::aggregate::{call, count, quantile};
use tersecades_engine::expression::col;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::stream::Stream;

const ROWS: usize = 20_000;

fn draw(row: usize, salt: u64) -> u64 {
    (row as u64 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// Keys that come up one after the other, and values of which sums leave 64 bits.
fn batch() -> RecordBatch {
    let rows = || 0..ROWS;
    let key = |row: usize| draw(row, 1) % (1 + row as u64 / 900);
    let text = |row: usize| format!("k{}", key(row) % 13);
    let integer = |row: usize| key(row) as i64 * 3 - 20;
    let small = |row: usize| (draw(row, 2) % 200) as i64 - 60;
    let holed = |row: usize| (!draw(row, 3).is_multiple_of(4)).then_some(row as i64);
    let large = |row: usize| i64::MAX - (draw(row, 4) % 7) as i64;
    let float = |row: usize| (draw(row, 5) % 4_000) as f64 / 8.0;
    let columns: [(&str, ArrayRef); 7] = [
        (
            "t",
            Arc::new(rows().map(text).map(Some).collect::<StringArray>()),
        ),
        (
            "u",
            Arc::new(
                rows()
                    .map(|row| Some(text(row + 7)))
                    .collect::<StringArray>(),
            ),
        ),
        (
            "i",
            Arc::new(Int64Array::from_iter_values(rows().map(integer))),
        ),
        (
            "v",
            Arc::new(Int64Array::from_iter_values(rows().map(small))),
        ),
        ("n", Arc::new(rows().map(holed).collect::<Int64Array>())),
        (
            "l",
            Arc::new(Int64Array::from_iter_values(rows().map(large))),
        ),
        (
            "f",
            Arc::new(Float64Array::from_iter_values(rows().map(float))),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn calls() -> Vec<Vec<AggregateCall>> {
    vec![
        vec![count()],
        vec![call("sum", col("v"))],
        vec![
            call("mean", col("v")),
            call("max", col("v")),
            call("min", col("v")),
        ],
        vec![
            call("max", col("v")),
            call("sum", col("n")),
            call("mean", col("l")),
        ],
        vec![
            call("variance", col("v")),
            call("sum", col("f")),
            call("max", col("f")),
        ],
        vec![
            call("count_if", col("v").gt(3)),
            call("sum", col("v")).filter(col("n").gt(90)),
        ],
        vec![
            call("min", col("t")),
            call("sum", col("v")),
            quantile(col("v"), 0.5),
        ],
        vec![
            call("count_distinct", col("v")),
            call("mode", col("t")),
            count(),
        ],
    ]
}

fn answer(batch: &RecordBatch, rows: usize, keys: &[&str], calls: &[AggregateCall]) -> RecordBatch {
    let starts = (0..ROWS).step_by(rows);
    let batches = starts.map(|start| batch.slice(start, rows.min(ROWS - start)));
    let stream = Stream::from_batches(batch.schema(), batches.collect());
    let groups = stream
        .group_by(keys.iter().copied())
        .aggregate(calls.to_vec());
    let answers: Vec<RecordBatch> = groups.run().unwrap().map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&answers[0].schema(), &answers).unwrap()
}

#[test]
fn groups_do_not_depend_on_the_length_of_batches() {
    let batch = batch();
    for keys in [
        vec!["i"],
        vec!["t"],
        vec!["t", "u"],
        vec!["i", "u"],
        vec!["u", "i"],
    ] {
        for calls in calls() {
            // No batch of so few rows has sixteen for each cell.
            let expected = answer(&batch, 15, &keys, &calls);
            for rows in [700, 3_000, ROWS] {
                let found = answer(&batch, rows, &keys, &calls);
                assert_eq!(
                    found, expected,
                    "{keys:?}, {calls:?}, batches of {rows} rows"
                );
            }
        }
    }
}
