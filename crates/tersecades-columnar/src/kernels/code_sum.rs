//! Sums of what byte codes stand for.
//!
//! Each byte of the numbers has a table of its own, its *plane*, so that registers can look up
//! many codes at once and add bytes:
//!
//! ```text
//! numbers 7, 1000     plane 0: 0x07 0xe8     plane 1: 0x00 0x03     planes 2 to 7 are zero
//! ```

use super::level::Level;
use super::{WORD_LANES, assert_block};

/// Numbers that byte codes can stand for.
pub(super) const CODES: usize = 256;

/// Bytes of a number.
const PLANES: usize = size_of::<u64>();

/// What each byte code stands for.
#[derive(Debug, Clone)]
pub struct CodeTable {
    numbers: [u64; CODES],
    planes: [[u8; CODES]; PLANES],
    /// Planes up to the last that has a byte that is not zero.
    used: usize,
    /// Codes up to the last that stands for a number.
    known: usize,
}

impl CodeTable {
    /// Code `i` stands for number `i`, and those without one for 0.
    ///
    /// # Shape
    /// Numbers after the first 256 are left out.
    #[must_use]
    pub fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let mut table = CodeTable {
            numbers: [0; CODES],
            planes: [[0; CODES]; PLANES],
            used: 0,
            known: 0,
        };
        let pairs = table.numbers.iter_mut().zip(numbers);
        let (all, known) = pairs.fold((0, 0), |(all, known), (slot, number)| {
            *slot = number;
            (all | number, known + 1)
        });
        table.known = known;
        table.used = (u64::BITS - all.leading_zeros()).div_ceil(u8::BITS) as usize;
        for (plane, shift) in table.planes[..table.used].iter_mut().zip((0..).step_by(8)) {
            for (byte, number) in plane.iter_mut().zip(&table.numbers) {
                *byte = (number >> shift) as u8;
            }
        }
        table
    }

    /// Codes up to the last that stands for a number; the others stand for 0.
    pub(super) fn known(&self) -> usize {
        self.known
    }

    /// The bytes of the numbers, the lowest first.
    pub(super) fn planes(&self) -> &[[u8; CODES]] {
        &self.planes[..self.used]
    }
}

/// The steps of a level that look codes up.
pub(super) trait CodeSums: Level {
    /// What [`super::Kernels::code_sum`] answers.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn code_sum(codes: &[u8], table: &CodeTable, mask: Option<&[u64]>) -> u128 {
        code_sum(codes, table, mask)
    }
}

/// The definition, one code at a time.
#[inline(always)]
pub(super) fn code_sum(codes: &[u8], table: &CodeTable, mask: Option<&[u64]>) -> u128 {
    assert_block(codes.len(), mask);
    let number = |code: &u8| table.numbers[usize::from(*code)];
    let Some(words) = mask else {
        return codes.iter().map(|code| u128::from(number(code))).sum();
    };
    let parts = codes.chunks(WORD_LANES).zip(words);
    let sums = parts.map(|(codes, word)| {
        let all = codes.iter().zip(0..);
        let kept = all.map(|(code, at)| number(code) & 0u64.wrapping_sub(word >> at & 1));
        kept.map(u128::from).sum::<u128>()
    });
    sums.sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LENGTHS, Random, faster_levels};
    use super::*;
    use crate::kernels::scalar;

    fn check(random: &mut Random, table: &CodeTable, known: u64, length: usize) {
        let code = |_| (random.bits() % known) as u8;
        let codes: Vec<u8> = (0..length).map(code).collect();
        let words = random.words(length.div_ceil(WORD_LANES));
        for mask in [None, Some(&words[..])] {
            let expected = (scalar::KERNELS.code_sum)(&codes, table, mask);
            for level in faster_levels() {
                let answer = (level.code_sum)(&codes, table, mask);
                assert_eq!(answer, expected, "{} {known} {length}", level.name);
            }
        }
    }

    #[test]
    fn codes_add_up_to_their_numbers() {
        let mut random = Random(0xc0de);
        for bits in [0, 1, 7, 8, 9, 16, 31, 32, 33, 56, 57, 63, 64] {
            let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            for known in [1, 2, 64, 65, 128, 129, 255, 256] {
                let table = CodeTable::of((0..known).map(|_| random.bits() & most));
                for length in LENGTHS {
                    check(&mut random, &table, known, length);
                }
            }
        }
    }

    #[test]
    fn a_mask_keeps_its_codes() {
        let table = CodeTable::of([7, 1_000, u64::MAX].into_iter());
        assert_eq!(
            code_sum(&[0, 1, 1, 2, 9], &table, None),
            2_007 + u128::from(u64::MAX)
        );
        assert_eq!(code_sum(&[0, 1, 1, 2], &table, Some(&[0b0011])), 1_007);
        let table = CodeTable::of([3].into_iter());
        assert_eq!(code_sum(&[0, 1, 2], &table, None), 3);
    }
}
