//! Queries that follow a store are killed and taken over, while their rows move from the log to
//! runs, from run to run, and out of the store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use tersecades_columnar::Error;
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{col, lit};
use tersecades_engine::runtime::Running;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{hop, session, tumble};
use tersecades_store::{Durability, Store, StoreOptions, StoreSchema};
use tersecades_testkit::random::Random;

/// Rows of numbers `from` on, whose times come out of order, some of them too late.
fn rows(random: &mut Random, from: i64, count: i64) -> RecordBatch {
    let numbers = from..from + count;
    let late = |random: &mut Random| match random.below(20) {
        0 => random.between(0, 400),
        _ => random.between(0, 30),
    };
    let times = numbers.clone().map(|n| 10 * n - late(random));
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
    let hosts = numbers.clone().map(|n| format!("host {}", n * 7 % 5));
    let hosts: ArrayRef = Arc::new(StringArray::from_iter_values(hosts));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    RecordBatch::try_from_iter([("ts", times), ("n", numbers), ("host", hosts)]).unwrap()
}

/// A store that writes and merges runs often.
fn create(folder: &Path, keys: &[&str], options: StoreOptions) -> Store {
    let columns = rows(&mut Random::new(0), 0, 1).schema();
    let schema = StoreSchema::new(&columns).unwrap();
    let schema = schema.key(keys).unwrap().time("ts").unwrap();
    let options = StoreOptions {
        durability: Durability::Os,
        buffer_rows: 200,
        chunk_rows: 64,
        level_ratio: 2,
        ..options
    };
    Store::create(folder, schema, options).unwrap()
}

type Query = fn(Stream) -> Stream;

/// Queries whose results come in an order.
const QUERIES: [Query; 5] = [
    |rows| {
        let windows = rows.window(tumble(Duration::from_millis(100)));
        let windows = windows.group_by(["host"]);
        windows.aggregate([count().alias("rows"), call("sum", col("n")).alias("total")])
    },
    |rows| {
        let windows = rows.window(hop(Duration::from_millis(400), Duration::from_millis(100)));
        windows.aggregate([call("median", col("n")).alias("middle")])
    },
    |rows| {
        let windows = rows.window(session(Duration::from_millis(25)));
        windows
            .group_by(["host"])
            .aggregate([count().alias("rows")])
    },
    |rows| rows.filter(col("n").gt(lit(100))),
    |rows| rows.distinct(),
];

fn start(store: &Arc<Store>, query: Query) -> Running {
    let rows = Stream::from_store(store).unwrap();
    let lateness = Duration::from_millis(30);
    query(rows.event_time(col("ts"), lateness)).run().unwrap()
}

