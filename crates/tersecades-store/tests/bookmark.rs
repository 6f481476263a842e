//! Followers that are stopped and come back: each row once, or an error that says what is gone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_columnar::codec::Work;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::{Error, ErrorKind};
use tersecades_store::{Arrival, Arrivals, Bookmark, Store, StoreOptions, StoreSchema, repair};

fn rows(first: i64, count: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

fn create(path: &Path) -> Store {
    let schema = StoreSchema::new(&rows(0, 0).schema()).unwrap();
    Store::create(path, schema, StoreOptions::default()).unwrap()
}

fn append(store: &Store, first: i64, count: i64) {
    let rows = rows(first, count);
    store.writer().unwrap().append(&rows).unwrap();
}

/// Takes rows, which are `next` and those behind it, until none has come for a while.
fn take(arrivals: &mut Arrivals, next: &mut i64) {
    while let Arrival::Rows(batch) = arrivals.next(Duration::from_millis(40)).unwrap() {
        let all = Selection::all(batch.rows());
        let rows = batch.to_arrow(&all, &mut Work::default()).unwrap();
        for number in rows.column(0).as_primitive::<Int64Type>().values() {
            assert_eq!(*number, *next);
            *next += 1;
        }
    }
}

fn count(folder: &Path, name: &str) -> usize {
    std::fs::read_dir(folder.join(name)).map_or(0, Iterator::count)
}

/// Bytes of the log from the segment of `bookmark` on, but for the one that is written.
fn log_behind(folder: &Path, bookmark: &str) -> u64 {
    let (_, segment) = bookmark.split_once('/').unwrap();
    let log = std::fs::read_dir(folder.join("log")).unwrap();
    let mut log: Vec<_> = log.map(Result::unwrap).collect();
    log.sort_by_key(std::fs::DirEntry::file_name);
    log.pop();
    log.retain(|file| *file.file_name().to_string_lossy() >= segment[..10]);
    log.iter().map(|file| file.metadata().unwrap().len()).sum()
}

/// As bytes, and back.
fn again(bookmark: &Bookmark) -> Bookmark {
    Bookmark::from_bytes(&bookmark.to_bytes()).unwrap()
}

#[test]
fn a_bookmark_keeps_the_log_and_two_later_ones_let_it_go() {
    for within in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut store = create(path);
        append(&store, 0, 10);
        let outside = || Store::open_read_only(path).unwrap();
        let follow = |store: &Store| match within {
            true => store.follow().unwrap().1,
            false => outside().follow().unwrap().1,
        };
        let mut arrivals = follow(&store);
        let (mut next, mut first) = (10, 10);
        for round in 0..8 {
            append(&store, first, 5);
            first += 5;
            if round % 3 > 0 {
                take(&mut arrivals, &mut next);
            }
            let bookmark = again(&arrivals.bookmark().unwrap());
            assert_eq!(bookmark.rows() as i64, next);
            drop(arrivals);
            for _ in 0..2 {
                append(&store, first, 5);
                first += 5;
                store.flush().unwrap();
            }
            store.compact().unwrap();
            if round % 2 == 0 {
                store.close().unwrap();
                store = Store::open(path).unwrap();
            }
            assert!(count(path, "bookmarks") <= 2);
            let followed = if within { None } else { Some(outside()) };
            let followed = followed.as_ref().unwrap_or(&store);
            arrivals = followed.follow_from(&bookmark).unwrap();
        }
        take(&mut arrivals, &mut next);
        assert_eq!(next, first);
        assert!(count(path, "log") > 2);
        let bookmark = &store.bookmarks().unwrap()[0];
        assert!(bookmark.kept_bytes > 0 && bookmark.left.is_some());
        assert_eq!(bookmark.kept_bytes, log_behind(path, &bookmark.file));
        // Two bookmarks at the end of the log keep nothing else.
        for _ in 0..3 {
            append(&store, first, 5);
            first += 5;
            take(&mut arrivals, &mut next);
            arrivals.bookmark().unwrap();
            store.flush().unwrap();
        }
        drop(arrivals);
        append(&store, first, 5);
        store.flush().unwrap();
        assert!(count(path, "log") <= 4, "{} segments", count(path, "log"));
        std::fs::remove_dir_all(path.join("bookmarks")).unwrap();
        append(&store, first + 5, 5);
        store.flush().unwrap();
        assert_eq!(count(path, "log"), 1);
    }
}

