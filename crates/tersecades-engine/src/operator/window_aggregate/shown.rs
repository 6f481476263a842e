//! Rows that came out of windows that may still change, kept to be taken back as they were.
//!
//! Kept are batches, of which later results leave few rows in use; once most rows of them are of
//! no use, those in use are copied together.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use tersecades_columnar::error::{Error, Result};

use crate::runtime::state::{StateReader, StateWriter, read_arrow, write_arrow};

use super::pane::NO_GROUP;
use super::slot::no_such_slot;
use super::state::Shared;

/// Fewer rows of no use than this are not worth copying the others.
const UNUSED_ROWS_MAX: usize = 1_024;

/// A row that came out.
#[derive(Debug, Clone)]
pub(super) struct Shown<W> {
    rows: Arc<RecordBatch>,
    row: usize,
    /// What its window was then.
    pub(super) window: W,
}

impl<W> Shown<W> {
    /// Where the row lies, for [`rows_of`].
    pub(super) fn place(&self) -> Place<'_> {
        (&self.rows, self.row)
    }
}

/// A row of a batch.
pub(super) type Place<'a> = (&'a Arc<RecordBatch>, usize);

/// What came out of slots and may be taken back.
#[derive(Debug)]
pub(super) struct ShownRows<W> {
    by_slot: Vec<Option<Shown<W>>>,
    /// How many slots have a row.
    used: usize,
    /// Rows of the batches that were kept since they were last copied together.
    kept: usize,
}

impl<W: Copy> ShownRows<W> {
    /// No row.
    pub(super) fn new() -> Self {
        ShownRows {
            by_slot: Vec::new(),
            used: 0,
            kept: 0,
        }
    }

    /// Goes over to so many slots, which are no fewer than before.
    pub(super) fn grow(&mut self, slots: usize) {
        self.by_slot.resize(slots, None);
    }

    /// What came out of `slot`.
    pub(super) fn get(&self, slot: u32) -> Option<&Shown<W>> {
        self.by_slot[slot as usize].as_ref()
    }

    /// Takes what came out of `slot`, to be taken back or to stand for good.
    pub(super) fn take(&mut self, slot: u32) -> Option<Shown<W>> {
        let taken = self.by_slot[slot as usize].take();
        self.used -= usize::from(taken.is_some());
        taken
    }

    /// Keeps `rows`, each by its slot and what its window is.
    ///
    /// # Errors
    /// What Arrow says of copying rows.
    pub(super) fn keep(
        &mut self,
        rows: &Arc<RecordBatch>,
        slots: impl Iterator<Item = (u32, W)>,
    ) -> Result<()> {
        for (row, (slot, window)) in slots.enumerate() {
            let rows = Arc::clone(rows);
            let before = self.by_slot[slot as usize].replace(Shown { rows, row, window });
            self.used += usize::from(before.is_none());
        }
        self.kept += rows.num_rows();
        match self.kept > 2 * self.used + UNUSED_ROWS_MAX {
            true => self.pack(),
            false => Ok(()),
        }
    }

    /// Copies the rows in use into a batch of their own.
    fn pack(&mut self) -> Result<()> {
        self.kept = self.used;
        let places: Vec<Place<'_>> = self.by_slot.iter().flatten().map(Shown::place).collect();
        if places.is_empty() {
            return Ok(());
        }
        let packed = Arc::new(rows_of(&places)?);
        for (row, shown) in self.by_slot.iter_mut().flatten().enumerate() {
            shown.rows = Arc::clone(&packed);
            shown.row = row;
        }
        Ok(())
    }

    /// Gives slot `i` the number `targets[i]`, one of `slots`, or forgets what came out of it.
    pub(super) fn rename(&mut self, targets: &[u32], slots: usize) {
        let mut renamed = vec![None; slots];
        for (known, target) in self.by_slot.drain(..).zip(targets) {
            if known.is_some() && *target != NO_GROUP {
                renamed[*target as usize] = known;
            }
        }
        self.used = renamed.iter().flatten().count();
        self.by_slot = renamed;
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        let shown = self.by_slot.iter().flatten();
        let batches: BTreeMap<_, _> = shown
            .map(|shown| (Arc::as_ptr(&shown.rows), shown.rows.get_array_memory_size()))
            .collect();
        self.by_slot.capacity() * size_of::<Option<Shown<W>>>() + batches.values().sum::<usize>()
    }

