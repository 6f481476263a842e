//! The levels of x86-64 processors and the choice between them.

#![allow(
    clippy::cast_possible_truncation,
    reason = "masks are cut to the lanes of a register"
)]

mod avx2;
mod avx2_code_sum;
mod avx2_compact;
mod avx2_cut;
mod avx2_lines;
mod avx2_moment;
mod avx2_order;
mod avx2_outlier;
mod avx2_range_sum;
mod avx512;
mod avx512_code_sum;
mod avx512_compact;
mod avx512_cut;
mod avx512_lines;
mod avx512_moment;
mod avx512_order;
mod avx512_outlier;
mod avx512_range_sum;
mod bit_stream;

use super::Kernels;
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

/// Which byte of its 128 bits each byte of a register becomes where the lowest `bytes` of 64 bits
/// are repeated.
const fn repeated<const REGISTER: usize>(bytes: usize) -> [u8; REGISTER] {
    let mut from = [0; REGISTER];
    let mut index = 0;
    while index < from.len() {
        from[index] = (index / 8 % 2 * 8 + index % bytes) as u8;
        index += 1;
    }
    from
}

/// The levels this processor runs, the fastest last.
pub(super) fn detect() -> Vec<&'static Kernels> {
    let mut levels = Vec::new();
    let has_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let has_avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    if has_avx2 {
        levels.push(&avx2::KERNELS);
        if has_avx512 {
            levels.push(&avx512::KERNELS);
        }
    }
    levels
}

/// Asks for the cache line at `address`, which need not be the program's, in the second-level
/// cache.
#[inline(always)]
pub(super) fn prefetch_far(address: *const u8) {
    // SAFETY: a prefetch reads nothing the program can see and never faults; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
}

/// Asks for the cache line at `address`, which need not be the program's.
#[inline(always)]
pub(super) fn prefetch_address(address: *const u8) {
    // SAFETY: a prefetch reads nothing the program can see and never faults; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

/// Asks for the cache line of `value`.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: a prefetch reads nothing the program can see, and SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}
