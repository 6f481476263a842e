//! `limit`: the first rows after some that are left out; the source is not read further.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::{RowInput, RowOperator, RowOperatorPlan};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "limit",
    summary: "the first rows after an offset; the source is not read further",
};

/// How many rows to hand on.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Most rows that come out.
    pub count: u64,
    /// Rows left out before the first.
    pub offset: u64,
}

impl RowOperatorPlan for Limit {
    fn describe(&self) -> String {
        format!("limit {} offset {}", self.count, self.offset)
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        Ok(Box::new(Counting {
            schema: SchemaRef::clone(&input.schema),
            left_out: self.offset,
            left: self.count,
        }))
    }
}

struct Counting {
    schema: SchemaRef,
    /// Rows still to be left out.
    left_out: u64,
    /// Rows still to be handed on.
    left: u64,
}

impl RowOperator for Counting {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let skipped = self.left_out.min(rows.num_rows() as u64);
        self.left_out -= skipped;
        let taken = self.left.min(rows.num_rows() as u64 - skipped);
        self.left -= taken;
        if taken > 0 {
            out.push(rows.slice(skipped as usize, taken as usize));
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn byte_size(&self) -> usize {
        0
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        out.u64(self.left_out);
        out.u64(self.left);
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.left_out = from.u64()?;
        self.left = from.u64()?;
        Ok(())
    }
}
