//! `reduce`: folds the rows of each key with a function of the user.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::error::{Error, Result};

use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::group::GroupKeys;
use super::row::kept::KeptRows;
use super::row::shape::{batch_of, concat, logical_schema, read_rows, take, write_rows};
use super::row::{Extent, RowInput, RowOperator, RowOperatorPlan};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "reduce",
    summary: "folds the rows of each key, of each window or of all, with a function of the user",
};

/// A function that folds rows into one.
pub trait Reducer: Debug + Send + Sync {
    /// The columns of the folded row, for rows of `input`.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows that it cannot fold.
    fn schema(&self, input: &Schema) -> Result<SchemaRef>;

    /// The one row that `rows`, all of one key and in order of arrival, make of `state`; `None`
    /// before the first rows of the key.
    ///
    /// How rows are cut into calls must not change the result.
    ///
    /// # Errors
    /// Whatever the user says.
    fn reduce(&self, state: Option<&RecordBatch>, rows: &RecordBatch) -> Result<RecordBatch>;
}

/// What to fold.
#[derive(Debug, Clone)]
pub struct Reduce {
    /// Columns to group by.
    pub keys: Vec<String>,
    /// The function.
    pub reducer: Arc<dyn Reducer>,
    /// Which rows are folded together.
    pub extent: Extent,
}

impl RowOperatorPlan for Reduce {
    fn describe(&self) -> String {
        let keys = self.keys.join(", ");
        self.extent
            .described(format!("reduce by [{keys}] with {:?}", self.reducer))
    }

    fn reorders(&self) -> bool {
        true
    }

    fn takes_windows(&self) -> bool {
        self.extent == Extent::Natural
    }

    fn keeps_windows(&self) -> bool {
        self.extent == Extent::Natural
    }

    fn passes(&self, column: &str) -> bool {
        self.keys.iter().any(|key| key == column)
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        let groups = GroupKeys::bind(&self.keys, &input.schema)?;
        let state = logical_schema(&*self.reducer.schema(&input.schema)?);
        let keys: Vec<_> = groups
            .slots()
            .iter()
            .map(|slot| Arc::clone(&input.schema.fields()[*slot]))
            .collect();
        let mut fields = keys.clone();
        for field in state.fields() {
            if fields.iter().any(|known| known.name() == field.name()) {
                let message = format!("two columns of the reduction are named `{}`", field.name());
                return Err(Error::invalid(message).hint("rename what the function gives"));
            }
            fields.push(Arc::clone(field));
        }
        let key_schema = Arc::new(Schema::new(keys));
        Ok(Box::new(Folded {
            kept: KeptRows::new(&key_schema)?,
            schema: Arc::new(Schema::new(fields)),
            reducer: Arc::clone(&self.reducer),
            each_window: self.extent.is_each_window(input),
            key_schema,
            state,
            groups,
            folded: Vec::new(),
        }))
    }
}

struct Folded {
    schema: SchemaRef,
    key_schema: SchemaRef,
    state: SchemaRef,
    reducer: Arc<dyn Reducer>,
    each_window: bool,
    groups: GroupKeys,
    /// The key columns of the first row of each group.
    kept: KeptRows,
    /// One row for each group.
    folded: Vec<RecordBatch>,
}

impl Folded {
    /// The result of the user's function, if it is what it said.
    fn checked(&self, row: RecordBatch) -> Result<RecordBatch> {
        if row.num_rows() != 1 || logical_schema(&row.schema()).fields() != self.state.fields() {
            return Err(Error::schema(format!(
                "{:?} gave {} rows of {:?} instead of one of {:?}",
                self.reducer,
                row.num_rows(),
                row.schema().fields(),
                self.state.fields()
            )));
        }
        Ok(row)
    }

    fn fold(&mut self, rows: &RecordBatch) -> Result<()> {
        let ids = self.groups.ids(rows)?;
        let mut parts: Vec<(u32, u32)> = ids.iter().copied().zip(0..).collect();
        parts.sort_unstable();
        let mut fresh = Vec::new();
        for part in parts.chunk_by(|a, b| a.0 == b.0) {
            let id = part[0].0 as usize;
            let positions = part.iter().map(|(_, row)| *row).collect();
            let state = self.folded.get(id);
            let next = self.reducer.reduce(state, &take(rows, positions)?)?;
            let next = self.checked(next)?;
            match self.folded.get_mut(id) {
                Some(state) => *state = next,
                None => {
                    fresh.push(part[0].1);
                    self.folded.push(next);
                }
            }
        }
        let slots = self.groups.slots().iter();
        let keys: Vec<ArrayRef> = slots.map(|slot| Arc::clone(rows.column(*slot))).collect();
        let keys = batch_of(&self.key_schema, keys, rows.num_rows())?;
        self.kept.push(take(&keys, fresh)?).map(|_| ())
    }

    fn emit(&mut self, out: &mut Vec<RecordBatch>) -> Result<()> {
        if self.folded.is_empty() {
            return Ok(());
        }
        let order = self.groups.sorted(&Interrupt::default())?;
        let rows: Vec<u64> = order.iter().map(|id| u64::from(*id)).collect();
        let mut columns = self.kept.pick(&rows)?;
        let states: Vec<RecordBatch> = order
            .iter()
            .map(|id| self.folded[*id as usize].clone())
            .collect();
        columns.extend(concat(&states)?.columns().iter().cloned());
        out.push(batch_of(&self.schema, columns, order.len())?);
        self.groups.clear();
        self.folded.clear();
        self.kept = KeptRows::new(&self.key_schema)?;
        Ok(())
    }
}

impl RowOperator for Folded {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.fold(&rows)?;
        if self.each_window {
            self.emit(out)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<bool> {
        self.emit(out).map(|()| false)
    }

    fn byte_size(&self) -> usize {
        let columns = self.folded.iter().flat_map(RecordBatch::columns);
        let states: usize = columns.map(|column| array_bytes(column.as_ref())).sum();
        self.groups.byte_size() + self.kept.byte_size() + states
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.groups.snapshot(out);
        let rows: Vec<u64> = (0..self.folded.len() as u64).collect();
        let keys = self.kept.pick(&rows)?;
        write_rows(&batch_of(&self.key_schema, keys, rows.len())?, out)?;
        self.folded.iter().try_for_each(|row| write_rows(row, out))
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.groups.restore(from)?;
        self.kept.push(read_rows(&self.key_schema, from)?)?;
        for _ in 0..self.groups.len() {
            let row = read_rows(&self.state, from)?;
            let row = self.checked(row)?;
            self.folded.push(row);
        }
        Ok(())
    }
}
