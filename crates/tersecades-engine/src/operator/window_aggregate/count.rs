//! State of windows of so many rows: for each key, one that fills up.

use arrow_array::RecordBatch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
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

/// The rows of one slot.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    rows: u64,
    /// Least and greatest event time.
    times: Option<(i64, i64)>,
}

/// Windows that fill up, of all keys.
#[derive(Debug)]
pub struct CountState {
    rows: u64,
    slots: Slots,
    /// By slot.
    counted: Vec<Counted>,
    /// The slot that fills up, by key id.
    open: Vec<u32>,
    /// How many slots fill up.
    filling_count: usize,
    /// Full windows that were not emitted, in the order of the rows that filled them.
    full: Vec<u32>,
    ids: Vec<u32>,
    times: Values,
}

impl CountState {
    /// No window; each takes `rows` rows.
    pub(super) fn new(shared: &Shared, rows: u64) -> Self {
        CountState {
            rows,
            slots: Slots::new(shared),
            counted: Vec::new(),
            open: Vec::new(),
            filling_count: 0,
            full: Vec::new(),
            ids: Vec::new(),
            times: Values::default(),
        }
    }

    /// The slot of the next row of `key`.
    fn place(&mut self, key: u32, time: Option<i64>) -> u32 {
        let mut slot = self.open[key as usize];
        if slot == NONE {
            slot = self.slots.open(key);
            self.counted.push(Counted::default());
            self.open[key as usize] = slot;
            self.filling_count += 1;
        }
        let counted = &mut self.counted[slot as usize];
        counted.rows += 1;
        if let Some(time) = time {
            let (first, last) = counted.times.unwrap_or((time, time));
            counted.times = Some((first.min(time), last.max(time)));
        }
        if counted.rows == self.rows {
            self.open[key as usize] = NONE;
            self.filling_count -= 1;
            self.full.push(slot);
        }
        slot
    }

    fn span(&self, slot: u32) -> Option<Span> {
        let times = self.counted[slot as usize].times;
        times.map(|(first, last)| Span {
            start: first.into(),
            end: i128::from(last) + 1,
        })
    }

    /// Slots handed out.
    pub(super) fn len(&self) -> usize {
        self.counted.len()
    }

    /// How many rows `slot` has.
    pub(super) fn rows(&self, slot: u32) -> u64 {
        self.counted[slot as usize].rows
    }

    /// The results of the windows of `slots`, and which of them each is, in this order or by key.
    pub(super) fn results(
        &self,
        shared: &mut Shared,
        slots: &[u32],
        by_key: bool,
    ) -> Result<(RecordBatch, Vec<u32>)> {
        let spans: Vec<Option<Span>> = slots.iter().map(|slot| self.span(*slot)).collect();
        let parts: Vec<(u32, u32)> = slots.iter().copied().zip(0..).collect();
        let pane = self.slots.extract(shared, &parts);
        let order = shared.sorter.sort_slots(&shared.plan.keys, &pane);
        if !by_key {
            order.sort_unstable();
        }
        let order = order.to_vec();
        let emitted = emit(&shared.plan, Windows::Each(&spans), &pane, &order);
        shared.put_pane(pane);
        Ok((emitted?, order))
    }

    /// Takes the full windows that were not emitted, in the order of the rows that filled them.
    pub(super) fn take_full(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.full)
    }

    /// The slots of the rows added last.
    pub(super) fn added(&self) -> &[u32] {
        &self.ids
    }

    /// Whether `slot` has room for more rows.
    pub(super) fn is_filling(&self, slot: u32) -> bool {
        self.rows(slot) < self.rows
    }

    /// The windows with room for more rows.
    pub(super) fn filling(&self) -> Vec<u32> {
        let open = self.open.iter().copied();
        open.filter(|slot| *slot != NONE).collect()
    }

    /// Where many slots are of windows that came out full, drops those; says which slot each is
    /// from here on.
    pub(super) fn tidy(&mut self, shared: &mut Shared) -> Option<Vec<u32>> {
        if !self.slots.is_untidy(self.filling_count) {
            return None;
        }
        let kept = self.filling();
        let mut targets = vec![NO_GROUP; self.counted.len()];
        for (index, slot) in kept.iter().enumerate() {
            targets[*slot as usize] = index as u32;
        }
        self.slots.replace(shared, &targets);
        let counted = kept.iter().map(|slot| self.counted[*slot as usize]);
        self.counted = counted.collect();
        self.link();
        Some(targets)
    }

    /// Finds the slot of each key; all are open.
    fn link(&mut self) {
        self.open = vec![NONE; self.slots.key_count()];
        for slot in 0..self.slots.len() as u32 {
            let key = self.slots.key_of(slot);
            self.open[key] = slot;
        }
        self.filling_count = self.slots.len();
    }
}