    /// Writes the rows; `write` writes what a window was.
    ///
    /// # Errors
    /// What writing rows says.
    pub(super) fn snapshot(
        &self,
        out: &mut StateWriter,
        write: fn(W, &mut StateWriter),
    ) -> Result<()> {
        out.u64(self.used as u64);
        let mut places = Vec::with_capacity(self.used);
        for (slot, shown) in self.by_slot.iter().enumerate() {
            let Some(shown) = shown else { continue };
            out.u64(slot as u64);
            write(shown.window, out);
            places.push(shown.place());
        }
        let rows = (!places.is_empty()).then(|| rows_of(&places)).transpose()?;
        write_arrow(rows.iter(), out)
    }

    /// Reads what [`ShownRows::snapshot`] wrote, of so many slots.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the plan.
    pub(super) fn restore(
        &mut self,
        shared: &Shared,
        (from, slots): (&mut StateReader<'_>, usize),
        read: fn(&mut StateReader<'_>) -> Result<W>,
    ) -> Result<()> {
        *self = ShownRows::new();
        self.grow(slots);
        let mut named = Vec::new();
        for _ in 0..from.count()? {
            let slot = from.u64()?;
            if slot >= slots as u64 {
                return Err(no_such_slot());
            }
            named.push((slot as u32, read(from)?));
        }
        let rows = read_arrow::<Vec<_>>(from)?.pop();
        // The plan's last column says what a row does to others; rows are kept without it.
        let columns = shared.plan.schema.fields().len() - 1;
        match rows {
            Some(rows) if rows.num_rows() == named.len() && rows.num_columns() == columns => {
                self.keep(&Arc::new(rows), named.into_iter())
            }
            None if named.is_empty() => Ok(()),
            _ => Err(Error::corrupt("a snapshot lacks the results it claims")),
        }
    }
}

/// Rows next to each other, of which there is at least one.
///
/// # Errors
/// What Arrow says.
pub(super) fn rows_of(places: &[Place<'_>]) -> Result<RecordBatch> {
    let mut batches: Vec<&RecordBatch> = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut numbered = Vec::with_capacity(places.len());
    for (rows, row) in places {
        let number = *numbers.entry(Arc::as_ptr(rows)).or_insert_with(|| {
            batches.push(rows);
            batches.len() - 1
        });
        numbered.push((number, *row));
    }
    Ok(interleave_record_batch(&batches, &numbered)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn numbers(from: i64, count: usize) -> Arc<RecordBatch> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + count as i64));
        Arc::new(RecordBatch::try_from_iter([("number", numbers)]).unwrap())
    }

    #[test]
    fn batches_of_which_few_rows_are_in_use_are_let_go() {
        let (mut shown, slots) = (ShownRows::new(), 3 * UNUSED_ROWS_MAX as u32);
        shown.grow(slots as usize);
        let first = numbers(0, slots as usize);
        shown
            .keep(&first, (0..slots).map(|slot| (slot, ())))
            .unwrap();
        let whole = shown.byte_size();
        (1..slots).for_each(|slot| assert!(shown.take(slot).is_some()));
        assert_eq!(Arc::strong_count(&first), 2);
        shown.keep(&numbers(7, 1), [(5, ())].into_iter()).unwrap();
        assert_eq!(Arc::strong_count(&first), 1);
        assert!(shown.byte_size() < whole - 2 * 8 * UNUSED_ROWS_MAX);
        let places = [0, 5].map(|slot| shown.get(slot).unwrap().place());
        let rows = rows_of(&places).unwrap();
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![0, 7]));
        assert_eq!(rows.column(0), &expected);
    }
}
