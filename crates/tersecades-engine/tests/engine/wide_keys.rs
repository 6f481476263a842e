//! Groups by more columns than a word has bits: nulls count in each of them.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_select::concat::concat_batches;
use tersecades_engine::aggregate::count;
use tersecades_engine::operator::row::keys::RowKeys;
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::global;
use tersecades_testkit::random::Random;

/// The columns whose values differ, and may be null: ends of words with bits for nulls.
const VARIED: [usize; 4] = [0, 63, 64, 129];

const BATCH_ROWS: usize = 1_500;

/// Columns of several types, of which most are all ones; only later batches have nulls.
fn batches(random: &mut Random, columns: usize) -> Vec<RecordBatch> {
    let batch = |index: usize| {
        let columns = (0..columns).map(|column| {
            let value = |_| match VARIED.contains(&column) {
                true if index > 0 && random.one_in(4) => None,
                true => Some(random.between(0, 5)),
                false => Some(1),
            };
            let values: Vec<Option<i64>> = (0..BATCH_ROWS).map(value).collect();
            let values = values.into_iter();
            let array: ArrayRef = match column % 4 {
                0 => Arc::new(Int64Array::from_iter(values)),
                1 => Arc::new(Int32Array::from_iter(
                    values.map(|value| value.map(|value| value as i32)),
                )),
                2 => Arc::new(StringArray::from_iter(
                    values.map(|value| value.map(|value| value.to_string())),
                )),
                _ => Arc::new(Decimal128Array::from_iter(
                    values.map(|value| value.map(i128::from)),
                )),
            };
            (format!("c{column}"), array, true)
        });
        RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap()
    };
    (0..3).map(batch).collect()
}

/// The values of the `columns` first columns of each row, as text.
fn texts(batch: &RecordBatch, columns: usize) -> Vec<String> {
    let text = |column: &ArrayRef, row| match column.is_null(row) {
        true => "null".to_owned(),
        false => array_value_to_string(column, row).unwrap(),
    };
    let row = |row| {
        let columns = batch.columns()[..columns].iter();
        let texts = columns.map(|column| text(column, row));
        texts.collect::<Vec<_>>().join(" ")
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The rows of each group, by its key as text; asserts that groups come in the order of keys.
fn groups(results: &[RecordBatch], columns: usize) -> BTreeMap<String, String> {
    let all = concat_batches(&results[0].schema(), results).unwrap();
    let keys = &all.columns()[..columns];
    let types = keys.iter().map(|key| key.data_type().clone());
    let ordered = RowKeys::unordered(types).unwrap().of(keys).unwrap();
    for row in 1..all.num_rows() {
        assert!(ordered.row(row - 1) < ordered.row(row), "group {row}");
    }
    let counts = all.columns().get(columns);
    let count = |row| counts.map_or(String::new(), |c| array_value_to_string(c, row).unwrap());
    let keys = texts(&all, columns).into_iter().enumerate();
    keys.map(|(row, key)| (key, count(row))).collect()
}

fn results(run: Running) -> Vec<RecordBatch> {
    run.map(Result::unwrap).collect()
}

#[test]
fn nulls_of_any_number_of_key_columns_tell_groups_apart() {
    let mut random = Random::new(0x51DE);
    for columns in [64, 65, 130] {
        let batches = batches(&mut random, columns);
        let mut expected = BTreeMap::<String, usize>::new();
        for key in batches.iter().flat_map(|batch| texts(batch, columns)) {
            *expected.entry(key).or_default() += 1;
        }
        assert!(expected.keys().any(|key| key.ends_with("null")) || columns == 64);
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        for threads in [1, 2] {
            let grouped = |batches: &[RecordBatch]| {
                let stream = Stream::from_batches(batches[0].schema(), batches.to_vec());
                stream
                    .threads(threads)
                    .window(global())
                    .group_by(names.clone())
            };
            let what = format!("{columns} columns, {threads} threads");
            let counts = expected
                .iter()
                .map(|(key, rows)| (key.clone(), rows.to_string()));
            let counts: BTreeMap<_, _> = counts.collect();
            let run = grouped(&batches).aggregate([count()]).run().unwrap();
            assert!(groups(&results(run), columns) == counts, "{what}");
            let run = grouped(&batches).aggregate([]).run().unwrap();
            let distinct = groups(&results(run), columns);
            assert!(distinct.keys().eq(expected.keys()), "{what}, distinct");
            // What was read before goes on from a snapshot.
            for read in [1, 2] {
                let mut first = grouped(&batches[..read])
                    .aggregate([count()])
                    .run()
                    .unwrap();
                while first.metrics().batches < read as u64 {
                    first.step().unwrap();
                }
                let mut rest = grouped(&batches[read..])
                    .aggregate([count()])
                    .run()
                    .unwrap();
                rest.restore(&first.snapshot().unwrap()).unwrap();
                assert!(
                    groups(&results(rest), columns) == counts,
                    "{what}, restored"
                );
            }
        }
    }
}
