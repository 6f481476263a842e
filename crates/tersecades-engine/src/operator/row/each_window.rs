//! Record batches of several windows, cut into one for each.
//!
//! Windows that differ between keys, as sessions do, come out behind every batch of the stream, all
//! that have closed by then. What takes each window by itself must not see how many those were.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ord::partition::partition;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::runtime::state::{StateReader, StateWriter};

use super::{RowInput, RowOperator, RowOperatorPlan};

/// Columns that say which window a row is of: start and end, the first of a windowed aggregate.
const WINDOW_COLUMNS: Range<usize> = 0..2;

/// Rows next to each other that have one start and one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EachWindow;

impl RowOperatorPlan for EachWindow {
    fn describe(&self) -> String {
        "each window by itself".to_owned()
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        Ok(Box::new(Cutting(SchemaRef::clone(&input.schema))))
    }
}

struct Cutting(SchemaRef);

impl RowOperator for Cutting {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.0)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let window: Vec<_> = rows.columns()[WINDOW_COLUMNS]
            .iter()
            .map(Arc::clone)
            .collect();
        let parts = partition(&window)?.ranges();
        out.extend(
            parts
                .into_iter()
                .map(|part| rows.slice(part.start, part.len())),
        );
        Ok(())
    }

    fn byte_size(&self) -> usize {
        0
    }

    fn snapshot(&mut self, _out: &mut StateWriter) -> Result<()> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut StateReader<'_>) -> Result<()> {
        Ok(())
    }
}
