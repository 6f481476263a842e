//! Group-by over windows: rows go to panes as they come, windows come out as the watermark passes.
//!
//! ```text
//! frame ──late rows apart──▶ panes of its time range ──▶ Pane::add    (one pane: all rows at once)
//! watermark ──▶ each window it passed: merge its panes, sort, emit; drop panes no window needs
//! ```
//! A batch whose time range lies in one pane is assigned without touching its timestamps; else the
//! time column is compared with each pane's range, which takes whole blocks by their bases; only
//! where panes are many and rows few are timestamps fetched.

pub mod emit;
pub mod keys;
pub mod pane;
pub mod plan;
pub mod sort;
pub mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::{Selection, Shape};
use tersecades_columnar::values::Values;

use crate::event_time::{Arrival, key_range};
use crate::expression::evaluate::BoundExpression;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};

use keys::SharedDictionary;
use pane::{Pane, PaneWork};
use plan::AggregatePlan;
use sort::Sorter;

/// Above this many panes in a batch, rows are assigned one by one.
const COMPARED_PANES_MAX: i64 = 16;

/// Rows that no window took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unplaced {
    /// Rows whose every window had closed.
    pub late: u64,
    /// Rows between windows that leave gaps.
    pub skipped: u64,
}

/// The state of one windowed group-by.
pub struct WindowAggregate {
    plan: Arc<AggregatePlan>,
    computed: Vec<BoundExpression>,
    panes: BTreeMap<i64, Pane>,
    spare: Vec<Pane>,
    /// Windows that end at or before this have been emitted.
    closed_to: i64,
    unplaced: Unplaced,
    keep_late: bool,
    late: Vec<RecordBatch>,
    scratch: PaneWork,
    sorter: Sorter,
    part: Selection,
    times: Values,
    placed: Vec<(i64, u32)>,
}

impl WindowAggregate {
    /// Empty state for `plan`; `computed` are the arguments to evaluate on each frame.
    pub fn new(plan: Arc<AggregatePlan>, computed: Vec<BoundExpression>, keep_late: bool) -> Self {
        WindowAggregate {
            plan,
            computed,
            panes: BTreeMap::new(),
            spare: Vec::new(),
            closed_to: i64::MIN,
            unplaced: Unplaced::default(),
            keep_late,
            late: Vec::new(),
            scratch: PaneWork::default(),
            sorter: Sorter::default(),
            part: Selection::default(),
            times: Values::default(),
            placed: Vec::new(),
        }
    }

    /// What is computed.
    pub fn plan(&self) -> &Arc<AggregatePlan> {
        &self.plan
    }

    /// Rows that no window took so far.
    pub fn unplaced(&self) -> Unplaced {
        self.unplaced
    }

