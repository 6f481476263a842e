//! What whole-stream operators and workers hold comes out part by part, not all at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use tersecades_engine::expression::col;
use tersecades_engine::operator::over::{Bound, Frame, Over, OverCall, OverFunction, Units};
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::operator::row::shape::GIVEN_ROWS;
use tersecades_engine::operator::sort::Sort;
use tersecades_engine::runtime::{Interrupt, Running};
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;
use tersecades_engine::{Error, ErrorKind, Result};

const ROWS: i64 = 3 * GIVEN_ROWS as i64 + 1_000;
const BATCH: i64 = 50_000;

/// A prime that does not divide [`ROWS`]: its multiples pass through all numbers below.
const STEP: i64 = 7_919;

type Query = fn(Stream) -> Stream;
type Check = fn(&[RecordBatch]);

/// Columns `n`, every number below [`ROWS`] in a scattered order, and `g`, its last digit.
fn scattered() -> Stream {
    let number = |row: i64| row * STEP % ROWS;
    let batch = |first: i64| {
        let rows = first..ROWS.min(first + BATCH);
        let of = |value: &dyn Fn(i64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.clone().map(value)))
        };
        let columns = [("n", of(&number)), ("g", of(&|row| number(row) % 10))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<RecordBatch> = (0..ROWS).step_by(BATCH as usize).map(batch).collect();
    Stream::from_batches(batches[0].schema(), batches)
}

fn sorted(of: Stream) -> Stream {
    of.rows(Sort {
        by: vec![(col("n"), SortOrder::ASCENDING)],
        extent: Extent::Whole,
    })
}

/// The number before, and the sum of the frame of three rows, in each partition of a last digit.
fn around(of: Stream) -> Stream {
    let call = |function, output: &str| OverCall {
        function,
        argument: Some(String::from("n")),
        default: None,
        frame: Frame {
            units: Units::Rows,
            start: Bound::Shifted(-2),
            end: Bound::Current,
        },
        output: String::from(output),
    };
    of.rows(Over {
        partition: vec![String::from("g")],
        order: vec![(col("n"), SortOrder::ASCENDING)],
        calls: vec![
            call(OverFunction::Shift(1), "before"),
            call(OverFunction::Sum, "three"),
            call(OverFunction::RowNumber, "place"),
        ],
    })
}

/// Takes steps until the first result is ready, which is behind the end of the stream.
fn first_part(running: &mut Running) -> Vec<RecordBatch> {
    loop {
        let more = running.step().unwrap();
        let ready: Vec<RecordBatch> = std::iter::from_fn(|| running.take_result()).collect();
        if !ready.is_empty() {
            assert!(more, "all came out at once");
            return ready;
        }
    }
}

