//! What a user meets: limits, retained ranges, errors that say where, and workers that fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, Time64MicrosecondArray,
    UInt64Array,
};
use arrow_schema::DataType;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::runtime::Keep;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_engine::{ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);

/// `rows` rows, ten a second, whose `name` has `names` values; one batch per 100 rows.
fn batches(rows: i64, names: i64) -> Vec<RecordBatch> {
    let batch = |first: i64| {
        let range = first..(first + 100).min(rows);
        let time: ArrayRef = Arc::new(Int64Array::from_iter_values(range.clone().map(|i| i * 100)));
        let names = range.clone().map(|i| format!("name-{}", i % names));
        let name: ArrayRef = Arc::new(StringArray::from_iter_values(names));
        let value: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
        RecordBatch::try_from_iter([("timestamp", time), ("name", name), ("value", value)]).unwrap()
    };
    (0..rows).step_by(100).map(batch).collect()
}

fn stream(rows: i64, names: i64) -> Stream {
    let batches = batches(rows, names);
    Stream::from_batches(batches[0].schema(), batches)
}

fn counts(stream: Stream) -> Vec<i64> {
    let run = stream
        .window(tumble(SECOND))
        .aggregate([count()])
        .run()
        .unwrap();
    run.flat_map(|batch| {
        let column = Arc::clone(batch.unwrap().column(2));
        column.as_primitive::<Int64Type>().values().to_vec()
    })
    .collect()
}

#[test]
fn state_beyond_the_memory_limit_is_refused_with_advice() {
    let grouped = |limit, threads| {
        stream(10_000, 5_000)
            .memory_limit(limit)
            .threads(threads)
            .window(tumble(Duration::from_secs(100_000)))
            .group_by(["name"])
            .aggregate([count()])
            .run()
            .unwrap()
            .collect::<Result<Vec<_>>>()
    };
    for threads in [1, 2, 3] {
        let error = grouped(10_000, threads).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.hint_text().unwrap().contains("raise the limit"));
        let results = grouped(10_000_000, threads).unwrap();
        let rows: usize = results.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(rows, 5_000);
    }
}

#[test]
fn columns_of_other_types_hinder_only_queries_that_read_them() {
    let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let clock: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![7, 8]));
    let columns = [
        ("clock", Arc::clone(&clock)),
        ("timestamp", column(vec![1, 2])),
        ("value", column(vec![3, 4])),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let stream = Stream::from_batches(batch.schema(), vec![batch]);
    let all = |stream: Stream| stream.run().and_then(|run| run.collect::<Result<Vec<_>>>());
    let windows = stream.clone().window(tumble(SECOND));
    let sums = all(windows.aggregate([call("sum", col("value"))])).unwrap();
    assert_eq!(sums[0].num_rows(), 1);
    let values = all(stream.clone().project([("value", col("value"))])).unwrap();
    assert_eq!(values[0].num_rows(), 2);
    for reading in [
        stream.clone(),
        stream.clone().project([("clock", col("clock"))]),
        stream.clone().filter(col("clock").is_null()),
        stream.clone().keep(Keep::Bytes(1 << 20)),
        stream.clone().aggregate([call("count", col("clock"))]),
        stream.aggregate([call("max", col("clock"))]),
    ] {
        let error = all(reading).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let column = error.context().column.as_deref().unwrap_or_default();
        assert!(column.contains("clock"), "{error}");
    }
}

#[test]
fn totals_that_were_given_are_not_snapshotted_as_none() {
    let total = || stream(1_000, 3).aggregate([count()]).run().unwrap();
    let mut midway = total();
    assert!(midway.step().unwrap());
    let snapshot = midway.snapshot().unwrap();
    assert!(total().restore(&snapshot).is_ok());
    let mut ended = total();
    while ended.step().unwrap() {}
    assert!(ended.take_result().is_some());
    let error = ended.snapshot().unwrap_err();
    assert!(
        error.hint_text().unwrap().contains("before the end"),
        "{error}"
    );
}