#[test]
fn who_comes_back_to_a_bookmark_lets_nothing_go_that_another_needs_who_does() {
    for within in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let store = create(path);
        let outside = Store::open_read_only(path).unwrap();
        let followed = if within { &store } else { &outside };
        append(&store, 0, 10);
        let bookmark = store.follow().unwrap().1.bookmark().unwrap();
        let mut one = followed.follow_from(&again(&bookmark)).unwrap();
        let mut other = followed.follow_from(&again(&bookmark)).unwrap();
        let (mut next, mut others) = (10, 10);
        let on = |arrivals: &mut Arrivals, next: &mut i64| {
            let rows = store.snapshot().sequence() as i64;
            append(&store, rows, 5);
            store.flush().unwrap();
            take(arrivals, next);
            arrivals.bookmark().unwrap()
        };
        for _ in 0..3 {
            on(&mut one, &mut next);
        }
        // The other has taken none yet, and comes back to where both began.
        drop(other);
        other = followed.follow_from(&bookmark).unwrap();
        let place = on(&mut other, &mut others);
        for _ in 0..3 {
            on(&mut one, &mut next);
        }
        drop(other);
        other = followed.follow_from(&place).unwrap();
        take(&mut other, &mut others);
        assert_eq!((next, others), (45, 45), "within: {within}");
        for _ in 0..2 {
            on(&mut other, &mut others);
        }
        // Two each, and the one that was left without a later one.
        assert_eq!(count(path, "bookmarks"), 5, "within: {within}");
        let error = followed.follow_from(&place).err().unwrap().to_string();
        assert!(error.contains("is gone"), "{error}");
    }
}

#[test]
fn rows_that_left_the_log_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = create(path);
    append(&store, 0, 10);
    let mut arrivals = store.follow().unwrap().1;
    let bookmark = arrivals.bookmark().unwrap();
    drop(arrivals);
    append(&store, 10, 7);
    store.flush().unwrap();
    append(&store, 17, 3);
    // As the writer does with what is behind its limit.
    let log = std::fs::read_dir(path.join("log")).unwrap();
    let oldest = log.map(|file| file.unwrap().path()).min().unwrap();
    std::fs::remove_file(oldest).unwrap();
    for store in [&store, &Store::open_read_only(path).unwrap()] {
        let error = store.follow_from(&bookmark).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(
            error.to_string().contains("7 rows from number 10 on"),
            "{error}"
        );
    }
}

#[test]
fn stores_that_are_not_what_they_were_are_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path();
    let store = create(path);
    append(&store, 0, 10);
    let elsewhere = create(other.path());
    append(&elsewhere, 0, 10);
    let log = std::fs::read_dir(path.join("log")).unwrap();
    let log = log.map(|file| file.unwrap().path()).max().unwrap();
    let copy = || std::fs::read(&log).unwrap();
    let before = copy();
    append(&store, 10, 10);
    let mut arrivals = store.follow().unwrap().1;
    let bookmark = arrivals.bookmark().unwrap();
    drop(arrivals);
    let refused = |store: &Store, what: &str| {
        let error = store.follow_from(&bookmark).err().unwrap();
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(&elsewhere, "another store");
    append(&store, 20, 10);
    drop(store);
    let whole = copy();
    // An older state of the log, as a power cut leaves one that is not synced.
    std::fs::write(&log, before).unwrap();
    refused(&Store::open_read_only(path).unwrap(), "it has 10");
    // A repair that loses rows gives others their numbers.
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    assert_eq!(repair(path).unwrap().lost_log_rows, 10);
    refused(&Store::open(path).unwrap(), "is gone");
    assert!(Bookmark::from_bytes(b"something else").is_err());
}

