//! Streams of bits in 64-bit little-endian words, the lowest bit first.

const WORD_BYTES: usize = 8;
const WORD_BITS: u32 = u64::BITS;

/// The lowest `count` bits set.
///
/// Units: `count` is at most 64.
pub(crate) fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(WORD_BITS - count).unwrap_or(0)
}

/// Appends bits to bytes.
#[derive(Debug)]
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    used: u32,
}

impl<'a> BitWriter<'a> {
    /// A writer that appends to `out`.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            word: 0,
            used: 0,
        }
    }

    /// Writes the lowest `count` bits of `bits`; those above must be zero.
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        debug_assert!(count <= WORD_BITS && bits & !low_bits(count) == 0);
        self.word |= bits << self.used;
        self.used += count;
        if self.used >= WORD_BITS {
            self.out.extend_from_slice(&self.word.to_le_bytes());
            self.used -= WORD_BITS;
            self.word = bits.checked_shr(count - self.used).unwrap_or(0);
        }
    }

    /// Bits in the bytes that are written to, those before included.
    pub(crate) fn length(&self) -> usize {
        self.out.len() * u8::BITS as usize + self.used as usize
    }

    /// Fills the last word with zeros and writes it.
    pub(crate) fn finish(self) {
        if self.used > 0 {
            self.out.extend_from_slice(&self.word.to_le_bytes());
        }
    }
}

/// Reads bits from bytes; past the end there are zeros.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits read.
    at: usize,
}

/// Bits that a word at any byte has left when it is moved to start at any bit.
const MANY: u32 = WORD_BITS - 7;

impl<'a> BitReader<'a> {
    /// A reader at the first bit of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bits, at most 64.
    #[inline]
    pub(crate) fn take(&mut self, count: u32) -> u64 {
        debug_assert!(count <= WORD_BITS);
        let first = count.min(MANY);
        let low = self.peek_many().0 & low_bits(first);
        self.pass(first);
        if count == first {
            return low;
        }
        let high = self.peek_many().0 & low_bits(count - first);
        self.pass(count - first);
        low | high << first
    }

    /// The next bits, which stay to be read, and how many of them there are; those above are any.
    #[inline]
    pub(crate) fn peek_many(&self) -> (u64, u32) {
        let first = self.at / u8::BITS as usize;
        let word = match self.bytes.get(first..first + WORD_BYTES) {
            Some(word) => word.try_into().map_or(0, u64::from_le_bytes),
            None => last_word(self.bytes.get(first..).unwrap_or(&[])),
        };
        (word >> (self.at % u8::BITS as usize), MANY)
    }

    /// Bits read.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Passes over `count` bits.
    #[inline]
    pub(crate) fn pass(&mut self, count: u32) {
        self.at += count as usize;
    }
}

/// What is left of `bytes`, less than a word, filled up with zeros.
#[cold]
fn last_word(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random words (Knuth's multiplier).
    fn words() -> impl Iterator<Item = u64> {
        let step = |state: &u64| {
            Some(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            )
        };
        std::iter::successors(Some(1), step).map(|state| state ^ state >> 29)
    }

    #[test]
    fn what_is_put_is_taken_whatever_the_widths() {
        let pieces: Vec<(u64, u32)> = words()
            .take(5_000)
            .map(|word| {
                let count = (word >> 40) as u32 % 65;
                (word & low_bits(count), count)
            })
            .collect();
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        for (bits, count) in &pieces {
            writer.put(*bits, *count);
        }
        writer.finish();
        let total: u32 = pieces.iter().map(|(_, count)| count).sum();
        assert_eq!(
            bytes.len(),
            total.div_ceil(WORD_BITS) as usize * WORD_BYTES,
            "whole words"
        );
        let mut reader = BitReader::new(&bytes);
        for (bits, count) in &pieces {
            let (seen, held) = reader.peek_many();
            let both = low_bits((*count).min(held));
            assert_eq!(seen & both, bits & both);
            assert_eq!(reader.take(*count), *bits);
        }
    }

    #[test]
    fn missing_bits_are_zero() {
        let mut reader = BitReader::new(&[0xff, 0xff, 0xff]);
        assert_eq!(reader.take(20), 0xf_ffff);
        assert_eq!(reader.peek_many().0, 0xf);
        assert_eq!(reader.take(64), 0xf);
        assert_eq!((reader.take(64), reader.take(1)), (0, 0));
        assert_eq!(BitReader::new(&[]).take(64), 0);
    }
}
