//! Repair of stores whose manifest is damaged or missing: runs that it does not know are taken in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_store::{Layout, Repaired, Scan, Store, StoreOptions, StoreSchema, repair};

/// Rows of runs of 100, and rows that only the log holds.
const IN_RUNS: i64 = 700;
const IN_LOG: i64 = 5;

fn rows(first: i64, count: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
    RecordBatch::try_from_iter([("k", column)]).unwrap()
}

fn schema() -> StoreSchema {
    let schema = StoreSchema::new(&rows(0, 0).schema()).unwrap();
    schema.key(&["k"]).unwrap()
}

fn folder(level_ratio: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        layout: Layout::Tiered,
        buffer_rows: 100,
        level_ratio,
        ..StoreOptions::default()
    };
    let store = Store::create(folder.path(), schema(), options).unwrap();
    for first in (0..IN_RUNS).step_by(100) {
        store.writer().unwrap().append(&rows(first, 100)).unwrap();
        store.flush().unwrap();
    }
    store
        .writer()
        .unwrap()
        .append(&rows(IN_RUNS, IN_LOG))
        .unwrap();
    store.close().unwrap();
    folder
}

fn keys(store: &Store) -> Vec<i64> {
    let mut keys = Vec::new();
    for found in store.snapshot().scan(&Scan::default()).unwrap() {
        let batch = found.unwrap().to_arrow().unwrap();
        keys.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
    }
    keys.sort_unstable();
    keys
}

fn manifest(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap();
    let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST");
    let found = files.map(|file| file.unwrap().path()).find(is_manifest);
    found.unwrap()
}

/// Repairs, and checks that the store goes on: each row is there once, also behind more of them.
fn repaired(folder: &Path) -> (Repaired, Vec<i64>) {
    let repaired = repair(folder).unwrap();
    let store = Store::open(folder).unwrap();
    let found = keys(&store);
    assert_eq!(found.len() as u64, repaired.rows, "{repaired:?}");
    assert!(
        found.windows(2).all(|pair| pair[0] < pair[1]),
        "a row twice"
    );
    store.writer().unwrap().append(&rows(10_000, 1)).unwrap();
    store.compact().unwrap();
    assert_eq!(keys(&store).len(), found.len() + 1);
    assert!(store.verify().unwrap().damage.is_empty());
    (repaired, found)
}

fn cut(manifest: &Path, length: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(manifest);
    file.unwrap().set_len(length).unwrap();
}

#[test]
fn runs_that_a_cut_manifest_has_lost_are_taken_in() {
    let mut adopted = 0;
    for level_ratio in [3, 100] {
        let whole = folder(level_ratio);
        let length = std::fs::metadata(manifest(whole.path())).unwrap().len();
        for part in 1..10 {
            let folder = folder(level_ratio);
            cut(&manifest(folder.path()), length * part / 10);
            let (repaired, found) = repaired(folder.path());
            adopted += repaired.adopted_rows;
            let all: Vec<i64> = (0..IN_RUNS + IN_LOG).collect();
            assert_eq!(found, all, "{level_ratio}, {part} tenths: {repaired:?}");
        }
    }
    assert!(adopted > 1_000, "{adopted} rows were taken in");
}

#[test]
fn runs_behind_the_end_of_manifest_and_log_are_never_removed() {
    let folder = folder(100);
    let length = std::fs::metadata(manifest(folder.path())).unwrap().len();
    let count = |suffix: &str| {
        let files = std::fs::read_dir(folder.path().join("runs")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(suffix)).count()
    };
    let runs = count(".tcr");
    cut(&manifest(folder.path()), length / 2);
    // A cut at the end is what a crash leaves, so the store may open; nothing goes for good.
    if let Ok(store) = Store::open(folder.path()) {
        store.close().unwrap();
    }
    assert_eq!(count(".tcr") + count(".damaged"), runs);
}

