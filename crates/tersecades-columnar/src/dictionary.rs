//! The append-only table behind dictionary-encoded text.
//!
//! The text itself is kept: a hash only finds the place to look, so two strings can never merge.
//! Codes are handed out in order of first appearance and never change, so every chunk encoded
//! against a dictionary stays readable while the dictionary grows.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use arrow_array::{ArrayRef, BinaryArray, StringArray, UInt32Array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::arrow::dictionary;
use crate::error::{Error, Result};
use crate::text_order;

/// Most bytes of text one dictionary keeps.
///
/// As many as Arrow's 32-bit offsets reach, so the text of any one array always fits.
pub const TEXT_BYTES_LIMIT: usize = i32::MAX as usize;

/// Texts between two moments at which others may use a dictionary that new texts are added to.
const WRITE_TEXTS: usize = 1024;

/// Texts that lie together.
const SEGMENT_TEXTS: usize = 4096;

/// Where a text lies: its code, and so much of its hash that the table grows without its texts.
#[derive(Debug, Clone, Copy)]
struct Place {
    code: u32,
    hash: u32,
}

/// Texts whose codes follow each other.
#[derive(Debug, Default)]
struct Segment {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Segment {
    fn get(&self, place: usize) -> &[u8] {
        let start = match place {
            0 => 0,
            _ => self.ends[place - 1] as usize,
        };
        &self.bytes[start..self.ends[place] as usize]
    }
}

/// All texts, in segments of [`SEGMENT_TEXTS`]: what grows is never copied whole.
#[derive(Debug, Default)]
struct Entries {
    segments: Vec<Segment>,
    len: usize,
    text_bytes: usize,
    index: HashTable<Place>,
}

impl Entries {
    fn get(&self, code: u32) -> &[u8] {
        let code = code as usize;
        self.segments[code / SEGMENT_TEXTS].get(code % SEGMENT_TEXTS)
    }

    fn find(&self, text: &[u8], hash: u32) -> Option<u32> {
        let is_text = |place: &Place| place.hash == hash && self.get(place.code) == text;
        let place = self.index.find(spread(hash), is_text);
        place.map(|place| place.code)
    }

    /// Adds a text that is not there.
    fn add(&mut self, text: &[u8], hash: u32) -> Result<u32> {
        if self.text_bytes + text.len() > TEXT_BYTES_LIMIT {
            return Err(Error::limit("a text dictionary grew past 2 GiB")
                .hint("raise selectivity or keep the column out of the window"));
        }
        if self.len.is_multiple_of(SEGMENT_TEXTS) {
            self.segments.push(Segment::default());
        }
        let code = self.len as u32;
        if let Some(segment) = self.segments.last_mut() {
            segment.bytes.extend_from_slice(text);
            segment.ends.push(segment.bytes.len() as u32);
        }
        self.len += 1;
        self.text_bytes += text.len();
        let place = Place { code, hash };
        self.index
            .insert_unique(spread(hash), place, |place| spread(place.hash));
        Ok(code)
    }

    /// All texts one after the other, and where each ends behind a leading zero.
    fn joined(&self) -> (Vec<i32>, Vec<u8>) {
        let mut offsets = Vec::with_capacity(self.len + 1);
        let mut bytes = Vec::with_capacity(self.text_bytes);
        offsets.push(0);
        for segment in &self.segments {
            let before = bytes.len() as i32;
            offsets.extend(segment.ends.iter().map(|end| before + *end as i32));
            bytes.extend_from_slice(&segment.bytes);
        }
        (offsets, bytes)
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
        self.0.len
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

    /// An empty dictionary that takes no more than `bytes` of text.
    #[cfg(test)]
    pub(crate) fn with_room(bytes: usize) -> Arc<Self> {
        let dictionary = Dictionary::new();
        dictionary.write().text_bytes = TEXT_BYTES_LIMIT - bytes;
        dictionary
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
        reader.0.text_bytes + reader.len() * size_of::<u32>()
    }

    /// The code of `text`, if it has one.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.read().0.find(text, hash(text))
    }

