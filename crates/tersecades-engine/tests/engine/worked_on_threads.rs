//! What follows the first stage gives the same rows in the same order on any number of threads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use tersecades_engine::expression::col;
use tersecades_engine::operator::over::{Bound, Frame, Over, OverCall, OverFunction, Units};
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::operator::row::shape::{GIVEN_ROWS, concat};
use tersecades_engine::operator::sort::Sort;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::{Error, ErrorKind, Result, runtime::Interrupt};

const ROWS: usize = 3 * GIVEN_ROWS + 1_000;
const BATCH: usize = 50_000;
const DEVIATION: OverFunction = OverFunction::Variance {
    sample: true,
    root: true,
};
const THREADS: [usize; 3] = [2, 3, 8];

fn draw(row: usize, salt: u64) -> usize {
    ((row as u64 + salt * 1_000_003).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize
}

/// Columns `id`; `few`, `many`: texts of 4 and of 60,000 values; `n`: numbers with ties; `v`:
/// values; all but the first with nulls.
fn batch(rows: std::ops::Range<usize>) -> RecordBatch {
    let some = |row: usize, salt: u64| !draw(row, salt).is_multiple_of(11);
    let ids = rows.clone().map(|row| row as i64);
    let text = |salt: u64, of: usize| -> ArrayRef {
        let text = |row| some(row, salt).then(|| format!("text {}", draw(row, salt + 1) % of));
        Arc::new(rows.clone().map(text).collect::<StringArray>())
    };
    let number = |row| some(row, 5).then(|| (draw(row, 6) % 5_000) as i64 - 900);
    let value = |row| some(row, 7).then(|| draw(row, 8) as f64 / 64.0);
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ("few", text(1, 4)),
        ("many", text(3, 60_000)),
        (
            "n",
            Arc::new(rows.clone().map(number).collect::<Int64Array>()),
        ),
        (
            "v",
            Arc::new(rows.clone().map(value).collect::<Float64Array>()),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn stream(rows: usize) -> Stream {
    let starts = (0..rows).step_by(BATCH);
    let batches = starts.map(|start| batch(start..rows.min(start + BATCH)));
    Stream::from_batches(batch(0..0).schema(), batches.collect())
}

fn all(running: Running) -> RecordBatch {
    let batches: Result<Vec<RecordBatch>> = running.collect();
    concat(&batches.unwrap()).unwrap()
}

fn over(of: Stream, partition: &[&str], order: &str) -> Stream {
    let call = |function, argument: Option<&str>, output: &str| OverCall {
        function,
        argument: argument.map(String::from),
        default: None,
        frame: Frame {
            units: Units::Rows,
            start: Bound::Shifted(-2),
            end: Bound::Current,
        },
        output: String::from(output),
    };
    of.rows(Over {
        partition: partition.iter().map(|name| String::from(*name)).collect(),
        order: vec![(col(order), SortOrder::ASCENDING)],
        calls: vec![
            call(OverFunction::Shift(1), Some("id"), "before"),
            call(OverFunction::Mean, Some("v"), "mean"),
            call(DEVIATION, Some("v"), "deviation"),
            call(OverFunction::Rank, None, "rank"),
            call(OverFunction::Last, Some("many"), "last"),
        ],
    })
}

#[test]
fn what_is_around_rows_is_the_same() {
    let rows = stream(ROWS);
    for (partition, order) in [
        (vec!["many"], "n"),
        (vec!["few", "n"], "id"),
        (vec!["n"], "few"),
        (vec!["few"], "v"),
        (vec![], "n"),
    ] {
        let around = |threads| over(rows.clone(), &partition, order).threads(threads).run();
        let expected = all(around(1).unwrap());
        assert_eq!(expected.num_rows(), ROWS);
        for threads in THREADS {
            let found = all(around(threads).unwrap());
            assert!(
                found == expected,
                "{partition:?} {order}, {threads} threads"
            );
        }
    }
}

#[test]
fn nothing_is_around_no_rows() {
    for threads in [1, 3] {
        let none = over(stream(0), &["few"], "n").threads(threads);
        let rows = none.run().unwrap().map(|batch| batch.unwrap().num_rows());
        assert_eq!(rows.sum::<usize>(), 0);
    }
}

fn sorted(of: Stream, by: &[(&str, SortOrder)]) -> Stream {
    of.rows(Sort {
        by: by
            .iter()
            .map(|(name, order)| (col(*name), *order))
            .collect(),
        extent: Extent::Whole,
    })
}

#[test]
fn what_is_sorted_is_the_same() {
    let (up, down) = (SortOrder::ASCENDING, SortOrder::DESCENDING);
    for (rows, by) in [
        (ROWS, vec![("n", up)]),
        (200_000, vec![("many", down), ("n", up)]),
        (200_000, vec![("few", up)]),
        (200_000, vec![("v", down), ("many", up)]),
        (200_000, vec![("id", down)]),
        (65_536, vec![("n", down)]),
        (10, vec![("n", up)]),
        (0, vec![("n", up)]),
    ] {
        let rows = stream(rows);
        let run = |threads| sorted(rows.clone(), &by).threads(threads).run().unwrap();
        let expected: Vec<RecordBatch> = run(1).map(Result::unwrap).collect();
        for threads in THREADS {
            let found: Vec<RecordBatch> = run(threads).map(Result::unwrap).collect();
            assert!(found == expected, "{by:?}, {threads} threads");
        }
    }
}

#[test]
fn rows_of_one_key_stay_as_they_came() {
    let rows = stream(200_000).project([("id", col("id")), ("few", col("few"))]);
    let by = [("few", SortOrder::ASCENDING)];
    let sorted = all(sorted(rows, &by).threads(3).run().unwrap());
    let ids = sorted.column(0).as_primitive::<Int64Type>().values();
    let turns = ids.windows(2).filter(|pair| pair[0] > pair[1]).count();
    // Four texts and null.
    assert_eq!(turns, 4);
}

/// What comes out of the first step that gives something.
fn first_part(running: &mut Running) -> Vec<RecordBatch> {
    loop {
        assert!(running.step().unwrap(), "all came out at once");
        let ready: Vec<RecordBatch> = std::iter::from_fn(|| running.take_result()).collect();
        if !ready.is_empty() {
            return ready;
        }
    }
}

#[test]
fn a_snapshot_between_portions_serves_other_numbers_of_threads() {
    let around = |rows, threads| over(stream(rows), &["many"], "n").threads(threads).run();
    let expected = all(around(ROWS, 1).unwrap());
    for (before, after) in [(1, 3), (2, 1), (2, 8)] {
        let mut running = around(ROWS, before).unwrap();
        let mut batches = first_part(&mut running);
        let first: usize = batches.iter().map(RecordBatch::num_rows).sum();
        // As many portions as threads, each of a few rows more than it has to have.
        assert_eq!(first / GIVEN_ROWS, before);
        let snapshot = running.snapshot().unwrap();
        let mut after = around(0, after).unwrap();
        after.restore(&snapshot).unwrap();
        batches.extend(after.map(Result::unwrap));
        assert!(concat(&batches).unwrap() == expected);
    }
}

#[test]
fn threads_are_interrupted() {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let interrupt = Interrupt::new(
        move || match seen.load(std::sync::atomic::Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::Interrupted, "enough")),
        },
    );
    let around = over(stream(ROWS), &["many"], "n").interrupt(interrupt);
    let mut running = around.threads(2).run().unwrap();
    first_part(&mut running);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = running.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(running.next().is_none());
}
