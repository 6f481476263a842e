//! Group-by over windows: rows go to panes as they come, windows come out as the watermark passes.
//!
//! ```text
//! frame ──late rows apart──▶ WindowState: panes of its kind of window ──▶ Pane::add
//! watermark ──▶ windows it passed: merge their panes, sort, emit; drop panes no window needs
//! ```

pub mod aligned;
mod bind;
pub mod count;
pub mod direct;
pub mod emit;
pub mod feed;
pub mod first;
mod joined;
pub mod keys;
pub mod late;
mod open;
pub mod packer;
pub mod pane;
pub mod part;
mod part_number;
mod placed;
pub mod plan;
pub mod position;
mod remainder;
pub mod session;
mod shown;
pub mod slide;
pub mod slot;
pub mod sort;
pub mod state;
pub mod table;
pub mod total;
pub mod update;
pub mod update_count;
pub mod update_session;
pub mod update_whole;
pub mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};

use crate::event_time::Arrival;
use crate::expression::evaluate::BoundExpression;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter, read_arrow, write_arrow};

use crate::window::{Span, Windowing};

use feed::Sharing;
use keys::SharedDictionary;
use late::LateWindows;
use pane::Pane;
use plan::AggregatePlan;
use state::{Shared, WindowState, state_of};

pub use state::Unplaced;

/// One group-by: its plan, its arguments, its open windows.
pub struct WindowAggregate {
    shared: Shared,
    computed: Vec<BoundExpression>,
    state: Box<dyn WindowState>,
    /// Of the last advance.
    watermark: i64,
}

impl WindowAggregate {
    /// Empty state for `plan`; `computed` are the arguments to evaluate on each frame.
    pub fn new(plan: Arc<AggregatePlan>, computed: Vec<BoundExpression>, keep_late: bool) -> Self {
        let shared = Shared::new(plan, keep_late);
        WindowAggregate {
            state: state_of(&shared),
            shared,
            computed,
            watermark: i64::MIN,
        }
    }

    /// What is computed.
    pub fn plan(&self) -> &Arc<AggregatePlan> {
        &self.shared.plan
    }

    /// Rows that no window took so far.
    pub fn unplaced(&self) -> Unplaced {
        self.shared.unplaced
    }

    /// Which windows missed late rows.
    pub fn late_windows(&self) -> &LateWindows {
        &self.shared.late_windows
    }

    /// Windows with rows that have not closed, in order; none where windows are not aligned.
    pub fn open_windows(&self) -> Vec<Span> {
        self.state.open_windows()
    }

