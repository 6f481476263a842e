//! Full disks: reading goes on, writing does when there is space, and nothing is left behind.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use tersecades_columnar::Error;
use tersecades_store::fs::FileSystem;
use tersecades_store::{Durability, Layout, Store, repair_in};

use crate::ran;
use crate::simulated::{Loss, SimulatedFileSystem};
use crate::workload::{check, live, numbers, options, root, rows, schema};

fn shared(files: &SimulatedFileSystem) -> Arc<dyn FileSystem> {
    Arc::new(files.clone())
}

fn open(files: &SimulatedFileSystem) -> Result<Store, Error> {
    Store::open_in(shared(files), root())
}

fn names(files: &SimulatedFileSystem) -> BTreeSet<PathBuf> {
    files.files().into_iter().map(|(name, _)| name).collect()
}

/// A store that has lived, was not closed, and has rows in its log.
fn lived() -> (SimulatedFileSystem, u64) {
    let files = SimulatedFileSystem::default();
    let (count, _) = live(&files, Layout::Tiered, Durability::Durable);
    let store = open(&files).unwrap();
    store.writer().unwrap().append(&rows(count, 9)).unwrap();
    (files, count + 9)
}

#[test]
fn a_full_disk_stops_writing_until_there_is_space() {
    let files = SimulatedFileSystem::default();
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create_in(shared(&files), root(), schema(), options).unwrap();
    let mut writer = store.writer().unwrap();
    let mut count = 0;
    for round in 0..12 {
        files.set_capacity(Some(files.used() + 9_000 * round));
        let mut full = 0;
        while full < 3 {
            match writer.append(&rows(count, 11)) {
                Ok(end) => {
                    count += 11;
                    assert_eq!(end, count);
                }
                Err(error) => {
                    assert!(error.message().contains("space"), "{error}");
                    full += 1;
                }
            }
            let found = numbers(&store).unwrap();
            assert!(found.into_iter().eq(0..count), "reading goes on");
        }
        files.set_capacity(None);
        writer.append(&rows(count, 11)).expect("there is space");
        count += 11;
        store.flush().unwrap();
        leaves_nothing(&files, &store, "there is space");
        check(
            &files.after_crash(Loss::Drop, round as u64),
            (count, count),
            "full disk",
        );
    }
    store.close().unwrap();
    check(&files.copied(), (count, count), "full disk, closed");
    ran("simulated full disks");
}

