//! State of sessions: for each key, windows that rows open, extend and join.
//!
//! A row belongs to the open sessions with a row less than a gap away; several are joined. A
//! session is open until the watermark before a row reaches its end, so rows that arrive later than
//! the lateness allows are judged one by one, against all rows before them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::successors;

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;

use crate::event_time::Arrival;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};
use crate::window::Span;

use super::emit::{Windows, emit};
use super::pane::NO_GROUP;
use super::slot::{Slots, no_such_slot};
use super::state::{Shared, WindowState};

/// No slot.
const NONE: u32 = u32::MAX;

/// What a slot is; those joined to another, which is newer, have it as parent.
#[derive(Debug, Clone, Copy)]
struct Session {
    first: i64,
    last: i64,
    parent: u32,
    /// The session of the key that ends before; closed ones lie behind all that are open.
    next: u32,
    /// Another slot of the session, whose slots lie in a ring.
    ring: u32,
    closed: bool,
}

/// Open sessions of all keys.
#[derive(Debug)]
pub struct SessionState {
    gap: i64,
    /// How far behind the watermark rows still count.
    allowed: i64,
    slots: Slots,
    /// By slot.
    sessions: Vec<Session>,
    /// Slots that were joined to others since they were last taken.
    joined: Vec<u32>,
    /// The session of each key id that ends last.
    heads: Vec<u32>,
    /// A lower bound of the last time of each open session.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    open: usize,
    ids: Vec<u32>,
    times: Values,
    all_times: Values,
    late: Selection,
}

impl SessionState {
    /// No session; rows up to `allowed` behind the watermark count.
    pub(super) fn new(shared: &Shared, gap: i64, allowed: i64) -> Self {
        SessionState {
            gap,
            allowed,
            slots: Slots::new(shared),
            sessions: Vec::new(),
            joined: Vec::new(),
            heads: Vec::new(),
            ends: BinaryHeap::new(),
            open: 0,
            ids: Vec::new(),
            times: Values::default(),
            all_times: Values::default(),
            late: Selection::default(),
        }
    }

    pub(super) fn end(&self, last: i64) -> i128 {
        i128::from(last) + i128::from(self.gap)
    }

    /// Slots handed out.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// The slots of the rows admitted last.
    pub(super) fn admitted(&self) -> &[u32] {
        &self.ids
    }

    /// The time of the last row of `slot`.
    pub(super) fn last(&self, slot: u32) -> i64 {
        self.sessions[slot as usize].last
    }

    /// From the first row of `slot` to a gap behind the last.
    pub(super) fn span(&self, slot: u32) -> Span {
        let session = self.sessions[slot as usize];
        Span {
            start: session.first.into(),
            end: self.end(session.last),
        }
    }

