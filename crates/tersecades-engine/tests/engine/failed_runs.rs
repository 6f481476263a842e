//! A run that has failed says so from then on: it takes no more rows and gives no snapshot that
//! lacks some.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::{Interrupt, Running};
use tersecades_engine::source::table::MemoryTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_engine::{Error, ErrorKind, Result};

/// Rows of a time in seconds and a value.
fn batch(rows: &[(i64, i64)]) -> RecordBatch {
    let times = rows.iter().map(|(second, _)| second * 1_000);
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
    let values = rows.iter().map(|(_, value)| *value);
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
    RecordBatch::try_from_iter([("ts", times), ("v", values)]).unwrap()
}

fn timed(batches: &[RecordBatch]) -> Stream {
    let table = MemoryTable::new(batches[0].schema(), batches.to_vec());
    Stream::from_table(table).event_time(col("ts"), Duration::ZERO)
}

fn windows(stream: Stream) -> Stream {
    let windows = stream.window(tumble(Duration::from_secs(10)));
    windows.aggregate([count().alias("n")])
}

/// Windows of the rows of which ten times the value is above zero.
fn counted(batches: &[RecordBatch], threads: usize) -> Running {
    let rows = timed(batches).filter((col("v") * 10).gt(0));
    windows(rows).threads(threads).run().unwrap()
}

fn rows_of(window: &RecordBatch) -> i64 {
    let column = window.column_by_name("n").unwrap();
    column.as_primitive::<Int64Type>().value(0)
}

/// Both say `error`, and so does all that follows.
fn assert_over(mut run: Running, error: &Error) {
    let said = error.to_string();
    for _ in 0..2 {
        assert_eq!(run.step().unwrap_err().to_string(), said);
        assert_eq!(run.snapshot().unwrap_err().to_string(), said);
        assert_eq!(run.why_open().unwrap_err().to_string(), said);
    }
    assert_eq!(run.next().unwrap().unwrap_err().to_string(), said);
    assert!(run.next().is_none());
}

#[test]
fn a_run_that_failed_takes_no_more_rows_and_gives_no_snapshot() {
    let batches = [(0, 1), (1, i64::MAX), (2, 3)].map(|row| batch(&[row]));
    for threads in [1, 2, 3] {
        let mut run = counted(&batches, threads);
        // A worker may meet the row after the step that has read it.
        let error = (0..10).find_map(|_| run.step().err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{threads} threads");
        assert!(run.take_result().is_none());
        assert_over(run, &error);
    }
}

#[test]
fn results_before_an_error_come_first() {
    let most = i64::MAX;
    // What is late cuts the batch. Two of the largest are too much for the second window.
    let rows = [(0, 1), (12, most), (3, 1), (13, most), (24, 1)];
    let batches = [batch(&rows)];
    let summed = || {
        let sum = call("sum", col("v")).alias("sum");
        let windows = timed(&batches).window(tumble(Duration::from_secs(10)));
        windows.aggregate([count().alias("n"), sum]).run().unwrap()
    };
    let mut run = summed();
    assert!(run.step().unwrap(), "the error waits");
    assert!(run.snapshot().is_err());
    let found: Vec<i64> = std::iter::from_fn(|| run.take_result())
        .map(|window| rows_of(&window))
        .collect();
    assert_eq!(found, [1]);
    let error = run.step().unwrap_err();
    assert_over(run, &error);
    let all: Vec<Result<RecordBatch>> = summed().collect();
    let told: Vec<bool> = all.iter().map(Result::is_ok).collect();
    assert_eq!(told, [true, false]);
}

/// An interrupt that stops everything behind so many checks, which a test counts anew.
fn stopping(left: &Arc<AtomicUsize>) -> Interrupt {
    let left = Arc::clone(left);
    Interrupt::new(move || {
        let one_less = |left: usize| left.checked_sub(1);
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Interrupted, "enough")),
        }
    })
}

#[test]
fn a_run_that_is_stopped_between_two_batches_goes_on() {
    let batches: Vec<RecordBatch> = (0..6).map(|row| batch(&[(row * 4, 1)])).collect();
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let query = || windows(timed(&batches)).interrupt(stopping(&left));
    let mut run = query().run().unwrap();
    assert!(run.step().unwrap());
    left.store(0, Ordering::Relaxed);
    assert_eq!(run.step().unwrap_err().kind(), ErrorKind::Interrupted);
    left.store(usize::MAX, Ordering::Relaxed);
    let mut restored = query().run().unwrap();
    restored.resume(&run.snapshot().unwrap()).unwrap();
    let found =
        |run: Running| -> Vec<i64> { run.map(|window| rows_of(&window.unwrap())).collect() };
    let expected = [3, 2, 1];
    assert_eq!(found(run), expected);
    assert_eq!(found(restored), expected);
}

#[test]
fn a_run_that_is_stopped_anywhere_loses_nothing_or_gives_no_snapshot() {
    let rows: Vec<(i64, i64)> = (0..30).map(|row| (row * 7, row)).collect();
    let batches: Vec<RecordBatch> = rows.chunks(8).map(batch).collect();
    let behind = |stream| windows(stream).filter(col("n").gt(0));
    let union = || Stream::union([timed(&batches), timed(&batches)]).unwrap();
    let nested = || behind(timed(&batches)).as_source().unwrap().distinct();
    let queries: [&dyn Fn() -> Stream; 3] =
        [&|| behind(timed(&batches)), &|| union().distinct(), &nested];
    for (number, query) in queries.iter().enumerate() {
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let start = || query().interrupt(stopping(&left)).run().unwrap();
        let expected: Vec<RecordBatch> = start().map(Result::unwrap).collect();
        let (mut restored, mut refused) = (0, 0);
        for checks in 0.. {
            let mut run = start();
            left.store(checks, Ordering::Relaxed);
            let stopped = loop {
                match run.step() {
                    Ok(true) => {}
                    Ok(false) => break false,
                    Err(_) => break true,
                }
            };
            left.store(usize::MAX, Ordering::Relaxed);
            if !stopped {
                break;
            }
            let Ok(snapshot) = run.snapshot() else {
                assert_eq!(run.step().unwrap_err().kind(), ErrorKind::Interrupted);
                refused += 1;
                continue;
            };
            let mut rest = start();
            rest.resume(&snapshot).unwrap();
            let found: Vec<RecordBatch> = rest.map(Result::unwrap).collect();
            assert_eq!(found, expected, "query {number}, {checks} checks");
            restored += 1;
        }
        assert!(restored > 3, "query {number}: {restored} restored");
        assert!(refused > 3, "query {number}: {refused} refused");
    }
}
