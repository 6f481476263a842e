//! State of windows whose boundaries all groups share: a pane for each stretch between boundaries.
//!
//! A batch whose time range lies in one pane is assigned without touching its timestamps; else the
//! time column is compared with each pane's range, which takes whole blocks by their bases; only
//! where rows are few or panes many are timestamps fetched.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::{Selection, Shape};
use tersecades_columnar::values::Values;

use crate::event_time::{Arrival, set_key_range};
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::{Boundaries, Span};

use super::feed::{PaneReader, Sharing};
use super::open::{last_window, windows_over};
use super::pane::{Pane, fold_left_over};
use super::placed::Placed;
use super::plan::AggregatePlan;
use super::remainder::Remainder;
use super::slide::Slide;
use super::state::{Shared, WindowState, merge_panes, read_panes, write_panes};

/// Above this many panes in a batch, rows are assigned one by one.
const COMPARED_PANES_MAX: usize = 16;

/// As [`COMPARED_PANES_MAX`], where few rows are selected: one comparison, which looks at outliers
/// only where they could answer differently, is cheaper than times.
const COMPARED_PANES_OF_FEW_MAX: usize = 2;

/// Panes of open windows.
#[derive(Debug)]
pub struct AlignedState {
    boundaries: Arc<dyn Boundaries>,
    /// Panes by their first time.
    panes: BTreeMap<i64, Pane>,
    slide: Slide,
    /// Where rows come from, if another state puts them into panes, and panes read so far.
    feed: Option<(Arc<PaneReader>, u64)>,
    /// Windows that end at or before this have been emitted.
    closed_to: i64,
    /// Panes that start before this were settled once.
    settled_to: i64,
    part: Selection,
    rest: Selection,
    remainder: Remainder,
    inside: Predicate,
    times: Values,
    placed: Placed,
}

impl AlignedState {
    /// No pane.
    pub(super) fn new(boundaries: Arc<dyn Boundaries>, plan: &AggregatePlan) -> Self {
        AlignedState {
            slide: Slide::new(boundaries.overlap(), plan),
            boundaries,
            panes: BTreeMap::new(),
            feed: match &plan.sharing {
                Sharing::Reads(reader) => Some((Arc::clone(reader), 0)),
                _ => None,
            },
            closed_to: i64::MIN,
            settled_to: i64::MIN,
            part: Selection::default(),
            rest: Selection::default(),
            remainder: Remainder::default(),
            inside: Predicate::Keys(Vec::new()),
            times: Values::default(),
            placed: Placed::default(),
        }
    }

    /// Starts of the panes that have rows.
    pub(super) fn starts(&self) -> Vec<i64> {
        self.panes.keys().copied().collect()
    }

    fn is_covered(&self, time: i64) -> bool {
        !self.boundaries.leaves_gaps() || self.boundaries.ending_after(time).holds(time)
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
            .filter(|(index, _)| self.is_covered(self.times.integer(*index) as i64));
        let kept: Vec<u32> = covered.map(|(_, row)| *row).collect();
        self.part.set_rows(time.rows()).extend(kept);
    }

    /// Counts the rows of `part` as late, by the last window that held each.
    fn count_late(&mut self, shared: &mut Shared, time: &Chunk, work: &mut Work) {
        time.gather(&self.part, &mut self.times, work);
        let mut window: Option<Span> = None;
        let mut pane: Option<Span> = None;
        for index in 0..self.times.len() {
            let at = self.times.integer(index) as i64;
            let held = match (window, pane) {
                (Some(window), Some(pane)) if pane.holds(at) => window,
                _ => last_window(&*self.boundaries, at),
            };
            shared.late_windows.count(held, 1);
            (window, pane) = (Some(held), Some(self.boundaries.pane(at)));
        }
    }

