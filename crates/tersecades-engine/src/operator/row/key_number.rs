//! Distinct keys numbered, batch by batch: numbers as words, keys of other types as byte strings.
//!
//! ```text
//! user    7  9  7  null        words   7 | 0    9 | 0    7 | 0    0 | 1
//!                              numbers   0        1        0        2
//! ```

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::input::Lanes;
use tersecades_columnar::types::{Physical, float_key, logical_type};
use tersecades_columnar::values::float_of_bits;

use crate::operator::window_aggregate::direct::{AXES, Span};
use crate::operator::window_aggregate::keys::{KeyColumn, KeyLayout};
use crate::operator::window_aggregate::packer::PackedKeys;
use crate::operator::window_aggregate::table::GroupTable;
use crate::runtime::state::{StateReader, StateWriter};

use super::keys::{KeyIds, RowKeys, of_type};

/// The number of no key.
pub const ABSENT: u32 = u32::MAX;

/// Most columns whose nulls have a bit in one word.
const COLUMNS_MAX: usize = u64::BITS as usize;

/// Keys at hand for each one that is: cells by direct address take as much memory as slots, and are
/// looked at once.
const AT_HAND: usize = 2;

/// Keys numbered in order of first occurrence.
pub struct KeyNumbers {
    types: Vec<DataType>,
    form: Form,
}

enum Form {
    /// No column is text, and there is one.
    Words {
        layout: KeyLayout,
        table: GroupTable,
        /// Whether cells by direct address may serve.
        covers: bool,
    },
    Bytes {
        keys: RowKeys,
        ids: KeyIds,
    },
}

impl KeyNumbers {
    /// No keys yet, of columns of these types; nulls equal each other.
    ///
    /// # Errors
    /// `Unsupported` for types without an order.
    pub fn new(types: impl IntoIterator<Item = DataType>) -> Result<Self> {
        let types: Vec<DataType> = types.into_iter().map(|kind| logical_type(&kind)).collect();
        let is_number = |kind: &DataType| Physical::of(kind).is_ok_and(|p| p != Physical::Text);
        let fits = (1..=COLUMNS_MAX).contains(&types.len()) && types.iter().all(is_number);
        let form = if fits {
            let columns = types.iter().enumerate();
            let columns = columns.map(|(slot, kind)| (String::new(), kind.clone(), slot));
            let layout = KeyLayout::new(&columns.collect::<Vec<_>>())?;
            let table = GroupTable::new(&layout);
            Form::Words {
                layout,
                table,
                covers: true,
            }
        } else {
            let keys = RowKeys::unordered(types.iter().cloned())?;
            let ids = KeyIds::default();
            Form::Bytes { keys, ids }
        };
        Ok(KeyNumbers { types, form })
    }

