//! Merges beside whoever writes and reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tersecades_store::fs::FileSystem;
use tersecades_store::{Durability, Layout, Store};

use crate::simulated::{LOSSES, SimulatedFileSystem};
use crate::workload::{check, numbers, options, root, rows, schema};

const BATCHES: u64 = 60;
const BATCH: u64 = 17;

/// Appends all batches while runs are merged beside; rows acknowledged and sent.
fn live(files: &SimulatedFileSystem, layout: Layout) -> (u64, u64) {
    let files: Arc<dyn FileSystem> = Arc::new(files.clone());
    let options = options(layout, Durability::Durable);
    let Ok(store) = Store::create_in(files, root(), schema(), options) else {
        return (0, 0);
    };
    let store = Arc::new(store);
    let merger = store.merge_beside().unwrap();
    assert!(store.merge_beside().is_err());
    let mut writer = store.writer().unwrap();
    let mut acknowledged = 0;
    for batch in 0..BATCHES {
        match writer.append(&rows(batch * BATCH, BATCH)) {
            Ok(end) => acknowledged = end,
            Err(_) => return (acknowledged, (batch + 1) * BATCH),
        }
    }
    // What a crash says of merges is of no matter here.
    let _ = merger.finish();
    (acknowledged, BATCHES * BATCH)
}

#[test]
fn readers_see_all_rows_while_runs_are_written_and_merged() {
    for layout in [Layout::Tiered, Layout::Leveled] {
        let files: Arc<dyn FileSystem> = Arc::new(SimulatedFileSystem::default());
        let options = options(layout, Durability::Durable);
        let store = Arc::new(Store::create_in(files, root(), schema(), options).unwrap());
        let merger = store.merge_beside().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut before = 0;
                    while !done.load(Ordering::Relaxed) {
                        let found = numbers(&store).unwrap();
                        let count = found.len() as u64;
                        assert!(found.into_iter().eq(0..count) && count >= before);
                        before = count;
                    }
                });
            }
            let mut writer = store.writer().unwrap();
            for batch in 0..BATCHES * 5 {
                writer.append(&rows(batch * BATCH, BATCH)).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        merger.finish().unwrap();
        assert!(store.activity().compactions > 5, "{:?}", store.activity());
        assert_eq!(numbers(&store).unwrap().len() as u64, BATCHES * 5 * BATCH);
    }
}

#[test]
fn power_cuts_while_runs_merge_beside_lose_no_acknowledged_row() {
    for layout in [Layout::Tiered, Layout::Leveled] {
        let whole = SimulatedFileSystem::default();
        let lived = live(&whole, layout);
        assert_eq!(lived, (BATCHES * BATCH, BATCHES * BATCH));
        check(&whole.copied(), lived, "no fault");
        for call in (1..whole.calls()).step_by(11) {
            let files = SimulatedFileSystem::default();
            files.crash_at(call);
            let lived = live(&files, layout);
            let loss = LOSSES[(call % 4) as usize];
            let what = format!("{layout}, call {call}, {loss:?}");
            check(&files.after_crash(loss, call), lived, &what);
        }
    }
}
