//! One bit plane of four coefficients: its code, and the tables that write and read it.
//!
//! Coefficients are visited from low to high frequency. Those before the first that has had no
//! one-bit in a higher plane are significant: their bits are written as they are. The rest is
//! written by group tests: `0` if the rest holds no one-bit; else `1`, then the bits up to and
//! including the next one-bit, which makes those coefficients significant, and again from there. A
//! bit that must be one, the last coefficient's after a passed test, is not written.
//!
//! With four coefficients a code has at most seven bits, and what has been significant is a number
//! from 0 to 4, so both directions are one lookup.

/// Coefficients of a block.
pub(super) const SIZE: usize = 4;

/// Bits of the longest code.
pub(super) const LONGEST: u32 = 7;

/// How one plane is written, or what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plane {
    /// The code's bits when written, the plane's bits when read.
    pub(super) bits: u8,
    /// Length of the code.
    pub(super) length: u8,
    /// Significant coefficients after this plane.
    pub(super) significant: u8,
}

const EMPTY: Plane = Plane {
    bits: 0,
    length: 0,
    significant: 0,
};

/// The code of plane `plane` after `significant` coefficients.
pub(super) static CODES: [[Plane; 1 << SIZE]; SIZE + 1] = codes();

/// What the next [`LONGEST`] bits say after `significant` coefficients.
pub(super) static PLANES: [[Plane; 1 << LONGEST]; SIZE + 1] = planes(&codes());

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
