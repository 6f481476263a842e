//! One answer over live and past: a stream that is kept in a store, read while it flows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{col, lit};
use tersecades_engine::runtime::{Interrupt, Running};
use tersecades_engine::source::history::HistoryTable;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::tumble;
use tersecades_engine::{Error, ErrorKind};
use tersecades_store::{Durability, Store, StoreOptions, StoreSchema};

const ROWS: i64 = 60_000;
const BATCH: usize = 500;
/// Milliseconds of a window.
const WINDOW: i64 = 1_000;
/// Rows of hosts that windows are grouped by.
const HOSTS: i64 = 7;

/// Row n: time n, but pairs of rows have changed places.
fn rows() -> RecordBatch {
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|n| n ^ 1)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|n| n ^ 1)));
    let host = |n: i64| format!("host {}", (n ^ 1) % HOSTS);
    let hosts: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(host)));
    RecordBatch::try_from_iter([("ts", times), ("n", numbers), ("host", hosts)]).unwrap()
}

fn stream() -> Stream {
    let rows = rows();
    let batches = (0..rows.num_rows()).step_by(BATCH);
    let batches = batches.map(|start| rows.slice(start, BATCH)).collect();
    Stream::from_batches(rows.schema(), batches)
}

/// A store that writes and merges runs often; `keys` are what it sorts by.
fn create(folder: &Path, keys: &[&str]) -> Arc<Store> {
    let schema = StoreSchema::new(&rows().schema()).unwrap();
    let schema = schema.key(keys).unwrap().time("ts").unwrap();
    let options = StoreOptions {
        durability: Durability::Os,
        buffer_rows: 2_000,
        chunk_rows: 512,
        level_ratio: 4,
        ..StoreOptions::default()
    };
    Arc::new(Store::create(folder, schema, options).unwrap())
}

/// Sums of an integer column of results.
fn sum(batches: Running, column: &str) -> i64 {
    let sum = |batch: RecordBatch| -> i64 {
        let values = batch.column_by_name(column).unwrap();
        values.as_primitive::<Int64Type>().values().iter().sum()
    };
    batches.map(|batch| sum(batch.unwrap())).sum()
}

/// Counts and sums of what is in the store, by a query.
fn count_now(store: &Store) -> (i64, i64) {
    let history = Stream::from_table(HistoryTable::new(store.snapshot()));
    let found = history
        .aggregate([count().alias("rows"), call("sum", col("n")).alias("total")])
        .run()
        .unwrap();
    let found: Vec<RecordBatch> = found.map(Result::unwrap).collect();
    let value = |column: usize| found[0].column(column).as_primitive::<Int64Type>().value(0);
    match value(0) {
        0 => (0, 0),
        rows => (rows, value(1)),
    }
}

/// Windows over all rows, those to come included: rows and sum of each window and host.
fn windows(store: &Arc<Store>, threads: usize) -> BTreeMap<(i64, String), (i64, i64)> {
    let results = Stream::from_store(store)
        .unwrap()
        .event_time(col("ts"), Duration::from_millis(1))
        .threads(threads)
        .window(tumble(Duration::from_millis(WINDOW as u64)))
        .group_by(["host"])
        .aggregate([count().alias("rows"), call("sum", col("n")).alias("total")])
        .run()
        .unwrap();
    let mut found = BTreeMap::new();
    for batch in results {
        let batch = batch.unwrap();
        let hosts = batch.column_by_name("host").unwrap();
        let hosts = arrow_cast::cast(hosts, &arrow_schema::DataType::Utf8).unwrap();
        let column = |name: &str| {
            let column = batch.column_by_name(name).unwrap();
            let column = arrow_cast::cast(column, &arrow_schema::DataType::Int64).unwrap();
            column.as_primitive::<Int64Type>().clone()
        };
        let (starts, rows, totals) = (column("window_start"), column("rows"), column("total"));
        for row in 0..batch.num_rows() {
            let key = (
                starts.value(row),
                hosts.as_string::<i32>().value(row).to_owned(),
            );
            let value = (rows.value(row), totals.value(row));
            assert_eq!(found.insert(key, value), None, "a window came out twice");
        }
    }
    found
}

/// The same, computed from the definition of the rows.
fn expected() -> BTreeMap<(i64, String), (i64, i64)> {
    let mut found = BTreeMap::new();
    for n in 0..ROWS {
        let key = (n / WINDOW * WINDOW, format!("host {}", n % HOSTS));
        let (rows, total) = found.entry(key).or_insert((0, 0));
        (*rows, *total) = (*rows + 1, *total + n);
    }
    found
}