    /// Whether keys are words, which are told apart faster than codes of texts.
    pub fn is_words(&self) -> bool {
        matches!(self.form, Form::Words { .. })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Words { table, .. } => table.group_count(),
            Form::Bytes { ids, .. } => ids.len(),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    pub fn byte_size(&self) -> usize {
        match &self.form {
            Form::Words { table, .. } => table.byte_size(),
            Form::Bytes { ids, .. } => ids.byte_size(),
        }
    }

    /// The number of the key of each of `rows` rows with these columns; new keys get the next.
    ///
    /// # Errors
    /// `LimitExceeded` above 2^32 keys; what casting says.
    pub fn assign(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        match &mut self.form {
            Form::Words {
                layout,
                table,
                covers,
            } => {
                if table.group_count() + rows >= ABSENT as usize {
                    return Err(Error::limit("more than 2^32 keys"));
                }
                let words = Words::of(columns, &self.types, layout, rows)?;
                let at_hand = AT_HAND * (table.group_count() + rows);
                if *covers
                    && !table.cover(layout, words.spans(layout), at_hand)
                    && table.has_cells()
                {
                    // Keys that lie further and further apart would have cells made in vain.
                    *covers = false;
                    table.uncover();
                }
                let mut numbers = Vec::with_capacity(rows);
                table.assign_packed(words.packed(), &mut numbers);
                Ok(numbers)
            }
            Form::Bytes { ids, .. } if columns.is_empty() => Ok(vec![ids.insert(&[])?.0; rows]),
            Form::Bytes { keys, ids } => {
                let keys = keys.of(columns)?;
                let numbers = keys.iter().map(|key| Ok(ids.insert(key.data())?.0));
                numbers.collect()
            }
        }
    }

    /// The number of the key of each of `rows` rows with these columns, [`ABSENT`] for those that
    /// are not known.
    ///
    /// # Errors
    /// What casting says.
    pub fn find(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        match &self.form {
            Form::Words { layout, table, .. } => {
                let words = Words::of(columns, &self.types, layout, rows)?;
                let mut numbers = Vec::with_capacity(rows);
                table.find_packed(words.packed(), &mut numbers);
                Ok(numbers)
            }
            Form::Bytes { ids, .. } if columns.is_empty() => {
                Ok(vec![ids.find(&[]).unwrap_or(ABSENT); rows])
            }
            Form::Bytes { keys, ids } => {
                let keys = keys.of(columns)?;
                let number = |key: &[u8]| ids.find(key).unwrap_or(ABSENT);
                Ok(keys.iter().map(|key| number(key.data())).collect())
            }
        }
    }

    /// How two keys are ordered, by their numbers; nulls are last.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        match &self.form {
            Form::Words { layout, table, .. } => {
                let (a, b) = (table.key(a as usize), table.key(b as usize));
                let part = |key, column| layout.ordered(key, column, None);
                let mut columns = (0..self.types.len()).map(|at| part(a, at).cmp(&part(b, at)));
                let differs = columns.find(|order| order.is_ne());
                differs.unwrap_or(Ordering::Equal)
            }
            Form::Bytes { ids, .. } => ids.key(a).cmp(ids.key(b)),
        }
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        match &mut self.form {
            Form::Words {
                layout,
                table,
                covers,
            } => (*table, *covers) = (GroupTable::new(layout), true),
            Form::Bytes { ids, .. } => *ids = KeyIds::default(),
        }
    }

    /// Writes the keys.
    pub fn snapshot(&self, out: &mut StateWriter) {
        match &self.form {
            Form::Words { table, .. } => table.snapshot(out),
            Form::Bytes { ids, .. } => ids.snapshot(out),
        }
    }

    /// Reads what [`KeyNumbers::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not hold it.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        match &mut self.form {
            Form::Words { layout, table, .. } => {
                let words: Vec<u64> = from.list(StateReader::u64)?;
                let keys = words.chunks_exact(layout.words);
                let (known, rest) = (keys.len(), keys.remainder().len());
                for key in keys {
                    table.assign_one(key);
                }
                match rest == 0 && table.group_count() == known {
                    true => Ok(()),
                    false => Err(Error::corrupt("a snapshot has a key twice")),
                }
            }
            Form::Bytes { ids, .. } => {
                *ids = KeyIds::restore(from)?;
                Ok(())
            }
        }
    }
}

/// Keys of rows, packed.
struct Words {
    keys: Vec<u64>,
    /// Words of each; that of nulls is there where some are.
    width: usize,
    /// The least and the greatest part of the first columns.
    ends: [(u64, u64); AXES],
}

impl Words {
    /// The keys of `rows` rows with `columns`, which are made those of `types`.
    fn of(
        columns: &[ArrayRef],
        types: &[DataType],
        layout: &KeyLayout,
        rows: usize,
    ) -> Result<Self> {
        let columns = columns.iter().zip(types);
        let columns = columns.map(|(column, data_type)| of_type(column, data_type));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let has_nulls = columns.iter().any(|column| column.null_count() > 0);
        let width = match has_nulls {
            true => layout.words,
            false => layout.words_without_nulls(),
        };
        let mut words = Words {
            keys: vec![0; rows * width],
            width,
            ends: [(0, 0); AXES],
        };
        for (at, (column, place)) in columns.iter().zip(&layout.columns).enumerate() {
            let ends = words.write(column, place)?;
            if let Some(known) = words.ends.get_mut(at) {
                *known = ends;
            }
            let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
            if let (Some(nulls), Some(word)) = (nulls, layout.null_word()) {
                let keys = words.keys.chunks_exact_mut(width).zip(nulls.iter());
                for (key, _) in keys.filter(|(_, is_valid)| !is_valid) {
                    place.clear(key);
                    key[word] |= 1 << at;
                }
            }
        }
        Ok(words)
    }

