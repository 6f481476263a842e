//! Lanes moved to the front four at a time: a table tells where those of four bits go.

use super::avx2::Avx2;
use crate::kernels::compact::{Compact, ONE_BY_ONE_MAX, one_by_one};
use crate::kernels::level::Word;
use std::arch::x86_64::*;

/// Lanes of a register.
const LANES: usize = 4;

/// Of each four bits, the halves of lanes whose bits are set, one after the other.
const HALVES: [[u32; 2 * LANES]; 1 << LANES] = {
    let mut halves = [[0; 2 * LANES]; 1 << LANES];
    let mut bits = 0;
    while bits < halves.len() {
        let (mut lane, mut kept) = (0, 0);
        while lane < LANES {
            if bits >> lane & 1 == 1 {
                halves[bits][2 * kept] = 2 * lane as u32;
                halves[bits][2 * kept + 1] = 2 * lane as u32 + 1;
                kept += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    halves
};

impl Compact for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn compact(lanes: &Word<u64>, bits: u64, out: &mut Word<u64>) {
        if bits.count_ones() < ONE_BY_ONE_MAX {
            return one_by_one(lanes, bits, out);
        }
        let (registers, _) = lanes.as_chunks::<LANES>();
        let mut at = out.as_mut_ptr();
        for (index, lanes) in registers.iter().enumerate() {
            let bits = (bits >> (index * LANES)) as usize % HALVES.len();
            // SAFETY: lanes and halves are one register long; of each register before this one at
            // most four lanes were kept, so that four more are inside `out`.
            unsafe {
                let lanes = _mm256_loadu_si256(lanes.as_ptr().cast());
                let halves = _mm256_loadu_si256(HALVES[bits].as_ptr().cast());
                let kept = _mm256_permutevar8x32_epi32(lanes, halves);
                _mm256_storeu_si256(at.cast(), kept);
                at = at.add(bits.count_ones() as usize);
            }
        }
    }
}
