//! Group keys: the columns of a group, packed into machine words.
//!
//! Text is its code in a dictionary that all workers share, integers are ordered keys, floats
//! canonical ordered keys (one NaN, one zero), so equal words mean equal groups. Columns of at
//! most 32 bits share a word: a pair of clusters or racks is one 64-bit number. Nulls of columns
//! that are not text have a bit each in last words, one for 64 columns, which keys go without as
//! long as no row has such a null.

use std::sync::{Arc, OnceLock};

use arrow_schema::DataType;
use tersecades_columnar::dictionary::Dictionary;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, float_of};
use tersecades_columnar::values::Values;

use crate::frame::{Frame, Slot};
use crate::runtime::state::{StateReader, StateWriter};

use super::direct::{AXES, Span};
use super::packer::PackedKeys;

/// The code that stands for null text.
pub const NULL_CODE: u64 = u32::MAX as u64;

/// Columns whose nulls have a bit in one word.
const NULLS_A_WORD: usize = u64::BITS as usize;

/// One column of the key.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// Name of the column.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Where a frame keeps it.
    pub slot: Slot,
    physical: Physical,
    place: KeyPlace,
    bits: u32,
    dictionary: SharedDictionary,
}

/// Where a column's part lies in a key.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyPlace {
    word: usize,
    shift: u32,
    /// The bits of the part, moved to the bottom of a word.
    mask: u64,
}

impl KeyPlace {
    /// The part of `key` that lies here.
    #[inline]
    pub fn part(&self, key: &[u64]) -> u64 {
        key[self.word] >> self.shift & self.mask
    }

    /// Sets the part of `key` that lies here, which is zero, to `part`.
    #[inline]
    pub fn put(&self, part: u64, key: &mut [u64]) {
        key[self.word] |= (part & self.mask) << self.shift;
    }
}

/// The dictionary that all workers code one text column in: the first one met.
#[derive(Debug, Clone, Default)]
pub struct SharedDictionary(Arc<OnceLock<Arc<Dictionary>>>);

impl SharedDictionary {
    /// The dictionary, once a row has been seen.
    pub fn get(&self) -> Option<&Arc<Dictionary>> {
        self.0.get()
    }

    /// The dictionary, adopting `first` when there is none.
    pub fn adopt(&self, first: &Arc<Dictionary>) -> &Arc<Dictionary> {
        self.0.get_or_init(|| Arc::clone(first))
    }

    /// Turns the codes of `values` into codes of this dictionary.
    ///
    /// # Errors
    /// `LimitExceeded` when the dictionary outgrows its limit.
    pub fn unify(&self, values: &mut Values, known: &mut Translation) -> Result<()> {
        let Some(source) = values.dictionary.clone() else {
            return Ok(());
        };
        let shared = self.adopt(&source);
        if Arc::ptr_eq(&source, shared) {
            return Ok(());
        }
        known.extend(&source, shared)?;
        values.keys.iter_mut().for_each(|code| {
            *code = known
                .codes
                .get(*code as usize)
                .copied()
                .map_or(*code, u64::from);
        });
        values.dictionary = Some(Arc::clone(shared));
        Ok(())
    }

    /// Writes all texts.
    pub fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.get().map_or(0, |dictionary| dictionary.len() as u64));
        if let Some(dictionary) = self.get() {
            let reader = dictionary.read();
            (0..reader.len()).for_each(|code| out.blob(reader.get(code as u32)));
        }
    }

    /// Reads what [`SharedDictionary::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end early, `InvalidArgument` when rows were seen before.
    pub fn restore(&self, from: &mut StateReader<'_>) -> Result<()> {
        let texts = from.count()?;
        if texts == 0 {
            return Ok(());
        }
        let dictionary = Arc::clone(self.adopt(&Dictionary::new()));
        for code in 0..texts {
            if dictionary.intern(from.blob()?)? as usize != code {
                return Err(Error::invalid(
                    "a snapshot is restored before any row is pushed",
                ));
            }
        }
        Ok(())
    }
}

/// Codes of the source dictionary met last, in the shared one.
#[derive(Debug, Default)]
pub struct Translation {
    source: u64,
    codes: Vec<u32>,
}

impl Translation {
    fn extend(&mut self, source: &Dictionary, shared: &Dictionary) -> Result<()> {
        if self.source != source.id() {
            *self = Translation {
                source: source.id(),
                codes: Vec::new(),
            };
        }
        let (reader, mut interner) = (source.read(), shared.interner());
        for code in self.codes.len()..reader.len() {
            self.codes.push(interner.code(reader.get(code as u32))?);
        }
        Ok(())
    }
}

