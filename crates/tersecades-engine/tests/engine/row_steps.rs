//! Operators on rows between windows, and what they read.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use tersecades_engine::aggregate::count;
use tersecades_engine::expression::col;
use tersecades_engine::operator::over::{Frame, Over, OverCall, OverFunction};
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{count as rows_of, session, tumble};
use tersecades_engine::{ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);

fn numbers(name: &str, values: Vec<i64>) -> (String, ArrayRef) {
    (name.to_owned(), Arc::new(Int64Array::from(values)))
}

fn stream(columns: Vec<(String, ArrayRef)>) -> Stream {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    Stream::from_batches(rows.schema(), vec![rows])
}

fn column(stream: Stream, index: usize) -> Vec<i64> {
    let batches: Vec<RecordBatch> = stream.run().unwrap().collect::<Result<_>>().unwrap();
    let values = |batch: &RecordBatch| {
        let column = batch.column(index).as_primitive::<Int64Type>();
        column.values().to_vec()
    };
    batches.iter().flat_map(values).collect()
}

/// Second 0: three of `a`, one of `b`; second 1: one of `a`, two of `b`.
fn windows() -> Stream {
    let names = StringArray::from(vec!["b", "a", "a", "a", "b", "b", "a"]);
    let times = vec![0, 100, 200, 300, 1_000, 1_100, 1_200];
    let rows = vec![
        numbers("timestamp", times),
        ("name".to_owned(), Arc::new(names) as ArrayRef),
    ];
    stream(rows)
        .window(tumble(SECOND))
        .group_by(["name"])
        .aggregate([count().alias("n")])
}

#[test]
fn a_sort_after_a_window_orders_each_window_unless_all_are_asked_for() {
    let by = || [(col("n"), SortOrder::DESCENDING)];
    assert_eq!(column(windows().sort(by()), 3), [3, 1, 2, 1]);
    assert_eq!(column(windows().top_k(1, by()), 3), [3, 2]);
    assert_eq!(
        column(windows().sort_in(Extent::Whole, by()), 3),
        [3, 2, 1, 1]
    );
    assert_eq!(
        column(windows().top_k_in(Extent::Whole, (2, 1), by()), 3),
        [2, 1]
    );
}

