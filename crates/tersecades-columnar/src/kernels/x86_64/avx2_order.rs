//! Ordering few 16-bit lanes in the registers of AVX2: each lane is compared with all others at
//! once, which says at which positions it stands among them.
//!
//! AVX2 lacks the permutation of 16-bit lanes that a sorting network needs at each step. None of
//! these comparisons waits for another, as the steps of halving a range do.

use super::avx2::Avx2;
use crate::kernels::order::Order;
use std::arch::x86_64::*;

/// Lanes of a register.
const LANES: usize = 16;

/// Registers that lanes are compared in.
const REGISTERS_MAX: usize = 2;

impl Order<u8> for Avx2 {}
impl Order<u32> for Avx2 {}
impl Order<u64> for Avx2 {}

impl Order<u16> for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn nth_of_few(values: &[u16], indices: &[usize], found: &mut [[u16; 2]]) -> bool {
        match values.len().div_ceil(LANES) {
            1 => nth::<1>(values, indices, found),
            REGISTERS_MAX => nth::<REGISTERS_MAX>(values, indices, found),
            _ => return false,
        }
        true
    }
}

/// The lanes at `indices` of the sorted `values` and behind them; `REGISTERS` hold all of them.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn nth<const REGISTERS: usize>(values: &[u16], indices: &[usize], found: &mut [[u16; 2]]) {
    // Signed lanes with the top bit flipped are in the order of unsigned ones.
    let flip = _mm256_set1_epi16(i16::MIN);
    let mut lanes = [0; LANES * REGISTERS_MAX];
    lanes[..values.len()].copy_from_slice(values);
    let mut registers = [flip; REGISTERS];
    for (register, lanes) in registers.iter_mut().zip(lanes.as_chunks::<LANES>().0) {
        // SAFETY: `lanes` is one register long.
        let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        *register = _mm256_xor_si256(lanes, flip);
    }
    // How many values are less and greater than each lane.
    let mut less = [_mm256_setzero_si256(); REGISTERS];
    let mut greater = less;
    for value in values {
        let value = _mm256_xor_si256(_mm256_set1_epi16(value.cast_signed()), flip);
        for place in 0..REGISTERS {
            let lanes = registers[place];
            less[place] = _mm256_sub_epi16(less[place], _mm256_cmpgt_epi16(lanes, value));
            greater[place] = _mm256_sub_epi16(greater[place], _mm256_cmpgt_epi16(value, lanes));
        }
    }
    let at = |position: usize| {
        let from = _mm256_set1_epi16(position as i16);
        let left = _mm256_set1_epi16((values.len() - position) as i16);
        let mut found = 0_u64;
        for place in 0..REGISTERS {
            let before = _mm256_cmpgt_epi16(less[place], from);
            let stands = _mm256_andnot_si256(before, _mm256_cmpgt_epi16(left, greater[place]));
            let bits = u64::from(_mm256_movemask_epi8(stands).cast_unsigned());
            found |= bits << (place * 2 * LANES);
        }
        // Some value stands there; a lane without a value is found only where one is as great.
        lanes[found.trailing_zeros() as usize / 2 % lanes.len()]
    };
    for (found, index) in found.iter_mut().zip(indices) {
        *found = [at(*index), at((index + 1).min(values.len() - 1))];
    }
}
