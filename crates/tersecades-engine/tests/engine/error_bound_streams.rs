//! Lossy columns of several streams: what unions, joins and lookups say of their results, and what
//! a store is not given.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use tersecades_engine::aggregate::call;
use tersecades_engine::error_bound::{ERROR_BOUND, LOSSY_COLUMNS, ROWS_DEPEND_ON};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::process::WindowFunction;
use tersecades_engine::plan::LookupTable;
use tersecades_engine::source::query::QueryTable;
use tersecades_engine::source::table::Table;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Span, tumble};
use tersecades_engine::{ErrorKind, Result};
use tersecades_store::{Store, StoreOptions, StoreSchema};

/// A row each second: its number, twice that, and its time as a float.
fn readings() -> RecordBatch {
    let numbers = || 0..500i64;
    let host: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers()));
    let load = |factor: f64| -> ArrayRef {
        let values = numbers().map(|row| row as f64 * factor);
        Arc::new(Float64Array::from_iter_values(values))
    };
    RecordBatch::try_from_iter([("host", host), ("load", load(2.0)), ("t", load(1.0))]).unwrap()
}

fn exact() -> Stream {
    let rows = readings();
    let time = Expression::EpochTime(Box::new(col("t")), TimeUnit::Second);
    Stream::from_batches(rows.schema(), vec![rows]).event_time(time, Duration::ZERO)
}

fn lossy(column: &str, scheme: &str) -> Stream {
    exact().encoding(column, scheme)
}

/// The rows of a stream under other names, but for their host.
fn renamed(stream: Stream) -> Stream {
    let columns = ["load", "t"].map(|name| (format!("other_{name}"), col(name)));
    let time = Expression::EpochTime(Box::new(col("other_t")), TimeUnit::Second);
    let host = [("host".to_owned(), col("host"))];
    let stream = stream.project(host.into_iter().chain(columns));
    stream.as_source().unwrap().event_time(time, Duration::ZERO)
}

/// What is known before a run; a run's results say the same.
fn schema_of(stream: Stream) -> Arc<Schema> {
    let schema = stream.schema().unwrap();
    let mut run = stream.run().unwrap();
    assert_eq!(run.schema(), schema);
    let batch = run.next().unwrap().unwrap();
    assert_eq!(said(&batch.schema()), said(&schema));
    schema
}

/// For each column how far it is off and by what, and by what the rows are.
fn said(schema: &Schema) -> (Vec<String>, Option<String>) {
    let fields = schema.fields().iter().filter_map(|field| {
        let (bound, by) = (field.metadata().get(ERROR_BOUND)?, LOSSY_COLUMNS);
        let by = field.metadata().get(by)?;
        Some(format!("{} {bound} by {by}", field.name()))
    });
    (
        fields.collect(),
        schema.metadata().get(ROWS_DEPEND_ON).cloned(),
    )
}

fn assert_said(stream: Stream, columns: &[&str], rows: &str) {
    let (said, by) = said(&schema_of(stream));
    assert_eq!(said, columns);
    assert_eq!(by.as_deref(), Some(rows).filter(|rows| !rows.is_empty()));
}

/// A row may be of any of them.
#[test]
fn rows_of_several_streams_are_within_the_widest_of_their_bounds() {
    let fine = || lossy("load", "zfp(0.05)");
    let coarse = || lossy("load", "zfp(5)").filter(col("t").lt(300.0));
    let by_time = || lossy("t", "fixed_point(1)").filter(col("t").gt(10.0));
    let streams = || [fine(), coarse(), by_time()];
    let tables = streams().map(|stream| Arc::new(QueryTable::new(stream).unwrap()));
    let tables = tables.map(|table| -> Arc<dyn Table> { table });
    for several in [
        Stream::union(streams()).unwrap(),
        Stream::merge(streams()).unwrap(),
        Stream::from_partitions(tables.to_vec()).unwrap(),
    ] {
        let columns = ["load 5 by load", "t 0.5 by t"];
        assert_said(several.clone(), &columns, "t");
        let most = several
            .clone()
            .aggregate([call("max", col("load")).alias("most")]);
        assert_said(most, &["most 5 by load"], "t");
        let host = several.project([("host", col("host"))]);
        assert_said(host, &[], "t");
    }
    assert_said(Stream::union([exact(), exact()]).unwrap(), &[], "");
}

fn joined(left: Stream, right: Stream, kind: JoinKind, on: &str) -> Stream {
    let (on, options) = ([(on, "host")], JoinOptions::default());
    left.join(right, kind, &on, options).unwrap()
}

#[test]
fn what_a_lossy_key_or_condition_finds_is_unknown() {
    let right = || renamed(exact());
    let keyed = lossy("t", "fixed_point(1)").project([("key", col("t"))]);
    let found = right().project([("host", col("other_t")), ("found", col("other_load"))]);
    let found = joined(keyed, found, JoinKind::Inner, "key");
    let columns = ["key 0.5 by t", "host unknown by t", "found unknown by t"];
    assert_said(found, &columns, "t");
    let condition = JoinOptions {
        residual: Some(col("load").lt(col("other_load") + lit(1))),
        ..JoinOptions::default()
    };
    let join = |kind| {
        let on = [("host", "host")];
        lossy("load", "zfp(1)").join(right(), kind, &on, condition.clone())
    };
    let unknown = [
        "load 1 by load",
        "host_right unknown by load",
        "other_load unknown by load",
        "other_t unknown by load",
    ];
    assert_said(join(JoinKind::Inner).unwrap(), &unknown, "load");
    let semi = join(JoinKind::LeftSemi).unwrap();
    assert_said(semi, &["load 1 by load"], "load");
    let full = schema_of(join(JoinKind::Full).unwrap());
    assert_eq!(said(&full).0.len(), full.fields().len());
}

