//! Rows told apart by codes of their texts and bits of their numbers, from batch to batch.
//!
//! ```text
//! name   codes 0 1 0 0     key  0 | 7 << 32   is new
//! place  codes 7 7 8 7          1 | 7 << 32   is new
//!                               0 | 8 << 32   is new
//!                               0 | 7 << 32   came before: the row equals an earlier one
//! ```
//! Equal rows may have different keys, as a dictionary may hold a text twice.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::error::Result;
use tersecades_columnar::input::Lanes;

use crate::operator::window_aggregate::table::GroupTable;

/// Rows after which keys that hardly ever repeat are no longer made.
const TRIED_ROWS: usize = 1 << 20;

/// One in how many rows must have a key that came before, for keys to pay.
const ROWS_PER_KNOWN: usize = 4;

/// How many times as many texts as rows a dictionary may hold to be compared with the one before.
const TEXTS_PER_ROW_MAX: usize = 8;

/// The code of a null.
const NULL: u64 = u32::MAX as u64;

/// The keys that came before.
#[derive(Debug, Default)]
pub struct CodedRows {
    types: Vec<DataType>,
    /// Values of the columns that are dictionaries.
    dictionaries: Vec<Option<ArrayRef>>,
    table: GroupTable,
    keys: Vec<u64>,
    ids: Vec<u32>,
    rows: usize,
    known_rows: usize,
}

/// The keys of some rows, numbered in order of first occurrence.
#[derive(Debug)]
pub struct Numbered<'c> {
    /// The number of each row's key.
    pub ids: &'c [u32],
    /// How many keys were known before; none where numbers begin anew.
    pub known: usize,
    /// The first row of each key that is new.
    pub fresh: Vec<u32>,
}

impl CodedRows {
    /// The rows of `rows` whose keys did not come before, in order; rows that are left out equal
    /// earlier ones. `None` where columns have no codes, or keys do not pay.
    ///
    /// # Errors
    /// What casting codes says.
    pub fn fresh(&mut self, rows: &RecordBatch) -> Result<Option<Vec<u32>>> {
        Ok(self.numbered(rows)?.map(|numbered| numbered.fresh))
    }

    /// The numbers of the keys of `rows`; `None` as for [`CodedRows::fresh`].
    ///
    /// # Errors
    /// What casting codes says.
    pub fn numbered(&mut self, rows: &RecordBatch) -> Result<Option<Numbered<'_>>> {
        if self.rows >= TRIED_ROWS && self.known_rows < self.rows / ROWS_PER_KNOWN {
            self.clear();
            return Ok(None);
        }
        let Some(layout) = Layout::of(rows) else {
            self.clear();
            return Ok(None);
        };
        if !self.goes_on(rows) {
            self.clear();
            self.table = GroupTable::of_words(layout.words);
        }
        self.types = types(rows).cloned().collect();
        self.dictionaries = dictionaries(rows).map(|values| values.cloned()).collect();
        self.keys.clear();
        self.keys.resize(rows.num_rows() * layout.words, 0);
        layout.write(rows, &mut self.keys)?;
        let known = self.table.group_count();
        self.ids.clear();
        self.table.assign(&self.keys, &mut self.ids);
        let fresh = first_rows(&self.ids, known);
        self.rows += rows.num_rows();
        self.known_rows += rows.num_rows() - fresh.len();
        let ids = &self.ids;
        Ok(Some(Numbered { ids, known, fresh }))
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        *self = CodedRows {
            rows: self.rows,
            known_rows: self.known_rows,
            ..CodedRows::default()
        };
    }

    /// Bytes of memory.
    pub fn byte_size(&self) -> usize {
        self.table.byte_size()
            + self.keys.capacity() * size_of::<u64>()
            + self.ids.capacity() * size_of::<u32>()
    }

    /// Whether keys of `rows` mean what those before them do.
    fn goes_on(&self, rows: &RecordBatch) -> bool {
        let same_types = self.types.iter().eq(types(rows));
        let most = rows.num_rows().saturating_mul(TEXTS_PER_ROW_MAX);
        let mut pairs = self.dictionaries.iter().zip(dictionaries(rows));
        same_types
            && pairs.all(|pair| match pair {
                (None, None) => true,
                (Some(known), Some(values)) => {
                    Arc::ptr_eq(known, values)
                        || known.len() <= values.len().min(most)
                            && *known == values.slice(0, known.len())
                }
                _ => false,
            })
    }
}

