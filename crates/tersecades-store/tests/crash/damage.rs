//! Damaged and cut files: a right answer or an error that names the file, never a wrong row.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use arrow_schema::DataType;
use tersecades_columnar::ErrorKind;
use tersecades_columnar::error::Error;
use tersecades_columnar::predicate::Predicate;
use tersecades_store::fs::FileSystem;
use tersecades_store::{
    Durability, Layout, Scan, Store, StoreOptions, StoreSchema, repair_in, verify_in,
};

use crate::simulated::{LOSSES, SimulatedFileSystem};
use crate::workload::{self, live, numbers, options, root, rows, schema};
use crate::{on_all_processors, ran, setting};

/// Bytes of the store whose every bit the long form flips, at least.
const LONG_BYTES: usize = 256 << 10;

/// Bytes whose bits one thread flips in turn.
const STRETCH_BYTES: usize = 4 << 10;

fn total(files: &SimulatedFileSystem) -> usize {
    files.files().iter().map(|(_, bytes)| bytes.len()).sum()
}

/// A closed store and how many rows it has: in the short form a small one.
fn closed() -> (SimulatedFileSystem, u64) {
    let files = SimulatedFileSystem::default();
    if setting("TERSECADES_CRASH_SEEDS", 0) > 0 {
        let (acknowledged, _) = live(&files, Layout::Tiered, Durability::Durable);
        return (files.copied(), acknowledged);
    }
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create_in(shared, root(), schema(), options).unwrap();
    let mut writer = store.writer().unwrap();
    writer.append(&rows(0, 5)).unwrap();
    store.flush().unwrap();
    writer.append(&rows(5, 2)).unwrap();
    store.close().unwrap();
    (files.copied(), 7)
}

fn read(files: &SimulatedFileSystem) -> Result<Vec<u64>, Error> {
    let shared: Arc<dyn FileSystem> = Arc::new(files.copied());
    Store::open_in(shared, root()).and_then(|store| numbers(&store))
}

/// The rows of a damaged store are right, or the error says where.
fn check(files: &SimulatedFileSystem, rows: u64, name: &PathBuf, what: &str) -> bool {
    match read(files) {
        Ok(found) => {
            assert!(
                found.into_iter().eq(0..rows),
                "{what} of {name:?}: wrong rows"
            );
            true
        }
        Err(error) => {
            let named = error.context().file.is_some();
            let kind = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported);
            assert!(named && kind, "{what} of {name:?}: {error:?}");
            false
        }
    }
}

/// Appends to a store until its files are long enough for the long form; its rows.
fn lengthen(files: &SimulatedFileSystem, mut count: u64) -> u64 {
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let store = Store::open_in(shared, root()).unwrap();
    while total(files) < LONG_BYTES {
        let mut writer = store.writer().unwrap();
        writer.append(&rows(count, 40)).unwrap();
        count += 40;
        store.flush().unwrap();
    }
    store.close().unwrap();
    count
}

