//! The level for AVX2: compares leave lanes of ones, and `movemask` takes their top bits.
//!
//! There is no unsigned compare: lanes are compared signed, their top bits flipped. Lanes of ones
//! are packed to bytes, so that one `movemask` answers for 32 of them.

use crate::kernels::based::Moved;
use crate::kernels::level::{Level, Steps, Word, table};
use crate::kernels::try_narrow;
use crate::kernels::{GROUP_LANES, GROUPS, Kernels, Lane, Narrow, WORD_LANES, portable};

use super::avx2_cut::{cut_8, cut_16};
use super::repeated;
use std::arch::x86_64::*;

/// The table of this level.
// SAFETY: `detect` hands this table out only where it found every feature that `run` enables.
pub(super) static KERNELS: Kernels = unsafe { table::<Avx2>("avx2") };

/// AVX2, BMI, LZCNT and POPCNT.
pub(super) struct Avx2;

impl Level for Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn run<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn rows(word: u64, first_row: u32, out: *mut u32) {
        // SAFETY: the caller promised room for every set bit and the slack.
        unsafe { portable::rows(word, first_row, out) }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn sum_bytes(bytes: &[u8]) -> u64 {
        let (pairs, rest) = bytes.as_chunks::<64>();
        let mut totals = [_mm256_setzero_si256(); 2];
        for pair in pairs {
            let (registers, _) = pair.as_chunks::<32>();
            for (total, lanes) in totals.iter_mut().zip(registers) {
                // SAFETY: `lanes` is one register long.
                let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
                *total = _mm256_add_epi64(*total, _mm256_sad_epu8(lanes, _mm256_setzero_si256()));
            }
        }
        let total = _mm256_add_epi64(totals[0], totals[1]);
        let half = _mm_add_epi64(
            _mm256_castsi256_si128(total),
            _mm256_extracti128_si256::<1>(total),
        );
        let total = _mm_cvtsi128_si64(half) + _mm_extract_epi64::<1>(half);
        total.cast_unsigned() + rest.iter().map(|&byte| u64::from(byte)).sum::<u64>()
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn store_past(line: *const u8, out: *mut u8) {
        let (line, out) = (line.cast::<__m256i>(), out.cast::<__m256i>());
        // SAFETY: two registers make a line; the caller promised alignment and validity.
        unsafe {
            _mm256_stream_si256(out, _mm256_loadu_si256(line));
            _mm256_stream_si256(out.add(1), _mm256_loadu_si256(line.add(1)));
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn fence() {
        _mm_sfence();
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn cut<T: Narrow<D>, D: Lane>(
        values: &[T; GROUP_LANES],
        base: T,
        out: &mut [D; GROUP_LANES],
    ) -> T {
        let Some(words) = T::words(values) else {
            return try_narrow::cut(values, base, out);
        };
        if let Some(out) = D::bytes_mut(out) {
            T::truncate(cut_8(words, base.into(), out))
        } else if let Some(out) = D::shorts_mut(out) {
            T::truncate(cut_16(words, base.into(), out))
        } else {
            try_narrow::cut(values, base, out)
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn overlap(
        bases: &[u64; GROUPS],
        maxima: &[u64; GROUPS],
        low: u64,
        high: u64,
    ) -> (u8, u8) {
        let (low, high) = (
            _mm256_set1_epi64x(signed(low)),
            _mm256_set1_epi64x(signed(high)),
        );
        let (bases, _) = bases.as_chunks::<4>();
        let (maxima, _) = maxima.as_chunks::<4>();
        let (mut misses, mut leaves) = (0, 0);
        for (half, (bases, maxima)) in bases.iter().zip(maxima).enumerate() {
            // SAFETY: both arrays are one register long.
            let (bases, maxima) = unsafe {
                (
                    _mm256_loadu_si256(bases.as_ptr().cast()),
                    _mm256_loadu_si256(maxima.as_ptr().cast()),
                )
            };
            let (bases, maxima) = (flip_top(bases), flip_top(maxima));
            let below = (
                _mm256_cmpgt_epi64(low, maxima),
                _mm256_cmpgt_epi64(low, bases),
            );
            let above = (
                _mm256_cmpgt_epi64(bases, high),
                _mm256_cmpgt_epi64(maxima, high),
            );
            misses |= top_bits_64(_mm256_or_si256(below.0, above.0)) << (half * 4);
            leaves |= top_bits_64(_mm256_or_si256(below.1, above.1)) << (half * 4);
        }
        (!misses as u8, !leaves as u8)
    }
}

/// A signed number that sorts as `value` does.
#[inline(always)]
fn signed(value: u64) -> i64 {
    (value ^ 1 << 63).cast_signed()
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn flip_top(lanes: __m256i) -> __m256i {
    _mm256_xor_si256(lanes, _mm256_set1_epi64x(i64::MIN))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_64(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_32(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)).cast_unsigned())
}

/// The top bits of sixteen lanes, which are packed to bytes first and then put in order again.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_16(lanes: __m256i) -> u64 {
    let bytes = _mm256_packs_epi16(lanes, _mm256_setzero_si256());
    let bytes = _mm256_permute4x64_epi64::<0b_11_01_10_00>(bytes);
    u64::from(_mm256_movemask_epi8(bytes).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn top_bits_8(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(lanes).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_64(a: __m256i, b: __m256i) -> __m256i {
    let above = _mm256_cmpgt_epi64(flip_top(a), flip_top(b));
    _mm256_xor_si256(above, _mm256_set1_epi64x(-1))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_32(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi32(_mm256_min_epu32(a, b), a)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_16(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi16(_mm256_min_epu16(a, b), a)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn is_at_most_8(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_min_epu8(a, b), a)
}

/// Lanes of ones where the lane's bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_64(bits: u64) -> __m256i {
    let own = _mm256_setr_epi64x(1, 2, 4, 8);
    let all = _mm256_set1_epi64x(bits.cast_signed());
    _mm256_cmpeq_epi64(_mm256_and_si256(all, own), own)
}

/// Lanes of ones where the lane's bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_32(bits: u64) -> __m256i {
    let own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let all = _mm256_set1_epi32(bits as i32);
    _mm256_cmpeq_epi32(_mm256_and_si256(all, own), own)
}

/// Lanes of ones where the lane's bit of `bits` is set.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_16(bits: u64) -> __m256i {
    let own = own_bits_16();
    let all = _mm256_set1_epi16(bits as i16);
    _mm256_cmpeq_epi16(_mm256_and_si256(all, own), own)
}

/// Lanes of ones where the lane's bit of `bits` is set: each byte gets its byte of `bits`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand_8(bits: u64) -> __m256i {
    const REPEAT: i64 = 0x0101_0101_0101_0101;
    let byte = _mm256_setr_epi64x(0, REPEAT, 2 * REPEAT, 3 * REPEAT);
    let own = own_bits_8();
    let all = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), byte);
    _mm256_cmpeq_epi8(_mm256_and_si256(all, own), own)
}

/// The bit of each lane in its byte of a bitmap.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn own_bits_8() -> __m256i {
    _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed())
}

/// The bit of each lane in its two bytes of a bitmap.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn own_bits_16() -> __m256i {
    let low = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_set_m128i(_mm_slli_epi16::<8>(low), low)
}

/// The 64-bit lanes of a register.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lanes_64(register: __m256i) -> [u64; 4] {
    let mut lanes = [0; 4];
    // SAFETY: `lanes` is one register long.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), register) };
    lanes
}

