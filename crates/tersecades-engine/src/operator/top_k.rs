//! `top_k`: the first rows of a sort, without keeping the others.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_row::{OwnedRow, Rows};
use arrow_schema::SchemaRef;
use arrow_select::take::take as take_array;
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::bound::{Bound, Reached};
use super::row::keys::SortOrder;
use super::row::order::Order;
use super::row::shape::{batch_of, concat, read_rows, take, with_few_texts, write_rows};
use super::row::{Extent, RowInput, RowOperator, RowOperatorPlan};
use super::sort::{SortKeys, describe_order};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "top_k",
    summary: "the first rows of each window, or of the whole input, in the order of a sort",
};

/// Rows collected, as a multiple of those wanted, before they are sorted down.
const SLACK_ROWS: usize = 1_024;

/// One row of so many is looked at before the others, where few are wanted.
const SAMPLE_STEP: usize = 64;

/// Most rows that are looked at in one go.
const SLICE_ROWS: usize = 65_536;

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

    fn first_rows(&self) -> Option<(Vec<(&str, SortOrder)>, usize)> {
        // What computes may fail, and is to fail for all rows or none.
        let by = self.by.iter();
        let columns = by.map(|(by, order)| Some((by.as_column()?, *order)));
        let rows = self.count.saturating_add(self.offset);
        Some((columns.collect::<Option<_>>()?, rows))
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
            first: self.by.first().map(|(_, order)| *order),
            alone: self.by.len() == 1,
            wanted: self.count.saturating_add(self.offset),
            offset: self.offset,
            each_window: self.extent.is_each_window(input),
            best: Vec::new(),
            worst: None,
            reached: None,
        }))
    }
}

/// The last of the wanted rows.
struct Worst {
    key: OwnedRow,
    /// What the first column says of it.
    first: Option<Arc<Bound>>,
}

/// Some rows, and the columns of their keys.
struct Part {
    rows: RecordBatch,
    columns: Vec<ArrayRef>,
}

/// The values of `columns` at `positions`.
fn taken(columns: &[ArrayRef], positions: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let taken = columns
        .iter()
        .map(|column| take_array(column, positions, None));
    Ok(taken.collect::<std::result::Result<_, _>>()?)
}

impl Part {
    /// The rows whose first column may put them before `bound`.
    fn before(self, bound: &Bound) -> Result<Part> {
        let before = match self.columns.first() {
            Some(column) => bound.before(column)?,
            None => None,
        };
        let before = before.filter(|rows| rows.count_set_bits() < rows.len());
        let Some(before) = before else {
            return Ok(self);
        };
        let positions: Vec<u32> = before.set_indices_u32().collect();
        let columns = taken(&self.columns, &UInt32Array::from(positions.clone()))?;
        let rows = take(&self.rows, positions)?;
        Ok(Part { rows, columns })
    }
}

struct Best {
    schema: SchemaRef,
    keys: SortKeys,
    /// The order of the first column of the keys.
    first: Option<SortOrder>,
    /// Whether it is the only one.
    alone: bool,
    wanted: usize,
    offset: usize,
    each_window: bool,
    /// Candidates; equal ones in order of arrival.
    best: Vec<RecordBatch>,
    /// So many of the candidates come no later than this one that no row behind it is wanted.
    worst: Option<Worst>,
    /// Who wants to know of the worst one.
    reached: Option<Reached>,
}

