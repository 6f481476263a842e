//! Where each partition lies in the container and in the bytes it stands for.
//!
//! ```text
//! stored lengths, u16 or u32 each | CRC-32C of stored bytes, u32 each
//!   | raw lengths, u32 each, unless all but the last are those of the footer
//!   | CRC-32 of raw bytes, u32 each, where the layout's frame ends with that of the whole
//! ```

use std::ops::Range;

use tersecades_columnar::error::{Error, Result};

use super::PARTITION_MAX;

/// Stored lengths take four bytes.
pub(super) const WIDE: u16 = 1;
/// Raw lengths are listed.
pub(super) const RAW_LENGTHS: u16 = 2;
/// Checksums of raw bytes are listed.
pub(super) const RAW_CHECKSUMS: u16 = 4;

/// The longest that bytes may become when stored: blocks that do not compress have headers.
const STORED_MAX: u64 = PARTITION_MAX as u64 + PARTITION_MAX as u64 / 4 + 4_096;

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its bytes in the container, from the start of the first partition.
    pub stored: Range<u64>,
    /// The bytes it stands for.
    pub raw: Range<u64>,
    /// CRC-32C of its stored bytes.
    pub checksum: u32,
    /// CRC-32 of its raw bytes, for layouts whose frame ends with that of the whole.
    pub raw_checksum: Option<u32>,
}

impl Partition {
    /// How many bytes it stands for.
    pub fn raw_len(&self) -> usize {
        (self.raw.end - self.raw.start) as usize
    }

    /// How many bytes it takes.
    pub fn stored_len(&self) -> usize {
        (self.stored.end - self.stored.start) as usize
    }
}

/// All partitions, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Bytes of every partition but the last, where they are equal.
    uniform: Option<u64>,
    stored_ends: Vec<u64>,
    raw_ends: Vec<u64>,
    checksums: Vec<u32>,
    raw_checksums: Vec<u32>,
}

impl Index {
    /// How many partitions there are.
    pub(super) fn count(&self) -> usize {
        self.stored_ends.len()
    }

    /// How many bytes they stand for.
    pub(super) fn raw_len(&self) -> u64 {
        self.raw_ends.last().copied().unwrap_or(0)
    }

    /// How many bytes they take.
    pub(super) fn stored_len(&self) -> u64 {
        self.stored_ends.last().copied().unwrap_or(0)
    }

    /// Adds a partition behind the others.
    pub(super) fn push(&mut self, raw_len: usize, stored_len: usize, sums: (u32, Option<u32>)) {
        let nominal = self.raw_ends.first().copied().unwrap_or(raw_len as u64);
        let whole_so_far = self.raw_len() == nominal * self.count() as u64;
        let fits = whole_so_far && raw_len as u64 <= nominal;
        self.uniform = (self.count() == 0 || self.uniform.is_some() && fits).then_some(nominal);
        self.raw_ends.push(self.raw_len() + raw_len as u64);
        self.stored_ends.push(self.stored_len() + stored_len as u64);
        self.checksums.push(sums.0);
        self.raw_checksums.extend(sums.1);
    }

    /// The partition that holds the byte at `offset`; their number if none does.
    pub(super) fn locate(&self, offset: u64) -> usize {
        match self.uniform {
            _ if offset >= self.raw_len() => self.count(),
            Some(length) => (offset / length) as usize,
            None => self.raw_ends.partition_point(|end| *end <= offset),
        }
    }

    /// The partition at `at`, if there is one.
    pub(super) fn get(&self, at: usize) -> Option<Partition> {
        let start = |ends: &[u64]| at.checked_sub(1).map_or(0, |before| ends[before]);
        Some(Partition {
            stored: start(&self.stored_ends)..*self.stored_ends.get(at)?,
            raw: start(&self.raw_ends)..*self.raw_ends.get(at)?,
            checksum: *self.checksums.get(at)?,
            raw_checksum: self.raw_checksums.get(at).copied(),
        })
    }

    /// Which columns the encoded index has, and its bytes.
    pub(super) fn encode(&self, nominal: u32) -> (u16, Vec<u8>) {
        let partitions = || (0..self.count()).filter_map(|at| self.get(at));
        let wide = partitions().any(|it| it.stored_len() > usize::from(u16::MAX));
        let uneven = self.count() > 0 && !self.is_uniform(u64::from(nominal));
        let mut bytes = Vec::new();
        for partition in partitions() {
            let length = (partition.stored_len() as u32).to_le_bytes();
            bytes.extend_from_slice(&length[..if wide { 4 } else { 2 }]);
        }
        append_words(&mut bytes, self.checksums.iter().copied());
        if uneven {
            append_words(&mut bytes, partitions().map(|it| it.raw_len() as u32));
        }
        append_words(&mut bytes, self.raw_checksums.iter().copied());
        let summed = !self.raw_checksums.is_empty();
        let flags = [(wide, WIDE), (uneven, RAW_LENGTHS), (summed, RAW_CHECKSUMS)];
        let set = flags.iter().filter(|flag| flag.0).map(|flag| flag.1);
        (set.sum(), bytes)
    }

