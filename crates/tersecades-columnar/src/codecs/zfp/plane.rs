//! One bit plane of four coefficients: its code, and the tables that write and read it.
//!
//! Coefficients are visited from low to high frequency. Those before the first that has had no
//! one-bit in a higher plane are significant: their bits are written as they are. The rest is
//! written by group tests: `0` if the rest holds no one-bit; else `1`, then the bits up to and
//! including the next one-bit, which makes those coefficients significant, and again from there. A
//! bit that must be one, the last coefficient's after a passed test, is not written.
//!
//! With four coefficients a code has at most seven bits, and what has been significant is a number
//! from 0 to 4, so both directions are one lookup. Planes before the first one-bit are one zero
//! each, and those below the last coefficient's first one-bit lie as they are: both go many at a
//! time.
//!
//! Planes lie in words of sixteen, four bits each, the first plane lowest; they are cut from the
//! coefficients by a transposition of 4 by 16 bits.

use crate::bits::{BitReader, BitWriter, low_bits};

/// Coefficients of a block.
pub(super) const SIZE: usize = 4;

/// Bits of the longest code.
const LONGEST: u32 = 7;

/// Planes of a word.
const WORD_PLANES: u32 = u64::BITS / SIZE as u32;

/// Words of all planes of a block.
const WORDS: usize = SIZE;

/// How one plane is written, or what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plane {
    /// The code's bits when written, the plane's bits when read.
    bits: u8,
    /// Length of the code.
    length: u8,
    /// Significant coefficients after this plane.
    significant: u8,
}

const EMPTY: Plane = Plane {
    bits: 0,
    length: 0,
    significant: 0,
};

/// The code of plane `plane` after `significant` coefficients.
static CODES: [[Plane; 1 << SIZE]; SIZE + 1] = codes();

/// What the next [`LONGEST`] bits say after `significant` coefficients.
static PLANES: [[Plane; 1 << LONGEST]; SIZE + 1] = planes(&codes());

const fn codes() -> [[Plane; 1 << SIZE]; SIZE + 1] {
    let mut codes = [[EMPTY; 1 << SIZE]; SIZE + 1];
    let mut significant = 0;
    while significant <= SIZE {
        let mut plane = 0;
        while plane < 1 << SIZE {
            codes[significant][plane] = code(plane, significant);
            plane += 1;
        }
        significant += 1;
    }
    codes
}

const fn code(plane: usize, significant: usize) -> Plane {
    let mut bits = plane & ((1 << significant) - 1);
    let mut length = significant;
    let mut at = significant;
    while at < SIZE {
        let passes = plane >> at != 0;
        bits |= (passes as usize) << length;
        length += 1;
        if !passes {
            break;
        }
        while at < SIZE - 1 {
            let one = plane >> at & 1;
            bits |= one << length;
            length += 1;
            if one == 1 {
                break;
            }
            at += 1;
        }
        at += 1;
    }
    Plane {
        bits: bits as u8,
        length: length as u8,
        significant: at as u8,
    }
}

/// No code is the start of another, so each fills all entries that start with it.
const fn planes(codes: &[[Plane; 1 << SIZE]; SIZE + 1]) -> [[Plane; 1 << LONGEST]; SIZE + 1] {
    let mut planes = [[EMPTY; 1 << LONGEST]; SIZE + 1];
    let mut significant = 0;
    while significant <= SIZE {
        let mut plane = 0;
        while plane < 1 << SIZE {
            let code = codes[significant][plane];
            let mut rest = 0;
            while rest < 1 << (LONGEST - code.length as u32) {
                planes[significant][code.bits as usize | rest << code.length] = Plane {
                    bits: plane as u8,
                    length: code.length,
                    significant: code.significant,
                };
                rest += 1;
            }
            plane += 1;
        }
        significant += 1;
    }
    planes
}

