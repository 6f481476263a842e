//! Bytes that sort as the rows of a store do.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch, UInt32Array};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use crate::encode::decode;
use crate::run::{self, Run};
use crate::schema::StoreSchema;

/// Bytes that end a sort key with a time: one for null, eight for the value.
const TIME_BYTES: usize = 9;

/// Turns the columns that rows are sorted by into bytes.
///
/// The bytes of the first columns are a prefix of the bytes of all.
#[derive(Debug)]
pub(crate) struct SortKey {
    converter: RowConverter,
    names: Vec<String>,
    ends_with_time: bool,
}

fn converter(types: impl Iterator<Item = DataType>) -> Result<RowConverter> {
    let fields = types.map(SortField::new).collect();
    RowConverter::new(fields).map_err(|error| Error::unsupported(error.to_string()))
}

/// Text without its dictionary, and floats that are equal in one form: zero without a sign, and
/// one NaN; other arrays as they are.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Dictionary(_, values) => arrow_cast::cast(array, values)?,
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            let one_form = |float: f64| {
                if float.is_nan() {
                    f64::NAN
                } else {
                    float + 0.0
                }
            };
            Arc::new(floats.unary::<_, Float64Type>(one_form))
        }
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            let one_form = |float: f32| {
                if float.is_nan() {
                    f32::NAN
                } else {
                    float + 0.0
                }
            };
            Arc::new(floats.unary::<_, Float32Type>(one_form))
        }
        _ => Arc::clone(array),
    })
}

impl SortKey {
    /// The order of the rows of `schema`.
    ///
    /// # Errors
    /// `Unsupported` for types without an order.
    pub(crate) fn new(schema: &StoreSchema) -> Result<Self> {
        let columns = schema.sort_columns();
        let fields = || columns.iter().map(|index| schema.fields().field(*index));
        Ok(SortKey {
            converter: converter(fields().map(|field| field.data_type().clone()))?,
            names: fields().map(|field| field.name().clone()).collect(),
            ends_with_time: columns.len() > schema.key_columns().len(),
        })
    }

    /// Whether rows have an order besides that of their arrival.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The sort keys of `rows`; `None` where their order is that of arrival.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows without a column of the key.
    pub(crate) fn of(&self, rows: &RecordBatch) -> Result<Option<Rows>> {
        if self.is_empty() {
            return Ok(None);
        }
        let column = |name: &String| {
            let column = rows.column_by_name(name);
            plain(column.ok_or_else(|| Error::schema("rows lack a column of the key"))?)
        };
        let columns = self.names.iter().map(column).collect::<Result<Vec<_>>>()?;
        let keys = self.converter.convert_columns(&columns);
        Ok(Some(
            keys.map_err(|error| Error::schema(error.to_string()))?,
        ))
    }

    /// The sort key of the first of `rows`.
    ///
    /// # Errors
    /// As [`SortKey::of`].
    pub(crate) fn bytes(&self, rows: &RecordBatch) -> Result<Vec<u8>> {
        let keys = self.of(rows)?;
        Ok(keys.map_or_else(Vec::new, |keys| keys.row(0).data().to_vec()))
    }

    /// The columns of the sort key of group `index` of `run`.
    ///
    /// # Errors
    /// What reading says.
    pub(crate) fn rows_of(&self, run: &Run, index: usize) -> Result<RecordBatch> {
        decode(&run.read_group(index, &run::project(run.fields(), &self.names)?)?)
    }

    /// The part of a sort key that is not the time.
    pub(crate) fn series<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        match self.ends_with_time {
            true => &key[..key.len().saturating_sub(TIME_BYTES)],
            false => key,
        }
    }
}

/// The bytes of one value of the first column of the key, as they start a sort key.
///
/// # Errors
/// `Unsupported` for types without an order.
pub(crate) fn prefix(value: &ArrayRef) -> Result<Vec<u8>> {
    let value = plain(value)?;
    let converter = converter(std::iter::once(value.data_type().clone()))?;
    let rows = converter.convert_columns(&[value]);
    let rows = rows.map_err(|error| Error::schema(error.to_string()))?;
    Ok(rows.row(0).as_ref().to_vec())
}

/// `rows` sorted; rows with the same key stay in their order.
///
/// # Errors
/// What taking rows says.
///
/// # Cost
/// One pass where they are sorted already.
pub(crate) fn sort(key: &SortKey, fields: &SchemaRef, rows: &[RecordBatch]) -> Result<RecordBatch> {
    let all = arrow_select::concat::concat_batches(fields, rows)?;
    let Some(keys) = key.of(&all)? else {
        return Ok(all);
    };
    let rows = keys.num_rows();
    if (1..rows).all(|row| keys.row(row - 1) <= keys.row(row)) {
        return Ok(all);
    }
    // Whole keys are compared only where their first bytes are equal. The very first says of most
    // that they are not null, and is left out then.
    let key = |row: usize| keys.row(row).data();
    let first = key(0).first();
    let skip = usize::from((0..rows).all(|row| key(row).first() == first));
    let longest = keys.lengths().max().unwrap_or(0);
    let order = match longest - skip.min(longest) <= size_of::<u64>() {
        true => order_by(&keys, |key| u64::from_be_bytes(leading(key, skip))),
        false => order_by(&keys, |key| u128::from_be_bytes(leading(key, skip))),
    };
    Ok(arrow_select::take::take_record_batch(&all, &order)?)
}

/// Positions of `keys` in their order, which the numbers of `leading` keep; equal keys stay in
/// theirs.
fn order_by<N: Ord>(keys: &Rows, leading: impl Fn(&[u8]) -> N) -> UInt32Array {
    let key = |row: u32| keys.row(row as usize);
    let rows = 0..keys.num_rows() as u32;
    let mut order: Vec<(N, u32)> = rows.map(|row| (leading(key(row).data()), row)).collect();
    order.sort_by(|(a, row_a), (b, row_b)| a.cmp(b).then_with(|| key(*row_a).cmp(&key(*row_b))));
    UInt32Array::from_iter_values(order.into_iter().map(|(_, row)| row))
}

/// The bytes of a key after the first `skip`, with zeros behind short ones.
fn leading<const BYTES: usize>(key: &[u8], skip: usize) -> [u8; BYTES] {
    let key = key.get(skip..).unwrap_or_default();
    let mut bytes = [0; BYTES];
    let count = key.len().min(BYTES);
    bytes[..count].copy_from_slice(&key[..count]);
    bytes
}
