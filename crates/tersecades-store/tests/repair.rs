//! What repair keeps, and what it says of the rest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_store::{Scan, Store, StoreOptions, StoreSchema, repair};

/// Rows of the keys `keys`, all of value `value`.
fn rows(keys: impl Iterator<Item = i64>, value: i64) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![value; keys.len()]));
    RecordBatch::try_from_iter([("k", keys), ("v", values)]).unwrap()
}

fn options() -> StoreOptions {
    StoreOptions {
        chunk_rows: 128,
        series_rows: 128,
        level_ratio: 100,
        ..StoreOptions::default()
    }
}

fn schema() -> StoreSchema {
    StoreSchema::new(&rows(0..1, 0).schema()).unwrap()
}

fn append(store: &Store, rows: &RecordBatch) {
    store.writer().unwrap().append(rows).unwrap();
    store.flush().unwrap();
}

/// The value of every key.
fn values(folder: &Path) -> BTreeMap<i64, i64> {
    let store = Store::open_read_only(folder).unwrap();
    let mut values = BTreeMap::new();
    for found in store.snapshot().scan(&Scan::default()).unwrap() {
        let batch = found.unwrap().to_arrow().unwrap();
        let column = |index: usize| {
            batch
                .column(index)
                .as_primitive::<Int64Type>()
                .values()
                .clone()
        };
        for (key, value) in column(0).iter().zip(&column(1)) {
            assert_eq!(values.insert(*key, *value), None, "key {key} twice");
        }
    }
    values
}

fn run(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("runs/{number:010}.tcr"))
}

/// Changes the byte at `at` of a file, from its end where it is negative.
fn flip(path: &Path, at: i64) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = if at < 0 { bytes.len() as i64 + at } else { at };
    bytes[at as usize] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_run_with_bytes_behind_its_end_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = Store::create(path, schema().key(&["k"]).unwrap(), options()).unwrap();
    append(&store, &rows(0..1_000, 1));
    store.close().unwrap();
    let mut bytes = std::fs::read(run(path, 1)).unwrap();
    bytes.extend_from_slice(&[7; 100]);
    std::fs::write(run(path, 1), bytes).unwrap();
    assert!(Store::open(path).is_err());
    let reader = Store::open_read_only(path).unwrap();
    assert!(reader.snapshot().scan(&Scan::default()).is_err());
    let repaired = repair(path).unwrap();
    assert!(repaired.given_up.is_empty(), "{repaired:?}");
    assert_eq!((repaired.lost_rows, repaired.appended_bytes), (0, 100));
    assert_eq!(values(path).len(), 1_000);
}

/// A store of a thousand keys, then newer values and deletions of some of them in a second run.
fn updated(path: &Path) -> BTreeMap<i64, i64> {
    let schema = schema().primary_key(&["k"]).unwrap();
    let store = Store::create(path, schema, options()).unwrap();
    append(&store, &rows(0..1_000, 1));
    let mut writer = store.writer().unwrap();
    writer.append(&rows((0..1_000).step_by(2), 2)).unwrap();
    writer.delete(&rows(300..350, 0)).unwrap();
    store.flush().unwrap();
    drop(writer);
    store.close().unwrap();
    values(path)
}

/// Keys that are not what they were before.
fn wrong(path: &Path, before: &BTreeMap<i64, i64>) -> u64 {
    let now = values(path);
    let keys = before.keys().chain(now.keys());
    let changed = keys.filter(|key| now.get(key) != before.get(key));
    changed.collect::<std::collections::BTreeSet<_>>().len() as u64
}

