//! Twelve hours of a stream, as fast as it goes: memory stays where it was after the first hour.
//!
//! The source is one that is polled: half of the time it has nothing right now.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampSecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::event_time::{Clock, TestClock};
use tersecades_engine::expression::col;
use tersecades_engine::operator::join::JoinKind;
use tersecades_engine::runtime::Keep;
use tersecades_engine::runtime::option::OnLimit;
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, hop, session, tumble};
use tersecades_engine::{ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600;
const HOURS: i64 = 12;
/// Seconds of a batch.
const BATCH: i64 = 60;
const LATENESS: i64 = 20;

/// Rows of every second, some of them late, until twelve hours are over.
struct Polled {
    second: i64,
    asked: u64,
    clock: TestClock,
    rejected: Rejected,
}

impl Polled {
    fn stream(clock: &TestClock) -> Stream {
        let source = Polled {
            second: 0,
            asked: 0,
            clock: clock.clone(),
            rejected: Rejected::default(),
        };
        Stream::from_source(Box::new(source))
            .event_time(col("timestamp"), SECOND * LATENESS as u32)
            .clock(clock.clone())
    }

    /// A number that depends on nothing but `row`.
    fn mixed(row: i64) -> i64 {
        let mixed = row.wrapping_mul(0x5851_F42D_4C95_7F2D) >> 33;
        mixed.rem_euclid(1_000_003)
    }
}

impl Source for Polled {
    fn schema(&self) -> SchemaRef {
        let fields = vec![
            Field::new("timestamp", DataType::Int64, false),
            Field::new("host", DataType::Utf8, false),
            Field::new("value", DataType::Int64, false),
        ];
        Arc::new(Schema::new(fields))
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.asked += 1;
        let silent = self.asked.is_multiple_of(2);
        if self.second >= HOURS * HOUR {
            return Ok(None);
        }
        let rows = if silent { 0 } else { BATCH * 5 };
        let first = self.second * 5;
        let row = (0..rows).map(|row| first + row);
        let time =
            |row: i64| (row / 5 - Polled::mixed(row) % LATENESS * i64::from(row % 7 == 0)) * 1_000;
        let times = Int64Array::from_iter_values(row.clone().map(time));
        let hosts = row
            .clone()
            .map(|row| format!("host-{}", Polled::mixed(row) % 40));
        let values = Int64Array::from_iter_values(row.map(|row| Polled::mixed(row) % 9_000));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(hosts.map(Some).collect::<StringArray>()),
            Arc::new(values),
        ];
        if !silent {
            self.second += BATCH;
            self.clock.advance(SECOND * BATCH as u32);
        }
        Ok(Some(RecordBatch::try_new(self.schema(), columns)?))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

/// The most bytes held in each hour of the stream, and the rows that came out.
fn hours(name: &str, query: impl Fn(&TestClock) -> Stream) -> (Vec<usize>, usize) {
    let clock = TestClock::at(SECOND);
    let mut run = query(&clock).run().unwrap();
    let (mut most, mut rows) = (vec![0; HOURS as usize + 1], 0);
    let mut open = true;
    while open {
        open = run.step().unwrap_or_else(|error| panic!("{name}: {error}"));
        rows += std::iter::from_fn(|| run.take_result())
            .map(|batch| batch.num_rows())
            .sum::<usize>();
        let hour = (clock.now().as_secs() / HOUR as u64).min(HOURS as u64) as usize;
        most[hour] = most[hour].max(run.state().bytes);
    }
    most.truncate(HOURS as usize);
    (most, rows)
}

fn assert_flat(name: &str, query: impl Fn(&TestClock) -> Stream) {
    let (hours, rows) = hours(name, query);
    assert!(rows > 100, "{name}: {rows} rows");
    // The first hour fills windows and ranges of up to half an hour.
    let (early, late) = (hours[1], hours[6..].iter().max().copied().unwrap());
    assert!(early > 0, "{name} holds something");
    assert!(
        late * 10 <= early * 12,
        "{name}: {early} bytes in the second hour, {late} later: {hours:?}"
    );
}

#[test]
fn twelve_hours_of_windows_hold_what_the_second_hour_held() {
    assert_flat("tumble and a retained range", |clock| {
        let stream = Polled::stream(clock).keep(Keep::Duration(SECOND * 1_800));
        let windows = stream.window(tumble(SECOND * 60)).group_by(["host"]);
        windows.aggregate([count(), call("max", col("value"))])
    });
    assert_flat("hop of quantiles", |clock| {
        let windows = Polled::stream(clock).window(hop(SECOND * 300, SECOND * 60));
        windows
            .group_by(["host"])
            .aggregate([call("median", col("value"))])
    });
    assert_flat("sessions", |clock| {
        let windows = Polled::stream(clock).window(session(SECOND * 20));
        windows
            .group_by(["host"])
            .aggregate([count(), call("last", col("value"))])
    });
}

/// One session that never ends, of rows that open a second one which the next row joins.
#[test]
fn a_session_that_never_ends_holds_no_more_than_at_first() {
    let times = (0..199_999i64).map(|row| match row % 2 {
        0 => (row / 2 * 15 - 7).max(0),
        _ => (row + 1) / 2 * 15,
    });
    let times: Vec<i64> = times.collect();
    let batch = |times: &[i64]| {
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(times.to_vec()));
        RecordBatch::try_from_iter([("timestamp", times)]).unwrap()
    };
    let batches: Vec<RecordBatch> = times.chunks(1_000).map(batch).collect();
    let mut run = Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("timestamp"), SECOND * 9)
        .window(session(SECOND * 10))
        .aggregate([count()])
        .run()
        .unwrap();
    let (mut held, mut sessions, mut rows) = (Vec::new(), 0, 0);
    while run.step().unwrap() {
        held.push(run.state().bytes);
        while let Some(found) = run.take_result() {
            (sessions, rows) = (sessions + found.num_rows(), rows + counted(&found));
        }
    }
    while let Some(found) = run.take_result() {
        (sessions, rows) = (sessions + found.num_rows(), rows + counted(&found));
    }
    assert_eq!((sessions, rows), (1, 199_999));
    assert_bounded(&held, 40);
}

