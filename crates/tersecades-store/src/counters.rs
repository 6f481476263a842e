//! What a store has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::workload::Workload;

/// Counts that grow.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    flushes: AtomicU64,
    compactions: AtomicU64,
    written_bytes: AtomicU64,
    spliced_bytes: AtomicU64,
    decoded_bytes: AtomicU64,
    moved_bytes: AtomicU64,
    retiered_bytes: AtomicU64,
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Runs written from memory.
    pub flushes: u64,
    /// Merges of runs.
    pub compactions: u64,
    /// Bytes of runs written.
    pub written_bytes: u64,
    /// Bytes of chunks that merges copied as they were.
    pub spliced_bytes: u64,
    /// Bytes of chunks that merges decoded.
    pub decoded_bytes: u64,
    /// Bytes of runs that changed their level without being touched.
    pub moved_bytes: u64,
    /// Bytes of chunks that were encoded anew on their way to another tier.
    pub retiered_bytes: u64,
    /// Scans.
    pub scans: u64,
    /// Reads by key.
    pub points: u64,
}

impl Counters {
    /// Counts a run of `bytes` written from memory.
    pub(crate) fn flushed(&self, bytes: u64) {
        add(&self.flushes, 1);
        add(&self.written_bytes, bytes);
    }

    /// Counts a merge that wrote `written` bytes, `spliced` of them copied, and decoded `decoded`.
    pub(crate) fn compacted(&self, written: u64, spliced: u64, decoded: u64) {
        add(&self.compactions, 1);
        add(&self.written_bytes, written);
        add(&self.spliced_bytes, spliced);
        add(&self.decoded_bytes, decoded);
    }

    /// Counts runs of `bytes` that only changed their level.
    pub(crate) fn moved(&self, bytes: u64) {
        add(&self.compactions, 1);
        add(&self.moved_bytes, bytes);
    }

    /// Counts `bytes` that were encoded anew for another tier.
    pub(crate) fn retiered(&self, bytes: u64) {
        add(&self.retiered_bytes, bytes);
    }

    /// The counts, with those of `workload`.
    pub(crate) fn read(&self, workload: &Workload) -> Activity {
        let (scans, points, _) = workload.read();
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Activity {
            flushes: get(&self.flushes),
            compactions: get(&self.compactions),
            written_bytes: get(&self.written_bytes),
            spliced_bytes: get(&self.spliced_bytes),
            decoded_bytes: get(&self.decoded_bytes),
            moved_bytes: get(&self.moved_bytes),
            retiered_bytes: get(&self.retiered_bytes),
            scans,
            points,
        }
    }
}

fn add(count: &AtomicU64, value: u64) {
    count.fetch_add(value, Ordering::Relaxed);
}