#[test]
fn older_rows_that_come_back_in_place_of_lost_ones_are_counted() {
    // The whole run, one group of it, and rows of the log.
    for (what, at, most) in [("run", -40, 1_000), ("group", 100, 300)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let before = updated(path);
        flip(&run(path, 2), at);
        let repaired = repair(path).unwrap();
        let wrong = wrong(path, &before);
        assert!(wrong > 0, "{what}");
        assert!(
            (wrong..=most).contains(&repaired.stale_rows),
            "{what}: {wrong} keys are wrong, {repaired:?}"
        );
        let said = |error: &tersecades_columnar::Error| {
            let text = format!("up to {} rows", repaired.stale_rows);
            error.to_string().contains(&text)
        };
        assert!(repaired.given_up.iter().any(said), "{repaired:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    updated(path);
    let store = Store::open(path).unwrap();
    store.writer().unwrap().append(&rows(0..10, 3)).unwrap();
    store.close().unwrap();
    let before = values(path);
    let log = std::fs::read_dir(path.join("log")).unwrap();
    let log = log.map(|file| file.unwrap().path()).max().unwrap();
    flip(&log, -1);
    let repaired = repair(path).unwrap();
    assert_eq!(wrong(path, &before), 10);
    assert_eq!(repaired.stale_rows, 1_525, "{repaired:?}");
    // Where the oldest rows are lost, none of the others is in doubt.
    let folder = tempfile::tempdir().unwrap();
    updated(folder.path());
    flip(&run(folder.path(), 1), 100);
    let repaired = repair(folder.path()).unwrap();
    assert!(repaired.lost_rows > 0);
    assert_eq!(repaired.stale_rows, 0);
}

/// A store whose two runs became one, and still lie there, as a crash leaves them.
fn merged(path: &Path) {
    let store = Store::create(path, schema().key(&["k"]).unwrap(), options()).unwrap();
    append(&store, &rows((0..1_000).step_by(2), 1));
    append(&store, &rows((1..1_000).step_by(2), 2));
    let inputs = [1, 2].map(|number| std::fs::read(run(path, number)).unwrap());
    store.compact().unwrap();
    append(&store, &rows(1_000..1_100, 3));
    store.close().unwrap();
    for (number, bytes) in (1..).zip(inputs) {
        std::fs::write(run(path, number), bytes).unwrap();
    }
}

#[test]
fn what_a_damaged_run_was_merged_from_takes_its_place() {
    for at in [-40, 100] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        merged(path);
        let before = values(path);
        flip(&run(path, 3), at);
        let repaired = repair(path).unwrap();
        assert!(repaired.given_up.is_empty(), "{repaired:?}");
        assert_eq!((repaired.lost_rows, repaired.adopted_rows), (0, 1_000));
        assert_eq!(values(path), before);
        let store = Store::open(path).unwrap();
        store.compact().unwrap();
        drop(store);
        assert_eq!(values(path), before);
    }
    // Where only some of them are left, they are better than nothing and worse than whole groups.
    for (at, lost, adopted) in [(-40, 500, 500), (100, 128, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        merged(path);
        flip(&run(path, 3), at);
        std::fs::remove_file(run(path, 2)).unwrap();
        let repaired = repair(path).unwrap();
        assert_eq!(
            (repaired.lost_rows, repaired.adopted_rows),
            (lost, adopted),
            "{repaired:?}"
        );
        assert_eq!(values(path).len() as u64, 1_100 - lost);
        assert!(!repaired.given_up.is_empty());
    }
}

#[test]
fn older_rows_are_counted_where_the_newer_ones_of_a_merged_run_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = updated(path);
    let oldest = std::fs::read(run(path, 1)).unwrap();
    let store = Store::open(path).unwrap();
    store.compact().unwrap();
    store.close().unwrap();
    std::fs::write(run(path, 1), oldest).unwrap();
    flip(&run(path, 3), -40);
    let repaired = repair(path).unwrap();
    let wrong = wrong(path, &before);
    assert_eq!(wrong, 525);
    assert_eq!(
        (repaired.adopted_rows, repaired.lost_rows),
        (1_000, 550),
        "{repaired:?}"
    );
    assert!((wrong..=1_000).contains(&repaired.stale_rows));
}

/// A store with a run of 100 rows and ten in its log.
fn two_parts(path: &Path, value: i64) {
    let store = Store::create(path, schema().key(&["k"]).unwrap(), options()).unwrap();
    append(&store, &rows(0..100, value));
    let more = rows(100..110, value);
    store.writer().unwrap().append(&more).unwrap();
    store.close().unwrap();
}

#[test]
fn files_of_another_store_are_told_apart() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    two_parts(own.path(), 1);
    two_parts(other.path(), 2);
    let log = |folder: &Path| {
        let files = std::fs::read_dir(folder.join("log")).unwrap();
        files.map(|file| file.unwrap().path()).max().unwrap()
    };
    let segment = log(own.path());
    assert_eq!(segment.file_name(), log(other.path()).file_name());
    std::fs::copy(log(other.path()), &segment).unwrap();
    let error = Store::open(own.path()).err().unwrap();
    assert!(error.to_string().contains("another store"), "{error}");
    assert!(error.to_string().contains("log"), "{error}");
    let repaired = repair(own.path()).unwrap();
    assert_eq!(repaired.lost_log_rows, 10, "{repaired:?}");
    assert!(values(own.path()).values().all(|value| *value == 1));
    // A run in place of one that is known, and one that nobody knows, which is not removed.
    let known = run(own.path(), 1);
    let whole = std::fs::read(&known).unwrap();
    std::fs::copy(run(other.path(), 1), &known).unwrap();
    assert!(Store::open(own.path()).is_err());
    std::fs::write(&known, whole).unwrap();
    let store = Store::open(other.path()).unwrap();
    for number in 2..9 {
        append(&store, &rows(number * 100..number * 100 + 100, 2));
    }
    drop(store);
    std::fs::copy(run(other.path(), 8), run(own.path(), 8)).unwrap();
    Store::open(own.path()).unwrap().close().unwrap();
    assert!(run(own.path(), 8).with_extension("tcr.damaged").exists());
    assert_eq!(values(own.path()).len(), 100);
}

