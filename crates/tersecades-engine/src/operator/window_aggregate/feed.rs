//! Panes that several group-bys share: one fills them, the others read them.
//!
//! ```text
//! rows ─▶ FillingState ─complete panes, and before which row─▶ SharedPanes ─▶ windows of one
//!                                                                         └▶ windows of another
//! ```
//! Who fills takes in every row that some reader takes; each reader judges late rows by its own
//! windows, leaves out panes that none of its open windows holds, and merges of the others what its
//! own aggregates need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::Boundaries;

use super::aligned::AlignedState;
use super::pane::Pane;
use super::plan::AggregatePlan;
use super::state::{Shared, WindowState};

/// What a group-by has to do with panes of others.
#[derive(Debug, Clone, Default)]
pub enum Sharing {
    /// Nothing: its rows go to panes of its own.
    #[default]
    Alone,
    /// It fills panes for others.
    Fills(Arc<Filled>),
    /// It reads panes that another fills.
    Reads(Arc<PaneReader>),
}

/// Panes that are filled for others.
#[derive(Debug)]
pub struct Filled {
    /// The windows of each reader.
    pub windows: Vec<Arc<dyn Boundaries>>,
    /// Where all of them read.
    pub panes: SharedPanes,
}

/// Panes on their way to their readers.
#[derive(Debug, Default)]
struct Handed {
    /// Complete panes: the number of the row that each was handed over before, and its start.
    ready: Vec<(u64, i64, Pane)>,
    /// How many were handed over before those.
    taken: u64,
    /// Panes that every reader is done with, for their memory.
    spent: Vec<Pane>,
    /// Starts of panes with rows that are not complete.
    open: Vec<i64>,
    /// Bytes of all panes that were not handed over.
    bytes: usize,
}

/// A handle on panes on their way to their readers.
#[derive(Debug, Clone, Default)]
pub struct SharedPanes(Arc<Mutex<Handed>>);

impl SharedPanes {
    fn lock(&self) -> MutexGuard<'_, Handed> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes back the panes that were handed over: every reader that goes on has read them.
    pub fn clear(&self) {
        let mut handed = self.lock();
        let Handed {
            ready,
            taken,
            spent,
            ..
        } = &mut *handed;
        *taken += ready.len() as u64;
        spent.extend(ready.drain(..).map(|(.., pane)| pane));
    }
}

/// Panes that several read.
#[derive(Debug, Clone)]
pub struct ReadFrom {
    /// The panes.
    pub panes: SharedPanes,
    /// How many read them.
    pub readers: usize,
    /// What they are, for explain.
    pub shown: String,
}

/// One reader of shared panes, and what it takes of them.
#[derive(Debug)]
pub struct PaneReader {
    panes: SharedPanes,
    /// How many read them.
    readers: usize,
    /// Pairs of an own argument and the one of the panes that it takes.
    pub(super) arguments: Vec<(usize, usize)>,
    /// The same for collections.
    pub(super) collections: Vec<(usize, usize)>,
}

impl PaneReader {
    /// Visits the next panes that were handed over before row `row` or an earlier one; `taken` is
    /// how many were visited so far.
    pub(super) fn visit(&self, row: u64, taken: &mut u64, mut visit: impl FnMut(i64, &Pane)) {
        let handed = self.panes.lock();
        let from = taken.saturating_sub(handed.taken) as usize;
        for (before, start, pane) in handed.ready.iter().skip(from) {
            if *before > row {
                break;
            }
            visit(*start, pane);
            *taken += 1;
        }
    }

    /// Starts of panes with rows that were not handed over.
    pub(super) fn open(&self) -> Vec<i64> {
        self.panes.lock().open.clone()
    }

    /// The reader's part of the bytes of panes that were not handed over.
    pub(super) fn byte_size(&self) -> usize {
        self.panes.lock().bytes / self.readers
    }
}

impl AggregatePlan {
    /// Reads the rows from `panes`, which `filler` describes: reading `i` is its reading `at[i]`.
    pub fn read_panes(&mut self, filler: &AggregatePlan, at: &[usize], from: &ReadFrom) {
        let ReadFrom {
            panes,
            readers,
            shown,
        } = from.clone();
        let (mut arguments, mut collections) = (Vec::new(), Vec::new());
        let theirs = at.iter().map(|at| &filler.readings[*at]);
        for (own, theirs) in self.readings.iter().zip(theirs) {
            arguments.extend(own.argument.zip(theirs.argument));
            if let Some((own, theirs)) = own.collection.zip(theirs.collection) {
                collections.push((own, theirs));
                let own = self.collections[own].arguments.iter().copied();
                let theirs = &filler.collections[theirs].arguments;
                arguments.extend(own.zip(theirs.iter().copied()));
            }
        }
        for pairs in [&mut arguments, &mut collections] {
            pairs.sort_unstable();
            pairs.dedup();
        }
        for (own, theirs) in &arguments {
            self.arguments[*own].dictionary = filler.arguments[*theirs].dictionary.clone();
        }
        self.keys = filler.keys.clone();
        self.label = format!("{} from {shown}", self.label);
        self.sharing = Sharing::Reads(Arc::new(PaneReader {
            panes,
            readers,
            arguments,
            collections,
        }));
    }
}

/// The state of who fills panes: it emits nothing.
#[derive(Debug)]
pub(super) struct FillingState {
    inner: AlignedState,
    filled: Arc<Filled>,
}

impl FillingState {
    /// No pane.
    pub(super) fn new(inner: AlignedState, filled: Arc<Filled>) -> Self {
        FillingState { inner, filled }
    }

    /// Says what is open.
    fn report(&self) {
        let mut handed = self.filled.panes.lock();
        handed.open.clear();
        handed.open.extend(self.inner.starts());
        handed.bytes = self.inner.byte_size();
    }
}

impl WindowState for FillingState {
    fn admit(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        frame.retain_valid(arrival.time_slot);
        let mut handed = self.filled.panes.lock();
        let spent = handed.spent.drain(..);
        spent.for_each(|pane| shared.put_pane(pane));
        drop(handed);
        let windows = self.filled.windows.iter();
        let open = windows.map(|windows| windows.ending_after(arrival.watermark).start);
        let late = |open: &i128| i128::from(arrival.time_range.0) < *open;
        if let Some(open) = open.min().filter(late) {
            let late = self.inner.select_before(open, (frame, arrival), work);
            frame.selection.subtract(late);
            frame.selection.settle();
        }
        Ok(())
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        self.inner.add(shared, frame, arrival, work)?;
        self.report();
        Ok(())
    }

    fn closes(&self, watermark: i64) -> bool {
        watermark != i64::MIN
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        _: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let complete = self.inner.take(watermark);
        if !complete.is_empty() {
            let row = shared.row;
            let complete = complete.into_iter();
            let complete = complete.map(|(start, pane)| (row, start, pane));
            self.filled.panes.lock().ready.extend(complete);
            self.report();
        }
        Ok(())
    }

    fn least_start(&self, watermark: i64) -> i64 {
        self.inner.least_start(watermark)
    }

    /// Nothing: readers count its bytes.
    fn byte_size(&self) -> usize {
        0
    }

    fn take(&mut self, watermark: i64) -> BTreeMap<i64, Pane> {
        self.inner.take(watermark)
    }

    fn absorb(&mut self, shared: &mut Shared, panes: BTreeMap<i64, Pane>) {
        self.inner.absorb(shared, panes);
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        self.inner.snapshot(out)
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.inner.restore(shared, from)?;
        self.report();
        Ok(())
    }
}
