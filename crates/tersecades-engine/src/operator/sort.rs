//! `sort`: puts rows in the order of some expressions.
//!
//! The results of one window are sorted by themselves; a whole stream is kept, encoded, until it
//! ends. Rows that are equal in all of them stay in the order they came in.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::Rows;
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::runtime::Interrupt;
use crate::runtime::on_thread::{on_threads, together};
use crate::runtime::state::{StateReader, StateWriter};

use super::OperatorKind;
use super::row::expression::RowExpressions;
use super::row::kept::KeptRows;
use super::row::keys::{RowKeys, SortOrder};
use super::row::order::Order;
use super::row::shape::{give, take};
use super::row::{Extent, RowInput, RowOperator, RowOperatorPlan, threads_for};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "sort",
    summary: "orders the rows of each window, or of the whole input",
};

/// What to sort by.
#[derive(Debug, Clone)]
pub struct Sort {
    /// Expressions, the most significant first.
    pub by: Vec<(Expression, SortOrder)>,
    /// Which rows are sorted together.
    pub extent: Extent,
}

/// `a asc, b desc` for explain.
pub(super) fn describe_order(by: &[(Expression, SortOrder)]) -> String {
    let parts = by
        .iter()
        .map(|(expression, order)| format!("{expression} {order}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// Computes sort keys of record batches.
pub(super) struct SortKeys {
    expressions: RowExpressions,
    keys: RowKeys,
}

impl SortKeys {
    /// Binds the expressions.
    ///
    /// # Errors
    /// What binding says.
    pub(super) fn bind(by: &[(Expression, SortOrder)], schema: &SchemaRef) -> Result<Self> {
        let expressions = by.iter().map(|(expression, _)| expression);
        let expressions = RowExpressions::bind(expressions, schema)?;
        let orders = by.iter().map(|(_, order)| *order);
        let keys = RowKeys::new(expressions.types().cloned().zip(orders))?;
        Ok(SortKeys { expressions, keys })
    }

    /// Types of the columns that keys are made of.
    pub(super) fn types(&self) -> impl Iterator<Item = &DataType> {
        self.expressions.types()
    }

    /// No keys, to be appended to.
    pub(super) fn empty(&self) -> Rows {
        self.keys.empty()
    }

    /// Appends the keys of `rows`.
    ///
    /// # Errors
    /// What evaluating says.
    pub(super) fn append(&mut self, rows: &RecordBatch, keys: &mut Rows) -> Result<()> {
        let columns = self.columns(rows)?;
        self.append_columns(&columns, keys)
    }

    fn append_columns(&self, columns: &[ArrayRef], keys: &mut Rows) -> Result<()> {
        match columns.is_empty() {
            true => Ok(()),
            false => self.keys.append(columns, keys),
        }
    }

    /// What keys of `rows` are made of, column by column.
    ///
    /// # Errors
    /// What evaluating says.
    pub(super) fn columns(&mut self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.expressions.evaluate(rows)
    }

    /// The keys made of `columns`; none where there are no columns.
    ///
    /// # Errors
    /// `SchemaMismatch` when they are of other types.
    pub(super) fn of(&self, columns: &[ArrayRef]) -> Result<Rows> {
        let mut keys = self.empty();
        self.append_columns(columns, &mut keys)?;
        Ok(keys)
    }
}

impl RowOperatorPlan for Sort {
    fn describe(&self) -> String {
        let by = describe_order(&self.by);
        self.extent.described(format!("sort by {by}"))
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

    fn bind(&self, input: &RowInput) -> Result<Box<dyn RowOperator>> {
        let keys = SortKeys::bind(&self.by, &input.schema)?;
        let schema = SchemaRef::clone(&input.schema);
        if self.extent.is_each_window(input) {
            return Ok(Box::new(SortWindows { schema, keys }));
        }
        Ok(Box::new(SortAll {
            rows: KeptRows::new(&schema)?,
            found: keys.empty(),
            sorted: None,
            threads: 1,
            interrupt: Interrupt::default(),
            schema,
            keys,
        }))
    }
}

struct SortWindows {
    schema: SchemaRef,
    keys: SortKeys,
}

impl RowOperator for SortWindows {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn push(&mut self, rows: RecordBatch, out: &mut Vec<RecordBatch>) -> Result<()> {
        let columns = self.keys.columns(&rows)?;
        let order = Order::new([&self.keys.of(&columns)?]).sorted(rows.num_rows())?;
        out.push(take(&rows, order)?);
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

struct SortAll {
    schema: SchemaRef,
    keys: SortKeys,
    rows: KeptRows,
    found: Rows,
    /// At the end of the stream, the rows that have not come out, in order.
    sorted: Option<std::vec::IntoIter<u32>>,
    /// So many sort, and give, at once.
    threads: usize,
    interrupt: Interrupt,
}

impl SortAll {
    fn keep(&mut self, rows: RecordBatch) -> Result<()> {
        let threads = threads_for(rows.num_rows(), self.threads);
        let kept = rows.clone();
        let (keys, found) = (&mut self.keys, &mut self.found);
        let keep = || self.rows.push(kept).map(|_| ());
        let place = || keys.append(&rows, found);
        together(threads, [Box::new(place), Box::new(keep)])
    }

    /// The rows at these positions.
    fn given(&self, positions: &[u32]) -> Result<Vec<RecordBatch>> {
        let rows: Vec<u64> = positions.iter().map(|row| u64::from(*row)).collect();
        let columns = self.rows.pick_unless(&rows, &self.interrupt)?;
        let mut out = Vec::new();
        give(&self.schema, &columns, rows.len(), &mut out)?;
        Ok(out)
    }
}

impl RowOperator for SortAll {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn interrupt_with(&mut self, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
    }

    fn work_on(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn push(&mut self, rows: RecordBatch, _out: &mut Vec<RecordBatch>) -> Result<()> {
        self.keep(rows)
    }

    fn finish(&mut self, out: &mut Vec<RecordBatch>) -> Result<bool> {
        let mut sorted = match self.sorted.take() {
            Some(sorted) => sorted,
            None => {
                let found = std::mem::replace(&mut self.found, self.keys.empty());
                let order = Order::new([&found]).unless(&self.interrupt);
                let rows = self.rows.next() as usize;
                order.sorted_on(self.threads, rows)?.into_iter()
            }
        };
        let portions = sorted
            .as_slice()
            .chunks(self.rows.given_rows())
            .take(self.threads.max(1));
        let portions: Vec<&[u32]> = portions.collect();
        let rows: usize = portions.iter().map(|portion| portion.len()).sum();
        let given = on_threads(self.threads, portions, |portion| self.given(portion))?;
        out.extend(given.into_iter().flatten());
        sorted.by_ref().take(rows).for_each(drop);
        match sorted.len() {
            0 => self.rows = KeptRows::new(&self.schema)?,
            _ => self.sorted = Some(sorted),
        }
        Ok(self.sorted.is_some())
    }

    fn byte_size(&self) -> usize {
        let sorted = self.sorted.as_ref().map_or(0, |sorted| sorted.len());
        self.rows.byte_size() + self.found.size() + sorted * size_of::<u32>()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.rows.snapshot(out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let batches = self.rows.read(from)?;
        batches.into_iter().try_for_each(|batch| self.keep(batch))
    }
}