/// The 32-bit lanes of a register.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lanes_32(register: __m256i) -> [u32; 8] {
    let mut lanes = [0; 8];
    // SAFETY: `lanes` is one register long.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), register) };
    lanes
}

/// The bits of the 64 lanes of two registers, each lane ones or zeros.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn word_8(lanes: [__m256i; 2]) -> u64 {
    top_bits_8(lanes[0]) | top_bits_8(lanes[1]) << 32
}

/// [`word_8`] of four registers.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn word_16(lanes: [__m256i; 4]) -> u64 {
    let [a, b, c, d] = lanes;
    // Packing takes turns between the halves of both registers.
    let bytes = |a, b| _mm256_permute4x64_epi64::<0b_11_01_10_00>(_mm256_packs_epi16(a, b));
    word_8([bytes(a, b), bytes(c, d)])
}

/// [`word_8`] of eight registers.
#[inline]
#[target_feature(enable = "avx2")]
fn word_32(lanes: [__m256i; 8]) -> u64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let bytes = |a, b, c, d| {
        let lanes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        _mm256_permutevar8x32_epi32(lanes, order)
    };
    word_8([bytes(a, b, c, d), bytes(e, f, g, h)])
}

/// [`word_8`] of sixteen registers, whose halves of lanes become lanes of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn word_64(lanes: [__m256i; 16]) -> u64 {
    let half = |index: usize| {
        let (a, b) = (lanes[2 * index], lanes[2 * index + 1]);
        let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
        let both = _mm256_castps_si256(_mm256_shuffle_ps::<0b_10_00_10_00>(a, b));
        _mm256_permute4x64_epi64::<0b_11_01_10_00>(both)
    };
    word_32([
        half(0),
        half(1),
        half(2),
        half(3),
        half(4),
        half(5),
        half(6),
        half(7),
    ])
}