    fn add_by_comparison(
        &mut self,
        shared: &mut Shared,
        frame: &Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        let time = frame.column(arrival.time_slot);
        let (mut next, last) = arrival.time_range;
        let (mut part, mut rest) = (
            std::mem::take(&mut self.part),
            std::mem::take(&mut self.rest),
        );
        rest.copy_from(&frame.selection);
        let mut added = Ok(());
        while added.is_ok() {
            let pane = self.boundaries.pane(next);
            if pane.last() >= last {
                rest.settle();
                let rows = (frame, &rest, arrival.rows_before);
                added = self.add_to_pane(shared, pane.first(), rows, work);
                break;
            }
            let times = (pane.first(), pane.last());
            set_key_range(&mut self.inside, time.physical(), times);
            time.compare(&self.inside, &rest, &mut part, work);
            part.settle();
            rest.subtract(&part);
            let rows = (frame, &part, arrival.rows_before);
            added = self.add_to_pane(shared, pane.first(), rows, work);
            next = pane.last() + 1;
        }
        (self.part, self.rest) = (part, rest);
        added
    }

    /// Whether the panes from `pane` to the one that holds `last` are few enough to compare the
    /// times of a frame with each.
    fn are_few(&self, frame: &Frame, (mut pane, last): (Span, i64)) -> bool {
        // What is left over may leave few.
        let compared_max = match (frame.selection.shape(), &frame.left_over) {
            (Shape::Rows, _) | (_, Some(_)) => COMPARED_PANES_OF_FEW_MAX,
            _ => COMPARED_PANES_MAX,
        };
        let ends = std::iter::from_fn(|| {
            pane = self.boundaries.pane(pane.last().checked_add(1)?);
            Some(pane.last())
        });
        ends.take(compared_max - 1).any(|end| end >= last)
    }

    /// As [`AlignedState::add_by_comparison`] for a plan that a [`Remainder`] is for.
    fn add_by_subtraction(
        &mut self,
        shared: &mut Shared,
        frame: &Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) {
        let plan = Arc::clone(&shared.plan);
        let (mut next, last) = arrival.time_range;
        let mut remainder = std::mem::take(&mut self.remainder);
        let mut part = std::mem::take(&mut self.part);
        if !remainder.start(&plan, frame, work) {
            (self.remainder, self.part) = (remainder, part);
            return;
        }
        let (mut pane, mut parts) = (self.boundaries.pane(next), 0);
        while pane.last() < last {
            parts += 1;
            self.select_pane(pane, (frame, arrival), &mut part, work);
            remainder.fold_part(&plan, (frame, &mut part), work);
            remainder.put_into(|| self.pane_at(shared, pane.first()));
            next = pane.last() + 1;
            pane = self.boundaries.pane(next);
        }
        if remainder.is_small() {
            self.select_pane(pane, (frame, arrival), &mut part, work);
            remainder.fold_part(&plan, (frame, &mut part), work);
        } else if !remainder.subtract(&plan, frame, work) {
            if parts == 1 {
                // What is left is known without a look at times.
                self.rest.copy_from(&frame.selection);
                self.rest.subtract(&part);
                std::mem::swap(&mut self.rest, &mut part);
            } else {
                self.select_pane(pane, (frame, arrival), &mut part, work);
            }
            remainder.fold_ends(&plan, (frame, &part), work);
        }
        remainder.put_into(|| self.pane_at(shared, pane.first()));
        (self.remainder, self.part) = (remainder, part);
    }

    /// Sets `self.part`, which is returned, to the selected rows whose time is before `open`.
    pub(super) fn select_before(
        &mut self,
        open: i128,
        (frame, arrival): (&Frame, &Arrival),
        work: &mut Work,
    ) -> &Selection {
        let time = frame.column(arrival.time_slot);
        let last = i64::try_from(open - 1).unwrap_or(i64::MAX);
        set_key_range(&mut self.inside, time.physical(), (i64::MIN, last));
        time.compare(&self.inside, &frame.selection, &mut self.part, work);
        &self.part
    }

    /// Sets `part` to the selected rows whose time is in `pane`.
    fn select_pane(
        &mut self,
        pane: Span,
        (frame, arrival): (&Frame, &Arrival),
        part: &mut Selection,
        work: &mut Work,
    ) {
        let time = frame.column(arrival.time_slot);
        let times = (pane.first(), pane.last());
        set_key_range(&mut self.inside, time.physical(), times);
        time.compare(&self.inside, &frame.selection, part, work);
    }