/// Results put together, in their order.
fn together(results: &[RecordBatch]) -> Option<RecordBatch> {
    let schema = results.first()?.schema();
    let decoded = |batch: &RecordBatch| {
        let columns = batch
            .columns()
            .iter()
            .map(|column| match column.data_type() {
                arrow_schema::DataType::Dictionary(_, value) => {
                    arrow_cast::cast(column, value).unwrap()
                }
                _ => Arc::clone(column),
            });
        let names = schema.fields().iter().map(|field| field.name().clone());
        RecordBatch::try_from_iter_with_nullable(
            names
                .zip(columns)
                .map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    };
    let results: Vec<RecordBatch> = results.iter().map(decoded).collect();
    Some(concat_batches(&results[0].schema(), &results).unwrap())
}

/// A query that is killed and taken over, and what has come out of it.
struct Follower {
    running: Option<Running>,
    results: Vec<RecordBatch>,
    /// The last snapshot, and the results there were.
    kept: (Vec<u8>, usize),
}

impl Follower {
    fn drain(&mut self) {
        let running = self.running.as_mut().unwrap();
        self.results
            .extend(std::iter::from_fn(|| running.take_result()));
    }

    /// Steps, now and then takes a snapshot, before or behind results that wait, or is killed.
    fn act(&mut self, random: &mut Random, store: &Arc<Store>, query: Query) {
        let running = self.running.get_or_insert_with(|| {
            let mut running = start(store, query);
            running.restore(&self.kept.0).unwrap();
            self.results.truncate(self.kept.1);
            running
        });
        for _ in 0..random.below(4) {
            running.step().unwrap();
        }
        if random.below(2) == 0 {
            self.drain();
        }
        let running = self.running.as_mut().unwrap();
        match random.below(4) {
            0 => self.kept = (running.snapshot().unwrap(), self.results.len()),
            1 => self.running = None,
            _ => {}
        }
    }

    fn finish(mut self, random: &mut Random, store: &Arc<Store>, query: Query) -> Vec<RecordBatch> {
        while self.running.is_none() {
            self.act(random, store, query);
        }
        self.drain();
        let rest = self.running.take().unwrap();
        self.results.extend(rest.map(Result::unwrap));
        self.results
    }
}

/// A store that is written to, merged and opened again, and a query that is killed beside it.
struct Trial {
    random: Random,
    folder: tempfile::TempDir,
    /// `None` while it is opened again.
    store: Option<Arc<Store>>,
    sent: i64,
    query: Query,
    /// Whether the query runs in the process that writes.
    within: bool,
}

impl Trial {
    fn new(seed: u64, query: Query, within: bool) -> Self {
        let mut random = Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let keys: &[&str] = [&[][..], &["host"]][random.below(2)];
        let options = StoreOptions {
            keep_bytes: (random.below(2) == 0).then_some(4 << 10),
            ..StoreOptions::default()
        };
        let store = Arc::new(create(folder.path(), keys, options));
        Trial {
            random,
            folder,
            store: Some(store),
            sent: 0,
            query,
            within,
        }
    }

    fn append(&mut self) {
        let count = self.random.between(1, 60);
        let rows = rows(&mut self.random, self.sent, count);
        let store = self.store.as_ref().unwrap();
        store.writer().unwrap().append(&rows).unwrap();
        self.sent += count;
    }

    /// The store as another process sees it.
    fn outside(&self) -> Arc<Store> {
        Arc::new(Store::open_read_only(self.folder.path()).unwrap())
    }

    /// The store as the query sees it.
    fn followed(&self) -> Arc<Store> {
        match self.within {
            true => Arc::clone(self.store.as_ref().unwrap()),
            false => self.outside(),
        }
    }

    /// Changes the store, and lets the query act.
    fn live(&mut self, follower: &mut Follower) {
        self.append();
        match self.random.below(12) {
            0 => self.store.as_ref().unwrap().flush().unwrap(),
            1 => self.store.as_ref().unwrap().compact().unwrap(),
            2 => {
                // The process ends, and with it who follows within.
                if self.within {
                    follower.running = None;
                }
                self.store = None;
                self.store = Some(Arc::new(Store::open(self.folder.path()).unwrap()));
            }
            _ => {}
        }
        let followed = self.followed();
        follower.act(&mut self.random, &followed, self.query);
    }

    /// All results of the query that is killed.
    fn finish(&mut self, follower: Follower) -> Vec<RecordBatch> {
        if self.within {
            // It ends with the stream that feeds the store.
            let store = self.store.as_ref().unwrap();
            store.feed("nothing").unwrap().finish().unwrap();
        } else {
            let store = self.store.take().and_then(Arc::into_inner);
            store.unwrap().close().unwrap();
        }
        let followed = self.followed();
        follower.finish(&mut self.random, &followed, self.query)
    }
}

/// Runs a query to the end of a store without a break, and one that is killed beside it.
fn compare(seed: u64, query: Query, within: bool) {
    let mut trial = Trial::new(seed, query, within);
    for _ in 0..trial.random.below(12) {
        trial.append();
    }
    let whole = start(&trial.outside(), query);
    let whole = std::thread::spawn(move || whole.map(Result::unwrap).collect::<Vec<_>>());
    let mut running = start(&trial.followed(), query);
    let begun = running.snapshot().unwrap();
    let mut follower = Follower {
        running: Some(running),
        results: Vec::new(),
        kept: (begun, 0),
    };
    for _ in 0..40 {
        trial.live(&mut follower);
    }
    let found = trial.finish(follower);
    assert_eq!(
        together(&found),
        together(&whole.join().unwrap()),
        "seed {seed}"
    );
}

#[test]
fn who_follows_another_process_goes_on_after_a_kill_as_if_nothing_had_happened() {
    for seed in 0..4 {
        QUERIES
            .iter()
            .for_each(|query| compare(seed, *query, false));
    }
}

#[test]
fn who_follows_within_the_process_goes_on_after_a_kill_as_if_nothing_had_happened() {
    for seed in 100..104 {
        QUERIES.iter().for_each(|query| compare(seed, *query, true));
    }
}

#[test]
fn a_query_that_is_taken_over_fails_where_the_stream_behind_its_rows_has_failed() {
    for within in [false, true] {
        let mut random = Random::new(7);
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(create(folder.path(), &[], StoreOptions::default()));
        let mut feed = store.feed("probes").unwrap();
        feed.append(&rows(&mut random, 0, 50)).unwrap();
        let followed = || match within {
            true => Arc::clone(&store),
            false => Arc::new(Store::open_read_only(folder.path()).unwrap()),
        };
        let mut running = start(&followed(), QUERIES[3]);
        let begun = running.snapshot().unwrap();
        drop(running);
        feed.append(&rows(&mut random, 50, 50)).unwrap();
        feed.fail(&Error::invalid("the cable is cut"));
        let mut running = start(&followed(), QUERIES[3]);
        running.restore(&begun).unwrap();
        assert!(running.any(|result| result.is_err()), "within: {within}");
    }
}
