//! What moves the watermark besides rows: partitions, clocks, silence; and what late rows leave.
//!
//! Time is a test clock's: nothing here sleeps.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::event_time::TestClock;
use tersecades_engine::expression::col;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::runtime::Running;
use tersecades_engine::source::partitioned::PartitionedTable;
use tersecades_engine::source::table::{MemoryTable, Table};
use tersecades_engine::source::{PartitionState, Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{hop, tumble};
use tersecades_engine::{ErrorKind, Result};

const SECOND: Duration = Duration::from_secs(1);

fn schema() -> SchemaRef {
    let fields = ["timestamp", "value"].map(|name| Field::new(name, DataType::Int64, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Rows at these seconds, with the second as their value.
fn rows(seconds: &[i64]) -> RecordBatch {
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(
        seconds.iter().map(|second| second * 1_000),
    ));
    let values: ArrayRef = Arc::new(Int64Array::from(seconds.to_vec()));
    RecordBatch::try_new(schema(), vec![times, values]).unwrap()
}

fn table(batches: &[&[i64]]) -> Arc<dyn Table> {
    let batches = batches.iter().map(|seconds| rows(seconds)).collect();
    Arc::new(MemoryTable::new(schema(), batches))
}

/// `(start in seconds, rows)` of every window.
fn counts(batches: &[RecordBatch]) -> Vec<(i64, i64)> {
    let one = |batch: &RecordBatch| {
        let starts = batch.column(0);
        let start = match starts.as_primitive_opt::<TimestampMillisecondType>() {
            Some(starts) => starts.value(0) / 1_000,
            None => {
                arrow_cast::cast(starts, &DataType::Int64)
                    .unwrap()
                    .as_primitive::<Int64Type>()
                    .value(0)
                    / 1_000_000
            }
        };
        (start, batch.column(2).as_primitive::<Int64Type>().value(0))
    };
    batches.iter().map(one).collect()
}

fn ready(run: &mut Running) -> Vec<(i64, i64)> {
    let batches: Vec<RecordBatch> = std::iter::from_fn(|| run.take_result()).collect();
    counts(&batches)
}

fn by_ten(stream: Stream) -> Running {
    stream
        .window(tumble(SECOND * 10))
        .aggregate([count()])
        .run()
        .unwrap()
}

/// What a source under test does next.
enum Act {
    Rows(usize, Vec<i64>),
    Nothing(usize),
    End(usize),
}

/// Does as told, one act for each batch asked for.
struct Script {
    acts: VecDeque<Act>,
    states: Vec<PartitionState>,
    last: usize,
    rejected: Rejected,
}

impl Script {
    fn stream(partitions: usize, acts: impl IntoIterator<Item = Act>) -> Stream {
        Stream::from_source(Box::new(Script {
            acts: acts.into_iter().collect(),
            states: vec![PartitionState::Flowing; partitions],
            last: 0,
            rejected: Rejected::default(),
        }))
    }
}

impl Source for Script {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(act) = self.acts.pop_front() else {
            return Ok(None);
        };
        let (partition, state, seconds) = match act {
            Act::Rows(partition, seconds) => (partition, PartitionState::Flowing, seconds),
            Act::Nothing(partition) => (partition, PartitionState::Waiting, Vec::new()),
            Act::End(partition) => (partition, PartitionState::Ended, Vec::new()),
        };
        self.states[partition] = state;
        self.last = partition;
        Ok(Some(rows(&seconds)))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn partitions(&self) -> usize {
        self.states.len()
    }

    fn partition(&self) -> usize {
        self.last
    }

    fn partition_state(&self, partition: usize) -> PartitionState {
        self.states[partition]
    }

    fn partition_name(&self, partition: usize) -> String {
        format!("shard {partition}")
    }
}

#[test]
fn partitions_that_drift_apart_lose_nothing() {
    let (ahead, behind): (&[&[i64]], &[&[i64]]) =
        (&[&[1, 12, 25], &[33, 47]], &[&[2, 3], &[4, 11], &[24, 38]]);
    let mut merged = by_ten(Stream::from_partitions(vec![table(ahead), table(behind)]).unwrap());
    let windows: Vec<RecordBatch> = merged.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(
        counts(&windows),
        [(0, 4), (10, 2), (20, 2), (30, 2), (40, 1)]
    );
    assert_eq!(merged.metrics().late_rows, 0);
    let together: Vec<&[i64]> = ahead.iter().chain(behind).copied().collect();
    let mut single = by_ten(Stream::from_partitions(vec![table(&together)]).unwrap());
    single.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert_eq!(single.metrics().late_rows, 6);
}

#[test]
fn partitions_of_different_columns_are_refused() {
    let other =
        RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    let other = other.unwrap();
    let other = Arc::new(MemoryTable::new(other.schema(), vec![other]));
    let error = PartitionedTable::new(vec![table(&[]), other])
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(PartitionedTable::new(Vec::new()).is_err());
}

#[test]
fn a_silent_partition_holds_windows_open_until_it_is_idle_and_it_is_named() {
    let clock = TestClock::at(SECOND * 1_000);
    let acts = [
        Act::Rows(0, vec![1, 15, 31]),
        Act::Nothing(1),
        Act::Nothing(1),
        Act::Rows(1, vec![27, 45]),
        Act::Rows(0, vec![39]),
        Act::End(1),
        Act::Rows(0, vec![52]),
    ];
    let stream = Script::stream(2, acts).clock(clock.clone());
    let mut run = by_ten(stream.idle_timeout(SECOND * 5));
    run.step().unwrap();
    assert!(ready(&mut run).is_empty());
    let open = run.why_open().unwrap();
    assert_eq!(open.len(), 3);
    assert_eq!(open[0].watermark, None);
    assert_eq!(
        open[0].to_string(),
        "[1970-01-01T00:00:00, 1970-01-01T00:00:10) is open: no row yet of shard 1"
    );
    run.step().unwrap();
    clock.advance(SECOND * 4);
    assert!(
        ready(&mut run).is_empty(),
        "it has been silent for too short a time"
    );
    clock.advance(SECOND);
    run.step().unwrap();
    assert_eq!(ready(&mut run), [(0, 1), (10, 1)]);
    let open = run.why_open().unwrap();
    let (left, name) = (open[0].behind_by.unwrap(), open[0].held_by.as_str());
    assert_eq!((open.len(), left, name), (1, SECOND * 9, "shard 0"));
    assert!(
        open[0]
            .to_string()
            .contains("holds the watermark at 1970-01-01T00:00:31")
    );
    // It is back with a row whose window has closed, and holds back again from its newest on.
    run.step().unwrap();
    run.step().unwrap();
    assert!(ready(&mut run).is_empty());
    assert_eq!(run.why_open().unwrap()[0].held_by, "shard 0");
    run.step().unwrap();
    run.step().unwrap();
    assert_eq!(ready(&mut run), [(30, 2), (40, 1)]);
    assert!(!run.step().unwrap());
    assert_eq!(ready(&mut run), [(50, 1)]);
    assert_eq!(run.metrics().late_rows, 1);
}

#[test]
fn a_row_of_the_far_future_does_not_make_the_rest_late() {
    let seconds: &[i64] = &[1, 2, 900_000, 3, 14, 5];
    let stream = |clock: &TestClock| {
        let stream = Stream::from_partitions(vec![table(&[seconds])]).unwrap();
        stream.clock(clock.clone())
    };
    let clock = TestClock::at(SECOND * 20);
    let mut trusting = by_ten(stream(&clock));
    trusting.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert_eq!(trusting.metrics().late_rows, 3);
    let mut careful = by_ten(stream(&clock).future_limit(SECOND * 60));
    let windows: Vec<RecordBatch> = careful.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(counts(&windows), [(0, 3), (10, 1), (900_000, 1)]);
    let metrics = careful.metrics();
    assert_eq!((metrics.future_rows, metrics.late_rows), (1, 1));
    let late = metrics.late_by_window[0];
    assert_eq!((late.start, late.end, late.rows), (0, 10_000, 1));
}

#[test]
fn rows_take_the_time_of_their_arrival() {
    let clock = TestClock::at(SECOND * 100);
    let acts = [vec![7, 3], vec![5], vec![9]].map(|seconds| Act::Rows(0, seconds));
    let mut run = by_ten(
        Script::stream(1, acts)
            .ingestion_time()
            .clock(clock.clone()),
    );
    run.step().unwrap();
    clock.advance(SECOND * 9);
    run.step().unwrap();
    assert!(ready(&mut run).is_empty());
    clock.advance(SECOND * 2);
    run.step().unwrap();
    assert_eq!(ready(&mut run), [(100, 3)]);
    let rest: Vec<RecordBatch> = run.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(counts(&rest), [(110, 1)]);
    assert_eq!(run.metrics().late_rows, 0);
}

#[test]
fn in_processing_time_windows_close_while_nothing_arrives() {
    let clock = TestClock::at(SECOND * 100);
    let acts = || [Act::Rows(0, vec![7, 3]), Act::Nothing(0), Act::Nothing(0)];
    let mut run = by_ten(
        Script::stream(1, acts())
            .processing_time()
            .clock(clock.clone()),
    );
    run.step().unwrap();
    run.step().unwrap();
    assert!(ready(&mut run).is_empty());
    clock.advance(SECOND * 10);
    run.step().unwrap();
    assert_eq!(ready(&mut run), [(100, 2)]);
    let waiting = TestClock::at(SECOND * 100);
    let mut other = by_ten(
        Script::stream(1, acts())
            .ingestion_time()
            .clock(waiting.clone()),
    );
    other.step().unwrap();
    waiting.advance(SECOND * 10);
    other.step().unwrap();
    assert!(ready(&mut other).is_empty(), "only rows move it");
}

#[test]
fn in_processing_time_windows_behind_operators_on_rows_close_too() {
    let steps: [fn(Stream) -> Stream; 3] = [
        |stream| stream.lag("value", 1, ["value"], "earlier"),
        |stream| stream.distinct().as_source().unwrap(),
        |stream| stream.filter(col("value").gt(0)).as_source().unwrap(),
    ];
    for step in steps {
        let clock = TestClock::at(SECOND * 100);
        let acts = [Act::Rows(0, vec![7, 3]), Act::Nothing(0), Act::Nothing(0)];
        let stream = Script::stream(1, acts).processing_time();
        let mut run = by_ten(step(stream.clock(clock.clone())));
        run.step().unwrap();
        run.step().unwrap();
        assert!(ready(&mut run).is_empty());
        clock.advance(SECOND * 10);
        run.step().unwrap();
        assert_eq!(ready(&mut run), [(100, 2)]);
    }
    // What holds its rows back gives them at the end, when they are not late.
    let clock = TestClock::at(SECOND * 100);
    let acts = [Act::Rows(0, vec![7, 3]), Act::Nothing(0), Act::Nothing(0)];
    let stream = Script::stream(1, acts)
        .processing_time()
        .clock(clock.clone());
    let mut run = by_ten(stream.sort([(col("value"), SortOrder::ASCENDING)]));
    run.step().unwrap();
    clock.advance(SECOND * 10);
    assert_eq!(
        counts(&run.by_ref().collect::<Result<Vec<_>>>().unwrap()),
        [(100, 2)]
    );
    assert_eq!(run.metrics().late_rows, 0);
}

#[test]
fn a_stream_with_an_arrival_time_of_its_own_keeps_it() {
    let time: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("arrival_time", time)]).unwrap();
    let stream = Stream::from_batches(rows.schema(), vec![rows]).ingestion_time();
    let error = stream
        .window(tumble(SECOND))
        .aggregate([count()])
        .run()
        .map(|_| ());
    assert!(error.unwrap_err().hint_text().unwrap().contains("rename"));
}

#[test]
fn late_rows_are_told_apart_by_window_and_kept_whole() {
    let batches = || vec![rows(&[5, 30, 7]), rows(&[31, 12, 8, 40])];
    let start = || {
        Stream::from_batches(schema(), batches())
            .keep_late_whole()
            .window(hop(SECOND * 10, SECOND * 5))
            .aggregate([count()])
            .run()
            .unwrap()
    };
    for restart in [false, true] {
        let mut run = start();
        run.step().unwrap();
        ready(&mut run);
        if restart {
            let snapshot = run.snapshot().unwrap();
            let rest = batches().split_off(1);
            run = Stream::from_batches(schema(), rest)
                .keep_late_whole()
                .window(hop(SECOND * 10, SECOND * 5))
                .aggregate([count()])
                .run()
                .unwrap();
            run.restore(&snapshot).unwrap();
        }
        run.by_ref().for_each(|batch| drop(batch.unwrap()));
        let metrics = run.metrics();
        let windows = metrics.late_by_window.iter();
        let windows: Vec<(i64, u64)> = windows.map(|w| (w.start / 1_000, w.rows)).collect();
        assert_eq!((metrics.late_rows, windows), (3, vec![(5, 2), (10, 1)]));
        let late = run.take_late();
        let values: Vec<i64> = late
            .iter()
            .flat_map(|batch| {
                batch
                    .column_by_name("value")
                    .unwrap()
                    .as_primitive::<Int64Type>()
            })
            .flatten()
            .collect();
        assert_eq!(values, [7, 12, 8], "restart {restart}");
    }
}

#[test]
fn a_snapshot_of_another_filter_is_refused() {
    let over = |least: i64| {
        let stream = Stream::from_batches(schema(), vec![rows(&[1, 2]), rows(&[3])]);
        by_ten(stream.filter(col("value").gt(least)))
    };
    let mut run = over(1);
    run.step().unwrap();
    let snapshot = run.snapshot().unwrap();
    over(1).restore(&snapshot).unwrap();
    let error = over(2).restore(&snapshot).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_restart_goes_on_with_the_partitions_where_they_were() {
    let acts = || {
        VecDeque::from([
            Act::Rows(0, vec![1, 15, 31]),
            Act::Rows(1, vec![2]),
            Act::Rows(1, vec![12]),
            Act::Rows(1, vec![33]),
        ])
    };
    let expected = [(0, 2), (10, 2), (30, 2)];
    for stop in 0..4 {
        let mut first = by_ten(Script::stream(2, acts()));
        let mut results = Vec::new();
        for _ in 0..stop {
            first.step().unwrap();
            results.extend(ready(&mut first));
        }
        let snapshot = first.snapshot().unwrap();
        let mut second = by_ten(Script::stream(2, acts().split_off(stop)));
        second.restore(&snapshot).unwrap();
        let rest: Vec<RecordBatch> = second.by_ref().collect::<Result<_>>().unwrap();
        results.extend(counts(&rest));
        assert_eq!(results, expected, "stopped behind {stop}");
        assert_eq!(second.metrics().late_rows, 0);
    }
    let mut other = by_ten(Script::stream(3, acts()));
    let snapshot = by_ten(Script::stream(2, acts())).snapshot().unwrap();
    assert!(
        other
            .restore(&snapshot)
            .unwrap_err()
            .to_string()
            .contains("2 partitions")
    );
}

#[test]
fn a_filter_reads_the_arrival_time_and_a_max_over_it_works() {
    let clock = TestClock::at(SECOND * 7);
    let acts = [Act::Rows(0, vec![1, 2])];
    let run = Script::stream(1, acts)
        .ingestion_time()
        .clock(clock)
        .window(tumble(SECOND))
        .aggregate([call("max", col("arrival_time")).alias("newest"), count()])
        .run()
        .unwrap();
    let batches: Vec<RecordBatch> = run.collect::<Result<_>>().unwrap();
    let newest = arrow_cast::cast(batches[0].column(2), &DataType::Int64).unwrap();
    assert_eq!(newest.as_primitive::<Int64Type>().value(0), 7_000_000);
}
