//! Streams made of several: what comes out of joins and merges goes on through windows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::as_of::{AsOfSpec, Direction};
use tersecades_engine::operator::join::table::{JoinSpec, JoinTime};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::process::WindowFunction;
use tersecades_engine::operator::reduce::Reducer;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Span, global, hop, tumble};
use tersecades_engine::{ErrorKind, Result};
use tersecades_testkit::random::Random;

const TEN: Duration = Duration::from_millis(10);

fn numbers(name: &str, values: &[i64]) -> (String, ArrayRef) {
    (name.to_owned(), Arc::new(Int64Array::from(values.to_vec())))
}

/// A stream in batches of `batch_rows` with event time `time`.
fn stream(columns: Vec<(String, ArrayRef)>, batch_rows: usize) -> Stream {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let starts = (0..rows.num_rows()).step_by(batch_rows);
    let part = |start| rows.slice(start, batch_rows.min(rows.num_rows() - start));
    Stream::from_batches(rows.schema(), starts.map(part).collect())
        .event_time(col("time"), Duration::ZERO)
}

fn batches(stream: Stream) -> Vec<RecordBatch> {
    stream.run().unwrap().collect::<Result<_>>().unwrap()
}

fn column(stream: Stream, name: &str) -> Vec<Option<i64>> {
    let batches = batches(stream);
    let values = |batch: &RecordBatch| {
        let column = batch
            .column_by_name(name)
            .unwrap()
            .as_primitive::<Int64Type>();
        column.iter().collect::<Vec<_>>()
    };
    batches.iter().flat_map(values).collect()
}

#[test]
fn a_merge_goes_by_clocks_and_makes_no_row_late() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut inputs: Vec<Vec<i64>> = Vec::new();
        for _ in 0..random.between(1, 3) {
            let mut clock = 0;
            let count = random.below(30);
            let time = |_| {
                clock += random.between(0, 9);
                clock - random.between(0, 20) * i64::from(random.one_in(4))
            };
            inputs.push((0..count).map(time).collect());
        }
        let mut expected = Vec::new();
        for (input, times) in inputs.iter().enumerate() {
            for (index, time) in times.iter().enumerate() {
                let clock = times[..=index].iter().max().unwrap();
                expected.push((*clock, input, index, *time));
            }
        }
        expected.sort_unstable();
        let expected: Vec<Option<i64>> = expected.iter().map(|row| Some(row.3)).collect();
        let merged = |batch_rows: usize| {
            let streams = inputs.iter().map(|times| {
                stream(vec![numbers("time", times)], batch_rows).event_time(col("time"), 2 * TEN)
            });
            Stream::merge(streams.collect::<Vec<_>>()).unwrap()
        };
        for batch_rows in [1, 4, 100] {
            assert_eq!(column(merged(batch_rows), "time"), expected, "seed {seed}");
        }
        let mut counted = merged(3)
            .window(tumble(TEN))
            .aggregate([count()])
            .run()
            .unwrap();
        assert!(counted.by_ref().all(|window| window.is_ok()));
        assert_eq!(counted.metrics().late_rows, 0, "seed {seed}");
    }
}

#[test]
fn a_merge_takes_times_of_one_unit() {
    let rows = |unit| stream(vec![numbers("time", &[1, 2])], 1).event_time_unit(unit);
    let merged = |units: [TimeUnit; 2]| Stream::merge(units.map(rows));
    let error = merged([TimeUnit::Millisecond, TimeUnit::Second]).map(|_| ());
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(
        error.to_string().contains("in Second in another"),
        "{error}"
    );
    let seconds = merged([TimeUnit::Second; 2]).unwrap();
    assert_eq!(column(seconds, "time"), [1, 1, 2, 2].map(Some));
}

#[test]
fn a_window_over_a_join_closes_rightly() {
    let left = || stream(vec![numbers("time", &[1, 5, 12, 25, 31])], 2);
    let right = || stream(vec![numbers("time", &[2, 11, 13, 24, 40])], 1);
    let near = left()
        .interval_join(right(), &[], (-2_000_000, 2_000_000), JoinKind::Left)
        .unwrap();
    assert_eq!(
        column(near.clone(), "time_right"),
        [Some(2), None, Some(11), Some(13), Some(24), None]
    );
    let counted = near.window(tumble(TEN)).aggregate([count().alias("n")]);
    assert_eq!(column(counted, "n"), [Some(2), Some(2), Some(1), Some(1)]);
    let same = left()
        .window_join(right(), tumble(TEN), JoinKind::Inner, &[])
        .unwrap();
    let counted = same.window(tumble(2 * TEN)).aggregate([count().alias("n")]);
    // [0, 10): 2 × 1, [10, 20): 1 × 2, [20, 30): 1 × 1
    assert_eq!(column(counted, "n"), [Some(4), Some(1)]);
}

#[test]
fn late_rows_are_counted_and_not_joined() {
    let left = stream(vec![numbers("time", &[10, 30, 15])], 1);
    let right = stream(vec![numbers("time", &[10, 30, 15])], 1);
    let mut run = left
        .interval_join(right, &[], (0, 0), JoinKind::Full)
        .unwrap()
        .run()
        .unwrap();
    let rows: usize = run.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, run.metrics().late_rows), (2, 2));
}

