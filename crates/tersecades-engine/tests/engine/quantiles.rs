//! Exact quantiles of many values, which several threads work out together, are those of a sort.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use tersecades_engine::aggregate::quantile;
use tersecades_engine::expression::col;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;
use tersecades_testkit::random::Random;

const ROWS: i64 = 300_000;
const BATCH: i64 = 10_000;
/// Windows of so many seconds.
const SIZE: i64 = 150;

/// Seconds by which rows may be late.
const LATENESS: i64 = 40;

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count as u64)
}

/// Time in seconds, group, value; one row in forty is up to `late` seconds late.
fn rows(late: usize) -> Vec<(i64, i64, i32)> {
    let mut random = Random::new(3);
    let row = |index: i64| {
        let spread = if random.one_in(50) { 1_000_000 } else { 900 };
        let value = random.below(spread) as i32 - 100;
        let delay = match late > 0 && random.one_in(40) {
            true => random.below(late) as i64,
            false => 0,
        };
        let time = (index / 1_000 - delay).max(0);
        (time, random.below(300) as i64, value)
    };
    (0..ROWS).map(row).collect()
}

/// The quantile of `values` as a sort gives it.
fn of_sorted(values: &[i32], fraction: f64) -> f64 {
    let at = fraction * (values.len() - 1) as f64;
    let low = f64::from(values[at as usize]);
    let high = f64::from(values[(at as usize + 1).min(values.len() - 1)]);
    low + at.fract() * (high - low)
}

#[test]
fn threads_read_the_quantiles_of_a_sort() {
    check(&rows(0), SIZE);
}

/// Windows are settled before the last of their rows come.
#[test]
fn rows_that_come_late_are_among_the_values() {
    check(&rows(LATENESS as usize), SIZE);
    check(&rows(LATENESS as usize), SIZE / 3);
}

/// Compares the quantiles of windows, `slide` seconds apart, with those of a sort.
fn check(rows: &[(i64, i64, i32)], slide: i64) {
    let mut groups: BTreeMap<(i64, i64), Vec<i32>> = BTreeMap::new();
    for (time, group, value) in rows {
        let last = time / slide;
        let first = (time - SIZE).div_euclid(slide) + 1;
        for window in first..=last {
            let known = groups.entry((window, *group)).or_default();
            known.push(*value);
        }
    }
    groups
        .values_mut()
        .for_each(|values| values.sort_unstable());
    let batch = |rows: &[(i64, i64, i32)]| {
        let times = Int64Array::from_iter_values(rows.iter().map(|row| row.0 * 1_000));
        let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        let values = Int32Array::from_iter_values(rows.iter().map(|row| row.2));
        let columns: [(&str, ArrayRef); 3] = [
            ("timestamp", Arc::new(times)),
            ("group", Arc::new(keys)),
            ("value", Arc::new(values)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<RecordBatch> = rows.chunks(BATCH as usize).map(batch).collect();
    for threads in [1, 2, 4] {
        let of_value = |fraction| quantile(col("value"), fraction);
        let results = Stream::from_batches(batches[0].schema(), batches.clone())
            .event_time(col("timestamp"), seconds(LATENESS))
            .threads(threads)
            .window(hop(seconds(SIZE), seconds(slide)))
            .group_by(["group"])
            .aggregate([of_value(0.5), of_value(0.99)])
            .run()
            .unwrap();
        let mut expected = groups.iter();
        for result in results {
            let result = result.unwrap();
            let keys = result.column(2).as_primitive::<Int64Type>();
            for row in 0..result.num_rows() {
                let ((_, group), values) = expected.next().unwrap();
                let found = [3, 4].map(|at| {
                    let column = result.column(at).as_primitive::<Float64Type>();
                    column.value(row)
                });
                let sorted = [0.5, 0.99].map(|fraction| of_sorted(values, fraction));
                assert_eq!(
                    (keys.value(row), found),
                    (*group, sorted),
                    "{threads} threads"
                );
            }
        }
        assert_eq!(expected.next(), None, "{threads} threads");
    }
}
