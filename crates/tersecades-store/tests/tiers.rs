//! Where runs lie, what they are encoded for there, and memories that are modelled.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_store::fs::{Bandwidth, FileSystem, RealFileSystem, Throttled};
use tersecades_store::{AccessCost, Durability, Placement, Scan, Store, StoreOptions, StoreSchema};

const ROWS: i64 = 4_000;

/// Keys in order and values of few bits, among which there are long runs.
fn rows(first: i64) -> RecordBatch {
    let keys = Int64Array::from_iter_values(first..first + ROWS);
    let values = (first..first + ROWS).map(|key| key / 50 * 7_919 % 100_003);
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(keys)),
        ("v", Arc::new(Int64Array::from_iter_values(values))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn store(folder: &Path, tiers: &str) -> Store {
    let schema = StoreSchema::new(&rows(0).schema()).unwrap();
    let mut options = StoreOptions {
        durability: Durability::Os,
        buffer_rows: ROWS as usize,
        level_ratio: 2,
        ..StoreOptions::default()
    };
    options.set("tiers", tiers).unwrap();
    Store::create(folder, schema.key(&["k"]).unwrap(), options).unwrap()
}

fn load(store: &Store, batches: i64) {
    let mut writer = store.writer().unwrap();
    for batch in 0..batches {
        writer.append(&rows(batch * ROWS)).unwrap();
    }
    store.flush().unwrap();
}

/// Rows that a scan finds, or why it does not.
fn count(store: &Store) -> tersecades_columnar::Result<i64> {
    let mut count = 0;
    for found in store.snapshot().scan(&Scan::default())? {
        count += found?.to_arrow()?.num_rows() as i64;
    }
    Ok(count)
}

fn run_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("runs")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

fn cut_all(folder: &Path) {
    for file in run_files(folder) {
        let length = file.metadata().unwrap().len();
        let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
        file.set_len(length / 2).unwrap();
    }
}

#[test]
fn levels_lie_where_the_manifest_says() {
    let folder = tempfile::tempdir().unwrap();
    let made = store(folder.path(), "hot/warm/cold");
    load(&made, 7);
    made.close().unwrap();
    let opened = Store::open(folder.path()).unwrap();
    assert_eq!(opened.snapshot().options().tiers.len(), 3);
    let levels = opened.snapshot().stats(false).unwrap().levels;
    let tiers: Vec<_> = levels
        .iter()
        .map(|level| (level.level, level.tier))
        .collect();
    let expected = [Placement::Hot, Placement::Warm, Placement::Cold];
    assert!(tiers.into_iter().eq((0..3).zip(expected)), "{levels:?}");
    for level in &levels {
        let held = level.resident_bytes as u64 > level.bytes;
        assert_eq!(held, level.tier == Placement::Hot, "{level:?}");
    }
    assert_eq!(count(&opened).unwrap(), 7 * ROWS);
}

#[test]
fn bytes_are_encoded_anew_only_when_they_leave_memory() {
    let made = |tiers: &str| {
        let folder = tempfile::tempdir().unwrap();
        let made = store(folder.path(), tiers);
        load(&made, 8);
        assert_eq!(count(&made).unwrap(), 8 * ROWS);
        made.activity()
    };
    let down = made("hot/warm/cold");
    // Level 0 is left by every row once; from level 1 on bytes move as they are.
    assert!(
        down.retiered_bytes > 0 && down.retiered_bytes == down.decoded_bytes,
        "{down:?}"
    );
    assert!(down.spliced_bytes > 0, "{down:?}");
    for same in ["hot", "warm", "warm/cold"] {
        let same = made(same);
        assert_eq!(
            (same.retiered_bytes, same.decoded_bytes),
            (0, 0),
            "{same:?}"
        );
    }
}

#[test]
fn a_file_that_was_cut_is_an_error_and_no_signal() {
    for tiers in ["warm", "cold"] {
        let folder = tempfile::tempdir().unwrap();
        let made = store(folder.path(), tiers);
        load(&made, 3);
        cut_all(folder.path());
        let error = count(&made).unwrap_err();
        assert!(error.to_string().contains("ends too early"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let made = store(folder.path(), "hot");
    load(&made, 3);
    cut_all(folder.path());
    assert_eq!(
        count(&made).unwrap(),
        3 * ROWS,
        "what is in memory is read on"
    );
    drop(made);
    assert!(Store::open(folder.path()).is_err());
}

#[test]
fn colder_is_not_larger() {
    let bytes = |tiers: &str| {
        let folder = tempfile::tempdir().unwrap();
        let made = store(folder.path(), tiers);
        load(&made, 6);
        made.compact().unwrap();
        let files = run_files(folder.path());
        files
            .iter()
            .map(|file| file.metadata().unwrap().len())
            .sum::<u64>()
    };
    let [hot, warm, cold] = ["hot", "warm", "cold"].map(bytes);
    assert!(hot >= warm && warm >= cold, "{hot} {warm} {cold}");
}

#[test]
fn a_modelled_memory_moves_no_more_than_its_bandwidth() {
    let dram = Bandwidth::dram(90e6, 70e6);
    let one = dram.nvram_of_one_thread();
    assert_eq!((one.read, one.write), (40e6, 70e6));
    let many = dram.nvram_of_many_threads();
    assert_eq!((many.read, many.write), (90e6 / 2.75, 10e6));
    let folder = tempfile::tempdir().unwrap();
    let files = Throttled::new(Arc::new(RealFileSystem), many);
    let path = folder.path().join("file");
    let started = Instant::now();
    files
        .create(&path)
        .unwrap()
        .write(&vec![1; 200_000])
        .unwrap();
    assert!(started.elapsed().as_secs_f64() >= 0.02);
    // Two readers share what there is.
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let file = files.open(&path).unwrap();
                file.read_at(&mut vec![0; 200_000], 0).unwrap();
            });
        }
    });
    assert!(started.elapsed().as_secs_f64() >= 400_000.0 / many.read);
}

