//! Codes looked up 64 at a time: a shuffle takes bytes from two registers, two from four.

use super::avx512::Avx512;
use crate::kernels::assert_block;
use crate::kernels::code_sum::{CODES, CodeSums, CodeTable, code_sum};
use std::arch::x86_64::*;

/// Codes of a register.
const LANES: usize = 64;

impl CodeSums for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn code_sum(codes: &[u8], table: &CodeTable, mask: Option<&[u64]>) -> u128 {
        if !is_x86_feature_detected!("avx512vbmi") {
            return code_sum(codes, table, mask);
        }
        assert_block(codes.len(), mask);
        let planes = table.planes().iter().zip((0..).step_by(8));
        // SAFETY: the processor has the feature of `plane_sum` that the level lacks.
        let sums = planes.map(|(plane, shift)| unsafe { plane_sum(codes, plane, mask) } << shift);
        sums.sum()
    }
}

/// The sum of the bytes of a plane at the codes of `mask`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn plane_sum(codes: &[u8], plane: &[u8; CODES], mask: Option<&[u64]>) -> u128 {
    let (quarters, _) = plane.as_chunks::<LANES>();
    // SAFETY: a quarter is one register long.
    let load = |quarter: usize| unsafe { _mm512_loadu_si512(quarters[quarter].as_ptr().cast()) };
    let (first, second, third, last) = (load(0), load(1), load(2), load(3));
    let mut total = _mm512_setzero_si512();
    for (index, codes) in codes.chunks(LANES).enumerate() {
        let present = u64::MAX >> (LANES - codes.len());
        let kept = present & mask.map_or(u64::MAX, |words| words[index]);
        // SAFETY: lanes behind the last code are not read.
        let codes = unsafe { _mm512_maskz_loadu_epi8(present, codes.as_ptr().cast()) };
        let low = _mm512_maskz_permutex2var_epi8(kept, first, codes, second);
        let high = _mm512_permutex2var_epi8(third, codes, last);
        let is_high = _mm512_movepi8_mask(codes) & kept;
        let bytes = _mm512_mask_mov_epi8(low, is_high, high);
        total = _mm512_add_epi64(total, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
    }
    u128::from(_mm512_reduce_add_epi64(total).cast_unsigned())
}