    fn packed(&self) -> PackedKeys<'_> {
        PackedKeys {
            keys: &self.keys,
            words: self.width,
        }
    }

    /// What the parts of the columns span, where there are few columns.
    fn spans(&self, layout: &KeyLayout) -> Option<[Span; AXES]> {
        let spans = self
            .ends
            .map(|(least, greatest)| Span::of_ends(least, greatest));
        let is_counted = |column: &KeyColumn| matches!(column.physical(), Physical::Integer { .. });
        let few = layout.columns.len() <= AXES && !self.keys.is_empty();
        (few && layout.columns.iter().all(is_counted)).then_some(spans)
    }

    /// Writes what `column` says into its `place` in the keys; the ends of its parts.
    fn write(&mut self, column: &ArrayRef, place: &KeyColumn) -> Result<(u64, u64)> {
        let physical = place.physical();
        let flip = physical.flip();
        let float = |bits: u64, bytes: u8| float_key(float_of_bits(bits, bytes));
        let Some(lanes) = lanes(column.as_ref()) else {
            let bits = column.as_boolean().values();
            return Ok(self.put(bits.iter().map(u64::from), place));
        };
        Ok(match (lanes, physical) {
            (Lanes::U32(lanes), Physical::Float { bytes }) => self.put(
                lanes.iter().map(|bits| float(u64::from(*bits), bytes)),
                place,
            ),
            (Lanes::U64(lanes), Physical::Float { bytes }) => {
                self.put(lanes.iter().map(|bits| float(*bits, bytes)), place)
            }
            (Lanes::U8(lanes), _) => self.put(lanes.iter().map(|v| u64::from(*v) ^ flip), place),
            (Lanes::U16(lanes), _) => self.put(lanes.iter().map(|v| u64::from(*v) ^ flip), place),
            (Lanes::U32(lanes), _) => self.put(lanes.iter().map(|v| u64::from(*v) ^ flip), place),
            (Lanes::U64(lanes), _) => self.put(lanes.iter().map(|v| *v ^ flip), place),
            (Lanes::Wide(lanes), _) => {
                let keys = self.keys.chunks_exact_mut(self.width);
                keys.zip(lanes)
                    .for_each(|(key, value)| place.put_wide(*value, key));
                (0, 0)
            }
            (Lanes::Text { .. } | Lanes::Codes { .. }, _) => {
                let message = format!("a key of type {} in words", column.data_type());
                return Err(Error::internal(message));
            }
        })
    }

    fn put(&mut self, parts: impl Iterator<Item = u64>, place: &KeyColumn) -> (u64, u64) {
        let (mut least, mut greatest) = (u64::MAX, 0);
        for (key, part) in self.keys.chunks_exact_mut(self.width).zip(parts) {
            (least, greatest) = (least.min(part), greatest.max(part));
            place.put(part, key);
        }
        (least.min(greatest), greatest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array,
        Int64Array, StringArray, TimestampMillisecondArray, UInt16Array,
    };
    use tersecades_testkit::random::Random;

    use super::*;

    fn values<T>(
        random: &mut Random,
        rows: usize,
        value: impl Fn(&mut Random) -> T,
    ) -> Vec<Option<T>> {
        let nulls = *random.pick(&[3, 50, 1_000_000]);
        (0..rows)
            .map(|_| (!random.one_in(nulls)).then(|| value(random)))
            .collect()
    }

    /// A column of some kind, of values about `centre`, `spread` apart.
    fn column(
        random: &mut Random,
        kind: usize,
        rows: usize,
        (centre, spread): (i64, i64),
    ) -> ArrayRef {
        let near = |random: &mut Random| centre.wrapping_add(random.between(-spread, spread));
        let float = |random: &mut Random| {
            let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY];
            if random.one_in(5) {
                *random.pick(&special)
            } else {
                near(random) as f64
            }
        };
        match kind {
            0 => Arc::new(Int64Array::from(values(random, rows, near))),
            1 => Arc::new(Int32Array::from(values(random, rows, |r| near(r) as i32))),
            2 => Arc::new(UInt16Array::from(values(random, rows, |r| near(r) as u16))),
            3 => Arc::new(TimestampMillisecondArray::from(values(random, rows, near))),
            4 => Arc::new(Float64Array::from(values(random, rows, float))),
            5 => Arc::new(Float32Array::from(values(random, rows, |r| {
                float(r) as f32
            }))),
            6 => Arc::new(BooleanArray::from(values(random, rows, |r| r.one_in(2)))),
            7 => Arc::new(Int8Array::from(values(random, rows, |r| near(r) as i8))),
            8 => {
                let wide = |r: &mut Random| i128::from(near(r)) << r.below(3);
                Arc::new(Decimal128Array::from(values(random, rows, wide)))
            }
            _ => Arc::new(StringArray::from(values(random, rows, |r| {
                near(r).to_string()
            }))),
        }
    }

    /// Keys of the rows as byte strings.
    fn known_keys(keys: &RowKeys, columns: &[ArrayRef]) -> Vec<Vec<u8>> {
        let keys = keys.of(columns).unwrap();
        keys.iter().map(|key| key.data().to_vec()).collect()
    }

    #[test]
    fn numbers_are_those_of_keys_one_by_one() {
        let mut random = Random::new(0x6e75);
        for turn in 0..120 {
            let kinds: Vec<usize> = (0..1 + turn % 4).map(|_| random.below(10)).collect();
            let mut spread = *random.pick(&[3, 900, 1 << 20, i64::MAX / 4]);
            let mut centre = *random.pick(&[0, -7, i64::MAX - 5]);
            let types = kinds
                .iter()
                .map(|kind| column(&mut random, *kind, 0, (0, 1)));
            let types: Vec<DataType> = types.map(|column| column.data_type().clone()).collect();
            let order = RowKeys::unordered(types.clone()).unwrap();
            let mut numbers = KeyNumbers::new(types).unwrap();
            let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
            assert_eq!(numbers.is_words(), !kinds.contains(&9));
            for rows in [0, 1, 40, 3_000, 3_000, 9] {
                let make = |random: &mut Random| -> Vec<ArrayRef> {
                    let columns = kinds.iter();
                    columns
                        .map(|kind| column(random, *kind, rows, (centre, spread)))
                        .collect()
                };
                let (known, others) = (make(&mut random), make(&mut random));
                let wanted: Vec<u32> = known_keys(&order, &known)
                    .into_iter()
                    .map(|key| {
                        let next = model.len() as u32;
                        *model.entry(key).or_insert(next)
                    })
                    .collect();
                assert_eq!(numbers.assign(&known, rows).unwrap(), wanted, "{kinds:?}");
                assert_eq!(numbers.len(), model.len());
                let keys = known_keys(&order, &others).into_iter();
                let wanted: Vec<u32> = keys
                    .map(|key| model.get(&key).copied().unwrap_or(ABSENT))
                    .collect();
                assert_eq!(numbers.find(&others, rows).unwrap(), wanted, "{kinds:?}");
                // Spans that grow, or move away.
                spread = spread
                    .saturating_mul(*random.pick(&[1, 4]))
                    .min(i64::MAX / 4);
                centre = centre.wrapping_add(*random.pick(&[0, spread, i64::MAX / 2]));
            }
            let mut sorted: Vec<&Vec<u8>> = model.keys().collect();
            sorted.sort();
            for pair in sorted.windows(2) {
                let order = numbers.compare(model[pair[0]], model[pair[1]]);
                assert_eq!(order, Ordering::Less, "{kinds:?}");
            }
            let mut out = StateWriter::default();
            numbers.snapshot(&mut out);
            let bytes = out.seal();
            let mut again = KeyNumbers::new(numbers.types.clone()).unwrap();
            again
                .restore(&mut StateReader::open(&bytes).unwrap())
                .unwrap();
            assert_eq!(again.len(), model.len());
            let rows = 500;
            let columns = kinds
                .iter()
                .map(|kind| column(&mut random, *kind, rows, (centre, 9)));
            let columns: Vec<ArrayRef> = columns.collect();
            let found = again.find(&columns, rows).unwrap();
            assert_eq!(found, numbers.find(&columns, rows).unwrap());
        }
    }

    #[test]
    fn many_keys_are_told_apart_by_slots_and_by_cells() {
        let rows = 150_000;
        for (step, base) in [(1, 0), (1 << 40, 9), (7, -1_000_000), (9, i64::MIN)] {
            for columns in 1..=3 {
                let key = |row: i64, at: usize| match at {
                    0 => base + row * step,
                    at => row % (3 + at as i64),
                };
                let column = |first: i64, at| {
                    let values = (first..first + rows).map(|row| key(row, at));
                    Arc::new(Int64Array::from_iter_values(values)) as ArrayRef
                };
                let types = vec![DataType::Int64; columns];
                let mut numbers = KeyNumbers::new(types).unwrap();
                for first in [0, rows / 2, 0] {
                    let of_rows: Vec<ArrayRef> = (0..columns).map(|at| column(first, at)).collect();
                    let wanted: Vec<u32> = (first as u32..(first + rows) as u32).collect();
                    assert!(numbers.assign(&of_rows, rows as usize).unwrap() == wanted);
                    assert!(numbers.find(&of_rows, rows as usize).unwrap() == wanted);
                }
                let off: Vec<ArrayRef> = (0..columns).map(|at| column(rows * 2, at)).collect();
                let found = numbers.find(&off, rows as usize).unwrap();
                assert!(found.iter().all(|number| *number == ABSENT));
            }
        }
    }
}
