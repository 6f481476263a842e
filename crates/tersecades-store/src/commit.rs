//! Group commit: writers that wait at the same time share one record and one sync.
//!
//! ```text
//! writer A ─┐                       ┌─ wait ──────────────┐
//! writer B ─┼─▶ queue ─▶ the first ─┴─▶ write, sync ─▶ memory ─▶ all acknowledged
//! writer C ─┘           leads
//! ```
//! Rows reach memory, and so readers, after they reached the device, in the order of their numbers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, ErrorKind, Result};

use crate::feed::Arrived;
use crate::follow::Followers;
use crate::log::{self, Segment};
use crate::memory::Memory;
use crate::option::{Durability, StoreOptions};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::version::Version;
use crate::workload::Workload;

/// Bytes of one record above which further appends wait for the next.
const GROUP_BYTES: usize = 4 << 20;

/// Share of the bytes of a full memory from which a store that is closed writes a run.
const WORTH_SHARE: usize = 32;

/// Segments of the log from which on a store that is closed writes a run of however few rows.
const WORTH_SEGMENTS: u64 = 16;

/// An append that waits.
struct Entry {
    batch: Arc<Batch>,
    bytes: Vec<u8>,
    outcome: Arc<OnceLock<Result<u64>>>,
}

/// What writers share.
pub(crate) struct State {
    queue: Vec<Entry>,
    /// `None` while a writer leads, or when none can be written to.
    pub(crate) segment: Option<Segment>,
    leading: bool,
    /// Why nothing is acknowledged any more.
    pub(crate) failed: Option<Error>,
    /// What writing or merging runs said after an append, whose rows are stored all the same.
    pub(crate) upkeep: Option<Error>,
    /// Rows that arrive.
    pub(crate) memory: Memory,
    /// Rows of which a run is being written.
    pub(crate) frozen: Option<Arc<Memory>>,
    /// Who hears of rows as they arrive.
    pub(crate) followers: Followers,
    /// The stream that feeds the store; nobody else writes while there is one.
    pub(crate) feed: Option<String>,
    /// What the store is used for.
    pub(crate) workload: Arc<Workload>,
    /// Everything else.
    pub(crate) version: Arc<Version>,
}

impl State {
    /// A store with `memory`, which appends to `segment`.
    pub(crate) fn new(segment: Option<Segment>, memory: Memory, version: Arc<Version>) -> Self {
        State {
            queue: Vec::new(),
            segment,
            leading: false,
            failed: None,
            upkeep: None,
            memory,
            frozen: None,
            followers: Followers::default(),
            feed: None,
            workload: Arc::default(),
            version,
        }
    }

    /// Rows that were ever acknowledged.
    pub(crate) fn end(&self) -> u64 {
        self.memory.sequences().end
    }

    /// The rows in memory.
    pub(crate) fn arrived(&self) -> Arrived {
        let rows = match &self.frozen {
            Some(frozen) => frozen.followed_by(&self.memory),
            None => self.memory.clone(),
        };
        Arrived::new(rows, &self.version.catalog.schema)
    }

    /// Whether there are so many rows in the log that reading them again takes longer than opening
    /// a run.
    pub(crate) fn is_worth_a_run(&self) -> bool {
        let options = &self.version.catalog.options;
        let memory = || self.frozen.as_deref().into_iter().chain([&self.memory]);
        let rows: usize = memory().map(Memory::rows).sum();
        let bytes: usize = memory().map(Memory::bytes).sum();
        let segment = self.segment.as_ref().map_or(0, Segment::number);
        segment >= self.version.catalog.log_start + WORTH_SEGMENTS
            || rows >= options.chunk_rows.min(options.buffer_rows)
            || bytes >= options.buffer_bytes / WORTH_SHARE
    }

    /// Takes up to [`GROUP_BYTES`] of the queue.
    fn take_group(&mut self) -> Vec<Entry> {
        let mut bytes = 0;
        let mut entries = self.queue.iter();
        let rest = entries.position(|entry| {
            bytes += entry.bytes.len();
            bytes > GROUP_BYTES
        });
        let count = rest.unwrap_or(self.queue.len()).max(1);
        self.queue.drain(..count.min(self.queue.len())).collect()
    }
}

/// The state and who waits for it.
pub(crate) struct Commit {
    state: Mutex<State>,
    changed: Condvar,
}

