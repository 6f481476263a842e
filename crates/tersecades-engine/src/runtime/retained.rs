//! A retained range: the last stretch of a stream as encoded batches that further queries read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;

use crate::observe::Observed;
use crate::plan::EventTime;

/// How much of a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Batches whose newest row is at most this much older than the newest row of the stream.
    Duration(Duration),
    /// Newest batches of at most this many encoded bytes together.
    Bytes(usize),
}

#[derive(Debug)]
struct Kept {
    batches: VecDeque<(Arc<Batch>, i64)>,
    bytes: usize,
    newest: i64,
    shortened_rows: u64,
}

/// A handle on the retained range of a stream; any number of queries may read it while it grows.
///
/// A query sees the batches that were there when it started, whole.
#[derive(Debug, Clone)]
pub struct Retained {
    schema: SchemaRef,
    event_time: EventTime,
    keep: Keep,
    tick_ns: i64,
    observed: Option<Arc<Observed>>,
    kept: Arc<Mutex<Kept>>,
}

impl Retained {
    pub(crate) fn new(schema: SchemaRef, event_time: EventTime, keep: Keep, tick_ns: i64) -> Self {
        let kept = Kept {
            batches: VecDeque::new(),
            bytes: 0,
            newest: i64::MIN,
            shortened_rows: 0,
        };
        Retained {
            schema,
            event_time,
            keep,
            tick_ns,
            observed: None,
            kept: Arc::new(Mutex::new(kept)),
        }
    }

    /// The same range, which keeps no more than that.
    pub(crate) fn observed_as(mut self, observed: Option<Arc<Observed>>) -> Self {
        self.observed = observed;
        self
    }

    /// What is kept of each column; `None` when all of it is.
    pub fn observed(&self) -> Option<&Observed> {
        self.observed.as_deref()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds a batch whose newest row is at `newest` and drops what is beyond the limit.
    pub(crate) fn push(&self, batch: &Arc<Batch>, newest: i64) {
        let mut kept = self.lock();
        kept.bytes += batch.byte_size();
        kept.newest = kept.newest.max(newest);
        kept.batches.push_back((Arc::clone(batch), newest));
        loop {
            let drop = match (self.keep, kept.batches.front()) {
                (Keep::Bytes(limit), Some(_)) => kept.bytes > limit && kept.batches.len() > 1,
                (Keep::Duration(duration), Some((_, newest))) => {
                    let age = i128::from(kept.newest) - i128::from(*newest);
                    age * i128::from(self.tick_ns) > duration.as_nanos() as i128
                }
                (_, None) => false,
            };
            if !drop {
                return;
            }
            if let Some((batch, _)) = kept.batches.pop_front() {
                kept.bytes -= batch.byte_size();
            }
        }
    }

    /// Drops oldest batches of `bytes` bytes, if there are as many besides the newest; returns how
    /// many bytes went.
    pub(crate) fn shorten(&self, bytes: usize) -> usize {
        let mut kept = self.lock();
        let before = kept.bytes;
        while before - kept.bytes < bytes && kept.batches.len() > 1 {
            if let Some((batch, _)) = kept.batches.pop_front() {
                kept.bytes -= batch.byte_size();
                kept.shortened_rows += batch.rows() as u64;
            }
        }
        before - kept.bytes
    }

    /// Rows that were dropped before their time to stay below a memory limit.
    pub fn shortened_rows(&self) -> u64 {
        self.lock().shortened_rows
    }

    /// Columns of the retained batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Event time of the stream.
    pub fn event_time(&self) -> &EventTime {
        &self.event_time
    }

    /// The retained batches, oldest first.
    pub fn batches(&self) -> Vec<Arc<Batch>> {
        self.lock()
            .batches
            .iter()
            .map(|(batch, _)| Arc::clone(batch))
            .collect()
    }

    /// Rows retained.
    pub fn rows(&self) -> usize {
        self.lock()
            .batches
            .iter()
            .map(|(batch, _)| batch.rows())
            .sum()
    }

    /// Encoded bytes retained, shared dictionaries not counted.
    pub fn byte_size(&self) -> usize {
        self.lock().bytes
    }
}
