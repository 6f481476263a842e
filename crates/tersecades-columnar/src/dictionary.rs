//! The append-only table behind dictionary-encoded text.
//!
//! The text itself is kept: a hash only finds the place to look, so two strings can never merge.
//! Codes are handed out in order of first appearance and never change, so every chunk encoded
//! against a dictionary stays readable while the dictionary grows.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, StringArray, UInt32Array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::error::{Error, Result};

/// Most bytes of text one dictionary keeps.
///
/// As many as Arrow's 32-bit offsets reach, so the text of any one array always fits.
pub const TEXT_BYTES_LIMIT: usize = i32::MAX as usize;

#[derive(Debug, Default)]
struct Entries {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
    index: HashTable<u32>,
}

impl Entries {
    fn get(&self, code: u32) -> &[u8] {
        let start = if code == 0 {
            0
        } else {
            self.offsets[code as usize - 1]
        };
        &self.bytes[start as usize..self.offsets[code as usize] as usize]
    }
}

/// Byte order of the codes of a dictionary that had `len` entries.
#[derive(Debug, Clone)]
pub struct Ranks {
    /// `rank_of[code]`: position of the code's text among all texts.
    pub rank_of: Arc<[u32]>,
    /// `code_at[rank]`: the inverse.
    pub code_at: Arc<[u32]>,
}

/// Texts and their codes, shared by every chunk of a column.
///
/// # Examples
/// ```
/// let dictionary = tersecades_columnar::dictionary::Dictionary::new();
/// let code = dictionary.intern(b"eu-west").unwrap();
/// assert_eq!(dictionary.find(b"eu-west"), Some(code));
/// assert_eq!(dictionary.read().get(code), b"eu-west");
/// ```
#[derive(Debug)]
pub struct Dictionary {
    id: u64,
    entries: RwLock<Entries>,
    ranks: RwLock<Option<Ranks>>,
    array: RwLock<Option<(usize, DataType, ArrayRef)>>,
}

/// A read lock on a dictionary: look-ups without further locking.
pub struct Reader<'a>(RwLockReadGuard<'a, Entries>);

impl Reader<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.offsets.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of `code`, which must have been handed out by this dictionary.
    pub fn get(&self, code: u32) -> &[u8] {
        self.0.get(code)
    }
}

impl Dictionary {
    /// An empty dictionary.
    pub fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Dictionary {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            entries: RwLock::default(),
            ranks: RwLock::default(),
            array: RwLock::default(),
        })
    }

    /// Process-wide identity, for caches.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Locks for reading.
    pub fn read(&self) -> Reader<'_> {
        Reader(
            self.entries
                .read()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        )
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of text and offsets.
    pub fn byte_size(&self) -> usize {
        let reader = self.read();
        reader.0.bytes.len() + reader.0.offsets.len() * size_of::<u32>()
    }

    /// The code of `text`, if it has one.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        let reader = self.read();
        let entries = &*reader.0;
        entries
            .index
            .find(hash(text), |code| entries.get(*code) == text)
            .copied()
    }

    /// The code of `text`, new if need be.
    ///
    /// # Errors
    /// `LimitExceeded` beyond [`TEXT_BYTES_LIMIT`] bytes of text.
    ///
    /// # Cost
    /// One hash and one compare for a known text; the lock is taken for reading first.
    pub fn intern(&self, text: &[u8]) -> Result<u32> {
        if let Some(code) = self.find(text) {
            return Ok(code);
        }
        let mut guard = self
            .entries
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let entries = &mut *guard;
        let hash_of_text = hash(text);
        if let Some(code) = entries
            .index
            .find(hash_of_text, |code| entries.get(*code) == text)
        {
            return Ok(*code);
        }
        if entries.bytes.len() + text.len() > TEXT_BYTES_LIMIT {
            return Err(Error::limit("a text dictionary grew past 2 GiB")
                .hint("raise selectivity or keep the column out of the window"));
        }
        let code = entries.offsets.len() as u32;
        entries.bytes.extend_from_slice(text);
        entries.offsets.push(entries.bytes.len() as u32);
        let Entries {
            offsets,
            bytes,
            index,
        } = entries;
        index.insert_unique(hash_of_text, code, |code| {
            let code = *code as usize;
            let start = if code == 0 {
                0
            } else {
                offsets[code - 1] as usize
            };
            hash(&bytes[start..offsets[code] as usize])
        });
        Ok(code)
    }

    /// The byte order of the present entries; computed once per size.
    pub fn ranks(&self) -> Ranks {
        let reader = self.read();
        let cached = self
            .ranks
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone();
        if let Some(ranks) = cached.filter(|ranks| ranks.rank_of.len() == reader.len()) {
            return ranks;
        }
        let mut code_at: Vec<u32> = (0..reader.len() as u32).collect();
        code_at.sort_unstable_by(|a, b| reader.get(*a).cmp(reader.get(*b)));
        let mut rank_of = vec![0; code_at.len()];
        for (rank, code) in code_at.iter().enumerate() {
            rank_of[*code as usize] = rank as u32;
        }
        let ranks = Ranks {
            rank_of: rank_of.into(),
            code_at: code_at.into(),
        };
        *self
            .ranks
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(ranks.clone());
        ranks
    }

    /// The entries as an Arrow array of `data_type` (utf8 or binary), in code order; computed
    /// once per size, so that batches share it.
    ///
    /// # Errors
    /// `Corrupt` when a utf8 dictionary holds bytes that are not UTF-8.
    pub fn to_array(&self, data_type: &DataType) -> Result<ArrayRef> {
        let reader = self.read();
        let cached = self
            .array
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone();
        if let Some((_, _, array)) =
            cached.filter(|(len, kind, _)| *len == reader.len() && kind == data_type)
        {
            return Ok(array);
        }
        let mut offsets = Vec::with_capacity(reader.len() + 1);
        offsets.push(0i32);
        offsets.extend(reader.0.offsets.iter().map(|end| *end as i32));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let bytes = Buffer::from(reader.0.bytes.as_slice());
        let array: ArrayRef = match data_type {
            DataType::Binary => Arc::new(BinaryArray::try_new(offsets, bytes, None)?),
            _ => Arc::new(StringArray::try_new(offsets, bytes, None)?),
        };
        *self
            .array
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) =
            Some((reader.len(), data_type.clone(), Arc::clone(&array)));
        Ok(array)
    }

    /// The texts of `codes` as Arrow's `dictionary<uint32, data_type>`, but for its `nulls`.
    ///
    /// # Errors
    /// As [`Dictionary::to_array`]; `Corrupt` for a code without a text.
    ///
    /// # Cost
    /// One pass; the texts are those of [`Dictionary::to_array`].
    pub fn coded(
        &self,
        codes: Vec<u32>,
        nulls: Option<NullBuffer>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let codes = UInt32Array::new(codes.into(), nulls);
        let array = DictionaryArray::try_new(codes, self.to_array(data_type)?)?;
        Ok(Arc::new(array))
    }
}

