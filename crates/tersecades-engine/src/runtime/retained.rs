//! A retained range: the last stretch of a stream as encoded batches that further queries read.
//!
//! ```text
//! oldest                                          newest
//! [file] [file] [file] [memory] [memory] [memory]        files only where the range may spill
//! ```
//! Beside each batch stands what judged its rows when it came, so that a query over the range
//! calls no other rows late than one over the stream does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::Result;

use crate::observe::Observed;
use crate::plan::EventTime;
use crate::source::PartitionState;

use super::ingest::EncodedSource;
use super::option::TimeOptions;
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

/// What besides its rows moved the watermark when a batch came.
#[derive(Debug, Clone)]
struct Coming {
    /// The partition it is of.
    partition: usize,
    /// Whether each partition held the watermark back.
    holding: Arc<[bool]>,
    /// The time of the clock, where it was asked.
    at: Option<Duration>,
}

impl Coming {
    /// How a batch of a partition comes at a time behind `before`, with which it shares what is
    /// the same.
    fn behind(
        before: Option<&Coming>,
        (partition, at): (usize, Option<Duration>),
        holding: impl Iterator<Item = bool> + Clone,
    ) -> Self {
        let same = |known: &&Arc<[bool]>| holding.clone().eq(known.iter().copied());
        let known = before.map(|before| &before.holding).filter(same);
        Coming {
            partition,
            holding: known.map_or_else(|| holding.clone().collect(), Arc::clone),
            at,
        }
    }

    /// Whether other partitions held the watermark back than `before`, or at first, when all do.
    fn is_other_than(&self, before: Option<&Coming>) -> bool {
        match before {
            Some(before) => before.holding != self.holding,
            None => self.holding.contains(&false),
        }
    }
}

/// A batch, and how old it is.
#[derive(Debug, Clone)]
struct Held {
    piece: Piece,
    coming: Coming,
    newest: i64,
}

#[derive(Debug)]
struct Kept {
    pieces: VecDeque<Held>,
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
        let Some(Held { piece, .. }) = self.pieces.pop_front() else {
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
struct Pieces {
    waiting: std::vec::IntoIter<Held>,
    /// How the last one came.
    coming: Option<Coming>,
    partitions: Arc<[String]>,
}

impl EncodedSource for Pieces {
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>> {
        let Some(Held { piece, coming, .. }) = self.waiting.next() else {
            return Ok(None);
        };
        self.coming = Some(coming);
        match piece {
            Piece::Memory(batch) => Ok(Some(batch)),
            Piece::File(spilled) => spilled.read().map(|batch| Some(Arc::new(batch))),
        }
    }

    fn rows_hint(&self) -> Option<u64> {
        let waiting = self.waiting.as_slice().iter();
        Some(waiting.map(|held| held.piece.rows() as u64).sum())
    }

    fn at_hand(&self) -> Option<Vec<&Batch>> {
        let waiting = self.waiting.as_slice().iter();
        let in_memory = waiting.map(|held| match &held.piece {
            Piece::Memory(batch) => Some(&**batch),
            Piece::File(_) => None,
        });
        in_memory.collect()
    }

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn partition(&self) -> usize {
        self.coming.as_ref().map_or(0, |coming| coming.partition)
    }

    /// One that held nothing back when the batch came is as one that has ended.
    fn partition_state(&self, partition: usize) -> PartitionState {
        let holding = self.coming.as_ref().map(|coming| &coming.holding);
        match holding.is_none_or(|holding| holding[partition]) {
            true => PartitionState::Flowing,
            false => PartitionState::Ended,
        }
    }

    fn partition_name(&self, partition: usize) -> String {
        self.partitions[partition].clone()
    }

    fn came_at(&self) -> Option<Duration> {
        self.coming.as_ref().and_then(|coming| coming.at)
    }
}

/// A handle on the retained range of a stream; any number of queries may read it while it grows.
///
/// A query sees the batches that were there when it started, whole.
#[derive(Debug, Clone)]
pub struct Retained {
    schema: SchemaRef,
    event_time: EventTime,
    time: TimeOptions,
    /// What the partitions of the stream are called.
    partitions: Arc<[String]>,
    keep: Keep,
    tick_ns: i64,
    observed: Option<Arc<Observed>>,
    kept: Arc<Mutex<Kept>>,
}

impl Retained {
    /// Nothing yet of a stream of `schema` whose rows have the time that `event_time` and `time`
    /// say, in ticks of `tick_ns` nanoseconds.
    pub(crate) fn new(
        schema: SchemaRef,
        (event_time, time): (EventTime, &TimeOptions),
        (keep, tick_ns): (Keep, i64),
        partitions: Vec<String>,
    ) -> Self {
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
            time: time.of_timed_rows(),
            partitions: partitions.into(),
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

    /// Adds a batch whose newest row is at `newest`, which came of a partition `at` a time of the
    /// clock while partitions were `holding` the watermark back, and drops what is beyond the
    /// limit: oldest batches, and one that `is_late` and beyond it already. One without a time is
    /// as new as those before it; one without rows is kept where partitions have fallen silent or
    /// ended.
    pub(crate) fn push(
        &self,
        batch: &Arc<Batch>,
        (newest, is_late): (Option<i64>, bool),
        at: (usize, Option<Duration>),
        holding: impl Iterator<Item = bool> + Clone,
    ) {
        let mut kept = self.lock();
        let before = kept.pieces.back().map(|held| &held.coming);
        let coming = Coming::behind(before, at, holding);
        if batch.rows() == 0 && !coming.is_other_than(before) {
            return;
        }
        let newest = newest.unwrap_or(kept.newest);
        kept.newest = kept.newest.max(newest);
        if is_late && self.is_over(kept.newest, newest) {
            return;
        }
        kept.bytes += batch.byte_size();
        kept.pieces.push_back(Held {
            piece: Piece::Memory(Arc::clone(batch)),
            coming,
            newest,
        });
        while let Some(oldest) = kept.pieces.front() {
            let full = match self.keep {
                Keep::Bytes(limit) => kept.bytes > limit && kept.pieces.len() > 1,
                Keep::Duration(_) => self.is_over(kept.newest, oldest.newest),
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
            let batch = match &kept.pieces[next].piece {
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
            kept.pieces[next].piece = Piece::File(Arc::new(written?));
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

    /// What else moves its time, for rows that have come.
    pub(crate) fn time(&self) -> &TimeOptions {
        &self.time
    }

    /// The retained batches that are in memory, oldest first; older ones may be in files.
    pub fn batches(&self) -> Vec<Arc<Batch>> {
        let kept = self.lock();
        let in_memory = kept.pieces.iter().filter_map(|held| match &held.piece {
            Piece::Memory(batch) => Some(Arc::clone(batch)),
            Piece::File(_) => None,
        });
        in_memory.collect()
    }

    /// All batches there are, oldest first, to be read one by one.
    pub(crate) fn open_batches(&self) -> Box<dyn EncodedSource> {
        let pieces: Vec<Held> = self.lock().pieces.iter().cloned().collect();
        Box::new(Pieces {
            waiting: pieces.into_iter(),
            coming: None,
            partitions: Arc::clone(&self.partitions),
        })
    }

    /// Rows retained.
    pub fn rows(&self) -> usize {
        let kept = self.lock();
        kept.pieces.iter().map(|held| held.piece.rows()).sum()
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
