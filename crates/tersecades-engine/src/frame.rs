//! What flows between operators: a batch, which of its rows are still wanted, added columns.

use std::sync::Arc;

use arrow_schema::DataType;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;

/// Position of a column in a [`Frame`]: first the batch's columns, then the derived ones.
pub type Slot = usize;

/// A batch on its way through the operators.
///
/// Operators never copy survivors: they narrow `selection` and add derived columns, which are as
/// long as the batch and meaningful only where a row is selected.
#[derive(Debug)]
pub struct Frame {
    /// The encoded rows as they arrived.
    pub batch: Arc<Batch>,
    /// Rows still wanted.
    pub selection: Selection,
    /// Columns computed on the way, in the order their operators stand in the plan.
    pub derived: Vec<Chunk>,
    /// Derived columns in use; the rest of `derived` is memory to reuse.
    pub derived_len: usize,
    /// A test of the selected rows that is left to who folds the column.
    pub left_over: Option<LeftOver>,
}

/// A test that rows still have to pass.
#[derive(Debug, Clone)]
pub struct LeftOver {
    /// The column.
    pub slot: Slot,
    /// What its values must pass.
    pub predicate: Arc<Predicate>,
}

/// Memory that frames take turns to work in, so that it stays in a processor's caches.
#[derive(Debug, Default)]
pub struct FrameMemory {
    selection: Selection,
    derived: Vec<Chunk>,
}

impl Frame {
    /// A frame with all rows of `batch`.
    pub fn new(batch: Arc<Batch>) -> Self {
        let selection = Selection::all(batch.rows());
        Frame {
            batch,
            selection,
            derived: Vec::new(),
            derived_len: 0,
            left_over: None,
        }
    }

    /// Takes another batch, keeping the memory.
    pub fn reset(&mut self, batch: Arc<Batch>) {
        self.selection.set_all(batch.rows());
        self.batch = batch;
        self.derived_len = 0;
        self.left_over = None;
    }

    /// Goes on in `memory`, without derived columns and what is left over; its own memory waits
    /// there.
    pub fn borrow_memory(&mut self, memory: &mut FrameMemory) {
        memory.selection.copy_from(&self.selection);
        self.return_memory(memory);
    }

    /// Takes its own memory back; what was in it is of no use.
    pub fn return_memory(&mut self, memory: &mut FrameMemory) {
        std::mem::swap(&mut self.selection, &mut memory.selection);
        std::mem::swap(&mut self.derived, &mut memory.derived);
        self.derived_len = 0;
        self.left_over = None;
    }

    /// The column at `slot`.
    pub fn column(&self, slot: Slot) -> &Chunk {
        match slot.checked_sub(self.batch.columns().len()) {
            None => self.batch.column(slot),
            Some(derived) => &self.derived[derived],
        }
    }

    /// Selects only the rows of `range`.
    pub fn select_range(&mut self, range: std::ops::Range<usize>) {
        let rows = self.batch.rows();
        let selected = self.selection.set_rows(rows);
        selected.extend(range.start as u32..range.end as u32);
        self.selection.settle();
    }

    /// Drops the rows where the column at `slot` is null.
    pub fn retain_valid(&mut self, slot: Slot) {
        let column = match slot.checked_sub(self.batch.columns().len()) {
            None => self.batch.column(slot),
            Some(derived) => &self.derived[derived],
        };
        if column.nulls() > 0 {
            self.selection.retain_words(column.validity().words());
        }
    }

    /// Keeps only the rows that pass what is left over, for who has no fold to leave it to; `found`
    /// is memory to work in.
    pub fn test_left_over(&mut self, found: &mut Selection, work: &mut Work) {
        let Some(test) = self.left_over.take() else {
            return;
        };
        let column = self.column(test.slot);
        column.compare(&test.predicate, &self.selection, found, work);
        found.settle();
        std::mem::swap(&mut self.selection, found);
    }