#[test]
fn each_level_is_explained_under_every_policy_and_as_it_lies_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "warm");
    load(&store, 7);
    let stats = store.snapshot().stats(false).unwrap();
    let explained = store.snapshot().explain().unwrap().unwrap();
    let levels = |runs: &dyn Fn(usize) -> (u32, usize, u64)| -> Vec<_> {
        (0..stats.levels.len()).map(runs).collect()
    };
    let of_stats = levels(&|at| {
        let level = &stats.levels[at];
        (level.level, level.runs, level.rows)
    });
    let of_costs = levels(&|at| {
        let level = &explained.levels[at];
        (level.level, level.runs, level.rows)
    });
    assert_eq!(of_costs, of_stats);
    assert!(of_stats.len() > 1, "{of_stats:?}");
    // A row of level n was written once more for each level above.
    let times: u64 = of_stats
        .iter()
        .map(|(n, _, rows)| u64::from(n + 1) * rows)
        .sum();
    let mean = times as f64 / (7 * ROWS) as f64;
    assert!((explained.written_measured.unwrap() - mean).abs() < 1e-9);
    for level in &explained.levels {
        assert_eq!(level.model.len(), 5);
        let own = |cost: &&AccessCost| cost.policy == level.measured.policy;
        let model = level.model.iter().find(own).unwrap();
        let files = level.measured.bytes_per_row;
        // Files have headers and footers.
        assert!(
            model.bytes_per_row <= files && files < model.bytes_per_row + 2.0,
            "{level:?}"
        );
        for cost in level.model.iter().chain([&level.measured]) {
            assert!(
                cost.point_us > 0.0 && cost.range_us > 0.0 && cost.write_ns > 0.0,
                "{cost:?}"
            );
        }
    }
}