/// Writes the first `kept` planes, at least one, of coefficients whose first plane is the highest
/// bit; bits below those planes must be zero.
#[inline(always)]
pub(super) fn write(coefficients: [u64; SIZE], kept: u32, writer: &mut BitWriter) {
    let words = to_planes(coefficients, kept);
    let plane = |index: u32| {
        let word = words[(index / WORD_PLANES) as usize];
        (word >> (index % WORD_PLANES * SIZE as u32)) as usize & 0xf
    };
    let any = coefficients.iter().fold(0, |any, it| any | it);
    let empty = any.leading_zeros().min(kept);
    writer.put(0, empty);
    let raw = (coefficients[SIZE - 1].leading_zeros() + 1).min(kept);
    let (mut significant, mut bits, mut length) = (0, 0u64, 0);
    for index in empty..raw {
        let code = CODES[significant][plane(index)];
        bits |= u64::from(code.bits) << length;
        length += u32::from(code.length);
        significant = usize::from(code.significant);
        if length > u64::BITS - LONGEST {
            writer.put(bits, length);
            (bits, length) = (0, 0);
        }
    }
    writer.put(bits, length);
    let mut next = raw.max(empty);
    while next < kept {
        let at = next % WORD_PLANES;
        let count = (WORD_PLANES - at).min(kept - next);
        let word = words[(next / WORD_PLANES) as usize] >> (at * SIZE as u32);
        let count_bits = count * SIZE as u32;
        writer.put(word & low_bits(count_bits), count_bits);
        next += count;
    }
}

/// Reads what [`write`] wrote of `kept` planes.
#[inline(always)]
pub(super) fn read(kept: u32, reader: &mut BitReader) -> [u64; SIZE] {
    let mut words = [0; WORDS];
    let (mut next, mut significant) = (0, 0);
    while next < kept && significant == 0 {
        let (bits, held) = reader.peek_many();
        let empty = bits.trailing_zeros().min(held).min(kept - next);
        reader.pass(empty);
        next += empty;
        if empty < held && next < kept {
            (next, significant) = read_coded((next, kept), significant, &mut words, reader);
        }
    }
    while next < kept && significant < SIZE {
        (next, significant) = read_coded((next, kept), significant, &mut words, reader);
    }
    while next < kept {
        let (bits, held) = reader.peek_many();
        let at = next % WORD_PLANES;
        let count = (WORD_PLANES - at).min(kept - next).min(held / SIZE as u32);
        let count_bits = count * SIZE as u32;
        words[(next / WORD_PLANES) as usize] |= (bits & low_bits(count_bits)) << (at * SIZE as u32);
        reader.pass(count_bits);
        next += count;
    }
    from_planes(words, kept)
}

/// Reads planes from `next` on until all coefficients are significant or the bits at hand end.
#[inline(always)]
fn read_coded(
    (mut next, kept): (u32, u32),
    mut significant: usize,
    words: &mut [u64; WORDS],
    reader: &mut BitReader,
) -> (u32, usize) {
    let (mut bits, held) = reader.peek_many();
    let mut used = 0;
    while next < kept && significant < SIZE && used + LONGEST <= held {
        let read = PLANES[significant][(bits & low_bits(LONGEST)) as usize];
        bits >>= read.length;
        used += u32::from(read.length);
        significant = usize::from(read.significant);
        words[(next / WORD_PLANES) as usize] |=
            u64::from(read.bits) << (next % WORD_PLANES * SIZE as u32);
        next += 1;
    }
    reader.pass(used);
    (next, significant)
}

/// Swaps the bits of `word` in `mask` with those `apart` above them.
#[inline(always)]
const fn swapped(word: u64, apart: u32, mask: u64) -> u64 {
    let differing = (word ^ word >> apart) & mask;
    word ^ differing ^ differing << apart
}