/// The first row of each key with a number from `known` on, which are in order of first occurrence.
pub fn first_rows(numbers: &[u32], known: usize) -> Vec<u32> {
    let mut first = Vec::new();
    for (row, number) in numbers.iter().enumerate() {
        if *number as usize == known + first.len() {
            first.push(row as u32);
        }
    }
    first
}

fn types(rows: &RecordBatch) -> impl Iterator<Item = &DataType> {
    rows.columns().iter().map(|column| column.data_type())
}

fn dictionaries(rows: &RecordBatch) -> impl Iterator<Item = Option<&ArrayRef>> {
    let columns = rows.columns().iter();
    columns.map(|column| column.as_any_dictionary_opt().map(|coded| coded.values()))
}

/// Where in a key each column is.
struct Layout {
    /// Words of a key.
    words: usize,
    /// Word and lowest bit of each column.
    places: Vec<(usize, u32)>,
    /// The word of bits that say which numbers are null.
    null_word: Option<usize>,
}

impl Layout {
    /// The layout for columns as those of `rows`; `None` where one has neither codes nor at most
    /// 64 bits.
    fn of(rows: &RecordBatch) -> Option<Self> {
        let (mut words, mut half, mut numbers) = (0, None, 0);
        let mut places = Vec::with_capacity(rows.num_columns());
        for column in rows.columns() {
            if column.as_any_dictionary_opt().is_some() {
                match half.take() {
                    Some(word) => places.push((word, 32)),
                    None => {
                        places.push((words, 0));
                        half = Some(words);
                        words += 1;
                    }
                }
                continue;
            }
            let short = match lanes(column.as_ref()) {
                Some(Lanes::U8(_) | Lanes::U16(_) | Lanes::U32(_) | Lanes::U64(_)) => true,
                Some(_) => false,
                None => *column.data_type() == DataType::Boolean,
            };
            if !short {
                return None;
            }
            places.push((words, 0));
            (words, numbers) = (words + 1, numbers + 1);
        }
        if words == 0 || numbers > u64::BITS {
            return None;
        }
        let null_word = (numbers > 0).then_some(words);
        Some(Layout {
            words: words + usize::from(null_word.is_some()),
            places,
            null_word,
        })
    }

    /// Writes the key of each row into `keys`, which are zeros.
    fn write(&self, rows: &RecordBatch, keys: &mut [u64]) -> Result<()> {
        let mut number = 0;
        for (column, (word, shift)) in rows.columns().iter().zip(&self.places) {
            if let Some(coded) = column.as_any_dictionary_opt() {
                let codes = cast(coded.keys(), &DataType::UInt32)?;
                self.write_codes(codes.as_primitive::<UInt32Type>(), (*word, *shift), keys);
                continue;
            }
            self.write_bits(column, *word, keys);
            if let (Some(nulls), Some(word)) = (column.nulls(), self.null_word) {
                let keys = keys.chunks_exact_mut(self.words);
                for (key, valid) in keys.zip(nulls.iter()) {
                    key[word] |= u64::from(!valid) << number;
                }
            }
            number += 1;
        }
        Ok(())
    }

    fn write_codes(&self, codes: &UInt32Array, (word, shift): (usize, u32), keys: &mut [u64]) {
        let keys = keys.chunks_exact_mut(self.words).zip(codes.values());
        match codes.nulls() {
            None => keys.for_each(|(key, code)| key[word] |= u64::from(*code) << shift),
            Some(nulls) => {
                for ((key, code), valid) in keys.zip(nulls.iter()) {
                    let code = if valid { u64::from(*code) } else { NULL };
                    key[word] |= code << shift;
                }
            }
        }
    }

