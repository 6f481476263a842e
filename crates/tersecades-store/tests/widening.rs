//! Rows of other types than the store's columns.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float32Array, Int64Array, RecordBatch, TimestampMillisecondArray, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use tersecades_store::{Scan, Store, StoreOptions, StoreSchema};

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
