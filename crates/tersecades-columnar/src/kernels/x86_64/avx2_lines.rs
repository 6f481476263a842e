//! Lines of packed blocks in two registers of AVX2.

use super::avx2::{self, Avx2};
use crate::kernels::pack::{FoldLines, Folds, Lines, folds_of_lines};
use std::arch::x86_64::*;

/// A line.
type Pair = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn count_of(bits: u32) -> __m128i {
    _mm_cvtsi32_si128(bits.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn right_8(lanes: __m256i, count: __m128i) -> __m256i {
    let kept = _mm256_srl_epi16(_mm256_set1_epi16(0xff), count);
    _mm256_and_si256(
        _mm256_srl_epi16(lanes, count),
        _mm256_or_si256(kept, _mm256_slli_epi16::<8>(kept)),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn left_8(lanes: __m256i, count: __m128i) -> __m256i {
    let kept = _mm256_sll_epi16(_mm256_set1_epi16(0xff00_u16.cast_signed()), count);
    _mm256_and_si256(
        _mm256_sll_epi16(lanes, count),
        _mm256_or_si256(kept, _mm256_srli_epi16::<8>(kept)),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn is_above_64(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpgt_epi64(avx2::flip_top(a), avx2::flip_top(b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn min_64(a: __m256i, b: __m256i) -> __m256i {
    _mm256_blendv_epi8(a, b, is_above_64(a, b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn max_64(a: __m256i, b: __m256i) -> __m256i {
    _mm256_blendv_epi8(b, a, is_above_64(a, b))
}

/// Bytes summed in the 64-bit lanes of the first register.
#[inline]
#[target_feature(enable = "avx2")]
fn add_8(sums: Pair, lanes: __m256i) -> Pair {
    let bytes = _mm256_sad_epu8(lanes, _mm256_setzero_si256());
    [_mm256_add_epi64(sums[0], bytes), sums[1]]
}

/// Even and odd lanes summed in 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add_16(sums: Pair, lanes: __m256i) -> Pair {
    let even = _mm256_and_si256(lanes, _mm256_set1_epi32(0xffff));
    [
        _mm256_add_epi32(sums[0], even),
        _mm256_add_epi32(sums[1], _mm256_srli_epi32::<16>(lanes)),
    ]
}

/// Even and odd lanes, or low and high halves, summed in 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add_halves(sums: Pair, lanes: __m256i) -> Pair {
    let low = _mm256_and_si256(lanes, _mm256_set1_epi64x(0xffff_ffff));
    [
        _mm256_add_epi64(sums[0], low),
        _mm256_add_epi64(sums[1], _mm256_srli_epi64::<32>(lanes)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn total_64(sums: __m256i) -> u128 {
    let half = _mm_add_epi64(
        _mm256_castsi256_si128(sums),
        _mm256_extracti128_si256::<1>(sums),
    );
    let total = _mm_cvtsi128_si64(half).wrapping_add(_mm_extract_epi64::<1>(half));
    u128::from(total.cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
fn total_8(sums: Pair) -> u128 {
    total_64(sums[0])
}

/// 1,024 lanes of 16 bits stay below 2^26.
#[inline]
#[target_feature(enable = "avx2")]
fn total_16(sums: Pair) -> u128 {
    let sums = _mm256_add_epi32(sums[0], sums[1]);
    let low = _mm256_and_si256(sums, _mm256_set1_epi64x(0xffff_ffff));
    total_64(low) + total_64(_mm256_srli_epi64::<32>(sums))
}

#[inline]
#[target_feature(enable = "avx2")]
fn total_32(sums: Pair) -> u128 {
    total_64(sums[0]) + total_64(sums[1])
}

#[inline]
#[target_feature(enable = "avx2")]
fn total_halves(sums: Pair) -> u128 {
    total_64(sums[0]) + (total_64(sums[1]) << 32)
}

macro_rules! lines {
    (
        $lane:ident, $splat:ident, $sub:ident, $is_at_most:ident, $top_bits:ident, $expand:ident,
        shift: $right:ident $left:ident,
        ends: $min:ident $max:ident,
        sums: $add:ident $total:ident,
        $(prefix: $prefix_sum:ident)?
    ) => {
        impl Lines<$lane> for Avx2 {
            type Line = Pair;

            const WRITTEN_OUT: bool = $lane::BITS <= 16;
            const FOLDS: Folds<$lane> = folds_of_lines::<Self, $lane>();

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn splat(value: $lane) -> Self::Line {
                [$splat(value.cast_signed()); 2]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn load(from: *const $lane) -> Self::Line {
                let from = from.cast::<__m256i>();
                // SAFETY: the caller promised a line to read.
                unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn store(line: Self::Line, to: *mut $lane) {
                let to = to.cast::<__m256i>();
                // SAFETY: the caller promised room for a line.
                unsafe {
                    _mm256_storeu_si256(to, line[0]);
                    _mm256_storeu_si256(to.add(1), line[1]);
                }
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn shift_right(line: Self::Line, count: u32) -> Self::Line {
                let count = count_of(count);
                [$right(line[0], count), $right(line[1], count)]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn shift_left(line: Self::Line, count: u32) -> Self::Line {
                let count = count_of(count);
                [$left(line[0], count), $left(line[1], count)]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn and(a: Self::Line, b: Self::Line) -> Self::Line {
                [_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn or(a: Self::Line, b: Self::Line) -> Self::Line {
                [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
            }

            $(
                #[inline]
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn prefix_sum(values: &mut [$lane], start: $lane) {
                    $prefix_sum(values, start)
                }
            )?
        }

        impl FoldLines<$lane> for Avx2 {
            type Sums = Pair;

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn min(a: Self::Line, b: Self::Line) -> Self::Line {
                [$min(a[0], b[0]), $min(a[1], b[1])]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn max(a: Self::Line, b: Self::Line) -> Self::Line {
                [$max(a[0], b[0]), $max(a[1], b[1])]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn inside(line: Self::Line, low: Self::Line, span: Self::Line) -> u64 {
                let first = $is_at_most($sub(line[0], low[0]), span[0]);
                let second = $is_at_most($sub(line[1], low[1]), span[1]);
                $top_bits(first) | $top_bits(second) << (32 / size_of::<$lane>())
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn keep(line: Self::Line, keep: u64, other: Self::Line) -> Self::Line {
                let second = $expand(keep >> (32 / size_of::<$lane>()));
                [
                    _mm256_blendv_epi8(other[0], line[0], $expand(keep)),
                    _mm256_blendv_epi8(other[1], line[1], second),
                ]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn no_sums() -> Self::Sums {
                [_mm256_setzero_si256(); 2]
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn add(sums: Self::Sums, line: Self::Line) -> Self::Sums {
                $add($add(sums, line[0]), line[1])
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn total(sums: Self::Sums) -> u128 {
                $total(sums)
            }
        }
    };
}

use avx2::{expand_8, expand_16, expand_32, expand_64};
use avx2::{is_at_most_8, is_at_most_16, is_at_most_32, is_at_most_64};
use avx2::{top_bits_8, top_bits_16, top_bits_32, top_bits_64};

lines!(
    u8,
    _mm256_set1_epi8,
    _mm256_sub_epi8,
    is_at_most_8,
    top_bits_8,
    expand_8,
    shift: right_8 left_8,
    ends: _mm256_min_epu8 _mm256_max_epu8,
    sums: add_8 total_8,
);

lines!(
    u16,
    _mm256_set1_epi16,
    _mm256_sub_epi16,
    is_at_most_16,
    top_bits_16,
    expand_16,
    shift: _mm256_srl_epi16 _mm256_sll_epi16,
    ends: _mm256_min_epu16 _mm256_max_epu16,
    sums: add_16 total_16,
);

lines!(
    u32,
    _mm256_set1_epi32,
    _mm256_sub_epi32,
    is_at_most_32,
    top_bits_32,
    expand_32,
    shift: _mm256_srl_epi32 _mm256_sll_epi32,
    ends: _mm256_min_epu32 _mm256_max_epu32,
    sums: add_halves total_32,
    prefix: prefix_sum_32
);

lines!(
    u64,
    _mm256_set1_epi64x,
    _mm256_sub_epi64,
    is_at_most_64,
    top_bits_64,
    expand_64,
    shift: _mm256_srl_epi64 _mm256_sll_epi64,
    ends: min_64 max_64,
    sums: add_halves total_halves,
    prefix: prefix_sum_64
);

/// Sums inside a register in 3 steps; only one addition waits for the register before.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn prefix_sum_32(values: &mut [u32], start: u32) {
    let (registers, rest) = values.as_chunks_mut::<8>();
    let mut before = _mm256_set1_epi32(start.cast_signed());
    for register in registers {
        // SAFETY: `register` is one register long.
        let mut sums = unsafe { _mm256_loadu_si256(register.as_ptr().cast()) };
        sums = _mm256_add_epi32(sums, _mm256_bslli_epi128::<4>(sums));
        sums = _mm256_add_epi32(sums, _mm256_bslli_epi128::<8>(sums));
        // The lower half of the register moves up, zeros take its place.
        let low = _mm256_permute2x128_si256::<0x08>(sums, sums);
        sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32::<0b_11_11_11_11>(low));
        let whole = _mm256_add_epi32(sums, before);
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(register.as_mut_ptr().cast(), whole) };
        let last = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7));
        before = _mm256_add_epi32(before, last);
    }
    let mut sum = _mm_cvtsi128_si32(_mm256_castsi256_si128(before)).cast_unsigned();
    for value in rest {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}

/// Sums inside a register in 2 steps; only one addition waits for the register before.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn prefix_sum_64(values: &mut [u64], start: u64) {
    let (registers, rest) = values.as_chunks_mut::<4>();
    let mut before = _mm256_set1_epi64x(start.cast_signed());
    for register in registers {
        // SAFETY: `register` is one register long.
        let mut sums = unsafe { _mm256_loadu_si256(register.as_ptr().cast()) };
        sums = _mm256_add_epi64(sums, _mm256_bslli_epi128::<8>(sums));
        // The lower half of the register moves up, zeros take its place.
        let low = _mm256_permute2x128_si256::<0x08>(sums, sums);
        sums = _mm256_add_epi64(sums, _mm256_unpackhi_epi64(low, low));
        let whole = _mm256_add_epi64(sums, before);
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(register.as_mut_ptr().cast(), whole) };
        let last = _mm256_permute4x64_epi64::<0b_11_11_11_11>(sums);
        before = _mm256_add_epi64(before, last);
    }
    let mut sum = _mm_cvtsi128_si64(_mm256_castsi256_si128(before)).cast_unsigned();
    for value in rest {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}
