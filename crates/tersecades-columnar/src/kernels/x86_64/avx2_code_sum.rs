//! Codes looked up 32 at a time: a shuffle takes bytes from sixteen places, for each sixteen codes
//! that stand for a number.

use super::avx2::{Avx2, expand_8, lanes_64};
use crate::kernels::assert_block;
use crate::kernels::code_sum::{CODES, CodeSums, CodeTable, code_sum};
use std::arch::x86_64::*;

/// Codes of a register.
const LANES: usize = 32;
/// Codes that a shuffle looks up.
const PLACES: usize = 16;
/// Shuffles of a register of codes from which on numbers are faster read one at a time.
const SHUFFLES: usize = 24;

impl CodeSums for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn code_sum(codes: &[u8], table: &CodeTable, mask: Option<&[u64]>) -> u128 {
        let tables = table.known().div_ceil(PLACES);
        if tables * table.planes().len() >= SHUFFLES {
            return code_sum(codes, table, mask);
        }
        assert_block(codes.len(), mask);
        let planes = table.planes().iter().zip((0..).step_by(8));
        let sums = planes.map(|(plane, shift)| plane_sum(codes, plane, tables, mask) << shift);
        sums.sum()
    }
}

/// The sum of the bytes of a plane, of which the first tables count, at the codes of `mask`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn plane_sum(codes: &[u8], plane: &[u8; CODES], tables: usize, mask: Option<&[u64]>) -> u128 {
    let (parts, _) = plane.as_chunks();
    let parts = &parts[..tables];
    let (full, rest) = codes.as_chunks();
    let zero = _mm256_setzero_si256();
    let bits = |words: &[u64], index: usize| words[index / 2] >> (index % 2 * LANES);
    let mut total = zero;
    for (index, codes) in full.iter().enumerate() {
        let mut bytes = look_up(codes, parts);
        if let Some(words) = mask {
            bytes = _mm256_and_si256(bytes, expand_8(bits(words, index)));
        }
        total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, zero));
    }
    if !rest.is_empty() {
        let mut last = [0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let kept = mask.map_or(u64::MAX, |words| bits(words, full.len()));
        let present = u64::MAX >> (u64::BITS as usize - rest.len());
        let bytes = _mm256_and_si256(look_up(&last, parts), expand_8(kept & present));
        total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, zero));
    }
    lanes_64(total).into_iter().map(u128::from).sum()
}

/// The bytes at the codes, 0 at those behind the last part.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn look_up(codes: &[u8; LANES], parts: &[[u8; PLACES]]) -> __m256i {
    // SAFETY: the codes are one register long.
    let mut codes = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
    let mut bytes = _mm256_setzero_si256();
    for part in parts {
        // SAFETY: a part is half a register long.
        let part = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(part.as_ptr().cast()) });
        // A place keeps its low bits; what is none has its top bit set, which looks up 0.
        let places = _mm256_adds_epu8(codes, _mm256_set1_epi8(0x70));
        bytes = _mm256_or_si256(bytes, _mm256_shuffle_epi8(part, places));
        codes = _mm256_sub_epi8(codes, _mm256_set1_epi8(PLACES as i8));
    }
    bytes
}
