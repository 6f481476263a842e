//! Sums and sums of squares of full blocks of bytes and of 16-bit lanes.
//!
//! ```text
//! 16 bits   lane - 2^15 is signed: one multiply-add takes pairs of squares, one pairs of lanes
//! bytes     widened to 16 bits for their squares; eight at a time are summed by differences from 0
//! ```
//! Each group leaves a register of 32-bit parts; the eight are added up together at the end. A word
//! of a bitmap fills a register, of which a shuffle gives each lane the byte that has its bit.

use super::avx2::{Avx2, lanes_32, lanes_64, own_bits_8, own_bits_16};
use crate::kernels::moment::{BLOCK_BITS, Moments};
use crate::kernels::range_sum::BLOCK_AHEAD_BYTES;
use crate::kernels::{BLOCK_LANES, GROUP_LANES, GROUPS, PerGroup, WORD_LANES, prefetch_far_past};
use std::arch::x86_64::*;

impl Moments<u32> for Avx2 {}

impl Moments<u64> for Avx2 {}

impl Moments<u8> for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full<const SQUARES: bool>(
        values: &[u8; BLOCK_LANES],
        keep: Option<&[u64; BLOCK_BITS]>,
        sums: &mut PerGroup<u128>,
    ) -> Option<u128> {
        const REPEAT: i64 = 0x0101_0101_0101_0101;
        let (zero, own) = (_mm256_setzero_si256(), own_bits_8());
        let first = _mm256_setr_epi64x(0, REPEAT, 2 * REPEAT, 3 * REPEAT);
        let parts = [first, _mm256_add_epi8(first, _mm256_set1_epi8(4))];
        let mut totals = [zero; GROUPS];
        let mut squares = zero;
        let (groups, _) = values.as_chunks::<GROUP_LANES>();
        for (index, (total, group)) in totals.iter_mut().zip(groups).enumerate() {
            let mut sum = zero;
            let (words, _) = group.as_chunks::<WORD_LANES>();
            for (word, lanes) in words.iter().enumerate() {
                prefetch_far_past(lanes, BLOCK_AHEAD_BYTES);
                let (registers, _) = lanes.as_chunks::<32>();
                for (lanes, part) in registers.iter().zip(parts) {
                    // SAFETY: `lanes` is one register long.
                    let mut lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
                    if let Some(keep) = keep {
                        let kept = _mm256_shuffle_epi8(bits(keep, index, word), part);
                        let kept = _mm256_cmpeq_epi8(_mm256_and_si256(kept, own), own);
                        lanes = _mm256_and_si256(lanes, kept);
                    }
                    // Below 2^32, so that the upper half of each word stays zero.
                    sum = _mm256_add_epi64(sum, _mm256_sad_epu8(lanes, zero));
                    if SQUARES {
                        // 64 pairs of squares below 2^17 stay below 2^23.
                        squares = _mm256_add_epi32(squares, squares_of(lanes));
                    }
                }
            }
            *total = sum;
        }
        *sums = sums_of_halves(totals).map(|sum| u128::from(sum.cast_unsigned()));
        Some(lanes_32(squares).iter().map(|&sum| u128::from(sum)).sum())
    }
}

impl Moments<u16> for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full<const SQUARES: bool>(
        values: &[u16; BLOCK_LANES],
        keep: Option<&[u64; BLOCK_BITS]>,
        sums: &mut PerGroup<u128>,
    ) -> Option<u128> {
        /// What lanes are lowered by.
        const MIDDLE: i64 = 1 << 15;
        let (zero, own) = (_mm256_setzero_si256(), own_bits_16());
        let (one, middle) = (_mm256_set1_epi16(1), _mm256_set1_epi16(i16::MIN));
        let low_half = _mm256_set1_epi64x(0xffff_ffff);
        let parts = [0x0100, 0x0302, 0x0504, 0x0706].map(|pair| _mm256_set1_epi16(pair));
        let mut totals = [zero; GROUPS];
        let mut squares = [zero; 2];
        let (groups, _) = values.as_chunks::<GROUP_LANES>();
        for (index, (total, group)) in totals.iter_mut().zip(groups).enumerate() {
            let mut sum = zero;
            let (words, _) = group.as_chunks::<WORD_LANES>();
            for (word, lanes) in words.iter().enumerate() {
                let (lines, _) = lanes.as_chunks::<32>();
                lines
                    .iter()
                    .for_each(|line| prefetch_far_past(line, BLOCK_AHEAD_BYTES));
                let (registers, _) = lanes.as_chunks::<16>();
                for (lanes, part) in registers.iter().zip(parts) {
                    // SAFETY: `lanes` is one register long.
                    let mut lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
                    if let Some(keep) = keep {
                        let kept = _mm256_shuffle_epi8(bits(keep, index, word), part);
                        let kept = _mm256_cmpeq_epi16(_mm256_and_si256(kept, own), own);
                        lanes = _mm256_and_si256(lanes, kept);
                    }
                    let lowered = _mm256_xor_si256(lanes, middle);
                    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(lowered, one));
                    if SQUARES {
                        // A pair of squares is at most 2^31.
                        let pairs = _mm256_madd_epi16(lowered, lowered);
                        let low = _mm256_and_si256(pairs, low_half);
                        squares[0] = _mm256_add_epi64(squares[0], low);
                        squares[1] = _mm256_add_epi64(squares[1], _mm256_srli_epi64::<32>(pairs));
                    }
                }
            }
            *total = sum;
        }
        let lowered = sums_of_halves(totals).map(i64::from);
        let raised = |sum: i64| (sum + MIDDLE * GROUP_LANES as i64).cast_unsigned();
        *sums = lowered.map(|sum| raised(sum).into());
        if !SQUARES {
            return Some(0);
        }
        // x² = (x - m)² + 2m(x - m) + m²
        let squares = lanes_64(_mm256_add_epi64(squares[0], squares[1]));
        let lowered = 2 * MIDDLE * lowered.iter().sum::<i64>();
        let all = lowered + MIDDLE * MIDDLE * BLOCK_LANES as i64;
        Some(
            (squares.iter().sum::<u64>().cast_signed() + all)
                .cast_unsigned()
                .into(),
        )
    }
}

/// Sums of the squares of four bytes each.
#[inline]
#[target_feature(enable = "avx2")]
fn squares_of(bytes: __m256i) -> __m256i {
    let zero = _mm256_setzero_si256();
    let low = _mm256_unpacklo_epi8(bytes, zero);
    let high = _mm256_unpackhi_epi8(bytes, zero);
    _mm256_add_epi32(_mm256_madd_epi16(low, low), _mm256_madd_epi16(high, high))
}

/// A register full of a word of the bitmap of a group.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(keep: &[u64; BLOCK_BITS], group: usize, word: usize) -> __m256i {
    let bits = keep[group * (GROUP_LANES / WORD_LANES) + word];
    _mm256_set1_epi64x(bits.cast_signed())
}

/// The sums of the 32-bit lanes of each register.
#[inline]
#[target_feature(enable = "avx2")]
fn sums_of_halves(totals: [__m256i; GROUPS]) -> [i32; GROUPS] {
    let [a, b, c, d, e, f, g, h] = totals;
    let pair = |a, b| _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let four = |a, b| _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (first, last) = (four(pair(a, b), pair(c, d)), four(pair(e, f), pair(g, h)));
    let low = _mm256_permute2x128_si256::<0x20>(first, last);
    let high = _mm256_permute2x128_si256::<0x31>(first, last);
    lanes_32(_mm256_add_epi32(low, high)).map(u32::cast_signed)
}
