//! The first groups of an order are those that sorting all of them puts first.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::col;
use tersecades_engine::operator::row::Extent;
use tersecades_engine::operator::row::keys::SortOrder;
use tersecades_engine::stream::Stream;

const ROWS: usize = 260_000;
const BATCH_ROWS: usize = 20_000;
/// Rows that are compared, at most.
const SHOWN: usize = 400;

fn draw(row: usize, salt: u64) -> u64 {
    let mixed = (row as u64 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

/// About 105,000 groups by each of the keys.
fn batch() -> RecordBatch {
    let key = |row: usize| draw(row, 1) % 120_000;
    let present = |row: usize, step: usize| !row.is_multiple_of(step);
    let integer = |row: usize| present(row, 9_001).then(|| key(row) as i64 - 50_000);
    let text = |row: usize| {
        let start = ["", "a long common start of texts, ", "é"][key(row) as usize % 3];
        present(row, 7_001).then(|| format!("{start}{}", key(row) * 7 % 100_000))
    };
    let float = |row: usize| match key(row) {
        0..5 => Some(f64::NAN),
        5..9 => Some(-0.0),
        9..12 => None,
        key => Some(key as f64 / 8.0 - 3.0),
    };
    let value = |row: usize| present(row, 3).then(|| (draw(row, 2) % 500) as i64 - 70);
    let integers = |value: &dyn Fn(usize) -> Option<i64>| -> ArrayRef {
        Arc::new((0..ROWS).map(value).collect::<Int64Array>())
    };
    let columns: [(&str, ArrayRef); 5] = [
        ("i", integers(&integer)),
        ("s", integers(&|row| Some(key(row) as i64 % 3))),
        ("t", Arc::new((0..ROWS).map(text).collect::<StringArray>())),
        (
            "f",
            Arc::new((0..ROWS).map(float).collect::<Float64Array>()),
        ),
        ("v", integers(&value)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn groups(batch: &RecordBatch, keys: &[&str], threads: usize) -> Stream {
    let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
    let batches = starts.map(|start| batch.slice(start, BATCH_ROWS.min(ROWS - start)));
    let stream = Stream::from_batches(batch.schema(), batches.collect()).threads(threads);
    let calls = ["sum", "max", "mean"].map(|name| call(name, col("v")).alias(name));
    let counted = stream.group_by(keys.iter().copied());
    let calls = calls.into_iter().chain([count().alias("n")]);
    counted.aggregate(calls)
}

/// How many rows there are, and the first [`SHOWN`] of them, texts as texts.
fn rows(stream: Stream) -> (usize, Vec<String>) {
    let batches: Vec<RecordBatch> = stream.run().unwrap().map(Result::unwrap).collect();
    let plain = |batch: &RecordBatch| {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, column)| {
            let column = match column.data_type() {
                DataType::Dictionary(_, texts) => cast(column, texts).unwrap(),
                _ => Arc::clone(column),
            };
            (field.name().clone(), column, true)
        });
        RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>())
    };
    let batches: Vec<RecordBatch> = batches.iter().map(|batch| plain(batch).unwrap()).collect();
    let Some(first) = batches.first() else {
        return (0, Vec::new());
    };
    let all = concat_batches(&first.schema(), &batches).unwrap();
    let shown = 0..all.num_rows().min(SHOWN);
    let shown = shown.map(|row| format!("{:?}", all.slice(row, 1).columns()));
    (all.num_rows(), shown.collect())
}

#[test]
fn the_first_of_many_groups_are_those_that_a_sort_puts_first() {
    let batch = batch();
    let mut largest = 0;
    for keys in [
        vec!["i"],
        vec!["t"],
        vec!["i", "s"],
        vec!["t", "i"],
        vec!["f"],
        vec!["s", "t"],
    ] {
        for (by, descending, nulls_first) in [
            ("n", true, false),
            ("n", false, false),
            ("sum", true, true),
            ("sum", false, false),
            ("max", true, false),
            ("mean", false, true),
            (keys[0], true, true),
            (keys[0], false, false),
        ] {
            let order = SortOrder {
                descending,
                nulls_first,
            };
            let mut by = vec![(col(by), order)];
            if descending && nulls_first {
                by.push((col(keys[keys.len() - 1]), SortOrder::DESCENDING));
            }
            let sorted = groups(&batch, &keys, 1).sort_in(Extent::Whole, by.clone());
            let (total, sorted) = rows(sorted);
            largest = largest.max(total);
            for (count, offset, threads) in [(5, 0, 1), (300, 40, 2), (0, 3, 1)] {
                let first = groups(&batch, &keys, threads);
                let renamed = keys.iter().copied().chain(["n", "sum", "max", "mean"]);
                let first = first.project(renamed.map(|name| (name, col(name))));
                let given = keys.iter().copied().chain(["sum", "max", "mean", "n"]);
                let first = first
                    .top_k_in(Extent::Whole, (count, offset), by.clone())
                    .project(given.map(|name| (name, col(name))));
                let context = format!("{keys:?} {by:?} {count} {offset} {threads}");
                let (found, first) = rows(first);
                assert_eq!(found, count, "{context}");
                assert!(first == sorted[offset..offset + count], "{context}");
            }
        }
    }
    assert!(largest > 65_536, "{largest} groups are few");
}