impl Commit {
    /// Shares `state`.
    pub(crate) fn new(state: State) -> Self {
        Commit {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// The state; a writer that panicked has left it whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// The state while nobody writes to the log.
    pub(crate) fn lock_idle(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.leading {
            state = self.wait(state);
        }
        state
    }

    /// The state while nobody writes to the log or waits to.
    pub(crate) fn lock_quiet(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock_idle();
        while state.leading || !state.queue.is_empty() {
            state = self.wait(state);
        }
        state
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(|held| held.into_inner())
    }

    /// Appends a batch, whose unit is `bytes`, to the `state`; the number of rows that are
    /// acknowledged then.
    ///
    /// # Errors
    /// What writing says; `InvalidArgument` for rows of others while a stream feeds the store.
    /// Nothing of the batch is acknowledged then.
    pub(crate) fn append<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        (batch, bytes): (Batch, Vec<u8>),
        of_feed: bool,
    ) -> Result<u64> {
        let outcome = Arc::new(OnceLock::new());
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        if let Some(feed) = state.feed.as_ref().filter(|_| !of_feed) {
            return Err(
                Error::invalid(format!("the stream `{feed}` feeds this store"))
                    .hint("its rows are counted: write when it has ended, or into another store"),
            );
        }
        state.queue.push(Entry {
            batch: Arc::new(batch),
            bytes,
            outcome: Arc::clone(&outcome),
        });
        loop {
            if let Some(outcome) = outcome.get() {
                return outcome.clone();
            }
            state = match state.leading {
                true => self.wait(state),
                false => self.lead(state),
            };
        }
    }

    /// Writes a group of what waits.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.leading = true;
        let durability = state.version.catalog.options.durability;
        if let Durability::Group(wait) = durability {
            drop(state);
            std::thread::sleep(wait);
            state = self.lock();
        }
        let group = state.take_group();
        let mut segment = state.segment.take();
        let first = state.end();
        drop(state);
        let written = match &mut segment {
            Some(segment) => write_group(segment, first, &group, durability),
            None => Err(Error::internal("the log has no segment")),
        };
        let mut state = self.lock();
        state.leading = false;
        match written {
            Ok(()) => {
                state.segment = segment;
                self.admit(&mut state, group);
            }
            Err(error) => fail(&mut state, group, error),
        }
        self.changed.notify_all();
        state
    }

    /// Makes the rows of a durable group readable and acknowledges them.
    fn admit(&self, state: &mut State, group: Vec<Entry>) {
        let policy = state.version.catalog.options.codec(0);
        let segment = state.segment.as_ref().map_or(0, Segment::number);
        if state.feed.is_none() {
            state.followers.begin();
        }
        for entry in group {
            let pushed = state.memory.push(Arc::clone(&entry.batch), policy);
            if pushed.is_ok() {
                state.workload.wrote(entry.batch.rows() as u64);
                state.followers.send(&entry.batch, segment);
            }
            let outcome = pushed.map(|()| state.end());
            // Nobody else sets the outcome of an entry.
            let _ = entry.outcome.set(outcome);
        }
    }
}

/// Lets everybody who waits know that nothing is written any more.
fn fail(state: &mut State, group: Vec<Entry>, error: Error) {
    for entry in group.into_iter().chain(state.queue.drain(..)) {
        let _ = entry.outcome.set(Err(error.clone()));
    }
    state.failed = Some(error);
}

fn write_group(
    segment: &mut Segment,
    mut first: u64,
    group: &[Entry],
    durability: Durability,
) -> Result<()> {
    let mut payload = Vec::new();
    for entry in group {
        let rows = entry.batch.rows();
        log::write_entry(first, rows, &entry.bytes, &mut payload)?;
        first += rows as u64;
    }
    segment.append(&payload, durability != Durability::Os)
}

/// Whether a failure passes: a full disk does, a device that failed does not.
pub(crate) fn passes(error: &Error) -> bool {
    error.kind() == ErrorKind::LimitExceeded
}

/// Whether memory holds enough for a run.
pub(crate) fn is_full(memory: &Memory, options: &StoreOptions) -> bool {
    memory.bytes() >= options.buffer_bytes || memory.rows() >= options.buffer_rows
}

/// Runs that memory holds enough for at which whoever writes waits until one is written.
const OVERFULL: usize = 4;
/// What an append waits for each of its rows where memory is nearly so full.
const PACE: Duration = Duration::from_micros(1);

/// Whether memory holds enough for several runs.
pub(crate) fn is_overfull(memory: &Memory, options: &StoreOptions) -> bool {
    memory.bytes() / OVERFULL >= options.buffer_bytes
        || memory.rows() / OVERFULL >= options.buffer_rows
}

/// How long an append of `rows` rows waits so that runs are written as fast as rows arrive: nothing
/// until memory holds enough for a run, and the more the fuller it is.
///
/// # Source
/// The delayed writes of RocksDB, which keep single writes from waiting for a whole run.
pub(crate) fn pace(memory: &Memory, options: &StoreOptions, rows: usize) -> Duration {
    let bytes = memory.bytes() as f64 / options.buffer_bytes as f64;
    let fill = bytes.max(memory.rows() as f64 / options.buffer_rows as f64);
    PACE.mul_f64(rows as f64 * ((fill - 1.0) / (OVERFULL - 1) as f64).clamp(0.0, 1.0))
}
