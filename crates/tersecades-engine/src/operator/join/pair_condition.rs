//! A condition on the pairs of a join of equal keys, evaluated on many pairs at once.
//!
//! Of keys that many rows share there are far more pairs than rows: what it reads of the right
//! input is decoded once.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take as take_array;
use tersecades_columnar::arrow::array_bytes;
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::operator::row::expression::RowCondition;
use crate::operator::row::kept::KeptRows;
use crate::operator::row::shape::batch_of;
use crate::runtime::Interrupt;

use super::side::JoinColumns;

/// A condition bound to the columns of both inputs.
pub(super) struct PairCondition {
    condition: RowCondition,
    /// The columns of both inputs that it reads.
    schema: SchemaRef,
    /// Where they are in the left input, and in the right one.
    positions: (Vec<usize>, Vec<usize>),
    /// Those of all rows of the right input, once they are looked at.
    rights: Option<Vec<ArrayRef>>,
}

impl PairCondition {
    /// Binds `condition`.
    ///
    /// # Errors
    /// What binding says.
    pub(super) fn bind(condition: &Expression, columns: &JoinColumns) -> Result<Self> {
        let names = condition.columns();
        let fields = columns.both.fields().iter().enumerate();
        let read = fields.filter(|(_, field)| names.contains(&field.name().as_str()));
        let read: Vec<usize> = read.map(|(position, _)| position).collect();
        let schema = SchemaRef::new(columns.both.project(&read)?);
        let (lefts, rights): (Vec<usize>, Vec<usize>) = read
            .into_iter()
            .partition(|position| *position < columns.left);
        Ok(PairCondition {
            // What it lacks is said of all columns.
            condition: RowCondition::bind(condition, &columns.both)
                .and_then(|_| RowCondition::bind(condition, &schema))?,
            schema,
            positions: (lefts, rights.iter().map(|at| at - columns.left).collect()),
            rights: None,
        })
    }

    /// The `pairs` of rows of `lefts` and `rights` for which it is true.
    ///
    /// # Errors
    /// What decoding and evaluating say.
    ///
    /// # Cost
    /// Decodes what it reads of the right input once, all rows of it.
    pub(super) fn passing(
        &mut self,
        lefts: &RecordBatch,
        rights: &mut KeptRows,
        pairs: Vec<(u32, u32)>,
    ) -> Result<Vec<(u32, u32)>> {
        let known = match self.rights.take() {
            Some(known) => known,
            None => {
                let all: Vec<u64> = (0..rights.next()).collect();
                rights.pick_columns(&self.positions.1, &all, &Interrupt::default())?
            }
        };
        let left: UInt32Array = pairs
            .iter()
            .map(|(left, _)| *left)
            .collect::<Vec<_>>()
            .into();
        let right: UInt32Array = pairs
            .iter()
            .map(|(_, right)| *right)
            .collect::<Vec<_>>()
            .into();
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for position in &self.positions.0 {
            columns.push(take_array(lefts.column(*position), &left, None)?);
        }
        for column in &known {
            columns.push(take_array(column, &right, None)?);
        }
        self.rights = Some(known);
        let rows = batch_of(&self.schema, columns, pairs.len())?;
        let passed = self.condition.rows(&rows)?;
        Ok(passed.iter().map(|index| pairs[*index as usize]).collect())
    }

    /// Bytes of what is decoded.
    pub(super) fn byte_size(&self) -> usize {
        let rights = self.rights.iter().flatten();
        rights.map(|column| array_bytes(column.as_ref())).sum()
    }
}