    fn write_bits(&self, column: &ArrayRef, word: usize, keys: &mut [u64]) {
        let keys = keys.chunks_exact_mut(self.words);
        match lanes(column.as_ref()) {
            Some(lanes) => {
                let write = |(row, key): (usize, &mut [u64])| key[word] = lanes.bits(row);
                keys.enumerate().for_each(write);
            }
            None => {
                let write = |(key, bit): (&mut [u64], bool)| key[word] = u64::from(bit);
                keys.zip(column.as_boolean().values().iter())
                    .for_each(write);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use arrow_array::types::{ArrowDictionaryKeyType, Int8Type, Int32Type};
    use arrow_array::{
        BooleanArray, DictionaryArray, Float64Array, Int32Array, PrimitiveArray, StringArray,
    };
    use arrow_buffer::ArrowNativeType;
    use tersecades_testkit::random::Random;

    use super::*;
    use crate::operator::row::keys::RowKeys;
    use crate::operator::row::shape::take;

    /// A null for one value in nine.
    fn maybe<T>(random: &mut Random, value: T) -> Option<T> {
        (!random.one_in(9)).then_some(value)
    }

    /// Texts of which some are doubled, null, or not in any row.
    fn texts(random: &mut Random, len: usize) -> ArrayRef {
        let texts = (0..len).map(|_| {
            let number = random.below(7);
            maybe(random, format!("text {number}"))
        });
        Arc::new(texts.collect::<StringArray>())
    }

    fn coded<K: ArrowDictionaryKeyType>(
        random: &mut Random,
        values: &ArrayRef,
        rows: usize,
    ) -> ArrayRef {
        let keys = (0..rows).map(|_| {
            let key = K::Native::usize_as(random.below(values.len()));
            maybe(random, key)
        });
        let keys: PrimitiveArray<K> = keys.collect();
        Arc::new(DictionaryArray::new(keys, Arc::clone(values)))
    }

    fn column(random: &mut Random, kind: usize, values: &[ArrayRef; 2], rows: usize) -> ArrayRef {
        match kind % 5 {
            0 => coded::<Int8Type>(random, &values[0], rows),
            1 => coded::<Int32Type>(random, &values[1], rows),
            2 => {
                let floats = (0..rows).map(|_| {
                    let float = *random.pick(&[0.0, -0.0, f64::NAN, -f64::NAN, 1.5]);
                    maybe(random, float)
                });
                Arc::new(floats.collect::<Float64Array>())
            }
            3 => {
                let bits = (0..rows).map(|_| {
                    let bit = random.one_in(2);
                    maybe(random, bit)
                });
                Arc::new(bits.collect::<BooleanArray>())
            }
            _ => {
                let numbers = (0..rows).map(|_| {
                    let number = random.below(3) as i32 - 1;
                    maybe(random, number)
                });
                Arc::new(numbers.collect::<Int32Array>())
            }
        }
    }

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let names = (0..columns.len()).map(|index| format!("c{index}"));
        let columns = names
            .zip(columns)
            .map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    #[test]
    fn rows_left_out_equal_earlier_ones() {
        let mut random = Random::new(0x5eed);
        for columns in 1..=9 {
            for first in 0..5 {
                let mut coded = CodedRows::default();
                let mut seen = HashSet::new();
                let mut values = [texts(&mut random, 9), texts(&mut random, 5)];
                let mut left_out = 0;
                for rows in [400, 0, 1, 3, 400, 400, 200] {
                    if rows == 3 {
                        // Grown at the end, and another one.
                        let more = texts(&mut random, 4);
                        let parts: [&dyn Array; 2] = [&values[0], &more];
                        let grown = arrow_select::concat::concat(&parts).unwrap();
                        values = [grown, texts(&mut random, 6)];
                    }
                    let kinds = (0..columns).map(|index| first + index);
                    let all = kinds.map(|kind| column(&mut random, kind, &values, rows));
                    let all = batch(all.collect());
                    let keys = RowKeys::unordered(types(&all).cloned()).unwrap();
                    let fresh = coded.fresh(&all).unwrap().unwrap();
                    left_out += rows - fresh.len();
                    // What is left when equal rows are dropped one by one, before and after.
                    let new_of = |rows: &RecordBatch, seen: &mut HashSet<Vec<u8>>| {
                        let found = keys.of(rows.columns()).unwrap();
                        let new = found.iter().filter(|key| seen.insert(key.data().to_vec()));
                        new.map(|key| key.data().to_vec()).collect::<Vec<_>>()
                    };
                    let expected = new_of(&all, &mut seen.clone());
                    let found = new_of(&take(&all, fresh).unwrap(), &mut seen);
                    assert_eq!(
                        found, expected,
                        "{columns} columns from {first}, {rows} rows"
                    );
                }
                assert!(columns > 3 || left_out > 500, "{left_out} of {columns}");
            }
        }
    }

    #[test]
    fn rows_without_codes_or_repeats_have_no_keys() {
        let mut coded = CodedRows::default();
        let plain: ArrayRef = Arc::new(StringArray::from(vec!["a", "a"]));
        assert_eq!(coded.fresh(&batch(vec![plain])).unwrap(), None);
        let rows = TRIED_ROWS / 4;
        for start in [0, 1, 2, 3] {
            let numbers = (0..rows).map(|row| (start * rows + row) as i32);
            let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers));
            let fresh = coded.fresh(&batch(vec![numbers])).unwrap();
            assert_eq!(fresh.map(|fresh| fresh.len()), Some(rows));
        }
        let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert_eq!(coded.fresh(&batch(vec![one])).unwrap(), None);
        assert_eq!(coded.byte_size(), 0);
    }
}