#[test]
fn a_retained_range_holds_the_newest_batches_and_answers_queries() {
    let keep = |keep| {
        let mut run = stream(1_000, 3)
            .keep(keep)
            .filter(col("value").lt(0))
            .run()
            .unwrap();
        while run.step().unwrap() {}
        run.retained().unwrap().clone()
    };
    let last = keep(Keep::Duration(Duration::from_secs(25)));
    assert_eq!(
        last.rows(),
        300,
        "batches that reach into the last 25 s are kept whole"
    );
    assert_eq!(counts(Stream::from_retained(&last)), vec![10; 30]);
    let batch_bytes = keep(Keep::Bytes(usize::MAX)).byte_size() / 10;
    assert_eq!(keep(Keep::Bytes(batch_bytes * 4)).rows() / 100, 4);
}

#[test]
fn mistakes_are_found_before_a_row_is_read() {
    let error = |stream: Stream| stream.run().map(|_| ()).unwrap_err().to_string();
    let unknown = error(stream(100, 3).filter(col("valeu").gt(1)));
    assert!(unknown.contains("did you mean `value`"), "{unknown}");
    let calls = [call("summ", col("value"))];
    let unknown = error(stream(100, 3).window(tumble(SECOND)).aggregate(calls));
    assert!(unknown.contains("did you mean `sum`"), "{unknown}");
    let calls = [call("sum", col("name"))];
    let wrong = error(stream(100, 3).window(tumble(SECOND)).aggregate(calls));
    assert!(wrong.contains("sum needs numbers"), "{wrong}");
    let uneven = stream(100, 3)
        .window(tumble(Duration::from_micros(1_500)))
        .aggregate([count()]);
    assert!(error(uneven).contains("no whole number of ticks"));
    let doubled = error(stream(100, 3).project([("name", col("name")), ("name", col("value"))]));
    assert!(doubled.contains("named `name`"), "{doubled}");
    let names = LookupTable::new("names", batches(100, 100).remove(0));
    let hidden =
        stream(100, 3).lookup_join(&Arc::new(names), ("name", "name"), &[("value", "value")]);
    assert!(error(hidden).contains("a column `value` already"));
}

