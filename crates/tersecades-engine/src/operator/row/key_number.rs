//! Distinct keys numbered, batch by batch: numbers as words, keys of other types as byte strings.
//!
//! ```text
//! user    7  9  7  null        words   7 | 0    9 | 0    7 | 0    0 | 1
//!                              numbers   0        1        0        2
//! ```

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
use crate::operator::window_aggregate::sort::Sorter;
use crate::operator::window_aggregate::table::GroupTable;
use crate::runtime::Interrupt;
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

    /// The numbers in the order of their keys, nulls last; `interrupt` is asked meanwhile.
    ///
    /// # Errors
    /// What the interrupt says.
    ///
    /// # Cost
    /// Linear where keys are words; sorts byte strings else.
    pub fn sorted(&self, interrupt: &Interrupt) -> Result<Vec<u32>> {
        interrupt.check()?;
        match &self.form {
            Form::Words { layout, table, .. } => {
                Ok(Sorter::default().sort_table(layout, table).to_vec())
            }
            Form::Bytes { ids, .. } => {
                let mut numbers: Vec<u32> = (0..ids.len() as u32).collect();
                interrupt.sort(&mut numbers, &|a, b| ids.key(*a).cmp(ids.key(*b)))?;
                Ok(numbers)
            }
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
mod tests;
