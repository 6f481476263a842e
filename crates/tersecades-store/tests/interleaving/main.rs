//! Group commit, manifest swaps and compaction against scans, in many orders of their threads.
//!
//! A scheduler takes the place of the system's: it lets one thread run at a time and decides at
//! every lock who goes on. What fails is printed with the order that it failed in.

#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]
#![allow(dead_code, reason = "the crash tests use more of what is shared")]

#[path = "../crash/device.rs"]
mod device;
#[path = "../crash/simulated.rs"]
mod simulated;
#[path = "../crash/workload.rs"]
mod workload;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use tersecades_store::fs::FileSystem;
use tersecades_store::{Durability, Layout, Store, StoreOptions};

use simulated::SimulatedFileSystem;
use workload::{numbers, options, root, rows, schema};

/// Orders that are tried; `TERSECADES_ORDERS` names another number.
const ORDERS: usize = 300;
/// Rows of an append.
const BATCH: u64 = 9;
/// Appends of each writer.
const APPENDS: u64 = 4;
const WRITERS: u64 = 2;
/// Encoding keeps blocks of values on the stack.
const STACK_BYTES: usize = 2 << 20;

fn orders() -> usize {
    let named = std::env::var("TERSECADES_ORDERS").ok();
    named.and_then(|named| named.parse().ok()).unwrap_or(ORDERS)
}

fn store(files: &SimulatedFileSystem, layout: Layout) -> Store {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    let options = StoreOptions {
        buffer_rows: 20,
        ..options(layout, Durability::Durable)
    };
    Store::create_in(files, root(), schema(), options).unwrap()
}

/// Appends of `writer`: what is acknowledged is counted before the next.
fn write(store: &Store, writer: u64, acknowledged: &AtomicU64) {
    let mut rows_of = store.writer().unwrap();
    for append in 0..APPENDS {
        let first = (writer * APPENDS + append) * BATCH;
        rows_of.append(&rows(first, BATCH)).unwrap();
        acknowledged.fetch_add(BATCH, Ordering::Relaxed);
    }
}

/// Scans: each sees all that was acknowledged before it began, whole appends, each row once.
fn read(store: &Store, acknowledged: &AtomicU64) {
    let mut seen = 0;
    for _ in 0..4 {
        let least = acknowledged.load(Ordering::Relaxed).max(seen);
        let found = numbers(store).unwrap();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        assert!(found.len() as u64 >= least, "{} of {least}", found.len());
        for batch in found.chunks(BATCH as usize) {
            assert!(batch[0] % BATCH == 0 && batch[batch.len() - 1] == batch[0] + BATCH - 1);
        }
        seen = found.len() as u64;
    }
}

fn live(layout: Layout) {
    let files = SimulatedFileSystem::default();
    let store = Arc::new(store(&files, layout));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let (store, acknowledged) = (Arc::clone(&store), Arc::clone(&acknowledged));
        threads.push(thread::spawn(move || write(&store, writer, &acknowledged)));
    }
    let (reader, before) = (Arc::clone(&store), Arc::clone(&acknowledged));
    threads.push(thread::spawn(move || read(&reader, &before)));
    let upkeep = Arc::clone(&store);
    threads.push(thread::spawn(move || {
        for _ in 0..3 {
            upkeep.flush().unwrap();
            upkeep.compact_where_full().unwrap();
        }
        upkeep.compact().unwrap();
    }));
    for thread in threads {
        thread.join().unwrap();
    }
    let all = WRITERS * APPENDS * BATCH;
    assert!(numbers(&store).unwrap().into_iter().eq(0..all));
    // Not closed, and opened again from what is on the disk.
    drop(store);
    let files: Arc<dyn FileSystem> = Arc::new(files.copied());
    let opened = Store::open_in(files, root()).unwrap();
    assert!(numbers(&opened).unwrap().into_iter().eq(0..all));
}

fn run(layout: Layout, scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(scheduler, config).run(move || live(layout));
}

#[test]
fn scans_see_what_was_acknowledged_in_any_order_of_threads() {
    for layout in [Layout::Tiered, Layout::Leveled] {
        run(layout, RandomScheduler::new(orders()));
    }
}

#[test]
fn rare_orders_are_no_different() {
    run(Layout::Tiered, PctScheduler::new(3, orders()));
}

/// A stream feeds the store while others write, who try again until it has ended. The store that
/// is opened next knows how many rows of the stream it has.
fn feed() {
    const FED: u64 = 5;
    let files = SimulatedFileSystem::default();
    let store = Arc::new(store(&files, Layout::Tiered));
    let others = Arc::clone(&store);
    let writer = thread::spawn(move || {
        let mut writer = others.writer().unwrap();
        let mut append = |first| {
            while let Err(error) = writer.append(&rows(first, 1)) {
                assert!(error.message().contains("feeds this store"), "{error}");
                thread::yield_now();
            }
        };
        (FED..FED + 3).for_each(&mut append);
    });
    let mut stream = store.feed("numbers").unwrap();
    stream.append(&rows(0, FED)).unwrap();
    assert_eq!(stream.finish().unwrap(), FED);
    writer.join().unwrap();
    assert!(numbers(&store).unwrap().into_iter().eq(0..FED + 3));
    drop(store);
    let files: Arc<dyn FileSystem> = Arc::new(files.copied());
    let opened = Store::open_in(files, root()).unwrap();
    assert_eq!(opened.feed("numbers").unwrap().rows(), FED);
}

#[test]
fn rows_of_others_are_never_counted_as_those_of_a_stream() {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(RandomScheduler::new(orders()), config).run(feed);
}
