//! The start of a sort key as one number, for many rows at once.
//!
//! ```text
//! rtt desc nulls last, time     0 | !rtt, 32 bits | 0 | time, 64 bits | zeros
//!                               1 | zeros         | 0 | time, 64 bits | zeros    rtt is null
//! ```
//! Rows that come later in an order have no smaller word. Of columns that find no room only the
//! start counts, or nothing.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::arrow::lanes;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::input::Lanes;
use tersecades_columnar::types::{Physical, float_key, logical_type};
use tersecades_columnar::values::float_of_bits;

use super::keys::SortOrder;

/// Most digits of decimals that 64 bits hold.
const DIGITS_MAX: u8 = 18;

/// The highest bit: whether a row is among those that nulls set apart.
const FLAG: u128 = 1 << (u128::BITS - 1);

/// Makes words of rows.
#[derive(Debug)]
pub(crate) struct OrderWords {
    columns: Vec<Column>,
    is_whole: bool,
}

/// One column of the order, and where in a word it is.
#[derive(Debug)]
struct Column {
    data_type: DataType,
    physical: Physical,
    order: SortOrder,
    /// Bits of its values.
    bits: u32,
    /// Bits before it.
    shift: u32,
}

impl OrderWords {
    /// Words for columns of these types, the most significant first.
    pub(crate) fn new(columns: impl IntoIterator<Item = (DataType, SortOrder)>) -> Self {
        let mut words = OrderWords {
            columns: Vec::new(),
            is_whole: true,
        };
        let mut shift = 0;
        for (data_type, order) in columns {
            let data_type = logical_type(&data_type);
            let physical = Physical::of(&data_type).ok();
            let Some(physical) = physical.filter(|_| shift < u128::BITS) else {
                words.is_whole = false;
                break;
            };
            let bits = match physical {
                Physical::Text => u128::BITS,
                Physical::Wide | Physical::Float { .. } => u64::BITS,
                _ => physical.lane_bytes() as u32 * 8,
            };
            let is_cut = match data_type {
                DataType::Decimal128(digits, _) => digits > DIGITS_MAX,
                _ => physical == Physical::Text,
            };
            words.columns.push(Column {
                data_type,
                physical,
                order,
                bits,
                shift,
            });
            shift += bits + 1;
            words.is_whole &= !is_cut && shift <= u128::BITS;
            if is_cut {
                // Rows whose starts are equal are not equal here.
                break;
            }
        }
        words
    }

    /// Whether rows of one word are equal in the order.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Sets `words` to those of `rows` rows with these columns.
    ///
    /// # Errors
    /// What casting says.
    pub(crate) fn of(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        words: &mut Vec<u128>,
    ) -> Result<()> {
        words.clear();
        words.resize(rows, 0);
        for (column, values) in self.columns.iter().zip(columns) {
            column.add(values, words)?;
        }
        Ok(())
    }
}

impl Column {
    /// Adds what the values say to `words`.
    fn add(&self, values: &ArrayRef, words: &mut [u128]) -> Result<()> {
        if let Some(coded) = values.as_any_dictionary_opt() {
            let mut known = vec![0; coded.values().len()];
            self.add(coded.values(), &mut known)?;
            let codes = cast(coded.keys(), &DataType::UInt32)?;
            let codes = codes.as_primitive::<UInt32Type>();
            let add = |(word, code): (&mut u128, &u32)| {
                *word |= known.get(*code as usize).copied().unwrap_or(0);
            };
            words.iter_mut().zip(codes.values()).for_each(add);
            self.set_nulls(coded.keys(), words);
            return Ok(());
        }
        if *values.data_type() != self.data_type {
            return self.add(&cast(values, &self.data_type)?, words);
        }
        if *values.data_type() == DataType::Boolean {
            let bits = values.as_boolean().values();
            self.write(bits.iter().map(u128::from), words);
        } else {
            let lanes = lanes(values.as_ref());
            let message = || Error::internal(format!("{} has no lanes", self.data_type));
            self.write_lanes(lanes.ok_or_else(message)?, words);
        }
        self.set_nulls(values.as_ref(), words);
        Ok(())
    }

    fn write_lanes(&self, lanes: Lanes<'_>, words: &mut [u128]) {
        let float = |bits: u64, bytes| u128::from(float_key(float_of_bits(bits, bytes)));
        match (lanes, self.physical) {
            (Lanes::U32(lanes), Physical::Float { bytes }) => {
                let keys = lanes.iter().map(|bits| float(u64::from(*bits), bytes));
                self.write(keys, words);
            }
            (Lanes::U64(lanes), Physical::Float { bytes }) => {
                self.write(lanes.iter().map(|bits| float(*bits, bytes)), words);
            }
            (Lanes::U8(lanes), _) => self.write_integers(lanes, words),
            (Lanes::U16(lanes), _) => self.write_integers(lanes, words),
            (Lanes::U32(lanes), _) => self.write_integers(lanes, words),
            (Lanes::U64(lanes), _) => self.write_integers(lanes, words),
            (Lanes::Wide(lanes), _) => {
                let near = |v: &i128| (*v).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                let keys = lanes.iter().map(|v| u128::from(near(v) as u64 ^ 1 << 63));
                self.write(keys, words);
            }
            (Lanes::Text { offsets, bytes }, _) => {
                let text = |ends: &[i32; 2]| start_of(&bytes[ends[0] as usize..ends[1] as usize]);
                self.write(offsets.array_windows().map(text), words);
            }
            (Lanes::Codes { .. }, _) => {}
        }
    }

