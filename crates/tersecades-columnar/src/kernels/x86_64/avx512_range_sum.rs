//! Lanes in a range and their sum, of full blocks of bytes and of 16-bit lanes.

use super::avx512::Avx512;
use crate::kernels::based::Moved;
use crate::kernels::moment::BLOCK_BITS;
use crate::kernels::range_sum::{RangeSums, for_each_word};
use crate::kernels::{BLOCK_LANES, GROUPS};
use std::arch::x86_64::*;

impl RangeSums<u32> for Avx512 {}

impl RangeSums<u64> for Avx512 {}

impl RangeSums<u8> for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full_in_range(
        values: &[u8; BLOCK_LANES],
        moved: &Moved<GROUPS>,
        keep: Option<&[u64; BLOCK_BITS]>,
        out: &mut [u64; BLOCK_BITS],
    ) -> Option<u64> {
        let zero = _mm512_setzero_si512();
        let mut total = zero;
        for_each_word(values, moved, keep, out, |lanes, range, kept| {
            let [from, span] = range.map(|end| _mm512_set1_epi64(end));
            // SAFETY: `lanes` is one register long.
            let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
            let passing = _mm512_cmple_epu8_mask(_mm512_sub_epi8(lanes, from), span) & kept;
            let lanes = _mm512_maskz_mov_epi8(passing, lanes);
            total = _mm512_add_epi64(total, _mm512_sad_epu8(lanes, zero));
            passing
        });
        Some(_mm512_reduce_add_epi64(total).cast_unsigned())
    }
}

impl RangeSums<u16> for Avx512 {
    /// Lanes less 2^15 are signed: one multiply-add takes pairs of them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn full_in_range(
        values: &[u16; BLOCK_LANES],
        moved: &Moved<GROUPS>,
        keep: Option<&[u64; BLOCK_BITS]>,
        out: &mut [u64; BLOCK_BITS],
    ) -> Option<u64> {
        const LANES: usize = 32;
        let (middle, one) = (_mm512_set1_epi16(i16::MIN), _mm512_set1_epi16(1));
        let mut totals = [_mm512_setzero_si512(); 2];
        let mut count = 0;
        for_each_word(values, moved, keep, out, |lanes, range, kept| {
            let [from, span] = range.map(|end| _mm512_set1_epi64(end));
            let (registers, _) = lanes.as_chunks::<LANES>();
            // SAFETY: each part is one register long.
            let load = |part: usize| unsafe { _mm512_loadu_si512(registers[part].as_ptr().cast()) };
            let halves = [load(0), load(1)];
            let bits =
                halves.map(|half| _mm512_cmple_epu16_mask(_mm512_sub_epi16(half, from), span));
            let passing = _mm512_kunpackd(bits[1].into(), bits[0].into()) & kept;
            count += u64::from(passing.count_ones());
            for (part, (total, half)) in totals.iter_mut().zip(halves).enumerate() {
                let kept = (passing >> (part * LANES)) as __mmask32;
                let lowered = _mm512_maskz_sub_epi16(kept, half, middle);
                // A pair is at most 2^16, sixteen of them are added.
                *total = _mm512_add_epi32(*total, _mm512_madd_epi16(lowered, one));
            }
            passing
        });
        let lowered = _mm512_reduce_add_epi32(_mm512_add_epi32(totals[0], totals[1]));
        let sum = i64::from(lowered) + (count << 15).cast_signed();
        Some(sum.cast_unsigned())
    }
}
