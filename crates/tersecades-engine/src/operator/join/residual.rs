//! A condition on the pairs of a join by time, evaluated on many pairs at once.

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::expression::Expression;
use crate::operator::row::expression::RowCondition;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of};

use super::side::JoinColumns;

/// What must be true of a pair besides equal keys and times, if anything.
pub struct Residual {
    condition: Option<RowCondition>,
    both: SchemaRef,
}

impl Residual {
    /// Binds `condition` to the columns of both inputs.
    ///
    /// # Errors
    /// What binding says.
    pub fn bind(condition: Option<&Expression>, columns: &JoinColumns) -> Result<Self> {
        let bind = |condition| RowCondition::bind(condition, &columns.both);
        Ok(Residual {
            condition: condition.map(bind).transpose()?,
            both: SchemaRef::clone(&columns.both),
        })
    }

    /// Of which `pairs`, whose columns of both inputs `columns` gives, the condition is true;
    /// `None` when there is none.
    ///
    /// # Errors
    /// What decoding and evaluating say.
    ///
    /// # Cost
    /// Decodes both rows of every pair.
    pub fn passing(
        &mut self,
        pairs: &[(u64, u64)],
        mut columns: impl FnMut(&[(u64, u64)]) -> Result<Vec<ArrayRef>>,
    ) -> Result<Option<Vec<bool>>> {
        let Some(condition) = &mut self.condition else {
            return Ok(None);
        };
        let mut passing = vec![false; pairs.len()];
        for (part, passing) in pairs
            .chunks(OUTPUT_ROWS)
            .zip(passing.chunks_mut(OUTPUT_ROWS))
        {
            let rows = batch_of(&self.both, columns(part)?, part.len())?;
            for row in condition.rows(&rows)? {
                passing[row as usize] = true;
            }
        }
        Ok(Some(passing))
    }

    /// Whether there is a condition.
    pub fn is_some(&self) -> bool {
        self.condition.is_some()
    }
}