impl Best {
    /// Adds the rows that may be among the wanted ones.
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        for first in (0..rows.num_rows()).step_by(SLICE_ROWS) {
            let count = SLICE_ROWS.min(rows.num_rows() - first);
            self.add_slice(rows.slice(first, count))?;
        }
        Ok(())
    }

    fn add_slice(&mut self, rows: RecordBatch) -> Result<()> {
        if self.worst.is_none() && rows.num_rows() <= self.wanted {
            return self.hold(rows);
        }
        let columns = self.keys.columns(&rows)?;
        let Part { rows, columns } = self.likely(rows, columns)?;
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let keys = self.keys.of(&columns)?;
        let better = self.better(&keys, rows.num_rows())?;
        if better.is_empty() {
            return Ok(());
        }
        if better.len() == self.wanted {
            self.set_worst(&columns, &keys, &better)?;
        }
        self.hold(take(&rows, better)?)
    }

    /// The rows whose first column does not put them behind the wanted ones.
    fn likely(&self, rows: RecordBatch, columns: Vec<ArrayRef>) -> Result<Part> {
        let bound = self.worst.as_ref().and_then(|worst| worst.first.as_deref());
        let part = Part { rows, columns };
        let part = match bound {
            Some(bound) => part.before(bound)?,
            None => part,
        };
        match self.bound_of_some(&part)? {
            Some(bound) => part.before(&bound),
            None => Ok(part),
        }
    }

    /// A bound that a few rows of many give; rows that equal it may be wanted.
    fn bound_of_some(&self, part: &Part) -> Result<Option<Bound>> {
        let rows = part.rows.num_rows();
        let (Some(order), Some(last)) = (self.first, self.wanted.checked_sub(1)) else {
            return Ok(None);
        };
        if rows / SAMPLE_STEP / 2 <= self.wanted {
            return Ok(None);
        }
        let some = (SAMPLE_STEP - 1..rows).step_by(SAMPLE_STEP);
        let columns = taken(&part.columns, &some.map(|row| row as u32).collect())?;
        let keys = self.keys.of(&columns)?;
        let least = Order::new([&keys]).least(keys.num_rows(), self.wanted)?;
        match (least.get(last), columns.first()) {
            (Some(row), Some(column)) => Bound::new(column, *row as usize, order, false),
            _ => Ok(None),
        }
    }

    /// Positions of the rows that come before the worst; where there are more than wanted, the
    /// first of them in their order.
    fn better(&self, keys: &Rows, rows: usize) -> Result<Vec<u32>> {
        let before = |row: &u32| match &self.worst {
            // Of equal rows the first to arrive stays.
            Some(worst) => keys.row(*row as usize) < worst.key.row(),
            None => true,
        };
        if rows < self.wanted {
            return Ok((0..rows as u32).filter(before).collect());
        }
        let mut least = Order::new([keys]).least(rows, self.wanted)?;
        least.truncate(least.partition_point(before));
        Ok(least)
    }

    /// Remembers the last of so many rows as are wanted.
    fn set_worst(&mut self, columns: &[ArrayRef], keys: &Rows, sorted: &[u32]) -> Result<()> {
        let last = sorted.last().map(|row| *row as usize);
        let (Some(row), Some(column), Some(order)) = (last, columns.first(), self.first) else {
            return Ok(());
        };
        let first = Bound::new(column, row, order, self.alone)?.map(Arc::new);
        if let (Some(reached), Some(first)) = (&self.reached, &first) {
            reached.set(Arc::clone(first));
        }
        let key = keys.row(row).owned();
        self.worst = Some(Worst { key, first });
        Ok(())
    }

    /// Keeps candidates.
    fn hold(&mut self, rows: RecordBatch) -> Result<()> {
        self.best.push(with_few_texts(rows)?);
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
        let columns = self.keys.columns(&all)?;
        let keys = self.keys.of(&columns)?;
        let order = Order::new([&keys]).least(all.num_rows(), self.wanted)?;
        if order.len() == self.wanted {
            self.set_worst(&columns, &keys, &order)?;
        }
        self.best.push(with_few_texts(take(&all, order)?)?);
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

    fn tell(&mut self, reached: &Reached) {
        // The first rows of one window say nothing of the next.
        self.reached = (!self.each_window).then(|| reached.clone());
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        self.add(&rows)?;
        if self.each_window {
            self.emit(out)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<bool> {
        self.emit(out).map(|()| false)
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
