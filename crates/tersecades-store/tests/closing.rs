//! Stores that are closed where no run can be written, and opened where files cannot be read; that
//! are made with options which make no sense, and opened again and again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_columnar::error::ErrorKind;
use tersecades_store::{Scan, Store, StoreOptions, StoreSchema};

#[test]
fn a_store_that_cannot_write_its_run_is_closed_with_its_rows_in_the_log() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        chunk_rows: 1_000,
        ..StoreOptions::default()
    };
    let schema = StoreSchema::new(&rows.schema()).unwrap();
    let store = Store::create(folder.path(), schema, options).unwrap();
    store.writer().unwrap().append(&rows).unwrap();
    let runs = folder.path().join("runs");
    std::fs::remove_dir_all(&runs).unwrap();
    std::fs::write(&runs, b"no folder").unwrap();
    let error = store.close().unwrap_err();
    let hint = error.hint_text().unwrap();
    assert_eq!(hint, "every row is stored, and the store is closed");
    std::fs::remove_file(&runs).unwrap();
    std::fs::create_dir(&runs).unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.snapshot().sequence(), 3_000);
    let found = store.snapshot().scan(&Scan::default()).unwrap();
    let found: usize = found.map(|it| it.unwrap().selection.count()).sum();
    assert_eq!(found, 3_000);
}

#[test]
fn a_store_that_cannot_merge_its_runs_is_closed_with_its_rows_in_one() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        chunk_rows: 1_000,
        level_ratio: 2,
        ..StoreOptions::default()
    };
    let schema = StoreSchema::new(&rows.schema()).unwrap();
    let schema = schema.key(&["n"]).unwrap();
    let store = Store::create(folder.path(), schema, options).unwrap();
    store.writer().unwrap().append(&rows).unwrap();
    store.flush().unwrap();
    store.writer().unwrap().append(&rows).unwrap();
    let run = folder.path().join("runs/0000000001.tcr");
    let whole = std::fs::read(&run).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    std::fs::write(&run, damaged).unwrap();
    let error = store.close().unwrap_err();
    let hint = error.hint_text().unwrap();
    assert_eq!(hint, "every row is stored, and the store is closed");
    std::fs::write(&run, whole).unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.snapshot().sequence(), 6_000);
    let found = store.snapshot().scan(&Scan::default()).unwrap();
    let found: usize = found.map(|it| it.unwrap().selection.count()).sum();
    assert_eq!(found, 6_000);
}

#[test]
fn files_that_nothing_needs_and_nobody_can_read_keep_no_store_from_opening() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let schema = StoreSchema::new(&rows.schema()).unwrap();
    let store = Store::create(folder.path(), schema, StoreOptions::default()).unwrap();
    store.writer().unwrap().append(&rows).unwrap();
    store.flush().unwrap();
    drop(store);
    // A folder in the place of a file: reading it is an error of the system.
    let strange = ["runs/0000000077.tcr", "log/0000000000.log"];
    for name in strange {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    for _ in 0..2 {
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.snapshot().sequence(), 3_000);
        store.flush().unwrap();
    }
    let aside = format!("{}.damaged", strange[0]);
    for name in [strange[1], &aside] {
        assert!(folder.path().join(name).is_dir(), "{name}");
    }
}

#[test]
fn options_that_make_no_sense_make_no_store_and_leave_nothing_in_the_way() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let schema = StoreSchema::new(&rows.schema()).unwrap();
    let senseless: [fn(&mut StoreOptions); 7] = [
        |options| options.level_ratio = 1,
        |options| options.buffer_rows = 0,
        |options| options.buffer_bytes = 0,
        |options| options.chunk_rows = 0,
        |options| options.series_rows = 0,
        |options| options.codecs.clear(),
        |options| options.tiers.clear(),
    ];
    for make_senseless in senseless {
        let folder = tempfile::tempdir().unwrap();
        let mut options = StoreOptions::default();
        make_senseless(&mut options);
        let made = Store::create(folder.path(), schema.clone(), options);
        let error = made.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.hint_text().is_some(), "{error}");
        let options = StoreOptions::default();
        let store = Store::create(folder.path(), schema.clone(), options).unwrap();
        store.writer().unwrap().append(&rows).unwrap();
        store.close().unwrap();
        Store::open(folder.path()).unwrap();
    }
}

#[test]
fn a_store_that_is_opened_often_keeps_few_segments_of_its_log() {
    let one: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1));
    let one = RecordBatch::try_from_iter([("n", one)]).unwrap();
    for rows in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let schema = StoreSchema::new(&one.schema()).unwrap();
        drop(Store::create(folder.path(), schema, StoreOptions::default()).unwrap());
        for time in 0..100 {
            let store = Store::open(folder.path()).unwrap();
            assert_eq!(store.snapshot().sequence(), time * rows as u64);
            store.writer().unwrap().append(&one.slice(0, rows)).unwrap();
            store.close().unwrap();
        }
        let segments = std::fs::read_dir(folder.path().join("log")).unwrap();
        let count = segments.count();
        assert!(count <= 1 + 16 * rows, "{count} segments");
    }
}
