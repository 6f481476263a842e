//! Rows read by their key: what a scan of the same key finds.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::types::Value;
use tersecades_store::{PointReader, Scan, Snapshot, Store, StoreOptions, StoreSchema};

const ROWS: i64 = 6_000;

/// Rows of 30 hosts and two ports, one of both each tick; every third value is null.
fn rows(first: i64, count: i64) -> RecordBatch {
    let all = first..first + count;
    let columns: [(&str, ArrayRef); 4] = [
        (
            "host",
            Arc::new(StringArray::from_iter_values(
                all.clone().map(|n| format!("host{:02}", n * 7 % 30)),
            )),
        ),
        (
            "port",
            Arc::new(Int32Array::from_iter_values(
                all.clone().map(|n| (n % 2) as i32 * 80 - 40),
            )),
        ),
        ("ts", Arc::new(Int64Array::from_iter_values(all.clone()))),
        (
            "v",
            Arc::new(Int64Array::from_iter(
                all.map(|n| (n % 3 != 0).then_some(n * n)),
            )),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A store with the key `key`, in several runs and in memory.
fn store(key: &[&str], keep_time: Option<i64>) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let schema = StoreSchema::new(&rows(0, 4).schema()).unwrap();
    let schema = schema.key(key).unwrap().time("ts").unwrap();
    let options = StoreOptions {
        buffer_rows: 900,
        level_ratio: 4,
        series_rows: 64,
        chunk_rows: 256,
        keep_time,
        ..StoreOptions::default()
    };
    let store = Store::create(folder.path(), schema, options).unwrap();
    let mut writer = store.writer().unwrap();
    for first in (0..ROWS).step_by(250) {
        writer.append(&rows(first, 250)).unwrap();
    }
    drop(writer);
    (folder, store)
}

fn as_text(row: &[Value]) -> String {
    format!("{row:?}")
}

/// The same by a scan, sorted.
fn scanned(snapshot: &Snapshot, key: &[(&str, Value)]) -> Vec<String> {
    let mut scan = Scan::default().columns(["v", "ts"]);
    for (column, value) in key {
        scan = scan.equal(column, value.clone());
    }
    let mut found = Vec::new();
    for part in snapshot.scan(&scan).unwrap() {
        let part = part.unwrap().to_arrow().unwrap();
        for row in 0..part.num_rows() {
            let value = |column: usize| {
                let array = part.column(column);
                let array = array.as_any().downcast_ref::<Int64Array>().unwrap();
                let array: &dyn arrow_array::Array = array;
                match array.is_null(row) {
                    true => Value::Null,
                    false => {
                        let array = array.as_any().downcast_ref::<Int64Array>().unwrap();
                        Value::Integer(array.value(row).into())
                    }
                }
            };
            found.push(as_text(&[value(0), value(1)]));
        }
    }
    found.sort();
    found
}

fn read(reader: &mut PointReader, key: &[Value]) -> Vec<String> {
    let rows = reader.find(key).unwrap();
    let mut rows: Vec<String> = rows.iter().map(|row| as_text(row)).collect();
    rows.sort();
    rows
}

#[test]
fn a_key_and_its_time_find_what_a_scan_finds() {
    for (key, keep_time) in [
        (&["host", "port"][..], None),
        (&["port", "host"][..], None),
        (&["port"][..], Some(2_000)),
    ] {
        let (_folder, store) = store(key, keep_time);
        let snapshot = store.snapshot();
        let mut reader = snapshot.point_reader(&["v", "ts"]).unwrap();
        let mut all = 0;
        for n in (0..ROWS + 40).step_by(37) {
            let part = |name: &&str| -> (&str, Value) {
                match *name {
                    "host" => ("host", format!("host{:02}", n * 7 % 31).into()),
                    _ => ("port", ((n % 2) * 80 - 40).into()),
                }
            };
            let mut wanted: Vec<(&str, Value)> = key.iter().map(part).collect();
            for _ in 0..2 {
                let values: Vec<Value> = wanted.iter().map(|(_, value)| value.clone()).collect();
                let found = read(&mut reader, &values);
                assert_eq!(found, scanned(&snapshot, &wanted), "{key:?} {wanted:?}");
                all += found.len();
                wanted.push(("ts", n.into()));
            }
        }
        assert!(all > 1_000, "only {all} rows were found");
        assert!(reader.opened() > 10);
    }
}

#[test]
fn keys_that_cannot_be_are_refused_or_not_found() {
    let (_folder, store) = store(&["port"], None);
    let snapshot = store.snapshot();
    let mut reader = snapshot.point_reader(&["v"]).unwrap();
    assert!(reader.find(&[]).is_err());
    assert!(reader.find(&[1.into(), 2.into(), 3.into()]).is_err());
    assert!(reader.find(&["text".into()]).is_err());
    for nowhere in [Value::Null, i64::MAX.into(), 39.into(), 40.5.into()] {
        assert!(reader.find(&[nowhere]).unwrap().is_empty());
    }
    assert!(snapshot.point_reader(&["w"]).is_err());
}

#[test]
fn groups_none_of_whose_rows_has_a_wanted_value_are_left_out() {
    let (_folder, store) = store(&["host"], None);
    let snapshot = store.snapshot();
    let times = |low: i64, high: i64| {
        let wanted = Predicate::between(&DataType::Int64, &low.into(), &high.into()).unwrap();
        let scan = Scan::default().columns(["ts"]);
        let found = snapshot.scan(&scan.passing("v", Arc::new(wanted))).unwrap();
        let mut times = Vec::new();
        for found in found {
            let rows = found.unwrap().to_arrow().unwrap();
            times.extend_from_slice(rows.column(0).as_primitive::<Int64Type>().values());
        }
        times
    };
    // The values of every group of its run begin below and end above it.
    let found = times(2_000 * 2_000, 2_000 * 2_000);
    assert!(found.contains(&2_000));
    assert!(found.len() <= 256, "{} rows", found.len());
    assert!(times(2_000 * 2_000 + 1, 2_000 * 2_000 + 1).is_empty());
    let all: HashSet<i64> = times(0, ROWS * ROWS).into_iter().collect();
    assert!((0..ROWS).all(|time| time % 3 == 0 || all.contains(&time)));
}
