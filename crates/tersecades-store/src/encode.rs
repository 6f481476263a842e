//! From rows to encoded batches that stand alone.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, UInt32Array,
    new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::dictionary::garbage_collect_any_dictionary;
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::Result;
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;

use crate::codec_policy::CodecPolicy;

/// What the last column of the order is tried under beside the chosen codec: where a chunk holds
/// several series, a step from one to the next is too rare for samples and too large for its block;
/// where it holds one, times jitter about a line. Both are small, which a choice for reads of
/// single rows passes over.
const STEPS: [&str; 2] = ["delta(patched(bit_pack))", "linear(bit_pack)"];
/// Bytes a row above which that is tried.
const STEPS_FROM: f64 = 1.0;

/// Encodes rows for one place.
pub(crate) struct Encoder {
    columns: BatchEncoder,
    policy: CodecPolicy,
    goal: Goal,
    /// A column and its encoders under [`STEPS`].
    steps: Option<(usize, Vec<ColumnEncoder>)>,
}

impl Encoder {
    /// An encoder of rows of `fields` for `tier`.
    ///
    /// # Errors
    /// `Unsupported` for types that cannot be encoded.
    pub(crate) fn new(fields: &SchemaRef, policy: CodecPolicy, tier: Tier) -> Result<Self> {
        Self::for_goal(fields, policy, Goal::of_tier(tier))
    }

    /// An encoder of rows of `fields` for `goal`.
    ///
    /// # Errors
    /// As [`Encoder::new`].
    pub(crate) fn for_goal(fields: &SchemaRef, policy: CodecPolicy, goal: Goal) -> Result<Self> {
        let mut columns = BatchEncoder::new(fields)?;
        for column in columns.columns_mut() {
            policy.apply(column, &goal)?;
        }
        Ok(Encoder {
            columns,
            policy,
            goal,
            steps: None,
        })
    }

    /// The same, where rows are sorted by `column` within those before it.
    ///
    /// # Errors
    /// `InvalidArgument` for a scheme that names no codec.
    pub(crate) fn sorted_by(mut self, column: usize) -> Result<Self> {
        let fields = self.columns.schema();
        let data_type = fields.field(column).data_type();
        let counts = matches!(Physical::of(data_type)?, Physical::Integer { bytes: 8, .. });
        if self.policy == CodecPolicy::Auto && self.goal.tier == Tier::Cold && counts {
            let encoders = STEPS.map(|scheme| {
                let mut encoder = ColumnEncoder::new(data_type)?;
                encoder.aim(self.goal.clone());
                encoder.pin(scheme.parse::<Scheme>()?);
                Ok(encoder)
            });
            self.steps = Some((column, encoders.into_iter().collect::<Result<_>>()?));
        }
        Ok(self)
    }

    /// Encodes `rows`; the texts of a batch are its own, so that its bytes hold no others.
    ///
    /// # Errors
    /// What encoding says.
    pub(crate) fn encode(&mut self, rows: &RecordBatch) -> Result<Batch> {
        let mut batch = Batch::empty(Arc::clone(self.columns.schema()));
        let (count, columns) = (rows.num_rows(), rows.columns());
        self.columns
            .encode_rows(count, &mut batch, |index, encoder, chunk| {
                encoder.renew();
                encoder.encode(&with_own_texts(&columns[index])?, chunk)
            })?;
        let Some((column, encoders)) = &mut self.steps else {
            return Ok(batch);
        };
        let chosen = batch.column(*column);
        if chosen.bytes_per_row() < STEPS_FROM {
            return Ok(batch);
        }
        let mut smallest = chosen.clone();
        for encoder in encoders {
            let steps = encoder.encode_new(rows.column(*column))?;
            if steps.byte_size() < smallest.byte_size() {
                smallest = steps;
            }
        }
        let mut columns = batch.columns().to_vec();
        columns[*column] = smallest;
        Batch::new(Arc::clone(batch.schema()), columns)
    }
}

/// `column`, with no text that none of its rows has: rows of few series are cut out of rows with
/// the texts of all.
///
/// # Cost
/// That of the rows, however many texts the others have.
fn with_own_texts(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.as_any_dictionary_opt() {
        None => Arc::clone(column),
        Some(dictionary) if dictionary.values().len() > column.len() => {
            arrow_cast::cast(column, dictionary.values().data_type())?
        }
        Some(dictionary) => garbage_collect_any_dictionary(dictionary)?,
    })
}

