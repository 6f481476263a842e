//! Aggregates as users write them: answers worked out by hand, filters, aggregates from outside,
//! and for each that collects values, a snapshot in the middle of a window.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use tersecades_engine::aggregate::string_agg::StringAgg;
use tersecades_engine::aggregate::{
    AGGREGATES, UserAggregate, UserState, call, call_by, call_with, count,
};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{hop, tumble};
use tersecades_engine::{Error, ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);

/// Rows as `(time in ms, name, number)`, in batches of `batch_rows`.
fn batches(rows: &[(i64, &str, Option<f64>)], batch_rows: usize) -> Vec<RecordBatch> {
    let batch = |rows: &[(i64, &str, Option<f64>)]| {
        let time: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let name: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
        let value: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>());
        let columns = [("timestamp", time), ("name", name), ("value", value)];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, a)| (n, a, true))).unwrap()
    };
    rows.chunks(batch_rows).map(batch).collect()
}

/// Two groups, ties in time, disorder, nulls, repeated values.
const ROWS: &[(i64, &str, Option<f64>)] = &[
    (500, "b", Some(2.0)),
    (100, "a", Some(7.0)),
    (100, "a", None),
    (300, "a", Some(-3.0)),
    (900, "b", Some(2.0)),
    (200, "a", Some(7.0)),
    (900, "b", Some(5.0)),
    (300, "a", Some(12.5)),
    (50, "b", Some(5.0)),
];

fn started(batches: Vec<RecordBatch>, threads: usize, calls: Vec<AggregateCall>) -> Running {
    Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("timestamp"), SECOND)
        .threads(threads)
        .window(tumble(SECOND))
        .group_by(["name"])
        .aggregate(calls)
        .run()
        .unwrap()
}

/// The results of each group as text, one line a group, however the rows come.
fn answers(calls: Vec<AggregateCall>) -> Vec<String> {
    let mut known: Option<Vec<String>> = None;
    for (batch_rows, threads) in [(100, 1), (1, 1), (2, 3)] {
        let run = started(batches(ROWS, batch_rows), threads, calls.clone());
        let results: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
        assert_eq!(results.len(), 1);
        let lines = lines(&results[0]);
        assert_eq!(known.get_or_insert(lines.clone()), &lines);
    }
    known.unwrap()
}

fn lines(batch: &RecordBatch) -> Vec<String> {
    let options = arrow_cast::display::FormatOptions::new().with_null("null");
    let cell = |column: &ArrayRef, row| {
        let format = arrow_cast::display::ArrayFormatter::try_new(column, &options).unwrap();
        let text = format.value(row).to_string();
        match column.data_type() {
            // Sums of floats may differ in their last digits.
            DataType::Float64 if text != "null" => {
                format!("{:?}", (text.parse::<f64>().unwrap() * 1e9).round() / 1e9)
            }
            _ => text,
        }
    };
    let line = |row| {
        let cells = batch.columns()[2..].iter().map(|column| cell(column, row));
        cells.collect::<Vec<_>>().join(" | ")
    };
    (0..batch.num_rows()).map(line).collect()
}

#[test]
fn first_and_last_follow_event_time_and_then_arrival() {
    let calls = vec![call("first", col("value")), call("last", col("value"))];
    assert_eq!(answers(calls), ["a | 7.0 | 12.5", "b | 5.0 | 5.0"]);
    let calls = vec![
        call("first", col("value")).filter(col("timestamp").gt(100)),
        call("last", col("timestamp")),
    ];
    assert_eq!(answers(calls), ["a | 7.0 | 300", "b | 2.0 | 900"]);
}

#[test]
fn frequencies_prefer_the_least_of_several() {
    let calls = vec![
        call("mode", col("value")),
        call_with("top_k", col("value"), 2.0),
        call_with("histogram", col("value"), 5.0),
        call_with("top_k", col("name"), 3.0),
    ];
    assert_eq!(
        answers(calls),
        [
            "a | 7.0 | [7.0, -3.0] | [{bucket: -5.0, count: 1}, {bucket: 5.0, count: 2}, \
             {bucket: 10.0, count: 1}] | [a]",
            "b | 2.0 | [2.0, 5.0] | [{bucket: 0.0, count: 2}, {bucket: 5.0, count: 2}] | [b]",
        ]
    );
}

