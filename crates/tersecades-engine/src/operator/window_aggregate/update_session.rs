//! State of sessions that come out more than once.
//!
//! ```text
//! rows ──▶ sessions ──results come──▶ delete what came out of those that moved or were joined,
//!                                     then insert or update those that changed
//! ```
//! A session is named by its ends, and a late row can move them or join two sessions: so rows that
//! came out are kept until no row can change them, to be withdrawn as they were.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::{Emission, Rhythm, Span, floor};

use super::session::SessionState;
use super::shown::{Shown, ShownRows, rows_of};
use super::slot::{no_such_slot, touch};
use super::state::{Shared, WindowState};
use super::update::{DELETE, INSERT, UPDATE, with_change};

/// Sessions that take rows, and what came out of them.
#[derive(Debug)]
pub struct UpdatingSessions {
    emission: Emission,
    sessions: SessionState,
    shown: ShownRows<Span>,
    /// Slots with rows since results last came.
    touched: Vec<u32>,
    /// A lower bound of the last time of each session that was not seen to end.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    /// Whether a slot is among `ends`, where it is once.
    queued: Vec<bool>,
    /// The watermark when results last came.
    closed_to: i64,
}

impl UpdatingSessions {
    /// No session.
    pub(super) fn new(shared: &Shared, gap: i64, emission: Emission) -> Self {
        UpdatingSessions {
            emission,
            sessions: SessionState::new(shared, gap, emission.allowed),
            shown: ShownRows::new(),
            touched: Vec::new(),
            ends: BinaryHeap::new(),
            queued: Vec::new(),
            closed_to: i64::MIN,
        }
    }

    fn has_ended(&self, last: i64, watermark: i64) -> bool {
        watermark == i64::MAX || self.sessions.end(last) <= i128::from(watermark)
    }