    /// Takes the slots that were joined to others since this was last called.
    pub(super) fn take_joined(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.joined)
    }

    /// Open sessions that were joined to no other.
    pub(super) fn open_slots(&self) -> impl Iterator<Item = u32> {
        let slots = (0..self.sessions.len() as u32).zip(&self.sessions);
        let open = slots.filter(|(slot, session)| !session.closed && session.parent == *slot);
        open.map(|(slot, _)| slot)
    }

    /// The slot of a row of `key` at `time`, judged by `watermark`; `None` when it is late.
    ///
    /// # Cost
    /// Passes over the open sessions of the key that are all later than the row.
    fn place(&mut self, key: u32, time: i64, watermark: i64) -> Option<u32> {
        let watermark = i128::from(self.finished(watermark));
        let (time_end, reaches) = (self.end(time), watermark.max(time.into()));
        let (mut previous, mut at) = (NONE, self.heads[key as usize]);
        while let Some(later) = self.ending_after(reaches, at)
            && i128::from(later.first) >= time_end
        {
            (previous, at) = (at, later.next);
        }
        let mut home = NONE;
        while let Some(touched) = self.ending_after(reaches, at) {
            home = match home {
                NONE => at,
                home => self.unite(home, at),
            };
            at = touched.next;
        }
        let slot = match home {
            NONE if time_end <= watermark => return None,
            NONE => self.open(key, time),
            home => home,
        };
        self.extend(slot, time, time);
        self.sessions[slot as usize].next = at;
        match previous {
            NONE => self.heads[key as usize] = slot,
            previous => self.sessions[previous as usize].next = slot,
        }
        Some(slot)
    }

    /// The session `slot`, if there is one which is not closed and ends after `time`.
    fn ending_after(&self, time: i128, slot: u32) -> Option<Session> {
        let session = self.sessions.get(slot as usize)?;
        (!session.closed && self.end(session.last) > time).then_some(*session)
    }

    /// Joins two sessions; the slot of both.
    fn unite(&mut self, one: u32, other: u32) -> u32 {
        let (newer, older) = (one.max(other), one.min(other));
        let Session { first, last, .. } = self.sessions[older as usize];
        self.extend(newer, first, last);
        self.sessions[older as usize].parent = newer;
        self.join_rings(newer, older);
        self.joined.push(older);
        self.open -= 1;
        newer
    }

    /// Makes one ring of those of two slots.
    fn join_rings(&mut self, one: u32, other: u32) {
        let next = self.sessions[other as usize].ring;
        let next = std::mem::replace(&mut self.sessions[one as usize].ring, next);
        self.sessions[other as usize].ring = next;
    }

    /// A new session of a row of `key` at `time`.
    fn open(&mut self, key: u32, time: i64) -> u32 {
        let slot = self.slots.open(key);
        self.sessions.push(Session {
            first: time,
            last: time,
            parent: slot,
            next: NONE,
            ring: slot,
            closed: false,
        });
        self.ends.push(Reverse((time, slot)));
        self.open += 1;
        slot
    }

    /// Sessions that end at or before this take no more rows.
    fn finished(&self, watermark: i64) -> i64 {
        match watermark {
            i64::MAX => i64::MAX,
            watermark => watermark.saturating_sub(self.allowed),
        }
    }

    fn extend(&mut self, slot: u32, first: i64, last: i64) {
        let session = &mut self.sessions[slot as usize];
        session.first = session.first.min(first);
        session.last = session.last.max(last);
    }

    /// The session that `slot` was joined to in the end.
    ///
    /// # Cost
    /// The logarithm of the slots at most, over many calls: each halves the way that it goes.
    pub(super) fn root(&mut self, mut slot: u32) -> u32 {
        loop {
            let parent = self.sessions[slot as usize].parent;
            if parent == slot {
                return slot;
            }
            let next = self.sessions[parent as usize].parent;
            self.sessions[slot as usize].parent = next;
            slot = next;
        }
    }

    /// Gives joined slots the target of their session.
    fn join(&self, targets: &mut [u32]) {
        // Parents are newer, so they have theirs by then.
        for (slot, session) in self.sessions.iter().enumerate().rev() {
            targets[slot] = targets[session.parent as usize];
        }
    }

    /// Takes the sessions that take no more rows at `watermark` out of the open ones.
    pub(super) fn close(&mut self, watermark: i64) -> Vec<u32> {
        let watermark = self.finished(watermark);
        let mut closing = Vec::new();
        while let Some(Reverse((last, slot))) = self.ends.peek().copied() {
            if watermark != i64::MAX && self.end(last) > i128::from(watermark) {
                break;
            }
            self.ends.pop();
            let session = self.sessions[slot as usize];
            if session.parent != slot {
                continue;
            }
            if session.last > last {
                self.ends.push(Reverse((session.last, slot)));
                continue;
            }
            self.sessions[slot as usize].closed = true;
            closing.push(slot);
        }
        self.open -= closing.len();
        closing
    }

    /// Where many slots are of closed sessions, drops them and makes one of those that were joined;
    /// says which slot each is part of from here on.
    pub(super) fn tidy(&mut self, shared: &mut Shared) -> Option<Vec<u32>> {
        if !self.slots.is_untidy(self.open) {
            return None;
        }
        let mut targets = vec![NO_GROUP; self.sessions.len()];
        let mut kept = Vec::new();
        for (slot, session) in self.sessions.iter().enumerate() {
            if !session.closed && session.parent == slot as u32 {
                let parent = kept.len() as u32;
                targets[slot] = parent;
                kept.push(Session {
                    parent,
                    ring: parent,
                    ..*session
                });
            }
        }
        self.join(&mut targets);
        self.slots.replace(shared, &targets);
        self.sessions = kept;
        self.link();
        Some(targets)
    }

    /// Every slot of the sessions `slots`, each with which of them it is part of.
    fn parts(&self, slots: &[u32]) -> Vec<(u32, u32)> {
        let mut parts = Vec::with_capacity(slots.len());
        for (group, slot) in (0..).zip(slots) {
            let next = |at: &u32| Some(self.sessions[*at as usize].ring).filter(|at| at != slot);
            parts.extend(successors(Some(*slot), next).map(|at| (at, group)));
        }
        parts.sort_unstable();
        parts
    }

    /// The results of the sessions `slots`, and which of them each is, by end, start and key.
    pub(super) fn results(
        &self,
        shared: &mut Shared,
        slots: &[u32],
    ) -> Result<(RecordBatch, Vec<u32>)> {
        let spans: Vec<_> = slots.iter().map(|slot| Some(self.span(*slot))).collect();
        let pane = self.slots.extract(shared, &self.parts(slots));
        let order = shared.sorter.sort_slots(&shared.plan.keys, &pane);
        order.sort_by_key(|group| spans[*group as usize].map(|span| (span.end, span.start)));
        let order = order.to_vec();
        let emitted = emit(&shared.plan, Windows::Each(&spans), &pane, &order);
        shared.put_pane(pane);
        Ok((emitted?, order))
    }

    /// Finds the open sessions of each key.
    fn link(&mut self) {
        self.heads = vec![NONE; self.slots.key_count()];
        self.ends.clear();
        self.open = 0;
        let mut open: Vec<u32> = self.open_slots().collect();
        open.sort_by_key(|slot| self.last(*slot));
        for slot in open {
            let head = &mut self.heads[self.slots.key_of(slot)];
            let session = &mut self.sessions[slot as usize];
            session.next = std::mem::replace(head, slot);
            self.ends.push(Reverse((session.last, slot)));
            self.open += 1;
        }
    }

    /// The watermark before each selected row; `None` where all are judged by that of the batch.
    fn watermarks(
        &mut self,
        frame: &Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Option<Vec<i64>> {
        let course = arrival.course?;
        let (oldest, newest) = arrival.time_range;
        // A row at or above every watermark of the batch touches no session that they close.
        if oldest >= self.finished(course.watermark(course.newest().max(Some(newest)))) {
            return None;
        }
        let time = frame.column(arrival.time_slot);
        time.gather(&Selection::all(time.rows()), &mut self.all_times, work);
        let mut before = Vec::with_capacity(frame.selection.count());
        let (mut newest, mut seen) = (course.newest(), 0);
        frame.selection.for_each(|row| {
            for earlier in (seen..row).filter(|row| self.all_times.is_valid(*row)) {
                newest = course.after(newest, self.all_times.integer(earlier) as i64);
            }
            seen = row;
            before.push(course.watermark(newest));
        });
        Some(before)
    }
}

