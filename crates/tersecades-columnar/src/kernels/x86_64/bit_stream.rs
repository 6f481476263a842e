//! Streams of bits in the registers of AVX2: eight numbers are two shuffles, shifts and a mask.

use std::arch::x86_64::*;

use super::avx2::Avx2;
use super::avx512::Avx512;
use crate::kernels::bit_stream::{BitStream, GROUP};

/// Widest number of which four, shifted by up to 7 bits, lie in 16 bytes and each in 4.
const WIDTH_MAX: u32 = 25;

impl BitStream for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn unpack_groups(bytes: &[u8], width: u32, out: &mut [u32]) -> usize {
        unpack_groups(bytes, width, out)
    }
}

impl BitStream for Avx512 {
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn unpack_groups(bytes: &[u8], width: u32, out: &mut [u32]) -> usize {
        unpack_groups(bytes, width, out)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn unpack_groups(bytes: &[u8], width: u32, out: &mut [u32]) -> usize {
    if width > WIDTH_MAX {
        return 0;
    }
    let width = width as usize;
    // Half a group starts at this byte, and four bits later if the width is odd.
    let half = width / 2;
    let (mut places, mut shifts) = ([0_u8; 32], [0_u32; GROUP]);
    for (number, shift) in shifts.iter_mut().enumerate() {
        let bit = number * width - number / 4 * half * 8;
        for byte in 0..4 {
            places[number * 4 + byte] = (bit / 8 + byte) as u8;
        }
        *shift = (bit % 8) as u32;
    }
    // SAFETY: both arrays are one register long.
    let (places, shifts) = unsafe {
        (
            _mm256_loadu_si256(places.as_ptr().cast()),
            _mm256_loadu_si256(shifts.as_ptr().cast()),
        )
    };
    let mask = _mm256_set1_epi32(((1_u32 << width) - 1).cast_signed());
    let (groups, _) = out.as_chunks_mut::<GROUP>();
    let mut done = 0;
    for (group, numbers) in groups.iter_mut().enumerate() {
        let (Some(low), Some(high)) = (
            bytes
                .get(group * width..)
                .and_then(<[u8]>::first_chunk::<16>),
            bytes
                .get(group * width + half..)
                .and_then(<[u8]>::first_chunk::<16>),
        ) else {
            break;
        };
        // SAFETY: `low` and `high` are half a register long each, `numbers` is a whole one.
        unsafe {
            let low = _mm_loadu_si128(low.as_ptr().cast());
            let high = _mm_loadu_si128(high.as_ptr().cast());
            let lanes = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), places);
            let lanes = _mm256_and_si256(_mm256_srlv_epi32(lanes, shifts), mask);
            _mm256_storeu_si256(numbers.as_mut_ptr().cast(), lanes);
        }
        done += GROUP;
    }
    done
}
