//! A stream that feeds a store and begins again after each fault: every row of it is there once.

use std::io;
use std::sync::Arc;

use tersecades_columnar::{ErrorKind, Result};
use tersecades_store::fs::FileSystem;
use tersecades_store::{Durability, Layout, Store};

use crate::simulated::{LOSSES, SimulatedFileSystem};
use crate::workload::{numbers, options, root, rows, schema};

/// Rows of the stream.
const ROWS: u64 = 150;
/// Numbers from here on are those of rows that others write.
const OTHERS: u64 = 1_000_000;

/// Feeds the store from where the stream stands to row `end`, in batches of `batch` rows.
fn feed(store: &Store, end: u64, batch: u64) -> Result<u64> {
    let mut writer = store.feed("numbers")?;
    while writer.rows() < end {
        let count = batch.min(end - writer.rows());
        writer.append(&rows(writer.rows(), count))?;
    }
    writer.finish()
}

/// Feeds the store with the whole stream, which begins again with its first row.
fn feed_again(store: &Store) -> Result<u64> {
    let mut writer = store.feed("numbers")?;
    for first in (0..ROWS).step_by(40) {
        let next = writer.unwritten(&rows(first, 40.min(ROWS - first)))?;
        writer.append(&next)?;
    }
    assert_eq!(writer.missing(), 0);
    writer.finish()
}

/// Feeds a store in three parts, between which others write and the process ends.
#[expect(
    clippy::disallowed_methods,
    reason = "a process that is killed drops nothing"
)]
fn live(files: &SimulatedFileSystem, durability: Durability) -> Result<()> {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    let options = options(Layout::Tiered, durability);
    let store = Store::create_in(Arc::clone(&files), root(), schema(), options)?;
    feed(&store, 55, 9)?;
    store.writer()?.append(&rows(OTHERS, 12))?;
    let mut writer = store.feed("numbers")?;
    writer.append(&rows(55, 20))?;
    // As if the process had been killed: nothing is noted.
    std::mem::forget(writer);
    drop(store);
    let store = Store::open_in(files, root())?;
    store.writer()?.append(&rows(OTHERS + 12, 7))?;
    feed(&store, 120, 31)?;
    store.close()
}

/// Opens what is left, feeds the rest, and looks at every row.
fn check(files: &SimulatedFileSystem, what: &str) {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    let Ok(store) = Store::open_in(files, root()) else {
        // The power went before there was a store.
        return;
    };
    let rows = feed_again(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(rows, ROWS, "{what}");
    let found = numbers(&store).unwrap();
    let of_stream = found.iter().filter(|number| **number < OTHERS);
    assert!(of_stream.copied().eq(0..ROWS), "{what}: {found:?}");
}

#[test]
fn a_stream_that_begins_again_after_any_fault_is_there_once() {
    let files = SimulatedFileSystem::default();
    live(&files, Durability::Durable).unwrap();
    check(&files.copied(), "no fault");
    let all = files.calls();
    assert!(all > 150, "{all}");
    for call in 1..=all {
        let files = SimulatedFileSystem::default();
        files.crash_at(call);
        // Errors end a life early; that is what is tested.
        let _ = live(&files, Durability::Durable);
        let loss = LOSSES[(call % 4) as usize];
        check(
            &files.after_crash(loss, call),
            &format!("call {call}, {loss:?}"),
        );
        let kind = [io::ErrorKind::Other, io::ErrorKind::StorageFull][(call % 2) as usize];
        let files = SimulatedFileSystem::default();
        files.fail_at(call, kind);
        let _ = live(&files, Durability::Durable);
        check(&files.copied(), &format!("call {call} fails with {kind:?}"));
    }
}

#[test]
fn rows_that_the_unsafe_mode_loses_are_written_again_and_no_others() {
    let files = SimulatedFileSystem::default();
    live(&files, Durability::Os).unwrap();
    for call in 1..=files.calls() {
        let files = SimulatedFileSystem::default();
        files.crash_at(call);
        // The power goes in the middle of it.
        let _ = live(&files, Durability::Os);
        for loss in LOSSES {
            check(
                &files.after_crash(loss, call),
                &format!("call {call}, {loss:?}"),
            );
        }
    }
}

#[test]
fn nobody_else_writes_while_a_stream_feeds() {
    let files: Arc<dyn FileSystem> = Arc::new(SimulatedFileSystem::default());
    let options = options(Layout::Tiered, Durability::Durable);
    let store = Store::create_in(files, root(), schema(), options).unwrap();
    let mut other = store.writer().unwrap();
    let mut writer = store.feed("numbers").unwrap();
    writer.append(&rows(0, 5)).unwrap();
    assert!(other.append(&rows(OTHERS, 1)).is_err());
    assert!(store.feed("letters").is_err());
    assert_eq!(writer.finish().unwrap(), 5);
    other.append(&rows(OTHERS, 1)).unwrap();
    let second = store.feed("letters").unwrap();
    assert_eq!(second.rows(), 0);
    drop(second);
    assert_eq!(store.feed("numbers").unwrap().rows(), 5);
}

#[test]
fn a_mark_that_found_no_space_counts_no_rows_of_others() {
    let mut refused = 0;
    for space in (0..).step_by(8) {
        let files = SimulatedFileSystem::default();
        let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(shared, root(), schema(), options).unwrap();
        files.set_capacity(Some(files.used() + space));
        if store.feed("numbers").is_ok() {
            break;
        }
        refused += 1;
        files.set_capacity(None);
        store.writer().unwrap().append(&rows(OTHERS, 7)).unwrap();
        // The process is killed, with the mark in the manifest or not.
        check(&files.copied(), &format!("{space} bytes"));
    }
    assert!(refused > 20, "{refused}");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a process that is killed drops nothing"
)]
fn a_stream_that_begins_again_with_other_rows_is_refused() {
    // How many rows come behind those of which a run is written, and how the stream ends.
    for (in_log, is_killed) in [(0, false), (0, true), (12, false), (12, true)] {
        let files = SimulatedFileSystem::default();
        let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
        let options = options(Layout::Tiered, Durability::Durable);
        let store = Store::create_in(shared, root(), schema(), options).unwrap();
        store.writer().unwrap().append(&rows(OTHERS, 3)).unwrap();
        let mut writer = store.feed("numbers").unwrap();
        writer.append(&rows(0, 30)).unwrap();
        store.flush().unwrap();
        if in_log > 0 {
            writer.append(&rows(30, in_log)).unwrap();
        }
        match is_killed {
            true => std::mem::forget(writer),
            false => drop(writer),
        }
        drop(store);
        let what = format!("{in_log} rows in the log, killed: {is_killed}");
        let opened = || -> Arc<dyn FileSystem> { Arc::new(files.copied()) };
        let store = Store::open_in(opened(), root()).unwrap();
        let mut writer = store.feed("numbers").unwrap();
        assert_eq!(writer.rows(), 30 + in_log, "{what}");
        // Their last row is another, or all are.
        let changed = [rows(0, 29 + in_log), rows(OTHERS, ROWS)];
        let changed = arrow_select::concat::concat_batches(&changed[0].schema(), &changed);
        for others in [changed.unwrap(), rows(1, ROWS)] {
            let error = writer.unwritten(&others).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}");
            drop(writer);
            writer = store.feed("numbers").unwrap();
        }
        drop(writer);
        assert_eq!(feed_again(&store).unwrap(), ROWS, "{what}");
    }
}
