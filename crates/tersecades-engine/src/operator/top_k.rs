//! `top_k`: the first rows of a sort, without keeping the others.

use arrow_array::RecordBatch;
use arrow_row::OwnedRow;
use arrow_schema::SchemaRef;
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::keys::SortOrder;
use super::row::shape::{batch_of, concat, read_rows, take, write_rows};
use super::row::{Extent, FirstRows, RowInput, RowOperator, RowOperatorPlan};
use super::sort::{SortKeys, describe_order, sorted_positions};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "top_k",
    summary: "the first rows of each window, or of the whole input, in the order of a sort",
};

/// Rows collected, as a multiple of those wanted, before they are sorted down.
const SLACK_ROWS: usize = 1_024;

/// What to sort by, and how many rows to hand on.
#[derive(Debug, Clone)]
pub struct TopK {
    /// Expressions, the most significant first.
    pub by: Vec<(Expression, SortOrder)>,
    /// Most rows that come out.
    pub count: usize,
    /// Rows left out before the first.
    pub offset: usize,
    /// Which rows are sorted together.
    pub extent: Extent,
}

impl RowOperatorPlan for TopK {
    fn describe(&self) -> String {
        let (count, offset) = (self.count, self.offset);
        let by = describe_order(&self.by);
        self.extent
            .described(format!("top_k {count} offset {offset} by {by}"))
    }

    fn reorders(&self) -> bool {
        true
    }

    fn first_rows(&self) -> Option<FirstRows<'_>> {
        let (by, order) = self.by.first()?;
        Some(FirstRows {
            by,
            order: *order,
            rows: self.count.saturating_add(self.offset),
        })
    }

    fn takes_windows(&self) -> bool {
        self.extent == Extent::Natural
    }

    fn keeps_windows(&self) -> bool {
        self.extent == Extent::Natural
    }

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        Ok(Box::new(Best {
            schema: SchemaRef::clone(&input.schema),
            keys: SortKeys::bind(&self.by, &input.schema)?,
            wanted: self.count.saturating_add(self.offset),
            offset: self.offset,
            each_window: self.extent.is_each_window(input),
            best: Vec::new(),
            worst: None,
        }))
    }
}

struct Best {
    schema: SchemaRef,
    keys: SortKeys,
    wanted: usize,
    offset: usize,
    each_window: bool,
    /// Candidates in order of arrival, except that the first batch may be sorted.
    best: Vec<RecordBatch>,
    /// The last key that is among the wanted ones, once there are so many.
    worst: Option<OwnedRow>,
}

impl Best {
    /// Adds the rows that may be among the wanted ones.
    fn add(&mut self, rows: RecordBatch) -> Result<()> {
        let keys = self.keys.of(&rows)?;
        let rows = match &self.worst {
            // Of equal rows the first to arrive stays.
            Some(worst) => {
                let better = (0..keys.num_rows()).filter(|row| keys.row(*row) < worst.row());
                let better: Vec<u32> = better.map(|row| row as u32).collect();
                if better.is_empty() {
                    return Ok(());
                }
                take(&rows, better)?
            }
            None => rows,
        };
        self.best.push(rows);
        let held: usize = self.best.iter().map(RecordBatch::num_rows).sum();
        if held > self.wanted.saturating_mul(2).saturating_add(SLACK_ROWS) {
            self.sort_down()?;
        }
        Ok(())
    }

    /// Leaves only the wanted rows, sorted.
    fn sort_down(&mut self) -> Result<()> {
        if self.best.is_empty() {
            return Ok(());
        }
        let all = concat(&std::mem::take(&mut self.best))?;
        let keys = self.keys.of(&all)?;
        let mut order = sorted_positions(&keys);
        order.truncate(self.wanted);
        if order.len() == self.wanted {
            self.worst = order.last().map(|row| keys.row(*row as usize).owned());
        }
        self.best.push(take(&all, order)?);
        Ok(())
    }

    fn emit(&mut self, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.sort_down()?;
        self.worst = None;
        for batch in self.best.drain(..) {
            let skipped = self.offset.min(batch.num_rows());
            if skipped < batch.num_rows() {
                out.push(batch.slice(skipped, batch.num_rows() - skipped));
            }
        }
        Ok(())
    }
}

impl RowOperator for Best {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.add(rows)?;
        if self.each_window {
            self.emit(out)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.emit(out)
    }

    fn is_done(&self) -> bool {
        self.wanted == self.offset
    }

    fn byte_size(&self) -> usize {
        let columns = self.best.iter().flat_map(RecordBatch::columns);
        columns.map(|column| array_bytes(column.as_ref())).sum()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.sort_down()?;
        match self.best.first() {
            Some(batch) => write_rows(batch, out),
            None => write_rows(&RecordBatch::new_empty(SchemaRef::clone(&self.schema)), out),
        }
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let rows = read_rows(&self.schema, from)?;
        let (columns, count) = (rows.columns().to_vec(), rows.num_rows());
        if count > 0 {
            self.best.push(batch_of(&self.schema, columns, count)?);
        }
        self.sort_down()
    }
}
