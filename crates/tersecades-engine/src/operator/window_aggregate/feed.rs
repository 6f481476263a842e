//! Panes that several group-bys share: one fills them, the others read them.
//!
//! ```text
//! rows ─▶ FillingState ─complete panes, and before which row─▶ PaneFeed ─▶ windows of one
//!                                                            ├▶ PaneFeed ─▶ windows of another
//! ```
//! Who fills takes in every row, late or not; who reads judges late rows by its own windows, and
//! leaves out panes that none of its open windows holds.

use std::collections::{BTreeMap, VecDeque};
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
    Reads(PaneFeed),
}

/// Those that panes are filled for.
#[derive(Debug)]
pub struct Filled {
    /// The windows of each.
    pub windows: Vec<Arc<dyn Boundaries>>,
    /// Where each reads.
    pub feeds: Vec<PaneFeed>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Complete panes, with the number of the row that they were handed over before.
    ready: VecDeque<(u64, BTreeMap<i64, Pane>)>,
    /// Starts of panes with rows that are not complete.
    open: Vec<i64>,
}

/// Panes on their way to one reader.
#[derive(Debug, Clone, Default)]
pub struct PaneFeed(Arc<Mutex<Queue>>);

impl PaneFeed {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next panes that were handed over before row `row` or an earlier one.
    pub(super) fn take(&self, row: u64) -> Option<BTreeMap<i64, Pane>> {
        let mut queue = self.lock();
        let (before, _) = queue.ready.front()?;
        match *before <= row {
            true => queue.ready.pop_front().map(|(_, panes)| panes),
            false => None,
        }
    }

    /// Starts of panes with rows that were not handed over.
    pub(super) fn open(&self) -> Vec<i64> {
        self.lock().open.clone()
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
}

impl WindowState for FillingState {
    fn admit(
        &mut self,
        _: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        _: &mut Work,
    ) -> Result<()> {
        frame.retain_valid(arrival.time_slot);
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
        for feed in &self.filled.feeds {
            feed.lock().open = self.inner.starts();
        }
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
        if complete.is_empty() {
            return Ok(());
        }
        for feed in &self.filled.feeds {
            let mut queue = feed.lock();
            queue.open = self.inner.starts();
            queue.ready.push_back((shared.row, complete.clone()));
        }
        complete
            .into_values()
            .for_each(|pane| shared.put_pane(pane));
        Ok(())
    }

    fn least_start(&self, watermark: i64) -> i64 {
        self.inner.least_start(watermark)
    }

    fn byte_size(&self) -> usize {
        self.inner.byte_size()
    }

    fn take(&mut self, watermark: i64) -> BTreeMap<i64, Pane> {
        self.inner.take(watermark)
    }

    fn absorb(&mut self, shared: &mut Shared, panes: BTreeMap<i64, Pane>) {
        self.inner.absorb(shared, panes);
    }

    fn snapshot(&self, out: &mut StateWriter) {
        self.inner.snapshot(out);
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.inner.restore(shared, from)
    }
}