/// How key columns lie in words.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    /// The columns, in the order of the result.
    pub columns: Vec<KeyColumn>,
    /// Words of one key, those of nulls included.
    pub words: usize,
    /// Whether groups are found through the hash map of the standard library.
    pub standard_map: bool,
    /// The first of the last words, which have a bit per null column, if there is a column that is
    /// not text.
    null_word: Option<usize>,
}

impl KeyColumn {
    /// The dictionary that codes of this column mean.
    pub fn dictionary(&self) -> &SharedDictionary {
        &self.dictionary
    }

    /// Bits of the column's part of a key.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Whether the column is text.
    pub fn is_text(&self) -> bool {
        self.physical == Physical::Text
    }

    /// The column's part of `key`, below 2^64.
    #[inline]
    pub fn part(&self, key: &[u64]) -> u64 {
        self.place.part(key)
    }

    /// The shape of its values.
    pub fn physical(&self) -> Physical {
        self.physical
    }

    /// Sets the column's part of `key`, which is zero, to `part`.
    #[inline]
    pub fn put(&self, part: u64, key: &mut [u64]) {
        self.place.put(part, key);
    }

    /// Sets the column's part of `key`, of two words, to `value`.
    #[inline]
    pub fn put_wide(&self, value: i128, key: &mut [u64]) {
        key[self.place.word] = value as u64;
        key[self.place.word + 1] = (value >> 64) as u64;
    }

    /// Sets the column's part of `key` to zero.
    pub fn clear(&self, key: &mut [u64]) {
        if self.physical == Physical::Wide {
            return self.put_wide(0, key);
        }
        key[self.place.word] &= !(self.place.mask << self.place.shift);
    }

    /// What the column's parts span in `frame`, if that is known: codes, or integers with
    /// statistics.
    fn span(&self, frame: &Frame) -> Option<Span> {
        let chunk = frame.column(self.slot);
        let stats = chunk.stats();
        match self.physical {
            Physical::Text => Some(Span {
                origin: 0,
                extent: self.dictionary.get().map_or(0, |texts| texts.len() as u64),
            }),
            Physical::Integer { .. } if stats.known => Some(Span::of_ends(stats.min, stats.max)),
            _ => None,
        }
    }

    fn wide_part(&self, key: &[u64]) -> i128 {
        let low = u128::from(key[self.place.word]);
        (low | u128::from(key[self.place.word + 1]) << 64) as i128
    }
}

impl KeyLayout {
    /// Packs columns given as name, type, slot and whether nulls can occur.
    ///
    /// # Errors
    /// `Unsupported` for types without a physical shape.
    pub fn new(columns: &[(String, DataType, Slot)]) -> Result<Self> {
        let mut layout = KeyLayout {
            columns: Vec::new(),
            words: 0,
            standard_map: false,
            null_word: None,
        };
        let mut half = None;
        for (name, data_type, slot) in columns {
            let physical = Physical::of(data_type)?;
            let bits = match physical {
                Physical::Text => 32,
                Physical::Float { .. } => 64,
                other => other.lane_bytes() as u32 * 8,
            };
            let (word, shift) = match (bits <= 32, half.take()) {
                (true, Some(word)) => (word, 32),
                (small, previous) => {
                    half = if small { Some(layout.words) } else { previous };
                    let word = layout.words;
                    layout.words += (bits as usize).div_ceil(64);
                    (word, 0)
                }
            };
            layout.columns.push(KeyColumn {
                name: name.clone(),
                data_type: data_type.clone(),
                slot: *slot,
                physical,
                place: KeyPlace {
                    word,
                    shift,
                    mask: u64::MAX >> (64 - bits.min(64)),
                },
                bits,
                dictionary: SharedDictionary::default(),
            });
        }
        if layout.columns.iter().any(|column| !column.is_text()) {
            layout.null_word = Some(layout.words);
            layout.words += columns.len().div_ceil(NULLS_A_WORD);
        }
        Ok(layout)
    }

    /// Whether all columns are text.
    pub fn is_text(&self) -> bool {
        self.columns.iter().all(KeyColumn::is_text)
    }

    /// The first of the last words, in which nulls of columns that are not text have a bit each, if
    /// there are any; one for every 64 columns.
    pub fn null_word(&self) -> Option<usize> {
        self.null_word
    }

