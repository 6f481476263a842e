//! Record batches of one logical schema, whose text may come in several physical forms.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
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

use crate::runtime::Interrupt;
use crate::runtime::state::{StateReader, StateWriter};

/// Most rows of a record batch that an operator makes.
pub const OUTPUT_ROWS: usize = 65_536;

/// Rows that an operator which holds many gives at once at the end of the stream; fewer of long
/// texts.
///
/// More of them at once take more memory; fewer look into the same encoded batches more often.
pub const GIVEN_ROWS: usize = 4 * OUTPUT_ROWS;

/// Values that are put together at once: seldom more, as then they are moved twice.
const WOVEN_ROWS: usize = 1 << 20;

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

/// `rows`, with no more texts than rows: few of many are cut out with the texts of all.
///
/// # Errors
/// What casting says.
///
/// # Cost
/// That of the rows, however many texts there are.
pub fn with_few_texts(rows: RecordBatch) -> Result<RecordBatch> {
    let many = |column: &ArrayRef| {
        let texts = column.as_any_dictionary_opt().map(|coded| coded.values());
        texts.filter(|texts| texts.len() > column.len()).cloned()
    };
    if !rows.columns().iter().any(|column| many(column).is_some()) {
        return Ok(rows);
    }
    let columns = rows.columns().iter().map(|column| match many(column) {
        Some(texts) => Ok(cast(column, texts.data_type())?),
        None => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<_>>()?;
    batch_of(&rows.schema(), columns, rows.num_rows())
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

/// Values out of several pieces of one logical type, by (piece, position), of so many that
/// `interrupt` is asked meanwhile; `None` is null.
///
/// # Errors
/// What casting and the interrupt say.
pub fn weave(
    mut pieces: Vec<ArrayRef>,
    from: &[Option<(usize, usize)>],
    interrupt: &Interrupt,
) -> Result<ArrayRef> {
    unify(&mut pieces)?;
    if pieces.is_empty() {
        return Err(Error::internal("nothing to take values from"));
    }
    let (first, rest) = from.split_at(from.len().min(WOVEN_ROWS));
    let first = woven(&pieces, first)?;
    if rest.is_empty() {
        return Ok(first);
    }
    let mut parts = vec![first];
    for part in rest.chunks(WOVEN_ROWS) {
        interrupt.check()?;
        parts.push(woven(&pieces, part)?);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(concat_arrays(&parts)?)
}

/// Values out of `pieces`, of which there is one and which are of one type.
fn woven(pieces: &[ArrayRef], from: &[Option<(usize, usize)>]) -> Result<ArrayRef> {
    if let [only] = pieces {
        let positions = from.iter().map(|place| place.map(|(_, at)| at as u32));
        let positions: UInt32Array = positions.collect();
        return Ok(take_array(only, &positions, None)?);
    }
    if let Some(coded) = woven_codes::<UInt32Type>(pieces, from)? {
        return Ok(coded);
    }
    if let Some(coded) = woven_codes::<Int32Type>(pieces, from)? {
        return Ok(coded);
    }
    let absent = pieces.len();
    let mut pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    // Another piece is another dictionary, which takes merging.
    let nothing = new_null_array(pieces[0].data_type(), 1);
    if from.iter().any(Option::is_none) {
        pieces.push(nothing.as_ref());
    }
    let indices = from.iter().map(|place| place.unwrap_or((absent, 0)));
    Ok(interleave(&pieces, &indices.collect::<Vec<_>>())?)
}

/// As [`woven`] for codes of one dictionary, which Arrow would put together with itself; `None` for
/// other pieces.
fn woven_codes<K: ArrowDictionaryKeyType>(
    pieces: &[ArrayRef],
    from: &[Option<(usize, usize)>],
) -> Result<Option<ArrayRef>> {
    let coded = pieces.iter().map(|piece| piece.as_dictionary_opt::<K>());
    let Some(coded) = coded.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let Some(values) = coded.first().map(|first| first.values()) else {
        return Ok(None);
    };
    if !coded
        .iter()
        .all(|piece| Arc::ptr_eq(piece.values(), values))
    {
        return Ok(None);
    }
    let keys = coded.iter().map(|piece| Arc::new(piece.keys().clone()));
    let keys: Vec<ArrayRef> = keys.map(|keys| keys as ArrayRef).collect();
    let keys = woven(&keys, from)?.as_primitive::<K>().clone();
    let woven = DictionaryArray::try_new(keys, Arc::clone(values))?;
    Ok(Some(Arc::new(woven)))
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

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;
    use tersecades_columnar::error::ErrorKind;

    #[test]
    fn more_values_than_are_woven_at_once_are_the_same() {
        let rows = WOVEN_ROWS + 7;
        let place = |row: usize| (!row.is_multiple_of(5)).then_some((row % 2, row % 3));
        let from: Vec<_> = (0..rows).map(place).collect();
        let numbers: [i64; 6] = [1, 2, 3, 4, 5, 6];
        let halves = |two: bool| -> Vec<ArrayRef> {
            let pieces = numbers.chunks(if two { 3 } else { 6 });
            pieces
                .map(|piece| Arc::new(Int64Array::from(piece.to_vec())) as ArrayRef)
                .collect()
        };
        let value =
            |place: &Option<(usize, usize)>| place.map(|(piece, at)| numbers[3 * piece + at]);
        let wanted: ArrayRef = Arc::new(Int64Array::from_iter(from.iter().map(value)));
        let found = weave(halves(true), &from, &Interrupt::default()).unwrap();
        assert_eq!(*found, *wanted);
        let flat: Vec<_> = from
            .iter()
            .map(|place| place.map(|(piece, at)| (0, 3 * piece + at)))
            .collect();
        let found = weave(halves(false), &flat, &Interrupt::default()).unwrap();
        assert_eq!(*found, *wanted);
        let stop = Interrupt::new(|| Err(Error::new(ErrorKind::Interrupted, "enough")));
        let error = weave(halves(true), &from, &stop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn codes_of_one_dictionary_stay_codes_of_it() {
        let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let coded = |keys: [Option<i32>; 3]| -> ArrayRef {
            let keys = keys.into_iter().collect();
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(&values)))
        };
        let pieces = vec![
            coded([Some(2), None, Some(0)]),
            coded([Some(1), Some(1), Some(0)]),
        ];
        let from = [Some((0, 0)), None, Some((1, 1)), Some((0, 1)), Some((1, 2))];
        let found = weave(pieces, &from, &Interrupt::default()).unwrap();
        let found = found.as_dictionary::<Int32Type>();
        assert!(Arc::ptr_eq(found.values(), &values));
        let texts = cast(found, &arrow_schema::DataType::Utf8).unwrap();
        let wanted = [Some("c"), None, Some("b"), None, Some("a")];
        assert_eq!(*texts, StringArray::from(wanted.to_vec()));
    }

    #[test]
    fn texts_of_several_dictionaries_are_woven_part_by_part() {
        let coded = |texts: [&str; 2]| -> ArrayRef {
            let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
            cast(&texts, &crate::source::text_type()).unwrap()
        };
        let from: Vec<_> = (0..WOVEN_ROWS + 1)
            .map(|row| Some((row / WOVEN_ROWS, 1)))
            .collect();
        let pieces = vec![coded(["a", "b"]), coded(["c", "d"])];
        let found = weave(pieces, &from, &Interrupt::default()).unwrap();
        let found = cast(&found, &arrow_schema::DataType::Utf8).unwrap();
        let last = found.slice(WOVEN_ROWS - 1, 2);
        assert_eq!(*last, StringArray::from(vec!["b", "d"]));
    }
}
