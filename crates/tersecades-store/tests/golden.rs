//! Stores that earlier releases wrote, in `tests/golden`, are read.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use tersecades_store::{Scan, Store, StoreOptions, StoreSchema, upgrade};

const ROWS: i64 = 3_000;
/// Rows that are in the log alone.
const LOG_ROWS: i64 = 100;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn rows(range: std::ops::Range<i64>) -> RecordBatch {
    let numbers = || range.clone();
    let hosts: ArrayRef = Arc::new(StringArray::from_iter_values(
        numbers().map(|n| format!("host {}", n % 5)),
    ));
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers().map(|n| n * 10)));
    let values: ArrayRef = Arc::new(Float64Array::from_iter(
        numbers().map(|n| (n % 11 != 0).then_some(n as f64 / 8.0)),
    ));
    RecordBatch::try_from_iter([("host", hosts), ("ts", times), ("v", values)]).unwrap()
}

/// Writes the store of the version that this release writes.
#[test]
#[ignore = "run by hand when the format changes"]
fn write_golden_store() {
    let target = folder().join("v4");
    std::fs::remove_dir_all(&target).ok();
    let schema = StoreSchema::new(&rows(0..1).schema()).unwrap();
    let schema = schema.key(&["host"]).unwrap().time("ts").unwrap();
    let store = Store::create(&target, schema, StoreOptions::default()).unwrap();
    let mut writer = store.writer().unwrap();
    for first in (0..ROWS - LOG_ROWS).step_by(1_450) {
        writer.append(&rows(first..first + 1_450)).unwrap();
        store.flush().unwrap();
    }
    let mut feed = store.feed("numbers").unwrap();
    feed.append(&rows(ROWS - LOG_ROWS..ROWS)).unwrap();
    feed.finish().unwrap();
    store.close().unwrap();
    std::fs::remove_file(target.join("LOCK")).unwrap();
}

#[test]
fn stores_of_earlier_versions_become_ones_of_this_version_and_keep_their_rows() {
    let copied = tempfile::tempdir().unwrap();
    copy(&folder().join("v0"), copied.path());
    let read = || {
        let store = Store::open_read_only(copied.path()).unwrap();
        let found = store.snapshot().scan(&Scan::default()).unwrap();
        let rows: usize = found.map(|found| found.unwrap().rows()).sum();
        rows as i64
    };
    assert_eq!(read(), ROWS);
    assert_eq!(upgrade(copied.path()).unwrap(), (0, 4));
    assert_eq!(read(), ROWS);
    assert_eq!(upgrade(copied.path()).unwrap(), (4, 4));
    let store = Store::open(copied.path()).unwrap();
    assert_eq!(store.feed("numbers").unwrap().rows(), 0);
    drop(store);
    for (version, name) in [(1, "v1"), (2, "v2"), (3, "v3"), (4, "v4")] {
        let later = copied.path().join(name);
        copy(&folder().join(name), &later);
        let store = Store::open(&later).unwrap();
        assert_eq!(store.feed("numbers").unwrap().rows() as i64, LOG_ROWS);
        drop(store);
        // Opened for writing it is one of this version, whose runs may be older.
        assert_eq!(upgrade(&later).unwrap(), (4, 4), "version {version}");
        assert!(
            Store::open(&later)
                .unwrap()
                .verify()
                .unwrap()
                .damage
                .is_empty()
        );
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => std::fs::copy(entry.path(), target).map(drop).unwrap(),
        }
    }
}

#[test]
fn golden_stores_of_every_version_are_read() {
    let mut versions = 0;
    for version in std::fs::read_dir(folder()).unwrap() {
        let store = Store::open_read_only(&version.unwrap().path()).unwrap();
        let mut found = Vec::new();
        for piece in store.snapshot().scan(&Scan::default()).unwrap() {
            let batch = piece.unwrap().to_arrow().unwrap();
            let texts: Vec<Vec<String>> = (0..batch.num_columns())
                .map(|column| {
                    let array = batch.column(column);
                    let format =
                        arrow_cast::display::ArrayFormatter::try_new(array, &Default::default());
                    let format = format.unwrap();
                    (0..batch.num_rows())
                        .map(|row| format.value(row).to_string())
                        .collect()
                })
                .collect();
            found.extend((0..batch.num_rows()).map(|row| {
                let number: i64 = texts[1][row].parse::<i64>().unwrap() / 10;
                (number, texts[0][row].clone(), texts[2][row].clone())
            }));
        }
        found.sort();
        assert_eq!(found.len() as i64, ROWS);
        for (expected, (number, host, value)) in (0..ROWS).zip(found) {
            assert_eq!((number, host), (expected, format!("host {}", expected % 5)));
            match expected % 11 {
                0 => assert_eq!(value, ""),
                _ => assert_eq!(value.parse::<f64>().unwrap(), expected as f64 / 8.0),
            }
        }
        assert!(store.verify().unwrap().damage.is_empty());
        versions += 1;
    }
    assert!(versions > 0, "no golden store in {}", folder().display());
}