    /// The word in which column `index`, no text, has a bit for nulls, and that bit.
    #[inline]
    pub fn null_bit(&self, index: usize) -> Option<(usize, u64)> {
        let first = self.null_word?;
        Some((first + index / NULLS_A_WORD, 1 << (index % NULLS_A_WORD)))
    }

    /// Words of a key whose columns that are not text are not null.
    pub fn words_without_nulls(&self) -> usize {
        self.null_word.unwrap_or(self.words)
    }

    /// Where the first columns lie; that of a column that is not there is empty.
    pub fn places(&self) -> [KeyPlace; AXES] {
        [0, 1].map(|axis| {
            self.columns
                .get(axis)
                .map_or(KeyPlace::default(), |c| c.place)
        })
    }

    /// What the parts of the columns span in `frame`, if that is known and they are few; a column
    /// that is not there spans one value.
    pub fn spans(&self, frame: &Frame) -> Option<[Span; AXES]> {
        let mut spans = [Span {
            origin: 0,
            extent: 1,
        }; AXES];
        if self.columns.is_empty() || self.columns.len() > AXES {
            return None;
        }
        for (column, span) in self.columns.iter().zip(&mut spans) {
            *span = column.span(frame)?;
        }
        Some(spans)
    }

    /// Whether column `index` of `key` is null.
    #[inline]
    pub fn is_null(&self, key: &[u64], index: usize) -> bool {
        let column = &self.columns[index];
        match self.null_bit(index) {
            _ if column.is_text() => column.part(key) == NULL_CODE,
            Some((word, bit)) => key.get(word).is_some_and(|nulls| nulls & bit != 0),
            None => false,
        }
    }

    /// The codes of text column `index` of the groups `ids`, whose keys are `arena`; that of a
    /// null is `u32::MAX`.
    pub fn codes(&self, index: usize, ids: &[u32], arena: PackedKeys<'_>) -> Vec<u32> {
        let PackedKeys { keys, words } = arena;
        let KeyPlace { word, shift, mask } = self.columns[index].place;
        let code = |id: &u32| (keys[*id as usize * words + word] >> shift & mask) as u32;
        ids.iter().map(code).collect()
    }

    /// Column `index`, no text, of the groups `ids`, whose keys are `arena`, as decoded values.
    pub fn values(&self, index: usize, ids: &[u32], arena: PackedKeys<'_>) -> Values {
        let column = &self.columns[index];
        let mut values = Values::default();
        values.reset(column.physical);
        let PackedKeys { keys, words } = arena;
        let key = |id: &u32| &keys[*id as usize * words..][..words];
        let KeyPlace { word, shift, mask } = column.place;
        let part = |id: &u32| keys[*id as usize * words + word] >> shift & mask;
        let parts = ids.iter().map(part);
        match column.physical {
            Physical::Wide => values
                .wide
                .extend(ids.iter().map(|id| column.wide_part(key(id)))),
            Physical::Float { bytes: 4 } => {
                let narrow = |part| u64::from((float_of(part) as f32).to_bits());
                values.keys.extend(parts.map(narrow));
            }
            Physical::Float { .. } => {
                values
                    .keys
                    .extend(parts.map(|part| float_of(part).to_bits()));
            }
            _ => values.keys.extend(parts),
        }
        // All keys in turn take less time than some of them here and there.
        let has_nulls = words == self.words
            && self.null_bit(index).is_some_and(|(word, bit)| {
                let mut keys = keys.chunks_exact(words);
                keys.any(|key| key[word] & bit != 0)
            });
        if has_nulls {
            values.validity.fill(ids.len(), true);
            for (row, id) in ids.iter().enumerate() {
                if self.is_null(key(id), index) {
                    values.validity.set(row, false);
                    values
                        .keys
                        .get_mut(row)
                        .into_iter()
                        .for_each(|key| *key = 0);
                }
            }
        }
        values
    }

    /// A number that sorts as column `index` of `key` does, nulls last.
    pub fn ordered(&self, key: &[u64], index: usize, ranks: Option<&[u32]>) -> i128 {
        let column = &self.columns[index];
        if self.is_null(key, index) {
            return i128::MAX;
        }
        match (column.physical, ranks) {
            (Physical::Wide, _) => column.wide_part(key),
            (Physical::Text, Some(ranks)) => {
                let code = column.part(key) as usize;
                ranks.get(code).map_or(i128::MAX, |rank| i128::from(*rank))
            }
            _ => i128::from(column.part(key)),
        }
    }
}
