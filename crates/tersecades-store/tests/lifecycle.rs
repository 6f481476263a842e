//! What a store does over its life on a real file system: merges, retention, columns, readers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_store::{Layout, Scan, Snapshot, Store, StoreOptions, StoreSchema};

/// Rows of ten series, in the order of their times.
fn rows(first: i64, count: i64) -> RecordBatch {
    let column = |of: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((first..first + count).map(of)))
    };
    let columns = [
        ("k", column(|n| n % 10)),
        ("ts", column(|n| n)),
        ("v", column(|n| n * n % 97)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn schema() -> StoreSchema {
    let schema = StoreSchema::new(&rows(0, 0).schema()).unwrap();
    schema.key(&["k"]).unwrap().time("ts").unwrap()
}

fn options(layout: Layout) -> StoreOptions {
    StoreOptions {
        layout,
        buffer_rows: 1_000,
        level_ratio: 3,
        series_rows: 64,
        ..StoreOptions::default()
    }
}

fn fill(store: &Store, from: i64, until: i64) {
    let mut writer = store.writer().unwrap();
    for first in (from..until).step_by(500) {
        writer.append(&rows(first, 500)).unwrap();
    }
}

/// Times of the rows that `scan` finds, sorted; their values are checked.
fn times(snapshot: &Snapshot, scan: &Scan) -> Vec<i64> {
    let mut times = Vec::new();
    for found in snapshot.scan(scan).unwrap() {
        let batch = found.unwrap().to_arrow().unwrap();
        let column = |name: &str| {
            let column = batch.column_by_name(name).unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        };
        for ((key, time), value) in column("k").iter().zip(column("ts")).zip(column("v")) {
            assert_eq!((*key, value), (time % 10, time * time % 97));
            times.push(time);
        }
    }
    times.sort_unstable();
    times
}

#[test]
fn merges_of_series_move_groups_undecoded() {
    for layout in [Layout::Tiered, Layout::Leveled] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path(), schema(), options(layout)).unwrap();
        fill(&store, 0, 20_000);
        let done = store.activity();
        assert!(done.compactions > 0 && done.flushes >= 15, "{done:?}");
        let undecoded = (done.spliced_bytes + done.moved_bytes) as f64;
        let all = undecoded + done.decoded_bytes as f64;
        assert!(undecoded > 0.9 * all, "{layout}: {done:?}");
        let snapshot = store.snapshot();
        assert!(times(&snapshot, &Scan::default()).into_iter().eq(0..20_000));
        let some = Scan::default().equal("k", 3).between("ts", 5_000, 6_000);
        let expected = (5_000..=6_000).filter(|time| time % 10 == 3);
        assert!(times(&snapshot, &some).into_iter().eq(expected));
        store.compact().unwrap();
        let stats = store.snapshot().stats(true).unwrap();
        assert_eq!(
            stats.levels.iter().map(|level| level.runs).sum::<usize>(),
            1
        );
        // The snapshot of before reads files that are gone.
        assert!(times(&snapshot, &Scan::default()).into_iter().eq(0..20_000));
        assert!(
            times(&store.snapshot(), &Scan::default())
                .into_iter()
                .eq(0..20_000)
        );
    }
}

#[test]
fn rows_of_one_key_stay_in_the_order_of_their_arrival() {
    let folder = tempfile::tempdir().unwrap();
    let fields = Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("n", DataType::Int64, false),
    ]);
    let schema = StoreSchema::new(&fields).unwrap().key(&["k"]).unwrap();
    let store = Store::create(folder.path(), schema, options(Layout::Tiered)).unwrap();
    let mut writer = store.writer().unwrap();
    for first in (0..9_000).step_by(450) {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(
            (first..first + 450).map(|n| n % 4),
        ));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 450));
        writer
            .append(&RecordBatch::try_from_iter([("k", keys), ("n", numbers)]).unwrap())
            .unwrap();
    }
    store.compact().unwrap();
    for key in 0..4 {
        let mut numbers: Vec<i64> = Vec::new();
        let scan = Scan::default().equal("k", key).columns(["n"]);
        for found in store.snapshot().scan(&scan).unwrap() {
            let batch = found.unwrap().to_arrow().unwrap();
            numbers.extend(batch.column(0).as_primitive::<Int64Type>().values());
        }
        assert!(
            numbers.into_iter().eq((0..9_000).filter(|n| n % 4 == key)),
            "key {key}"
        );
    }
}

