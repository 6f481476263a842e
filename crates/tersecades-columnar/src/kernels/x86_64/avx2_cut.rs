//! Differences of 64-bit lanes cut to bytes and to 16 bits, which no single instruction of AVX2
//! does: halves are taken together, then packed.

use crate::kernels::GROUP_LANES;
use std::arch::x86_64::*;

/// 64-bit lanes of a register.
const LANES: usize = 4;

/// The differences of eight lanes from the negated base as 32-bit lanes `0 1 4 5 2 3 6 7`.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(values: &[[u64; LANES]; 2], negated: __m256i, over: &mut __m256i) -> __m256i {
    let deltas = values.map(|lanes| {
        // SAFETY: `lanes` is one register long.
        let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        _mm256_add_epi64(lanes, negated)
    });
    *over = _mm256_or_si256(*over, _mm256_or_si256(deltas[0], deltas[1]));
    let [a, b] = deltas.map(|delta| _mm256_castsi256_ps(delta));
    _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(a, b))
}

/// All lanes of a register, ORed.
#[inline]
#[target_feature(enable = "avx2")]
fn any(over: __m256i) -> u64 {
    let half = _mm_or_si128(
        _mm256_castsi256_si128(over),
        _mm256_extracti128_si256::<1>(over),
    );
    (_mm_cvtsi128_si64(half) | _mm_extract_epi64::<1>(half)).cast_unsigned()
}

#[inline]
#[target_feature(enable = "avx2")]
fn negated(base: u64) -> __m256i {
    _mm256_set1_epi64x(base.wrapping_neg().cast_signed())
}

/// The low bytes of `values[i] - base`; answers all differences, ORed.
///
/// Where a difference is beyond a byte, its byte means nothing.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn cut_8(values: &[u64; GROUP_LANES], base: u64, out: &mut [u8; GROUP_LANES]) -> u64 {
    let (registers, _) = values.as_chunks::<LANES>();
    let (parts, _) = registers.as_chunks::<8>();
    let (slots, _) = out.as_chunks_mut::<32>();
    let negated = negated(base);
    let mut over = _mm256_setzero_si256();
    // Packing leaves lanes 0 and 1 of each register in the first half, 2 and 3 in the second.
    let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,
    ));
    for (slot, part) in slots.iter_mut().zip(parts) {
        let (pairs, _) = part.as_chunks::<2>();
        let first = _mm256_packus_epi32(
            halves(&pairs[0], negated, &mut over),
            halves(&pairs[1], negated, &mut over),
        );
        let second = _mm256_packus_epi32(
            halves(&pairs[2], negated, &mut over),
            halves(&pairs[3], negated, &mut over),
        );
        let bytes = _mm256_packus_epi16(first, second);
        let bytes = _mm256_permute4x64_epi64::<0b_11_01_10_00>(bytes);
        let bytes = _mm256_shuffle_epi8(bytes, order);
        // SAFETY: `slot` is one register long.
        unsafe { _mm256_storeu_si256(slot.as_mut_ptr().cast(), bytes) };
    }
    any(over)
}

/// The low 16 bits of `values[i] - base`; answers all differences, ORed.
///
/// Where a difference is beyond 16 bits, its lane means nothing.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn cut_16(values: &[u64; GROUP_LANES], base: u64, out: &mut [u16; GROUP_LANES]) -> u64 {
    let (registers, _) = values.as_chunks::<LANES>();
    let (parts, _) = registers.as_chunks::<4>();
    let (slots, _) = out.as_chunks_mut::<16>();
    let negated = negated(base);
    let mut over = _mm256_setzero_si256();
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (slot, part) in slots.iter_mut().zip(parts) {
        let (pairs, _) = part.as_chunks::<2>();
        let shorts = _mm256_packus_epi32(
            halves(&pairs[0], negated, &mut over),
            halves(&pairs[1], negated, &mut over),
        );
        let shorts = _mm256_permutevar8x32_epi32(shorts, order);
        // SAFETY: `slot` is one register long.
        unsafe { _mm256_storeu_si256(slot.as_mut_ptr().cast(), shorts) };
    }
    any(over)
}