    fn add_row_by_row(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        frame.selection.to_rows();
        let time = frame.column(arrival.time_slot);
        time.prefetch(&frame.selection);
        time.gather(&frame.selection, &mut self.times, work);
        let batch_rows = frame.batch.rows();
        let mut placed = std::mem::take(&mut self.placed);
        let physical = self.times.physical;
        let times = self.times.keys.iter();
        let times = times.map(|key| physical.value_of(*key) as i64);
        let rows = frame.selection.list().iter().copied().zip(times);
        let pane = |time| (self.boundaries.pane(time), self.is_covered(time));
        shared.unplaced.skipped += placed.place(rows, pane);
        let mut part = std::mem::take(&mut self.part);
        let mut added = Ok(());
        while added.is_ok() {
            let Some(pane) = placed.next(part.set_rows(batch_rows)) else {
                break;
            };
            added = self.add_to_pane(shared, pane, (frame, &part, arrival.rows_before), work);
        }
        (self.part, self.placed) = (part, placed);
        added
    }

    fn add_to_pane(
        &mut self,
        shared: &mut Shared,
        start: i64,
        rows: (&Frame, &Selection, u64),
        work: &mut Work,
    ) -> Result<()> {
        if rows.1.is_empty() {
            return Ok(());
        }
        let plan = Arc::clone(&shared.plan);
        let pane = self.pane_at(shared, start);
        pane.add(&plan, rows, (&mut shared.scratch, work))?;
        if rows.1.count() * 2 >= rows.0.selection.count() {
            self.settle_before(start);
        }
        Ok(())
    }

    /// Settles the panes before `start`, to which the stream has moved on: what is done here need
    /// not be done when their windows close.
    fn settle_before(&mut self, start: i64) {
        if start > self.settled_to {
            let left = self.panes.range(self.settled_to..start);
            left.for_each(|(_, pane)| pane.settle());
            self.settled_to = start;
        }
    }

    /// The pane that starts at `start`, which rows are to be added to.
    fn pane_at(&mut self, shared: &mut Shared, start: i64) -> &mut Pane {
        self.slide.touch(shared, &self.panes, start);
        self.panes
            .entry(start)
            .or_insert_with(|| shared.take_pane())
    }

    /// Recycles the panes that no window from `start` on contains.
    fn drop_panes_before(&mut self, shared: &mut Shared, start: i128) {
        while let Some(entry) = self.panes.first_entry() {
            if i128::from(*entry.key()) >= start {
                break;
            }
            let (start, pane) = entry.remove_entry();
            self.slide.retire(shared, start, pane);
        }
    }
}

impl WindowState for AlignedState {
    fn admit(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        frame.retain_valid(arrival.time_slot);
        if arrival.watermark == i64::MIN || frame.selection.is_empty() {
            return Ok(());
        }
        let open = self.boundaries.ending_after(arrival.watermark).start;
        if i128::from(arrival.time_range.0) >= open {
            return Ok(());
        }
        frame.test_left_over(&mut self.part, work);
        self.select_before(open, (frame, arrival), work);
        if self.boundaries.leaves_gaps() {
            self.drop_uncovered(frame, arrival, work);
        }
        if !self.part.is_empty() {
            self.count_late(shared, frame.column(arrival.time_slot), work);
        }
        shared.set_apart(frame, &self.part, work)
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        if self.feed.is_some() {
            return Ok(());
        }
        let (first, last) = arrival.time_range;
        let (pane, gaps) = (self.boundaries.pane(first), self.boundaries.leaves_gaps());
        let in_one = pane.holds(last) && !gaps;
        if in_one && let Some(fold) = fold_left_over(&shared.plan, frame, work) {
            if fold.count > 0 {
                let pane = self.pane_at(shared, pane.first());
                pane.add_folds(fold.count, &[fold]);
            }
            return Ok(());
        }
        let is_divided = !in_one && !gaps && Remainder::applies(&shared.plan);
        if !is_divided || !self.are_few(frame, (pane, last)) {
            frame.test_left_over(&mut self.part, work);
            if frame.selection.is_empty() {
                return Ok(());
            }
        }
        if is_divided && self.are_few(frame, (pane, last)) {
            self.add_by_subtraction(shared, frame, arrival, work);
            return Ok(());
        }
        if in_one {
            let rows = (&*frame, &frame.selection, arrival.rows_before);
            return self.add_to_pane(shared, pane.first(), rows, work);
        }
        match !gaps && self.are_few(frame, (pane, last)) {
            true => self.add_by_comparison(shared, frame, arrival, work),
            false => self.add_row_by_row(shared, frame, arrival, work),
        }
    }