    /// Folds the values of the column at `slot` in the rows of `within` into `out`; of those that
    /// pass what is left over, if anything is, which is a test of that column.
    pub fn fold(
        &self,
        (slot, asked): (Slot, Asked),
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let column = self.column(slot);
        match &self.left_over {
            Some(test) => column.fold_where((&test.predicate, within), asked, out, work),
            None => column.fold(asked, within, out, work),
        }
    }

    /// Takes out the memory for the next derived column; give it back with [`Frame::put_derived`].
    pub fn take_derived(&mut self) -> Chunk {
        match self.derived.get_mut(self.derived_len) {
            Some(spare) => std::mem::take(spare),
            None => Chunk::default(),
        }
    }

    /// Appends a derived column, whose length must be the batch's.
    pub fn put_derived(&mut self, column: Chunk) {
        debug_assert_eq!(column.rows(), self.batch.rows());
        match self.derived.get_mut(self.derived_len) {
            Some(spare) => *spare = column,
            None => self.derived.push(column),
        }
        self.derived_len += 1;
    }
}

/// The hidden name of the event time; a projection leaves it.
pub const EVENT_TIME: &str = "\u{0}event_time";

/// What column names mean at one point of a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    columns: Vec<(String, DataType, Slot)>,
    slots: usize,
}

impl Scope {
    /// The columns of a batch schema, in order.
    pub fn of_schema(schema: &arrow_schema::Schema) -> Self {
        let mut scope = Scope::default();
        for field in schema.fields() {
            scope.add(field.name(), field.data_type().clone());
        }
        scope
    }

    /// Adds a column in the next slot; a name that exists is hidden by the new one.
    pub fn add(&mut self, name: &str, data_type: DataType) -> Slot {
        let slot = self.slots;
        self.slots += 1;
        self.columns.retain(|(known, ..)| known != name);
        self.columns.push((name.to_owned(), data_type, slot));
        slot
    }

    /// Says that the event time is the column in `slot`.
    pub fn name_event_time(&mut self, slot: Slot, data_type: DataType) {
        self.columns.push((EVENT_TIME.to_owned(), data_type, slot));
    }

    /// Keeps only the listed names visible, in that order, renamed; slots and event time stay.
    pub fn select(&mut self, kept: &[(String, Slot, DataType)]) {
        let columns = std::mem::take(&mut self.columns);
        let time = columns.into_iter().filter(|(name, ..)| name == EVENT_TIME);
        let kept = kept.iter();
        self.columns = kept
            .map(|(name, slot, kind)| (name.clone(), kind.clone(), *slot))
            .chain(time)
            .collect();
    }

    /// Visible columns: name, type, slot.
    pub fn columns(&self) -> &[(String, DataType, Slot)] {
        &self.columns
    }

    /// Slots handed out so far.
    pub fn slot_count(&self) -> usize {
        self.slots
    }

    /// Type and slot of the column named `name`.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the nearest known column.
    pub fn find(&self, name: &str) -> Result<(&DataType, Slot)> {
        let found = self.columns.iter().find(|(known, ..)| known == name);
        found
            .map(|(_, data_type, slot)| (data_type, *slot))
            .ok_or_else(|| {
                let known = self.columns.iter().map(|(known, ..)| known.as_str());
                let known: Vec<&str> = known.filter(|name| !name.starts_with('\u{0}')).collect();
                let error = Error::invalid(format!("unknown column `{name}`")).column(name);
                match nearest(name, &known) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(format!("known columns: {}", known.join(", "))),
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_columns_suggest_the_nearest() {
        let mut scope = Scope::default();
        scope.add("rtt_us", DataType::UInt32);
        scope.add("error_code", DataType::Int32);
        let error = scope.find("rt_us").unwrap_err();
        assert_eq!(error.hint_text(), Some("did you mean `rtt_us`?"));
        assert!(
            scope
                .find("zzz")
                .unwrap_err()
                .to_string()
                .contains("error_code")
        );
        assert_eq!(scope.find("error_code").unwrap().1, 1);
    }
}