/// Calls `check` with files of which one is damaged, its name and the bit, on all processors: every
/// `step`th bit of the files that are `wanted`. How many bits, and for how many it says true.
fn flip_bits(
    files: &SimulatedFileSystem,
    wanted: impl Fn(&PathBuf) -> bool,
    step: usize,
    check: impl Fn(&SimulatedFileSystem, &PathBuf, &str) -> bool + Sync,
) -> (usize, usize) {
    let all = files.files();
    let wanted = all.iter().filter(|(name, _)| wanted(name));
    let stretches: Vec<_> = wanted
        .flat_map(|(name, bytes)| {
            let starts = (0..bytes.len()).step_by(STRETCH_BYTES);
            starts.map(move |start| (name, bytes, start))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let counts = on_all_processors(|| {
        let (files, mut bits, mut yes) = (files.copied(), 0, 0);
        while let Some((name, bytes, start)) = stretches.get(next.fetch_add(1, Relaxed)) {
            let end = bytes.len().min(start + STRETCH_BYTES);
            for bit in (start * 8..end * 8).step_by(step) {
                let mut flipped = (*bytes).clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                files.overwrite(name, &flipped);
                bits += 1;
                yes += usize::from(check(&files, name, &format!("bit {bit}")));
            }
            files.overwrite(name, bytes);
        }
        (bits, yes)
    });
    let counts = counts.into_iter();
    counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let (files, mut rows) = closed();
    if setting("TERSECADES_CRASH_SEEDS", 0) > 0 {
        rows = lengthen(&files, rows);
    }
    assert_eq!(read(&files).unwrap().len() as u64, rows);
    let bytes = total(&files);
    println!("{} files, {bytes} bytes", files.files().len());
    let check =
        |files: &SimulatedFileSystem, name: &PathBuf, bit: &str| check(files, rows, name, bit);
    let (bits, harmless) = flip_bits(&files, |_| true, 1, check);
    let found = bits - harmless;
    assert!(found > 1_000, "only {found} flips were found");
    ran(&format!("every bit of {bytes} bytes flipped"));
}

#[test]
fn no_flipped_bit_of_a_manifest_or_its_name_costs_a_row() {
    let (files, rows) = closed();
    let is_manifest = |name: &PathBuf| {
        let name = name.to_string_lossy();
        name.contains("MANIFEST") || name.ends_with("CURRENT")
    };
    // In the short form one bit of each byte.
    let step = if setting("TERSECADES_CRASH_SEEDS", 0) > 0 {
        1
    } else {
        9
    };
    let check = |files: &SimulatedFileSystem, name: &PathBuf, bit: &str| {
        let opened = check(files, rows, name, bit);
        let found = verify_in(Arc::new(files.copied()), root());
        let is_told = found.map_or(true, |it| {
            it.damage.len() == 1 || it.torn_manifest_bytes > 0
        });
        assert!(is_told, "{bit} of {name:?}: not told");
        let repaired = repaired(files.copied()).0;
        assert!(
            repaired.into_iter().eq(0..rows),
            "{bit} of {name:?}: repaired"
        );
        opened
    };
    let (bits, opened) = flip_bits(&files, is_manifest, step, check);
    // A header of 32 bytes, and the name.
    assert!(bits - opened < 100 * 8 / step, "{opened} of {bits}");
}

#[test]
fn all_runs_that_do_not_open_are_told() {
    let files = SimulatedFileSystem::default();
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create_in(Arc::clone(&shared), root(), schema(), options).unwrap();
    for first in [0, 9, 18] {
        store.writer().unwrap().append(&rows(first, 9)).unwrap();
        store.flush().unwrap();
    }
    store.writer().unwrap().append(&rows(27, 5)).unwrap();
    drop(store);
    let is_run = |name: &PathBuf| name.extension().is_some_and(|it| it == "tcr");
    let all = files.files();
    let runs: Vec<_> = all.iter().filter(|(name, _)| is_run(name)).collect();
    assert_eq!(runs.len(), 3);
    for (at, (name, bytes)) in [0, runs[1].1.len() - 1].iter().zip(&runs) {
        let mut flipped = bytes.clone();
        flipped[*at] ^= 1;
        files.overwrite(name, &flipped);
    }
    let found = verify_in(shared, root()).unwrap();
    assert_eq!((found.runs, found.rows, found.log_rows), (1, 9, 5));
    let said: Vec<String> = found.damage.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    let names = runs.iter().map(|(name, _)| name.to_string_lossy());
    for (said, name) in said.iter().zip(names) {
        assert!(said.contains(&*name) && said.contains("at byte"), "{said}");
    }
}

#[test]
fn a_run_that_does_not_open_keeps_no_other_from_being_read() {
    let files = SimulatedFileSystem::default();
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let options = StoreOptions {
        buffer_rows: 1_000,
        level_ratio: 100,
        ..options(Layout::Tiered, Durability::Durable)
    };
    // In the order of time.
    let by_time = StoreSchema::new(schema().fields())
        .unwrap()
        .time("ts")
        .unwrap();
    let store = Store::create_in(Arc::clone(&shared), root(), by_time, options).unwrap();
    for first in [0, 100, 200] {
        store.writer().unwrap().append(&rows(first, 100)).unwrap();
        store.flush().unwrap();
    }
    store.writer().unwrap().append(&rows(300, 5)).unwrap();
    drop(store);
    let is_run = |name: &PathBuf| name.extension().is_some_and(|it| it == "tcr");
    let all = files.files();
    let mut runs = all.iter().filter(|(name, _)| is_run(name));
    let (name, bytes) = runs.nth(1).unwrap();
    for at in [0, bytes.len() - 100, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        files.overwrite(name, &flipped);
        assert!(Store::open_in(Arc::clone(&shared), root()).is_err());
        let store = Store::open_read_only_in(Arc::clone(&shared), root()).unwrap();
        let snapshot = store.snapshot();
        let read = |scan: &Scan| -> Result<u64, Error> {
            let found = snapshot.scan(scan)?;
            found.map(|batch| Ok(batch?.rows() as u64)).sum()
        };
        let between = |low: i64, high: i64| read(&Scan::default().between("ts", low, high));
        let mut readable = 0;
        for low in (0..310).step_by(10) {
            match between(low, low + 4) {
                Ok(rows) => {
                    let whole = (low..low + 5).filter(|row| *row < 305).count() as u64;
                    assert_eq!(rows, whole, "byte {at}, rows from {low}");
                    readable += 1;
                }
                Err(error) => assert!((100..200).contains(&low), "{low}: {error}"),
            }
        }
        assert_eq!(readable, 21, "byte {at}");
        // The predicates of a query leave runs out as ranges do.
        let passing = |low: i64, high: i64| {
            let passing = Predicate::between(&DataType::Int64, &low.into(), &high.into());
            read(&Scan::default().passing("ts", Arc::new(passing.unwrap())))
        };
        assert!(passing(0, 99).unwrap() >= 100 && passing(200, 204).unwrap() >= 5);
        assert!(passing(0, 100).is_err() && passing(199, 300).is_err());
        let error = read(&Scan::default()).unwrap_err();
        assert!(
            error.to_string().contains(&*name.to_string_lossy()),
            "{error}"
        );
        let stats = snapshot.stats(false).unwrap();
        assert_eq!((stats.levels[0].rows, stats.damaged.len()), (300, 1));
        assert_eq!(store.verify().unwrap().damage.len(), 1);
    }
}

#[test]
fn every_truncation_is_found_or_harmless() {
    let (files, rows) = closed();
    for (name, bytes) in &files.files() {
        for length in 0..bytes.len() {
            files.overwrite(name, &bytes[..length]);
            check(&files, rows, name, &format!("the first {length} bytes"));
        }
        files.overwrite(name, bytes);
    }
    ran("truncations at every byte");
}

#[test]
fn missing_and_swapped_files_are_found() {
    let (files, rows) = closed();
    let all = files.files();
    for (name, _) in &all {
        let without = files.copied();
        without.take_away(name);
        if name.ends_with("CURRENT") {
            let error = read(&without).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let shared: Arc<dyn FileSystem> = Arc::new(without);
            let options = options(Layout::Tiered, Durability::Durable);
            assert!(Store::create_in(shared, root(), schema(), options).is_err());
        } else {
            match read(&without) {
                Ok(found) => assert!(found.into_iter().eq(0..rows), "without {name:?}"),
                Err(error) => assert!(error.context().file.is_some(), "without {name:?}: {error}"),
            }
        }
        for (other, bytes) in all.iter().filter(|(other, _)| other != name) {
            let swapped = files.copied();
            swapped.overwrite(name, bytes);
            check(
                &swapped,
                rows,
                name,
                &format!("the bytes of {other:?} instead"),
            );
        }
    }
}

#[test]
fn misplaced_pages_of_a_run_are_found() {
    let (files, rows) = closed();
    for (name, bytes) in &files.files() {
        let pages = bytes.len() / 512;
        for (from, to) in (0..pages).flat_map(|a| (0..pages).map(move |b| (a, b))) {
            let mut moved = bytes.clone();
            moved.copy_within(from * 512..from * 512 + 512, to * 512);
            files.overwrite(name, &moved);
            check(&files, rows, name, &format!("page {from} at {to}"));
        }
        files.overwrite(name, bytes);
    }
}

/// The rows after a repair, and how many of runs and of the log it gives up.
fn repaired(files: SimulatedFileSystem) -> (Vec<u64>, [u64; 2]) {
    let shared: Arc<dyn FileSystem> = Arc::new(files);
    let found = repair_in(Arc::clone(&shared), root()).unwrap();
    let rows = numbers(&Store::open_in(shared, root()).unwrap()).unwrap();
    (rows, [found.lost_rows, found.lost_log_rows])
}

/// A store with a merged run whose inputs a crash has left over.
fn left_over() -> SimulatedFileSystem {
    let files = SimulatedFileSystem::default();
    live(&files, Layout::Tiered, Durability::Durable);
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let store = Store::open_in(shared, root()).unwrap();
    store.writer().unwrap().append(&rows(211, 30)).unwrap();
    store.flush().unwrap();
    let inputs = files.files();
    store.compact().unwrap();
    store.writer().unwrap().append(&rows(241, 9)).unwrap();
    let names: Vec<PathBuf> = files.files().into_iter().map(|(name, _)| name).collect();
    let is_run = |name: &PathBuf| name.extension().is_some_and(|it| it == "tcr");
    for (name, bytes) in inputs {
        if is_run(&name) && !names.contains(&name) {
            files.create(&name).unwrap().write(&bytes).unwrap();
        }
    }
    files.copied()
}

#[test]
fn a_repair_that_is_cut_short_is_done_again_whoever_opens_the_store_between() {
    let files = left_over();
    let (mut cuts, mut lost, mut refused) = (0u64, 0, 0);
    for (name, bytes) in &files.files() {
        let mut flipped = bytes.clone();
        let Some(byte) = flipped.get_mut(bytes.len() / 2) else {
            continue;
        };
        *byte ^= 1;
        let damaged = files.copied();
        damaged.overwrite(name, &flipped);
        let after = damaged.copied();
        let expected = repaired(after.clone());
        lost += usize::from(expected.0.len() < 250);
        let keeps =
            |files: &SimulatedFileSystem| files.files().iter().any(|(_, bytes)| *bytes == flipped);
        let is_kept = keeps(&after);
        let mut call = 0;
        loop {
            call += 1;
            cuts += 1;
            let cut = damaged.copied();
            cut.crash_at(call);
            let is_done = repair_in(Arc::new(cut.clone()), root()).is_ok();
            let left = cut.after_crash(LOSSES[cuts as usize % LOSSES.len()], cuts);
            let what = format!("{name:?} damaged, call {call}");
            // Before its first change nothing says that a repair has begun.
            let mark = root().join("REPAIR");
            if left.files().iter().any(|(name, _)| *name == mark) {
                refused += 1;
                let error = Store::open_in(Arc::new(left.clone()), root()).err();
                let error = error.expect(&what).to_string();
                assert!(error.contains("store repair"), "{what}: {error}");
                let options = options(Layout::Tiered, Durability::Durable);
                assert!(
                    Store::create_in(Arc::new(left.clone()), root(), schema(), options).is_err()
                );
            }
            let again = repaired(left.clone());
            assert_eq!(again.1, expected.1, "{what}: lost");
            assert_eq!(again.0, expected.0, "{what}");
            assert!(keeps(&left) || !is_kept, "{what}: the damaged bytes");
            if is_done {
                break;
            }
        }
    }
    assert!(lost > 0, "no damage costs rows");
    assert!(refused > 100, "{refused}");
    ran(&format!("{cuts} repairs cut short"));
}

#[test]
fn what_a_repair_finds_outlives_a_power_cut_behind_it() {
    let files = SimulatedFileSystem::default();
    live(&files, Layout::Tiered, Durability::Durable);
    for call in (1..=files.calls()).step_by(2) {
        let files = SimulatedFileSystem::default();
        files.crash_at(call);
        let lived = live(&files, Layout::Tiered, Durability::Durable);
        // The process is killed, and what it has not synced is there as long as there is power.
        let files = files.after_kill();
        let Ok(repaired) = repair_in(Arc::new(files.clone()), root()) else {
            assert_eq!(lived.0, 0, "call {call}");
            continue;
        };
        let lived = (repaired.rows, lived.1);
        let left = files.after_crash(LOSSES[0], call);
        workload::check(&left, lived, &format!("killed at call {call}, repaired"));
    }
}