#[test]
fn runs_are_taken_into_a_new_store_where_no_manifest_is_left() {
    let old = folder(3);
    std::fs::write(manifest(old.path()), "not a manifest").unwrap();
    let error = repair(old.path()).unwrap_err();
    let hint = error.hint_text().unwrap().to_owned();
    assert!(hint.contains("copy the folder `runs`"), "{error}");
    let new = tempfile::tempdir().unwrap();
    let store = Store::create(new.path(), schema(), StoreOptions::default()).unwrap();
    store.close().unwrap();
    std::fs::create_dir_all(new.path().join("runs")).unwrap();
    for file in std::fs::read_dir(old.path().join("runs")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), new.path().join("runs").join(file.file_name())).unwrap();
    }
    let (repaired, found) = repaired(new.path());
    assert_eq!(found, (0..IN_RUNS).collect::<Vec<i64>>(), "{repaired:?}");
    assert_eq!(repaired.adopted_rows as i64, IN_RUNS);
}

#[test]
fn rows_of_the_log_come_with_the_runs_that_are_copied() {
    let old = folder(3);
    let new = tempfile::tempdir().unwrap();
    let store = Store::create(new.path(), schema(), StoreOptions::default()).unwrap();
    store.close().unwrap();
    for name in ["runs", "log"] {
        for file in std::fs::read_dir(old.path().join(name)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), new.path().join(name).join(file.file_name())).unwrap();
        }
    }
    let (repaired, found) = repaired(new.path());
    let all: Vec<i64> = (0..IN_RUNS + IN_LOG).collect();
    assert_eq!(found, all, "{repaired:?}");
    assert!(repaired.given_up.is_empty(), "{repaired:?}");
}

#[test]
fn rows_that_only_the_log_holds_come_into_a_new_store_whatever_its_own_log() {
    let old = tempfile::tempdir().unwrap();
    let store = Store::create(old.path(), schema(), StoreOptions::default()).unwrap();
    store.writer().unwrap().append(&rows(0, IN_LOG)).unwrap();
    store.close().unwrap();
    for opened in 0..4 {
        let new = tempfile::tempdir().unwrap();
        let store = Store::create(new.path(), schema(), StoreOptions::default()).unwrap();
        store.close().unwrap();
        for _ in 0..opened {
            Store::open(new.path()).unwrap().close().unwrap();
        }
        for file in std::fs::read_dir(old.path().join("log")).unwrap() {
            let file = file.unwrap();
            let log = new.path().join("log");
            std::fs::copy(file.path(), log.join(file.file_name())).unwrap();
        }
        let (repaired, found) = repaired(new.path());
        assert_eq!(found, (0..IN_LOG).collect::<Vec<i64>>(), "{repaired:?}");
        assert!(repaired.given_up.is_empty(), "{repaired:?}");
    }
}

#[test]
fn what_cannot_be_taken_in_is_kept_aside() {
    let folder = folder(100);
    let length = std::fs::metadata(manifest(folder.path())).unwrap().len();
    let runs = folder.path().join("runs");
    // A run that holds rows which others hold as well.
    let other = tempfile::tempdir().unwrap();
    let one_run = StoreOptions {
        buffer_rows: 650,
        ..StoreOptions::default()
    };
    let store = Store::create(other.path(), schema(), one_run).unwrap();
    for _ in 0..20 {
        store.writer().unwrap().append(&rows(0, 40)).unwrap();
        store.flush().unwrap();
    }
    store.close().unwrap();
    let name = "0000000020.tcr";
    std::fs::copy(other.path().join("runs").join(name), runs.join(name)).unwrap();
    cut(&manifest(folder.path()), length / 2);
    let (repaired, _) = repaired(folder.path());
    let aside = std::fs::read_dir(&runs).unwrap();
    let aside = aside.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".damaged")
    });
    let said = repaired.given_up.iter().map(ToString::to_string);
    let said =
        said.filter(|text| text.contains("no manifest names") || text.contains("another store"));
    let aside = aside.count();
    assert!(aside > 0);
    assert_eq!(aside, said.count());
}

