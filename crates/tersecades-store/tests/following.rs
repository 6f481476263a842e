//! Who follows a store in the process that writes to it, and beside others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use tersecades_store::{Arrival, Durability, Store, StoreOptions, StoreSchema};

/// Numbers that no codec makes smaller.
fn rows(first: u64, count: u64) -> RecordBatch {
    let mixed = |number: u64| {
        let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as i64
    };
    let numbers = Int64Array::from_iter_values((first..first + count).map(mixed));
    let numbers: ArrayRef = Arc::new(numbers);
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

fn create(folder: &Path) -> Store {
    let schema = StoreSchema::new(&rows(0, 1).schema()).unwrap();
    let options = StoreOptions {
        durability: Durability::Os,
        ..StoreOptions::default()
    };
    Store::create(folder, schema, options).unwrap()
}

#[test]
fn a_stream_does_not_wait_for_a_follower_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path());
    let mut feed = store.feed("numbers").unwrap();
    let (_, arrivals) = store.follow().unwrap();
    for part in 0..10 {
        if feed.has_room() {
            feed.append(&rows(part << 19, 1 << 19)).unwrap();
        }
    }
    assert!(!feed.has_room());
    drop(arrivals);
    assert!(feed.has_room());
}

#[test]
fn rows_of_others_arrive_after_a_stream_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path());
    let mut feed = store.feed("numbers").unwrap();
    feed.append(&rows(0, 10)).unwrap();
    feed.finish().unwrap();
    let mut writer = store.writer().unwrap();
    writer.append(&rows(10, 5)).unwrap();
    let outside = Store::open_read_only(folder.path()).unwrap();
    for (store, number) in [(&store, 15), (&outside, 22)] {
        let (snapshot, mut arrivals) = store.follow().unwrap();
        assert_eq!(snapshot.sequence(), number);
        writer.append(&rows(number, 7)).unwrap();
        let arrived = arrivals.next(Duration::from_secs(10)).unwrap();
        let Arrival::Rows(batch) = arrived else {
            panic!("{arrived:?}");
        };
        assert_eq!(batch.rows(), 7);
        let arrived = arrivals.next(Duration::from_millis(200)).unwrap();
        assert!(matches!(arrived, Arrival::Nothing), "{arrived:?}");
    }
}