#[test]
fn rows_that_were_too_old_stay_gone_behind_an_older_manifest() {
    for part in 2..7 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let options = StoreOptions {
            keep_time: Some(150),
            ..options()
        };
        let store = Store::create(path, schema().time("k").unwrap(), options).unwrap();
        for first in (0..700).step_by(100) {
            append(&store, &rows(first..first + 100, 1));
        }
        store.close().unwrap();
        let before = values(path);
        assert_eq!(before.keys().min(), Some(&549));
        let manifest = std::fs::read_dir(path).unwrap();
        let manifest = manifest.map(|file| file.unwrap().path());
        let mut manifest = manifest.filter(|path| path.to_string_lossy().contains("MANIFEST"));
        let manifest = manifest.next().unwrap();
        let bytes = std::fs::read(&manifest).unwrap();
        std::fs::write(&manifest, &bytes[..bytes.len() * part / 8 - 3]).unwrap();
        let repaired = repair(path).unwrap();
        assert!(repaired.adopted_rows > 0, "{repaired:?}");
        assert_eq!(values(path), before, "{part} eighths of the manifest");
    }
}

#[test]
fn what_repair_keeps_of_a_run_takes_no_number_of_a_run_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, schema(), options()).unwrap();
    for part in 0..3 {
        append(&store, &rows(part * 300..part * 300 + 300, part));
    }
    store.close().unwrap();
    let mut bytes = std::fs::read(run(&path, 2)).unwrap();
    bytes[90] ^= 0xFF;
    std::fs::write(run(&path, 2), bytes).unwrap();
    std::fs::remove_file(run(&path, 3)).unwrap();
    let repaired = repair(&path).unwrap();
    let kept = values(&path);
    assert!(kept.len() > 300, "{} rows", kept.len());
    assert_eq!(repaired.lost_rows, 900 - kept.len() as u64);
}

#[test]
fn folders_that_are_gone_are_given_up_as_their_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, schema(), options()).unwrap();
    append(&store, &rows(0..600, 1));
    store.close().unwrap();
    std::fs::remove_dir_all(path.join("log")).unwrap();
    let repaired = repair(&path).unwrap();
    assert_eq!((repaired.lost_rows, repaired.lost_log_rows), (0, 0));
    assert_eq!(values(&path).len(), 600);

    std::fs::remove_dir_all(path.join("runs")).unwrap();
    let repaired = repair(&path).unwrap();
    assert_eq!((repaired.lost_rows, repaired.rows), (600, 0));
    assert_eq!(repaired.given_up.len(), 1, "{:?}", repaired.given_up);
    let store = Store::open(&path).unwrap();
    append(&store, &rows(0..5, 2));
    store.close().unwrap();
    assert_eq!(values(&path).len(), 5);
}
