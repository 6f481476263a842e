//! Lanes in a range and their sum, of full blocks of bytes and of 16-bit lanes.
//!
//! Loops with a bitmap and without are apart: where lanes of ones come from either side of a branch
//! the compiler packs them and takes them apart again.

use super::avx2::{
    Avx2, expand_8, expand_16, is_at_most_8, is_at_most_16, lanes_32, lanes_64, word_8, word_16,
};
use crate::kernels::based::Moved;
use crate::kernels::moment::BLOCK_BITS;
use crate::kernels::range_sum::{RangeSums, for_each_word};
use crate::kernels::{BLOCK_LANES, GROUPS};
use std::arch::x86_64::*;

impl RangeSums<u32> for Avx2 {}

impl RangeSums<u64> for Avx2 {}

impl RangeSums<u8> for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full_in_range(
        values: &[u8; BLOCK_LANES],
        moved: &Moved<GROUPS>,
        keep: Option<&[u64; BLOCK_BITS]>,
        out: &mut [u64; BLOCK_BITS],
    ) -> Option<u64> {
        Some(match keep {
            Some(_) => bytes::<true>(values, moved, keep, out),
            None => bytes::<false>(values, moved, keep, out),
        })
    }
}

impl RangeSums<u16> for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full_in_range(
        values: &[u16; BLOCK_LANES],
        moved: &Moved<GROUPS>,
        keep: Option<&[u64; BLOCK_BITS]>,
        out: &mut [u64; BLOCK_BITS],
    ) -> Option<u64> {
        Some(match keep {
            Some(_) => shorts::<true>(values, moved, keep, out),
            None => shorts::<false>(values, moved, keep, out),
        })
    }
}

/// [`RangeSums::full_in_range`] of bytes; `KEEPS` where there is a bitmap.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn bytes<const KEEPS: bool>(
    values: &[u8; BLOCK_LANES],
    moved: &Moved<GROUPS>,
    keep: Option<&[u64; BLOCK_BITS]>,
    out: &mut [u64; BLOCK_BITS],
) -> u64 {
    const LANES: usize = 32;
    let zero = _mm256_setzero_si256();
    let mut totals = [zero; 2];
    for_each_word(values, moved, keep, out, |lanes, range, kept| {
        let [from, span] = range.map(|end| _mm256_set1_epi64x(end));
        let (registers, _) = lanes.as_chunks::<LANES>();
        let mut passing = [zero; 2];
        for (part, lanes) in registers.iter().enumerate() {
            // SAFETY: `lanes` is one register long.
            let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
            let inside = is_at_most_8(_mm256_sub_epi8(lanes, from), span);
            let kept = match KEEPS {
                true => expand_8(kept >> (part * LANES)),
                // All of a group or none.
                false => _mm256_set1_epi64x(kept.cast_signed()),
            };
            passing[part] = _mm256_and_si256(inside, kept);
            let lanes = _mm256_and_si256(lanes, passing[part]);
            totals[part] = _mm256_add_epi64(totals[part], _mm256_sad_epu8(lanes, zero));
        }
        word_8(passing)
    });
    lanes_64(_mm256_add_epi64(totals[0], totals[1]))
        .iter()
        .sum()
}

/// [`RangeSums::full_in_range`] of 16-bit lanes; `KEEPS` where there is a bitmap.
///
/// Lanes less 2^15 are signed: one multiply-add takes pairs of them.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn shorts<const KEEPS: bool>(
    values: &[u16; BLOCK_LANES],
    moved: &Moved<GROUPS>,
    keep: Option<&[u64; BLOCK_BITS]>,
    out: &mut [u64; BLOCK_BITS],
) -> u64 {
    const LANES: usize = 16;
    let (middle, one) = (_mm256_set1_epi16(i16::MIN), _mm256_set1_epi16(1));
    let mut totals = [_mm256_setzero_si256(); 4];
    let mut count = 0;
    for_each_word(values, moved, keep, out, |lanes, range, kept| {
        let [from, span] = range.map(|end| _mm256_set1_epi64x(end));
        let (registers, _) = lanes.as_chunks::<LANES>();
        let mut passing = [_mm256_setzero_si256(); 4];
        for (part, lanes) in registers.iter().enumerate() {
            // SAFETY: `lanes` is one register long.
            let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
            let inside = is_at_most_16(_mm256_sub_epi16(lanes, from), span);
            let kept = match KEEPS {
                true => expand_16(kept >> (part * LANES)),
                // All of a group or none.
                false => _mm256_set1_epi64x(kept.cast_signed()),
            };
            passing[part] = _mm256_and_si256(inside, kept);
            let lowered = _mm256_and_si256(_mm256_sub_epi16(lanes, middle), passing[part]);
            // A pair is at most 2^16, sixteen of them are added.
            totals[part] = _mm256_add_epi32(totals[part], _mm256_madd_epi16(lowered, one));
        }
        let passing = word_16(passing);
        count += u64::from(passing.count_ones());
        passing
    });
    let [a, b, c, d] = totals;
    let total = _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
    let lowered = lanes_32(total).map(|sum| i64::from(sum.cast_signed()));
    let sum = lowered.iter().sum::<i64>() + (count << 15).cast_signed();
    sum.cast_unsigned()
}
