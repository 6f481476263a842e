//! Folds of a column that is filtered by itself, over many batches, against plain loops.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::stream::Stream;

const ROWS: usize = 70 * 2_048;

fn draw(row: usize) -> u64 {
    (row as u64 + 5).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// A delay, one in thirty far longer than the others; one in fifty is missing where `nulls`.
fn delay(row: usize, nulls: bool) -> Option<i64> {
    let draw = draw(row);
    let delay = match draw % 30 {
        0 => 70_000 + (draw >> 8) as i64 % 9_000_000,
        _ => 50 + (draw >> 8) as i64 % 60_000,
    };
    (!nulls || !row.is_multiple_of(50)).then_some(delay)
}

fn failed(row: usize) -> i64 {
    i64::from(row.is_multiple_of(101))
}

fn retained(nulls: bool) -> Retained {
    let delays = Int64Array::from_iter((0..ROWS).map(|row| delay(row, nulls)));
    let failures = Int64Array::from_iter_values((0..ROWS).map(failed));
    let columns: [(&str, ArrayRef); 2] =
        [("delay", Arc::new(delays)), ("failed", Arc::new(failures))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let batches = (0..ROWS)
        .step_by(2_048)
        .map(|row| batch.slice(row, 2_048))
        .collect();
    let stream = Stream::from_batches(batch.schema(), batches).encoding("delay", "base_delta");
    let stream = stream.keep(Keep::Bytes(usize::MAX));
    let mut run = stream.aggregate([count()]).run().unwrap();
    while run.step().unwrap() {}
    run.retained().unwrap().clone()
}

/// Conditions, and the same row by row.
type Case = (fn() -> Expression, fn(i64, i64) -> bool);

const CASES: [Case; 5] = [
    (|| col("delay").gt_eq(1_000), |delay, _| delay >= 1_000),
    (
        || col("failed").eq(0).and(col("delay").gt_eq(100)),
        |delay, failed| failed == 0 && delay >= 100,
    ),
    (
        || col("delay").lt(66_000).and(col("failed").eq(0)),
        |delay, failed| failed == 0 && delay < 66_000,
    ),
    (
        || col("delay").gt(40_000).and(col("delay").lt(80_000)),
        |delay, _| delay > 40_000 && delay < 80_000,
    ),
    (|| col("delay").gt(1_000_000_000), |_, _| false),
];

#[test]
fn what_a_filter_tests_is_folded_as_if_it_were_filtered_first() {
    for nulls in [false, true] {
        let kept = retained(nulls);
        for (at, (condition, passes)) in CASES.into_iter().enumerate() {
            let rows = (0..ROWS).filter_map(|row| Some((delay(row, nulls)?, failed(row))));
            let passing = rows.filter(|(delay, failed)| passes(*delay, *failed));
            let delays: Vec<i64> = passing.map(|(delay, _)| delay).collect();
            for (threads, measured) in [(1, false), (1, true), (2, false)] {
                let what = format!("case {at}, nulls {nulls}, {threads} threads, {measured}");
                let stream = Stream::from_retained(&kept).filter(condition());
                let of_delay = |name: &str| call(name, col("delay"));
                let calls = ["sum", "min", "max", "variance_population"].map(of_delay);
                let stream = stream.aggregate(std::iter::once(count()).chain(calls));
                let mut stream = stream.threads(threads);
                if measured {
                    stream = stream.measured();
                }
                let rows: Vec<RecordBatch> = stream.run().unwrap().map(Result::unwrap).collect();
                check(&rows[0], &delays, &what);
            }
        }
    }
}

fn check(row: &RecordBatch, delays: &[i64], what: &str) {
    let integer = |at: usize| {
        let column = row.column(at);
        column
            .is_valid(0)
            .then(|| column.as_primitive::<Int64Type>().value(0))
    };
    assert_eq!(integer(0), Some(delays.len() as i64), "{what}");
    let sum = (!delays.is_empty()).then(|| delays.iter().sum());
    let ends = [delays.iter().min(), delays.iter().max()].map(Option::<&i64>::copied);
    assert_eq!(
        [integer(1), integer(2), integer(3)],
        [sum, ends[0], ends[1]],
        "{what}"
    );
    let variance = row.column(4).as_primitive::<Float64Type>();
    if let Some(sum) = sum {
        let count = delays.len() as f64;
        let squares: i128 = delays.iter().map(|delay| i128::from(*delay).pow(2)).sum();
        let spread = squares as f64 / count - (sum as f64 / count).powi(2);
        let near = (variance.value(0) / spread - 1.0).abs() < 1e-9;
        assert!(near, "{what}: {} and {spread}", variance.value(0));
    }
}
