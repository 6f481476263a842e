//! Event times of results: dates that are computed, and times that are said behind a group-by.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_engine::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::JoinKind;
use tersecades_engine::source::table::MemoryTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;

const SECOND: Duration = Duration::from_secs(1);

fn schema() -> SchemaRef {
    let fields = ["timestamp", "value"].map(|name| Field::new(name, DataType::Int64, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Rows at these seconds, with the second as their value.
fn rows(seconds: &[i64]) -> RecordBatch {
    let times = seconds.iter().map(|second| second * 1_000);
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
    let values: ArrayRef = Arc::new(Int64Array::from(seconds.to_vec()));
    RecordBatch::try_new(schema(), vec![times, values]).unwrap()
}

/// Rows of a stream as one batch.
fn all(stream: Stream) -> RecordBatch {
    let schema = stream.schema().unwrap();
    let batches: Result<Vec<RecordBatch>> = stream.run().unwrap().collect();
    let batches = batches.unwrap();
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

#[test]
fn dates_that_are_computed_are_event_times_as_those_of_columns_are() {
    const DAY: i64 = 86_400;
    let seconds = [0, 3, 1, 7, 2, 4, 9].map(|day| day * DAY + 5);
    let source = || Stream::from_table(MemoryTable::new(schema(), vec![rows(&seconds)]));
    let day = col("timestamp")
        .cast(DataType::Timestamp(TimeUnit::Millisecond, None))
        .cast(DataType::Date32);
    let selected = || source().project([("day", day.clone()), ("value", col("value"))]);
    let (time, lateness) = (|| col("day"), SECOND * 3 * DAY as u32);
    let computed = || selected().event_time(time(), lateness);
    let stored = all(selected());
    let column = || {
        let table = MemoryTable::new(stored.schema(), vec![stored.clone()]);
        Stream::from_table(table).event_time(time(), lateness)
    };
    computed().check_event_time().unwrap();
    let ordered = |stream: Stream| stream.in_order().unwrap();
    let found = all(ordered(computed()));
    assert_eq!(found, all(ordered(column())));
    // The row of the day 2 is late behind that of the day 7.
    assert_eq!(found.num_rows(), 6);
    let windows = |stream: Stream| {
        let pairs = tumble(SECOND * 2 * DAY as u32);
        ordered(stream).window(pairs).aggregate([count()])
    };
    assert_eq!(all(windows(computed())), all(windows(column())));
    let nearest = |left: Stream, right: Stream| {
        let on = [("value", "value")];
        let joined = left.asof_join(right, &on, Default::default(), JoinKind::Inner);
        all(joined.unwrap())
    };
    assert_eq!(nearest(computed(), column()), nearest(column(), column()));
    let changed = |stream: Stream| all(stream.changes(["value"], [] as [&str; 0]));
    assert_eq!(changed(computed()), changed(column()));
}

#[test]
fn groups_take_the_event_time_that_is_said_behind_them() {
    let source = || Stream::from_table(MemoryTable::new(schema(), vec![rows(&[1, 4, 12, 27, 31])]));
    let grouped = || {
        let timed = source().event_time(col("timestamp"), Duration::ZERO);
        let last = call("max", col("timestamp")).alias("last");
        timed.window(tumble(SECOND * 10)).aggregate([last, count()])
    };
    let said = || grouped().event_time(col("last"), Duration::ZERO);
    let by_hand = || {
        let groups = grouped().as_source().unwrap();
        groups.event_time(col("last"), Duration::ZERO)
    };
    said().check_event_time().unwrap();
    assert_eq!(said().output_time().expression, col("last"));
    let windows = |stream: Stream| stream.window(tumble(SECOND * 5)).aggregate([count()]);
    let found = all(windows(said()));
    assert_eq!(found, all(windows(by_hand())));
    let starts = arrow_cast::cast(found.column(0), &DataType::Int64).unwrap();
    let starts = starts.as_primitive::<Int64Type>().values().to_vec();
    // The last rows of the windows of ten seconds are of the seconds 4, 12, 27 and 31.
    assert_eq!(starts, [0, 10_000, 25_000, 30_000]);
    let ordered = |stream: Stream| all(stream.in_order().unwrap());
    assert_eq!(ordered(said()), ordered(by_hand()));
    let whole = source()
        .group_by(["value"])
        .aggregate([call("max", col("timestamp")).alias("t")]);
    assert_eq!(ordered(whole.event_time(col("t"), SECOND)).num_rows(), 5);
    // What only the rows have is their event time, wherever it is said.
    let other = || source().project([("at", col("timestamp")), ("value", col("value"))]);
    let other = || other().as_source().unwrap();
    let behind = windows(other()).event_time(col("at"), Duration::ZERO);
    let before = windows(other().event_time(col("at"), Duration::ZERO));
    assert_eq!(all(behind), all(before));
}
