//! Rows with the same values in some columns, numbered.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use tersecades_columnar::error::Result;

use super::keys::{KeyIds, RowKeys};
use crate::frame::Scope;
use crate::runtime::state::{StateReader, StateWriter};

/// Groups of rows by key columns; without any, all rows are one group.
pub struct GroupKeys {
    slots: Vec<usize>,
    keys: RowKeys,
    ids: KeyIds,
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
            keys: RowKeys::unordered(types)?,
            ids: KeyIds::default(),
        })
    }

    /// The group of each row; new groups get the next numbers.
    ///
    /// # Errors
    /// `LimitExceeded` above 2^32 groups.
    pub fn ids(&mut self, rows: &RecordBatch) -> Result<Vec<u32>> {
        if self.slots.is_empty() {
            let id = self.ids.insert(&[])?.0;
            return Ok(vec![id; rows.num_rows()]);
        }
        let columns = self.slots.iter().map(|slot| Arc::clone(rows.column(*slot)));
        let keys = self.keys.of(&columns.collect::<Vec<ArrayRef>>())?;
        let rows = 0..keys.num_rows();
        rows.map(|row| Ok(self.ids.insert(keys.row(row).data())?.0))
            .collect()
    }

    /// Positions of the key columns.
    pub fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// Groups in order of their keys, nulls last.
    pub fn sorted(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..self.len() as u32).collect();
        ids.sort_by(|a, b| self.ids.key(*a).cmp(self.ids.key(*b)));
        ids
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
        self.ids = KeyIds::default();
    }

    /// Bytes of memory.
    pub fn byte_size(&self) -> usize {
        self.ids.byte_size()
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
        self.ids = KeyIds::restore(from)?;
        Ok(())
    }
}
