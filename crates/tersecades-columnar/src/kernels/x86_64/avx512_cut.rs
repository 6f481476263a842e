//! Differences of 64-bit lanes cut to bytes and to 16 bits, several registers to one: the
//! instructions that cut a single register leave most of it empty.

use crate::kernels::GROUP_LANES;
use std::arch::x86_64::*;

/// 64-bit lanes of a register.
const LANES: usize = 8;

/// The differences of sixteen lanes from `base` as 32-bit lanes, in each 128 bits two of the first
/// register before two of the second.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves(values: &[[u64; LANES]; 2], base: __m512i, over: &mut __m512i) -> __m512i {
    const OR_OF_THREE: i32 = 0xfe;
    let deltas = values.map(|lanes| {
        // SAFETY: `lanes` is one register long.
        let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
        _mm512_sub_epi64(lanes, base)
    });
    *over = _mm512_ternarylogic_epi64::<OR_OF_THREE>(*over, deltas[0], deltas[1]);
    let [a, b] = deltas.map(|delta| _mm512_castsi512_ps(delta));
    _mm512_castps_si512(_mm512_shuffle_ps::<0b10_00_10_00>(a, b))
}

/// The low bytes of `values[i] - base`; answers all differences, ORed.
///
/// Where a difference is beyond a byte, its byte means nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn cut_8(values: &[u64; GROUP_LANES], base: u64, out: &mut [u8; GROUP_LANES]) -> u64 {
    /// Two bytes of each of eight registers lie side by side in 128 bits.
    const ORDER: [u16; 32] = across();
    let (registers, _) = values.as_chunks::<LANES>();
    let (parts, _) = registers.as_chunks::<8>();
    let (slots, _) = out.as_chunks_mut::<64>();
    let base = _mm512_set1_epi64(base.cast_signed());
    // SAFETY: the order is one register long.
    let order = unsafe { _mm512_loadu_si512(ORDER.as_ptr().cast()) };
    let mut over = _mm512_setzero_si512();
    for (slot, part) in slots.iter_mut().zip(parts) {
        let (pairs, _) = part.as_chunks::<2>();
        let first = _mm512_packus_epi32(
            halves(&pairs[0], base, &mut over),
            halves(&pairs[1], base, &mut over),
        );
        let second = _mm512_packus_epi32(
            halves(&pairs[2], base, &mut over),
            halves(&pairs[3], base, &mut over),
        );
        let bytes = _mm512_packus_epi16(first, second);
        let bytes = _mm512_permutexvar_epi16(order, bytes);
        // SAFETY: `slot` is one register long.
        unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), bytes) };
    }
    _mm512_reduce_or_epi64(over).cast_unsigned()
}

/// The low 16 bits of `values[i] - base`; answers all differences, ORed.
///
/// Where a difference is beyond 16 bits, its lane means nothing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn cut_16(values: &[u64; GROUP_LANES], base: u64, out: &mut [u16; GROUP_LANES]) -> u64 {
    /// Two shorts of each of four registers lie side by side in 128 bits.
    const ORDER: [u32; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
    let (registers, _) = values.as_chunks::<LANES>();
    let (parts, _) = registers.as_chunks::<4>();
    let (slots, _) = out.as_chunks_mut::<32>();
    let base = _mm512_set1_epi64(base.cast_signed());
    // SAFETY: the order is one register long.
    let order = unsafe { _mm512_loadu_si512(ORDER.as_ptr().cast()) };
    let mut over = _mm512_setzero_si512();
    for (slot, part) in slots.iter_mut().zip(parts) {
        let (pairs, _) = part.as_chunks::<2>();
        let shorts = _mm512_packus_epi32(
            halves(&pairs[0], base, &mut over),
            halves(&pairs[1], base, &mut over),
        );
        let shorts = _mm512_permutexvar_epi32(order, shorts);
        // SAFETY: `slot` is one register long.
        unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), shorts) };
    }
    _mm512_reduce_or_epi64(over).cast_unsigned()
}

/// Pair `lane` of register `from`, which lies at `8 * lane + from`, goes to `4 * from + lane`.
const fn across() -> [u16; 32] {
    let mut order = [0; 32];
    let mut index = 0;
    while index < order.len() {
        let (from, lane) = (index / 4, index % 4);
        order[index] = (8 * lane + from) as u16;
        index += 1;
    }
    order
}
