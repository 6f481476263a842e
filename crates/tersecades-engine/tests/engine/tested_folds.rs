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

/// A delay, one in thirty far longer than the others; one in fifty of every third batch is missing
/// where `nulls`.
fn delay(row: usize, nulls: bool) -> Option<i64> {
    let draw = draw(row);
    let delay = match draw % 30 {
        0 => 70_000 + (draw >> 8) as i64 % 9_000_000,
        _ => 50 + (draw >> 8) as i64 % 60_000,
    };
    let misses = nulls && row.is_multiple_of(50) && (row / 2_048).is_multiple_of(3);
    (!misses).then_some(delay)
}

fn failed(row: usize) -> i64 {
    i64::from(row.is_multiple_of(101))
}

/// Milliseconds: a row each, some of them a little behind.
fn time(row: usize) -> i64 {
    row as i64 - (draw(row) % 40) as i64 * i64::from(row.is_multiple_of(7))
}

fn retained(nulls: bool, scheme: &str) -> Retained {
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
    let stream = Stream::from_batches(batch.schema(), batches).encoding("delay", scheme);
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
        let kept = retained(nulls, "base_delta");
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

/// Count, sum, ends and variance, without its fraction, of each window, by its start.
type Windows = BTreeMap<i64, [i64; 5]>;

/// The windows, and how many rows came late and were in none.
fn windows(
    kept: &Retained,
    case: Case,
    window: Window,
    (lateness, threads, measured): (u64, usize, bool),
) -> (Windows, [u64; 2]) {
    let lateness = Duration::from_millis(lateness);
    let stream = Stream::from_retained(kept).event_time(col("time"), lateness);
    let of_delay = |name: &str| call(name, col("delay"));
    let calls = ["sum", "min", "max", "variance_population"].map(of_delay);
    let calls = std::iter::once(count()).chain(calls);
    let stream = stream.filter((case.0)()).window(window).aggregate(calls);
    let mut stream = stream.threads(threads);
    if measured {
        stream = stream.measured();
    }
    let mut run = stream.run().unwrap();
    let mut found = Windows::new();
    for rows in &mut run {
        let rows = rows.unwrap();
        let starts = rows.column(0).as_primitive::<TimestampMillisecondType>();
        let columns = [2, 3, 4, 5].map(|at| rows.column(at).as_primitive::<Int64Type>());
        let variances = rows.column(6).as_primitive::<Float64Type>();
        for row in 0..rows.num_rows() {
            let [rows, sum, least, most] = columns.map(|column| column.value(row));
            let variance = variances.value(row) as i64;
            found.insert(starts.value(row), [rows, sum, least, most, variance]);
        }
    }
    let metrics = run.metrics();
    (found, [metrics.late_rows, metrics.skipped_rows])
}

/// [`windows`] of `length` that nothing is late for.
fn expected(nulls: bool, case: Case, length: i64) -> Windows {
    let mut windows: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in 0..ROWS {
        if let Some(delay) = delay(row, nulls).filter(|delay| case.1(*delay, failed(row))) {
            let start = time(row).div_euclid(length) * length;
            windows.entry(start).or_default().push(delay);
        }
    }
    let folded = |delays: &[i64]| {
        let (rows, sum) = (delays.len() as i64, delays.iter().sum::<i64>());
        let squares: i128 = delays.iter().map(|delay| i128::from(*delay).pow(2)).sum();
        let spread = i128::from(rows) * squares - i128::from(sum).pow(2);
        let variance = (spread / i128::from(rows).pow(2)) as i64;
        let ends = [delays.iter().min(), delays.iter().max()].map(|end| *end.unwrap());
        [rows, sum, ends[0], ends[1], variance]
    };
    let windows = windows.into_iter();
    windows
        .map(|(start, delays)| (start, folded(&delays)))
        .collect()
}

/// Windows side by side, over each other and with gaps between them.
const WINDOWS: [fn(Duration) -> Window; 3] = [
    tumble,
    |step| hop(3 * step, step),
    |step| hop(step, 2 * step),
];

#[test]
fn what_a_filter_tests_is_folded_into_the_windows_that_it_is_of() {
    // Windows of many batches, of a few, and of parts of one.
    let lengths = [30_000, 9_000, 500];
    let kinds = [
        (false, "base_delta"),
        (true, "base_delta"),
        (false, "frame_of_reference"),
    ];
    for (nulls, scheme, case) in kinds
        .into_iter()
        .flat_map(|(nulls, scheme)| CASES.map(|case| (nulls, scheme, case)))
    {
        let kept = retained(nulls, scheme);
        for length in lengths {
            let step = Duration::from_millis(length as u64);
            let expected = expected(nulls, case, length);
            for run in [(40, 1, false), (40, 2, false), (40, 1, true)] {
                let (found, lost) = windows(&kept, case, tumble(step), run);
                assert_eq!(found, expected, "{length}, nulls {nulls}, {run:?}");
                assert_eq!(lost, [0, 0], "{length}, nulls {nulls}, {run:?}");
            }
            let has_rows = !expected.is_empty();
            for (at, window) in WINDOWS.into_iter().enumerate() {
                let first = windows(&kept, case, window(step), (0, 1, true));
                let [late, skipped] = first.1;
                assert!(
                    late > 0 || at > 0 || length > 500 || !has_rows,
                    "none is late"
                );
                assert_eq!(skipped > 0, has_rows && at == 2, "{at}");
                for threads in [1, 2] {
                    let found = windows(&kept, case, window(step), (0, threads, false));
                    assert_eq!(found, first, "{length}, nulls {nulls}, {at}, {threads}");
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
