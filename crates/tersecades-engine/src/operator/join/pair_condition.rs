//! A condition on the pairs of a join of equal keys, evaluated on many pairs at once.
//!
//! Of keys that many rows share there are far more pairs than rows: what it reads of the right
//! input is decoded once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    condition: Expression,
    /// The columns of both inputs that it reads.
    schema: SchemaRef,
    /// Where they are in the left input, and in the right one.
    positions: (Vec<usize>, Vec<usize>),
    lent: Mutex<Lent>,
}

/// What threads evaluate with.
#[derive(Default)]
struct Lent {
    /// The condition as it is bound, as often as threads evaluated it at once, where none does now.
    bound: Vec<RowCondition>,
    /// The columns it reads of all rows of the right input, once they are looked at.
    rights: Option<Arc<[ArrayRef]>>,
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
        // What it lacks is said of all columns.
        let bound = RowCondition::bind(condition, &columns.both)
            .and_then(|_| RowCondition::bind(condition, &schema))?;
        Ok(PairCondition {
            condition: condition.clone(),
            lent: Mutex::new(Lent {
                bound: vec![bound],
                rights: None,
            }),
            schema,
            positions: (lefts, rights.iter().map(|at| at - columns.left).collect()),
        })
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `pairs` of rows of `lefts` and `rights` for which it is true.
    ///
    /// # Errors
    /// What decoding and evaluating say.
    ///
    /// # Cost
    /// Decodes what it reads of the right input once, all rows of it.
    pub(super) fn passing(
        &self,
        lefts: &RecordBatch,
        rights: &KeptRows,
        pairs: Vec<(u32, u32)>,
    ) -> Result<Vec<(u32, u32)>> {
        let (bound, known) = self.borrow(rights)?;
        let mut bound = match bound {
            Some(bound) => bound,
            None => RowCondition::bind(&self.condition, &self.schema)?,
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
        for column in known.iter() {
            columns.push(take_array(column, &right, None)?);
        }
        let rows = batch_of(&self.schema, columns, pairs.len())?;
        let passed = bound.rows(&rows)?;
        self.lent().bound.push(bound);
        Ok(passed.iter().map(|index| pairs[*index as usize]).collect())
    }

    /// The bound condition, if one is at hand, and what it reads of `rights`.
    fn borrow(&self, rights: &KeptRows) -> Result<(Option<RowCondition>, Arc<[ArrayRef]>)> {
        let mut lent = self.lent();
        let known = match &lent.rights {
            Some(known) => Arc::clone(known),
            None => {
                let all: Vec<u64> = (0..rights.next()).collect();
                let picked = rights.pick_columns(&self.positions.1, &all, &Interrupt::default())?;
                Arc::clone(lent.rights.insert(picked.into()))
            }
        };
        Ok((lent.bound.pop(), known))
    }

    /// Bytes of what is decoded.
    pub(super) fn byte_size(&self) -> usize {
        let lent = self.lent();
        let rights = lent.rights.iter().flat_map(|rights| rights.iter());
        rights.map(|column| array_bytes(column.as_ref())).sum()
    }
}
