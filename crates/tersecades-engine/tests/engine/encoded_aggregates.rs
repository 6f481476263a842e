//! Aggregates that look at every value, over columns under each codec, against plain loops.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use tersecades_engine::aggregate::{arg_max, arg_min, call, call_by};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::runtime::{Keep, Retained};
use tersecades_engine::stream::Stream;

const ROWS: usize = 9_000;
const GROUPS: usize = 7;

const SCHEMES: [&str; 11] = [
    "plain",
    "constant",
    "base_delta",
    "frame_of_reference",
    "patched(frame_of_reference)",
    "run_length",
    "number_dictionary",
    "delta(bit_pack)",
    "linear(bit_pack)",
    "gcd(frame_of_reference)",
    "sequence",
];

fn draw(row: usize) -> u64 {
    (row as u64 + 11).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// Values with ties, runs, holes, and at the ends of their type.
fn columns() -> Vec<Vec<Option<i64>>> {
    let of = |value: &dyn Fn(usize) -> Option<i64>| (0..ROWS).map(value).collect();
    vec![
        of(&|row| Some((draw(row) % 40) as i64 - 20)),
        of(&|row| (!draw(row).is_multiple_of(5)).then(|| (draw(row) % 9) as i64)),
        of(&|row| Some((row / 300 % 5) as i64)),
        of(&|row| Some(i64::MAX - (draw(row) % 3) as i64)),
        of(&|row| Some([i64::MIN, 0, i64::MAX][draw(row) as usize % 3])),
        of(&|_| None),
    ]
}

fn retained(values: &[Option<i64>], scheme: &str) -> Retained {
    let array: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    let rows = || (0..ROWS).map(|row| row as i64);
    let keys = Int64Array::from_iter_values(rows().map(|row| row * 5 % GROUPS as i64));
    let others = rows().map(|row| (row % 4 > 0).then_some(row));
    let columns: [(&str, ArrayRef); 3] = [
        ("v", array),
        ("k", Arc::new(keys)),
        ("w", Arc::new(Int64Array::from_iter(others))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let batches =
        [0..4_000, 4_000..4_001, 4_001..ROWS].map(|rows| batch.slice(rows.start, rows.len()));
    let stream = Stream::from_batches(batch.schema(), batches.to_vec()).encoding("v", scheme);
    let stream = stream.keep(Keep::Bytes(usize::MAX));
    let mut run = stream.aggregate([call("count", col("v"))]).run().unwrap();
    while run.step().unwrap() {}
    run.retained().unwrap().clone()
}

/// What each aggregate gives for `rows`, by definition.
fn expected(values: &[Option<i64>], rows: &[usize]) -> Vec<Option<i64>> {
    let known: Vec<(usize, i64)> = rows
        .iter()
        .filter_map(|row| Some((*row, values[*row]?)))
        .collect();
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    known
        .iter()
        .for_each(|(_, value)| *counts.entry(*value).or_default() += 1);
    let most = counts.values().copied().max();
    let mode = counts.iter().find(|(_, count)| Some(**count) == most);
    let other = |row: usize| (!row.is_multiple_of(4)).then_some(row as i64);
    let least = known.iter().map(|(_, value)| *value).min();
    let greatest = known.iter().map(|(_, value)| *value).max();
    let first = |end: Option<i64>| {
        let row = known.iter().find(|(_, value)| Some(*value) == end);
        row.and_then(|(row, _)| other(*row))
    };
    vec![
        Some(counts.len() as i64),
        mode.map(|(value, _)| *value),
        Some(known.iter().filter(|(_, value)| *value > 2).count() as i64),
        first(least),
        first(greatest),
        rows.last().and_then(|row| other(*row)),
    ]
}

fn calls() -> Vec<AggregateCall> {
    vec![
        call("count_distinct", col("v")).alias("distinct"),
        call("mode", col("v")).alias("mode"),
        call("count_if", col("v").gt(2)).alias("above"),
        arg_min(col("w"), col("v")).alias("at_least"),
        arg_max(col("w"), col("v")).alias("at_most"),
        call("last", col("w")).alias("last"),
    ]
}

fn integers(batch: &RecordBatch, row: usize, from: usize) -> Vec<Option<i64>> {
    let columns = batch.columns()[from..].iter();
    let value = |column: &ArrayRef| {
        let integers = column.as_primitive::<Int64Type>();
        integers.is_valid(row).then(|| integers.value(row))
    };
    columns.map(value).collect()
}

#[test]
fn aggregates_are_those_of_the_values_whatever_the_codec() {
    for values in columns() {
        for scheme in SCHEMES {
            let kept = retained(&values, scheme);
            let all: Vec<usize> = (0..ROWS).collect();
            let stream = || Stream::from_retained(&kept);
            let answer: Vec<_> = stream()
                .aggregate(calls())
                .run()
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(
                integers(&answer[0], 0, 0),
                expected(&values, &all),
                "{scheme}"
            );
            let some: Vec<usize> = all
                .iter()
                .copied()
                .filter(|row| row % 4 > 0 && *row > 100)
                .collect();
            let filtered = stream().filter(col("w").gt(100)).aggregate(calls());
            let answer: Vec<_> = filtered.run().unwrap().map(Result::unwrap).collect();
            assert_eq!(
                integers(&answer[0], 0, 0),
                expected(&values, &some),
                "{scheme}"
            );
            let grouped = stream().group_by(["k"]).aggregate(calls()).run().unwrap();
            let answer: Vec<_> = grouped.map(Result::unwrap).collect();
            assert_eq!(answer[0].num_rows(), GROUPS);
            for group in 0..GROUPS {
                let rows: Vec<usize> = all
                    .iter()
                    .copied()
                    .filter(|row| row * 5 % GROUPS == group)
                    .collect();
                assert_eq!(
                    integers(&answer[0], group, 1),
                    expected(&values, &rows),
                    "{scheme} {group}"
                );
            }
        }
    }
}

#[test]
fn floats_order_rows_with_nan_last() {
    let floats = [
        0.5,
        f64::NAN,
        -0.0,
        0.0,
        f64::NEG_INFINITY,
        f64::INFINITY,
        -f64::NAN,
    ];
    let by: ArrayRef = Arc::new(Float64Array::from_iter_values(
        (0..ROWS).map(|row| floats[row % 7]),
    ));
    let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..ROWS).map(|row| row as i64),
    ));
    let batch = RecordBatch::try_from_iter([("by", by), ("row", rows)]).unwrap();
    let calls = [
        arg_min(col("row"), col("by")),
        arg_max(col("row"), col("by")),
        call_by("arg_min_last", col("row"), col("by")),
        call_by("arg_max_last", col("row"), col("by")),
    ];
    let stream =
        Stream::from_batches(batch.schema(), vec![batch]).encoding("by", "number_dictionary");
    let mut run = stream
        .keep(Keep::Bytes(usize::MAX))
        .aggregate([call("count", col("by"))])
        .run()
        .unwrap();
    while run.step().unwrap() {}
    let kept = run.retained().unwrap().clone();
    let answer: Vec<_> = Stream::from_retained(&kept)
        .aggregate(calls)
        .run()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let rows = answer[0].columns().iter();
    let rows: Vec<i64> = rows
        .map(|row| row.as_primitive::<Int64Type>().value(0))
        .collect();
    let last = |nth: i64| (0..ROWS as i64).rfind(|row| row % 7 == nth).unwrap();
    assert_eq!(rows, [4, 1, last(4), last(1).max(last(6))]);
}