#[test]
fn readers_miss_and_double_no_row_while_a_stream_flows_and_begins_again() {
    for keys in [&[][..], &["host"]] {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path(), keys);
        let feeding = stream().feed("numbers", &store).unwrap().start().unwrap();
        let stopped = AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let counting = scope.spawn(|| {
                let (mut before, mut looks) = (0, 0);
                while !stopped.load(Ordering::Relaxed) {
                    let (rows, total) = count_now(&store);
                    assert!(rows >= before, "{rows} rows after {before}");
                    // Batches are pairs: the first rows are the first numbers.
                    assert_eq!(total, rows * (rows - 1).max(0) / 2, "{rows} rows");
                    (before, looks) = (rows, looks + 1);
                }
                looks
            });
            while count_now(&store).0 < ROWS / 2 {
                std::thread::yield_now();
            }
            let written = feeding.stop().unwrap();
            stopped.store(true, Ordering::Relaxed);
            assert!(counting.join().unwrap() > 2);
            written
        });
        assert!(
            (ROWS as u64 / 2..ROWS as u64).contains(&written),
            "{written}"
        );
        Arc::into_inner(store).unwrap().close().unwrap();

        let store = Arc::new(Store::open(folder.path()).unwrap());
        // Followers that begin before the stream does, while it flows, and after its end.
        let first = Arc::clone(&store);
        let feed = stream().feed("numbers", &store).unwrap();
        let early = std::thread::spawn(move || windows(&first, 1));
        let feeding = feed.start().unwrap();
        assert_eq!(windows(&store, 2), expected());
        assert_eq!(feeding.finish().unwrap(), ROWS as u64);
        assert_eq!(early.join().unwrap(), expected());
        assert_eq!(windows(&store, 1), expected());
        assert_eq!(count_now(&store), (ROWS, ROWS * (ROWS - 1) / 2));
    }
}

#[test]
fn windows_come_out_before_the_stream_ends() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), &[]);
    let half = stream().filter(col("n").lt(lit(ROWS / 2)));
    half.feed("numbers", &store).unwrap().run().unwrap();
    let mut writer = store.feed("more").unwrap();
    let mut follower = Stream::from_store(&store)
        .unwrap()
        .event_time(col("ts"), Duration::from_millis(1))
        .window(tumble(Duration::from_millis(WINDOW as u64)))
        .aggregate([count().alias("rows")])
        .run()
        .unwrap();
    let mut closed = 0;
    let mut step = |closed: &mut i64| {
        follower.step().unwrap();
        while let Some(batch) = follower.take_result() {
            let rows = batch.column_by_name("rows").unwrap();
            let rows = rows.as_primitive::<Int64Type>().value(0);
            assert_eq!(rows, WINDOW, "a window of a whole second");
            *closed += 1;
        }
    };
    let mut most_at_once = 0;
    while closed < ROWS / 2 / WINDOW - 1 {
        let before = closed;
        step(&mut closed);
        most_at_once = most_at_once.max(closed - before);
    }
    // History in the order of time closes its windows one after the other.
    assert!(most_at_once <= 4, "{most_at_once} windows closed at once");
    writer
        .append(&rows().slice(ROWS as usize / 2, 2 * WINDOW as usize))
        .unwrap();
    while closed < ROWS / 2 / WINDOW + 1 {
        step(&mut closed);
    }
}

#[test]
fn followers_read_the_groups_of_history_that_may_hold_wanted_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), &[]);
    stream().feed("numbers", &store).unwrap().run().unwrap();
    store.flush().unwrap();
    let runs = std::fs::read_dir(folder.path().join("runs")).unwrap();
    for run in runs.map(|run| run.unwrap().path()) {
        // The first group, which lies behind the header.
        let mut bytes = std::fs::read(&run).unwrap();
        bytes[64..96].fill(0xff);
        std::fs::write(&run, bytes).unwrap();
    }
    let follow = || Stream::from_store(&store).unwrap();
    let last = follow().filter(col("n").gt_eq(lit(ROWS - 100)));
    assert_eq!(
        sum(last.run().unwrap(), "n"),
        (ROWS - 100..ROWS).sum::<i64>()
    );
    assert!(follow().run().unwrap().any(|batch| batch.is_err()));
}

