//! `distinct`: the first of rows that are equal in every column.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::coded::{CodedRows, first_rows};
use super::row::key_number::KeyNumbers;
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
            seen: KeyNumbers::new(types)?,
            coded: CodedRows::default(),
        }))
    }
}

struct Seen {
    schema: SchemaRef,
    seen: KeyNumbers,
    /// What tells most rows that came before, without keys of whole texts.
    coded: CodedRows,
}

impl RowOperator for Seen {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let likely = match self.seen.is_words() {
            true => None,
            false => self.coded.fresh(&rows)?,
        };
        let rows = match likely {
            Some(likely) if likely.len() < rows.num_rows() => take(&rows, likely)?,
            _ => rows,
        };
        let known = self.seen.len();
        let numbers = self.seen.assign(rows.columns(), rows.num_rows())?;
        let fresh = first_rows(&numbers, known);
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
        self.coded.clear();
        self.seen.restore(from)
    }
}
