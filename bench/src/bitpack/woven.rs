//! BitWeaving/H: packed codes compared without unpacking, as Li and Patel have it.
//!
//! Source: Li and Patel, "BitWeaving: Fast Scans for Main Memory Data Processing", SIGMOD 2013.

use std::hint::black_box;

use super::target::{Body, one_by_one};

/// Segments side by side.
pub(super) const SEGMENTS: usize = 8;

/// One word of answers per segment.
pub(super) type Answers = [u64; SEGMENTS];

/// A comparison with a constant.
#[derive(Clone, Copy)]
pub(super) enum Comparison {
    Above,
    Equal,
}

/// A comparison of all codes.
pub(super) struct Scan<'a, const WIDTH: usize> {
    pub(super) woven: &'a Woven<WIDTH>,
    pub(super) comparison: Comparison,
    pub(super) constant: u64,
    pub(super) out: &'a mut [Answers],
}

impl<const WIDTH: usize> Body for Scan<'_, WIDTH> {
    #[inline(always)]
    fn run(self) {
        let constant = black_box(self.constant);
        match self.comparison {
            Comparison::Above => self.woven.above(constant, self.out),
            Comparison::Equal => self.woven.equal(constant, self.out),
        }
        black_box(self.out);
    }
}

/// Codes of `WIDTH` bits and a delimiter above each, in words of 64 bits.
///
/// A segment is `WIDTH + 1` words; code `t * (WIDTH + 1) + i` is field `t` of word `i`, so that
/// delimiters of all words, shifted to different places, make the answers of a segment in order.
pub(super) struct Woven<const WIDTH: usize> {
    words: Vec<[u64; SEGMENTS]>,
}

impl<const WIDTH: usize> Woven<WIDTH> {
    const FIELD: usize = WIDTH + 1;
    const FIELDS: usize = 64 / Self::FIELD;
    const CODES: usize = Self::FIELDS * Self::FIELD;

    /// The word, the segment and the field of code `index`.
    fn place(index: usize) -> (usize, usize, usize) {
        let (segment, code) = (index / Self::CODES, index % Self::CODES);
        let word = segment / SEGMENTS * Self::FIELD + code % Self::FIELD;
        (word, segment % SEGMENTS, code / Self::FIELD)
    }

    /// Of `codes`.
    pub(super) fn new(codes: impl ExactSizeIterator<Item = u64>) -> Self {
        let groups = codes.len().div_ceil(Self::CODES * SEGMENTS);
        let mut words = vec![[0; SEGMENTS]; groups * Self::FIELD];
        for (index, code) in codes.enumerate() {
            let (word, segment, field) = Self::place(index);
            words[word][segment] |= code << (field * Self::FIELD);
        }
        Self { words }
    }

    /// Room for the answers to one comparison.
    pub(super) fn answers(&self) -> Vec<Answers> {
        vec![[0; SEGMENTS]; self.words.len() / Self::FIELD]
    }

    /// Whether `answers` say yes to code `index`.
    pub(super) fn says(answers: &[Answers], index: usize) -> bool {
        let (segment, bit) = (index / Self::CODES, index % Self::CODES);
        answers[segment / SEGMENTS][segment % SEGMENTS] >> bit & 1 == 1
    }

    /// `value` in every field.
    #[inline(always)]
    fn repeated(value: u64) -> u64 {
        (0..Self::FIELDS).fold(0, |word, field| word | value << (field * Self::FIELD))
    }

    /// One word of answers per segment, of which the lowest `CODES` bits count.
    #[inline(always)]
    fn scan(&self, out: &mut [Answers], delimiter: impl Fn(u64) -> u64) {
        let delimiters = Self::repeated(1 << WIDTH);
        for (group, answers) in self.words.chunks_exact(Self::FIELD).zip(out) {
            let mut found = [0; SEGMENTS];
            for (place, words) in group.iter().enumerate() {
                one_by_one();
                for (found, &word) in found.iter_mut().zip(words) {
                    *found |= (delimiter(word) & delimiters) >> (WIDTH - place);
                }
            }
            *answers = found;
        }
    }

    /// Adding the complement of the constant carries into the delimiter of a larger code.
    #[inline(always)]
    fn above(&self, constant: u64, out: &mut [Answers]) {
        let complement = Self::repeated(constant ^ ((1 << WIDTH) - 1));
        self.scan(out, |word| word.wrapping_add(complement));
    }

    /// Adding all ones carries into the delimiter of a code that differs.
    #[inline(always)]
    fn equal(&self, constant: u64, out: &mut [Answers]) {
        let (constant, most) = (Self::repeated(constant), Self::repeated((1 << WIDTH) - 1));
        self.scan(out, |word| !((word ^ constant).wrapping_add(most)));
    }
}
