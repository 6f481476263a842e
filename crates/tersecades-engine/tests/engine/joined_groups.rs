//! Groups of a whole stream, so many that workers' panes stay apart until the result is made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;

const ROWS: usize = 450_000;
const BATCH_ROWS: usize = 20_000;

fn draw(row: usize, salt: u64) -> u64 {
    (row as u64 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// About 120,000 groups by each set of keys.
fn batch(nulls: bool) -> RecordBatch {
    let key = |row: usize| draw(row, 1) % 120_000;
    let present = |row: usize| !nulls || !row.is_multiple_of(9_001);
    let integer = |row: usize| present(row).then(|| key(row) as i64 - 50_000);
    let sparse = |row: usize| present(row).then(|| (key(row) as i64 - 9) << 40);
    let text = |row: usize| present(row).then(|| format!("{}", key(row) * 7 % 90_000));
    let small = |row: usize| Some((key(row) % 3) as i64);
    let value = |row: usize| (draw(row, 2) % 5_000) as i64 - 700;
    let wide = (0..ROWS).map(|row| Some(i128::from(key(row)) << 70));
    let columns: [(&str, ArrayRef); 6] = [
        ("d", Arc::new(wide.collect::<Decimal128Array>())),
        (
            "i",
            Arc::new((0..ROWS).map(integer).collect::<Int64Array>()),
        ),
        ("w", Arc::new((0..ROWS).map(sparse).collect::<Int64Array>())),
        ("t", Arc::new((0..ROWS).map(text).collect::<StringArray>())),
        ("s", Arc::new((0..ROWS).map(small).collect::<Int64Array>())),
        (
            "v",
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(value))),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn started(batch: &RecordBatch, keys: &[&str], threads: usize) -> Running {
    let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
    let rows = |start: usize| BATCH_ROWS.min(batch.num_rows() - start);
    let batches = starts.map(|start| batch.slice(start, rows(start)));
    let stream = Stream::from_batches(batch.schema(), batches.collect()).threads(threads);
    let calls = ["sum", "min", "max", "variance"].map(|name| call(name, col("v")).alias(name));
    let groups = stream.group_by(keys.iter().copied());
    groups
        .aggregate(calls.into_iter().chain([count()]))
        .run()
        .unwrap()
}

fn answer(running: Running) -> (RecordBatch, usize) {
    let batches: Vec<RecordBatch> = running.map(Result::unwrap).collect();
    let all = concat_batches(&batches[0].schema(), &batches).unwrap();
    (all, batches.len())
}

#[test]
fn groups_of_several_panes_are_those_of_one() {
    let mut apart = 0;
    for (nulls, keys, shared) in [
        (false, vec!["i"], true),
        (false, vec!["w"], true),
        (false, vec!["t"], true),
        (true, vec!["i"], true),
        // More than 64 bits.
        (true, vec!["i", "s"], true),
        (true, vec!["t", "s"], true),
        // A first column of more.
        (false, vec!["d", "i"], false),
    ] {
        let batch = batch(nulls);
        let (expected, _) = answer(started(&batch, &keys, 1));
        for threads in [2, 3] {
            let (found, batches) = answer(started(&batch, &keys, threads));
            assert!(found == expected, "{keys:?}, {threads} threads");
            // Workers that were given few frames have no pane to be kept apart; shares of those
            // that are hold about 65,536 groups.
            let most = if shared { threads.max(6) } else { 1 };
            assert!(batches <= most, "{keys:?}: {batches} batches");
            apart += batches - 1;
        }
    }
    assert!(apart > 0, "no panes were kept apart");
}

#[test]
fn panes_that_stay_apart_survive_a_snapshot() {
    let batch = batch(false);
    let (expected, _) = answer(started(&batch, &["i"], 1));
    let half = BATCH_ROWS * (ROWS / BATCH_ROWS / 2);
    let mut first = started(&batch.slice(0, half), &["i"], 2);
    (0..half / BATCH_ROWS).for_each(|_| assert!(first.step().unwrap()));
    let snapshot = first.snapshot().unwrap();
    for threads in [1, 2] {
        let rest = batch.slice(half, ROWS - half);
        let mut second = started(&rest, &["i"], threads);
        second.restore(&snapshot).unwrap();
        let (found, _) = answer(second);
        assert!(found == expected, "{threads} threads");
    }
}

#[test]
fn more_groups_than_one_result_holds_come_in_order() {
    const GROUPS: usize = (1 << 20) + 4_321;
    // Each key twice, in no order.
    let key = |row: usize| ((row % GROUPS * 7_919 % GROUPS) as i64 - 9_000) << 30;
    let keys = Int64Array::from_iter_values((0..2 * GROUPS).map(key));
    let values = Int64Array::from_iter_values((0..2 * GROUPS).map(|row| row as i64));
    let columns: [(&str, ArrayRef); 2] = [("k", Arc::new(keys)), ("v", Arc::new(values))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for threads in [1, 2] {
        let (found, batches) = answer(started(&batch, &["k"], threads));
        assert!(batches > 8, "{batches} batches");
        let column = |name: &str| {
            let column = found.column_by_name(name).unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        };
        assert!(column("k").is_sorted(), "{threads} threads");
        assert!(column("count").iter().all(|count| *count == 2));
        let mut sums = vec![0; GROUPS];
        (0..2 * GROUPS).for_each(|row| sums[((key(row) >> 30) + 9_000) as usize] += row as i64);
        assert!(column("sum") == sums, "{threads} threads");
    }
}