#[test]
fn old_rows_go_and_never_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        keep_time: Some(4_000),
        ..options(Layout::Tiered)
    };
    let store = Store::create(folder.path(), schema(), options).unwrap();
    fill(&store, 0, 20_000);
    store.flush().unwrap();
    let kept = times(&store.snapshot(), &Scan::default());
    assert!(kept.into_iter().eq(15_999..20_000));
    let stats = store.snapshot().stats(false).unwrap();
    let rows: u64 = stats.levels.iter().map(|level| level.rows).sum();
    assert!(rows < 9_000, "{rows} rows are still on disk");
    store.compact().unwrap();
    store.close().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert!(
        times(&store.snapshot(), &Scan::default())
            .into_iter()
            .eq(15_999..20_000)
    );
}

#[test]
fn the_oldest_runs_go_where_there_are_too_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        keep_bytes: Some(60_000),
        level_ratio: 100,
        ..options(Layout::Tiered)
    };
    let store = Store::create(folder.path(), schema(), options).unwrap();
    fill(&store, 0, 30_000);
    let kept = times(&store.snapshot(), &Scan::default());
    let first = kept[0];
    assert!(first > 0 && first < 29_000, "{first}");
    assert!(kept.into_iter().eq(first..30_000));
}

#[test]
fn a_column_can_be_added_and_others_cannot_change() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema(), options(Layout::Tiered)).unwrap();
    fill(&store, 0, 2_500);
    store.add_column("w", &DataType::Utf8).unwrap();
    assert!(store.add_column("v", &DataType::Utf8).is_err());
    fill(&store, 2_500, 5_000);
    store.close().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.compact().unwrap();
    let mut nulls = 0;
    for found in store
        .snapshot()
        .scan(&Scan::default().columns(["w"]))
        .unwrap()
    {
        nulls += found
            .unwrap()
            .to_arrow()
            .unwrap()
            .column(0)
            .logical_null_count();
    }
    assert_eq!(nulls, 5_000);
    let mut writer = store.writer().unwrap();
    let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let unknown = RecordBatch::try_from_iter([("z", Arc::clone(&other))]).unwrap();
    assert!(writer.append(&unknown).is_err());
    let partial = RecordBatch::try_from_iter([("k", other)]).unwrap();
    let error = writer.append(&partial);
    // `ts` and `v` of these rows may not be null.
    assert!(error.is_err_and(|error| error.message().contains("null")));
}

#[test]
fn readers_see_whole_appends_while_runs_merge() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema(), options(Layout::Leveled)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                let snapshot = store.snapshot();
                let count = snapshot.sequence() as i64;
                assert_eq!(count % 500, 0);
                assert!(times(&snapshot, &Scan::default()).into_iter().eq(0..count));
                looks += 1;
            }
            looks
        });
        fill(&store, 0, 15_000);
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn one_process_writes_and_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema(), options(Layout::Tiered)).unwrap();
    fill(&store, 0, 3_000);
    let refused = Store::open(folder.path());
    assert!(refused.is_err_and(|error| error.message().contains("another process")));
    let reader = Store::open_read_only(folder.path()).unwrap();
    assert!(
        times(&reader.snapshot(), &Scan::default())
            .into_iter()
            .eq(0..3_000)
    );
    assert!(reader.writer().is_err() && reader.flush().is_err() && reader.compact().is_err());
    assert!(reader.verify().unwrap().damage.is_empty());
}

/// Overwrites what follows the header of every run of the store: its first group.
fn damage_first_groups(folder: &Path) {
    let runs = std::fs::read_dir(folder.join("runs")).unwrap();
    for run in runs.map(|run| run.unwrap().path()) {
        let mut bytes = std::fs::read(&run).unwrap();
        bytes[64..96].fill(0xff);
        std::fs::write(&run, bytes).unwrap();
    }
}

