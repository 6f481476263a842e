//! `distinct`: the first of rows that are equal in every column.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::coded::CodedRows;
use super::row::keys::{KeyIds, RowKeys};
use super::row::shape::take;
use super::row::{RowInput, RowOperator, RowOperatorPlan};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "distinct",
    summary: "the first of rows that are equal in every column; null equals null",
};

/// Rows that have not come before.
#[derive(Debug, Clone, Copy)]
pub struct Distinct;

impl RowOperatorPlan for Distinct {
    fn describe(&self) -> String {
        "distinct".to_owned()
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        let types = input.schema.fields().iter().map(|f| f.data_type().clone());
        Ok(Box::new(Seen {
            schema: SchemaRef::clone(&input.schema),
            keys: RowKeys::unordered(types)?,
            seen: KeyIds::default(),
            coded: CodedRows::default(),
        }))
    }
}

struct Seen {
    schema: SchemaRef,
    keys: RowKeys,
    seen: KeyIds,
    /// What tells most rows that came before, without keys of whole texts.
    coded: CodedRows,
}

impl RowOperator for Seen {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let rows = match self.coded.fresh(&rows)? {
            Some(fresh) if fresh.len() < rows.num_rows() => take(&rows, fresh)?,
            _ => rows,
        };
        let keys = self.keys.of(rows.columns())?;
        let mut fresh = Vec::new();
        for row in 0..keys.num_rows() {
            if self.seen.insert(keys.row(row).data())?.1 {
                fresh.push(row as u32);
            }
        }
        match fresh.len() {
            0 => {}
            all if all == rows.num_rows() => out.push(rows),
            _ => out.push(take(&rows, fresh)?),
        }
        Ok(())
    }

    fn byte_size(&self) -> usize {
        self.seen.byte_size() + self.coded.byte_size()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.seen.snapshot(out);
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.seen = KeyIds::restore(from)?;
        self.coded.clear();
        Ok(())
    }
}