#[test]
fn a_filter_takes_rows_from_one_aggregate_and_no_group_away() {
    let positive = col("value").gt(5.5);
    let calls = vec![
        count(),
        count().filter(positive.clone()).alias("large"),
        call("sum", col("value")).filter(positive.clone()),
        call("median", col("value"))
            .filter(positive.clone())
            .alias("middle"),
        call("count_distinct", col("value"))
            .filter(positive)
            .alias("kinds"),
        call("sum", col("value")).alias("all"),
    ];
    assert_eq!(
        answers(calls),
        [
            "a | 5 | 3 | 26.5 | 7.0 | 2 | 23.5",
            "b | 4 | 0 | null | null | 0 | 14.0"
        ]
    );
}

#[test]
fn measures_of_two_columns() {
    let calls = vec![
        call_by("covariance", col("value"), col("timestamp")),
        call_by("correlation", col("value"), col("value")),
        call_by("correlation", col("value"), col("timestamp") / 10_000).alias("none"),
        call("sum_distinct", col("value")),
        call("any_value", col("name")).alias("any"),
        call("bool_and", col("value").lt(6)).alias("all"),
        call("bool_or", col("value").lt(0)).alias("some"),
        call("approx_median", col("value")),
        call("approx_count_distinct", col("value")),
    ];
    let answers = answers(calls);
    let cells: Vec<Vec<&str>> = answers
        .iter()
        .map(|line| line.split(" | ").collect())
        .collect();
    // a: (7, 100) (-3, 300) (7, 200) (12.5, 300): means 5.875 and 225, sum of products -337.5.
    let covariance: f64 = cells[0][1].parse().unwrap();
    assert!((covariance - -337.5 / 3.0).abs() < 1e-9, "{covariance}");
    let itself: f64 = cells[0][2].parse().unwrap();
    assert!((itself - 1.0).abs() < 1e-12, "{itself}");
    assert_eq!(
        cells[0][3..],
        ["null", "16.5", "a", "false", "true", "7.015625", "3"]
    );
    assert_eq!(
        cells[1][3..],
        ["null", "7.0", "b", "true", "false", "2.0078125", "2"]
    );
}

/// Calls of everything in the list.
fn every_aggregate() -> Vec<AggregateCall> {
    let calls = AGGREGATES.iter().map(|aggregate| {
        let name = aggregate.name();
        let made = match name {
            "count_if" | "bool_and" | "bool_or" => call(name, col("value").gt(2)),
            "bit_and" | "bit_or" | "bit_xor" => call(name, col("value").cast(DataType::Int64)),
            "quantile" | "approx_quantile" | "quantile_disc" => call_with(name, col("value"), 0.75),
            "top_k" | "histogram" => call_with(name, col("value"), 3.0),
            _ if name.starts_with("arg_") => call_by(name, col("name"), col("value")),
            "covariance" | "covariance_population" | "correlation" => {
                call_by(name, col("value"), col("timestamp"))
            }
            _ if name.starts_with("regr_") => call_by(name, col("value"), col("timestamp")),
            "first" | "last" | "mode" => call(name, col("name")),
            _ => call(name, col("value")),
        };
        made.alias(name)
    });
    calls
        .chain([
            AggregateCall::user(Arc::new(Product), [col("value")]),
            StringAgg::new("-")
                .order_by([(col("value"), SortOrder::DESCENDING)])
                .of(col("name")),
        ])
        .collect()
}

#[test]
fn each_aggregate_survives_a_snapshot_inside_a_window() {
    for call in every_aggregate() {
        let expected = answers(vec![call.clone()]);
        for taken in 0..=ROWS.len() {
            let (before, after) = ROWS.split_at(taken);
            let empty = batches(ROWS, 100)[0].slice(0, 0);
            let feed = |rows: &[_]| match rows.is_empty() {
                true => vec![empty.clone()],
                false => batches(rows, 2),
            };
            let first_part = feed(before);
            let steps = first_part.len();
            let mut first = started(first_part, 1, vec![call.clone()]);
            (0..steps).for_each(|_| assert!(first.step().unwrap()));
            let snapshot = first.snapshot().unwrap();
            let mut second = started(feed(after), 2, vec![call.clone()]);
            second.restore(&snapshot).unwrap();
            let results: Vec<RecordBatch> = second.collect::<Result<_>>().unwrap();
            assert_eq!(
                lines(&results[0]),
                expected,
                "{} after {taken}",
                call.output
            );
        }
    }
}

