//! A retained range: the last stretch of a stream as encoded batches that further queries read.
//!
//! ```text
//! oldest                                          newest
//! [file] [file] [file] [memory] [memory] [memory]        files only where the range may spill
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::Result;

use crate::observe::Observed;
use crate::plan::EventTime;

use super::ingest::EncodedSource;
use super::spill::{SpillFolder, SpilledBatch};

/// How much of a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Batches whose newest row is at most this much older than the newest row of the stream.
    Duration(Duration),
    /// Newest batches of at most this many encoded bytes together.
    Bytes(usize),
}

/// A batch, in memory or in a file.
#[derive(Debug, Clone)]
enum Piece {
    Memory(Arc<Batch>),
    File(Arc<SpilledBatch>),
}

impl Piece {
    fn rows(&self) -> usize {
        match self {
            Piece::Memory(batch) => batch.rows(),
            Piece::File(spilled) => spilled.rows,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Piece::Memory(batch) => batch.byte_size(),
            Piece::File(spilled) => spilled.bytes,
        }
    }
}

#[derive(Debug)]
struct Kept {
    pieces: VecDeque<(Piece, i64)>,
    /// Of all pieces.
    bytes: usize,
    /// Of those in files, which are the oldest.
    spilled_bytes: usize,
    /// How many are in files.
    spilled: usize,
    folder: Option<SpillFolder>,
    newest: i64,
    shortened_rows: u64,
}

impl Kept {
    fn drop_oldest(&mut self) -> usize {
        let Some((piece, _)) = self.pieces.pop_front() else {
            return 0;
        };
        self.bytes -= piece.bytes();
        if matches!(piece, Piece::File(_)) {
            self.spilled_bytes -= piece.bytes();
            self.spilled -= 1;
        }
        piece.rows()
    }
}

/// The batches of a range, in the order they came; those in files are read when they are asked for.
struct Pieces(std::vec::IntoIter<Piece>);

impl EncodedSource for Pieces {
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>> {
        match self.0.next() {
            None => Ok(None),
            Some(Piece::Memory(batch)) => Ok(Some(batch)),
            Some(Piece::File(spilled)) => spilled.read().map(|batch| Some(Arc::new(batch))),
        }
    }

    fn rows_hint(&self) -> Option<u64> {
        let pieces = self.0.as_slice().iter();
        Some(pieces.map(|piece| piece.rows() as u64).sum())
    }

    fn at_hand(&self) -> Option<Vec<&Batch>> {
        let pieces = self.0.as_slice().iter();
        let in_memory = pieces.map(|piece| match piece {
            Piece::Memory(batch) => Some(&**batch),
            Piece::File(_) => None,
        });
        in_memory.collect()
    }
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
            pieces: VecDeque::new(),
            bytes: 0,
            spilled_bytes: 0,
            spilled: 0,
            folder: None,
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

    /// Adds a batch whose newest row is at `newest`, and drops what is beyond the limit: oldest
    /// batches, and one that `is_late` and beyond it already. One without a time is as new as those
    /// before it.
    pub(crate) fn push(&self, batch: &Arc<Batch>, newest: Option<i64>, is_late: bool) {
        let mut kept = self.lock();
        let newest = newest.unwrap_or(kept.newest);
        kept.newest = kept.newest.max(newest);
        if is_late && self.is_over(kept.newest, newest) {
            return;
        }
        kept.bytes += batch.byte_size();
        let piece = Piece::Memory(Arc::clone(batch));
        kept.pieces.push_back((piece, newest));
        while let Some((_, oldest)) = kept.pieces.front() {
            let full = match self.keep {
                Keep::Bytes(limit) => kept.bytes > limit && kept.pieces.len() > 1,
                Keep::Duration(_) => self.is_over(kept.newest, *oldest),
            };
            if !full {
                return;
            }
            kept.drop_oldest();
        }
    }

    /// Whether what is at `time` is no longer kept once `newest` has come.
    fn is_over(&self, newest: i64, time: i64) -> bool {
        let Keep::Duration(duration) = self.keep else {
            return false;
        };
        let age = i128::from(newest) - i128::from(time);
        age * i128::from(self.tick_ns) > duration.as_nanos() as i128
    }

    /// Puts oldest batches of `bytes` bytes into files, if there are as many besides the newest;
    /// returns how many bytes went.
    ///
    /// # Errors
    /// `Io`, what writing a batch says.
    pub(crate) fn spill(&self, bytes: usize) -> Result<usize> {
        let mut kept = self.lock();
        let before = kept.spilled_bytes;
        while kept.spilled_bytes - before < bytes && kept.spilled + 1 < kept.pieces.len() {
            let next = kept.spilled;
            let batch = match &kept.pieces[next].0 {
                // One without columns takes no bytes.
                Piece::Memory(batch) if !batch.columns().is_empty() => Arc::clone(batch),
                _ => break,
            };
            let mut folder = match kept.folder.take() {
                Some(folder) => folder,
                None => SpillFolder::new()?,
            };
            let written = folder.write(&batch);
            kept.folder = Some(folder);
            kept.pieces[next].0 = Piece::File(Arc::new(written?));
            kept.spilled_bytes += batch.byte_size();
            kept.spilled += 1;
        }
        Ok(kept.spilled_bytes - before)
    }

    /// Drops oldest batches of `bytes` bytes, if there are as many besides the newest; returns how
    /// many bytes went.
    pub(crate) fn shorten(&self, bytes: usize) -> usize {
        let mut kept = self.lock();
        let before = kept.bytes;
        while before - kept.bytes < bytes && kept.pieces.len() > 1 {
            kept.shortened_rows += kept.drop_oldest() as u64;
        }
        before - kept.bytes
    }

    /// What the range has given up in memory to stay below a memory limit, in words.
    pub(crate) fn at_limit(&self) -> Option<String> {
        let kept = self.lock();
        let (files, rows) = (kept.spilled_bytes, kept.shortened_rows);
        let limited = files > 0 || rows > 0;
        limited.then(|| {
            let memory = kept.bytes - files;
            format!("keep {memory} bytes in memory, {files} bytes in files, {rows} rows dropped")
        })
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

    /// The retained batches that are in memory, oldest first; older ones may be in files.
    pub fn batches(&self) -> Vec<Arc<Batch>> {
        let kept = self.lock();
        let in_memory = kept.pieces.iter().filter_map(|(piece, _)| match piece {
            Piece::Memory(batch) => Some(Arc::clone(batch)),
            Piece::File(_) => None,
        });
        in_memory.collect()
    }

    /// All batches there are, oldest first, to be read one by one.
    pub(crate) fn open_batches(&self) -> Box<dyn EncodedSource> {
        let kept = self.lock();
        let pieces: Vec<Piece> = kept.pieces.iter().map(|(piece, _)| piece.clone()).collect();
        Box::new(Pieces(pieces.into_iter()))
    }

    /// Rows retained.
    pub fn rows(&self) -> usize {
        let kept = self.lock();
        kept.pieces.iter().map(|(piece, _)| piece.rows()).sum()
    }

    /// Encoded bytes retained in memory, shared dictionaries not counted.
    pub fn byte_size(&self) -> usize {
        let kept = self.lock();
        kept.bytes - kept.spilled_bytes
    }

    /// Encoded bytes that lie in files to stay below a memory limit.
    pub fn spilled_bytes(&self) -> usize {
        self.lock().spilled_bytes
    }
}