#[test]
fn a_repair_that_loses_nothing_leaves_followers_where_they_are() {
    for within in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let store = create(path);
        append(&store, 0, 10);
        let mut arrivals = store.follow().unwrap().1;
        let bookmark = arrivals.bookmark().unwrap();
        drop(arrivals);
        append(&store, 10, 5);
        store.flush().unwrap();
        append(&store, 15, 5);
        store.close().unwrap();
        let run = std::fs::read_dir(path.join("runs")).unwrap();
        let run = run.map(|file| file.unwrap().path()).max().unwrap();
        let mut bytes = std::fs::read(&run).unwrap();
        bytes.extend_from_slice(&[7; 100]);
        std::fs::write(&run, bytes).unwrap();
        let repaired = repair(path).unwrap();
        assert!(repaired.given_up.is_empty(), "{repaired:?}");
        assert_eq!((repaired.rows, repaired.appended_bytes), (20, 100));
        let store = match within {
            true => Store::open(path).unwrap(),
            false => Store::open_read_only(path).unwrap(),
        };
        let mut arrivals = store.follow_from(&bookmark).unwrap();
        let mut next = 10;
        take(&mut arrivals, &mut next);
        assert_eq!(next, 20, "within: {within}");
    }
}

#[test]
fn who_comes_back_to_a_stream_that_has_failed_meanwhile_hears_of_it_behind_its_rows() {
    for within in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let store = create(path);
        let mut feed = store.feed("probes").unwrap();
        feed.append(&rows(0, 10)).unwrap();
        let mut arrivals = store.follow().unwrap().1;
        let bookmark = arrivals.bookmark().unwrap();
        drop(arrivals);
        feed.append(&rows(10, 5)).unwrap();
        feed.fail(&Error::invalid("the cable is cut"));
        let outside = Store::open_read_only(path).unwrap();
        let followed = if within { &store } else { &outside };
        let mut arrivals = followed.follow_from(&bookmark).unwrap();
        let wait = Duration::from_secs(5);
        assert!(matches!(arrivals.next(wait).unwrap(), Arrival::Rows(_)));
        // All rows are read: the failure is what follows, and was heard of by who is behind it.
        let at_end = arrivals.bookmark().unwrap();
        let error = arrivals.next(wait).unwrap_err().to_string();
        let reason = if within {
            "the cable is cut"
        } else {
            "has failed"
        };
        assert!(error.contains(reason), "within: {within}, {error}");
        let mut arrivals = followed.follow_from(&at_end).unwrap();
        assert!(matches!(arrivals.next(wait).unwrap(), Arrival::End));
    }
}

#[test]
fn a_bookmark_says_why_the_log_cannot_be_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = create(path);
    append(&store, 0, 10);
    let log = std::fs::read_dir(path.join("log")).unwrap();
    let log = log.map(|file| file.unwrap().path()).max().unwrap();
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&log, &log).unwrap();
    let mut arrivals = store.follow().unwrap().1;
    let error = arrivals.bookmark().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

#[test]
fn a_repair_gives_no_segment_the_number_of_one_that_a_bookmark_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = create(path);
    append(&store, 0, 10);
    store.flush().unwrap();
    append(&store, 10, 10);
    let bookmark = store.follow().unwrap().1.bookmark().unwrap();
    drop(store);
    // The whole log is lost.
    for file in std::fs::read_dir(path.join("log")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    repair(path).unwrap();
    let mut rows = 0;
    for _ in 0..8 {
        // A segment each, and others' bookmarks at them.
        let store = Store::open(path).unwrap();
        rows = store.snapshot().sequence() as i64;
        append(&store, rows, 10);
        store.follow().unwrap().1.bookmark().unwrap();
        let error = store.follow_from(&bookmark).err().unwrap().to_string();
        assert!(error.contains("rows of the store were read") || error.contains("is gone"));
    }
    assert!(rows > 20, "{rows}");
}