fn rows_of(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn column(batches: &[RecordBatch], name: &str) -> Vec<Option<i64>> {
    let columns = batches.iter().map(|batch| batch.column_by_name(name));
    let values = columns.flat_map(|column| column.unwrap().as_primitive::<Int64Type>().iter());
    values.collect()
}

fn check_sorted(batches: &[RecordBatch]) {
    assert!(column(batches, "n").into_iter().eq((0..ROWS).map(Some)));
}

fn check_around(batches: &[RecordBatch]) {
    let names = ["g", "n", "before", "three", "place"];
    let [digits, numbers, before, three, places] = names.map(|name| column(batches, name));
    let mut row = 0;
    for digit in 0..10 {
        for (place, number) in (digit..ROWS).step_by(10).enumerate() {
            let found = [
                digits[row],
                numbers[row],
                before[row],
                three[row],
                places[row],
            ];
            let previous = (place > 0).then_some(number - 10);
            let frame = (number - 20..=number).step_by(10).filter(|it| *it >= 0);
            let place = place as i64 + 1;
            let wanted = [digit, number, 0, frame.sum(), place].map(Some);
            let wanted = [wanted[0], wanted[1], previous, wanted[3], wanted[4]];
            assert_eq!(found, wanted, "row {row}");
            row += 1;
        }
    }
    assert_eq!(row, numbers.len());
}

#[test]
fn a_sort_and_an_over_give_parts_of_what_they_hold() {
    for (query, check, most) in [
        (sorted as Query, check_sorted as Check, GIVEN_ROWS),
        // A partition comes out whole.
        (around, check_around, GIVEN_ROWS + ROWS as usize / 10),
    ] {
        let mut running = query(scattered()).run().unwrap();
        let mut batches = first_part(&mut running);
        let first = rows_of(&batches);
        assert!((GIVEN_ROWS..=most).contains(&first), "{first} rows");
        let rest: Result<Vec<RecordBatch>> = running.by_ref().collect();
        batches.extend(rest.unwrap());
        check(&batches);
        assert!(!running.step().unwrap());
    }
}

#[test]
fn a_snapshot_between_parts_has_the_rest() {
    for (query, check) in [
        (sorted as Query, check_sorted as Check),
        (around, check_around),
    ] {
        let mut running = query(scattered()).run().unwrap();
        let mut batches = first_part(&mut running);
        let snapshot = running.snapshot().unwrap();
        let nothing = Stream::from_batches(scattered().schema().unwrap(), Vec::new());
        let mut after = query(nothing).run().unwrap();
        after.restore(&snapshot).unwrap();
        let rest: Result<Vec<RecordBatch>> = after.collect();
        batches.extend(rest.unwrap());
        check(&batches);
    }
}

#[test]
fn a_limit_behind_a_sort_ends_it() {
    let few = sorted(scattered()).filter(col("n").gt_eq(7)).limit(5, 0);
    let mut running = few.run().unwrap();
    let mut steps = 0usize;
    while running.step().unwrap() {
        assert!(running.take_result().is_none(), "there is more to come");
        steps += 1;
    }
    assert_eq!(steps, (ROWS as usize).div_ceil(BATCH as usize));
    let batches: Vec<RecordBatch> = std::iter::from_fn(|| running.take_result()).collect();
    let numbers = column(&batches, "n");
    assert!(numbers.into_iter().eq((7..12).map(Some)));
}

#[test]
fn a_run_is_stopped_between_parts() {
    for query in [sorted, around] {
        let is_enough = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_enough);
        let interrupt = Interrupt::new(move || match seen.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::Interrupted, "enough")),
        });
        let mut running = query(scattered()).interrupt(interrupt).run().unwrap();
        let first = first_part(&mut running);
        assert!(rows_of(&first) < ROWS as usize);
        is_enough.store(true, Ordering::Relaxed);
        let error = running.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(running.next().is_none());
    }
}

#[test]
fn standing_queries_give_all_parts() {
    let stream = scattered();
    let queries = [
        ("sorted", sorted(stream.clone())),
        ("around", around(stream.clone())),
    ];
    let (mut by_number, mut by_digit) = (Vec::new(), Vec::new());
    for result in stream.standing(queries).unwrap() {
        let (name, rows) = result.unwrap();
        match &*name {
            "sorted" => by_number.push(rows),
            _ => by_digit.push(rows),
        }
    }
    check_sorted(&by_number);
    check_around(&by_digit);
}

/// A batch of one row every 150 ms, and how many were given.
struct Slow {
    given: Arc<AtomicUsize>,
    rejected: Rejected,
}

const SLOW_BATCHES: usize = 14;

impl Source for Slow {
    fn schema(&self) -> SchemaRef {
        one_row().schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        std::thread::sleep(Duration::from_millis(150));
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        Ok((given < SLOW_BATCHES).then(one_row))
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}

fn one_row() -> RecordBatch {
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    RecordBatch::try_from_iter([("n", number)]).unwrap()
}

#[test]
fn rows_of_slow_work_come_out_within_about_a_second() {
    let given = Arc::new(AtomicUsize::new(0));
    let stream = Stream::from_source(Box::new(Slow {
        given: Arc::clone(&given),
        rejected: Rejected::default(),
    }));
    let mut run = stream.filter(col("n").gt(0)).threads(2).run().unwrap();
    assert_eq!(run.next().unwrap().unwrap().num_rows(), 1);
    let read = given.load(Ordering::Relaxed);
    assert!(read < SLOW_BATCHES, "{read} batches were read before");
    let rest: usize = run.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rest, SLOW_BATCHES - 1);
}