impl WindowState for SessionState {
    fn admit(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        frame.retain_valid(arrival.time_slot);
        let mut keys = std::mem::take(&mut self.ids);
        self.slots.read_keys(shared, frame, &mut keys, work)?;
        self.heads.resize(self.slots.key_count(), NONE);
        let watermarks = self.watermarks(frame, arrival, work);
        let mut times = std::mem::take(&mut self.times);
        frame
            .column(arrival.time_slot)
            .gather(&frame.selection, &mut times, work);
        let mut late = std::mem::take(&mut self.late);
        let late_rows = late.set_rows(frame.batch.rows());
        let (mut index, mut placed) = (0, 0);
        frame.selection.for_each(|row| {
            let watermark = watermarks
                .as_ref()
                .map_or(arrival.watermark, |all| all[index]);
            match self.place(keys[index], times.integer(index) as i64, watermark) {
                Some(slot) => {
                    keys[placed] = slot;
                    placed += 1;
                }
                None => late_rows.push(row as u32),
            }
            index += 1;
        });
        keys.truncate(placed);
        (self.ids, self.times) = (keys, times);
        let set_apart = shared.set_apart(frame, &late, work);
        self.late = late;
        set_apart
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        let rows = (&*frame, arrival.rows_before);
        self.slots.add(shared, rows, &self.ids, work)
    }

    fn closes(&self, watermark: i64) -> bool {
        let finished = self.finished(watermark);
        let first = self.ends.peek();
        first.is_some_and(|Reverse((last, _))| {
            finished == i64::MAX || self.end(*last) <= i128::from(finished)
        })
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let closing = self.close(watermark);
        if !closing.is_empty() {
            out.push(self.results(shared, &closing)?.0);
        }
        // Also slots that were joined to sessions which stay open are many in the end.
        self.tidy(shared);
        self.joined.clear();
        Ok(())
    }

    fn least_start(&self, watermark: i64) -> i64 {
        match self.open {
            0 => self.finished(watermark).saturating_sub(self.gap - 1),
            // Rows of any age can join an open session and move its start back.
            _ => i64::MIN,
        }
    }

    fn byte_size(&self) -> usize {
        self.slots.byte_size()
            + self.sessions.capacity() * size_of::<Session>()
            + self.heads.capacity() * size_of::<u32>()
            + self.ends.capacity() * size_of::<(i64, u32)>()
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        self.slots.snapshot(out);
        let mut roots: Vec<u32> = (0..self.sessions.len() as u32).collect();
        self.join(&mut roots);
        for (session, root) in self.sessions.iter().zip(roots) {
            out.i64(session.first);
            out.i64(session.last);
            out.u64(u64::from(root));
            out.u64(u64::from(session.closed));
        }
        Ok(())
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.slots.restore(shared, from)?;
        self.sessions.clear();
        for slot in 0..self.slots.len() as u32 {
            self.sessions.push(Session {
                first: from.i64()?,
                last: from.i64()?,
                parent: u32::try_from(from.u64()?).map_err(|_| no_such_slot())?,
                next: NONE,
                ring: slot,
                closed: from.u64()? != 0,
            });
        }
        let is_root = |slot: u32| {
            let session = self.sessions.get(slot as usize);
            session.is_some_and(|session| session.parent == slot)
        };
        let mut slots = (0..self.sessions.len() as u32).zip(&self.sessions);
        if !slots.all(|(slot, session)| session.parent >= slot && is_root(session.parent)) {
            return Err(no_such_slot());
        }
        let slots = (0..self.sessions.len() as u32).zip(&self.sessions);
        let joined = slots.filter(|(slot, session)| session.parent != *slot);
        self.joined = joined.map(|(slot, _)| slot).collect();
        for at in 0..self.joined.len() {
            let slot = self.joined[at];
            self.join_rings(self.sessions[slot as usize].parent, slot);
        }
        self.link();
        Ok(())
    }
}
