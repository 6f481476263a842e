//! Expressions over record batches: a bare column as it is, anything else computed.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::registry;
use tersecades_columnar::selection::Selection;

use crate::expression::{BoundExpression, BoundFilter, Expression};
use crate::frame::{Frame, Scope};

/// Expressions bound to the columns of record batches.
pub struct RowExpressions {
    bound: Vec<BoundExpression>,
    plain: BatchEncoder,
    work: Work,
}

impl RowExpressions {
    /// Binds `expressions` to columns of `schema`.
    ///
    /// # Errors
    /// What binding says.
    pub fn bind<'a>(
        expressions: impl IntoIterator<Item = &'a Expression>,
        schema: &Schema,
    ) -> Result<Self> {
        let scope = Scope::of_schema(schema);
        let bound = expressions
            .into_iter()
            .map(|expression| BoundExpression::bind(expression, &scope));
        Ok(RowExpressions {
            bound: bound.collect::<Result<_>>()?,
            plain: plain_encoder(schema)?,
            work: Work::default(),
        })
    }

    /// Types of the values.
    pub fn types(&self) -> impl Iterator<Item = &DataType> {
        self.bound.iter().map(BoundExpression::data_type)
    }

    /// One array for each expression.
    ///
    /// # Errors
    /// What evaluating says.
    pub fn evaluate(&mut self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut frame = None;
        let mut arrays = Vec::with_capacity(self.bound.len());
        for expression in &mut self.bound {
            if let Some(slot) = expression.column_slot() {
                arrays.push(Arc::clone(rows.column(slot)));
                continue;
            }
            let frame = match &mut frame {
                Some(frame) => frame,
                none => none.insert(Frame::new(Arc::new(self.plain.encode_new(rows)?))),
            };
            let mut column = Chunk::default();
            expression.evaluate(frame, &mut column, &mut self.work)?;
            arrays.push(column.to_arrow(&Selection::all(rows.num_rows()), &mut self.work)?);
        }
        Ok(arrays)
    }
}

/// A condition bound to the columns of record batches.
pub struct RowCondition {
    filter: BoundFilter,
    plain: BatchEncoder,
    work: Work,
}

impl RowCondition {
    /// Binds `condition` to columns of `schema`.
    ///
    /// # Errors
    /// What binding says.
    pub fn bind(condition: &Expression, schema: &Schema) -> Result<Self> {
        Ok(RowCondition {
            filter: BoundFilter::bind(condition, &Scope::of_schema(schema))?,
            plain: plain_encoder(schema)?,
            work: Work::default(),
        })
    }

    /// Positions of the rows where the condition is true, ascending.
    ///
    /// # Errors
    /// What evaluating says.
    pub fn rows(&mut self, rows: &RecordBatch) -> Result<Vec<u32>> {
        let mut frame = Frame::new(Arc::new(self.plain.encode_new(rows)?));
        self.filter.apply(&mut frame, &mut self.work)?;
        let mut passed = Vec::with_capacity(frame.selection.count());
        frame.selection.for_each(|row| passed.push(row as u32));
        Ok(passed)
    }
}

fn plain_encoder(schema: &Schema) -> Result<BatchEncoder> {
    let mut plain = BatchEncoder::new(schema)?;
    let columns = plain.columns_mut().iter_mut();
    columns.for_each(|column| column.pin(registry::fallback()));
    Ok(plain)
}