    /// Takes the late rows kept so far.
    pub fn take_late(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.shared.late)
    }

    /// Whether an argument or a filter is computed that some row may fail on.
    pub fn may_fail(&self) -> bool {
        self.computed.iter().any(BoundExpression::may_fail)
    }

    /// Bytes of state.
    pub fn byte_size(&self) -> usize {
        self.state.byte_size()
    }

    /// Adds the selected rows of `frame`.
    ///
    /// # Errors
    /// What evaluating arguments and packing keys say.
    pub fn push(&mut self, frame: &mut Frame, arrival: &Arrival, work: &mut Work) -> Result<()> {
        self.state.admit(&mut self.shared, frame, arrival, work)?;
        if frame.selection.is_empty() {
            return Ok(());
        }
        for expression in &mut self.computed {
            let mut column = frame.take_derived();
            expression.evaluate(frame, &mut column, work)?;
            frame.put_derived(column);
        }
        self.state.add(&mut self.shared, frame, arrival, work)
    }

    /// Takes the panes of windows that end at or before `watermark`, all at the largest time, for
    /// another state to [`WindowAggregate::absorb`].
    pub fn take_panes(&mut self, watermark: i64) -> Partial {
        let panes = self.state.take(watermark);
        panes.values().for_each(Pane::settle);
        Partial {
            panes,
            unplaced: std::mem::take(&mut self.shared.unplaced),
            late_windows: std::mem::take(&mut self.shared.late_windows),
            late: self.take_late(),
        }
    }

    /// Emits every window that ends at or before `watermark` and has rows, all of which are here;
    /// where windows share panes, hands these over for another state to emit.
    ///
    /// # Errors
    /// As [`WindowAggregate::advance`].
    pub fn close(&mut self, watermark: i64) -> Result<Closed> {
        let mut closed = Closed::default();
        if self.shared.plan.window.overlaps() {
            closed.partial = self.take_panes(watermark);
            return Ok(closed);
        }
        let is_past = |window: &Span| watermark == i64::MAX || window.end <= i128::from(watermark);
        for window in self.open_windows().into_iter().take_while(is_past) {
            let (end, mut rows) = (window.last().saturating_add(1), Vec::new());
            self.state.advance(&mut self.shared, end, &mut rows)?;
            let rows = rows.into_iter().map(|rows| (window.first(), rows));
            closed.windows.extend(rows);
        }
        closed.partial = self.take_panes(i64::MIN);
        Ok(closed)
    }

    /// From here on results are worked out on at most so many threads.
    pub fn emit_on(&mut self, threads: usize) {
        if self.shared.plan.threads != threads {
            Arc::make_mut(&mut self.shared.plan).threads = threads;
        }
    }

    /// Does what reading results of windows that end at or before `watermark` would do first.
    pub fn settle(&self, watermark: i64) {
        self.state.settle(watermark);
    }

    /// Whether settling takes longer than a pane takes to hand over.
    pub fn settles(&self) -> bool {
        !self.shared.plan.collections.is_empty()
    }

    /// Takes over memory of `other` for the panes that were handed over in `partial`.
    pub fn take_spare(&mut self, other: &mut WindowAggregate, partial: &Partial) {
        let panes = partial.panes.len();
        self.shared.take_spare(&mut other.shared, panes);
    }

    /// Adds what another worker has seen.
    pub fn absorb(&mut self, partial: Partial) {
        self.shared.unplaced.late += partial.unplaced.late;
        self.shared.unplaced.skipped += partial.unplaced.skipped;
        self.shared.late_windows.merge(&partial.late_windows);
        self.shared.late.extend(partial.late);
        self.state.absorb(&mut self.shared, partial.panes);
    }

    /// Takes in, from whoever fills panes for this state, all rows before row `row` whose panes are
    /// complete.
    pub fn pull(&mut self, row: u64) {
        self.shared.row = row;
        self.state.pull(&mut self.shared);
    }

    /// Whether a frame must be pushed: not if another state takes in its rows and none is late.
    pub fn wants(&self, arrival: &Arrival) -> bool {
        match (&self.shared.plan.sharing, &self.shared.plan.window) {
            (Sharing::Reads(_), Windowing::Aligned(windows)) => {
                let oldest = i128::from(arrival.time_range.0);
                arrival.watermark != i64::MIN
                    && oldest < windows.ending_after(arrival.watermark).start
            }
            _ => true,
        }
    }

    /// Whether some window ends after the last advance and at or before `watermark`.
    pub fn closes(&self, watermark: i64) -> bool {
        self.state.closes(watermark)
    }

    /// Emits every window that ends at or before `watermark` and has rows, in order; at the largest
    /// time, the end of the stream, every window there is.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub fn advance(&mut self, watermark: i64, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        self.state.advance(&mut self.shared, watermark, out)
    }

    /// The least start that a window still to be emitted may have.
    pub fn least_start(&self) -> i64 {
        match self.watermark {
            i64::MIN => i64::MIN,
            watermark => self.state.least_start(watermark),
        }
    }

    /// The dictionaries that text codes of panes mean.
    fn dictionaries(&self) -> impl Iterator<Item = &SharedDictionary> {
        let plan = &self.shared.plan;
        let keys = plan.keys.columns.iter().map(|column| column.dictionary());
        keys.chain(plan.arguments.iter().map(|argument| &argument.dictionary))
    }

    /// What a state must share with another to be taken over: windows, keys, aggregates, types.
    fn identity(&self) -> String {
        let AggregatePlan {
            window,
            emission,
            label,
            schema,
            arguments,
            collections,
            ..
        } = &*self.shared.plan;
        let arguments: Vec<&str> = arguments.iter().map(|a| a.label.as_str()).collect();
        format!("{window:?} {emission:?} {label} of {arguments:?} {collections:?} as {schema}")
    }

    /// Writes the whole state, late rows that were not taken included.
    ///
    /// # Errors
    /// What writing late rows says.
    pub fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.blob(self.identity().as_bytes());
        out.u64(self.shared.unplaced.late);
        out.u64(self.shared.unplaced.skipped);
        self.shared.late_windows.snapshot(out);
        write_arrow(self.shared.late.iter(), out)?;
        self.dictionaries()
            .for_each(|dictionary| dictionary.snapshot(out));
        self.state.snapshot(out)
    }

    /// Reads what [`WindowAggregate::snapshot`] wrote, into a state that has seen no row.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the query, `InvalidArgument` when rows were seen.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        if from.blob()? != self.identity().as_bytes() {
            return Err(Error::corrupt("the snapshot belongs to another query")
                .hint("restore with the windows, keys and aggregates it was taken with"));
        }
        self.shared.unplaced = Unplaced {
            late: from.u64()?,
            skipped: from.u64()?,
        };
        self.shared.late_windows = LateWindows::restore(from)?;
        self.shared.late = read_arrow(from)?;
        self.dictionaries()
            .try_for_each(|dictionary| dictionary.restore(from))?;
        self.state.restore(&self.shared, from)
    }
}

/// What one worker had of windows that have closed.
#[derive(Debug, Default)]
pub struct Closed {
    /// Their results, each with its first time; none where windows share panes.
    pub windows: Vec<(i64, RecordBatch)>,
    /// What no window took, and panes for others to emit.
    pub partial: Partial,
}

/// What one worker has seen since the last flush.
#[derive(Debug, Default)]
pub struct Partial {
    panes: BTreeMap<i64, Pane>,
    unplaced: Unplaced,
    late_windows: LateWindows,
    late: Vec<RecordBatch>,
}
