//! Bytes that sort as the rows of a store do.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef};
use foldhash::fast::FixedState;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::stats::Stats;
use tersecades_columnar::types::Physical;

use crate::encode::decode;
use crate::run::{self, Fences, Run};
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

/// What the values of the first column, of type `data_type`, lie between in rows with sort keys
/// between two; unknown but for times and whole numbers of eight bytes, none of them null.
pub(crate) fn first_stats(data_type: &DataType, (first, last): &Fences) -> Stats {
    let is_long = matches!(data_type, DataType::Int64 | DataType::Timestamp(..));
    let key = |bytes: &[u8]| {
        let (1, value) = bytes.split_first().map(|(flag, rest)| (*flag, rest))? else {
            return None;
        };
        let value = i64::from_be_bytes(*value.first_chunk::<8>()?) ^ i64::MIN;
        Physical::of(data_type).ok()?.key_of(value.into())
    };
    match (is_long, key(first), key(last)) {
        (true, Some(min), Some(max)) if min <= max => Stats {
            min,
            max,
            known: true,
        },
        _ => Stats::default(),
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

/// Rows and the order in which they are sorted; rows with the same key stay in theirs.
#[derive(Debug)]
pub(crate) struct Sorted {
    /// The rows, in the order of their arrival.
    pub(crate) rows: RecordBatch,
    keys: Option<Rows>,
    /// Positions of the rows in the order of their keys; `None` where they lie so.
    order: Option<Vec<u32>>,
}

impl Sorted {
    /// The order of `rows`, which have the columns of `fields`.
    ///
    /// # Errors
    /// What putting rows together says.
    ///
    /// # Cost
    /// One pass where they are sorted already, and little more where there are few series whose
    /// times ascend.
    pub(crate) fn new(key: &SortKey, fields: &SchemaRef, rows: &[RecordBatch]) -> Result<Self> {
        let rows = arrow_select::concat::concat_batches(fields, rows)?;
        let keys = key.of(&rows)?;
        let order = keys.as_ref().and_then(|keys| order(key, keys));
        Ok(Sorted { rows, keys, order })
    }

    /// Rows that lie in the order of their keys.
    ///
    /// # Errors
    /// As [`SortKey::of`].
    pub(crate) fn already(key: &SortKey, rows: RecordBatch) -> Result<Self> {
        let keys = key.of(&rows)?;
        let order = None;
        Ok(Sorted { rows, keys, order })
    }

    /// The row at `position` of the order.
    pub(crate) fn row(&self, position: usize) -> usize {
        let order = self.order.as_ref();
        order.map_or(position, |order| order[position] as usize)
    }

    /// The sort key of the row at `position` of the order.
    pub(crate) fn key(&self, position: usize) -> &[u8] {
        let keys = self.keys.as_ref();
        keys.map_or(&[], |keys| keys.row(self.row(position)).data())
    }
}

/// Positions of `keys` in their order; `None` where they lie in it.
fn order(key: &SortKey, keys: &Rows) -> Option<Vec<u32>> {
    let rows = keys.num_rows();
    if (1..rows).all(|row| keys.row(row - 1) <= keys.row(row)) {
        return None;
    }
    Some(order_of_series(key, keys).unwrap_or_else(|| order_of_all(keys)))
}

/// Rows a series has at least, on average, where rows are sorted a series at a time.
const SERIES_ROWS: usize = 8;

/// Positions of `keys` in their order, where there are few series: series are sorted, and then the
/// times of each, which mostly ascend.
fn order_of_series(key: &SortKey, keys: &Rows) -> Option<Vec<u32>> {
    let rows = keys.num_rows();
    let data = |row: u32| keys.row(row as usize).data();
    let mut ids: HashMap<&[u8], u32, FixedState> = HashMap::default();
    let mut series: Vec<(&[u8], u32)> = Vec::new();
    let mut series_of = Vec::with_capacity(rows);
    for row in 0..rows as u32 {
        let name = key.series(data(row));
        let id = *ids.entry(name).or_insert(series.len() as u32);
        if id as usize == series.len() {
            series.push((name, id));
            if name.is_empty() || series.len() * SERIES_ROWS > rows {
                return None;
            }
        }
        series_of.push(id);
    }
    let mut counts = vec![0; series.len()];
    series_of.iter().for_each(|id| counts[*id as usize] += 1);
    series.sort_unstable();
    let mut starts = vec![0; series.len()];
    let mut end = 0;
    for (_, id) in &series {
        starts[*id as usize] = end;
        end += counts[*id as usize];
    }
    let mut order = vec![0; rows];
    let mut next = starts.clone();
    for (row, id) in series_of.iter().enumerate() {
        let place = &mut next[*id as usize];
        order[*place] = row as u32;
        *place += 1;
    }
    for (name, id) in &series {
        let of_series = &mut order[starts[*id as usize]..next[*id as usize]];
        of_series.sort_by(|a, b| data(*a)[name.len()..].cmp(&data(*b)[name.len()..]));
    }
    Some(order)
}

/// Positions of `keys` in their order.
///
/// Whole keys are compared only where their first bytes are equal. The very first says of most that
/// they are not null, and is left out then.
fn order_of_all(keys: &Rows) -> Vec<u32> {
    let key = |row: usize| keys.row(row).data();
    let first = key(0).first();
    let skip = usize::from((0..keys.num_rows()).all(|row| key(row).first() == first));
    let longest = keys.lengths().max().unwrap_or(0);
    match longest - skip.min(longest) <= size_of::<u64>() {
        true => order_by(keys, |key| u64::from_be_bytes(leading(key, skip))),
        false => order_by(keys, |key| u128::from_be_bytes(leading(key, skip))),
    }
}

/// Positions of `keys` in their order, which the numbers of `leading` keep; equal keys stay in
/// theirs.
fn order_by<N: Ord>(keys: &Rows, leading: impl Fn(&[u8]) -> N) -> Vec<u32> {
    let key = |row: u32| keys.row(row as usize);
    let rows = 0..keys.num_rows() as u32;
    let mut order: Vec<(N, u32)> = rows.map(|row| (leading(key(row).data()), row)).collect();
    order.sort_by(|(a, row_a), (b, row_b)| a.cmp(b).then_with(|| key(*row_a).cmp(&key(*row_b))));
    order.into_iter().map(|(_, row)| row).collect()
}

/// The bytes of a key after the first `skip`, with zeros behind short ones.
fn leading<const BYTES: usize>(key: &[u8], skip: usize) -> [u8; BYTES] {
    let key = key.get(skip..).unwrap_or_default();
    let mut bytes = [0; BYTES];
    let count = key.len().min(BYTES);
    bytes[..count].copy_from_slice(&key[..count]);
    bytes
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray, TimestampMillisecondArray};
    use arrow_schema::Schema;

    use super::*;

    /// Rows of `series` names, some of them null, whose times mostly ascend.
    fn rows(count: i64, series: i64) -> RecordBatch {
        let mixed = |row: i64| (row * 2_654_435_761).rem_euclid(1 << 20);
        let name = |row: i64| {
            let id = mixed(row) % series;
            (id > 0).then(|| format!("host-{}", id * 7 % series))
        };
        let time = |row: i64| (row % 11 > 0).then(|| row / 3 - mixed(row) % 5);
        let names: ArrayRef = Arc::new((0..count).map(name).collect::<StringArray>());
        let times = (0..count).map(time).collect::<TimestampMillisecondArray>();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
        let times: ArrayRef = Arc::new(times);
        RecordBatch::try_from_iter([("host", names), ("ts", times), ("n", numbers)]).unwrap()
    }

    /// Positions of `rows` by name, time and arrival; nulls first.
    fn plain_order(rows: &RecordBatch) -> Vec<usize> {
        let names = rows.column(0).as_string::<i32>();
        let times = TimestampMillisecondArray::from(rows.column(1).to_data());
        let value = |row: usize| {
            let name = names.is_valid(row).then(|| names.value(row));
            (name, times.is_valid(row).then(|| times.value(row)), row)
        };
        let mut order: Vec<usize> = (0..rows.num_rows()).collect();
        order.sort_by_key(|row| value(*row));
        order
    }

    #[test]
    fn rows_are_sorted_by_series_and_time_however_many_series_there_are() {
        for (count, series, keys) in [
            (5_000, 40, &["host"][..]),
            (5_000, 4_000, &["host"][..]),
            (5_000, 1, &["host"][..]),
            (3_000, 7, &[][..]),
        ] {
            let rows = rows(count, series);
            let schema = StoreSchema::new(&rows.schema()).unwrap();
            let schema = schema.key(keys).unwrap().time("ts").unwrap();
            let key = SortKey::new(&schema).unwrap();
            let parts = [
                rows.slice(0, 1_000),
                rows.slice(1_000, count as usize - 1_000),
            ];
            let sorted = Sorted::new(&key, &rows.schema(), &parts).unwrap();
            let by = match keys.is_empty() {
                true => without_names(&rows),
                false => rows.clone(),
            };
            let order: Vec<usize> = (0..rows.num_rows()).map(|at| sorted.row(at)).collect();
            assert_eq!(order, plain_order(&by), "{series} series");
            assert!((1..order.len()).all(|at| sorted.key(at - 1) <= sorted.key(at)));
        }
    }

    /// `rows` with the same name everywhere.
    fn without_names(rows: &RecordBatch) -> RecordBatch {
        let mut columns = rows.columns().to_vec();
        columns[0] = Arc::new(StringArray::from(vec![""; rows.num_rows()]));
        RecordBatch::try_new(Arc::new(Schema::clone(&rows.schema())), columns).unwrap()
    }
}