impl WindowState for CountState {
    fn admit(&mut self, _: &mut Shared, _: &mut Frame, _: &Arrival, _: &mut Work) -> Result<()> {
        Ok(())
    }

    fn add(
        &mut self,
        shared: &mut Shared,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<()> {
        let mut ids = std::mem::take(&mut self.ids);
        self.slots.read_keys(shared, frame, &mut ids, work)?;
        self.open.resize(self.slots.key_count(), NONE);
        let timed = shared.plan.timed;
        let mut times = std::mem::take(&mut self.times);
        if timed {
            let time = frame.column(arrival.time_slot);
            time.gather(&frame.selection, &mut times, work);
        }
        for (index, id) in ids.iter_mut().enumerate() {
            let known = timed && times.is_valid(index);
            let time = known.then(|| times.integer(index) as i64);
            *id = self.place(*id, time);
        }
        let added = self
            .slots
            .add(shared, (frame, arrival.rows_before), &ids, work);
        (self.ids, self.times) = (ids, times);
        added
    }

    fn closes(&self, watermark: i64) -> bool {
        !self.full.is_empty() || watermark == i64::MAX
    }

    fn advance(
        &mut self,
        shared: &mut Shared,
        watermark: i64,
        out: &mut Vec<RecordBatch>,
    ) -> Result<()> {
        let mut windows = vec![(self.take_full(), false)];
        if watermark == i64::MAX {
            windows.push((self.filling(), true));
            self.open.fill(NONE);
            self.filling_count = 0;
        }
        for (slots, by_key) in windows.iter().filter(|(slots, _)| !slots.is_empty()) {
            out.push(self.results(shared, slots, *by_key)?.0);
        }
        self.tidy(shared);
        Ok(())
    }

    fn least_start(&self, _: i64) -> i64 {
        i64::MIN
    }

    fn byte_size(&self) -> usize {
        self.slots.byte_size()
            + self.counted.capacity() * size_of::<Counted>()
            + self.open.capacity() * size_of::<u32>()
    }

    fn snapshot(&self, out: &mut StateWriter) -> Result<()> {
        self.slots.snapshot(out);
        for counted in &self.counted {
            let (first, last) = counted.times.unwrap_or_default();
            out.u64(counted.rows);
            out.u64(u64::from(counted.times.is_some()));
            out.i64(first);
            out.i64(last);
        }
        for slots in [&self.filling(), &self.full] {
            out.u64(slots.len() as u64);
            slots.iter().for_each(|slot| out.u64(u64::from(*slot)));
        }
        Ok(())
    }

    fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.slots.restore(shared, from)?;
        self.counted.clear();
        for _ in 0..self.slots.len() {
            let rows = from.u64()?;
            let timed = from.u64()? != 0;
            let times = (from.i64()?, from.i64()?);
            self.counted.push(Counted {
                rows,
                times: timed.then_some(times),
            });
        }
        let slots = self.slots.len() as u64;
        let mut lists = [Vec::new(), Vec::new()];
        for list in &mut lists {
            for _ in 0..from.count()? {
                let number = from.u64()?;
                let known = (number < slots).then_some(number as u32);
                list.push(known.ok_or_else(no_such_slot)?);
            }
        }
        let [filling, full] = lists;
        self.open = vec![NONE; self.slots.key_count()];
        for slot in filling {
            let key = self.slots.key_of(slot);
            self.open[key] = slot;
        }
        self.filling_count = self.filling().len();
        self.full = full;
        Ok(())
    }
}