#[test]
fn the_newest_row_of_a_key_stays_the_newest() {
    let pairs = |value: i64| {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![value; 1_000]));
        RecordBatch::try_from_iter([("k", keys), ("v", values)]).unwrap()
    };
    let schema = StoreSchema::new(&pairs(0).schema()).unwrap();
    let mut repaired = 0;
    for frames in 1..12 {
        let folder = tempfile::tempdir().unwrap();
        let primary = schema.clone().primary_key(&["k"]).unwrap();
        let store = Store::create(folder.path(), primary, StoreOptions::default()).unwrap();
        for value in 0..5 {
            store.writer().unwrap().append(&pairs(value)).unwrap();
            store.flush().unwrap();
            if value == 2 {
                store.compact().unwrap();
            }
        }
        store.close().unwrap();
        let path = manifest(folder.path());
        let length = std::fs::metadata(&path).unwrap().len();
        cut(&path, length * frames / 12);
        if repair(folder.path()).is_err() {
            // Nothing of the manifest is left but its header.
            continue;
        }
        repaired += 1;
        let store = Store::open(folder.path()).unwrap();
        let mut values = Vec::new();
        for found in store.snapshot().scan(&Scan::default()).unwrap() {
            let batch = found.unwrap().to_arrow().unwrap();
            let column = batch.column_by_name("v").unwrap();
            values.extend_from_slice(column.as_primitive::<Int64Type>().values());
        }
        assert_eq!(values, vec![4; 1_000], "{frames} twelfths of the manifest");
    }
    assert!(repaired > 6, "{repaired} repairs");
}

#[test]
fn what_a_crash_has_left_over_is_not_taken_in_where_the_manifest_is_whole() {
    let folder = folder(100);
    let runs = folder.path().join("runs");
    let other = tempfile::tempdir().unwrap();
    let apart = StoreOptions {
        level_ratio: 100,
        ..StoreOptions::default()
    };
    let store = Store::create(other.path(), schema(), apart).unwrap();
    for first in (0..2_000).step_by(100) {
        store.writer().unwrap().append(&rows(first, 100)).unwrap();
        store.flush().unwrap();
    }
    store.close().unwrap();
    let name = "0000000012.tcr";
    std::fs::copy(other.path().join("runs").join(name), runs.join(name)).unwrap();
    let (repaired, found) = repaired(folder.path());
    assert_eq!(
        (repaired.adopted_rows, found.len() as i64),
        (0, IN_RUNS + IN_LOG)
    );
}

#[test]
fn a_repaired_store_does_not_guess_where_its_stream_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema(), StoreOptions::default()).unwrap();
    let mut feed = store.feed("probes").unwrap();
    feed.append(&rows(0, 500)).unwrap();
    feed.append(&rows(500, 500)).unwrap();
    feed.finish().unwrap();
    store.close().unwrap();
    let path = manifest(folder.path());
    let length = std::fs::metadata(&path).unwrap().len();
    let mut bytes = std::fs::read(&path).unwrap();
    // The last state is there twice.
    let copy = (length as usize - 32) / 4;
    bytes[length as usize - 9] ^= 1;
    bytes[length as usize - 9 - copy] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let repaired = repair(folder.path()).unwrap();
    assert_eq!(repaired.rows, 1_000, "{repaired:?}");
    let store = Store::open(folder.path()).unwrap();
    let error = store.feed("probes").err().unwrap();
    assert!(error.to_string().contains("was repaired"), "{error}");
    // It may have begun behind the state that could be read.
    assert!(store.feed("others").is_err());
    let kept = std::fs::read_dir(folder.path()).unwrap();
    let kept = kept.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("MANIFEST-") && name.to_string_lossy().ends_with("d")
    });
    assert_eq!(kept.count(), 1, "the damaged manifest is kept");
}

#[test]
fn columns_that_an_older_state_lacks_come_back_with_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema(), StoreOptions::default()).unwrap();
    let begun = std::fs::metadata(manifest(folder.path())).unwrap().len();
    store
        .add_column("w", &arrow_schema::DataType::Int64)
        .unwrap();
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let both = [("k", Arc::clone(&column)), ("w", column)];
    let both = RecordBatch::try_from_iter(both).unwrap();
    store.writer().unwrap().append(&both).unwrap();
    store.flush().unwrap();
    store.writer().unwrap().append(&both).unwrap();
    store.close().unwrap();
    cut(&manifest(folder.path()), begun);
    repair(folder.path()).unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert!(store.schema().position("w").is_ok());
    assert_eq!(keys(&store).len(), 200);
    store.compact().unwrap();
    assert_eq!(keys(&store).len(), 200);
}
