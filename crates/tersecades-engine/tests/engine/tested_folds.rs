//! Folds of a column that is filtered by itself, over many batches, against plain loops: of the
//! whole stream and of windows.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMillisecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, hop, tumble};

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

/// Milliseconds: a row each, some of them a little behind.
fn time(row: usize) -> i64 {
    row as i64 - (draw(row) % 40) as i64 * i64::from(row.is_multiple_of(7))
}

fn retained(nulls: bool) -> Retained {
    let delays = Int64Array::from_iter((0..ROWS).map(|row| delay(row, nulls)));
    let failures = Int64Array::from_iter_values((0..ROWS).map(failed));
    let times = TimestampMillisecondArray::from_iter_values((0..ROWS).map(time));
    let columns: [(&str, ArrayRef); 3] = [
        ("delay", Arc::new(delays)),
        ("failed", Arc::new(failures)),
        ("time", Arc::new(times)),
    ];
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

type Windows = BTreeMap<i64, (i64, i64)>;

/// Start, count and sum of each window, and how many rows came late.
fn windows(kept: &Retained, case: Case, window: Window, run: (u64, usize, bool)) -> (Windows, u64) {
    let (lateness, threads, measured) = run;
    let stream =
        Stream::from_retained(kept).event_time(col("time"), Duration::from_millis(lateness));
    let grouped = stream.filter((case.0)()).window(window);
    let calls = [count(), call("sum", col("delay"))];
    let mut stream = grouped.aggregate(calls).threads(threads);
    if measured {
        stream = stream.measured();
    }
    let mut run = stream.run().unwrap();
    let mut found = Windows::new();
    for rows in &mut run {
        let rows = rows.unwrap();
        let starts = rows.column(0).as_primitive::<TimestampMillisecondType>();
        let [counts, sums] = [2, 3].map(|at| rows.column(at).as_primitive::<Int64Type>());
        let values = counts.values().iter().zip(sums.values());
        found.extend(
            starts
                .values()
                .iter()
                .copied()
                .zip(values.map(|(n, sum)| (*n, *sum))),
        );
    }
    (found, run.metrics().late_rows)
}

#[test]
fn what_a_filter_tests_is_folded_into_the_windows_that_it_is_of() {
    for nulls in [false, true] {
        let kept = retained(nulls);
        // Windows of several batches, of about one, and of parts of one.
        for (case, length) in CASES.into_iter().zip([9_000, 2_048, 30_000, 500, 2_000]) {
            let mut expected = Windows::new();
            for row in 0..ROWS {
                if let Some(delay) = delay(row, nulls).filter(|delay| case.1(*delay, failed(row))) {
                    let start = time(row).div_euclid(length) * length;
                    let window = expected.entry(start).or_default();
                    *window = (window.0 + 1, window.1 + delay);
                }
            }
            let step = Duration::from_millis(length as u64);
            for run in [(40, 1, false), (40, 2, false), (40, 1, true)] {
                let found = windows(&kept, case, tumble(step), run);
                assert_eq!(
                    found,
                    (expected.clone(), 0),
                    "{length}, nulls {nulls}, {run:?}"
                );
            }
            for window in [|step| tumble(step), |step| hop(3 * step, step)] {
                let first = windows(&kept, case, window(step), (0, 1, true));
                for threads in [1, 2] {
                    let found = windows(&kept, case, window(step), (0, threads, false));
                    assert_eq!(found, first, "{length}, nulls {nulls}, {threads}");
                }
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
