//! The level for AVX-512 F, BW, DQ and VL: a compare answers up to 64 lanes as a mask register.

use super::avx512_cut::{cut_8, cut_16};
use super::repeated;
use crate::kernels::based::Moved;
use crate::kernels::level::{Level, Steps, Word, table};
use crate::kernels::{
    GROUP_LANES, GROUPS, Kernels, Lane, Narrow, WORD_LANES, portable, try_narrow,
};
use std::arch::x86_64::*;

/// The table of this level.
// SAFETY: `detect` hands this table out only where it found every feature that `run` enables.
pub(super) static KERNELS: Kernels = unsafe { table::<Avx512>("avx512") };

/// Set bits of a word from which compressing all 64 positions beats finding them one by one.
const DENSE_BITS: u32 = 8;
/// 32-bit lanes of a register.
const LANES_32: usize = 16;

/// AVX-512 F, BW, DQ and VL, with AVX2, BMI, LZCNT and POPCNT.
pub(super) struct Avx512;

impl Level for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn run<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn rows(word: u64, first_row: u32, mut out: *mut u32) {
        if word.count_ones() < DENSE_BITS {
            // SAFETY: the caller promised room for every set bit and the slack.
            return unsafe { portable::rows(word, first_row, out) };
        }
        let first = _mm512_set1_epi32(first_row.cast_signed());
        let step = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let mut rows = _mm512_add_epi32(first, step);
        for quarter in 0..WORD_LANES / LANES_32 {
            let bits = (word >> (quarter * LANES_32) & 0xffff) as __mmask16;
            let kept = _mm512_maskz_compress_epi32(bits, rows);
            // SAFETY: `out` is at most the set bits so far past its start, and the caller
            // promised a register of slack after the last of them.
            unsafe {
                _mm512_storeu_si512(out.cast(), kept);
                out = out.add(bits.count_ones() as usize);
            }
            rows = _mm512_add_epi32(rows, _mm512_set1_epi32(LANES_32 as i32));
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn sum_bytes(bytes: &[u8]) -> u64 {
        let (pairs, rest) = bytes.as_chunks::<128>();
        let mut totals = [_mm512_setzero_si512(); 2];
        for pair in pairs {
            let (registers, _) = pair.as_chunks::<64>();
            for (total, lanes) in totals.iter_mut().zip(registers) {
                // SAFETY: `lanes` is one register long.
                let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
                *total = _mm512_add_epi64(*total, _mm512_sad_epu8(lanes, _mm512_setzero_si512()));
            }
        }
        let total = _mm512_reduce_add_epi64(_mm512_add_epi64(totals[0], totals[1]));
        total.cast_unsigned() + rest.iter().map(|&byte| u64::from(byte)).sum::<u64>()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn store_past(line: *const u8, out: *mut u8) {
        // SAFETY: a register is a line; the caller promised alignment and validity.
        unsafe { _mm512_stream_si512(out.cast(), _mm512_loadu_si512(line.cast())) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn fence() {
        _mm_sfence();
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
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
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn overlap(
        bases: &[u64; GROUPS],
        maxima: &[u64; GROUPS],
        low: u64,
        high: u64,
    ) -> (u8, u8) {
        // SAFETY: both arrays are one register long.
        let (bases, maxima) = unsafe {
            (
                _mm512_loadu_si512(bases.as_ptr().cast()),
                _mm512_loadu_si512(maxima.as_ptr().cast()),
            )
        };
        let low = _mm512_set1_epi64(low.cast_signed());
        let high = _mm512_set1_epi64(high.cast_signed());
        let any = _mm512_cmpge_epu64_mask(maxima, low) & _mm512_cmple_epu64_mask(bases, high);
        let all = _mm512_cmpge_epu64_mask(bases, low) & _mm512_cmple_epu64_mask(maxima, high);
        (any, all)
    }
}

macro_rules! steps {
    ($lane:ident, $mask:ident, $splat:ident, $sub:ident, $is_at_most:ident, $load:ident) => {
        impl Steps<$lane> for Avx512 {
            #[inline]
            #[target_feature(
                enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
            )]
            unsafe fn range(values: &Word<$lane>, low: u64, span: u64, out: &mut u64) {
                const LANES: usize = 64 / size_of::<$lane>();
                let (low, span) = (low.cast_signed(), span.cast_signed());
                let (low, span) = (_mm512_set1_epi64(low), _mm512_set1_epi64(span));
                let (registers, _) = values.as_chunks::<LANES>();
                let out = std::ptr::from_mut(out).cast::<$mask>();
                for (index, lanes) in registers.iter().enumerate() {
                    // SAFETY: `lanes` is one register long.
                    let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
                    let bits = $is_at_most($sub(lanes, low), span);
                    // SAFETY: the masks of all registers fill the word, the lowest first.
                    unsafe { out.add(index).write(bits) };
                }
            }

            #[inline]
            #[target_feature(
                enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
            )]
            unsafe fn moved<const PER: usize>(
                bases: &[u64; PER],
                low: u64,
                high: u64,
            ) -> Moved<PER> {
                const REPEATED: [u8; 64] = repeated(size_of::<$lane>());
                if PER != GROUPS {
                    return Moved::of::<$lane>(bases, low, high);
                }
                let widest = _mm512_set1_epi64(u64::from($lane::MAX).cast_signed());
                let low = _mm512_set1_epi64(low.cast_signed());
                let high = _mm512_set1_epi64(high.cast_signed());
                // SAFETY: `PER` is eight from here on, so both arrays are one register long.
                let (bases, repeated) = unsafe {
                    (
                        _mm512_loadu_si512(bases.as_ptr().cast()),
                        _mm512_loadu_si512(REPEATED.as_ptr().cast()),
                    )
                };
                let from = _mm512_sub_epi64(_mm512_max_epu64(low, bases), bases);
                let reach = _mm512_min_epu64(_mm512_sub_epi64(high, bases), widest);
                let reached = _mm512_cmple_epu64_mask(from, widest);
                let mut moved = Moved {
                    from: [0; PER],
                    span: [0; PER],
                    met: _mm512_mask_cmple_epu64_mask(reached, bases, high),
                };
                let span = _mm512_shuffle_epi8(_mm512_sub_epi64(reach, from), repeated);
                let from = _mm512_shuffle_epi8(from, repeated);
                // SAFETY: `PER` is eight from here on, so both arrays are one register long.
                unsafe {
                    _mm512_storeu_si512(moved.from.as_mut_ptr().cast(), from);
                    _mm512_storeu_si512(moved.span.as_mut_ptr().cast(), span);
                }
                moved
            }

            #[inline]
            #[target_feature(
                enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
            )]
            unsafe fn select(values: &Word<$lane>, keep: u64, fill: $lane, out: &mut Word<$lane>) {
                const LANES: usize = 64 / size_of::<$lane>();
                let fill = $splat(fill.cast_signed());
                let (registers, _) = values.as_chunks::<LANES>();
                let (slots, _) = out.as_chunks_mut::<LANES>();
                for (index, (slot, lanes)) in slots.iter_mut().zip(registers).enumerate() {
                    let bits = (keep >> (index * LANES)) as $mask;
                    // SAFETY: `lanes` and `slot` are one register long.
                    unsafe {
                        let lanes = $load(fill, bits, lanes.as_ptr().cast());
                        _mm512_storeu_si512(slot.as_mut_ptr().cast(), lanes);
                    }
                }
            }
        }
    };
}

steps!(
    u8,
    __mmask64,
    _mm512_set1_epi8,
    _mm512_sub_epi8,
    _mm512_cmple_epu8_mask,
    _mm512_mask_loadu_epi8
);
steps!(
    u16,
    __mmask32,
    _mm512_set1_epi16,
    _mm512_sub_epi16,
    _mm512_cmple_epu16_mask,
    _mm512_mask_loadu_epi16
);
steps!(
    u32,
    __mmask16,
    _mm512_set1_epi32,
    _mm512_sub_epi32,
    _mm512_cmple_epu32_mask,
    _mm512_mask_loadu_epi32
);
steps!(
    u64,
    __mmask8,
    _mm512_set1_epi64,
    _mm512_sub_epi64,
    _mm512_cmple_epu64_mask,
    _mm512_mask_loadu_epi64
);
