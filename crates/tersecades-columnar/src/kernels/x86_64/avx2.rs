//! The level for AVX2: compares leave lanes of ones, and `movemask` takes their top bits.
//!
//! There is no unsigned compare. Up to 32 bits `a <= b` is `min(a, b) == a`; 64-bit lanes flip
//! their top bit and compare signed.

use crate::kernels::code_sum::CodeSums;
use crate::kernels::level::{Level, Steps, Word, table};
use crate::kernels::moment::Moments;
use crate::kernels::outlier::Outlying;
use crate::kernels::try_narrow;
use crate::kernels::{GROUP_LANES, GROUPS, Kernels, Lane, Narrow, portable};

use super::avx2_cut::{cut_8, cut_16};
use std::arch::x86_64::*;

/// The table of this level.
// SAFETY: `detect` hands this table out only where it found every feature that `run` enables.
pub(super) static KERNELS: Kernels = unsafe { table::<Avx2>("avx2") };

/// AVX2, BMI, LZCNT and POPCNT.
pub(super) struct Avx2;

impl<W: Lane> Moments<W> for Avx2 where Avx2: Steps<W> {}

impl<W: Lane> Outlying<W> for Avx2 {}

impl CodeSums for Avx2 {}

impl Level for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn run<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn rows(word: u64, first_row: u32, out: *mut u32) {
        // SAFETY: the caller promised room for every set bit and the slack.
        unsafe { portable::rows(word, first_row, out) }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn sum_bytes(bytes: &[u8]) -> u64 {
        let (pairs, rest) = bytes.as_chunks::<64>();
        let mut totals = [_mm256_setzero_si256(); 2];
        for pair in pairs {
            let (registers, _) = pair.as_chunks::<32>();
            for (total, lanes) in totals.iter_mut().zip(registers) {
                // SAFETY: `lanes` is one register long.
                let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
                *total = _mm256_add_epi64(*total, _mm256_sad_epu8(lanes, _mm256_setzero_si256()));
            }
        }
        let total = _mm256_add_epi64(totals[0], totals[1]);
        let half = _mm_add_epi64(
            _mm256_castsi256_si128(total),
            _mm256_extracti128_si256::<1>(total),
        );
        let total = _mm_cvtsi128_si64(half) + _mm_extract_epi64::<1>(half);
        total.cast_unsigned() + rest.iter().map(|&byte| u64::from(byte)).sum::<u64>()
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn store_past(line: *const u8, out: *mut u8) {
        let (line, out) = (line.cast::<__m256i>(), out.cast::<__m256i>());
        // SAFETY: two registers make a line; the caller promised alignment and validity.
        unsafe {
            _mm256_stream_si256(out, _mm256_loadu_si256(line));
            _mm256_stream_si256(out.add(1), _mm256_loadu_si256(line.add(1)));
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn fence() {
        _mm_sfence();
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn cut<T: Narrow<D>, D: Lane>(
        values: &[T; GROUP_LANES],
        base: T,
        out: &mut [D; GROUP_LANES],
    ) -> T {
        let Some(words) = T::words(values) else {
            return try_narrow::cut(values, base, out);
        };
        if let Some(out) = D::bytes_mut(out) {
            T::truncate(cut_8(words, base.into(), out))
        } else if let Some(out) = D::shorts_mut(out) {
            T::truncate(cut_16(words, base.into(), out))
        } else {
            try_narrow::cut(values, base, out)
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn overlap(
        bases: &[u64; GROUPS],
        maxima: &[u64; GROUPS],
        low: u64,
        high: u64,
    ) -> (u8, u8) {
        let (low, high) = (
            _mm256_set1_epi64x(signed(low)),
            _mm256_set1_epi64x(signed(high)),
        );
        let (bases, _) = bases.as_chunks::<4>();
        let (maxima, _) = maxima.as_chunks::<4>();
        let (mut misses, mut leaves) = (0, 0);
        for (half, (bases, maxima)) in bases.iter().zip(maxima).enumerate() {
            // SAFETY: both arrays are one register long.
            let (bases, maxima) = unsafe {
                (
                    _mm256_loadu_si256(bases.as_ptr().cast()),
                    _mm256_loadu_si256(maxima.as_ptr().cast()),
                )
            };
            let (bases, maxima) = (flip_top(bases), flip_top(maxima));
            let below = (
                _mm256_cmpgt_epi64(low, maxima),
                _mm256_cmpgt_epi64(low, bases),
            );
            let above = (
                _mm256_cmpgt_epi64(bases, high),
                _mm256_cmpgt_epi64(maxima, high),
            );
            misses |= top_bits_64(_mm256_or_si256(below.0, above.0)) << (half * 4);
            leaves |= top_bits_64(_mm256_or_si256(below.1, above.1)) << (half * 4);
        }
        (!misses as u8, !leaves as u8)
    }
}

/// A signed number that sorts as `value` does.
#[inline(always)]
fn signed(value: u64) -> i64 {
    (value ^ 1 << 63).cast_signed()
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn flip_top(lanes: __m256i) -> __m256i {
    _mm256_xor_si256(lanes, _mm256_set1_epi64x(i64::MIN))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_64(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_32(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)).cast_unsigned())
}

/// The top bits of sixteen lanes, which are packed to bytes first and then put in order again.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_16(lanes: __m256i) -> u64 {
    let bytes = _mm256_packs_epi16(lanes, _mm256_setzero_si256());
    let bytes = _mm256_permute4x64_epi64::<0b_11_01_10_00>(bytes);
    u64::from(_mm256_movemask_epi8(bytes).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_8(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(lanes).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_64(a: __m256i, b: __m256i) -> __m256i {
    let above = _mm256_cmpgt_epi64(flip_top(a), flip_top(b));
    _mm256_xor_si256(above, _mm256_set1_epi64x(-1))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_32(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi32(_mm256_min_epu32(a, b), a)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_16(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi16(_mm256_min_epu16(a, b), a)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_8(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_min_epu8(a, b), a)
}

/// Lanes of ones where the lane's bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_64(bits: u64) -> __m256i {
    let own = _mm256_setr_epi64x(1, 2, 4, 8);
    let all = _mm256_set1_epi64x(bits.cast_signed());
    _mm256_cmpeq_epi64(_mm256_and_si256(all, own), own)
}

/// Lanes of ones where the lane's bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_32(bits: u64) -> __m256i {
    let own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let all = _mm256_set1_epi32(bits as i32);
    _mm256_cmpeq_epi32(_mm256_and_si256(all, own), own)
}

/// Lanes of ones where the lane's bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_16(bits: u64) -> __m256i {
    let low = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    let own = _mm256_set_m128i(_mm_slli_epi16::<8>(low), low);
    let all = _mm256_set1_epi16(bits as i16);
    _mm256_cmpeq_epi16(_mm256_and_si256(all, own), own)
}

/// Lanes of ones where the lane's bit of `bits` is set: each byte gets its byte of `bits`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_8(bits: u64) -> __m256i {
    const REPEAT: i64 = 0x0101_0101_0101_0101;
    let byte = _mm256_setr_epi64x(0, REPEAT, 2 * REPEAT, 3 * REPEAT);
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let all = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), byte);
    _mm256_cmpeq_epi8(_mm256_and_si256(all, own), own)
}

macro_rules! steps {
    ($lane:ident, $splat:ident, $sub:ident, $is_at_most:ident, $top_bits:ident, $expand:ident) => {
        impl Steps<$lane> for Avx2 {
            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn range(values: &Word<$lane>, low: u64, span: u64, out: &mut u64) {
                const LANES: usize = 32 / size_of::<$lane>();
                let (low, span) = (low.cast_signed(), span.cast_signed());
                let (low, span) = (_mm256_set1_epi64x(low), _mm256_set1_epi64x(span));
                let (registers, _) = values.as_chunks::<LANES>();
                let mut word = 0;
                for (index, lanes) in registers.iter().enumerate() {
                    // SAFETY: `lanes` is one register long.
                    let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
                    let inside = $is_at_most($sub(lanes, low), span);
                    word |= $top_bits(inside) << (index * LANES);
                }
                *out = word;
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn select(values: &Word<$lane>, keep: u64, fill: $lane, out: &mut Word<$lane>) {
                const LANES: usize = 32 / size_of::<$lane>();
                let fill = $splat(fill.cast_signed());
                let (registers, _) = values.as_chunks::<LANES>();
                let (slots, _) = out.as_chunks_mut::<LANES>();
                for (index, (slot, lanes)) in slots.iter_mut().zip(registers).enumerate() {
                    let ones = $expand(keep >> (index * LANES));
                    // SAFETY: `lanes` and `slot` are one register long.
                    unsafe {
                        let lanes = _mm256_loadu_si256(lanes.as_ptr().cast());
                        let lanes = _mm256_blendv_epi8(fill, lanes, ones);
                        _mm256_storeu_si256(slot.as_mut_ptr().cast(), lanes);
                    }
                }
            }
        }
    };
}

steps!(
    u8,
    _mm256_set1_epi8,
    _mm256_sub_epi8,
    is_at_most_8,
    top_bits_8,
    expand_8
);
steps!(
    u16,
    _mm256_set1_epi16,
    _mm256_sub_epi16,
    is_at_most_16,
    top_bits_16,
    expand_16
);
steps!(
    u32,
    _mm256_set1_epi32,
    _mm256_sub_epi32,
    is_at_most_32,
    top_bits_32,
    expand_32
);
steps!(
    u64,
    _mm256_set1_epi64x,
    _mm256_sub_epi64,
    is_at_most_64,
    top_bits_64,
    expand_64
);
