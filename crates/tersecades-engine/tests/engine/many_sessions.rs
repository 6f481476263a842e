//! Sessions of few keys in numbers, all open at once: one behind the other, disordered, joined.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use tersecades_engine::aggregate::count;
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, session};
use tersecades_testkit::random::Random;

const GAP: i64 = 100;

/// Start, end, key and rows of each session.
type Sessions = Vec<(i64, i64, i64, i64)>;

/// The sessions of rows, each a time and a key.
fn expected(rows: &[(i64, i64)]) -> Sessions {
    let mut times = BTreeMap::<i64, Vec<i64>>::new();
    for (time, key) in rows {
        times.entry(*key).or_default().push(*time);
    }
    let mut sessions = Sessions::new();
    for (key, mut times) in times {
        times.sort_unstable();
        let of = times.chunk_by(|earlier, later| later - earlier < GAP);
        sessions.extend(of.map(|s| (s[0], s[s.len() - 1] + GAP, key, s.len() as i64)));
    }
    sessions.sort_by_key(|(start, end, key, _)| (*end, *start, *key));
    sessions
}

fn batches(rows: &[(i64, i64)], batch_rows: usize) -> Vec<RecordBatch> {
    let batch = |rows: &[(i64, i64)]| {
        let times = rows.iter().map(|(time, _)| *time);
        let keys = rows.iter().map(|(_, key)| *key);
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(times));
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
        RecordBatch::try_from_iter([("time", times), ("key", keys)]).unwrap()
    };
    rows.chunks(batch_rows).map(batch).collect()
}

fn start(batches: Vec<RecordBatch>, lateness: i64, emit: Emit) -> Running {
    let lateness = Duration::from_millis(lateness.unsigned_abs());
    Stream::from_batches(batches[0].schema(), batches)
        .event_time(col("time"), lateness)
        .window(session(Duration::from_millis(GAP.unsigned_abs())).emit(emit))
        .group_by(["key"])
        .aggregate([count()])
        .run()
        .unwrap()
}

/// Takes in what comes out.
fn take_in(stand: &mut Sessions, results: &RecordBatch) {
    let [starts, ends] = [0, 1].map(|index| {
        let times = results.column(index);
        times
            .as_primitive::<TimestampMillisecondType>()
            .values()
            .clone()
    });
    let [keys, counts] = [2, 3].map(|index| {
        let numbers = results.column(index);
        numbers.as_primitive::<Int64Type>().values().clone()
    });
    let changes = results
        .columns()
        .get(4)
        .map(|changes| changes.as_string::<i32>());
    for row in 0..results.num_rows() {
        let session = (starts[row], ends[row], keys[row], counts[row]);
        match changes.map_or("insert", |changes| changes.value(row)) {
            "insert" => stand.push(session),
            "delete" => stand.retain(|known| *known != session),
            _ => stand.retain_mut(|known| {
                if (known.0, known.1, known.2) == (session.0, session.1, session.2) {
                    *known = session;
                }
                true
            }),
        }
    }
}

fn found(rows: &[(i64, i64)], batch_rows: usize, lateness: i64, emit: Emit) -> Sessions {
    let mut stand = Sessions::new();
    let run = start(batches(rows, batch_rows), lateness, emit);
    run.for_each(|results| take_in(&mut stand, &results.unwrap()));
    stand
}

#[test]
fn sessions_one_after_the_other_in_one_batch() {
    for step in [GAP / 2, GAP, GAP * 2] {
        let rows: Vec<_> = (0..150_000).map(|row| (row * step, 0)).collect();
        let expected = expected(&rows);
        for lateness in [0, i64::from(u32::MAX)] {
            let found = found(&rows, rows.len(), lateness, Emit::Final);
            assert!(found == expected, "step {step}, lateness {lateness}");
        }
    }
}

/// Each second row joins the two sessions next to it, of which the earlier is the newer.
#[test]
fn sessions_that_are_joined_backwards_in_one_batch() {
    let times = (0..200_000).map(|row: i64| match row % 2 {
        0 => -row * GAP * 3 / 4 + GAP * 3 / 4 * i64::from(row > 0),
        _ => -(row + 1) * GAP * 3 / 4,
    });
    let rows: Vec<_> = times.map(|time| (time, 0)).collect();
    let expected = expected(&rows);
    assert_eq!(expected.len(), 2);
    for emit in [Emit::Final, Emit::Update] {
        let found = found(&rows, rows.len(), i64::from(u32::MAX), emit);
        assert!(found == expected, "{emit:?}");
    }
}

#[test]
fn sessions_of_rows_in_any_order() {
    let mut random = Random::new(0x5E55);
    for round in 0..60 {
        let (reach, keys) = (*random.pick(&[30, 300, 3_000]), *random.pick(&[1, 3]));
        let row = |_| {
            (
                random.between(0, reach * GAP / 10),
                random.between(0, keys - 1),
            )
        };
        let rows: Vec<_> = (0..1_000).map(row).collect();
        let expected = expected(&rows);
        for batch_rows in [1_000, 37] {
            for emit in [Emit::Final, Emit::Update] {
                let mut found = found(&rows, batch_rows, reach * GAP, emit);
                found.sort_by_key(|(start, end, key, _)| (*end, *start, *key));
                assert_eq!(
                    found, expected,
                    "round {round}, {batch_rows} rows, {emit:?}"
                );
            }
        }
    }
}

/// A few sessions close with each batch, and many more are open, of several that were joined.
#[test]
fn sessions_close_whole_among_many_across_a_restart() {
    const DISORDER: i64 = 1_000;
    let mut random = Random::new(0xC105E);
    let row = |at: i64| {
        let time = at * 2 + random.between(0, DISORDER);
        (time, random.between(0, 29))
    };
    let rows: Vec<_> = (0..6_000).map(row).collect();
    let batches = batches(&rows, 50);
    for (stop, emit) in [40, 90].into_iter().zip([Emit::Final, Emit::Update]) {
        let (before, behind) = batches.split_at(stop);
        let mut stand = Sessions::new();
        let mut first = start(before.to_vec(), DISORDER, emit);
        for _ in before {
            first.step().unwrap();
            while let Some(results) = first.take_result() {
                take_in(&mut stand, &results);
            }
        }
        let mut rest = start(behind.to_vec(), DISORDER, emit);
        rest.restore(&first.snapshot().unwrap()).unwrap();
        assert!(
            stand.len() > 50,
            "{} sessions before the restart",
            stand.len()
        );
        rest.for_each(|results| take_in(&mut stand, &results.unwrap()));
        stand.sort_by_key(|(start, end, key, _)| (*end, *start, *key));
        assert!(
            stand == expected(&rows),
            "{emit:?}, restart behind {stop} batches"
        );
    }
}
