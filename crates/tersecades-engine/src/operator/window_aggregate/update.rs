//! State of aligned windows that come out more than once.
//!
//! ```text
//! rows ──▶ fresh panes ──results come──▶ changed groups of each window: settled + fresh ──▶ out
//!                                     └▶ fresh is merged into settled
//! ```
//! A result says in its last column whether the group is new in its window or replaces what came
//! out before. Panes stay until no window that still takes rows needs them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::{Boundaries, Emission, Rhythm, Span};

use super::aligned::AlignedState;
use super::emit::{Windows, emit};
use super::open::windows_over;
use super::pane::Pane;
use super::plan::CHANGE;
use super::state::{Shared, WindowState, merge_panes, read_panes, write_panes};

/// A group that its window did not have before.
pub(super) const INSERT: &str = "insert";

/// A row that replaces the one of the same window and keys.
pub(super) const UPDATE: &str = "update";

/// A row that came out before and is none of the results any more.
pub(super) const DELETE: &str = "delete";

/// Panes of windows that take rows, with what changed since results last came apart.
#[derive(Debug)]
pub struct UpdatingState {
    boundaries: Arc<dyn Boundaries>,
    emission: Emission,
    /// Rows since results last came.
    fresh: AlignedState,
    /// Rows before that.
    settled: BTreeMap<i64, Pane>,
    /// The watermark when results last came.
    closed_to: i64,
}

impl UpdatingState {
    /// No pane.
    pub(super) fn new(
        shared: &Shared,
        boundaries: &Arc<dyn Boundaries>,
        emission: Emission,
    ) -> Self {
        UpdatingState {
            fresh: AlignedState::new(Arc::clone(boundaries), &shared.plan),
            boundaries: Arc::clone(boundaries),
            emission,
            settled: BTreeMap::new(),
            closed_to: i64::MIN,
        }
    }

    /// Emits the groups of `window` that `fresh` has rows of.
    fn emit_changes(
        &self,
        shared: &mut Shared,
        window: Span,
        fresh: &BTreeMap<i64, Pane>,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let (first, last) = (window.first(), window.last());
        let mut merged = shared.take_pane();
        for (_, pane) in self.settled.range(first..=last) {
            merged.merge(&shared.plan, pane);
        }
        let known = merged.len();
        let mut changed = shared.take_pane();
        for (_, pane) in fresh.range(first..=last) {
            merged.merge(&shared.plan, pane);
            changed.merge(&shared.plan, pane);
        }
        let one_group = shared.plan.keys.columns.is_empty();
        let sorted = shared.sorter.sort(&shared.plan.keys, &changed).iter();
        let order: Vec<u32> = sorted
            .map(|id| match one_group {
                true => 0,
                false => merged.groups.assign_one(changed.groups.key(*id as usize)),
            })
            .collect();
        let emitted = emit(&shared.plan, Windows::One(window), &merged, &order);
        shared.put_pane(merged);
        shared.put_pane(changed);
        let kinds = order.iter().map(|id| match (*id as usize) < known {
            true => UPDATE,
            false => INSERT,
        });
        out.push(with_change(&emitted?, kinds)?);
        Ok(())
    }

    /// Emits every window that closed since results last came, for the first time.
    fn emit_closed(
        &self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let mut from = self.closed_to;
        loop {
            let start = self.boundaries.ending_after(from).first();
            let Some((first, _)) = self.settled.range(start..).next() else {
                return Ok(());
            };
            let window = self.boundaries.ending_after(from.max(*first));
            if window.end > i128::from(watermark) && watermark != i64::MAX {
                return Ok(());
            }
            self.emit_whole(shared, window, out)?;
            let Ok(end) = i64::try_from(window.end) else {
                return Ok(());
            };
            from = end;
        }
    }