#[test]
fn readers_beside_the_writer_see_the_newest_row_of_a_key_and_read_the_groups_of_wanted_keys() {
    let folder = tempfile::tempdir().unwrap();
    let schema = StoreSchema::new(&rows(0, 0).schema()).unwrap();
    let options = StoreOptions {
        chunk_rows: 128,
        ..options(Layout::Tiered)
    };
    let schema = schema.primary_key(&["ts"]).unwrap();
    let store = Store::create(folder.path(), schema, options).unwrap();
    let changed = |times: std::ops::Range<i64>, value: i64| {
        let column = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(times.clone().map(of)))
        };
        let columns = [
            ("k", column(&|n| n % 10)),
            ("ts", column(&|n| n)),
            ("v", column(&|_| value)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    fill(&store, 0, 3_000);
    let mut writer = store.writer().unwrap();
    writer.append(&changed(1_000..2_000, -1)).unwrap();
    writer.append(&changed(1_500..1_600, -2)).unwrap();
    writer
        .delete(&changed(1_900..1_950, 0).project(&[1]).unwrap())
        .unwrap();
    let reader = Store::open_read_only(folder.path()).unwrap().snapshot();
    let found = |scan: &Scan| -> Result<Vec<(i64, i64)>, tersecades_columnar::error::Error> {
        let mut found = Vec::new();
        for part in reader.scan(scan)? {
            let batch = part?.to_arrow()?;
            let column = |name: &str| {
                let column = batch.column_by_name(name).unwrap();
                column.as_primitive::<Int64Type>().values().to_vec()
            };
            found.extend(column("ts").into_iter().zip(column("v")));
        }
        Ok(found)
    };
    let newest = |time: i64| match time {
        1_500..1_600 => Some(-2),
        1_900..1_950 => None,
        1_000..2_000 => Some(-1),
        _ => Some(time * time % 97),
    };
    let expected = |times: std::ops::Range<i64>| -> Vec<(i64, i64)> {
        times
            .filter_map(|time| Some((time, newest(time)?)))
            .collect()
    };
    assert_eq!(found(&Scan::default()).unwrap(), expected(0..3_000));
    // Rows of old values must not come back where their successors do not pass.
    let type_of = &DataType::Int64;
    let positive = Predicate::compare(type_of, Comparison::GreaterOrEqual, &0.into()).unwrap();
    let scan = Scan::default().passing("v", Arc::new(positive));
    assert_eq!(found(&scan).unwrap(), expected(0..3_000));

    damage_first_groups(folder.path());
    let late = Predicate::compare(type_of, Comparison::GreaterOrEqual, &2_800.into()).unwrap();
    let scan = Scan::default().passing("ts", Arc::new(late));
    let last = found(&scan).unwrap();
    assert!(last.ends_with(&expected(2_800..3_000)), "{last:?}");
    assert!(found(&Scan::default()).is_err());
}

#[test]
fn repair_keeps_what_is_readable_and_says_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), schema(), options(Layout::Tiered)).unwrap();
    fill(&store, 0, 3_500);
    store.close().unwrap();
    let run = folder.path().join("runs/0000000001.tcr");
    let run = if run.exists() {
        run
    } else {
        newest(&folder.path().join("runs"))
    };
    let mut bytes = std::fs::read(&run).unwrap();
    bytes[700] ^= 1;
    std::fs::write(&run, bytes).unwrap();
    let damaged = Store::open(folder.path()).unwrap();
    let verified = damaged.verify().unwrap();
    assert_eq!(verified.damage.len(), 1, "{:?}", verified.damage);
    assert!(verified.damage[0].context().file.is_some());
    drop(damaged);
    let repaired = tersecades_store::repair(folder.path()).unwrap();
    assert_eq!(repaired.given_up.len(), 1);
    assert_eq!(repaired.rows + repaired.lost_rows, 3_500);
    let store = Store::open(folder.path()).unwrap();
    let kept = times(&store.snapshot(), &Scan::default());
    assert_eq!(kept.len() as u64, repaired.rows);
    assert!(
        kept.windows(2).all(|pair| pair[0] < pair[1]),
        "no row twice"
    );
    fill(&store, 3_500, 4_000);
    assert!(store.verify().unwrap().damage.is_empty());
}

fn newest(folder: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().path()).max().unwrap()
}

/// A folder with 1,000 rows in runs and 400 in each of three segments of the log.
fn folder_of_runs_and_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let large = StoreOptions {
        buffer_rows: 1_000,
        ..options(Layout::Tiered)
    };
    let store = Store::create(folder.path(), schema(), large).unwrap();
    fill(&store, 0, 1_000);
    store.flush().unwrap();
    store.close().unwrap();
    for first in [1_000, 1_200, 1_400] {
        let store = Store::open(folder.path()).unwrap();
        store.writer().unwrap().append(&rows(first, 200)).unwrap();
        store.close().unwrap();
    }
    folder
}

