//! A query over the rows of a stream: one run where time does not matter, two where it does.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::TimeUnit;
use tersecades_columnar::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;

/// Readings of three sensors, some late, and what a stream over them shows.
fn readings() -> Stream {
    let seconds: Vec<i64> = (0..300).map(|row| row - row % 7 * (row % 3)).collect();
    let sensors = (0..300).map(|row| ["a", "b", "c"][row % 3]);
    let values = (0..300).map(|row| (row % 11 != 0).then_some(row * 37 % 101));
    let columns: [(&str, ArrayRef); 3] = [
        ("time", Arc::new(Int64Array::from(seconds))),
        ("sensor", Arc::new(StringArray::from_iter_values(sensors))),
        ("value", Arc::new(Int64Array::from_iter(values))),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let parts = (0..6).map(|part| rows.slice(part * 50, 50)).collect();
    Stream::from_batches(rows.schema(), parts)
        .event_time(col("time"), Duration::ZERO)
        .event_time_unit(TimeUnit::Second)
}

/// Sensors but one, with a column that few read.
fn shown(rows: Stream) -> Stream {
    rows.filter(col("sensor").not_eq("b")).project([
        ("at", col("time")),
        ("sensor", col("sensor")),
        ("value", col("value")),
        ("double", col("value") + col("value")),
    ])
}

fn rows(stream: &Stream) -> Vec<String> {
    let batches = stream.clone().run().unwrap().collect::<Result<Vec<_>>>();
    let of_batch = |batch: RecordBatch| {
        let row = |row: usize| {
            let columns = batch.columns().iter();
            let values = columns.map(|column| array_value_to_string(column, row).unwrap());
            values.collect::<Vec<String>>().join(" ")
        };
        (0..batch.num_rows()).map(row).collect::<Vec<String>>()
    };
    batches.unwrap().into_iter().flat_map(of_batch).collect()
}

#[test]
fn without_time_a_query_over_a_stream_is_part_of_it() {
    let outer: [fn(Stream) -> Stream; 4] = [
        |stream| stream.filter(col("value").gt(50)),
        |stream| stream.project([("value", col("value") - col("double"))]),
        |stream| {
            stream
                .group_by(["sensor"])
                .aggregate([count(), call("sum", col("double"))])
        },
        |stream| stream.sort([(col("value"), SortOrder::DESCENDING)]),
    ];
    for query in outer {
        let one = query(shown(readings()));
        let over = query(shown(readings()).as_source().unwrap());
        assert_eq!(over.describe().unwrap(), one.describe().unwrap());
        assert_eq!(rows(&over), rows(&one));
        assert_eq!(over.schema().unwrap(), one.schema().unwrap());
        let running = over.threads(2).run().unwrap();
        assert_eq!(running.describe(), one.run().unwrap().describe());
    }
}

#[test]
fn with_time_a_stream_has_a_watermark_of_the_rows_that_come_out_of_it() {
    let late = |stream: Stream| {
        let windows = stream.window(tumble(Duration::from_secs(30)));
        let mut running = windows.aggregate([count()]).run().unwrap();
        running.by_ref().for_each(drop);
        running.metrics().late_rows
    };
    let times: ArrayRef = Arc::new(Int64Array::from(vec![10, 70, 20, 80]));
    let kinds: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 0, 0]));
    let rows = RecordBatch::try_from_iter([("time", times), ("kind", kinds)]).unwrap();
    let timed = |stream: Stream| {
        let stream = stream.event_time(col("time"), Duration::ZERO);
        stream.event_time_unit(TimeUnit::Second)
    };
    let alone = timed(Stream::from_batches(rows.schema(), vec![rows])).filter(col("kind").eq(0));
    // The row at 70 is of another kind: it makes the row at 20 late where it is read.
    assert_eq!(late(alone.clone()), 1);
    assert_eq!(late(timed(alone.as_source().unwrap())), 0);
}