#[test]
fn ends_and_conditions_are_found_as_columns_lie() {
    let values: Vec<Option<i64>> = (0..ROWS)
        .map(|row| Some((draw(row) % 200) as i64))
        .collect();
    let kept = retained(&values, "frame_of_reference");
    let query = |calls: Vec<AggregateCall>| {
        let mut run = Stream::from_retained(&kept).aggregate(calls).run().unwrap();
        while run.step().unwrap() {}
        let tally = run.metrics().tally;
        tally.decoded + tally.gathered
    };
    for call in calls() {
        let name = call.output.clone();
        assert!(query(vec![call]) <= 4, "{name} decodes");
    }
}

#[test]
fn sums_of_two_columns_and_of_a_constant_are_computed_as_they_lie() {
    let a = |row: usize| 1_000 + (draw(row) % 200) as i64;
    let b = |row: usize| (draw(row) % 90) as i64 - 2_000_000;
    let column = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(value)))
    };
    let batch = RecordBatch::try_from_iter([("a", column(&a)), ("b", column(&b))]).unwrap();
    let (both, more, less) = (
        |row: usize| a(row) + b(row),
        |row: usize| a(row) + 7,
        |row: usize| b(row) - 7,
    );
    let tripled = |row: usize| a(row) * 3;
    type Case<'a> = (&'a str, &'a str, Expression, &'a dyn Fn(usize) -> i64);
    let cases: [Case<'_>; 7] = [
        ("base_delta", "base_delta", col("a") + col("b"), &both),
        (
            "frame_of_reference",
            "frame_of_reference",
            col("a") + col("b"),
            &both,
        ),
        (
            "frame_of_reference",
            "base_delta",
            col("a") + col("b"),
            &both,
        ),
        ("plain", "bit_pack", col("b") - lit(7_i64), &less),
        ("number_dictionary", "plain", lit(7_i64) + col("a"), &more),
        ("patched(bit_pack)", "plain", col("a") + lit(7_i64), &more),
        (
            "number_dictionary",
            "plain",
            col("a") * lit(3_i64),
            &tripled,
        ),
    ];
    for (of_a, of_b, what, value) in cases {
        let name = what.to_string();
        let expected: i64 = (0..ROWS).map(value).sum();
        let stream = Stream::from_batches(batch.schema(), vec![batch.clone()]);
        let stream = stream.encoding("a", of_a).encoding("b", of_b);
        let mut run = stream.aggregate([call("sum", what)]).run().unwrap();
        let answer: Vec<RecordBatch> = run.by_ref().map(Result::unwrap).collect();
        let sum = answer[0].column(0).as_primitive::<Int64Type>().value(0);
        assert_eq!(sum, expected, "{name} under {of_a} and {of_b}");
        let tally = run.metrics().tally;
        assert_eq!(tally.decoded, 0, "{name} under {of_a} and {of_b}");
    }
}