/// [`Steps::moved`] of eight bases, the ends of the range behind each other and the largest lane.
#[inline]
#[target_feature(enable = "avx2")]
fn moved<const PER: usize>(
    bases: &[u64; PER],
    ends: [u64; 3],
    repeated: __m256i,
) -> Option<Moved<PER>> {
    let bases: &[u64; GROUPS] = bases.as_slice().as_array()?;
    let [low, high, widest] = ends.map(|end| _mm256_set1_epi64x(end.cast_signed()));
    let [from_low, to_high, most] = [low, high, widest].map(|end| flip_top(end));
    let mut moved = Moved {
        from: [0; PER],
        span: [0; PER],
        met: 0,
    };
    let (slots, _) = moved.from.as_chunks_mut::<4>();
    let (spans, _) = moved.span.as_chunks_mut::<4>();
    let (halves, _) = bases.as_chunks::<4>();
    let halves = halves.iter().zip(slots.iter_mut().zip(spans));
    for (half, (bases, (from_slot, span_slot))) in halves.enumerate() {
        // SAFETY: half of the bases is one register long.
        let bases = unsafe { _mm256_loadu_si256(bases.as_ptr().cast()) };
        let flipped = flip_top(bases);
        let starts_inside = _mm256_cmpgt_epi64(flipped, from_low);
        let from = _mm256_andnot_si256(starts_inside, _mm256_sub_epi64(low, bases));
        let reach = _mm256_sub_epi64(high, bases);
        let is_far = _mm256_cmpgt_epi64(flip_top(reach), most);
        let span = _mm256_sub_epi64(_mm256_blendv_epi8(reach, widest, is_far), from);
        let misses = _mm256_or_si256(
            _mm256_cmpgt_epi64(flipped, to_high),
            _mm256_cmpgt_epi64(flip_top(from), most),
        );
        moved.met |= ((!top_bits_64(misses) & 0b1111) << (half * 4)) as u8;
        // SAFETY: both slots are one register long.
        unsafe {
            let (from_slot, span_slot) = (from_slot.as_mut_ptr(), span_slot.as_mut_ptr());
            _mm256_storeu_si256(from_slot.cast(), _mm256_shuffle_epi8(from, repeated));
            _mm256_storeu_si256(span_slot.cast(), _mm256_shuffle_epi8(span, repeated));
        }
    }
    Some(moved)
}

macro_rules! steps {
    ($lane:ident, $splat:ident, $sub:ident, $is_above:ident, $word:ident, $expand:ident) => {
        impl Steps<$lane> for Avx2 {
            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn range(values: &Word<$lane>, low: u64, span: u64, out: &mut u64) {
                const LANES: usize = 32 / size_of::<$lane>();
                const TOP: $lane = 1 << ($lane::BITS - 1);
                let (low, span) = (low.cast_signed(), span.cast_signed());
                let (low, span) = (_mm256_set1_epi64x(low), _mm256_set1_epi64x(span));
                let tops = $splat(TOP.cast_signed());
                let (low, span) = (_mm256_xor_si256(low, tops), _mm256_xor_si256(span, tops));
                let (registers, _) = values.as_chunks::<LANES>();
                let mut above = [_mm256_setzero_si256(); WORD_LANES / LANES];
                for (above, lanes) in above.iter_mut().zip(registers) {
                    // SAFETY: `lanes` is one register long.
                    let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
                    *above = $is_above($sub(lanes, low), span);
                }
                *out = !$word(above);
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn moved<const PER: usize>(
                bases: &[u64; PER],
                low: u64,
                high: u64,
            ) -> Moved<PER> {
                const REPEATED: [u8; 32] = repeated(size_of::<$lane>());
                // SAFETY: the bytes are one register long.
                let repeated = unsafe { _mm256_loadu_si256(REPEATED.as_ptr().cast()) };
                moved(bases, [low, high, $lane::MAX.into()], repeated)
                    .unwrap_or_else(|| Moved::of::<$lane>(bases, low, high))
            }

            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn select(values: &Word<$lane>, keep: u64, fill: $lane, out: &mut Word<$lane>) {
                const LANES: usize = 32 / size_of::<$lane>();
                let fill = $splat(fill.cast_signed());
                let (registers, _) = values.as_chunks::<LANES>();
                let (slots, _) = out.as_chunks_mut::<LANES>();
                for (index, (slot, lanes)) in slots.iter_mut().zip(registers).enumerate() {
                    let ones = $expand(keep >> (index * LANES));
                    // SAFETY: `lanes` and `slot` are one register long.
                    unsafe {
                        let lanes = _mm256_loadu_si256(lanes.as_ptr().cast());
                        let lanes = _mm256_blendv_epi8(fill, lanes, ones);
                        _mm256_storeu_si256(slot.as_mut_ptr().cast(), lanes);
                    }
                }
            }
        }
    };
}

steps!(
    u8,
    _mm256_set1_epi8,
    _mm256_sub_epi8,
    _mm256_cmpgt_epi8,
    word_8,
    expand_8
);
steps!(
    u16,
    _mm256_set1_epi16,
    _mm256_sub_epi16,
    _mm256_cmpgt_epi16,
    word_16,
    expand_16
);
steps!(
    u32,
    _mm256_set1_epi32,
    _mm256_sub_epi32,
    _mm256_cmpgt_epi32,
    word_32,
    expand_32
);
steps!(
    u64,
    _mm256_set1_epi64x,
    _mm256_sub_epi64,
    _mm256_cmpgt_epi64,
    word_64,
    expand_64
);