/// Four numbers of sixteen bits as sixteen of four, and the order of the four bits' groups turned.
#[inline(always)]
const fn planes_of(word: u64) -> u64 {
    let word = swapped(word, 24, 0x0000_0000_ff00_ff00);
    let word = swapped(word, 12, 0x0000_f0f0_0000_f0f0);
    let word = swapped(word, 6, 0x00cc_00cc_00cc_00cc);
    let word = swapped(word, 3, 0x0a0a_0a0a_0a0a_0a0a);
    swapped(word.swap_bytes(), 4, 0x0f0f_0f0f_0f0f_0f0f)
}

/// Undoes [`planes_of`].
#[inline(always)]
const fn numbers_of(word: u64) -> u64 {
    let word = swapped(word, 4, 0x0f0f_0f0f_0f0f_0f0f).swap_bytes();
    let word = swapped(word, 3, 0x0a0a_0a0a_0a0a_0a0a);
    let word = swapped(word, 6, 0x00cc_00cc_00cc_00cc);
    let word = swapped(word, 12, 0x0000_f0f0_0000_f0f0);
    swapped(word, 24, 0x0000_0000_ff00_ff00)
}

#[inline(always)]
fn to_planes(coefficients: [u64; SIZE], kept: u32) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let used = words.iter_mut().take(kept.div_ceil(WORD_PLANES) as usize);
    for (index, word) in used.enumerate() {
        let below = u64::BITS - WORD_PLANES * (index as u32 + 1);
        let [a, b, c, d] = coefficients.map(|it| it >> below & low_bits(WORD_PLANES));
        *word = planes_of(a | b << 16 | c << 32 | d << 48);
    }
    words
}

#[inline(always)]
fn from_planes(words: [u64; WORDS], kept: u32) -> [u64; SIZE] {
    let mut coefficients = [0; SIZE];
    let used = words.iter().take(kept.div_ceil(WORD_PLANES) as usize);
    for (index, word) in used.enumerate() {
        let below = u64::BITS - WORD_PLANES * (index as u32 + 1);
        let numbers = numbers_of(*word);
        for (position, coefficient) in coefficients.iter_mut().enumerate() {
            let number = numbers >> (position as u32 * WORD_PLANES) & low_bits(WORD_PLANES);
            *coefficient |= number << below;
        }
    }
    coefficients
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_pattern_is_one_code_that_says_its_plane() {
        for significant in 0..=SIZE {
            for (bits, read) in PLANES[significant].iter().enumerate() {
                let code = CODES[significant][read.bits as usize];
                assert!(read.length > 0, "every pattern is read as something");
                assert_eq!(
                    (code.length, code.significant),
                    (read.length, read.significant)
                );
                assert_eq!(bits & ((1 << code.length) - 1), code.bits as usize);
            }
        }
    }

    #[test]
    fn planes_are_the_bits_of_each_number_from_the_highest() {
        let numbers = [0x8001_0000_0000_0003, 1 << 62, 0, u64::MAX];
        let words = to_planes(numbers, 64);
        for plane in 0..64 {
            let bit = |index: usize| (numbers[index] >> (63 - plane) & 1) << index;
            let expected = bit(0) | bit(1) | bit(2) | bit(3);
            assert_eq!(
                words[plane / 16] >> (plane % 16 * 4) & 0xf,
                expected,
                "{plane}"
            );
        }
        assert_eq!(from_planes(words, 64), numbers);
    }

    #[test]
    fn codes_worked_by_hand() {
        let code = |plane: usize, significant: usize| {
            let code = CODES[significant][plane];
            (code.bits, code.length, code.significant)
        };
        assert_eq!(code(0b0000, 0), (0b0, 1, 0), "nothing anywhere");
        assert_eq!(code(0b0001, 0), (0b011, 3, 1), "test, one, test fails");
        assert_eq!(code(0b1000, 0), (0b0001, 4, 4), "the last bit is implied");
        assert_eq!(code(0b1111, 0), (0b111_1111, 7, 4), "the longest");
        assert_eq!(code(0b0110, 2), (0b01110, 5, 3), "two as they are");
        assert_eq!(code(0b1010, 4), (0b1010, 4, 4), "all as they are");
    }
}