#[test]
fn damaged_snapshots_are_refused_and_never_panic() {
    let mut first = started(batches(ROWS, 100), 1, every_aggregate());
    assert!(first.step().unwrap());
    let snapshot = first.snapshot().unwrap();
    let mut refused = 0;
    for place in (12..snapshot.len()).step_by(7) {
        let mut damaged = snapshot.clone();
        damaged[place] ^= 1 << (place % 8);
        let sum = crc32c::crc32c(&damaged[12..]).to_le_bytes();
        damaged[8..12].copy_from_slice(&sum);
        let mut second = started(batches(ROWS, 100), 1, every_aggregate());
        match second.restore(&damaged) {
            Ok(()) => drop(second.collect::<Result<Vec<_>>>()),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 50, "{refused} refused");
}

/// The product of numbers, as an aggregate from outside.
#[derive(Debug)]
struct Product;

#[derive(Debug, Default)]
struct Products(Vec<f64>);

impl UserAggregate for Product {
    fn name(&self) -> &str {
        "product"
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Float64] => Ok(DataType::Float64),
            _ => Err(Error::schema("product takes one float")),
        }
    }

    fn start(&self, _arguments: &[DataType]) -> Box<dyn UserState> {
        Box::new(Products::default())
    }
}

impl UserState for Products {
    fn update(&mut self, arguments: &[ArrayRef], ids: &[u32], groups: usize) -> Result<()> {
        self.0.resize(groups, 1.0);
        for (value, id) in arguments[0].as_primitive::<Float64Type>().iter().zip(ids) {
            if value == Some(404.0) {
                return Err(Error::invalid("not found"));
            }
            self.0[*id as usize] *= value.unwrap_or(1.0);
        }
        Ok(())
    }

    fn merge(&mut self, state: &[ArrayRef], ids: &[u32], groups: usize) -> Result<()> {
        self.update(state, ids, groups)
    }

    fn state(&self, groups: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.finish(groups)?])
    }

    fn finish(&self, groups: usize) -> Result<ArrayRef> {
        let mut products = self.0.clone();
        products.resize(groups, 1.0);
        Ok(Arc::new(Float64Array::from(products)))
    }

    fn byte_size(&self) -> usize {
        self.0.capacity() * size_of::<f64>()
    }
}

#[test]
fn an_aggregate_from_outside_goes_through_panes_and_filters() {
    let product = || AggregateCall::user(Arc::new(Product), [col("value")]);
    let calls = vec![
        product(),
        product().filter(col("value").gt(100)).alias("none"),
        count(),
    ];
    assert_eq!(
        answers(calls),
        ["a | -1837.5 | 1.0 | 5", "b | 100.0 | 1.0 | 4"]
    );
    for threads in [1, 3] {
        let run = Stream::from_batches(batches(ROWS, 2)[0].schema(), batches(ROWS, 2))
            .event_time(col("timestamp"), SECOND)
            .threads(threads)
            .window(hop(SECOND, Duration::from_millis(100)))
            .aggregate([product(), call("sum", col("value"))])
            .run()
            .unwrap();
        let results: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
        let products = results.iter().map(|batch| {
            let column = batch.column(2).as_primitive::<Float64Type>();
            column.value(0)
        });
        // Windows start at -900, -800, ... 900; the first holds the row at 50 alone.
        let products: Vec<f64> = products.collect();
        assert_eq!(products.len(), 19);
        assert_eq!(products[..3], [5.0, 5.0 * 7.0, 5.0 * 7.0 * 7.0]);
        assert_eq!(products[9], -1837.5 * 100.0);
        assert_eq!(products[18], 10.0);
    }
}