    fn write_integers<T: Copy + Into<u64>>(&self, lanes: &[T], words: &mut [u128]) {
        let flip = self.physical.flip();
        self.write(
            lanes.iter().map(|lane| u128::from((*lane).into() ^ flip)),
            words,
        );
    }

    /// Adds `keys`, whose lowest bits count.
    fn write(&self, keys: impl Iterator<Item = u128>, words: &mut [u128]) {
        let up = u128::BITS - self.bits;
        let turned = if self.order.descending { u128::MAX } else { 0 };
        let flag = if self.order.nulls_first { FLAG } else { 0 };
        for (word, key) in words.iter_mut().zip(keys) {
            let key = (key ^ turned) << up;
            *word |= (flag | key >> 1) >> self.shift;
        }
    }

    /// Puts nulls before or behind all values.
    fn set_nulls(&self, values: &dyn Array, words: &mut [u128]) {
        let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) else {
            return;
        };
        let before = !(u128::MAX >> self.shift);
        let flag = if self.order.nulls_first { 0 } else { FLAG };
        for (word, is_valid) in words.iter_mut().zip(nulls.iter()) {
            if !is_valid {
                *word = *word & before | flag >> self.shift;
            }
        }
    }
}

/// The first 16 bytes of a text as a number, zeros behind its end.
fn start_of(text: &[u8]) -> u128 {
    let mut start = [0; size_of::<u128>()];
    let len = text.len().min(start.len());
    start[..len].copy_from_slice(&text[..len]);
    u128::from_be_bytes(start)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int8Array,
        Int64Array, StringArray, TimestampMillisecondArray, UInt32Array,
    };
    use tersecades_testkit::random::Random;

    use super::*;
    use crate::operator::row::keys::RowKeys;

    const ROWS: usize = 200;

    fn values<T>(random: &mut Random, value: impl Fn(&mut Random) -> T) -> Vec<Option<T>> {
        let nulls = *random.pick(&[2, 9, 1_000]);
        let one = |_| (!random.one_in(nulls)).then(|| value(random));
        (0..ROWS).map(one).collect()
    }

    fn column(random: &mut Random) -> ArrayRef {
        let text = |random: &mut Random| {
            let start = *random.pick(&["", "a", "abcdefgh", "abcdefghijklmnopq"]);
            format!("{start}{}", random.pick(&["", "\0", "a", "b", "é"]))
        };
        let float = |random: &mut Random| {
            let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, 1.5, -1.5];
            *random.pick(&special)
        };
        match random.below(10) {
            0 => Arc::new(BooleanArray::from(values(random, |r| r.one_in(2)))),
            1 => Arc::new(Int8Array::from(values(random, |r| r.between(-9, 9) as i8))),
            2 => Arc::new(UInt32Array::from(values(random, |r| r.below(9) as u32))),
            3 => Arc::new(Int64Array::from(values(random, |r| r.bits() as i64))),
            4 => Arc::new(TimestampMillisecondArray::from(values(random, |r| {
                r.between(-3, 3)
            }))),
            5 => Arc::new(Float64Array::from(values(random, float))),
            6 => Arc::new(Float32Array::from(values(random, |r| float(r) as f32))),
            7 => {
                let wide = [i128::MIN, i128::MAX, 1 << 64, -(1 << 64), 0, 5];
                Arc::new(Decimal128Array::from(values(random, |r| *r.pick(&wide))))
            }
            8 => Arc::new(StringArray::from(values(random, text))),
            _ => {
                let texts = values(random, text);
                let texts = texts.iter().map(|text| text.as_deref());
                Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
            }
        }
    }

    #[test]
    fn words_are_in_the_order_of_whole_keys() {
        let mut random = Random::new(0x3048);
        for _ in 0..400 {
            let columns: Vec<ArrayRef> =
                (0..random.below(4)).map(|_| column(&mut random)).collect();
            let types = columns.iter().map(|column| {
                let order = SortOrder {
                    descending: random.one_in(2),
                    nulls_first: random.one_in(2),
                };
                (column.data_type().clone(), order)
            });
            let types: Vec<_> = types.collect();
            let maker = OrderWords::new(types.clone());
            let mut words = Vec::new();
            maker.of(&columns, ROWS, &mut words).unwrap();
            assert_eq!(words.len(), ROWS);
            if columns.is_empty() {
                assert!(maker.is_whole() && words.iter().all(|word| *word == 0));
                continue;
            }
            let keys = RowKeys::new(types.clone()).unwrap().of(&columns).unwrap();
            for (a, b) in (0..ROWS).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let (word, key) = (words[a].cmp(&words[b]), keys.row(a).cmp(&keys.row(b)));
                let fits = word == key || word == Ordering::Equal && !maker.is_whole();
                assert!(fits, "{types:?}: {word:?} for {key:?}");
            }
        }
    }

    #[test]
    fn numbers_and_times_are_told_apart_by_their_words_alone() {
        let whole = |types: &[DataType]| {
            let types = types
                .iter()
                .map(|kind| (kind.clone(), SortOrder::ASCENDING));
            OrderWords::new(types).is_whole()
        };
        use DataType as T;
        assert!(whole(&[T::Int64, T::UInt32, T::Int8]));
        assert!(whole(&[T::Decimal128(18, 2), T::Date32]));
        assert!(!whole(&[T::Int64, T::Float64]));
        assert!(!whole(&[T::Decimal128(19, 2)]));
        assert!(!whole(&[T::Utf8]));
    }
}
