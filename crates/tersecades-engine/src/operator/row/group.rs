//! Rows with the same values in some columns, numbered.

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use tersecades_columnar::error::Result;

use super::coded::CodedRows;
use super::key_number::KeyNumbers;
use super::shape::take;
use crate::frame::Scope;
use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

/// Groups of rows by key columns; without any, all rows are one group.
pub struct GroupKeys {
    slots: Vec<usize>,
    ids: KeyNumbers,
    /// What tells keys that came before, without whole texts.
    coded: CodedRows,
    /// The group of each of its keys.
    of_code: Vec<u32>,
}

impl GroupKeys {
    /// Groups by the columns `names` of `schema`.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns.
    pub fn bind(names: &[String], schema: &Schema) -> Result<Self> {
        let scope = Scope::of_schema(schema);
        let (mut slots, mut types) = (Vec::new(), Vec::new());
        for name in names {
            let (data_type, slot) = scope.find(name)?;
            slots.push(slot);
            types.push(data_type.clone());
        }
        Ok(GroupKeys {
            slots,
            ids: KeyNumbers::new(types)?,
            coded: CodedRows::default(),
            of_code: Vec::new(),
        })
    }

    /// The group of each row; new groups get the next numbers.
    ///
    /// # Errors
    /// `LimitExceeded` above 2^32 groups.
    pub fn ids(&mut self, rows: &RecordBatch) -> Result<Vec<u32>> {
        let rows = rows.project(&self.slots)?;
        let coded = match self.ids.is_words() || self.slots.is_empty() {
            true => None,
            false => self.coded.numbered(&rows)?,
        };
        let Some(numbered) = coded else {
            return self.ids.assign(rows.columns(), rows.num_rows());
        };
        self.of_code.truncate(numbered.known);
        let fresh = take(&rows, numbered.fresh)?;
        let fresh = self.ids.assign(fresh.columns(), fresh.num_rows())?;
        self.of_code.extend(fresh);
        let codes = numbered.ids.iter();
        Ok(codes.map(|code| self.of_code[*code as usize]).collect())
    }

    /// Positions of the key columns.
    pub fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// Groups in order of their keys, nulls last; `interrupt` is asked meanwhile.
    ///
    /// # Errors
    /// What the interrupt says.
    pub fn sorted(&self, interrupt: &Interrupt) -> Result<Vec<u32>> {
        self.ids.sorted(interrupt)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.forget_codes();
    }

    fn forget_codes(&mut self) {
        self.coded.clear();
        self.of_code.clear();
    }

    /// Bytes of memory.
    pub fn byte_size(&self) -> usize {
        let codes = self.of_code.capacity() * size_of::<u32>();
        self.ids.byte_size() + self.coded.byte_size() + codes
    }

    /// Writes the groups.
    pub fn snapshot(&self, out: &mut StateWriter) {
        self.ids.snapshot(out);
    }

    /// Reads what [`GroupKeys::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.forget_codes();
        self.ids.restore(from)
    }
}
