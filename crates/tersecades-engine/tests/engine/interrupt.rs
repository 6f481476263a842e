//! Runs that are stopped from outside, in the middle of work that gives nothing for long.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use tersecades_engine::aggregate::count;
use tersecades_engine::expression::{col, lit};
use tersecades_engine::operator::join::as_of::Direction;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::over::{Bound, Frame, Over, OverCall, OverFunction, Units};
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

/// One batch, and then whether it was read to its end.
struct Ending {
    rows: Option<RecordBatch>,
    ended: Arc<AtomicBool>,
    rejected: Rejected,
}

/// Rows of that many partitions, which come in no order.
fn scattered(partitions: i64) -> RecordBatch {
    let column = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..SCATTERED).map(of)))
    };
    let key = column(&|row| row * 7_919 % partitions);
    let number = column(&|row| row * 104_729 % 1_000_003);
    let text = (0..SCATTERED).map(|row| (row * 31 % 1_009).to_string());
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(text));
    RecordBatch::try_from_iter([("k", key), ("n", number), ("t", text)]).unwrap()
}

const SCATTERED: i64 = 1 << 19;

impl Source for Ending {
    fn schema(&self) -> SchemaRef {
        scattered(1).slice(0, 0).schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let rows = self.rows.take();
        self.ended.store(rows.is_none(), Ordering::Relaxed);
        Ok(rows)
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

/// What a run gives that is stopped so many checks behind the end of its input, and how many
/// checks there were behind it.
fn stopped_behind_the_end(
    query: &dyn Fn(Stream) -> Stream,
    rows: &RecordBatch,
    after: usize,
) -> (Result<usize>, usize) {
    let ended = Arc::new(AtomicBool::new(false));
    let checks = Arc::new(AtomicUsize::new(0));
    let source = Ending {
        rows: Some(rows.clone()),
        ended: Arc::clone(&ended),
        rejected: Rejected::default(),
    };
    let counted = Arc::clone(&checks);
    let interrupt = Interrupt::new(move || {
        let behind = ended.load(Ordering::Relaxed);
        let enough = behind && counted.fetch_add(1, Ordering::Relaxed) >= after;
        match enough {
            true => Err(Error::new(ErrorKind::Interrupted, "enough")),
            false => Ok(()),
        }
    });
    let running = query(Stream::from_source(Box::new(source))).interrupt(interrupt);
    let given = running.run().unwrap().map(|batch| Ok(batch?.num_rows()));
    (given.sum(), checks.load(Ordering::Relaxed))
}

#[test]
fn long_work_at_the_end_of_the_input_is_stopped_in_its_midst() {
    let call = |function, argument: Option<&str>, frame, output: &str| OverCall {
        function,
        argument: argument.map(str::to_owned),
        default: None,
        frame,
        output: output.to_owned(),
    };
    let running = Frame {
        units: Units::Rows,
        start: Bound::Shifted(-9),
        end: Bound::Current,
    };
    let over = |by: &'static str, calls: Vec<OverCall>| {
        move |stream: Stream| {
            stream.rows(Over {
                partition: vec!["k".to_owned()],
                order: vec![(col(by), SortOrder::ASCENDING)],
                calls: calls.clone(),
            })
        }
    };
    let number = || vec![call(OverFunction::RowNumber, None, Frame::PARTITION, "r")];
    let sum = vec![call(OverFunction::Sum, Some("n"), running, "s")];
    let max = vec![call(OverFunction::Max, Some("n"), running, "m")];
    let sort = |stream: Stream| stream.sort([(col("n"), SortOrder::ASCENDING)]);
    type Case<'c> = (&'c str, &'c dyn Fn(Stream) -> Stream, i64, usize);
    let cases: [Case<'_>; 6] = [
        ("arranged by numbers", &over("n", number()), 1, 20),
        ("arranged by texts", &over("t", number()), 3, 20),
        ("many partitions", &over("n", number()), SCATTERED, 30),
        ("sums", &over("n", sum), 1, 30),
        ("greatest", &over("n", max), 1, 50),
        ("sorted", &sort, 1, 10),
    ];
    for (name, query, partitions, least) in cases {
        let rows = scattered(partitions);
        let (given, checks) = stopped_behind_the_end(query, &rows, usize::MAX);
        assert_eq!(given.unwrap(), SCATTERED as usize, "{name}");
        assert!(checks >= least, "{name}: {checks} checks");
        for after in [0, checks / 3, checks * 2 / 3, checks - 1] {
            let (given, asked) = stopped_behind_the_end(query, &rows, after);
            assert_eq!(given.unwrap_err().kind(), ErrorKind::Interrupted, "{name}");
            assert_eq!(asked, after + 1, "{name}: nothing is asked again");
        }
    }
}

#[test]
fn rows_that_no_row_is_near_are_stopped() {
    let apart = |stream: Stream| {
        let right = counting(1).event_time(col("n"), Duration::ZERO);
        let left = stream.event_time(col("n"), Duration::from_secs(2_000));
        // No row of the left has a key above zero.
        let right = right.filter(col("n").gt(0));
        let nearest = (Direction::Backward, None);
        let joined = left.asof_join(right, &[("k", "n")], nearest, JoinKind::Inner);
        joined.unwrap()
    };
    let rows = scattered(1);
    let (given, checks) = stopped_behind_the_end(&apart, &rows, usize::MAX);
    assert_eq!(given.unwrap(), 0);
    assert!(checks >= 8, "{checks} checks");
    for after in [0, checks / 2, checks - 1] {
        let (given, asked) = stopped_behind_the_end(&apart, &rows, after);
        assert_eq!(given.unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(asked, after + 1);
    }
}
