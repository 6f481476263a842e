//! What a scan hands out, and the order in which it does.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Tier;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::stats::Stats;

use crate::codec_policy::CodecPolicy;
use crate::encode::{Encoder, decode_rows};
use crate::retention::time_of;

use super::Part;

/// Rows that were found: encoded columns and which of their rows are meant.
#[derive(Debug, Clone)]
pub struct Found {
    /// The columns.
    pub batch: Arc<Batch>,
    /// The rows.
    pub selection: Selection,
}

impl Found {
    pub(super) fn new(batch: Batch, selection: Selection) -> Self {
        Found {
            batch: Arc::new(batch),
            selection,
        }
    }

    pub(super) fn all(batch: Batch) -> Self {
        let selection = Selection::all(batch.rows());
        Found::new(batch, selection)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.selection.count()
    }

    /// The rows as a batch: the encoded one where all its rows are meant.
    ///
    /// # Errors
    /// What decoding says.
    ///
    /// # Cost
    /// Nothing where all rows are meant, else they are decoded.
    pub fn into_batch(self) -> Result<Arc<Batch>> {
        if self.rows() == self.batch.rows() {
            return Ok(self.batch);
        }
        let rows = self.to_arrow()?;
        let mut encoder = Encoder::new(self.batch.schema(), CodecPolicy::None, Tier::Hot)?;
        Ok(Arc::new(encoder.encode(&rows)?))
    }

    /// The rows as Arrow; text comes as dictionary arrays.
    ///
    /// # Errors
    /// `Corrupt` when text is not UTF-8.
    pub fn to_arrow(&self) -> Result<RecordBatch> {
        decode_rows(&self.batch, &self.selection)
    }
}

/// The columns of `fields`, each of which one of two batches has.
pub(super) fn join(fields: &SchemaRef, one: Batch, other: Batch) -> Result<Batch> {
    let columns = fields.fields().iter().map(|field| {
        let found = [&one, &other].into_iter().find_map(|batch| {
            let index = batch.schema().index_of(field.name()).ok()?;
            Some(batch.column(index).clone())
        });
        found.ok_or_else(|| Error::internal("a wanted column was not read"))
    });
    Batch::new(Arc::clone(fields), columns.collect::<Result<_>>()?)
}

fn stats(part: &Part, time: &str) -> Option<Stats> {
    let stats = match part {
        Part::Group(run, index) => {
            let column = run.fields().index_of(time).ok()?;
            run.group(*index).chunks[column].stats
        }
        Part::Memory(batch) => batch.column(batch.schema().index_of(time).ok()?).stats(),
    };
    stats.known.then_some(stats)
}

/// The earliest time of a part; the least there is where it is not known.
pub(super) fn earliest(part: &Part, time: &str) -> i64 {
    stats(part, time).map_or(i64::MIN, |stats| time_of(stats.min))
}

/// Sorts parts by their earliest times; how much older than the newest row before it a row may be.
pub(super) fn order_by_time(parts: &mut [Part], time: &str) -> i64 {
    parts.sort_by_key(|part| earliest(part, time));
    let mut newest = i64::MIN;
    let mut lateness = 0;
    for stats in parts.iter().filter_map(|part| stats(part, time)) {
        newest = newest.max(time_of(stats.max));
        // Rows of one part come in any order.
        lateness = lateness.max(newest.saturating_sub(time_of(stats.min)));
    }
    lateness
}
