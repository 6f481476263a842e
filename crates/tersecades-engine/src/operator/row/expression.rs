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

/// The columns of record batches that something computes with, encoded as they are.
struct ReadColumns {
    positions: Vec<usize>,
    scope: Scope,
    plain: BatchEncoder,
}

impl ReadColumns {
    /// The columns of `schema` that `expressions` name.
    fn of<'a>(
        expressions: impl IntoIterator<Item = &'a Expression>,
        schema: &Schema,
    ) -> Result<Self> {
        let names: Vec<&str> = expressions
            .into_iter()
            .flat_map(Expression::columns)
            .collect();
        let scope = Scope::of_schema(schema);
        names
            .iter()
            .try_for_each(|name| scope.find(name).map(|_| ()))?;
        let fields = schema.fields().iter().enumerate();
        let read = fields.filter(|(_, field)| names.contains(&field.name().as_str()));
        let mut positions: Vec<usize> = read.map(|(position, _)| position).collect();
        if positions.is_empty() {
            // Constants are of as many rows as a column has.
            positions.extend((0..schema.fields().len()).take(1));
        }
        let schema = schema.project(&positions)?;
        let mut plain = BatchEncoder::new(&schema)?;
        let columns = plain.columns_mut().iter_mut();
        columns.for_each(|column| column.pin(registry::fallback()));
        Ok(ReadColumns {
            positions,
            scope: Scope::of_schema(&schema),
            plain,
        })
    }

    fn frame(&mut self, rows: &RecordBatch) -> Result<Frame> {
        let read = rows.project(&self.positions)?;
        Ok(Frame::new(Arc::new(self.plain.encode_new(&read)?)))
    }
}

/// Expressions bound to the columns of record batches.
pub struct RowExpressions {
    values: Vec<Value>,
    read: ReadColumns,
    work: Work,
}

enum Value {
    /// The column at this position.
    Column(usize, DataType),
    Computed(Box<BoundExpression>),
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
        let expressions: Vec<&Expression> = expressions.into_iter().collect();
        let computed = expressions.iter().filter(|it| it.as_column().is_none());
        let read = ReadColumns::of(computed.copied(), schema)?;
        let scope = Scope::of_schema(schema);
        let values = expressions.into_iter().map(|expression| {
            Ok(match expression.as_column() {
                Some(name) => {
                    let (data_type, position) = scope.find(name)?;
                    Value::Column(position, data_type.clone())
                }
                None => {
                    let bound = BoundExpression::bind(expression, &read.scope)?;
                    Value::Computed(Box::new(bound))
                }
            })
        });
        Ok(RowExpressions {
            values: values.collect::<Result<_>>()?,
            read,
            work: Work::default(),
        })
    }

    /// Types of the values.
    pub fn types(&self) -> impl Iterator<Item = &DataType> {
        self.values.iter().map(|value| match value {
            Value::Column(_, data_type) => data_type,
            Value::Computed(expression) => expression.data_type(),
        })
    }

    /// One array for each expression.
    ///
    /// # Errors
    /// What evaluating says.
    pub fn evaluate(&mut self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut frame = None;
        let mut arrays = Vec::with_capacity(self.values.len());
        for value in &mut self.values {
            let expression = match value {
                Value::Column(position, _) => {
                    arrays.push(Arc::clone(rows.column(*position)));
                    continue;
                }
                Value::Computed(expression) => expression,
            };
            let frame = match &mut frame {
                Some(frame) => frame,
                none => none.insert(self.read.frame(rows)?),
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
    read: ReadColumns,
    work: Work,
}

impl RowCondition {
    /// Binds `condition` to columns of `schema`.
    ///
    /// # Errors
    /// What binding says.
    pub fn bind(condition: &Expression, schema: &Schema) -> Result<Self> {
        let read = ReadColumns::of([condition], schema)?;
        Ok(RowCondition {
            filter: BoundFilter::bind(condition, &read.scope)?,
            read,
            work: Work::default(),
        })
    }

    /// Positions of the rows where the condition is true, ascending.
    ///
    /// # Errors
    /// What evaluating says.
    pub fn rows(&mut self, rows: &RecordBatch) -> Result<Vec<u32>> {
        let mut frame = self.read.frame(rows)?;
        self.filter.apply(&mut frame, &mut self.work)?;
        let mut passed = Vec::with_capacity(frame.selection.count());
        frame.selection.for_each(|row| passed.push(row as u32));
        Ok(passed)
    }
}