/// Why a call cannot run.
fn refusal(call: AggregateCall) -> Error {
    let batches = batches(ROWS, 100);
    let stream = Stream::from_batches(batches[0].schema(), batches);
    let run = stream.window(tumble(SECOND)).aggregate([call]).run();
    run.map(|_| ()).unwrap_err()
}

fn product_of(arguments: Vec<Expression>) -> AggregateCall {
    AggregateCall::user(Arc::new(Product), arguments)
}

#[test]
fn wrong_types_are_refused_by_name() {
    for (call, part) in [
        (
            call_with("histogram", col("name"), 1.0),
            "histogram needs numbers",
        ),
        (
            call_by("covariance", col("value"), col("name")),
            "covariance needs numbers",
        ),
        (call("bool_or", col("value")), "bool_or needs a condition"),
        (count().filter(col("value")), "expected a condition"),
        (product_of(vec![col("name")]), "takes one float"),
    ] {
        let error = refusal(call);
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn missing_and_needless_parts_are_refused_by_name() {
    for (call, part) in [
        (call("top_k", col("value")), "top_k needs a number"),
        (
            call_with("top_k", col("value"), 0.5),
            "top_k needs a number",
        ),
        (
            call_with("histogram", col("value"), -1.0),
            "histogram needs a bucket width",
        ),
        (
            call_with("approx_quantile", col("value"), 2.0),
            "needs a fraction",
        ),
        (
            call("covariance", col("value")),
            "covariance needs two arguments",
        ),
        (
            call_by("first", col("value"), col("name")),
            "first takes one argument",
        ),
        (product_of(vec![]), "product needs an argument"),
    ] {
        let error = refusal(call);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn errors_of_an_aggregate_from_outside_carry_its_name() {
    let bad = [(1, "a", Some(1.0)), (2, "a", Some(404.0))];
    let run = started(batches(&bad, 1), 1, vec![product_of(vec![col("value")])]);
    let error = run.collect::<Result<Vec<_>>>().unwrap_err();
    assert!(error.to_string().contains("product: not found"), "{error}");
}

#[test]
fn a_list_goes_out_while_a_later_window_reads_the_rest() {
    let batches = batches(ROWS, 3);
    let run = Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("timestamp"), SECOND)
        .window(tumble(Duration::from_millis(100)))
        .aggregate([
            call_with("top_k", col("value"), 2.0).alias("top"),
            count().alias("n"),
        ])
        .window(tumble(SECOND))
        .aggregate([call("sum", col("n")).alias("n")])
        .run()
        .unwrap();
    let results: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
    assert_eq!(results[0].column(2).as_primitive::<Int64Type>().value(0), 9);
}

#[test]
fn lists_pass_the_steps_behind_their_group_by_that_do_not_read_them() {
    let grouped = || {
        let batches = batches(ROWS, 3);
        Stream::from_batches(batches[0].schema(), batches)
            .group_by(["name"])
            .aggregate([
                call_with("top_k", col("value"), 2.0).alias("top"),
                count().alias("n"),
            ])
    };
    let of_b = |stream: Stream| {
        let results: Vec<RecordBatch> = stream.run().unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].num_rows(), 1);
        let column = results[0].column_by_name("list").unwrap();
        let list = column.as_list::<i32>().value(0);
        assert_eq!(list.as_primitive::<Float64Type>().values()[..], [2.0, 5.0]);
    };
    let named = |stream: Stream| stream.project([("list", col("top"))]);
    of_b(named(grouped().filter(col("name").gt("a"))));
    let renamed = named(grouped().project([("top", col("top")), ("more", col("n") + 1)]));
    let results: Vec<RecordBatch> = renamed.run().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(results[0].num_rows(), 2);
    let both = grouped().project([("list", col("top")), ("name", col("name"))]);
    of_b(both.filter(col("name").gt("a")));
    let filtered = grouped().filter(col("name").gt("a"));
    let schema = filtered.schema().unwrap();
    let results: Vec<RecordBatch> = filtered.run().unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(
        results[0].column(1).data_type(),
        schema.field(1).data_type()
    );
    // What would read one is refused.
    let read = grouped().filter(col("top").is_null()).run();
    assert_eq!(read.err().unwrap().kind(), ErrorKind::Unsupported);
}