#[test]
fn rows_without_the_file_that_names_their_manifest_are_not_overwritten() {
    let folder = folder_of_runs_and_log();
    let path = folder.path();
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    let errors = [
        Store::create(path, schema(), StoreOptions::default()),
        Store::open_or_create(path, schema(), StoreOptions::default()),
        Store::open(path),
        Store::open_read_only(path),
    ];
    for error in errors.map(|opened| opened.err().unwrap()) {
        assert!(error.to_string().contains("store repair"), "{error}");
        assert!(error.context().file.is_some(), "{error}");
    }
    assert_eq!(tersecades_store::repair(path).unwrap().rows, 1_600);
    let store = Store::open(path).unwrap();
    let found = times(&store.snapshot(), &Scan::default());
    assert_eq!(found, (0..1_600).collect::<Vec<i64>>());
}

#[test]
fn files_of_others_stay_where_a_store_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["log/2024.log", "runs/7.tcr", "runs/+000000007.tcr", "notes"];
    for name in names {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine").unwrap();
    }
    let store = Store::create(folder.path(), schema(), options(Layout::Tiered)).unwrap();
    fill(&store, 0, 2_500);
    store.close().unwrap();
    assert_eq!(
        Store::open(folder.path())
            .unwrap()
            .verify()
            .unwrap()
            .damage
            .len(),
        0
    );
    for name in names {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"mine");
    }
}

#[test]
fn repair_says_which_rows_of_the_log_are_missing() {
    let segments = |path: &Path| -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(path.join("log")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort_unstable();
        files
    };
    let count = segments(folder_of_runs_and_log().path()).len();
    for missing in 0..count {
        let folder = folder_of_runs_and_log();
        let segment = &segments(folder.path())[missing];
        let holds_rows = std::fs::metadata(segment).unwrap().len() > 100;
        std::fs::remove_file(segment).unwrap();
        let repaired = tersecades_store::repair(folder.path()).unwrap();
        let expected = if holds_rows { 200 } else { 0 };
        assert_eq!(repaired.lost_log_rows, expected, "{:?}", repaired.given_up);
        assert_eq!(repaired.given_up.len() as u64, expected / 200);
        assert_eq!(repaired.rows, 1_600 - expected);
        let store = Store::open(folder.path()).unwrap();
        let verified = store.verify().unwrap();
        assert_eq!((verified.rows, verified.log_rows), (1_000, 600 - expected));
    }
}

#[test]
fn a_store_that_is_closed_writes_runs_of_many_rows_and_leaves_few_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        buffer_rows: 1 << 20,
        chunk_rows: 2_000,
        ..options(Layout::Tiered)
    };
    let store = Store::create(folder.path(), schema(), options).unwrap();
    fill(&store, 0, 1_500);
    store.close().unwrap();
    let stats = || {
        let store = Store::open_read_only(folder.path()).unwrap();
        store.snapshot().stats(false).unwrap()
    };
    assert_eq!((stats().levels.len(), stats().memory_rows), (0, 1_500));
    for times in 1..=4 {
        let store = Store::open(folder.path()).unwrap();
        let first = store.snapshot().sequence() as i64;
        fill(&store, first, first + 1_500);
        store.close().unwrap();
        assert_eq!(stats().memory_rows, if times % 2 == 1 { 0 } else { 1_500 });
        let store = Store::open_read_only(folder.path()).unwrap();
        let all: Vec<i64> = (0..first + 1_500).collect();
        assert_eq!(times_of_all(&store), all);
    }
    for _ in 0..4 {
        let store = Store::open(folder.path()).unwrap();
        let first = store.snapshot().sequence() as i64;
        fill(&store, first, first + 2_500);
        store.close().unwrap();
    }
    let levels = stats().levels;
    let deepest = levels.iter().map(|level| level.level).max();
    assert!(deepest > Some(0), "runs of closed stores merge: {levels:?}");
}

fn times_of_all(store: &Store) -> Vec<i64> {
    times(&store.snapshot(), &Scan::default())
}