#[test]
fn an_error_in_a_worker_reaches_the_caller() {
    for threads in [1, 2] {
        let run = stream(1_000, 3)
            .threads(threads)
            .filter(col("value").cast(DataType::Int8).gt(5))
            .window(tumble(SECOND))
            .aggregate([count()])
            .run()
            .unwrap();
        let error = run.collect::<Result<Vec<_>>>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn a_snapshot_of_another_query_is_refused() {
    let sum_by = |key: &str, seconds| {
        stream(1_000, 3)
            .window(tumble(SECOND * seconds))
            .group_by([key])
            .aggregate([call("sum", col("value")).alias("total")])
            .run()
            .unwrap()
    };
    let mut run = sum_by("name", 1_000);
    run.step().unwrap();
    let snapshot = run.snapshot().unwrap();
    sum_by("name", 1_000).restore(&snapshot).unwrap();
    for mut other in [sum_by("name", 500), sum_by("value", 1_000)] {
        let error = other.restore(&snapshot).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn event_times_beyond_63_bits_are_refused() {
    let time: ArrayRef = Arc::new(UInt64Array::from(vec![1, u64::MAX]));
    let rows = RecordBatch::try_from_iter([("timestamp", time)]).unwrap();
    let run = Stream::from_batches(rows.schema(), vec![rows])
        .window(tumble(SECOND))
        .aggregate([count()])
        .run()
        .unwrap();
    let error = run.collect::<Result<Vec<_>>>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[test]
fn late_rows_are_counted_and_can_be_had() {
    let time: ArrayRef = Arc::new(Int64Array::from(vec![100, 5_000, 200, 5_100, 900]));
    let rows = RecordBatch::try_from_iter([("timestamp", time)]).unwrap();
    let mut run = Stream::from_batches(rows.schema(), vec![rows])
        .event_time(col("timestamp"), SECOND)
        .keep_late()
        .window(tumble(SECOND))
        .aggregate([count()])
        .run()
        .unwrap();
    let windows: Vec<RecordBatch> = run.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(windows.len(), 2);
    assert_eq!(run.metrics().late_rows, 2);
    let late: usize = run.take_late().iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(late, 2);
}

/// The only batch of a run.
fn only(stream: Stream) -> RecordBatch {
    let batches: Vec<RecordBatch> = stream.run().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(batches.len(), 1);
    batches[0].clone()
}

#[test]
fn a_whole_stream_needs_no_event_time() {
    let name: ArrayRef = Arc::new(StringArray::from(vec![
        Some("b"),
        None,
        Some("a"),
        Some("b"),
    ]));
    let rows = RecordBatch::try_from_iter_with_nullable([("name", name, true)]).unwrap();
    for threads in [1, 3] {
        let stream = || {
            let batches = (0..4).map(|row| rows.slice(row, 1)).collect();
            Stream::from_batches(rows.schema(), batches).threads(threads)
        };
        let counted = only(stream().group_by(["name"]).aggregate([count()]));
        let names: ArrayRef = Arc::clone(counted.column(0));
        let names = arrow_cast::cast(&names, &DataType::Utf8).unwrap();
        let names: Vec<_> = names.as_string::<i32>().iter().collect();
        assert_eq!(names, [Some("a"), Some("b"), None]);
        let counts = counted.column(1).as_primitive::<Int64Type>();
        assert_eq!(counts.values(), &[1, 2, 1]);
        let different = only(stream().group_by(["name"]).aggregate([]));
        assert_eq!((different.num_rows(), different.num_columns()), (3, 1));
        let all = only(stream().aggregate([count()]));
        assert_eq!(all.column(0).as_primitive::<Int64Type>().values(), &[4]);
    }
}

#[test]
fn a_whole_stream_without_rows_has_one_total_and_no_group() {
    let calls = || [count(), call("sum", col("value"))];
    let none = stream(100, 3).filter(col("value").lt(0));
    let total = only(none.clone().aggregate(calls()));
    assert_eq!(total.column(0).as_primitive::<Int64Type>().values(), &[0]);
    assert!(total.column(1).is_null(0));
    let run = none.group_by(["name"]).aggregate(calls()).run().unwrap();
    assert_eq!(run.schema().fields().len(), 3);
    assert_eq!(run.collect::<Result<Vec<_>>>().unwrap().len(), 0);
    let nothing = stream(100, 3).aggregate([]).run().map(|_| ());
    assert!(nothing.unwrap_err().to_string().contains("name a key"));
}

#[test]
fn windows_can_be_grouped_as_a_whole() {
    let most = stream(1_000, 3)
        .window(tumble(SECOND))
        .group_by(["name"])
        .aggregate([count().alias("rows")])
        .aggregate([call("max", col("rows")), count()]);
    let most = only(most);
    assert_eq!(most.column(0).as_primitive::<Int64Type>().values(), &[4]);
    assert_eq!(most.column(1).as_primitive::<Int64Type>().values(), &[300]);
}

#[test]
fn a_cast_to_32_bits_makes_no_infinity_of_a_finite_float() {
    let cast_of = |values: &[f64]| -> Result<Vec<f32>> {
        let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let batch = RecordBatch::try_from_iter([("value", values)]).unwrap();
        let run = Stream::from_batches(batch.schema(), vec![batch])
            .project([("narrow", col("value").cast(DataType::Float32))])
            .run()?;
        let batches: Vec<RecordBatch> = run.collect::<Result<_>>()?;
        Ok(batches[0]
            .column(0)
            .as_primitive::<Float32Type>()
            .values()
            .to_vec())
    };
    let fitting = [0.1, -3.402_823_5e38, f64::INFINITY, 1e-300];
    assert_eq!(
        cast_of(&fitting).unwrap(),
        [0.1, f32::MIN, f32::INFINITY, 0.0]
    );
    let refused = cast_of(&[1.0, 1e300]).unwrap_err();
    assert!(refused.to_string().contains("1e300"), "{refused}");
}