fn hash(text: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(text)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn codes_are_stable_and_texts_never_merge() {
        let dictionary = Dictionary::new();
        let texts: Vec<String> = (0..5_000).map(|i| format!("node-{i}")).collect();
        let codes: Vec<u32> = texts
            .iter()
            .map(|t| dictionary.intern(t.as_bytes()).unwrap())
            .collect();
        assert_eq!(codes, (0..5_000).collect::<Vec<u32>>());
        for (text, code) in texts.iter().zip(&codes) {
            assert_eq!(dictionary.intern(text.as_bytes()).unwrap(), *code);
            assert_eq!(dictionary.read().get(*code), text.as_bytes());
        }
        assert_eq!(dictionary.find(b"absent"), None);
        assert_eq!(dictionary.intern(b"").unwrap(), 5_000);
        assert_eq!(dictionary.read().get(5_000), b"");
    }

    #[test]
    fn ranks_follow_byte_order_and_growth() {
        let dictionary = Dictionary::new();
        for text in ["m", "a", "z"] {
            dictionary.intern(text.as_bytes()).unwrap();
        }
        assert_eq!(&*dictionary.ranks().rank_of, [1, 0, 2]);
        dictionary.intern(b"b").unwrap();
        assert_eq!(&*dictionary.ranks().code_at, [1, 3, 0, 2]);
        assert_eq!(dictionary.to_array(&DataType::Utf8).unwrap().len(), 4);
    }

    #[test]
    fn coded_texts_are_those_of_the_codes_but_for_nulls() {
        let dictionary = Dictionary::new();
        let texts = |codes: &[u32], nulls: Option<&[bool]>| {
            let nulls = nulls.map(NullBuffer::from);
            let array = dictionary.coded(codes.to_vec(), nulls, &DataType::Utf8);
            let texts = arrow_cast::cast(&array.unwrap(), &DataType::Utf8).unwrap();
            let texts = texts.as_string::<i32>().iter();
            texts
                .map(|text| text.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&[], None), []);
        let none = texts(&[0, 0], Some(&[false, false]));
        assert_eq!(none, [None, None], "without any text");
        for text in ["m", "", "z"] {
            dictionary.intern(text.as_bytes()).unwrap();
        }
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(texts(&[2, 0, 2], None), [some("z"), some("m"), some("z")]);
        let found = texts(&[0, 1, 0, 2], Some(&[false, true, true, false]));
        assert_eq!(found, [None, some(""), some("m"), None]);
        let unknown = dictionary.coded(vec![3], None, &DataType::Utf8);
        assert!(unknown.is_err());
    }
}