    fn closes(&self, watermark: i64) -> bool {
        watermark == i64::MAX
            || watermark > self.closed_to
                && self.boundaries.last_end(watermark) > i128::from(self.closed_to)
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let mut from = self.closed_to;
        self.closed_to = self.closed_to.max(watermark);
        let at_end = watermark == i64::MAX;
        while let Some((first, _)) = self.panes.first_key_value() {
            let window = self.boundaries.ending_after(from.max(*first));
            if window.end > i128::from(watermark) && !at_end {
                break;
            }
            shared.plan.interrupt.check()?;
            out.extend(self.slide.emit(shared, &self.panes, window)?);
            let Ok(end) = i64::try_from(window.end) else {
                self.panes.clear();
                break;
            };
            from = end;
            self.drop_panes_before(shared, self.boundaries.ending_after(from).start);
        }
        Ok(())
    }

    fn open_windows(&self) -> Vec<Span> {
        let feed = self.feed.as_ref();
        let fed = feed.map_or_else(Vec::new, |(reader, _)| reader.open());
        let panes = self.panes.keys().chain(&fed);
        let open = windows_over(&*self.boundaries, panes, self.closed_to);
        open.into_values().collect()
    }

    fn least_start(&self, watermark: i64) -> i64 {
        self.boundaries.ending_after(watermark).first()
    }

    fn byte_size(&self) -> usize {
        let panes: usize = self.panes.values().map(Pane::byte_size).sum();
        let fed = self.feed.as_ref().map_or(0, |(fed, _)| fed.byte_size());
        panes + self.slide.byte_size() + fed
    }

    fn take(&mut self, watermark: i64) -> BTreeMap<i64, Pane> {
        let later = match self.boundaries.last_end(watermark) {
            _ if watermark == i64::MAX => BTreeMap::new(),
            end => match i64::try_from(end) {
                Ok(end) => self.panes.split_off(&end),
                Err(_) => return BTreeMap::new(),
            },
        };
        std::mem::replace(&mut self.panes, later)
    }

    fn settle(&self, watermark: i64) {
        let end = self.boundaries.last_end(watermark);
        let closing = self.panes.iter();
        closing
            .take_while(|(start, _)| i128::from(**start) < end)
            .for_each(|(_, pane)| pane.settle());
    }

    fn absorb(&mut self, shared: &mut Shared, panes: BTreeMap<i64, Pane>) {
        for start in panes.keys() {
            self.slide.touch(shared, &self.panes, *start);
        }
        merge_panes(shared, &mut self.panes, panes);
    }

    fn pull(&mut self, shared: &mut Shared) {
        let Some((reader, mut taken)) = self.feed.take() else {
            return;
        };
        let plan = Arc::clone(&shared.plan);
        let open = self.boundaries.ending_after(self.closed_to).start;
        reader.visit(shared.row, &mut taken, |start, pane| {
            let own = self.boundaries.pane(start);
            if own.start >= open {
                let into = self.pane_at(shared, own.first());
                into.merge_read(&plan, pane, &reader);
            }
        });
        self.feed = Some((reader, taken));
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.i64(self.closed_to);
        write_panes(&self.panes, out);
        Ok(())
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.closed_to = from.i64()?;
        self.panes = read_panes(&shared.plan, from)?;
        Ok(())
    }
}
