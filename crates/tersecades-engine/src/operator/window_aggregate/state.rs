//! What every kind of window state does, and what all of them use.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::{Span, Windowing};

use super::aligned::AlignedState;
use super::count::CountState;
use super::feed::{FillingState, Sharing};
use super::late::LateWindows;
use super::pane::{Pane, PaneWork};
use super::plan::AggregatePlan;
use super::session::SessionState;
use super::sort::Sorter;
use super::update::UpdatingState;
use super::update_count::UpdatingCounts;
use super::update_session::UpdatingSessions;
use super::update_whole::UpdatingWhole;
use super::whole::WholeState;

/// Panes that are kept for their memory.
const SPARE_PANES_MAX: usize = 64;

/// Rows that no window took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unplaced {
    /// Rows whose every window had closed.
    pub late: u64,
    /// Rows between windows that leave gaps.
    pub skipped: u64,
}

/// Plan, counters and memory that every kind of state uses.
pub struct Shared {
    /// What is computed.
    pub plan: Arc<AggregatePlan>,
    /// Rows that no window took so far.
    pub unplaced: Unplaced,
    /// Which windows missed late rows.
    pub late_windows: LateWindows,
    /// Late rows, where they are kept.
    pub late: Vec<RecordBatch>,
    /// How many rows of the stream came before what is done.
    pub(super) row: u64,
    pub(super) scratch: PaneWork,
    pub(super) sorter: Sorter,
    keep_late: bool,
    spare: Vec<Pane>,
}

impl Shared {
    pub(super) fn new(plan: Arc<AggregatePlan>, keep_late: bool) -> Self {
        Shared {
            plan,
            unplaced: Unplaced::default(),
            late_windows: LateWindows::default(),
            late: Vec::new(),
            row: 0,
            scratch: PaneWork::default(),
            sorter: Sorter::default(),
            keep_late,
            spare: Vec::new(),
        }
    }

    /// An empty pane.
    pub(super) fn take_pane(&mut self) -> Pane {
        self.spare.pop().unwrap_or_else(|| Pane::new(&self.plan))
    }

    /// Takes a pane back, for its memory.
    pub(super) fn put_pane(&mut self, mut pane: Pane) {
        if self.spare.len() < SPARE_PANES_MAX {
            pane.clear();
            self.spare.push(pane);
        }
    }

    /// Takes over as many spare panes of `other` as it hands over itself.
    pub(super) fn take_spare(&mut self, other: &mut Shared, panes: usize) {
        let from = other.spare.len().saturating_sub(panes);
        self.spare.extend(other.spare.drain(from..));
    }

    /// Takes the rows of `late` out of the frame and counts them.
    pub(super) fn set_apart(
        &mut self,
        frame: &mut Frame,
        late: &Selection,
        work: &mut Work,
    ) -> Result<()> {
        let rows = late.count();
        if rows == 0 {
            return Ok(());
        }
        self.unplaced.late += rows as u64;
        if self.keep_late {
            self.late.push(frame.batch.to_arrow(late, work)?);
        }
        frame.selection.subtract(late);
        frame.selection.settle();
        Ok(())
    }
}

/// The open windows of one group-by.
pub trait WindowState: Send {
    /// Removes from the frame the rows that no open window takes.
    ///
    /// # Errors
    /// What reading columns says.
    fn admit(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()>;

    /// Adds the rows that were admitted, which are not none.
    ///
    /// # Errors
    /// What packing keys says.
    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()>;

    /// Whether [`WindowState::advance`] would emit something, or might.
    fn closes(&self, watermark: i64) -> bool;

    /// Emits every window that ends at or before `watermark`; all of them at the largest time.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()>;

    /// Windows with rows that have not closed, in order; none where windows are not aligned.
    fn open_windows(&self) -> Vec<Span> {
        Vec::new()
    }

    /// The least start that a window emitted after an advance to `watermark` may have.
    fn least_start(&self, watermark: i64) -> i64;

    /// Bytes of state.
    fn byte_size(&self) -> usize;

    /// Takes the panes of windows that end at or before `watermark`, for the state of another
    /// worker to absorb; all of them at the largest time. Windows that one thread fills have none.
    fn take(&mut self, _watermark: i64) -> BTreeMap<i64, Pane> {
        BTreeMap::new()
    }

    /// Does what reading results of these windows would do first.
    fn settle(&self, _watermark: i64) {}

    /// Adds what another worker has seen.
    fn absorb(&mut self, _shared: &mut Shared, _panes: BTreeMap<i64, Pane>) {}

    /// Takes in the rows before the next one of the run that others have put into panes.
    fn pull(&mut self, _shared: &mut Shared) {}

    /// Writes the state.
    ///
    /// # Errors
    /// What writing rows says.
    fn snapshot(&self, out: &mut StateWriter) -> Result<()>;

    /// Reads what [`WindowState::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the plan.
    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()>;
}

/// Empty state for the windows of `plan`.
pub(super) fn state_of(shared: &Shared) -> Box<dyn WindowState> {
    match &shared.plan.window {
        Windowing::Global => match shared.plan.emission {
            None => Box::new(WholeState::default()),
            Some(emission) => Box::new(UpdatingWhole::new(emission)),
        },
        Windowing::Aligned(boundaries) => match shared.plan.emission {
            None => {
                let state = AlignedState::new(Arc::clone(boundaries), &shared.plan);
                match &shared.plan.sharing {
                    Sharing::Fills(filled) => {
                        Box::new(FillingState::new(state, Arc::clone(filled)))
                    }
                    _ => Box::new(state),
                }
            }
            Some(emission) => Box::new(UpdatingState::new(shared, boundaries, emission)),
        },
        Windowing::Session { gap } => match shared.plan.emission {
            None => Box::new(SessionState::new(shared, *gap, 0)),
            Some(emission) => Box::new(UpdatingSessions::new(shared, *gap, emission)),
        },
        Windowing::Count { rows } => match shared.plan.emission {
            None => Box::new(CountState::new(shared, *rows)),
            Some(emission) => Box::new(UpdatingCounts::new(shared, *rows, emission)),
        },
    }
}

/// Writes panes and what they are called by.
pub(super) fn write_panes(panes: &BTreeMap<i64, Pane>, out: &mut StateWriter) {
    out.u64(panes.len() as u64);
    for (start, pane) in panes {
        out.i64(*start);
        pane.snapshot(out);
    }
}

/// Reads what [`write_panes`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes do not fit the plan.
pub(super) fn read_panes(
    plan: &AggregatePlan,
    from: &mut StateReader<'_>,
) -> Result<BTreeMap<i64, Pane>> {
    let mut panes = BTreeMap::new();
    for _ in 0..from.count()? {
        let start = from.i64()?;
        panes.insert(start, Pane::restore(plan, from)?);
    }
    Ok(panes)
}

/// Adds `more` to `panes`, pane by pane.
pub(super) fn merge_panes(
    shared: &mut Shared,
    panes: &mut BTreeMap<i64, Pane>,
    more: BTreeMap<i64, Pane>,
) {
    for (start, pane) in more {
        match panes.get_mut(&start) {
            Some(known) => {
                known.merge(&shared.plan, &pane);
                shared.put_pane(pane);
            }
            None => {
                panes.insert(start, pane);
            }
        }
    }
}