    /// Has the end of `slot` looked for.
    fn queue(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.queued[slot as usize], true) {
            self.ends.push(Reverse((self.sessions.last(slot), slot)));
        }
    }

    /// Has the ends of the open sessions looked for that end after `watermark`, and of no others.
    fn queue_open(&mut self, watermark: i64) {
        self.ends.clear();
        self.queued.clear();
        self.queued.resize(self.sessions.len(), false);
        let mut open: Vec<u32> = self.sessions.open_slots().collect();
        open.retain(|slot| !self.has_ended(self.sessions.last(*slot), watermark));
        open.into_iter().for_each(|slot| self.queue(slot));
    }

    /// The sessions that changed or that ended, each once.
    fn candidates(&mut self, watermark: i64) -> Vec<u32> {
        let mut found = std::mem::take(&mut self.touched);
        for slot in &mut found {
            *slot = self.sessions.root(*slot);
        }
        while let Some(Reverse((last, slot))) = self.ends.peek().copied() {
            if !self.has_ended(last, watermark) {
                break;
            }
            self.ends.pop();
            self.queued[slot as usize] = false;
            if self.sessions.root(slot) != slot {
                continue;
            }
            if self.sessions.last(slot) > last {
                self.queue(slot);
            } else if self.shown.get(slot).is_none() {
                found.push(slot);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What came out of sessions that were joined to others.
    fn withdraw_joined(&mut self) -> Vec<Shown<Span>> {
        let joined = self.sessions.take_joined().into_iter();
        joined.filter_map(|slot| self.shown.take(slot)).collect()
    }

    /// Emits what became of `candidates`, behind what is withdrawn.
    fn emit_changes(
        &mut self,
        shared: &mut Shared,
        (candidates, watermark): (Vec<u32>, i64),
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let mut withdrawn = self.withdraw_joined();
        let (mut slots, mut kinds) = (Vec::new(), Vec::new());
        for slot in candidates {
            let (span, last) = (self.sessions.span(slot), self.sessions.last(slot));
            let ended = self.has_ended(last, watermark);
            if !ended {
                self.queue(slot);
            }
            let before = self.shown.take(slot);
            let stays = before.as_ref().is_some_and(|shown| shown.window == span);
            withdrawn.extend(before.filter(|_| !stays));
            if ended || self.emission.rhythm != Rhythm::Final {
                slots.push(slot);
                kinds.push(if stays { UPDATE } else { INSERT });
            }
        }
        if !withdrawn.is_empty() {
            withdrawn.sort_by_key(|shown| (shown.window.end, shown.window.start));
            let places: Vec<_> = withdrawn.iter().map(Shown::place).collect();
            let rows = rows_of(&places)?;
            out.push(with_change(&rows, withdrawn.iter().map(|_| DELETE))?);
        }
        if slots.is_empty() {
            return Ok(());
        }
        let (rows, order) = self.sessions.results(shared, &slots)?;
        out.push(with_change(
            &rows,
            order.iter().map(|at| kinds[*at as usize]),
        )?);
        let shown = order.into_iter().map(|at| slots[at as usize]);
        let sessions = &self.sessions;
        self.shown.keep(
            &Arc::new(rows),
            shown.map(|slot| (slot, sessions.span(slot))),
        )
    }

    /// Forgets the sessions that take no more rows.
    fn forget_finished(&mut self, shared: &mut Shared, watermark: i64) {
        for slot in self.sessions.close(watermark) {
            self.shown.take(slot);
        }
        let Some(targets) = self.sessions.tidy(shared) else {
            return;
        };
        self.shown.rename(&targets, self.sessions.len());
        // Those that ended came out just now, and need not be found again.
        self.queue_open(watermark);
    }
}

impl WindowState for UpdatingSessions {
    fn admit(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        self.sessions.admit(shared, frame, arrival, work)?;
        let (known, slots) = (self.queued.len() as u32, self.sessions.len());
        self.queued.resize(slots, false);
        (known..slots as u32).for_each(|slot| self.queue(slot));
        self.shown.grow(slots);
        touch(&mut self.touched, self.sessions.admitted(), slots);
        Ok(())
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        self.sessions.add(shared, frame, arrival, work)
    }

    fn closes(&self, watermark: i64) -> bool {
        let first = self.ends.peek();
        let passes = match self.emission.rhythm {
            Rhythm::Final => false,
            Rhythm::Batch => true,
            Rhythm::Every(period) => {
                watermark > self.closed_to
                    && floor(watermark, period, 0) > i128::from(self.closed_to)
            }
        };
        passes
            || watermark == i64::MAX
            || first.is_some_and(|Reverse((last, _))| self.has_ended(*last, watermark))
            || self.sessions.closes(watermark)
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let candidates = self.candidates(watermark);
        self.emit_changes(shared, (candidates, watermark), out)?;
        self.forget_finished(shared, watermark);
        self.closed_to = self.closed_to.max(watermark);
        Ok(())
    }

    fn least_start(&self, watermark: i64) -> i64 {
        self.sessions.least_start(watermark)
    }

    fn byte_size(&self) -> usize {
        self.sessions.byte_size()
            + self.shown.byte_size()
            + self.touched.capacity() * size_of::<u32>()
            + self.ends.capacity() * size_of::<(i64, u32)>()
            + self.queued.capacity() * size_of::<bool>()
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        out.i64(self.closed_to);
        self.sessions.snapshot(out)?;
        self.shown.snapshot(out, |span, out| {
            out.i128(span.start);
            out.i128(span.end);
        })?;
        out.u64(self.touched.len() as u64);
        self.touched.iter().for_each(|slot| out.u64((*slot).into()));
        Ok(())
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.closed_to = from.i64()?;
        self.sessions.restore(shared, from)?;
        let slots = self.sessions.len();
        self.shown.restore(shared, (from, slots), |from| {
            Ok(Span {
                start: from.i128()?,
                end: from.i128()?,
            })
        })?;
        for _ in 0..from.count()? {
            let slot = u32::try_from(from.u64()?).map_err(|_| no_such_slot())?;
            self.touched.push(slot);
        }
        if self.touched.iter().any(|slot| *slot as usize >= slots) {
            return Err(no_such_slot());
        }
        self.queue_open(i64::MIN);
        Ok(())
    }
}
