//! Event times of results: dates that are computed, times that are said behind a group-by, and
//! those of the right rows of joins.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{ArrayRef, Date32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_engine::Result;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::source::table::MemoryTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Window, count as rows_of, tumble};

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

/// Rows with a key and a day, whose event time is `time`.
fn days(rows: &[(i64, i32)], time: &Expression) -> Stream {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| row.1)));
    let rows = RecordBatch::try_from_iter([("k", keys), ("day", days)]).unwrap();
    Stream::from_batches(rows.schema(), vec![rows]).event_time(time.clone(), Duration::ZERO)
}

/// The windows of `length` days that hold rows, by their first day, with how many those are.
fn counted(stream: Stream, length: u32) -> Vec<(i32, i64)> {
    counted_in(stream, tumble(SECOND * 86_400 * length))
}

/// As [`counted`], of windows of any kind.
fn counted_in(stream: Stream, window: Window) -> Vec<(i32, i64)> {
    let windows = stream.window(window);
    let mut run = windows.aggregate([count().alias("n")]).run().unwrap();
    let mut found = Vec::new();
    for batch in run.by_ref() {
        let batch = batch.unwrap();
        let starts = batch.column_by_name("window_start").unwrap();
        let starts = arrow_cast::cast(starts, &DataType::Date32).unwrap();
        let starts = starts.as_primitive::<Date32Type>().values();
        let rows = batch.column_by_name("n").unwrap();
        let rows = rows.as_primitive::<Int64Type>().values();
        found.extend(starts.iter().copied().zip(rows.iter().copied()));
    }
    assert_eq!(run.metrics().late_rows, 0);
    found
}

#[test]
fn the_time_of_right_rows_is_theirs_whatever_it_is_made_of() {
    let computed = col("day").cast(DataType::Timestamp(TimeUnit::Millisecond, None));
    for time in [col("day"), computed] {
        let joined = |kind| {
            let (left, right) = (days(&[(1, 10)], &time), days(&[(1, 12), (2, 14)], &time));
            let within = (0, 3 * 86_400_000_000_000);
            left.interval_join(right, &[("k", "k")], within, kind)
                .unwrap()
        };
        assert_eq!(counted(joined(JoinKind::Right), 1), [(12, 1), (14, 1)]);
        assert_eq!(counted(joined(JoinKind::RightSemi), 1), [(12, 1)]);
        assert_eq!(counted(joined(JoinKind::RightAnti), 1), [(14, 1)]);
        assert_eq!(counted(joined(JoinKind::Left), 1), [(10, 1)]);
    }
}

#[test]
fn no_row_of_a_right_join_is_late() {
    let time = col("day");
    let joined = |kind| {
        let left = days(&[(3, 0), (1, 1)], &time);
        let right = days(&[(2, 1), (1, 50), (3, 100)], &time);
        let options = JoinOptions::default();
        left.join(right, kind, &[("k", "k")], options).unwrap()
    };
    // The pair of the day 100 comes first, the row of the day 1, which has none, last.
    let all = [(0, 1), (50, 1), (100, 1)];
    assert_eq!(counted(joined(JoinKind::Right), 10), all);
    assert_eq!(counted(joined(JoinKind::RightSemi), 10), all[1..]);
    assert_eq!(counted(joined(JoinKind::RightAnti), 10), all[..1]);
}

#[test]
fn windows_of_counted_rows_behind_operators_on_rows_have_the_times_that_are_computed() {
    let computed = col("day").cast(DataType::Timestamp(TimeUnit::Millisecond, None));
    for time in [col("day"), computed] {
        let rows = || days(&[(1, 10), (2, 12), (3, 15), (4, 15)], &time);
        let streams = [
            rows(),
            rows().limit(4, 0),
            rows().distinct(),
            rows().sort([(col("k"), SortOrder::ASCENDING)]),
            rows().lag("k", 1, [] as [&str; 0], "before"),
        ];
        for stream in streams {
            let lines = stream.describe().unwrap();
            let found = counted_in(stream, rows_of(2));
            assert_eq!(found, [(10, 2), (15, 2)], "{time}: {lines:?}");
        }
    }
}
