//! Record batches of one logical schema, whose text may come in several physical forms.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_cast::cast;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat as concat_arrays;
use arrow_select::interleave::interleave;
use arrow_select::take::take as take_array;
use tersecades_columnar::batch::BatchEncoder;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::logical_type;
use tersecades_columnar::wire;

use crate::runtime::state::{StateReader, StateWriter};

/// Most rows of a record batch that an operator makes.
pub const OUTPUT_ROWS: usize = 65_536;

/// Rows that an operator which holds many gives at once at the end of the stream.
///
/// More of them at once take more memory; fewer look into the same encoded batches more often.
pub const GIVEN_ROWS: usize = 4 * OUTPUT_ROWS;

/// A record batch of `columns` named as in `schema`, with the types that the columns have.
///
/// # Errors
/// `Internal` when the columns are not of one length.
pub fn batch_of(schema: &Schema, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let fields = schema.fields().iter().zip(&columns);
    let fields =
        fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .map_err(|error| Error::internal(format!("columns do not make rows: {error}")))
}

/// Appends `rows` rows of `columns` to `out`, at most [`OUTPUT_ROWS`] in a batch.
///
/// # Errors
/// As [`batch_of`].
pub fn give(
    schema: &Schema,
    columns: &[ArrayRef],
    rows: usize,
    out: &mut Vec<RecordBatch>,
) -> Result<()> {
    for first in (0..rows).step_by(OUTPUT_ROWS) {
        let count = OUTPUT_ROWS.min(rows - first);
        let part = columns.iter().map(|column| column.slice(first, count));
        out.push(batch_of(schema, part.collect(), count)?);
    }
    Ok(())
}

/// The schema with the types that columns have inside the engine, every column nullable.
pub fn logical_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields =
        fields.map(|field| Field::new(field.name(), logical_type(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Arrays of one logical type as arrays of one physical type.
///
/// # Errors
/// What casting says.
pub fn unify(arrays: &mut [ArrayRef]) -> Result<()> {
    let Some(first) = arrays.first().map(|array| array.data_type().clone()) else {
        return Ok(());
    };
    if arrays.iter().all(|array| *array.data_type() == first) {
        return Ok(());
    }
    for array in arrays {
        *array = cast(array, &logical_type(array.data_type()))?;
    }
    Ok(())
}

/// All rows of `batches`, which must not be empty, one after the other.
///
/// # Errors
/// What casting says.
pub fn concat(batches: &[RecordBatch]) -> Result<RecordBatch> {
    let [first, rest @ ..] = batches else {
        return Err(Error::internal("nothing to put together"));
    };
    if rest.is_empty() {
        return Ok(first.clone());
    }
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let mut columns = Vec::with_capacity(first.num_columns());
    for index in 0..first.num_columns() {
        let mut parts: Vec<ArrayRef> = batches
            .iter()
            .map(|batch| Arc::clone(batch.column(index)))
            .collect();
        unify(&mut parts)?;
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        columns.push(concat_arrays(&parts)?);
    }
    batch_of(&first.schema(), columns, rows)
}

/// The rows of `batch` at `positions`, in that order.
///
/// # Errors
/// `Internal` for positions beyond the batch.
pub fn take(batch: &RecordBatch, positions: Vec<u32>) -> Result<RecordBatch> {
    let rows = positions.len();
    let positions = UInt32Array::from(positions);
    let columns = batch.columns().iter();
    let columns: Vec<ArrayRef> = columns
        .map(|column| take_array(column, &positions, None))
        .collect::<std::result::Result<_, _>>()?;
    batch_of(&batch.schema(), columns, rows)
}

/// Values out of several pieces of one logical type, by (piece, position); `None` is null.
///
/// # Errors
/// What casting says.
pub fn weave(mut pieces: Vec<ArrayRef>, from: &[Option<(usize, usize)>]) -> Result<ArrayRef> {
    unify(&mut pieces)?;
    let Some(first) = pieces.first() else {
        return Err(Error::internal("nothing to take values from"));
    };
    if pieces.len() == 1 {
        let positions = from.iter().map(|place| place.map(|(_, at)| at as u32));
        return Ok(take_array(
            first,
            &positions.collect::<UInt32Array>(),
            None,
        )?);
    }
    let absent = pieces.len();
    // Another piece is another dictionary, which takes merging.
    if from.iter().any(Option::is_none) {
        pieces.push(new_null_array(first.data_type(), 1));
    }
    let indices: Vec<(usize, usize)> = from
        .iter()
        .map(|place| place.unwrap_or((absent, 0)))
        .collect();
    let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    Ok(interleave(&pieces, &indices)?)
}

/// Writes rows into a snapshot, encoded.
///
/// # Errors
/// What encoding says.
pub fn write_rows(rows: &RecordBatch, out: &mut StateWriter) -> Result<()> {
    let mut bytes = Vec::new();
    out.u64(rows.num_rows() as u64);
    if rows.num_rows() > 0 && rows.num_columns() > 0 {
        let batch = BatchEncoder::new(&rows.schema())?.encode_new(rows)?;
        wire::write_batch(&batch, &mut bytes)?;
    }
    out.blob(&bytes);
    Ok(())
}

/// Reads rows of `schema` that [`write_rows`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes do not hold them.
pub fn read_rows(schema: &Schema, from: &mut StateReader<'_>) -> Result<RecordBatch> {
    let rows = from.u64()? as usize;
    let bytes = from.blob()?;
    if bytes.is_empty() {
        let columns = schema.fields().iter();
        let columns = columns.map(|field| new_null_array(field.data_type(), 0));
        let rows = if schema.fields().is_empty() { rows } else { 0 };
        return batch_of(schema, columns.collect(), rows);
    }
    let batch = wire::read_batch(bytes)?;
    let types = |schema: &Schema| -> Vec<_> {
        let fields = schema.fields().iter();
        fields
            .map(|field| logical_type(field.data_type()))
            .collect()
    };
    if batch.rows() != rows || types(batch.schema()) != types(schema) {
        return Err(Error::corrupt("a snapshot holds rows of other columns"));
    }
    batch.to_arrow(&Selection::all(rows), &mut Work::default())
}

/// Writes record batches that wait to go on.
///
/// # Errors
/// What encoding says.
pub fn write_batches(batches: &VecDeque<RecordBatch>, out: &mut StateWriter) -> Result<()> {
    out.u64(batches.len() as u64);
    batches.iter().try_for_each(|rows| write_rows(rows, out))
}

/// Reads what [`write_batches`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes do not hold it.
pub fn read_batches(schema: &Schema, from: &mut StateReader<'_>) -> Result<VecDeque<RecordBatch>> {
    from.list(|from| read_rows(schema, from))
}
