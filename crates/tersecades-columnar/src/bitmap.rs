//! One bit per row: validity of a chunk, and the dense form of a selection.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::kernels::kernels;

/// Bits of one machine word.
pub const WORD_ROWS: usize = 64;

/// A bit per row in 64-bit words, least significant bit first; bits past `rows` are zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    rows: usize,
}

impl Bitmap {
    /// Makes every one of `rows` bits `value`, keeping the memory.
    pub fn fill(&mut self, rows: usize, value: bool) {
        self.words.clear();
        self.words
            .resize(rows.div_ceil(WORD_ROWS), if value { u64::MAX } else { 0 });
        self.rows = rows;
        self.clear_tail();
    }

    /// No rows at all: how "every row is valid" is written.
    pub fn clear(&mut self) {
        self.words.clear();
        self.rows = 0;
    }

    /// Copies Arrow's validity, whatever its bit offset.
    pub fn copy_nulls(&mut self, nulls: &NullBuffer) {
        self.copy_booleans(nulls.inner());
    }

    /// Copies Arrow booleans, whatever their bit offset.
    pub fn copy_booleans(&mut self, source: &BooleanBuffer) {
        self.words.clear();
        self.rows = source.len();
        let chunks = source.bit_chunks();
        self.words.extend(chunks.iter());
        if chunks.remainder_len() > 0 {
            self.words.push(chunks.remainder_bits());
        }
        self.clear_tail();
    }

    /// Takes over `words`; bits past `rows` are cleared.
    pub fn copy_words(&mut self, words: &[u64], rows: usize) {
        self.words.clear();
        self.words
            .extend_from_slice(&words[..rows.div_ceil(WORD_ROWS)]);
        self.rows = rows;
        self.clear_tail();
    }

    /// Arrow's validity buffer with the same bits.
    pub fn to_nulls(&self) -> NullBuffer {
        let buffer = arrow_buffer::Buffer::from_vec(self.words.clone());
        NullBuffer::new(BooleanBuffer::new(buffer, 0, self.rows))
    }

    /// Rows covered.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether no rows are covered ("absent").
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words, writable; the caller keeps bits past the last row zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// The bit of `row`.
    pub fn get(&self, row: usize) -> bool {
        self.words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1
    }

    /// Sets the bit of `row`.
    pub fn set(&mut self, row: usize, value: bool) {
        let bit = 1 << (row % WORD_ROWS);
        let word = &mut self.words[row / WORD_ROWS];
        *word = if value { *word | bit } else { *word & !bit };
    }

    /// Number of ones.
    pub fn count(&self) -> usize {
        (kernels().bitmap.count)(&self.words) as usize
    }

    fn clear_tail(&mut self) {
        let used = self.rows % WORD_ROWS;
        if let Some(last) = self.words.last_mut()
            && used > 0
        {
            *last &= u64::MAX >> (WORD_ROWS - used);
        }
    }
}

/// Calls `visit` with index and mask of every word that `rows` touches.
fn for_each_word(rows: Range<usize>, mut visit: impl FnMut(usize, u64)) {
    let mut start = rows.start;
    while start < rows.end {
        let bit = start % WORD_ROWS;
        let count = (WORD_ROWS - bit).min(rows.end - start);
        visit(start / WORD_ROWS, (u64::MAX >> (WORD_ROWS - count)) << bit);
        start += count;
    }
}

/// Sets the bits of `rows`.
pub(crate) fn set_range(words: &mut [u64], rows: Range<usize>) {
    for_each_word(rows, |index, mask| words[index] |= mask);
}

/// Sets, from bit `at` on, the bits that are set in `bits` of `source`.
pub(crate) fn or_bits(words: &mut [u64], at: usize, source: &[u64], bits: Range<usize>) {
    let mut done = 0;
    while done < bits.len() {
        let (to, from) = (at + done, bits.start + done);
        let room = WORD_ROWS - (to % WORD_ROWS).max(from % WORD_ROWS);
        let count = room.min(bits.len() - done);
        let part = source[from / WORD_ROWS] >> (from % WORD_ROWS) & u64::MAX >> (WORD_ROWS - count);
        words[to / WORD_ROWS] |= part << (to % WORD_ROWS);
        done += count;
    }
}