#[test]
fn a_table_of_versions_is_looked_up_at_the_time_of_the_row() {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["new", "old", "other"]));
    let (id, from) = (numbers("id", &[1, 1, 2]), numbers("from", &[20, 0, 0]));
    let rows = RecordBatch::try_from_iter([id, from, ("name".to_owned(), names)]).unwrap();
    let table = LookupTable::new("names", rows);
    let probes = vec![
        numbers("time", &[-1, 5, 20, 21]),
        numbers("id", &[1, 1, 1, 2]),
    ];
    let found = stream(probes, 2)
        .versioned_lookup(&table, &[("id", "id")], "from", JoinKind::Left)
        .unwrap();
    let mut got = Vec::new();
    for batch in batches(found) {
        let names = arrow_cast::cast(batch.column_by_name("name").unwrap(), &DataType::Utf8);
        let names = names.unwrap();
        got.extend(
            names
                .as_string::<i32>()
                .iter()
                .map(|name| name.map(str::to_owned)),
        );
    }
    let expected = [None, Some("old"), Some("new"), Some("other")];
    assert_eq!(got, expected.map(|name| name.map(str::to_owned)));
}

#[test]
fn without_a_tolerance_rows_are_joined_however_far_apart_they_are() {
    const FAR: i64 = 8_000_000_000_000_000_000;
    // So many keys that rows which are too old are looked for.
    let keys: Vec<i64> = (0..3_000).collect();
    let side = |time: i64, keys: &[i64]| {
        let times = vec![time; keys.len()];
        stream(vec![numbers("time", &times), numbers("key", keys)], 500)
    };
    let found = |time: i64, direction, tolerance| {
        let (left, right) = (side(time, &[7, 2_999, 5_000]), side(-time, &keys));
        let how = (direction, tolerance);
        let joined = left.asof_join(right, &[("key", "key")], how, JoinKind::Left);
        column(joined.unwrap(), "time_right")
    };
    let longest = Some(Duration::from_millis(i64::MAX as u64));
    for (time, direction) in [
        (FAR, Direction::Backward),
        (-FAR, Direction::Forward),
        (FAR, Direction::Nearest),
        (-FAR, Direction::Nearest),
    ] {
        assert_eq!(
            found(time, direction, None),
            [Some(-time), Some(-time), None]
        );
        assert_eq!(found(time, direction, longest), [None; 3]);
    }
}

#[test]
fn rows_between_windows_are_counted_whatever_takes_the_windows() {
    // [0, 20), [40, 60)
    let gaps = hop(2 * TEN, 4 * TEN);
    let times = [1, 25, 41, 30, 10];
    let rows = || {
        let columns = vec![numbers("time", &times), numbers("value", &times)];
        stream(columns, 1)
    };
    let processed = || rows().process(gaps, Largest).unwrap();
    let joined = || {
        let joined = rows().window_join(rows(), gaps, JoinKind::Inner, &[("value", "value")]);
        joined.unwrap()
    };
    let both = || Stream::union([processed(), processed()]).unwrap();
    let cases: [(&dyn Fn() -> Stream, u64); 3] = [(&processed, 1), (&joined, 2), (&both, 2)];
    for (query, inputs) in cases {
        let mut first = query().run().unwrap();
        first.step().unwrap();
        let mut rest = query().run().unwrap();
        rest.resume(&first.snapshot().unwrap()).unwrap();
        for mut run in [query().run().unwrap(), first, rest] {
            run.by_ref().for_each(|batch| drop(batch.unwrap()));
            let metrics = run.metrics();
            let missed = (metrics.skipped_rows, metrics.late_rows);
            assert_eq!(missed, (2 * inputs, inputs));
        }
    }
}

#[test]
fn joins_refuse_what_makes_no_sense() {
    let one = || stream(vec![numbers("time", &[1]), numbers("time_right", &[1])], 1);
    let two = || stream(vec![numbers("time", &[1])], 1);
    let kind = |joined: Result<Stream>| joined.map(|_| ()).unwrap_err().kind();
    let options = JoinOptions::default;
    let doubled = one().join(two(), JoinKind::Inner, &[], options());
    assert_eq!(kind(doubled), ErrorKind::SchemaMismatch);
    let unknown = two().join(two(), JoinKind::Inner, &[("time", "tiem")], options());
    assert_eq!(kind(unknown), ErrorKind::InvalidArgument);
    let timeless = two().project([("a", col("time"))]);
    let lost = timeless.window_join(two(), tumble(TEN), JoinKind::Inner, &[]);
    assert_eq!(kind(lost), ErrorKind::InvalidArgument);
    let own = two().window_join(two(), global(), JoinKind::Inner, &[]);
    assert_eq!(kind(own), ErrorKind::Unsupported);
    let nearest = (Direction::Nearest, None);
    let full = two().asof_join(two(), &[], nearest, JoinKind::Full);
    assert_eq!(kind(full), ErrorKind::InvalidArgument);
    let conditional = JoinSpec {
        kind: JoinKind::Left,
        on: Vec::new(),
        time: JoinTime::AsOf(AsOfSpec::default()),
        options: JoinOptions {
            residual: Some(col("time").lt(col("time_right"))),
            ..options()
        },
    };
    assert_eq!(
        kind(two().join_with(two(), conditional)),
        ErrorKind::Unsupported
    );
    let fine = (0, 1_500_000);
    let uneven = two().interval_join(two(), &[], fine, JoinKind::Inner);
    assert_eq!(kind(uneven), ErrorKind::InvalidArgument);
}