    fn is_uniform(&self, nominal: u64) -> bool {
        match self.count() {
            1 => self.raw_len() <= nominal,
            _ => self.uniform == Some(nominal),
        }
    }

    /// Reads an index of `count` partitions with these columns.
    ///
    /// # Errors
    /// Bytes that are not as long as they must be, and lengths that cannot be.
    pub(super) fn decode(
        bytes: &[u8],
        columns: u16,
        count: u64,
        (nominal, raw_len): (u32, u64),
    ) -> Result<Index> {
        let damaged = |what: &str| Error::corrupt(format!("the index of partitions {what}"));
        if columns & !(WIDE | RAW_LENGTHS | RAW_CHECKSUMS) != 0 {
            return Err(damaged("has columns that are unknown"));
        }
        let has = |flag: u16| columns & flag != 0;
        let stored_width = if has(WIDE) { 4 } else { 2 };
        let others = 1 + usize::from(has(RAW_LENGTHS)) + usize::from(has(RAW_CHECKSUMS));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count.checked_mul(stored_width + 4 * others) != Some(bytes.len()) {
            return Err(damaged("is not as long as its partitions need"));
        }
        let (stored, words) = bytes.split_at(count * stored_width);
        let column = |at: usize| {
            words[4 * at * count..]
                .chunks_exact(4)
                .take(count)
                .map(word)
        };
        let mut index = Index::default();
        let mut raw_lengths = has(RAW_LENGTHS).then(|| column(1));
        let mut raw_checksums = has(RAW_CHECKSUMS).then(|| column(others - 1));
        let mut raw_left = raw_len;
        for (stored, checksum) in stored.chunks_exact(stored_width).zip(column(0)) {
            let listed = raw_lengths.as_mut().and_then(Iterator::next).map(u64::from);
            let raw_len = listed.unwrap_or(raw_left.min(u64::from(nominal)));
            let stored_len = u64::from(word(stored));
            if raw_len == 0 || raw_len > raw_left || raw_len > PARTITION_MAX as u64 {
                return Err(damaged("has partitions of impossible length"));
            }
            if stored_len == 0 || stored_len > STORED_MAX {
                return Err(damaged("has partitions of impossible stored length"));
            }
            raw_left -= raw_len;
            let raw_checksum = raw_checksums.as_mut().and_then(Iterator::next);
            index.push(
                raw_len as usize,
                stored_len as usize,
                (checksum, raw_checksum),
            );
        }
        match raw_left {
            0 => Ok(index),
            _ => Err(damaged("stands for fewer bytes than the footer says")),
        }
    }
}

fn append_words(bytes: &mut Vec<u8>, words: impl Iterator<Item = u32>) {
    bytes.extend(words.flat_map(u32::to_le_bytes));
}

/// Two or four bytes as a number.
fn word(bytes: &[u8]) -> u32 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(lengths: &[usize]) -> Index {
        let mut index = Index::default();
        for (at, length) in lengths.iter().enumerate() {
            index.push(*length, length / 2 + 1, (at as u32, Some(at as u32 + 7)));
        }
        index
    }

    #[test]
    fn every_byte_is_located_and_indexes_come_back() {
        let cases: [&[usize]; 6] = [
            &[],
            &[300],
            &[4_096, 4_096, 10],
            &[4_096, 10, 4_096],
            &[10, 4_096],
            &[1 << 20, 1 << 20],
        ];
        for lengths in cases {
            let index = index(lengths);
            let (columns, bytes) = index.encode(4_096);
            let lengths_sum: usize = lengths.iter().sum();
            let back = Index::decode(
                &bytes,
                columns,
                lengths.len() as u64,
                (4_096, lengths_sum as u64),
            )
            .unwrap();
            for (at, length) in lengths.iter().enumerate() {
                let partition = back.get(at).unwrap();
                assert_eq!(Some(&partition), index.get(at).as_ref());
                assert_eq!(partition.raw_len(), *length);
                assert_eq!(back.locate(partition.raw.start), at);
                assert_eq!(back.locate(partition.raw.end - 1), at);
            }
            assert_eq!(back.locate(lengths_sum as u64), lengths.len());
            for cut in 0..bytes.len() {
                let sizes = (4_096, lengths_sum as u64);
                let cut = Index::decode(&bytes[..cut], columns, lengths.len() as u64, sizes);
                assert!(cut.is_err());
            }
        }
    }
}
