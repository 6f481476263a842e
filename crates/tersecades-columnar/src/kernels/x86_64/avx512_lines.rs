//! Lines of packed blocks in one register of AVX-512.

use super::avx512::Avx512;
use crate::kernels::pack::{FoldLines, Folds, Lines, folds_of_lines};
use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
fn count_of(bits: u32) -> __m128i {
    _mm_cvtsi32_si128(bits.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn right_8(line: __m512i, count: __m128i) -> __m512i {
    let kept = _mm512_srl_epi16(_mm512_set1_epi16(0xff), count);
    _mm512_and_si512(
        _mm512_srl_epi16(line, count),
        _mm512_or_si512(kept, _mm512_slli_epi16::<8>(kept)),
    )
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn left_8(line: __m512i, count: __m128i) -> __m512i {
    let kept = _mm512_sll_epi16(_mm512_set1_epi16(0xff00_u16.cast_signed()), count);
    _mm512_and_si512(
        _mm512_sll_epi16(line, count),
        _mm512_or_si512(kept, _mm512_srli_epi16::<8>(kept)),
    )
}

/// Bytes summed in the 64-bit lanes of the first register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add_8(sums: [__m512i; 2], line: __m512i) -> [__m512i; 2] {
    let bytes = _mm512_sad_epu8(line, _mm512_setzero_si512());
    [_mm512_add_epi64(sums[0], bytes), sums[1]]
}

/// Even and odd lanes summed in 32 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_16(sums: [__m512i; 2], line: __m512i) -> [__m512i; 2] {
    let even = _mm512_and_si512(line, _mm512_set1_epi32(0xffff));
    [
        _mm512_add_epi32(sums[0], even),
        _mm512_add_epi32(sums[1], _mm512_srli_epi32::<16>(line)),
    ]
}

/// Even and odd lanes, or low and high halves, summed in 64 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_halves(sums: [__m512i; 2], line: __m512i) -> [__m512i; 2] {
    let low = _mm512_and_si512(line, _mm512_set1_epi64(0xffff_ffff));
    [
        _mm512_add_epi64(sums[0], low),
        _mm512_add_epi64(sums[1], _mm512_srli_epi64::<32>(line)),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total_64(sums: __m512i) -> u128 {
    u128::from(_mm512_reduce_add_epi64(sums).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total_8(sums: [__m512i; 2]) -> u128 {
    total_64(sums[0])
}

/// 1,024 lanes of 16 bits stay below 2^26.
#[inline]
#[target_feature(enable = "avx512f")]
fn total_16(sums: [__m512i; 2]) -> u128 {
    let total = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
    u128::from(total.cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total_32(sums: [__m512i; 2]) -> u128 {
    total_64(sums[0]) + total_64(sums[1])
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total_halves(sums: [__m512i; 2]) -> u128 {
    total_64(sums[0]) + (total_64(sums[1]) << 32)
}

macro_rules! lines {
    (
        $lane:ident, $mask:ident, $splat:ident, $sub:ident, $at_most:ident, $keep:ident,
        shift: $right:ident $left:ident,
        ends: $min:ident $max:ident,
        sums: $add:ident $total:ident,
        $(prefix: $prefix_sum:ident)?
    ) => {
        impl Lines<$lane> for Avx512 {
            type Line = __m512i;

            const WRITTEN_OUT: bool = $lane::BITS <= 16;
            const FOLDS: Folds<$lane> = folds_of_lines::<Self, $lane>();

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn splat(value: $lane) -> Self::Line {
                $splat(value.cast_signed())
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn load(from: *const $lane) -> Self::Line {
                // SAFETY: the caller promised a line to read.
                unsafe { _mm512_loadu_si512(from.cast()) }
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn store(line: Self::Line, to: *mut $lane) {
                // SAFETY: the caller promised room for a line.
                unsafe { _mm512_storeu_si512(to.cast(), line) }
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn shift_right(line: Self::Line, count: u32) -> Self::Line {
                $right(line, count_of(count))
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn shift_left(line: Self::Line, count: u32) -> Self::Line {
                $left(line, count_of(count))
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn and(a: Self::Line, b: Self::Line) -> Self::Line {
                _mm512_and_si512(a, b)
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn or(a: Self::Line, b: Self::Line) -> Self::Line {
                _mm512_or_si512(a, b)
            }

            $(
                #[inline]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn prefix_sum(values: &mut [$lane], start: $lane) {
                    $prefix_sum(values, start)
                }
            )?
        }

        impl FoldLines<$lane> for Avx512 {
            type Sums = [__m512i; 2];

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn min(a: Self::Line, b: Self::Line) -> Self::Line {
                $min(a, b)
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn max(a: Self::Line, b: Self::Line) -> Self::Line {
                $max(a, b)
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn inside(line: Self::Line, low: Self::Line, span: Self::Line) -> u64 {
                u64::from($at_most($sub(line, low), span))
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn keep(line: Self::Line, keep: u64, other: Self::Line) -> Self::Line {
                $keep(other, keep as $mask, line)
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn no_sums() -> Self::Sums {
                [_mm512_setzero_si512(); 2]
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn add(sums: Self::Sums, line: Self::Line) -> Self::Sums {
                $add(sums, line)
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn total(sums: Self::Sums) -> u128 {
                $total(sums)
            }
        }
    };
}

lines!(
    u8,
    __mmask64,
    _mm512_set1_epi8,
    _mm512_sub_epi8,
    _mm512_cmple_epu8_mask,
    _mm512_mask_mov_epi8,
    shift: right_8 left_8,
    ends: _mm512_min_epu8 _mm512_max_epu8,
    sums: add_8 total_8,
);

lines!(
    u16,
    __mmask32,
    _mm512_set1_epi16,
    _mm512_sub_epi16,
    _mm512_cmple_epu16_mask,
    _mm512_mask_mov_epi16,
    shift: _mm512_srl_epi16 _mm512_sll_epi16,
    ends: _mm512_min_epu16 _mm512_max_epu16,
    sums: add_16 total_16,
);

lines!(
    u32,
    __mmask16,
    _mm512_set1_epi32,
    _mm512_sub_epi32,
    _mm512_cmple_epu32_mask,
    _mm512_mask_mov_epi32,
    shift: _mm512_srl_epi32 _mm512_sll_epi32,
    ends: _mm512_min_epu32 _mm512_max_epu32,
    sums: add_halves total_32,
    prefix: prefix_sum_32
);

lines!(
    u64,
    __mmask8,
    _mm512_set1_epi64,
    _mm512_sub_epi64,
    _mm512_cmple_epu64_mask,
    _mm512_mask_mov_epi64,
    shift: _mm512_srl_epi64 _mm512_sll_epi64,
    ends: _mm512_min_epu64 _mm512_max_epu64,
    sums: add_halves total_halves,
    prefix: prefix_sum_64
);

/// Sums inside a register in 4 steps; only one addition waits for the register before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn prefix_sum_32(values: &mut [u32], start: u32) {
    let (registers, rest) = values.as_chunks_mut::<16>();
    let mut before = _mm512_set1_epi32(start.cast_signed());
    for register in registers {
        // SAFETY: `register` is one register long.
        let mut sums = unsafe { _mm512_loadu_si512(register.as_ptr().cast()) };
        sums = _mm512_add_epi32(
            sums,
            _mm512_alignr_epi32::<15>(sums, _mm512_setzero_si512()),
        );
        sums = _mm512_add_epi32(
            sums,
            _mm512_alignr_epi32::<14>(sums, _mm512_setzero_si512()),
        );
        sums = _mm512_add_epi32(
            sums,
            _mm512_alignr_epi32::<12>(sums, _mm512_setzero_si512()),
        );
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, _mm512_setzero_si512()));
        let whole = _mm512_add_epi32(sums, before);
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(register.as_mut_ptr().cast(), whole) };
        let last = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums);
        before = _mm512_add_epi32(before, last);
    }
    let mut sum = _mm_cvtsi128_si32(_mm512_castsi512_si128(before)).cast_unsigned();
    for value in rest {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}

/// Sums inside a register in 3 steps; only one addition waits for the register before.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn prefix_sum_64(values: &mut [u64], start: u64) {
    let (registers, rest) = values.as_chunks_mut::<8>();
    let mut before = _mm512_set1_epi64(start.cast_signed());
    for register in registers {
        // SAFETY: `register` is one register long.
        let mut sums = unsafe { _mm512_loadu_si512(register.as_ptr().cast()) };
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, _mm512_setzero_si512()));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, _mm512_setzero_si512()));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, _mm512_setzero_si512()));
        let whole = _mm512_add_epi64(sums, before);
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(register.as_mut_ptr().cast(), whole) };
        let last = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), sums);
        before = _mm512_add_epi64(before, last);
    }
    let mut sum = _mm_cvtsi128_si64(_mm512_castsi512_si128(before)).cast_unsigned();
    for value in rest {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}
