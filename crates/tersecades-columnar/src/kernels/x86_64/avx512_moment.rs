//! Sums and sums of squares of full blocks of bytes and of 16-bit lanes.
//!
//! ```text
//! 16 bits   lane - 2^15 is signed: one multiply-add takes pairs of squares, one pairs of lanes
//! bytes     widened to 16 bits for their squares; eight at a time are summed by differences from 0
//! ```
//! Groups are added up together at the end: one register has the eight sums.

use super::avx512::Avx512;
use crate::kernels::moment::{BLOCK_BITS, Moments};
use crate::kernels::range_sum::BLOCK_AHEAD_BYTES;
use crate::kernels::{BLOCK_LANES, GROUP_LANES, GROUPS, PerGroup, prefetch_far_past};
use std::arch::x86_64::*;

impl Moments<u32> for Avx512 {}

impl Moments<u64> for Avx512 {}

impl Moments<u8> for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full<const SQUARES: bool>(
        values: &[u8; BLOCK_LANES],
        keep: Option<&[u64; BLOCK_BITS]>,
        sums: &mut PerGroup<u128>,
    ) -> Option<u128> {
        const REGISTERS: usize = GROUP_LANES / 64;
        let zero = _mm512_setzero_si512();
        let mut totals = [zero; GROUPS];
        let mut squares = zero;
        let (groups, _) = values.as_chunks::<GROUP_LANES>();
        for (index, (total, group)) in totals.iter_mut().zip(groups).enumerate() {
            let (registers, _) = group.as_chunks::<64>();
            for (part, lanes) in registers.iter().enumerate() {
                let kept = keep.map_or(u64::MAX, |words| words[index * REGISTERS + part]);
                prefetch_far_past(lanes, BLOCK_AHEAD_BYTES);
                // SAFETY: `lanes` is one register long.
                let lanes = unsafe { _mm512_maskz_loadu_epi8(kept, lanes.as_ptr().cast()) };
                *total = _mm512_add_epi64(*total, _mm512_sad_epu8(lanes, zero));
                if SQUARES {
                    for half in [
                        _mm512_unpacklo_epi8(lanes, zero),
                        _mm512_unpackhi_epi8(lanes, zero),
                    ] {
                        // 32 pairs of squares below 2^17 stay below 2^22.
                        squares = _mm512_add_epi32(squares, _mm512_madd_epi16(half, half));
                    }
                }
            }
        }
        set(sums, sums_of_words(totals));
        let squares = _mm512_reduce_add_epi32(squares).cast_unsigned();
        Some(u128::from(squares))
    }
}

impl Moments<u16> for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full<const SQUARES: bool>(
        values: &[u16; BLOCK_LANES],
        keep: Option<&[u64; BLOCK_BITS]>,
        sums: &mut PerGroup<u128>,
    ) -> Option<u128> {
        const REGISTERS: usize = GROUP_LANES / 32;
        /// What lanes are lowered by.
        const MIDDLE: i32 = 1 << 15;
        let middle = _mm512_set1_epi16(i16::MIN);
        let (one, low_half) = (_mm512_set1_epi16(1), _mm512_set1_epi64(0xffff_ffff));
        let mut totals = [_mm512_setzero_si512(); GROUPS];
        let mut squares = [_mm512_setzero_si512(); 2];
        let (groups, _) = values.as_chunks::<GROUP_LANES>();
        for (index, (total, group)) in totals.iter_mut().zip(groups).enumerate() {
            let (registers, _) = group.as_chunks::<32>();
            for (part, lanes) in registers.iter().enumerate() {
                let at = index * REGISTERS + part;
                let kept = keep.map_or(u32::MAX, |words| (words[at / 2] >> (at % 2 * 32)) as u32);
                prefetch_far_past(lanes, BLOCK_AHEAD_BYTES);
                // SAFETY: `lanes` is one register long.
                let lanes = unsafe { _mm512_maskz_loadu_epi16(kept, lanes.as_ptr().cast()) };
                let lowered = _mm512_xor_si512(lanes, middle);
                *total = _mm512_add_epi32(*total, _mm512_madd_epi16(lowered, one));
                if SQUARES {
                    // A pair of squares is at most 2^31.
                    let pairs = _mm512_madd_epi16(lowered, lowered);
                    let low = _mm512_and_si512(pairs, low_half);
                    squares[0] = _mm512_add_epi64(squares[0], low);
                    squares[1] = _mm512_add_epi64(squares[1], _mm512_srli_epi64::<32>(pairs));
                }
            }
        }
        let lowered = sums_of_halves(totals);
        let raised = _mm256_add_epi32(lowered, _mm256_set1_epi32(MIDDLE * GROUP_LANES as i32));
        set(sums, _mm512_cvtepu32_epi64(raised));
        if !SQUARES {
            return Some(0);
        }
        // x² = (x - m)² + 2m(x - m) + m²
        let squares = _mm512_reduce_add_epi64(_mm512_add_epi64(squares[0], squares[1]));
        let lowered = _mm512_reduce_add_epi64(_mm512_cvtepi32_epi64(lowered));
        let middle = i64::from(MIDDLE);
        let all = squares + 2 * middle * lowered + middle * middle * BLOCK_LANES as i64;
        Some(all.cast_unsigned().into())
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn set(sums: &mut PerGroup<u128>, words: __m512i) {
    let mut lanes = [0u64; GROUPS];
    // SAFETY: `lanes` is one register long.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), words) };
    *sums = lanes.map(u128::from);
}

/// The sums of the 64-bit lanes of each register.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums_of_words(totals: [__m512i; GROUPS]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = totals;
    let pair = |a, b| _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let quarters = |a, b| {
        let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
        _mm512_add_epi64(even, _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b))
    };
    let first = quarters(pair(a, b), pair(c, d));
    quarters(first, quarters(pair(e, f), pair(g, h)))
}

/// The sums of the 32-bit lanes of each register.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums_of_halves(totals: [__m512i; GROUPS]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = totals;
    let pair = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let four = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let quarters = |a, b| {
        let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
        _mm512_add_epi32(even, _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b))
    };
    let eight = quarters(four(pair(a, b), pair(c, d)), four(pair(e, f), pair(g, h)));
    _mm512_castsi512_si256(quarters(eight, eight))
}