    /// Emits every group of `window`, none of which came out before.
    fn emit_whole(
        &self,
        shared: &mut Shared,
        window: Span,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let mut merged = shared.take_pane();
        for (_, pane) in self.settled.range(window.first()..=window.last()) {
            merged.merge(&shared.plan, pane);
        }
        let order = shared.sorter.sort(&shared.plan.keys, &merged).to_vec();
        let emitted = emit(&shared.plan, Windows::One(window), &merged, &order);
        shared.put_pane(merged);
        out.push(with_change(&emitted?, order.iter().map(|_| INSERT))?);
        Ok(())
    }

    /// Recycles the panes that no window needs which takes rows at `watermark`.
    fn drop_finished(&mut self, shared: &mut Shared, watermark: i64) {
        let finished = self.emission.finished(watermark);
        let needed = match finished {
            i64::MAX => i128::MAX,
            finished => self.boundaries.ending_after(finished).start,
        };
        while let Some(entry) = self.settled.first_entry() {
            if i128::from(*entry.key()) >= needed {
                break;
            }
            shared.put_pane(entry.remove());
        }
    }
}

impl WindowState for UpdatingState {
    fn admit(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        let arrival = Arrival {
            watermark: self.emission.finished(arrival.watermark),
            ..*arrival
        };
        self.fresh.admit(shared, frame, &arrival, work)
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        self.fresh.add(shared, frame, arrival, work)
    }

    fn closes(&self, watermark: i64) -> bool {
        self.emission.rhythm == Rhythm::Batch
            || self
                .emission
                .passes(&*self.boundaries, self.closed_to, watermark)
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let fresh = self.fresh.take(i64::MAX);
        let finished = self.emission.finished(self.closed_to);
        let once = self.emission.rhythm == Rhythm::Final;
        for (end, window) in windows_over(&*self.boundaries, fresh.keys(), finished) {
            if !once || end <= i128::from(self.closed_to) {
                self.emit_changes(shared, window, &fresh, out)?;
            }
        }
        merge_panes(shared, &mut self.settled, fresh);
        if once {
            self.emit_closed(shared, watermark, out)?;
        }
        self.closed_to = self.closed_to.max(watermark);
        self.drop_finished(shared, self.closed_to);
        Ok(())
    }

    fn least_start(&self, watermark: i64) -> i64 {
        let finished = self.emission.finished(watermark);
        self.boundaries.ending_after(finished).first()
    }

    fn open_windows(&self) -> Vec<Span> {
        let mut open = windows_over(&*self.boundaries, self.settled.keys(), self.closed_to);
        let fresh = self.fresh.open_windows().into_iter();
        open.extend(fresh.map(|window| (window.end, window)));
        open.retain(|end, _| *end > i128::from(self.closed_to));
        open.into_values().collect()
    }

    fn byte_size(&self) -> usize {
        let settled: usize = self.settled.values().map(Pane::byte_size).sum();
        settled + self.fresh.byte_size()
    }

    fn take(&mut self, _watermark: i64) -> BTreeMap<i64, Pane> {
        self.fresh.take(i64::MAX)
    }

    fn absorb(&mut self, shared: &mut Shared, panes: BTreeMap<i64, Pane>) {
        self.fresh.absorb(shared, panes);
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.i64(self.closed_to);
        write_panes(&self.settled, out);
        self.fresh.snapshot(out)
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.closed_to = from.i64()?;
        self.settled = read_panes(&shared.plan, from)?;
        self.fresh.restore(shared, from)
    }
}

/// `rows` with a last column that says of each what it does to what came out before.
pub(super) fn with_change<'a>(
    rows: &RecordBatch,
    kinds: impl Iterator<Item = &'a str>,
) -> Result<RecordBatch> {
    let kinds = StringArray::from_iter_values(kinds);
    let schema = rows.schema();
    let mut fields: Vec<Field> = schema.fields().iter().map(|f| (**f).clone()).collect();
    fields.push(Field::new(CHANGE, kinds.data_type().clone(), false));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(kinds));
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}