    /// The code of `text`, new if need be.
    ///
    /// # Errors
    /// `LimitExceeded` beyond [`TEXT_BYTES_LIMIT`] bytes of text.
    ///
    /// # Cost
    /// One hash and one compare for a known text; the lock is taken for reading first.
    pub fn intern(&self, text: &[u8]) -> Result<u32> {
        self.interner().code(text)
    }

    /// Codes of many texts, with few locks.
    pub fn interner(&self) -> Interner<'_> {
        Interner {
            dictionary: self,
            held: Held::Read(self.read().0),
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
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
        let code_at = text_order::sorted(reader.len() as u32, |code| reader.get(code));
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
        let (offsets, bytes) = reader.0.joined();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let bytes = Buffer::from_vec(bytes);
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
        Ok(Arc::new(dictionary(codes, self.to_array(data_type)?)?))
    }

    /// The texts of `codes` one after the other, as an Arrow array of `data_type`.
    ///
    /// # Errors
    /// As [`Dictionary::to_array`].
    pub fn plain(
        &self,
        codes: impl IntoIterator<Item = Option<u32>>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let reader = self.read();
        let codes = codes.into_iter();
        let texts: BinaryArray = codes
            .map(|code| code.map(|code| reader.get(code)))
            .collect();
        if *data_type == DataType::Binary {
            return Ok(Arc::new(texts));
        }
        let (offsets, bytes, nulls) = texts.into_parts();
        Ok(Arc::new(StringArray::try_new(offsets, bytes, nulls)?))
    }
}

/// A lock on a dictionary, for writing while texts are new.
enum Held<'a> {
    Read(RwLockReadGuard<'a, Entries>),
    /// And the texts that may come before it is given back.
    Write(RwLockWriteGuard<'a, Entries>, usize),
    None,
}

/// Codes of many texts in one dictionary, which others use as well.
///
/// # Examples
/// ```
/// let dictionary = tersecades_columnar::dictionary::Dictionary::new();
/// let mut interner = dictionary.interner();
/// let codes = [&b"eu"[..], b"us", b"eu"].map(|text| interner.code(text).unwrap());
/// assert_eq!(codes, [0, 1, 0]);
/// ```
pub struct Interner<'a> {
    dictionary: &'a Dictionary,
    held: Held<'a>,
}

impl Interner<'_> {
    /// The code of `text`, new if need be.
    ///
    /// # Errors
    /// As [`Dictionary::intern`].
    pub fn code(&mut self, text: &[u8]) -> Result<u32> {
        let hash = hash(text);
        loop {
            match &mut self.held {
                Held::Read(entries) => match entries.find(text, hash) {
                    Some(code) => return Ok(code),
                    None => {
                        // The reader must be gone before the writer waits for all of them.
                        self.held = Held::None;
                        self.held = Held::Write(self.dictionary.write(), WRITE_TEXTS);
                    }
                },
                Held::Write(entries, left @ 1..) => {
                    *left -= 1;
                    return match entries.find(text, hash) {
                        Some(code) => Ok(code),
                        None => entries.add(text, hash),
                    };
                }
                Held::Write(..) | Held::None => {
                    self.held = Held::None;
                    self.held = Held::Read(self.dictionary.read().0);
                }
            }
        }
    }
}

fn hash(text: &[u8]) -> u32 {
    let hash = FixedState::with_seed(0).hash_one(text);
    (hash ^ hash >> u32::BITS) as u32
}

/// The kept half of a hash as one for the table, which looks at both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash) | u64::from(hash) << u32::BITS
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
    fn threads_that_add_texts_beside_each_other_agree_on_codes() {
        let dictionary = Dictionary::new();
        let coded = |first: usize| {
            let mut interner = dictionary.interner();
            let texts = (0..9_000).map(|i| (first + i * 7) % 9_000);
            texts
                .map(|text| (text, interner.code(text.to_string().as_bytes()).unwrap()))
                .collect::<Vec<_>>()
        };
        let all = std::thread::scope(|scope| {
            let threads = [0, 3, 4_000].map(|first| scope.spawn(move || coded(first)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(dictionary.len(), 9_000);
        let reader = dictionary.read();
        for (text, code) in all.iter().flatten() {
            assert_eq!(reader.get(*code), text.to_string().as_bytes());
        }
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