/// Counts the ones of `rows`.
pub(crate) fn count_range(words: &[u64], rows: Range<usize>) -> usize {
    let mut count = 0;
    for_each_word(rows, |index, mask| {
        count += (words[index] & mask).count_ones() as usize
    });
    count
}

/// Calls `visit` with every row of `rows` whose bit is set, ascending.
pub(crate) fn for_each_one(words: &[u64], rows: Range<usize>, mut visit: impl FnMut(usize)) {
    for_each_word(rows, |index, mask| {
        let mut rest = words[index] & mask;
        while rest != 0 {
            visit(index * WORD_ROWS + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    });
}

/// Positions of the ones of `words` inside `range`, ascending.
pub fn ones(words: &[u64], range: std::ops::Range<usize>) -> impl Iterator<Item = usize> + '_ {
    let first = range.start / WORD_ROWS;
    let mut index = first;
    let mut rest = words
        .get(first)
        .map_or(0, |word| word & (u64::MAX << (range.start % WORD_ROWS)));
    std::iter::from_fn(move || {
        while rest == 0 {
            index += 1;
            if index * WORD_ROWS >= range.end {
                return None;
            }
            rest = *words.get(index)?;
        }
        let row = index * WORD_ROWS + rest.trailing_zeros() as usize;
        rest &= rest - 1;
        (row < range.end).then_some(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_arrow_bits_at_any_offset() {
        let source: Vec<bool> = (0..300).map(|i| i % 3 == 0 || i % 7 == 2).collect();
        let buffer = BooleanBuffer::from(source.clone());
        for (offset, rows) in [(0, 300), (1, 64), (63, 65), (5, 128), (299, 1), (300, 0)] {
            let mut bitmap = Bitmap::default();
            bitmap.copy_booleans(&buffer.slice(offset, rows));
            assert_eq!(bitmap.rows(), rows);
            let expected = source[offset..offset + rows].iter().filter(|b| **b).count();
            assert_eq!(bitmap.count(), expected);
            assert!((0..rows).all(|row| bitmap.get(row) == source[offset + row]));
        }
    }

    #[test]
    fn bits_are_copied_from_any_place_to_any_place() {
        let source: Vec<u64> = (0..8u64)
            .map(|i| (i + 3).wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .collect();
        let bit = |words: &[u64], at: usize| words[at / 64] >> (at % 64) & 1 == 1;
        for (at, from, count) in [
            (0, 0, 512),
            (3, 64, 1),
            (63, 1, 130),
            (64, 63, 65),
            (5, 500, 12),
            (1, 1, 0),
        ] {
            let mut words = vec![0; 16];
            words[0] = 1;
            or_bits(&mut words, at, &source, from..from + count);
            for row in 0..1024 {
                let copied = (at..at + count).contains(&row) && bit(&source, from + row - at);
                assert_eq!(
                    bit(&words, row),
                    copied || row == 0,
                    "{at} {from} {count} {row}"
                );
            }
        }
    }

    #[test]
    fn bits_past_the_end_stay_zero() {
        let mut bitmap = Bitmap::default();
        bitmap.fill(65, true);
        assert_eq!(bitmap.words(), [u64::MAX, 1]);
        bitmap.set(64, false);
        assert_eq!(bitmap.count(), 64);
    }

    #[test]
    fn ones_are_those_of_the_range() {
        let words = [0b1011, 0, u64::MAX, 1 << 63];
        let at = |row: usize| words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1;
        for range in [
            0..256,
            0..0,
            1..3,
            1..130,
            64..128,
            100..191,
            190..256,
            255..256,
        ] {
            let expected: Vec<usize> = range.clone().filter(|row| at(*row)).collect();
            assert_eq!(
                ones(&words, range.clone()).collect::<Vec<_>>(),
                expected,
                "{range:?}"
            );
        }
    }
}