/// All rows of a batch, decoded.
///
/// # Errors
/// `Corrupt` when text is not UTF-8.
pub(crate) fn decode(batch: &Batch) -> Result<RecordBatch> {
    decode_rows(batch, &Selection::all(batch.rows()))
}

/// Some rows of a batch, decoded; texts and bytes as codes, however a chunk keeps them, so that
/// rows of several batches go together.
///
/// # Errors
/// `Corrupt` when text is not UTF-8.
pub(crate) fn decode_rows(batch: &Batch, rows: &Selection) -> Result<RecordBatch> {
    let found = batch.to_arrow(rows, &mut Work::default())?;
    let is_bare =
        |column: &ArrayRef| matches!(column.data_type(), DataType::Utf8 | DataType::Binary);
    if !found.columns().iter().any(is_bare) {
        return Ok(found);
    }
    let coded = |column: &ArrayRef| match is_bare(column) {
        true => coded(column),
        false => Ok(Arc::clone(column)),
    };
    let columns = found.columns().iter().map(coded);
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let names = found.schema_ref().fields().iter().zip(&columns);
    let fields = names.map(|(field, column)| {
        let field = field.as_ref().clone();
        field.with_data_type(column.data_type().clone())
    });
    let fields = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(found.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        fields, columns, &options,
    )?)
}

/// A code for each row, of a table that is the column.
pub(crate) fn coded(column: &ArrayRef) -> Result<ArrayRef> {
    let codes = UInt32Array::from_iter_values(0..column.len() as u32).into_data();
    let codes = codes
        .into_builder()
        .nulls(column.nulls().cloned())
        .build()?;
    let codes = UInt32Array::from(codes);
    Ok(Arc::new(DictionaryArray::try_new(
        codes,
        Arc::clone(column),
    )?))
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

#[cfg(test)]
mod tests {
    use arrow_array::{DictionaryArray, Int32Array, Int64Array, StringArray};
    use arrow_cast::cast;
    use arrow_schema::Schema;
    use tersecades_columnar::goal::Uses;
    use tersecades_columnar::wire;

    use super::*;

    /// Bytes a row and scheme of times, ten seconds apart and `late`, under a goal of single rows.
    fn times(late: impl Fn(i64) -> i64) -> (f64, String) {
        let time = |row: i64| 1_700_000_000_000 + row * 10_000 + late(row);
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10_000).map(|row| row / 5)));
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10_000).map(time)));
        let rows = RecordBatch::try_from_iter([("k", keys), ("ts", times)]).unwrap();
        let goal = Goal {
            uses: Uses {
                gather: 1.0,
                ..Uses::default()
            },
            ..Goal::of_tier(Tier::Cold)
        };
        let encoder = Encoder::for_goal(&rows.schema(), CodecPolicy::Auto, goal).unwrap();
        let batch = encoder.sorted_by(1).unwrap().encode(&rows).unwrap();
        assert_eq!(decode(&batch).unwrap(), rows);
        let column = batch.column(1);
        (column.bytes_per_row(), column.codec().name().to_owned())
    }

    #[test]
    fn times_that_jitter_about_a_line_take_little_more_than_the_jitter() {
        let (bytes, scheme) = times(|row| (row * 7_919 + row / 3 * 31) % 20);
        assert!(bytes < 0.75, "{bytes} {scheme}");
    }

    #[test]
    fn a_batch_of_one_series_does_not_hold_the_texts_of_all() {
        let ids = StringArray::from_iter_values((0..2_000).map(|id| format!("machine-{id:026}")));
        let keys =
            Int32Array::from_iter((0..4_096).map(|row| (row > 5).then_some(row / 1_000 + 7)));
        let ids: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(ids)));
        let rows = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let fields = logical(&rows);
        let mut encoder = Encoder::new(&fields, CodecPolicy::Auto, Tier::Cold).unwrap();
        let batch = encoder.encode(&rows).unwrap();
        let mut bytes = Vec::new();
        wire::write_batch(&batch, &mut bytes).unwrap();
        assert!(bytes.len() < 4_096, "{} bytes", bytes.len());
        let texts = |rows: &RecordBatch| cast(rows.column(0), &DataType::Utf8).unwrap();
        assert_eq!(&texts(&decode(&batch).unwrap()), &texts(&rows));
    }

    /// The columns of `rows`, of text where they are dictionaries of it.
    fn logical(rows: &RecordBatch) -> SchemaRef {
        let fields = rows.schema_ref().fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_data_type(DataType::Utf8));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}
