//! Rows that filters let through: what all others hold elsewhere, no query can tell.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::registry;
use tersecades_columnar::selection::Selection;

use crate::expression::{BoundFilter, Expression};
use crate::frame::{Frame, Scope};

/// The terms that rows have passed, all of which test columns of the stream; every row has passed
/// none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Passed(Vec<Expression>);

impl Passed {
    /// Adds a term.
    pub(super) fn push(&mut self, term: &Expression) {
        if !self.0.contains(term) {
            self.0.push(term.clone());
        }
    }

    /// Whether all rows are meant.
    pub fn is_every_row(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the rows of `other` are surely among these.
    pub(super) fn holds(&self, other: &Passed) -> bool {
        self.0.iter().all(|term| other.0.contains(term))
    }

    fn condition(&self) -> Option<Expression> {
        let terms = self.0.iter().cloned();
        terms.reduce(|all, term| Expression::And(Box::new(all), Box::new(term)))
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.condition() {
            Some(condition) => write!(to, "{condition}"),
            None => to.write_str("true"),
        }
    }
}

/// Finds the rows that pass, in batches as they arrive.
pub(super) struct Passing {
    /// Where a batch has the columns that the terms read.
    positions: Vec<usize>,
    encoder: BatchEncoder,
    /// The columns of the batch at hand.
    batch: Arc<Batch>,
    filters: Vec<BoundFilter>,
    work: Work,
}

impl Passing {
    /// For batches of `schema`.
    ///
    /// # Errors
    /// What binding says.
    pub(super) fn new(schema: &Schema, conditions: &[Passed]) -> Result<Self> {
        let conditions: Vec<Expression> = conditions.iter().filter_map(Passed::condition).collect();
        let fields = schema.fields().iter();
        let read = |name: &str| conditions.iter().any(|it| it.columns().contains(&name));
        let positions: Vec<usize> = (0..schema.fields().len())
            .filter(|index| read(schema.field(*index).name()))
            .collect();
        let wanted = fields.filter(|field| read(field.name())).cloned();
        let mut encoder = BatchEncoder::new(&Schema::new(wanted.collect::<Vec<_>>()))?;
        let columns = encoder.columns_mut().iter_mut();
        columns.for_each(|column| column.pin(registry::fallback()));
        let scope = Scope::of_schema(encoder.schema());
        let filters = conditions.iter().map(|it| BoundFilter::bind(it, &scope));
        let filters: Result<Vec<BoundFilter>> = filters.collect();
        Ok(Passing {
            positions,
            batch: Arc::new(Batch::empty(Arc::clone(encoder.schema()))),
            filters: filters?,
            encoder,
            work: Work::default(),
        })
    }

    /// The rows of `rows` that pass each condition.
    ///
    /// # Errors
    /// What encoding and filtering say.
    pub(super) fn find(&mut self, rows: &RecordBatch) -> Result<Vec<Selection>> {
        let mut found = Vec::with_capacity(self.filters.len());
        if self.filters.is_empty() {
            return Ok(found);
        }
        if rows.num_columns() <= self.positions.last().copied().unwrap_or(0) {
            return Err(Error::schema("a record batch lacks columns of the stream"));
        }
        let batch = Arc::get_mut(&mut self.batch);
        let batch = batch.ok_or_else(|| Error::internal("a filter holds its batch"))?;
        let read = rows.project(&self.positions)?;
        self.encoder.encode(&read, batch)?;
        for filter in &mut self.filters {
            let mut frame = Frame::new(Arc::clone(&self.batch));
            filter.apply(&mut frame, &mut self.work)?;
            found.push(frame.selection);
        }
        Ok(found)
    }
}