#[test]
fn joins_say_of_their_rows_what_their_inputs_do() {
    let some = || lossy("load", "zfp(1)").filter(col("load").gt(100.0));
    let hosts = |stream: Stream| stream.project([("host", col("host"))]);
    let inner = joined(hosts(some()), renamed(exact()), JoinKind::Inner, "host");
    assert_said(inner, &[], "load");
    let inner = joined(exact(), renamed(some()), JoinKind::Inner, "host");
    assert_said(inner, &["other_load 1 by load"], "load");
    // Where a right row is missing, its columns are null.
    let left = joined(exact(), renamed(some()), JoinKind::Left, "host");
    let unknown = [
        "host_right unknown by load",
        "other_load unknown by load",
        "other_t unknown by load",
    ];
    assert_said(left, &unknown, "load");
    let exact = joined(exact(), renamed(exact()), JoinKind::Left, "host");
    assert_said(exact, &[], "");
}

#[test]
fn joins_by_a_lossy_time_say_so() {
    let (left, right) = (|| lossy("t", "fixed_point(1)"), || renamed(exact()));
    let on = [("host", "host")];
    let unknown = [
        "t 0.5 by t",
        "host_right unknown by t",
        "other_load unknown by t",
        "other_t unknown by t",
    ];
    let second = 1_000_000_000;
    let near = (-second, second);
    let interval = left().interval_join(right(), &on, near, JoinKind::Inner);
    assert_said(interval.unwrap(), &unknown, "t");
    let before = (Direction::Backward, Some(Duration::from_secs(2)));
    let nearest = left().asof_join(right(), &on, before, JoinKind::Left);
    assert_said(nearest.unwrap(), &unknown, "t");
    let minute = tumble(Duration::from_secs(60));
    let window = left().window_join(right(), minute, JoinKind::Inner, &on);
    assert_said(window.unwrap(), &unknown, "t");
    // The time of the right rows decides as much.
    let semi = exact().interval_join(renamed(left()), &on, near, JoinKind::LeftSemi);
    assert_said(semi.unwrap(), &[], "t");
}

/// Gives the rows of each window as they are.
#[derive(Debug)]
struct Same;

impl WindowFunction for Same {
    fn schema(&self, input: &Schema) -> Result<SchemaRef> {
        Ok(Arc::new(Schema::new(input.fields().clone())))
    }

    fn process(&self, _window: &Span, rows: &RecordBatch) -> Result<RecordBatch> {
        Ok(rows.clone())
    }
}

#[test]
fn what_functions_of_the_user_give_is_unknown_where_a_column_is_lossy() {
    let minutes = |stream: Stream| stream.process(tumble(Duration::from_secs(60)), Same);
    let unknown = ["host", "load", "t"].map(|name| format!("{name} unknown by load"));
    let unknown = unknown.each_ref().map(String::as_str);
    let lossy = minutes(lossy("load", "zfp(1)")).unwrap();
    assert_said(lossy, &unknown, "load");
    assert_said(minutes(exact()).unwrap(), &[], "");
}

#[test]
fn which_rows_there_are_is_known_of_those_that_go_by_their_arrival() {
    let few = lossy("t", "fixed_point(1)").filter(col("t").gt(10.0));
    let few = few.project([("host", col("host"))]);
    let few = few.as_source().unwrap().processing_time();
    assert_said(few, &[], "t");
}

#[test]
fn what_is_looked_up_is_as_far_off_as_it_is_in_the_table() {
    let table = |stream: Stream| {
        let batches: Vec<RecordBatch> = stream.run().unwrap().map(Result::unwrap).collect();
        Arc::new(LookupTable::new("table", batches[0].clone()))
    };
    let columns = [("load", "found"), ("host", "number")];
    let look_up = |stream: Stream| {
        let on = ("host", "host");
        exact().lookup_join(&table(stream), on, &columns)
    };
    let some = lossy("load", "zfp(1)").filter(col("t").gt(5.0));
    assert_said(look_up(some), &["found 1 by load"], "");
    let some = lossy("t", "fixed_point(1)").filter(col("t").gt(5.0));
    assert_said(look_up(some), &[], "t");
    // Which row of the table is found depends on its key as on that of the stream.
    let host = col("t").cast(DataType::Int64);
    let keyed = lossy("t", "fixed_point(1)").project([("host", host), ("load", col("load"))]);
    let unknown = ["found unknown by t", "number unknown by t"];
    assert_said(look_up(keyed), &unknown, "t");
}

#[test]
fn a_store_is_given_nothing_that_depends_on_lossy_columns() {
    let folder = tempfile::tempdir().unwrap();
    let schema = StoreSchema::new(&readings().schema()).unwrap();
    let store = Store::create(folder.path(), schema, StoreOptions::default());
    let store = Arc::new(store.unwrap());
    let of_few = lossy("t", "fixed_point(1)").filter(col("t").gt(10.0));
    let of_few = of_few.project([("host", col("host"))]);
    for (stream, said) in [(lossy("load", "zfp(1)"), "load"), (of_few, "lossy t")] {
        let error = stream.feed("readings", &store).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(said), "{error}");
    }
    let written = exact().feed("readings", &store).unwrap().run();
    assert_eq!(written.unwrap(), 500);
}
