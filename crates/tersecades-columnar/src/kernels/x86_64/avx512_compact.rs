//! Lanes moved to the front eight at a time, by one instruction.

use super::avx512::Avx512;
use crate::kernels::compact::{Compact, ONE_BY_ONE_MAX, one_by_one};
use crate::kernels::level::Word;
use std::arch::x86_64::*;

/// Lanes of a register.
const LANES: usize = 8;

impl Compact for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn compact(lanes: &Word<u64>, bits: u64, out: &mut Word<u64>) {
        if bits.count_ones() < ONE_BY_ONE_MAX {
            return one_by_one(lanes, bits, out);
        }
        let (registers, _) = lanes.as_chunks::<LANES>();
        let mut at = out.as_mut_ptr();
        for (index, lanes) in registers.iter().enumerate() {
            let bits = (bits >> (index * LANES)) as u8;
            // SAFETY: the lanes are one register long; of each register before this one at most
            // eight were kept, so that eight more are inside `out`.
            unsafe {
                let lanes = _mm512_loadu_si512(lanes.as_ptr().cast());
                let kept = _mm512_maskz_compress_epi64(bits, lanes);
                _mm512_storeu_si512(at.cast(), kept);
                at = at.add(bits.count_ones() as usize);
            }
        }
    }
}
