//! Runs that are stopped from outside, in the middle of work that gives nothing for long.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use tersecades_engine::aggregate::count;
use tersecades_engine::expression::{col, lit};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::runtime::Interrupt;
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::window::hop;
use tersecades_engine::{Error, ErrorKind, Result};

/// Far more batches than a test could read.
const ENDLESS: i64 = i64::MAX;

struct Counting {
    batches: i64,
    rejected: Rejected,
}

fn rows(start: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(start..start + 10));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

impl Source for Counting {
    fn schema(&self) -> SchemaRef {
        rows(0).schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.batches -= 1;
        Ok((self.batches >= 0).then(|| rows(0)))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

fn counting(batches: i64) -> Stream {
    Stream::from_source(Box::new(Counting {
        batches,
        rejected: Rejected::default(),
    }))
}

/// Stops at the hundredth check.
fn at_the_hundredth() -> Interrupt {
    let checks = AtomicUsize::new(0);
    Interrupt::new(move || match checks.fetch_add(1, Ordering::Relaxed) {
        0..100 => Ok(()),
        _ => Err(Error::new(ErrorKind::Interrupted, "enough")),
    })
}

fn stopped(stream: Stream) -> Error {
    let mut running = stream.interrupt(at_the_hundredth()).run().unwrap();
    let error = running.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(running.next().is_none());
    error
}

#[test]
fn every_stage_that_gives_nothing_yet_is_stopped() {
    let none = JoinOptions::default;
    let by = [("n", "n")];
    let join = |left: Stream, right: Stream| left.join(right, JoinKind::Inner, &by, none());
    stopped(counting(ENDLESS).filter(col("n").lt(0)));
    stopped(counting(ENDLESS).aggregate([count()]));
    stopped(counting(ENDLESS).top_k(3, [(col("n"), SortOrder::DESCENDING)]));
    // The right side is read whole, before the first result.
    stopped(join(counting(3), counting(ENDLESS)).unwrap());
    let inner = counting(1)
        .join(counting(ENDLESS), JoinKind::LeftSemi, &by, none())
        .unwrap();
    stopped(join(counting(1), inner).unwrap());
    let union = Stream::union([counting(ENDLESS).filter(col("n").lt(0)), counting(1)]).unwrap();
    stopped(union);
    let nested = counting(ENDLESS).filter(col("n").lt(0)).as_source();
    stopped(nested.unwrap().distinct());
}

#[test]
fn pairs_that_all_fail_a_condition_are_stopped() {
    let options = JoinOptions {
        residual: Some(lit(1).gt(2)),
        ..JoinOptions::default()
    };
    let crossed = counting(ENDLESS).join(counting(500), JoinKind::Cross, &[], options);
    stopped(crossed.unwrap());
}

/// As [`stopped`], of a query that has results before.
fn stopped_behind_results(stream: Stream) {
    let running = stream.interrupt(at_the_hundredth()).run().unwrap();
    let results: Result<Vec<RecordBatch>> = running.collect();
    assert_eq!(results.unwrap_err().kind(), ErrorKind::Interrupted);
}

#[test]
fn many_windows_of_one_batch_are_stopped() {
    let timed = || counting(1).event_time(col("n"), Duration::ZERO);
    let tiny = || hop(Duration::from_secs(5), Duration::from_millis(1));
    stopped_behind_results(timed().window(tiny()).aggregate([count()]));
    let on = [("n", "n")];
    let joined = timed().window_join(timed(), tiny(), JoinKind::Left, &on);
    stopped_behind_results(joined.unwrap());
}
