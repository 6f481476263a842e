//! Ordering 16-bit lanes in the registers of AVX-512.
//!
//! # Source
//! Batcher, "Sorting networks and their applications" (1968): the bitonic network, whose steps
//! compare each lane with the one whose number differs in one bit.

use super::avx512::Avx512;
use crate::kernels::order::Order;
use std::arch::x86_64::*;

/// Lanes of a register.
const LANES: usize = 32;

impl Order<u8> for Avx512 {}
impl Order<u32> for Avx512 {}
impl Order<u64> for Avx512 {}

impl Order<u16> for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn count_below(values: &[u16], bound: u16) -> usize {
        let bound = _mm512_set1_epi16(bound.cast_signed());
        let (registers, rest) = values.as_chunks::<LANES>();
        let mut below = 0;
        for lanes in registers {
            // SAFETY: `lanes` is one register long.
            let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
            below += _mm512_cmplt_epu16_mask(lanes, bound).count_ones() as usize;
        }
        // Lanes beyond the rest are at least the bound.
        below + _mm512_cmplt_epu16_mask(load(rest), bound).count_ones() as usize
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn nth_of_few(values: &[u16], indices: &[usize], found: &mut [[u16; 2]]) -> bool {
        if values.len() <= LANES {
            read(&[sort(load(values))], values.len(), indices, found);
            return true;
        }
        let (low, high) = values.split_at(LANES);
        if high.len() > LANES {
            return false;
        }
        let sorted = merge(sort(load(low)), sort(load(high)));
        read(&sorted, values.len(), indices, found);
        true
    }
}

/// The lanes at `indices` and behind them of the first so many of the `sorted` ones.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn read(sorted: &[__m512i], lanes: usize, indices: &[usize], found: &mut [[u16; 2]]) {
    for (found, index) in found.iter_mut().zip(indices) {
        let behind = (index + 1).min(lanes - 1);
        *found = [lane(sorted, *index), lane(sorted, behind)];
    }
}

/// A lane of one or two registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn lane(registers: &[__m512i], index: usize) -> u16 {
    let place = _mm512_set1_epi16((index % LANES) as i16);
    let found = _mm512_permutexvar_epi16(place, registers[index / LANES]);
    _mm_cvtsi128_si32(_mm512_castsi512_si128(found)) as u16
}

/// The first lanes of a register, of which there are `lanes`.
fn first(lanes: usize) -> __mmask32 {
    u32::MAX.checked_shr((LANES - lanes) as u32).unwrap_or(0)
}

/// At most a register of lanes; those missing are the greatest.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(lanes: &[u16]) -> __m512i {
    let ones = _mm512_set1_epi16(-1);
    // SAFETY: the mask keeps the read inside `lanes`.
    unsafe { _mm512_mask_loadu_epi16(ones, first(lanes.len()), lanes.as_ptr().cast()) }
}

/// The number of the lane that each lane is compared with.
const fn partners(apart: usize) -> [u16; LANES] {
    let mut partners = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        partners[lane] = (lane ^ apart) as u16;
        lane += 1;
    }
    partners
}

/// The lanes that take the greater of two, in runs of `run` lanes of which every other descends.
const fn takes_greater(run: usize, apart: usize) -> __mmask32 {
    let (mut mask, mut lane) = (0, 0);
    while lane < LANES {
        if (lane & apart == 0) != (lane & run == 0) {
            mask |= 1 << lane;
        }
        lane += 1;
    }
    mask
}

/// Each lane in the place of its partner; neighbours change places in one cycle.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn permute<const APART: usize>(lanes: __m512i) -> __m512i {
    match APART {
        1 => _mm512_rol_epi32::<16>(lanes),
        2 => _mm512_shuffle_epi32::<0b10_11_00_01>(lanes),
        4 => _mm512_shuffle_epi32::<0b01_00_11_10>(lanes),
        8 => _mm512_shuffle_i64x2::<0b10_11_00_01>(lanes, lanes),
        16 => _mm512_shuffle_i64x2::<0b01_00_11_10>(lanes, lanes),
        _ => {
            let partners = const { partners(APART) };
            // SAFETY: an array of a register's lanes is one register long.
            let partners = unsafe { _mm512_loadu_si512(partners.as_ptr().cast()) };
            _mm512_permutexvar_epi16(partners, lanes)
        }
    }
}

/// One step of the network.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn step<const RUN: usize, const APART: usize>(lanes: __m512i) -> __m512i {
    let other = permute::<APART>(lanes);
    let less = _mm512_min_epu16(lanes, other);
    _mm512_mask_max_epu16(less, const { takes_greater(RUN, APART) }, lanes, other)
}

/// A register in order whose lanes rise and then fall, in runs of `RUN` lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn settle<const RUN: usize>(lanes: __m512i) -> __m512i {
    let lanes = step::<RUN, 8>(step::<RUN, 16>(lanes));
    step::<RUN, 1>(step::<RUN, 2>(step::<RUN, 4>(lanes)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sort(lanes: __m512i) -> __m512i {
    let lanes = step::<4, 1>(step::<4, 2>(step::<2, 1>(lanes)));
    let lanes = step::<8, 1>(step::<8, 2>(step::<8, 4>(lanes)));
    let lanes = step::<16, 2>(step::<16, 4>(step::<16, 8>(lanes)));
    settle::<LANES>(step::<16, 1>(lanes))
}

/// Two registers in order as one order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn merge(low: __m512i, high: __m512i) -> [__m512i; 2] {
    let falling = permute::<{ LANES - 1 }>(high);
    [
        settle::<LANES>(_mm512_min_epu16(low, falling)),
        settle::<LANES>(_mm512_max_epu16(low, falling)),
    ]
}
