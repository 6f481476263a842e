//! Ungrouped aggregates over batches whose late rows belong to earlier windows: what is taken away
//! from the fold of a whole batch, and the ends that a late row may or may not attain.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Keep;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_testkit::random::Random;

const ROWS: i64 = 30_000;
const BATCH: usize = 6_000;
/// Ticks of a window, of which three begin in a batch, and most ticks that a row is late.
const SIZE: i64 = 2_500;
const LATE: usize = 3_000;

/// Time and value of each row; one in twenty is late, and one in `spikes` of these far from all
/// others, above or below.
fn rows(seed: u64, spikes: usize) -> Vec<(i64, Option<i64>)> {
    let mut random = Random::new(seed);
    let row = |at: i64| {
        let (late, spike) = (random.one_in(20), random.one_in(spikes));
        let value = random.below(900) as i64 - 300;
        let value = match (late && spike, random.one_in(2)) {
            (true, true) => value + 70_000 + at,
            (true, false) => value - 70_000 - at,
            _ => value,
        };
        let time = at - if late { random.below(LATE) as i64 } else { 0 };
        (time.max(0), (!random.one_in(12)).then_some(value))
    };
    (0..ROWS).map(row).collect()
}

/// Rows, values, sum, least, greatest and variance of each window.
type Moments = (i64, i64, i64, i64, i64, f64);

fn reckoned(rows: &[(i64, Option<i64>)]) -> BTreeMap<i64, Moments> {
    let mut windows: BTreeMap<i64, Vec<Option<i64>>> = BTreeMap::new();
    for (time, value) in rows {
        let start = time.div_euclid(SIZE) * SIZE;
        windows.entry(start).or_default().push(*value);
    }
    let moments = |all: Vec<Option<i64>>| {
        let values: Vec<i64> = all.iter().copied().flatten().collect();
        let sum: i64 = values.iter().sum();
        let mean = sum as f64 / values.len() as f64;
        let squares = values.iter().map(|value| (*value as f64 - mean).powi(2));
        let variance = squares.sum::<f64>() / (values.len() - 1) as f64;
        let (least, greatest) = (values.iter().min(), values.iter().max());
        let ends = (*least.unwrap(), *greatest.unwrap());
        let counts = (all.len() as i64, values.len() as i64);
        (counts.0, counts.1, sum, ends.0, ends.1, variance)
    };
    let windows = windows.into_iter();
    windows.map(|(start, all)| (start, moments(all))).collect()
}

fn found(stream: Stream) -> BTreeMap<i64, Moments> {
    let value = |name| call(name, col("value"));
    let windows = stream
        .window(tumble(Duration::from_millis(SIZE as u64)))
        .aggregate([
            count(),
            value("count").alias("values"),
            value("sum"),
            value("min"),
            value("max"),
            value("variance"),
        ]);
    let mut moments = BTreeMap::new();
    for rows in windows.run().unwrap() {
        let rows = rows.unwrap();
        let integers = |at: usize| cast(rows.column(at), &DataType::Int64).unwrap();
        let integer = |at: usize, row: usize| integers(at).as_primitive::<Int64Type>().value(row);
        let variance = rows.column(7).as_primitive::<Float64Type>();
        for row in 0..rows.num_rows() {
            let [all, values, sum, least, greatest] = [2, 3, 4, 5, 6].map(|at| integer(at, row));
            let found = (all, values, sum, least, greatest, variance.value(row));
            assert_eq!(moments.insert(integer(0, row), found), None);
        }
    }
    moments
}

fn stream(rows: &[(i64, Option<i64>)], data_type: &DataType) -> Stream {
    let batches = rows.chunks(BATCH).map(|rows| {
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let values: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>());
        let values = cast(&values, data_type).unwrap();
        assert_eq!(
            values.null_count(),
            rows.iter().filter(|row| row.1.is_none()).count()
        );
        RecordBatch::try_from_iter([("timestamp", times), ("value", values)]).unwrap()
    });
    let batches: Vec<RecordBatch> = batches.collect();
    let lateness = Duration::from_millis(LATE as u64);
    Stream::from_batches(batches[0].schema(), batches).event_time(col("timestamp"), lateness)
}

#[test]
fn late_rows_count_in_their_windows_and_in_no_other() {
    for (seed, spikes) in [1, 2, 40, 1_500, 1_000_000].into_iter().enumerate() {
        let rows = rows(seed as u64, spikes);
        let expected = reckoned(&rows);
        for data_type in [DataType::Int64, DataType::Int32, DataType::Float64] {
            for (kept, threads) in [(false, 1), (true, 1), (true, 3)] {
                let stream = stream(&rows, &data_type).threads(threads);
                let stream = match kept {
                    true => stream.keep(Keep::Bytes(usize::MAX)),
                    false => stream,
                };
                let found = found(stream);
                let what = format!("{data_type}, one late row in {spikes}, kept {kept}");
                assert_eq!(found.len(), expected.len(), "{what}");
                for ((start, found), (known, expected)) in found.iter().zip(&expected) {
                    let exact = |(all, values, sum, least, greatest, _): &Moments| {
                        (*all, *values, *sum, *least, *greatest)
                    };
                    assert_eq!((start, exact(found)), (known, exact(expected)), "{what}");
                    let off = (found.5 - expected.5).abs();
                    assert!(off <= 1e-9 * expected.5.abs(), "{what}: {found:?}");
                }
            }
        }
    }
}
