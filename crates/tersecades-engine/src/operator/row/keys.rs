//! Rows as byte strings that sort and compare as their values do.
//!
//! Text sorts by its bytes, NaN above all numbers and equal to itself, negative zero equals zero,
//! and nulls stand first or last as asked.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SortOptions};
use hashbrown::HashTable;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::logical_type;

use crate::runtime::state::{StateReader, StateWriter};

/// How one column sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SortOrder {
    /// Greatest first.
    pub descending: bool,
    /// Nulls before all values, whichever way values go; else after them.
    pub nulls_first: bool,
}

impl SortOrder {
    /// Least first, nulls last.
    pub const ASCENDING: SortOrder = SortOrder {
        descending: false,
        nulls_first: false,
    };
    /// Greatest first, nulls last.
    pub const DESCENDING: SortOrder = SortOrder {
        descending: true,
        nulls_first: false,
    };
}

impl std::fmt::Display for SortOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.descending { "desc" } else { "asc" })?;
        f.write_str(if self.nulls_first { " nulls first" } else { "" })
    }
}

/// Makes byte strings of rows.
pub struct RowKeys {
    converter: RowConverter,
    types: Vec<DataType>,
}

impl RowKeys {
    /// Keys of columns of these types.
    ///
    /// # Errors
    /// `Unsupported` for types without an order.
    pub fn new(columns: impl IntoIterator<Item = (DataType, SortOrder)>) -> Result<Self> {
        let (mut types, mut fields) = (Vec::new(), Vec::new());
        for (data_type, order) in columns {
            let data_type = logical_type(&data_type);
            let options = SortOptions::new(order.descending, order.nulls_first);
            fields.push(SortField::new_with_options(data_type.clone(), options));
            types.push(data_type);
        }
        let converter =
            RowConverter::new(fields).map_err(|error| Error::unsupported(error.to_string()))?;
        Ok(RowKeys { converter, types })
    }

    /// Keys that are only compared for equality.
    ///
    /// # Errors
    /// As [`RowKeys::new`].
    pub fn unordered(types: impl IntoIterator<Item = DataType>) -> Result<Self> {
        RowKeys::new(types.into_iter().map(|kind| (kind, SortOrder::ASCENDING)))
    }

    /// No keys yet, to be appended to.
    pub fn empty(&self) -> Rows {
        self.converter.empty_rows(0, 0)
    }

    /// Appends one key for each row of `columns`.
    ///
    /// # Errors
    /// `SchemaMismatch` when they are of other types.
    pub fn append(&self, columns: &[ArrayRef], keys: &mut Rows) -> Result<()> {
        let columns: Vec<ArrayRef> = columns
            .iter()
            .zip(&self.types)
            .map(|(column, data_type)| Ok(canonical_floats(&of_type(column, data_type)?)))
            .collect::<Result<_>>()?;
        let appended = self.converter.append(keys, &columns);
        appended.map_err(|error| Error::schema(error.to_string()))
    }

    /// One key for each row of `columns`.
    ///
    /// # Errors
    /// As [`RowKeys::append`].
    pub fn of(&self, columns: &[ArrayRef]) -> Result<Rows> {
        let mut keys = self.empty();
        self.append(columns, &mut keys)?;
        Ok(keys)
    }
}

/// The column as `data_type`.
pub(super) fn of_type(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match column.data_type() == data_type {
        true => Arc::clone(column),
        false => cast(column, data_type)?,
    })
}

/// `column`, whose floats have the one NaN and the one zero: equal ones have equal bits.
pub fn canonical_floats(column: &ArrayRef) -> ArrayRef {
    // Adding 0 makes −0 a 0.
    match column.data_type() {
        DataType::Float32 => {
            let one = |value: f32| {
                if value.is_nan() {
                    f32::NAN
                } else {
                    value + 0.0
                }
            };
            Arc::new(
                column
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(one),
            )
        }
        DataType::Float64 => {
            let one = |value: f64| {
                if value.is_nan() {
                    f64::NAN
                } else {
                    value + 0.0
                }
            };
            Arc::new(
                column
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(one),
            )
        }
        _ => Arc::clone(column),
    }
}

/// Whether each row has a null in some of `columns`.
pub fn any_null(columns: &[ArrayRef], rows: usize) -> Vec<bool> {
    let mut found = vec![false; rows];
    for nulls in columns.iter().filter_map(|column| column.logical_nulls()) {
        for (row, found) in found.iter_mut().enumerate() {
            *found |= nulls.is_null(row);
        }
    }
    found
}

/// Distinct keys, numbered in order of first occurrence.
#[derive(Default)]
pub struct KeyIds {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<Place>,
}

/// Where a key lies: its number, and so much of its hash that the table grows without the keys.
#[derive(Clone, Copy)]
struct Place {
    id: u32,
    hash: u32,
}

impl Place {
    /// The hash by which the table finds it, which looks at both ends.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) | u64::from(hash) << u32::BITS
    }
}

impl KeyIds {
    /// Number of distinct keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of memory.
    pub fn byte_size(&self) -> usize {
        self.bytes.len()
            + self.ends.len() * size_of::<usize>()
            + self.table.capacity() * (size_of::<Place>() + 1)
    }

    /// Writes the keys.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.len() as u64);
        (0..self.len() as u32).for_each(|id| out.blob(self.key(id)));
    }

    /// Reads what [`KeyIds::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub fn restore(from: &mut StateReader<'_>) -> Result<Self> {
        let mut keys = KeyIds::default();
        for _ in 0..from.count()? {
            keys.insert(from.blob()?)?;
        }
        Ok(keys)
    }

    /// The key with number `id`.
    pub fn key(&self, id: u32) -> &[u8] {
        key_at(&self.bytes, &self.ends, id)
    }

    /// The number of `key`, if it is known.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        self.find_hashed(key, hash_of(key))
    }

    fn find_hashed(&self, key: &[u8], hash: u32) -> Option<u32> {
        let same = |place: &Place| place.hash == hash && self.key(place.id) == key;
        let place = self.table.find(Place::spread(hash), same);
        place.map(|place| place.id)
    }

    /// The number of `key`, a new one if it is not known, and whether it is new.
    ///
    /// # Errors
    /// `LimitExceeded` above 2^32 keys.
    pub fn insert(&mut self, key: &[u8]) -> Result<(u32, bool)> {
        let hash = hash_of(key);
        if let Some(id) = self.find_hashed(key, hash) {
            return Ok((id, false));
        }
        let id = u32::try_from(self.len()).map_err(|_| Error::limit("more than 2^32 keys"))?;
        let place = Place { id, hash };
        self.table
            .insert_unique(Place::spread(hash), place, |place| {
                Place::spread(place.hash)
            });
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        Ok((id, true))
    }
}

fn hash_of(key: &[u8]) -> u32 {
    let hash = foldhash::fast::FixedState::with_seed(0).hash_one(key);
    (hash ^ hash >> u32::BITS) as u32
}

fn key_at<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    let first = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[first..ends[id]]
}
