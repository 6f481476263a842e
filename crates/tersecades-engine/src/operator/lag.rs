//! `lag`: the value a column had so many rows earlier, among rows with the same keys.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use crate::frame::Scope;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::group::GroupKeys;
use super::row::kept::{KeptRows, NO_ROW};
use super::row::shape::{batch_of, read_rows, write_rows};
use super::row::{RowInput, RowOperator, RowOperatorPlan};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "lag",
    summary: "the value a column had some rows earlier, among rows with the same keys",
};

/// Which value to add.
#[derive(Debug, Clone)]
pub struct Lag {
    /// The column.
    pub column: String,
    /// How many rows earlier, in order of arrival.
    pub rows: usize,
    /// Columns whose values the earlier row must share; null equals null.
    pub keys: Vec<String>,
    /// Name of the column that is added.
    pub output: String,
}

impl RowOperatorPlan for Lag {
    fn describe(&self) -> String {
        let keys = self.keys.join(", ");
        format!(
            "lag {} by {} rows of [{keys}] as {}",
            self.column, self.rows, self.output
        )
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        if self.rows == 0 {
            return Err(
                Error::invalid("a lag of 0 rows is the column itself").hint("give 1 row or more")
            );
        }
        let scope = Scope::of_schema(&input.schema);
        let (data_type, slot) = scope.find(&self.column)?;
        if scope.find(&self.output).is_ok() {
            let message = format!("there is a column `{}` already", self.output);
            return Err(Error::invalid(message).hint("give the lag another name"));
        }
        let value = Field::new(&self.output, data_type.clone(), true);
        let mut fields = input.schema.fields().to_vec();
        fields.push(Arc::new(value.clone()));
        Ok(Box::new(Earlier {
            schema: Arc::new(Schema::new(fields)),
            slot,
            rows: self.rows,
            groups: GroupKeys::bind(&self.keys, &input.schema)?,
            kept: KeptRows::new(&Arc::new(Schema::new(vec![value])))?,
            last: Vec::new(),
        }))
    }
}

struct Earlier {
    schema: SchemaRef,
    slot: usize,
    rows: usize,
    groups: GroupKeys,
    kept: KeptRows,
    /// The last rows of each group, oldest first.
    last: Vec<VecDeque<u64>>,
}

impl Earlier {
    /// The kept rows by themselves.
    fn value_schema(&self) -> Schema {
        Schema::new(self.schema.fields()[self.schema.fields().len() - 1..].to_vec())
    }
}

impl RowOperator for Earlier {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let ids = self.groups.ids(&rows)?;
        self.last.resize_with(self.groups.len(), VecDeque::new);
        let values = Arc::clone(rows.column(self.slot));
        let first = self.kept.push(batch_of(
            &self.value_schema(),
            vec![values],
            rows.num_rows(),
        )?)?;
        let (mut earlier, mut past) = (Vec::with_capacity(ids.len()), Vec::new());
        for (row, id) in ids.iter().enumerate() {
            let last = &mut self.last[*id as usize];
            last.push_back(first + row as u64);
            let found = match last.len() > self.rows {
                true => last.pop_front(),
                false => None,
            };
            past.extend(found);
            earlier.push(found.unwrap_or(NO_ROW));
        }
        let mut columns = rows.columns().to_vec();
        columns.extend(self.kept.pick(&earlier)?);
        past.into_iter().for_each(|row| self.kept.release(row));
        out.push(batch_of(&self.schema, columns, rows.num_rows())?);
        Ok(())
    }

    fn byte_size(&self) -> usize {
        let numbers = self.last.len() * (self.rows + 4) * size_of::<u64>();
        self.groups.byte_size() + self.kept.byte_size() + numbers
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.groups.snapshot(out);
        self.last.iter().for_each(|last| out.u64(last.len() as u64));
        let rows: Vec<u64> = self.last.iter().flatten().copied().collect();
        let values = self.kept.pick(&rows)?;
        write_rows(&batch_of(&self.value_schema(), values, rows.len())?, out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.groups.restore(from)?;
        let mut next = 0;
        for _ in 0..self.groups.len() {
            let count = from.u64()?.min(self.rows as u64);
            self.last.push((next..next + count).collect());
            next += count;
        }
        let rows = read_rows(&self.value_schema(), from)?;
        if rows.num_rows() as u64 != next {
            return Err(Error::corrupt(
                "a snapshot holds another number of earlier rows",
            ));
        }
        self.kept.push(rows).map(|_| ())
    }
}
