//! Joins of equal keys give the same rows in the same order on any number of threads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use tersecades_engine::expression::{col, lit};
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::operator::row::shape::concat;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::{Error, ErrorKind, Result, runtime::Interrupt};

const THREADS: [usize; 4] = [1, 2, 3, 8];
const KINDS: [JoinKind; 8] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::LeftAnti,
    JoinKind::RightSemi,
    JoinKind::RightAnti,
];

/// How the keys of rows are drawn.
#[derive(Clone, Copy)]
struct Keys {
    of: i64,
    /// The first rows that have one key, which is shared by so many rows of the other side.
    hot: usize,
    salt: u64,
}

fn draw(row: usize, salt: u64) -> i64 {
    let mixed = (row as u64 + salt * 1_000_003).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 33).cast_signed()
}

/// Columns `k`, a number, and `t`, a text, both with nulls; `v`, a value; `id`, the row.
fn batch(rows: Range<usize>, Keys { of, hot, salt }: Keys) -> RecordBatch {
    let key = |row: usize| if row < hot { -1 } else { draw(row, salt) % of };
    let some = |row: usize| row < hot || draw(row, salt + 1) % 13 != 0;
    let number = |row: usize| some(row).then(|| key(row));
    let text = |row: usize| some(row).then(|| format!("text {}", key(row) % 700));
    let value = |row: usize| draw(row, salt + 2) % 1_000;
    let columns: [(&str, ArrayRef); 4] = [
        (
            "k",
            Arc::new(rows.clone().map(number).collect::<Int64Array>()),
        ),
        (
            "t",
            Arc::new(rows.clone().map(text).collect::<StringArray>()),
        ),
        (
            "v",
            Arc::new(Int64Array::from_iter_values(rows.clone().map(value))),
        ),
        (
            "id",
            Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64))),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn stream(rows: usize, in_batch: usize, keys: Keys) -> Stream {
    let starts = (0..rows).step_by(in_batch);
    let batches = starts.map(|start| batch(start..rows.min(start + in_batch), keys));
    Stream::from_batches(batch(0..0, keys).schema(), batches.collect())
}

fn lefts(rows: usize, hot: usize) -> Stream {
    let of = 9_000;
    stream(rows, 6_000, Keys { of, hot, salt: 1 })
}

fn rights(rows: usize, hot: usize) -> Stream {
    let of = 9_000;
    stream(rows, 900, Keys { of, hot, salt: 9 })
}

fn options(residual: bool) -> JoinOptions {
    JoinOptions {
        residual: residual.then(|| col("v").lt(col("v_right"))),
        ..JoinOptions::default()
    }
}

fn all(running: Running) -> Option<RecordBatch> {
    let batches: Result<Vec<RecordBatch>> = running.collect();
    let batches = batches.unwrap();
    (!batches.is_empty()).then(|| concat(&batches).unwrap())
}

#[test]
fn rows_of_joins_are_the_same() {
    let sizes = [
        ((50_000, 3_000), (12_000, 25)),
        ((50_000, 0), (0, 0)),
        ((0, 0), (900, 0)),
    ];
    for ((left, left_hot), (right, right_hot)) in sizes {
        let sides = (lefts(left, left_hot), rights(right, right_hot));
        for kind in KINDS {
            for (on, residual) in [("k", false), ("t", true)] {
                let joined = |threads| {
                    let left = sides.0.clone();
                    let on = [(on, on)];
                    let joined = left.join(sides.1.clone(), kind, &on, options(residual));
                    all(joined.unwrap().threads(threads).run().unwrap())
                };
                let expected = joined(1);
                for threads in &THREADS[1..] {
                    let found = joined(*threads);
                    assert!(found == expected, "{kind:?} by {on}, {threads} threads");
                }
            }
        }
    }
}

/// Pairs of the first left rows: more than a thread makes of them at once.
#[test]
fn rows_with_very_many_pairs_are_the_same() {
    for kind in [JoinKind::Inner, JoinKind::Full, JoinKind::LeftSemi] {
        let joined = |threads| {
            let joined =
                lefts(20_000, 6_000).join(rights(2_000, 150), kind, &[("k", "k")], options(false));
            let named = joined
                .unwrap()
                .project([("id", col("id")), ("v", col("v"))]);
            all(named.threads(threads).run().unwrap())
        };
        let expected = joined(1);
        for threads in &THREADS[1..] {
            assert!(joined(*threads) == expected, "{kind:?}, {threads} threads");
        }
    }
}

#[test]
fn cross_joins_are_the_same() {
    let joined = |threads| {
        let (left, right) = (lefts(9_000, 0), rights(130, 0));
        let crossed = left.join(right, JoinKind::Cross, &[], options(true));
        all(crossed.unwrap().threads(threads).run().unwrap())
    };
    let expected = joined(1);
    for threads in &THREADS[1..] {
        assert!(joined(*threads) == expected, "{threads} threads");
    }
}

#[test]
fn snapshots_serve_other_numbers_of_threads() {
    for (kind, residual) in [(JoinKind::Full, false), (JoinKind::LeftSemi, true)] {
        let joined = |threads: usize| {
            let (left, right) = (lefts(40_000, 3_000), rights(9_000, 90));
            let joined = left.join(right, kind, &[("k", "k")], options(residual));
            joined.unwrap().threads(threads).run().unwrap()
        };
        let expected = all(joined(1));
        for (before, after) in [(1, 3), (3, 1), (3, 8), (8, 2)] {
            for stop in [1, 2, 4, 7] {
                let mut first = joined(before);
                let mut batches = Vec::new();
                for _ in 0..stop {
                    first.step().unwrap();
                    batches.extend(std::iter::from_fn(|| first.take_result()));
                }
                let mut second = joined(after);
                second.restore(&first.snapshot().unwrap()).unwrap();
                batches.extend(second.map(Result::unwrap));
                let found = Some(concat(&batches).unwrap());
                assert!(found == expected, "{kind:?} {before} {after}, step {stop}");
            }
        }
    }
}

#[test]
fn threads_that_find_no_pair_are_interrupted() {
    let checks = std::sync::atomic::AtomicUsize::new(0);
    let interrupt =
        Interrupt::new(
            move || match checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0..60 => Ok(()),
                _ => Err(Error::new(ErrorKind::Interrupted, "enough")),
            },
        );
    let never = JoinOptions {
        residual: Some((col("v") + col("v_right")).lt(lit(-1))),
        ..JoinOptions::default()
    };
    let joined =
        lefts(60_000, 60_000).join(rights(900, 900), JoinKind::Inner, &[("k", "k")], never);
    let mut running = joined
        .unwrap()
        .threads(3)
        .interrupt(interrupt)
        .run()
        .unwrap();
    let error = running.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(running.next().is_none());
}

#[test]
fn the_first_error_is_told() {
    // The sum leaves its type in the last left rows; the text of it says in which.
    let joined = |threads| {
        let sum = col("id") + lit(i64::MAX - 38_999);
        let options = JoinOptions {
            residual: Some(sum.gt(col("v_right"))),
            ..JoinOptions::default()
        };
        let (left, right) = (lefts(40_000, 0), rights(9_000, 0));
        let joined = left.join(right, JoinKind::Inner, &[("k", "k")], options);
        let rows: Result<Vec<RecordBatch>> =
            joined.unwrap().threads(threads).run().unwrap().collect();
        rows.unwrap_err()
    };
    let expected = joined(1);
    assert_eq!(expected.kind(), ErrorKind::LimitExceeded);
    for threads in &THREADS[1..] {
        assert_eq!(joined(*threads).to_string(), expected.to_string());
    }
}
