//! The phrases of an LZ77 stream, and reading a few bytes of it without decoding the rest.
//!
//! ```text
//! raw bytes    a b r a c a d a b r a        literal bit   1 1 1 0 1 0 1 0 0 0 0
//! phrases      a b r(a)c(a)d(a b r a)       copy starts   0 0 0 1 0 1 0 1 0 0 0
//!                    3   5    7 back        distances     3 5 7      literals  a b r c d
//! ```
//! Two bitmaps with ranks answer both of the paper's questions: the phrase of a byte is that of the
//! last start at or before it, and its number is the rank of that start. A byte of a copy is the
//! byte one distance before; following that back ends at a literal.
//!
//! # Source
//! "Random Read Speedup in Compression Enabled Storage Systems", section 2; rank and select as in
//! S. Vigna: "Broadword Implementation of Rank/Select Queries", WEA 2008.

pub(super) mod deflate;
mod extraction;
pub(super) mod lz4;
mod rank_select;
mod sequential;

pub use extraction::Extraction;

use tersecades_columnar::error::{Error, Result};

use rank_select::RankSelect;

/// The phrases of one partition.
#[derive(Debug, Clone)]
pub struct PhraseMap {
    raw_len: usize,
    /// Literal bytes, in order.
    literals: Vec<u8>,
    /// A bit for each raw byte that is a literal.
    is_literal: RankSelect,
    /// A bit for each raw byte at which a copy starts.
    starts_copy: RankSelect,
    /// One less than how far back each copy goes.
    distances: Vec<u16>,
}

/// What one byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phrase {
    /// The literal of that number, and where the run of literals ends.
    Literals { number: usize, end: usize },
    /// A copy of what lies `distance` before.
    Copy {
        start: usize,
        end: usize,
        distance: usize,
    },
}

impl PhraseMap {
    /// A partition that is kept as it is.
    ///
    /// # Errors
    /// Another length than `raw_len`.
    pub(super) fn of_literals(raw: &[u8], raw_len: usize) -> Result<Self> {
        let mut builder = PhraseMapBuilder::new(raw_len);
        builder.literals(raw)?;
        builder.finish()
    }

    /// How many bytes it stands for.
    pub fn raw_len(&self) -> usize {
        self.raw_len
    }

    /// How many bytes it takes.
    pub fn byte_size(&self) -> usize {
        let bitmaps = self.is_literal.byte_size() + self.starts_copy.byte_size();
        bitmaps + self.literals.len() + 2 * self.distances.len() + size_of::<Self>()
    }

    /// How many copies there are.
    pub fn copies(&self) -> usize {
        self.distances.len()
    }

    /// How many literals there are.
    pub fn literal_count(&self) -> usize {
        self.literals.len()
    }

    /// The number of the phrase that holds the byte `at`; each literal is one.
    pub fn phrase_of(&self, at: usize) -> usize {
        (self.is_literal.rank(at + 1) + self.starts_copy.rank(at + 1)).saturating_sub(1)
    }

    /// The phrase of the byte `at`, which must be below the length.
    pub(super) fn phrase_at(&self, at: usize) -> Phrase {
        if self.is_literal.get(at) {
            let number = self.is_literal.rank(at);
            let end = self.is_literal.next_zero(at + 1, self.raw_len);
            return Phrase::Literals { number, end };
        }
        let number = self.starts_copy.rank(at + 1).saturating_sub(1);
        let start = self.starts_copy.last_one(at);
        let distance = self.distances.get(number).copied().unwrap_or(0);
        Phrase::Copy {
            start,
            end: self.copy_end(at),
            distance: usize::from(distance) + 1,
        }
    }

    /// Where the copy that holds the byte `at` ends.
    fn copy_end(&self, at: usize) -> usize {
        let starts = &self.starts_copy;
        self.is_literal
            .next_one_of_either(starts, at + 1, self.raw_len)
    }

    /// Literal bytes from number `from` on.
    pub(super) fn literals_from(&self, from: usize, count: usize) -> &[u8] {
        &self.literals[from..from + count]
    }
}

/// Takes tokens in order and makes a map of them.
#[derive(Debug)]
pub(super) struct PhraseMapBuilder {
    map: PhraseMap,
    at: usize,
}

impl PhraseMapBuilder {
    /// For a partition of `raw_len` bytes.
    pub(super) fn new(raw_len: usize) -> Self {
        let map = PhraseMap {
            raw_len,
            literals: Vec::with_capacity(raw_len / 4),
            is_literal: RankSelect::zeros(raw_len),
            starts_copy: RankSelect::zeros(raw_len),
            distances: Vec::with_capacity(raw_len / 16),
        };
        PhraseMapBuilder { map, at: 0 }
    }

    /// Whether all bytes are there.
    pub(super) fn is_full(&self) -> bool {
        self.at == self.map.raw_len
    }

    /// A literal.
    pub(super) fn literal(&mut self, byte: u8) -> Result<()> {
        self.check(1)?;
        self.map.is_literal.set(self.at);
        self.map.literals.push(byte);
        self.at += 1;
        Ok(())
    }

    /// Literals.
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Result<()> {
        self.check(bytes.len())?;
        self.map
            .is_literal
            .set_range(self.at..self.at + bytes.len());
        self.map.literals.extend_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// A copy of `length` bytes from `distance` back.
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> Result<()> {
        self.check(length)?;
        let stored = distance.checked_sub(1).filter(|_| distance <= self.at);
        let stored = stored.and_then(|distance| u16::try_from(distance).ok());
        let outside = || Error::corrupt("a copy reaches in front of its partition");
        self.map.starts_copy.set(self.at);
        self.map.distances.push(stored.ok_or_else(outside)?);
        self.at += length;
        Ok(())
    }

    /// The map.
    ///
    /// # Errors
    /// Fewer bytes than the partition has.
    pub(super) fn finish(mut self) -> Result<PhraseMap> {
        if !self.is_full() {
            return Err(Error::corrupt("a partition ends early"));
        }
        self.map.is_literal.count();
        self.map.starts_copy.count();
        self.map.literals.shrink_to_fit();
        self.map.distances.shrink_to_fit();
        Ok(self.map)
    }

    fn check(&self, length: usize) -> Result<()> {
        match length > 0 && length <= self.map.raw_len - self.at {
            true => Ok(()),
            false => Err(Error::corrupt("a phrase reaches behind its partition")),
        }
    }
}
