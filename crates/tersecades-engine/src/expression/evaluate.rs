//! Computed columns: an expression over the rows still wanted becomes a column of the frame.

use arrow_array::{ArrayRef, UInt32Array, new_empty_array, new_null_array};
use arrow_schema::DataType;
use arrow_select::take::take;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::input::Lanes;
use tersecades_columnar::registry;
use tersecades_columnar::selection::{Selection, Shape};

use super::ast::Expression;
use super::bind::{bind, bind_truth};
use super::compute::Computation;
use super::direct::{Between, Direct};
use super::encoded::{Encoded, Pool, is_encodable, lower};
use super::node::{Bound, Node};
use crate::frame::{Frame, Scope, Slot};

/// An expression bound to the columns of a stream.
///
/// Binding is cheap: each worker binds its own.
pub struct BoundExpression {
    text: String,
    data_type: DataType,
    computation: Computation,
    direct: Option<Direct>,
    /// The rows where a condition of which unknown is as good as false is true.
    condition: Option<Encoded>,
    /// The condition of the rows that count, if not all selected ones do.
    within: Option<Encoded>,
    encoder: ColumnEncoder,
    encode: EncodeWork,
    scratch: Scratch,
}

/// Memory of the ways that run encoded.
#[derive(Default)]
struct Scratch {
    between: Between,
    found: Selection,
    pool: Pool,
    truths: Vec<u8>,
}

impl BoundExpression {
    /// Binds `expression` to the columns of `scope`.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns, `SchemaMismatch` and `Unsupported` when operators
    /// do not fit their operands.
    pub fn bind(expression: &Expression, scope: &Scope) -> Result<Self> {
        match expression {
            Expression::And(..) | Expression::Or(..) | Expression::Not(_) => {
                Self::bind_condition(expression, scope)
            }
            other => Self::of(expression, bind(other, scope)?),
        }
    }

    /// Binds a condition: true, false or unknown in each row.
    ///
    /// # Errors
    /// As [`BoundExpression::bind`]; `SchemaMismatch` when the expression is no condition.
    pub fn bind_condition(expression: &Expression, scope: &Scope) -> Result<Self> {
        let node = bind_truth(expression, scope)?;
        let data_type = DataType::Boolean;
        Self::of(expression, Bound { node, data_type })
    }

    fn of(expression: &Expression, Bound { node, data_type }: Bound) -> Result<Self> {
        let mut encoder = ColumnEncoder::new(&data_type)?;
        encoder.pin(registry::fallback());
        Ok(BoundExpression {
            text: expression.to_string(),
            data_type,
            direct: Direct::of(&node),
            condition: None,
            within: None,
            computation: Computation::new(node),
            encoder,
            encode: EncodeWork::default(),
            scratch: Scratch::default(),
        })
    }

    /// Binds a condition of which only the rows where it is true matter: it may be false where it
    /// is unknown, and runs encoded where a filter would.
    ///
    /// # Errors
    /// As [`BoundExpression::bind_condition`].
    pub fn bind_filter(expression: &Expression, scope: &Scope) -> Result<Self> {
        let mut bound = Self::bind_condition(expression, scope)?;
        let node = bind_truth(expression, scope)?;
        if bound.column_slot().is_none() && is_encodable(&node) {
            bound.condition = lower(node, false);
        }
        Ok(bound)
    }

    /// Whether computing it fails for some values of its columns.
    pub fn may_fail(&self) -> bool {
        self.computation.node().may_fail()
    }

    /// Computes it only of the rows where the condition in `slot` is true.
    pub fn within(mut self, slot: Slot) -> Self {
        self.within = lower(Node::Column(slot), false);
        self
    }

    /// Type of the values.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The column, when the expression is nothing but one: there is nothing to compute.
    pub fn column_slot(&self) -> Option<Slot> {
        match self.computation.node() {
            Node::Column(slot) => Some(*slot),
            _ => None,
        }
    }

    /// Computes the expression for the selected rows of `frame`.
    ///
    /// `out` is as long as the batch; rows that are not selected, or do not count, hold anything.
    ///
    /// # Errors
    /// `LimitExceeded` when arithmetic overflows, `InvalidArgument` when a cast does not fit.
    ///
    /// # Cost
    /// Decodes the selected rows of every column the expression reads, unless all rows are selected
    /// and the waist computes on the encoded columns.
    pub fn evaluate(&mut self, frame: &Frame, out: &mut Chunk, work: &mut Work) -> Result<()> {
        if let Some(slot) = self.column_slot() {
            out.clone_from(frame.column(slot));
            return Ok(());
        }
        if let Some(condition) = &self.condition {
            let Scratch {
                found,
                pool,
                truths,
                ..
            } = &mut self.scratch;
            condition.select(frame, &frame.selection, (found, pool), work);
            found.settle();
            truths.clear();
            truths.resize(frame.batch.rows(), 0);
            found.for_each(|row| truths[row] = 1);
            return self.encoder.encode_values(Lanes::U8(truths), out);
        }
        if let Some(direct) = &self.direct {
            let scratch = (&mut *work, &mut self.encode, &mut self.scratch.between);
            if direct.run(frame, out, scratch) {
                return Ok(());
            }
        }
        let wanted = match &self.within {
            Some(condition) => {
                let Scratch { found, pool, .. } = &mut self.scratch;
                condition.select(frame, &frame.selection, (found, pool), work);
                found.settle();
                &self.scratch.found
            }
            None => &frame.selection,
        };
        let values = match wanted.is_empty() {
            true => new_empty_array(&self.data_type),
            false => self.computation.run(frame, wanted, work)?,
        };
        let column = scatter(values, wanted, &self.data_type)?;
        if column.len() != frame.batch.rows() {
            return Err(Error::internal(format!(
                "`{}` computed a wrong number of rows",
                self.text
            )));
        }
        self.encoder.encode(&column, out)
    }

    /// The expression and the way it runs.
    pub fn describe(&self) -> String {
        let way = match (self.column_slot(), &self.direct) {
            (Some(_), _) => "encoded",
            _ if self.condition.is_some() => "encoded",
            (None, Some(_)) => "encoded where all rows are wanted",
            (None, None) => "decoded",
        };
        format!("{} [{way}]", self.text)
    }
}

/// One value for each row of the chunk from one for each selected row.
///
/// Rows in between repeat the first value, so that the column's smallest and largest value stay
/// those of rows that count.
fn scatter(values: ArrayRef, within: &Selection, data_type: &DataType) -> Result<ArrayRef> {
    if within.shape() == Shape::All {
        return Ok(values);
    }
    if values.is_empty() {
        return Ok(new_null_array(data_type, within.rows()));
    }
    let mut indices = vec![0u32; within.rows()];
    let mut next = 0;
    within.for_each(|row| {
        if let Some(index) = indices.get_mut(row) {
            *index = next;
        }
        next += 1;
    });
    Ok(take(values.as_ref(), &UInt32Array::from(indices), None)?)
}