    /// Takes the late rows kept so far.
    pub fn take_late(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.late)
    }

    /// Bytes of state.
    pub fn byte_size(&self) -> usize {
        self.panes.values().map(Pane::byte_size).sum()
    }

    /// Adds the selected rows of `frame`.
    ///
    /// # Errors
    /// What evaluating arguments and packing keys say.
    pub fn push(&mut self, frame: &mut Frame, arrival: &Arrival, work: &mut Work) -> Result<()> {
        frame.retain_valid(arrival.time_slot);
        if frame.selection.is_empty() {
            return Ok(());
        }
        self.set_late_apart(frame, arrival, work)?;
        for index in 0..self.computed.len() {
            let mut column = frame.take_derived();
            let evaluated = self.computed[index].evaluate(frame, &mut column, work);
            frame.put_derived(column);
            evaluated?;
        }
        let (first, last) = arrival.time_range;
        let (first, last) = (
            self.plan.window.pane_start(first),
            self.plan.window.pane_start(last),
        );
        let panes = last.saturating_sub(first) / self.plan.window.pane + 1;
        let gaps = self.plan.window.slide > self.plan.window.size;
        match panes {
            1 if !gaps => self.add_to_pane((first, arrival), frame, None, work),
            2..=COMPARED_PANES_MAX if frame.selection.shape() != Shape::Rows && !gaps => {
                self.add_by_comparison(frame, arrival, (first, last), work)
            }
            _ => self.add_row_by_row(frame, arrival, work),
        }
    }

    /// Removes from the frame the rows whose every window has closed.
    fn set_late_apart(
        &mut self,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        if arrival.watermark == i64::MIN {
            return Ok(());
        }
        let open_from = self.plan.window.first_start(arrival.watermark);
        if arrival.time_range.0 >= open_from {
            return Ok(());
        }
        let time = frame.column(arrival.time_slot);
        let before = key_range(time.physical(), i64::MIN, open_from.saturating_sub(1));
        time.compare(&before, &frame.selection, &mut self.part, work);
        if self.plan.window.slide > self.plan.window.size {
            self.drop_uncovered(frame, arrival, work);
        }
        let late = self.part.count();
        if late == 0 {
            return Ok(());
        }
        self.unplaced.late += late as u64;
        if self.keep_late {
            self.late.push(frame.batch.to_arrow(&self.part, work)?);
        }
        frame.selection.subtract(&self.part);
        frame.selection.settle();
        Ok(())
    }

    /// Leaves in `part` only rows that some window covers; the rest is skipped, not late.
    fn drop_uncovered(&mut self, frame: &Frame, arrival: &Arrival, work: &mut Work) {
        self.part.to_rows();
        let time = frame.column(arrival.time_slot);
        time.gather(&self.part, &mut self.times, work);
        let rows: Vec<u32> = self.part.list().to_vec();
        let covered = rows
            .iter()
            .enumerate()
            .filter(|(index, _)| self.plan.window.covers(self.times.integer(*index) as i64));
        let kept: Vec<u32> = covered.map(|(_, row)| *row).collect();
        self.part.set_rows(time.rows()).extend(kept);
    }

    fn add_by_comparison(
        &mut self,
        frame: &Frame,
        arrival: &Arrival,
        (first, last): (i64, i64),
        work: &mut Work,
    ) -> Result<()> {
        let time = frame.column(arrival.time_slot);
        let mut start = first;
        while start <= last {
            let end = start.saturating_add(self.plan.window.pane - 1);
            let inside = key_range(time.physical(), start, end);
            let mut part = std::mem::take(&mut self.part);
            time.compare(&inside, &frame.selection, &mut part, work);
            part.settle();
            let added = self.add_to_pane((start, arrival), frame, Some(&part), work);
            self.part = part;
            added?;
            start = start.saturating_add(self.plan.window.pane);
        }
        Ok(())
    }

    fn add_row_by_row(
        &mut self,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        frame.selection.to_rows();
        frame
            .column(arrival.time_slot)
            .gather(&frame.selection, &mut self.times, work);
        let batch_rows = frame.batch.rows();
        let mut placed = std::mem::take(&mut self.placed);
        placed.clear();
        let window = self.plan.window;
        let gaps = window.slide > window.size;
        let mut pane = (i64::MAX, 0);
        let mut ascending = true;
        for (index, row) in frame.selection.list().iter().enumerate() {
            let at = self.times.integer(index) as i64;
            if gaps && !window.covers(at) {
                self.unplaced.skipped += 1;
                continue;
            }
            if at < pane.0 || at - pane.0 >= window.pane {
                let start = window.pane_start(at);
                ascending &= pane.1 == 0 || start >= pane.0;
                pane = (start, 1);
            }
            placed.push((pane.0, *row));
        }
        if !ascending {
            placed.sort_unstable();
        }
        let mut part = std::mem::take(&mut self.part);
        let mut added = Ok(());
        for rows in placed.chunk_by(|a, b| a.0 == b.0) {
            part.set_rows(batch_rows)
                .extend(rows.iter().map(|(_, row)| *row));
            added = self.add_to_pane((rows[0].0, arrival), frame, Some(&part), work);
            if added.is_err() {
                break;
            }
        }
        self.part = part;
        self.placed = placed;
        added
    }

    fn add_to_pane(
        &mut self,
        (start, arrival): (i64, &Arrival),
        frame: &Frame,
        within: Option<&Selection>,
        work: &mut Work,
    ) -> Result<()> {
        let within = within.unwrap_or(&frame.selection);
        if within.is_empty() {
            return Ok(());
        }
        let plan = Arc::clone(&self.plan);
        let spare = &mut self.spare;
        let pane = self
            .panes
            .entry(start)
            .or_insert_with(|| spare.pop().unwrap_or_else(|| Pane::new(&plan)));
        let rows = (frame, within, arrival.rows_before);
        pane.add(&plan, rows, (&mut self.scratch, work))
    }

    /// Takes all panes, for another state to [`WindowAggregate::absorb`].
    pub fn take_panes(&mut self) -> Partial {
        let unplaced = std::mem::take(&mut self.unplaced);
        Partial {
            panes: std::mem::take(&mut self.panes),
            unplaced,
            late: self.take_late(),
        }
    }

    /// Adds what another worker has seen.
    pub fn absorb(&mut self, partial: Partial) {
        self.unplaced.late += partial.unplaced.late;
        self.unplaced.skipped += partial.unplaced.skipped;
        self.late.extend(partial.late);
        for (start, mut pane) in partial.panes {
            match self.panes.get_mut(&start) {
                Some(known) => {
                    known.merge(&self.plan, &pane);
                    pane.clear();
                    self.spare.push(pane);
                }
                None => {
                    self.panes.insert(start, pane);
                }
            }
        }
    }

    /// Whether some window ends after the last advance and at or before `watermark`.
    pub fn closes(&self, watermark: i64) -> bool {
        if watermark == i64::MAX {
            return true;
        }
        let window = self.plan.window;
        watermark > self.closed_to
            && (self.closed_to == i64::MIN
                || window.first_start(watermark) != window.first_start(self.closed_to))
    }

    /// Emits every window that ends at or before `watermark` and has rows, in order of start.
    ///
    /// # Errors
    /// `LimitExceeded` when a result does not fit its type.
    pub fn advance(&mut self, watermark: i64, out: &mut Vec<RecordBatch>) -> Result<()> {
        let window = self.plan.window;
        let from = self.closed_to;
        self.closed_to = self.closed_to.max(watermark);
        let mut next = if from == i64::MIN {
            i64::MIN
        } else {
            window.first_start(from)
        };
        while let Some((first, _)) = self.panes.first_key_value() {
            let start = next.max(window.first_start(*first));
            let end = i128::from(start) + i128::from(window.size);
            if end > i128::from(watermark) {
                break;
            }
            self.emit_window(start, out)?;
            let Some(following) = start.checked_add(window.slide) else {
                self.panes.clear();
                break;
            };
            next = following;
            self.drop_panes_before(next);
        }
        Ok(())
    }

    fn emit_window(&mut self, start: i64, out: &mut Vec<RecordBatch>) -> Result<()> {
        let end = start.saturating_add(self.plan.window.size);
        let mut inside = self.panes.range(start..end).map(|(_, pane)| pane);
        let (Some(first), second) = (inside.next(), inside.next()) else {
            return Ok(());
        };
        let Some(second) = second else {
            out.push(emit::emit(&self.plan, start, first, &mut self.sorter)?);
            return Ok(());
        };
        let mut merged = self.spare.pop().unwrap_or_else(|| Pane::new(&self.plan));
        for pane in [first, second].into_iter().chain(inside) {
            merged.merge(&self.plan, pane);
        }
        let emitted = emit::emit(&self.plan, start, &merged, &mut self.sorter);
        merged.clear();
        self.spare.push(merged);
        out.push(emitted?);
        Ok(())
    }

    /// Recycles the panes that no window from `start` on contains.
    fn drop_panes_before(&mut self, start: i64) {
        while let Some(entry) = self.panes.first_entry() {
            if *entry.key() >= start {
                break;
            }
            let mut pane = entry.remove();
            pane.clear();
            self.spare.push(pane);
        }
    }

    /// The dictionaries that text codes of panes mean.
    fn dictionaries(&self) -> impl Iterator<Item = &SharedDictionary> {
        let keys = self
            .plan
            .keys
            .columns
            .iter()
            .map(|column| column.dictionary());
        keys.chain(
            self.plan
                .arguments
                .iter()
                .map(|argument| &argument.dictionary),
        )
    }

    /// What a state must share with another to be taken over: windows, keys, aggregates, types.
    fn identity(&self) -> String {
        let AggregatePlan {
            window,
            label,
            schema,
            arguments,
            collections,
            ..
        } = &*self.plan;
        let arguments: Vec<&str> = arguments.iter().map(|a| a.label.as_str()).collect();
        format!("{window:?} {label} of {arguments:?} {collections:?} as {schema}")
    }

    /// Writes the whole state.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.blob(self.identity().as_bytes());
        out.i64(self.closed_to);
        out.u64(self.unplaced.late);
        out.u64(self.unplaced.skipped);
        self.dictionaries()
            .for_each(|dictionary| dictionary.snapshot(out));
        out.u64(self.panes.len() as u64);
        for (start, pane) in &self.panes {
            out.i64(*start);
            pane.snapshot(out);
        }
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
        self.closed_to = from.i64()?;
        self.unplaced = Unplaced {
            late: from.u64()?,
            skipped: from.u64()?,
        };
        self.dictionaries()
            .try_for_each(|dictionary| dictionary.restore(from))?;
        for _ in 0..from.count()? {
            let start = from.i64()?;
            self.panes.insert(start, Pane::restore(&self.plan, from)?);
        }
        Ok(())
    }
}

/// What one worker has seen since the last flush.
#[derive(Debug, Default)]
pub struct Partial {
    panes: BTreeMap<i64, Pane>,
    unplaced: Unplaced,
    late: Vec<RecordBatch>,
}