#[test]
fn a_follower_hears_of_a_failure_and_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), &[]);
    let failing = Interrupt::new(|| Err(Error::new(ErrorKind::Interrupted, "no more")));
    let feed = stream().interrupt(failing).feed("numbers", &store).unwrap();
    let mut follower = Stream::from_store(&store).unwrap().run().unwrap();
    assert_eq!(feed.run().unwrap_err().message(), "no more");
    let failed = follower.find_map(Result::err).unwrap();
    assert_eq!(failed.message(), "no more");

    let writer = store.feed("numbers").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let interrupt = Interrupt::new(move || match seen.load(Ordering::Relaxed) {
        true => Err(Error::new(ErrorKind::Interrupted, "stopped")),
        false => Ok(()),
    });
    let waiting = Stream::from_store(&store).unwrap().interrupt(interrupt);
    let waiting = std::thread::spawn(move || waiting.run().unwrap().find_map(Result::err));
    std::thread::sleep(Duration::from_millis(60));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(waiting.join().unwrap().unwrap().message(), "stopped");
    drop(writer);
    assert_eq!(
        sum(Stream::from_store(&store).unwrap().run().unwrap(), "n"),
        0
    );
}

#[test]
fn a_query_that_follows_ends_where_the_store_is_closed_under_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), &[]);
    let append = |store: &Store, rows: std::ops::Range<usize>| {
        let batch = self::rows().slice(rows.start, rows.len());
        store.writer().unwrap().append(&batch).unwrap();
    };
    append(&store, 0..100);
    let mut following = Stream::from_store(&store).unwrap().run().unwrap();
    assert!(following.step().unwrap());
    append(&store, 100..300);
    Arc::into_inner(store).unwrap().close().unwrap();
    assert_eq!(sum(following, "n"), (0..300).sum::<i64>());
}

#[test]
fn a_stream_with_fewer_rows_than_the_store_has_of_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), &[]);
    stream().feed("numbers", &store).unwrap().run().unwrap();
    let half = || stream().filter(col("n").lt(lit(ROWS / 2)));
    let error = half().feed("numbers", &store).unwrap().run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(count_now(&store).0, ROWS);
    // What does not begin again is another matter.
    let more = half().feed("numbers", &store).unwrap().goes_on();
    assert_eq!(more.run().unwrap() as i64, ROWS + ROWS / 2);
}

#[test]
fn a_stream_that_begins_again_behind_other_rows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path(), &[]);
    let all = rows();
    let from = |first: usize| {
        let rows = all.slice(first, all.num_rows() - first);
        Stream::from_batches(rows.schema(), vec![rows])
    };
    from(10_000).feed("numbers", &store).unwrap().run().unwrap();
    let error = from(0).feed("numbers", &store).unwrap().run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("first 50000 rows"), "{error}");
    assert_eq!(count_now(&store).0, ROWS - 10_000);
    let again = from(10_000).feed("numbers", &store).unwrap().run();
    assert_eq!(again.unwrap() as i64, ROWS - 10_000);
}

#[test]
fn who_reads_beside_the_writer_follows_as_those_within() {
    for keys in [&[][..], &["host"]] {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path(), keys);
        let outside = || Arc::new(Store::open_read_only(folder.path()).unwrap());
        let feed = stream().feed("numbers", &store).unwrap();
        let early = outside();
        let early = std::thread::spawn(move || windows(&early, 1));
        let feeding = feed.start().unwrap();
        assert_eq!(windows(&outside(), 2), expected());
        assert_eq!(feeding.finish().unwrap(), ROWS as u64);
        assert_eq!(early.join().unwrap(), expected());
        let all = Stream::from_store(&outside()).unwrap();
        assert_eq!(sum(all.run().unwrap(), "n"), (0..ROWS).sum::<i64>());
    }
}

/// What lies in any order is late for none of the queries, as for one alone.
#[test]
fn queries_that_stand_together_wait_for_history() {
    for keys in [&[][..], &["host"]] {
        let folder = tempfile::tempdir().unwrap();
        let store = create(folder.path(), keys);
        stream().feed("numbers", &store).unwrap().run().unwrap();
        let all = Stream::from_store(&store).unwrap();
        let all = all.event_time(col("ts"), Duration::from_millis(1));
        let counted = |millis| {
            let window = tumble(Duration::from_millis(millis));
            all.clone()
                .window(window)
                .aggregate([count().alias("rows")])
        };
        let queries = [("short", counted(WINDOW as u64)), ("long", counted(7_000))];
        let mut run = all.clone().standing(queries).unwrap();
        let mut rows: BTreeMap<Arc<str>, i64> = BTreeMap::new();
        for found in run.by_ref() {
            let (name, batch) = found.unwrap();
            let counts = batch.column_by_name("rows").unwrap();
            let counts = arrow_cast::cast(counts, &arrow_schema::DataType::Int64).unwrap();
            let counts = counts.as_primitive::<Int64Type>().values().iter();
            *rows.entry(name).or_default() += counts.sum::<i64>();
        }
        assert_eq!((rows["short"], rows["long"]), (ROWS, ROWS), "{keys:?}");
    }
}
