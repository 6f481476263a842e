//! Lines as arrays, for the level that runs anywhere.

use super::{LINE_BYTES, Lines};
use crate::kernels::portable::{Portable, flags_to_bits, select};
use std::array::from_fn;

macro_rules! lines {
    ($($lane:ident)*) => {
        $(impl Lines<$lane> for Portable {
            type Line = [$lane; LINE_BYTES / size_of::<$lane>()];
            type Sums = u128;

            const WRITTEN_OUT: u32 = 0;

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

            #[inline(always)]
            unsafe fn min(a: Self::Line, b: Self::Line) -> Self::Line {
                from_fn(#[inline(always)] |lane| a[lane].min(b[lane]))
            }

            #[inline(always)]
            unsafe fn max(a: Self::Line, b: Self::Line) -> Self::Line {
                from_fn(#[inline(always)] |lane| a[lane].max(b[lane]))
            }

            #[inline(always)]
            unsafe fn inside(line: Self::Line, low: Self::Line, span: Self::Line) -> u64 {
                flags_to_bits(&from_fn::<_, { LINE_BYTES / size_of::<$lane>() }, _>(
                    #[inline(always)]
                    |lane| u8::from(line[lane].wrapping_sub(low[lane]) <= span[lane]),
                ))
            }

            #[inline(always)]
            unsafe fn keep(line: Self::Line, keep: u64, other: Self::Line) -> Self::Line {
                select(line, keep, other)
            }

            #[inline(always)]
            unsafe fn no_sums() -> Self::Sums {
                0
            }

            #[inline(always)]
            unsafe fn add(sums: Self::Sums, line: Self::Line) -> Self::Sums {
                if $lane::BITS <= 32 {
                    let total: u64 = line.iter().map(|&lane| u64::from(lane)).sum();
                    sums + u128::from(total)
                } else {
                    sums + line.iter().map(|&lane| u128::from(lane)).sum::<u128>()
                }
            }

            #[inline(always)]
            unsafe fn total(sums: Self::Sums) -> u128 {
                sums
            }
        })*
    };
}

lines!(u8 u16 u32 u64);
