//! From rows to encoded batches that stand alone.

use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::Result;
use tersecades_columnar::goal::Tier;
use tersecades_columnar::selection::Selection;

use crate::codec_policy::CodecPolicy;

/// Encodes rows for one place.
pub(crate) struct Encoder {
    columns: BatchEncoder,
    policy: CodecPolicy,
    tier: Tier,
}

impl Encoder {
    /// An encoder of rows of `fields` for `tier`.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be encoded.
    pub(crate) fn new(fields: &SchemaRef, policy: CodecPolicy, tier: Tier) -> Result<Self> {
        let mut columns = BatchEncoder::new(fields)?;
        for column in columns.columns_mut() {
            policy.apply(column, tier)?;
        }
        Ok(Encoder {
            columns,
            policy,
            tier,
        })
    }

    /// Encodes `rows`; the texts of a batch are its own, so that its bytes hold no others.
    ///
    /// # Errors
    /// What encoding says.
    pub(crate) fn encode(&mut self, rows: &RecordBatch) -> Result<Batch> {
        for column in self.columns.columns_mut() {
            if matches!(column.data_type(), DataType::Utf8 | DataType::Binary) {
                let mut renewed = ColumnEncoder::new(column.data_type())?;
                self.policy.apply(&mut renewed, self.tier)?;
                *column = renewed;
            }
        }
        self.columns.encode_new(rows)
    }
}

/// All rows of a batch, decoded.
///
/// # Errors
/// `Corrupt` when text is not UTF-8.
pub(crate) fn decode(batch: &Batch) -> Result<RecordBatch> {
    batch.to_arrow(&Selection::all(batch.rows()), &mut Work::default())
}

/// A chunk of `rows` nulls.
///
/// # Errors
/// What encoding says.
pub(crate) fn nulls(data_type: &DataType, rows: usize) -> Result<Chunk> {
    ColumnEncoder::new(data_type)?.encode_new(&new_null_array(data_type, rows))
}

/// `batch` with the columns of `fields`, by name; those it lacks are null.
///
/// # Errors
/// What encoding says.
pub(crate) fn conform(batch: Batch, fields: &SchemaRef) -> Result<Batch> {
    if batch.schema() == fields {
        return Ok(batch);
    }
    let columns = fields
        .fields()
        .iter()
        .map(|field| match batch.schema().index_of(field.name()) {
            Ok(index) => Ok(batch.column(index).clone()),
            Err(_) => nulls(field.data_type(), batch.rows()),
        });
    Batch::new(Arc::clone(fields), columns.collect::<Result<_>>()?)
}