#[test]
fn texts_of_groups_are_counted_whichever_table_a_batch_has() {
    let text = |row: usize| (!row.is_multiple_of(7)).then(|| format!("text {}", draw(row) % 30));
    let keys = |row: usize| (row * 5 % GROUPS) as i64;
    // Tables of the batches begin with other texts.
    let batches = [0..2_000, 2_000..2_001, 2_001..ROWS].map(|rows| {
        let texts: ArrayRef = Arc::new(rows.clone().map(text).collect::<StringArray>());
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(keys)));
        RecordBatch::try_from_iter([("v", texts), ("k", keys)]).unwrap()
    });
    for scheme in [
        "dictionary",
        "dictionary(bit_pack)",
        "dictionary(run_length)",
    ] {
        let stream = Stream::from_batches(batches[0].schema(), batches.to_vec());
        let calls = [call("count_distinct", col("v")), call("mode", col("v"))];
        let groups = stream
            .encoding("v", scheme)
            .group_by(["k"])
            .aggregate(calls);
        let answer: Vec<RecordBatch> = groups.run().unwrap().map(Result::unwrap).collect();
        assert_eq!(answer[0].num_rows(), GROUPS);
        let modes = arrow_cast::cast(answer[0].column(2), &DataType::Utf8).unwrap();
        for group in 0..GROUPS {
            let key = Some(answer[0].column(0).as_primitive::<Int64Type>().value(group));
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            let of_group = (0..ROWS).filter(|row| Some(keys(*row)) == key);
            of_group
                .filter_map(text)
                .for_each(|text| *counts.entry(text).or_default() += 1);
            let distinct = answer[0].column(1).as_primitive::<Int64Type>().value(group);
            assert_eq!(distinct, counts.len() as i64, "{scheme}, {key:?}");
            let mode = modes.as_string::<i32>().value(group);
            let most = counts.values().copied().max();
            assert_eq!(counts.get(mode).copied(), most, "{scheme}, {key:?}: {mode}");
        }
    }
}
