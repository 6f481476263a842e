//! Lines as arrays, for the level that runs anywhere.
//!
//! Compilers keep such arrays in registers while they move from memory to memory and no longer:
//! folds go through an unpacked block.

use super::line::Folds;
use super::table::folds_of_blocks;
use super::{LINE_BYTES, Lines};
use crate::kernels::portable::Portable;
use std::array::from_fn;

macro_rules! lines {
    ($($lane:ident)*) => {
        $(impl Lines<$lane> for Portable {
            type Line = [$lane; LINE_BYTES / size_of::<$lane>()];

            const WRITTEN_OUT: bool = false;
            const FOLDS: Folds<$lane> = folds_of_blocks::<Self, $lane>();

            #[inline(always)]
            unsafe fn splat(value: $lane) -> Self::Line {
                [value; LINE_BYTES / size_of::<$lane>()]
            }

            #[inline(always)]
            unsafe fn load(from: *const $lane) -> Self::Line {
                // SAFETY: the caller promised a line to read.
                unsafe { from.cast::<Self::Line>().read() }
            }

            #[inline(always)]
            unsafe fn store(line: Self::Line, to: *mut $lane) {
                // SAFETY: the caller promised room for a line.
                unsafe { to.cast::<Self::Line>().write(line) }
            }

            #[inline(always)]
            unsafe fn shift_right(line: Self::Line, count: u32) -> Self::Line {
                from_fn(#[inline(always)] |lane| line[lane] >> count)
            }

            #[inline(always)]
            unsafe fn shift_left(line: Self::Line, count: u32) -> Self::Line {
                from_fn(#[inline(always)] |lane| line[lane] << count)
            }

            #[inline(always)]
            unsafe fn and(a: Self::Line, b: Self::Line) -> Self::Line {
                from_fn(#[inline(always)] |lane| a[lane] & b[lane])
            }

            #[inline(always)]
            unsafe fn or(a: Self::Line, b: Self::Line) -> Self::Line {
                from_fn(#[inline(always)] |lane| a[lane] | b[lane])
            }
        })*
    };
}

lines!(u8 u16 u32 u64);
