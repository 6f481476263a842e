//! Values that an expression fails on are no matter in rows that do not count: those that the
//! filter of an aggregate drops, and those that are late.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampSecondArray};
use arrow_schema::DataType;
use tersecades_columnar::error::ErrorKind;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{hop, tumble};

/// A row for each of `texts`, with `number` its place times `step`, at the second `times`.
fn stream(texts: &[&str], times: Vec<i64>, step: i64) -> Stream {
    let numbers = (0..texts.len() as i64).map(|row| row * step);
    let columns: [(&str, ArrayRef); 3] = [
        ("timestamp", Arc::new(TimestampSecondArray::from(times))),
        ("s", Arc::new(StringArray::from(texts.to_vec()))),
        ("number", Arc::new(Int64Array::from_iter_values(numbers))),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let parts = (0..texts.len()).map(|row| rows.slice(row, 1));
    Stream::from_batches(rows.schema(), parts.collect())
}

fn text_number() -> Expression {
    col("s").cast(DataType::Int64)
}

fn numbers_of(stream: Stream) -> Vec<Option<i64>> {
    let results: Vec<RecordBatch> = stream.run().unwrap().map(Result::unwrap).collect();
    let [only] = results.as_slice() else {
        panic!("{results:?}")
    };
    let numbers = only
        .columns()
        .iter()
        .map(|column| column.as_primitive::<Int64Type>());
    numbers
        .map(|column| column.iter().next().unwrap())
        .collect()
}

/// `calls` over the whole stream, in batches of one row and in one batch.
fn check(stream: &Stream, calls: &[AggregateCall], expected: &[Option<i64>]) {
    let all: Vec<RecordBatch> = stream.clone().run().unwrap().map(Result::unwrap).collect();
    let whole = arrow_select::concat::concat_batches(&all[0].schema(), &all).unwrap();
    let whole = Stream::from_batches(whole.schema(), vec![whole]);
    for stream in [stream.clone(), whole] {
        let found = numbers_of(stream.aggregate(calls.to_vec()));
        assert_eq!(found, expected);
    }
}

#[test]
fn arguments_are_computed_of_the_rows_that_their_filter_lets_pass() {
    let rows = stream(&["", "7", "x", "5", ""], (0..5).collect(), i64::MAX / 4);
    let digits = || col("s").not_eq("").and(col("s").not_eq("x"));
    let small = || col("number").lt(i64::MAX / 2);
    let product = || col("number") * col("number");
    check(
        &rows,
        &[
            call("sum", text_number()).filter(digits()).alias("sum"),
            call("max", text_number()).filter(digits()).alias("max"),
            call("min", text_number())
                .filter(col("s").eq("7"))
                .alias("min"),
            call("sum", product())
                .filter(col("s").eq("").and(small()))
                .alias("none"),
            count()
                .filter(digits().and(text_number().gt(5)))
                .alias("large"),
            call("count_if", text_number().gt(5))
                .filter(digits())
                .alias("again"),
        ],
        &[Some(12), Some(7), Some(7), Some(0), Some(1), Some(1)],
    );
    let nothing = call("sum", text_number()).filter(col("s").eq("y"));
    check(&rows, &[nothing], &[None]);
    for failing in [
        call("sum", text_number()).filter(col("s").not_eq("")),
        call("sum", product()).filter(!small()),
    ] {
        // The argument of another aggregate, of fewer rows, is another.
        let fewer = call("sum", text_number()).filter(digits());
        let both = rows
            .clone()
            .aggregate([fewer.alias("fewer"), failing.alias("failing")]);
        let error = both.run().unwrap().find_map(Result::err).unwrap();
        let kinds = [ErrorKind::InvalidArgument, ErrorKind::LimitExceeded];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

#[test]
fn a_row_that_is_late_for_one_query_fails_nothing_in_it() {
    // The third row comes when the window of ten seconds is over, that of a minute is not.
    let rows = stream(&["1", "2", "x", "3"], vec![3, 25, 4, 26], 1);
    let seconds = Duration::from_secs;
    let base = rows.event_time(col("timestamp"), Duration::ZERO);
    let sums = || call("sum", text_number()).alias("sum");
    let of = |window, calls: Vec<AggregateCall>| base.clone().window(window).aggregate(calls);
    let queries = [
        ("rows", of(hop(seconds(60), seconds(10)), vec![count()])),
        ("numbers", of(tumble(seconds(10)), vec![sums()])),
        ("again", of(tumble(seconds(10)), vec![sums(), count()])),
        ("more", of(tumble(seconds(30)), vec![count()])),
    ];
    let alone = of(tumble(seconds(10)), vec![sums()]).run().unwrap();
    let alone: Vec<RecordBatch> = alone.map(Result::unwrap).collect();
    let mut run = base.clone().standing(queries).unwrap();
    let shared: Vec<&str> = run.sharing().collect();
    assert_eq!(
        shared,
        [
            "panes of 10s shared by `rows`, `more`",
            "panes of 10s shared by `numbers`, `again`",
        ]
    );
    let found = run.by_ref().map(Result::unwrap);
    let found = found.filter(|(name, _)| **name == *"numbers");
    let found: Vec<RecordBatch> = found.map(|(_, rows)| rows).collect();
    assert_eq!(found, alone);
}
