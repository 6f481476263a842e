//! Rows of other types than the store's columns, and texts that lie in runs in several forms.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
    UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use tersecades_store::{CodecPolicy, Scan, Store, StoreOptions, StoreSchema};

#[test]
fn narrower_numbers_and_coarser_times_are_stored_as_the_columns_say() {
    let timestamp = |unit| DataType::Timestamp(unit, None);
    let fields = [
        ("ts", timestamp(TimeUnit::Microsecond)),
        ("n", DataType::Int64),
        ("x", DataType::Float64),
        ("u", DataType::Int32),
    ];
    let fields = fields.map(|(name, it)| Field::new(name, it, true));
    let schema = StoreSchema::new(&Schema::new(fields.to_vec())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema, StoreOptions::default()).unwrap();
    let mut writer = store.writer().unwrap();
    let one = |name: &str, array: ArrayRef| RecordBatch::try_from_iter([(name, array)]).unwrap();
    let times = |at: i64| -> ArrayRef { Arc::new(TimestampMillisecondArray::from(vec![at])) };
    for fits in [
        one("ts", times(-1)),
        one("n", Arc::new(UInt32Array::from(vec![u32::MAX]))),
        one("x", Arc::new(Float32Array::from(vec![0.5]))),
    ] {
        writer.append(&fits).unwrap();
    }
    for misfit in [
        one("ts", times(i64::MAX)),
        one("u", Arc::new(UInt32Array::from(vec![1]))),
        one("u", Arc::new(Int64Array::from(vec![1]))),
        one("n", Arc::new(Float32Array::from(vec![0.5]))),
    ] {
        let error = writer.append(&misfit).unwrap_err();
        assert!(error.context().column.is_some(), "{error}");
    }
    let found = store.snapshot().scan(&Scan::default()).unwrap();
    let rows: Vec<RecordBatch> = found.map(|it| it.unwrap().to_arrow().unwrap()).collect();
    let rows = arrow_select::concat::concat_batches(&rows[0].schema(), &rows).unwrap();
    let shown = |name: &str, row: usize| {
        let column = rows.column_by_name(name).unwrap();
        arrow_cast::display::array_value_to_string(column, row).unwrap()
    };
    let found = [shown("ts", 0), shown("n", 1), shown("x", 2)];
    assert_eq!(found, ["1969-12-31T23:59:59.999", "4294967295", "0.5"]);
}

/// Texts of 64 hexadecimal digits, few of which are equal.
fn texts(from: u64, rows: u64, length: usize) -> RecordBatch {
    let numbers = from..from + rows;
    let keys = numbers.clone().map(|n| format!("h{}", n % 7));
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
    let text = |n: u64| format!("{:0length$x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(numbers.clone().map(text)));
    let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(numbers.map(|n| n as u32)));
    RecordBatch::try_from_iter([("k", keys), ("n", numbers), ("t", texts)]).unwrap()
}

#[test]
fn texts_with_a_table_and_without_go_together() {
    let schema = StoreSchema::new(&texts(0, 1, 64).schema()).unwrap();
    for primary in [false, true] {
        let schema = match primary {
            true => schema.clone().primary_key(&["k", "n"]).unwrap(),
            false => schema.clone().key(&["k"]).unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions {
            codecs: vec![CodecPolicy::None],
            level_ratio: 2,
            ..StoreOptions::default()
        };
        let store = Store::create(folder.path(), schema, options).unwrap();
        let parts = [
            texts(0, 6_000, 64),
            texts(6_000, 3_000, 1),
            texts(9_000, 3_000, 500),
        ];
        for part in &parts {
            store.writer().unwrap().append(part).unwrap();
            store.compact().unwrap();
        }
        let found = store.snapshot().scan(&Scan::default()).unwrap();
        let mut rows = Vec::new();
        for found in found {
            let batch = found.unwrap().to_arrow().unwrap();
            let text = |row| arrow_cast::display::array_value_to_string(batch.column(2), row);
            rows.extend((0..batch.num_rows()).map(|row| text(row).unwrap()));
        }
        let whole = |part: &RecordBatch| part.column(2).as_string::<i32>().clone();
        let mut expected: Vec<String> = parts
            .iter()
            .flat_map(|part| {
                whole(part)
                    .iter()
                    .flatten()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        rows.sort();
        expected.sort();
        assert!(
            rows == expected,
            "{} of {} rows",
            rows.len(),
            expected.len()
        );
    }
}

#[test]
fn nulls_of_columns_that_may_not_be_null_are_told_by_row() {
    let fields = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
    let schema = StoreSchema::new(&fields).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema, StoreOptions::default()).unwrap();
    let mut writer = store.writer().unwrap();
    let rows = |values: &[Option<i64>]| {
        let array: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("n", array, true)]).unwrap()
    };
    writer.append(&rows(&[Some(1), Some(2)])).unwrap();
    for _ in 0..2 {
        let error = writer.append(&rows(&[Some(3), None, None])).unwrap_err();
        assert_eq!(error.context().row, Some(4));
        assert_eq!(error.context().column.as_deref(), Some("n"));
    }
    assert_eq!(writer.append(&rows(&[Some(3)])).unwrap(), 3);
}