/// That what is `held` never is more than twice the most of the `first`.
fn assert_bounded(held: &[usize], first: usize) {
    let most = |held: &[usize]| held.iter().max().copied().unwrap();
    let (early, late) = (most(&held[..first]), most(held));
    assert!(late <= early * 2, "{early} bytes at first, {late} later");
}

/// A row a second to each of eight groups, whose sessions change with every one.
#[test]
fn sessions_that_never_end_hold_no_more_with_every_update() {
    let groups: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8));
    let batch = |second: i64| {
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![second; 8]));
        RecordBatch::try_from_iter([("timestamp", times), ("group", groups.clone())]).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..2_000).map(batch).collect();
    let window = session(SECOND * 2);
    for window in [
        window.emit(Emit::Update),
        window.allowed_lateness(SECOND * 30),
    ] {
        let stream = Stream::from_batches(batches[0].schema(), batches.clone());
        let windows = stream.event_time(col("timestamp"), Duration::ZERO);
        let windows = windows.window(window).group_by(["group"]);
        let mut run = windows.aggregate([count()]).run().unwrap();
        let mut held = Vec::new();
        while run.step().unwrap() {
            held.push(run.state().bytes);
            while run.take_result().is_some() {}
        }
        assert!(held.len() >= batches.len());
        assert_bounded(&held, 200);
    }
}

fn counted(batch: &RecordBatch) -> i64 {
    let rows = batch.columns().last().unwrap();
    let rows = rows.as_primitive::<Int64Type>().values().iter();
    rows.sum()
}

#[test]
fn twelve_hours_of_joins_hold_what_the_second_hour_held() {
    let failures = || Polled::stream(&TestClock::default()).filter(col("value").lt(2_000));
    assert_flat("interval join", |clock| {
        let near = (0, 30_000_000_000);
        let right = failures();
        let on = [("host", "host")];
        Polled::stream(clock)
            .filter(col("value").gt(8_900))
            .interval_join(right, &on, near, JoinKind::Left)
            .unwrap()
    });
    assert_flat("rows in order", |clock| {
        let ordered = Polled::stream(clock).in_order().unwrap();
        ordered
            .lag("value", 1, ["host"], "before")
            .filter(col("value").gt(8_000))
    });
}

#[test]
fn a_range_at_its_limit_is_shortened_or_refused_as_asked() {
    let clock = TestClock::at(SECOND);
    let limited = |on_limit| {
        let stream = Polled::stream(&clock).keep(Keep::Duration(SECOND * 1_000_000));
        let windows = stream.window(tumble(SECOND * 60)).aggregate([count()]);
        windows
            .memory_limit(300_000)
            .on_limit(on_limit)
            .run()
            .unwrap()
    };
    let mut shortened = limited(OnLimit::Shorten);
    shortened.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert!(shortened.metrics().shortened_rows > 0);
    assert!(shortened.state().bytes <= 300_000);
    let error = limited(OnLimit::Refuse).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    assert!(error.hint_text().is_some(), "{error}");
}