#[test]
fn what_a_join_keeps_counts_against_the_memory_limit() {
    let rows: Vec<i64> = (0..50_000).map(|row| row * 7_919 % 50_021).collect();
    let side = || stream(vec![numbers("time", &rows)], 10_000);
    let on = [("time", "time")];
    let join = || {
        let joined = side().join(side(), JoinKind::Inner, &on, JoinOptions::default());
        joined.unwrap()
    };
    let mut run = join().memory_limit(100_000).run().unwrap();
    let error = run.find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    assert_eq!(column(join(), "time").len(), 50_000);
}

/// The rows whose value is the largest of the window.
#[derive(Debug)]
struct Largest;

impl WindowFunction for Largest {
    fn schema(&self, input: &Schema) -> Result<SchemaRef> {
        let field = Field::new("largest", input.field(1).data_type().clone(), true);
        Ok(Arc::new(Schema::new(vec![field])))
    }

    fn process(&self, window: &Span, rows: &RecordBatch) -> Result<RecordBatch> {
        assert!(window.end - window.start == 20);
        let values = rows.column(1).as_primitive::<Int64Type>();
        let largest = values.values().iter().max().copied();
        let largest: ArrayRef = Arc::new(Int64Array::from(vec![largest]));
        Ok(RecordBatch::try_from_iter([("largest", largest)]).unwrap())
    }
}

#[test]
fn a_function_sees_every_row_of_a_window_once() {
    let times = [1, 5, 12, 25, 31, 3];
    let columns = || {
        vec![
            numbers("time", &times),
            numbers("value", &[4, 9, 2, 7, 1, 99]),
        ]
    };
    for batch_rows in [1, 2, 100] {
        let windows = stream(columns(), batch_rows)
            .process(hop(2 * TEN, TEN), Largest)
            .unwrap();
        // [-10, 10), [0, 20), [10, 30), [20, 40), [30, 50); the last row is late.
        let expected = [9, 9, 7, 7, 1].map(Some);
        assert_eq!(column(windows, "largest"), expected);
    }
}

/// The sum of `value`.
#[derive(Debug)]
struct Sum;

impl Reducer for Sum {
    fn schema(&self, _input: &Schema) -> Result<SchemaRef> {
        let field = Field::new("total", DataType::Int64, true);
        Ok(Arc::new(Schema::new(vec![field])))
    }

    fn reduce(&self, state: Option<&RecordBatch>, rows: &RecordBatch) -> Result<RecordBatch> {
        let before = state.map_or(0, |state| {
            state.column(0).as_primitive::<Int64Type>().value(0)
        });
        let values = rows.column_by_name("value").unwrap();
        let sum: i64 = values.as_primitive::<Int64Type>().iter().flatten().sum();
        let total: ArrayRef = Arc::new(Int64Array::from(vec![before + sum]));
        Ok(RecordBatch::try_from_iter([("total", total)]).unwrap())
    }
}

#[test]
fn a_reduction_is_the_same_in_batches_and_after_a_restart() {
    let keys: Vec<i64> = (0..200).map(|row| row * 31 % 7).collect();
    let values: Vec<i64> = (0..200).map(|row| row * row % 101).collect();
    let columns = || vec![numbers("time", &keys), numbers("value", &values)];
    let reduced = |batch_rows| stream(columns(), batch_rows).reduce(["time"], Sum);
    let total = |key: i64| {
        let own = keys.iter().zip(&values).filter(|(k, _)| **k == key);
        Some(own.map(|(_, value)| *value).sum::<i64>())
    };
    let expected: Vec<Option<i64>> = (0..7).map(total).collect();
    assert_eq!(column(reduced(200), "total"), expected);
    assert_eq!(column(reduced(3), "total"), expected);
    let mut first = reduced(100).run().unwrap();
    assert!(first.step().unwrap());
    let rest = columns()
        .into_iter()
        .map(|(name, array)| (name, array.slice(100, 100)));
    let rest = stream(rest.collect(), 50).reduce(["time"], Sum);
    let mut second = rest.run().unwrap();
    second.restore(&first.snapshot().unwrap()).unwrap();
    let batch = second.next().unwrap().unwrap();
    let totals: Vec<Option<i64>> = batch.column(1).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(totals, expected);
    let sums = stream(columns(), 7)
        .window(tumble(TEN))
        .aggregate([call("sum", col("value"))]);
    assert_eq!(batches(sums).len(), 1);
}