#[test]
fn a_window_goes_on_over_what_row_operators_leave() {
    let times = vec![0, 0, 500, 1_000, 1_000, 5_000];
    let distinct = stream(vec![numbers("timestamp", times)]).distinct();
    let counted = distinct.window(tumble(SECOND)).aggregate([count()]);
    assert_eq!(column(counted, 2), [2, 1, 1]);
    let again = windows()
        .top_k(1, [(col("n"), SortOrder::DESCENDING)])
        .filter(col("n").gt(2))
        .window(tumble(SECOND * 10));
    let error = again.aggregate([count()]).run().map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn a_union_takes_streams_of_the_same_columns() {
    let one = || stream(vec![numbers("a", vec![1, 2])]);
    let both = Stream::union([one(), one().filter(col("a").gt(1))]).unwrap();
    assert_eq!(column(both.clone(), 0), [1, 2, 2]);
    assert_eq!(column(both.distinct(), 0), [1, 2]);
    let other = stream(vec![numbers("b", vec![3])]);
    let error = Stream::union([one(), other]).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
}

/// One row a batch, for ever.
struct Endless(Arc<AtomicUsize>, Rejected);

impl Source for Endless {
    fn schema(&self) -> SchemaRef {
        RecordBatch::try_from_iter([numbers("a", vec![])])
            .unwrap()
            .schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let row = self.0.fetch_add(1, Ordering::SeqCst) as i64;
        Ok(Some(
            RecordBatch::try_from_iter([numbers("a", vec![row])]).unwrap(),
        ))
    }

    fn rejected(&self) -> &Rejected {
        &self.1
    }
}

#[test]
fn a_limit_stops_reading_the_source() {
    let read = Arc::new(AtomicUsize::new(0));
    let source = Endless(Arc::clone(&read), Rejected::default());
    let limited = Stream::from_source(Box::new(source)).limit(3, 2);
    assert_eq!(column(limited, 0), [2, 3, 4]);
    assert_eq!(read.load(Ordering::SeqCst), 5);
}

#[test]
fn rows_of_frames_and_parts_of_partitions_count_from_one() {
    let of = |function| {
        let over = Over {
            partition: Vec::new(),
            order: vec![(col("a"), SortOrder::ASCENDING)],
            calls: vec![OverCall {
                function,
                argument: Some("a".to_owned()),
                default: None,
                frame: Frame::PARTITION,
                output: "b".to_owned(),
            }],
        };
        stream(vec![numbers("a", vec![7, 5, 6])]).rows(over)
    };
    assert_eq!(column(of(OverFunction::Nth(1)), 1), [5, 5, 5]);
    assert_eq!(column(of(OverFunction::Tile(2)), 1), [1, 1, 2]);
    for function in [OverFunction::Nth(0), OverFunction::Tile(0)] {
        let error = of(function).run().map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn rows_kept_for_a_sort_count_against_the_memory_limit() {
    let values: Vec<i64> = (0..100_000).map(|i| i * 7_919 % 100_003).collect();
    let sorted = stream(vec![numbers("a", values)])
        .sort([(col("a"), SortOrder::ASCENDING)])
        .memory_limit(100_000);
    let error = sorted
        .run()
        .unwrap()
        .collect::<Result<Vec<_>>>()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[test]
fn windows_that_differ_between_keys_are_taken_by_themselves_whatever_the_batches_are() {
    let times: Vec<i64> = (0..400)
        .map(|row| row * 700 + (row * row) % 9_000)
        .collect();
    let names = StringArray::from_iter_values((0..400).map(|row| ["a", "b", "c"][row * row % 3]));
    let columns = vec![
        numbers("timestamp", times),
        ("name".to_owned(), Arc::new(names) as ArrayRef),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let by = || {
        [
            (col("n"), SortOrder::DESCENDING),
            (col("name"), SortOrder::ASCENDING),
        ]
    };
    type Step = Box<dyn Fn(Stream) -> Stream>;
    let steps: [Step; 3] = [
        Box::new(move |stream| stream.top_k(1, by())),
        Box::new(move |stream| stream.sort(by())),
        Box::new(move |stream| {
            let shown = ["name", "n"].map(|name| (name.to_owned(), col(name)));
            stream.project(shown).filter(col("n").gt(0)).top_k(1, by())
        }),
    ];
    for window in [session(SECOND), rows_of(3)] {
        for (number, step) in steps.iter().enumerate() {
            let answer = |size: usize| {
                let starts = (0..rows.num_rows()).step_by(size);
                let cut = |start| rows.slice(start, size.min(rows.num_rows() - start));
                let windows =
                    Stream::from_batches(rows.schema(), starts.map(cut).collect::<Vec<_>>())
                        .event_time(col("timestamp"), SECOND * 10)
                        .window(window)
                        .group_by(["name"])
                        .aggregate([count().alias("n")]);
                let batches = step(windows).run().unwrap().map(Result::unwrap);
                let rows = batches.flat_map(|batch| {
                    let row = |row| format!("{:?}", batch.slice(row, 1).columns());
                    (0..batch.num_rows()).map(row).collect::<Vec<_>>()
                });
                rows.collect::<Vec<_>>()
            };
            let whole = answer(400);
            assert!(whole.len() > 20, "{}", whole.len());
            for size in [1, 7, 50] {
                assert_eq!(answer(size), whole, "{window}, step {number}, {size}");
            }
        }
    }
}

#[test]
fn distinct_rows_of_texts_are_the_first_ones_whatever_the_batches_are() {
    let row = |row: i64| (row * 7 % (5 + row / 90), row * 5 % 11);
    let expected: Vec<i64> = (0..900)
        .filter(|at| (0..*at).all(|before| row(before) != row(*at)))
        .map(|at| row(at).0 * 100 + row(at).1)
        .collect();
    for size in [1, 100, 900] {
        let batch = |start: i64| {
            let rows = (start..900.min(start + size)).map(row);
            let names = rows.clone().map(|(name, _)| match name {
                3 => None,
                other => Some(format!("n{other}")),
            });
            let names: ArrayRef = Arc::new(names.collect::<StringArray>());
            let places = rows.map(|(_, place)| format!("p{place}"));
            let places: ArrayRef = Arc::new(StringArray::from_iter_values(places));
            RecordBatch::try_from_iter_with_nullable([
                ("name", names, true),
                ("place", places, true),
            ])
            .unwrap()
        };
        let batches: Vec<RecordBatch> = (0..900).step_by(size as usize).map(batch).collect();
        let stream = Stream::from_batches(batches[0].schema(), batches).distinct();
        let mut found = Vec::new();
        for batch in stream.run().unwrap() {
            let batch = batch.unwrap();
            let text = |index: usize| {
                arrow_cast::cast(batch.column(index), &arrow_schema::DataType::Utf8).unwrap()
            };
            let (names, places) = (text(0), text(1));
            let number = |text: Option<&str>| text.map_or(3, |text| text[1..].parse().unwrap());
            let names = names.as_string::<i32>().iter().map(number);
            let places = places.as_string::<i32>().iter().map(number);
            found.extend(
                names
                    .zip(places)
                    .map(|(name, place): (i64, i64)| name * 100 + place),
            );
        }
        assert_eq!(found, expected, "batches of {size}");
    }
}