#[test]
fn a_store_on_a_full_disk_is_read_and_opens_for_writing_when_there_is_space() {
    let (files, count) = lived();
    let before = names(&files);
    let mut refused = 0;
    for space in (0..).step_by(16) {
        files.set_capacity(Some(files.used() + space));
        let error = match open(&files) {
            Ok(_) => break,
            Err(error) => error,
        };
        refused += 1;
        assert!(error.message().contains("no space is left"), "{error}");
        assert!(error.hint_text().unwrap().contains("as soon as"), "{error}");
        assert_eq!(names(&files), before, "{space} bytes: something is left");
        let reader = Store::open_read_only_in(shared(&files), root()).unwrap();
        assert!(numbers(&reader).unwrap().into_iter().eq(0..count));
        check(
            &files.after_crash(Loss::Drop, 0),
            (count, count),
            "power cut",
        );
        files.set_capacity(None);
        check(&files.copied(), (count, count), "there is space");
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_store_that_finds_no_space_to_be_made_leaves_nothing_in_its_folder() {
    let mut refused = 0;
    for space in (0..).step_by(8) {
        let files = SimulatedFileSystem::default();
        files.set_capacity(Some(space));
        let make = || {
            let options = options(Layout::Tiered, Durability::Durable);
            Store::create_in(shared(&files), root(), schema(), options)
        };
        if make().is_ok() {
            break;
        }
        // One that was made and not opened is there.
        if !names(&files).contains(&root().join("CURRENT")) {
            refused += 1;
            assert_eq!(names(&files), BTreeSet::new(), "{space} bytes");
            files.set_capacity(None);
            let store = make().unwrap();
            store.writer().unwrap().append(&rows(0, 5)).unwrap();
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn what_a_killed_writer_left_on_a_full_disk_makes_room_for_the_next() {
    let (whole, count) = lived();
    let mut left_over = 0;
    for call in 1.. {
        let files = whole.copied();
        let store = open(&files).unwrap();
        // The process is killed; what it has written is there.
        files.crash_at(files.calls() + call);
        let merged = store.compact().is_ok();
        drop(store);
        let files = files.copied();
        let runs = |files: &SimulatedFileSystem| {
            let runs = names(files).into_iter();
            runs.filter(|name| name.extension().is_some_and(|it| it == "tcr"))
                .count()
        };
        let before = runs(&files);
        files.set_capacity(Some(files.used() + 8));
        // Where nothing large is left over there is no room: that is another test.
        if let Ok(store) = open(&files) {
            left_over += u64::from(runs(&files) < before);
            assert!(numbers(&store).unwrap().into_iter().eq(0..count));
        }
        if merged {
            break;
        }
    }
    assert!(left_over > 5, "{left_over}");
}

#[test]
fn whatever_call_finds_the_disk_full_the_store_goes_on_and_opens_again() {
    let mut reopened = 0;
    for call in 1.. {
        let files = SimulatedFileSystem::default();
        files.fail_at(call, ErrorKind::StorageFull);
        let again = || -> Result<Store, Error> {
            let options = options(Layout::Tiered, Durability::Durable);
            match names(&files).contains(&root().join("CURRENT")) {
                true => open(&files),
                false => Store::create_in(shared(&files), root(), schema(), options),
            }
        };
        // The disk was full for one call alone.
        let mut store = again().or_else(|_| again()).unwrap();
        let mut count = store.snapshot().sequence();
        while count < 120 {
            let end = store.writer().unwrap().append(&rows(count, 9));
            if end.is_err() && store.writer().unwrap().append(&rows(count, 9)).is_err() {
                // A sync that has failed is not tried again.
                reopened += 1;
                drop(store);
                store = open(&files).unwrap();
            }
            let found = numbers(&store).or_else(|_| numbers(&store)).unwrap();
            assert!(found.len() as u64 >= end.unwrap_or(count), "call {call}");
            count = found.len() as u64;
            assert!(found.into_iter().eq(0..count), "call {call}");
        }
        let what = format!("call {call}");
        check(&files.after_crash(Loss::Drop, call), (count, count), &what);
        check(&files.copied(), (count, count), &what);
        let calls = files.calls();
        drop(store);
        let store = open(&files).or_else(|_| open(&files)).expect(&what);
        leaves_nothing(&files, &store, &what);
        if calls < call {
            break;
        }
    }
    assert!(reopened > 10, "{reopened}");
    ran("a full disk at every call");
}

#[test]
fn a_repair_that_finds_the_disk_full_leaves_the_store_as_it_was() {
    let (files, _) = lived();
    let all = files.files();
    let last = |part: &str| {
        let has = |name: &PathBuf| name.to_string_lossy().contains(part);
        let mut found = all.iter().filter(|(name, _)| has(name));
        found.next_back().unwrap().clone()
    };
    let repaired = |files: &SimulatedFileSystem| {
        let repaired = repair_in(shared(files), root()).unwrap();
        let found = numbers(&open(files).unwrap()).unwrap();
        assert_eq!(found.len() as u64, repaired.rows);
        let lost = (repaired.lost_rows, repaired.lost_log_rows);
        (found, lost, repaired.lost_log_bytes)
    };
    let is_run = |name: &PathBuf| name.extension().is_some_and(|it| it == "tcr");
    let mut refused = 0;
    for (name, mut bytes) in [last(".tcr"), last(".log"), last("CURRENT")] {
        let at = bytes.len().saturating_sub(100);
        let damaged = files.copied();
        bytes[at] ^= 1;
        damaged.overwrite(&name, &bytes);
        let expected = repaired(&damaged.copied());
        for space in (0..).step_by(48) {
            let damaged = damaged.copied();
            let before = names(&damaged);
            damaged.set_capacity(Some(damaged.used() + space));
            let done = repair_in(shared(&damaged), root());
            damaged.set_capacity(None);
            let Err(error) = done else { break };
            refused += 1;
            let what = format!("{name:?}, {space} bytes");
            assert!(error.message().contains("space"), "{what}: {error}");
            // Runs that nothing knows go when the store is opened.
            let after = names(&damaged);
            let more: Vec<_> = after.difference(&before).filter(|it| !is_run(it)).collect();
            assert!(more.is_empty(), "{what}: {more:?}");
            assert!(before.is_subset(&after), "{what}");
            assert_eq!(repaired(&damaged), expected, "{what}");
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_repair_gives_up_nothing_that_is_known_to_be_no_row() {
    for (goes_on, closes) in [(true, true), (true, false), (false, false)] {
        let what = format!("goes on: {goes_on}, closes: {closes}");
        let files = SimulatedFileSystem::default();
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(shared(&files), root(), schema(), options).unwrap();
        let mut feed = store.feed("numbers").unwrap();
        feed.append(&rows(0, 5)).unwrap();
        files.set_capacity(Some(files.used() + 100));
        assert!(feed.append(&rows(5, 5)).is_err(), "{what}");
        files.set_capacity(None);
        // Where it does not go on, the process is killed here.
        let killed = files.copied();
        if goes_on {
            feed.append(&rows(5, 5)).unwrap();
        }
        feed.finish().unwrap();
        match closes {
            true => store.close().unwrap(),
            false => drop(store),
        }
        let files = if goes_on { files } else { killed };
        let repaired = repair_in(shared(&files), root()).unwrap();
        let torn = if goes_on { 0 } else { 100 };
        assert_eq!(repaired.lost_log_bytes, torn, "{what}");
        assert_eq!(
            repaired.given_up.is_empty(),
            goes_on,
            "{what}: {repaired:?}"
        );
        let store = open(&files).unwrap();
        assert_eq!(
            numbers(&store).unwrap().len() as u64,
            repaired.rows,
            "{what}"
        );
        // Whether the stream knows where it goes on.
        let rows = store.feed("numbers").map(|feed| feed.rows()).ok();
        assert_eq!(rows, goes_on.then_some(10), "{what}");
    }
}

/// A store that has just written its manifest has no files but those that it needs.
fn leaves_nothing(files: &SimulatedFileSystem, store: &Store, what: &str) {
    let levels = store.snapshot().stats(false).unwrap().levels;
    let runs: usize = levels.iter().map(|level| level.runs).sum();
    let names = names(files);
    let count = |part: &str| {
        let has = |name: &&PathBuf| name.to_string_lossy().contains(part);
        names.iter().filter(has).count()
    };
    let found = (count("MANIFEST"), count(".tcr"), count(".new"));
    assert_eq!(found, (1, runs, 0), "{what}: {names:?}");
}
