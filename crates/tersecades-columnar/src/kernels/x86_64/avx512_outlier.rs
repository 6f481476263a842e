//! Outliers eight at a time: a register has the bases of a block, two have its bitmap. Where sums
//! alone are wanted, sixteen at a time.

use super::avx512::Avx512;
use crate::kernels::outlier::{OutlierSums, Outliers, Outlying, sums};
use crate::kernels::{GROUP_LANES, GROUPS, Lane};
use std::arch::x86_64::*;

/// Outliers of a register.
const LANES: usize = 8;
/// Bits of which the differences and sums of keys are multiplied; products of as many rows as a
/// block has add up below 2^63.
const FACTOR_BITS: u32 = 26;

impl Outlying<u64> for Avx512 {}

macro_rules! outlying {
    ($lane:ident, $load:ident, $widen:ident, $load_more:ident, $widen_more:expr) => {
        impl Outlying<$lane> for Avx512 {
            #[inline]
            #[target_feature(
                enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
            )]
            unsafe fn outliers(outliers: &Outliers<'_, $lane>) -> OutlierSums {
                outliers.assert();
                if !outliers.squares && !outliers.ends {
                    return more(outliers, |present, keys: &[$lane]| {
                        // SAFETY: lanes that are not present are not read.
                        $widen_more(unsafe { $load_more(present, keys.as_ptr().cast()) })
                    });
                }
                let mut totals = Totals::new(outliers);
                let rows = outliers.rows.chunks(LANES);
                for (rows, keys) in rows.zip(outliers.keys.chunks(LANES)) {
                    let present = (u16::MAX >> (16 - rows.len())) as __mmask8;
                    // SAFETY: lanes behind the last row and key are neither read nor present.
                    let (rows, keys) = unsafe {
                        (
                            _mm_maskz_loadu_epi16(present, rows.as_ptr().cast()),
                            $load(present.into(), keys.as_ptr().cast()),
                        )
                    };
                    totals.add(present, _mm512_cvtepu16_epi64(rows), $widen(keys));
                }
                totals
                    .finish((outliers.squares, outliers.ends))
                    .unwrap_or_else(|| sums(outliers))
            }
        }
    };
}

outlying!(
    u8,
    _mm_maskz_loadu_epi8,
    _mm512_cvtepu8_epi64,
    _mm_maskz_loadu_epi8,
    _mm512_cvtepu8_epi32
);
outlying!(
    u16,
    _mm_maskz_loadu_epi16,
    _mm512_cvtepu16_epi64,
    _mm256_maskz_loadu_epi16,
    _mm512_cvtepu16_epi32
);
outlying!(
    u32,
    _mm256_maskz_loadu_epi32,
    _mm512_cvtepu32_epi64,
    _mm512_maskz_loadu_epi32,
    std::convert::identity
);

/// The sum of keys less holes; no ends. Keys have up to 32 bits; `widen` loads those present.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn more<W: Lane>(
    outliers: &Outliers<'_, W>,
    widen: impl Fn(__mmask16, &[W]) -> __m512i,
) -> OutlierSums {
    const MORE_LANES: usize = 16;
    let kept = outliers.kept();
    let bases: [u32; MORE_LANES] = std::array::from_fn(|lane| outliers.bases[lane % GROUPS] as u32);
    // SAFETY: bases are one register long, the words of a block two.
    let (bases, kept) = unsafe {
        let words = kept.as_ptr().cast::<__m512i>();
        let kept = [words.read_unaligned(), words.add(1).read_unaligned()];
        (_mm512_loadu_si512(bases.as_ptr().cast()), kept)
    };
    let reach = _mm512_set1_epi32(outliers.reach.min(u64::from(u32::MAX)) as i32);
    let spare = _mm512_xor_si512(bases, _mm512_set1_epi32(-1));
    let tops = _mm512_add_epi32(bases, _mm512_min_epu32(reach, spare));
    let (bit, low_half) = (_mm512_set1_epi32(1), _mm512_set1_epi64(0xffff_ffff));
    let mut totals = [_mm512_setzero_si512(); 2];
    let rows = outliers.rows.chunks(MORE_LANES);
    for (rows, keys) in rows.zip(outliers.keys.chunks(MORE_LANES)) {
        let present = (u32::from(u16::MAX) >> (MORE_LANES - rows.len())) as __mmask16;
        // SAFETY: lanes that are not present are not read.
        let rows = unsafe { _mm256_maskz_loadu_epi16(present, rows.as_ptr().cast()) };
        let (rows, keys) = (_mm512_cvtepu16_epi32(rows), widen(present, keys));
        let words = _mm512_permutex2var_epi32(kept[0], _mm512_srli_epi32::<5>(rows), kept[1]);
        // The processor takes the lowest five bits of a count of rotated bits.
        let bits = _mm512_rorv_epi32(words, rows);
        let counted = _mm512_mask_test_epi32_mask(present, bits, bit);
        let groups = _mm512_srli_epi32::<{ GROUP_LANES.trailing_zeros() }>(rows);
        let base = _mm512_permutexvar_epi32(groups, bases);
        let top = _mm512_permutexvar_epi32(groups, tops);
        let holes = _mm512_min_epu32(_mm512_max_epu32(keys, base), top);
        for (total, lanes) in totals.iter_mut().zip([keys, holes]) {
            let lanes = _mm512_maskz_mov_epi32(counted, lanes);
            let pairs = _mm512_add_epi64(
                _mm512_and_si512(lanes, low_half),
                _mm512_srli_epi64::<32>(lanes),
            );
            *total = _mm512_add_epi64(*total, pairs);
        }
    }
    OutlierSums {
        more: _mm512_reduce_add_epi64(_mm512_sub_epi64(totals[0], totals[1])).into(),
        squares: 0,
        min: u64::MAX,
        max: 0,
    }
}

/// What eight outliers at a time add up to.
struct Totals {
    bases: __m512i,
    reach: __m512i,
    kept: [__m512i; 2],
    zeros: __m512i,
    more: __m512i,
    squares: __m512i,
    min: __m512i,
    max: __m512i,
    /// Lanes that a factor was too large in.
    wide: __mmask8,
}

impl Totals {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new<W: Lane>(outliers: &Outliers<'_, W>) -> Self {
        let kept = outliers.kept();
        let (halves, _) = kept.as_chunks::<LANES>();
        // SAFETY: a half is one register long, and so are the bases.
        let load = |words: &[u64; LANES]| unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        Totals {
            bases: load(outliers.bases),
            reach: _mm512_set1_epi64(outliers.reach.cast_signed()),
            kept: [load(&halves[0]), load(&halves[1])],
            zeros: _mm512_set1_epi64(outliers.zero.wrapping_mul(2).cast_signed()),
            more: _mm512_setzero_si512(),
            squares: _mm512_setzero_si512(),
            min: _mm512_set1_epi64(-1),
            max: _mm512_setzero_si512(),
            wide: 0,
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn add(&mut self, present: __mmask8, rows: __m512i, keys: __m512i) {
        const GROUP_BITS: u32 = GROUP_LANES.trailing_zeros();
        let words =
            _mm512_permutex2var_epi64(self.kept[0], _mm512_srli_epi64::<6>(rows), self.kept[1]);
        let bits = _mm512_srlv_epi64(words, _mm512_and_si512(rows, _mm512_set1_epi64(63)));
        let kept = _mm512_mask_test_epi64_mask(present, bits, _mm512_set1_epi64(1));
        let bases = _mm512_permutexvar_epi64(_mm512_srli_epi64::<GROUP_BITS>(rows), self.bases);
        let tops = _mm512_add_epi64(bases, self.reach);
        let holes = _mm512_min_epu64(_mm512_max_epu64(keys, bases), tops);
        let more = _mm512_sub_epi64(keys, holes);
        let both = _mm512_sub_epi64(_mm512_add_epi64(keys, holes), self.zeros);
        let sizes = _mm512_or_si512(_mm512_abs_epi64(more), _mm512_abs_epi64(both));
        let over = _mm512_srli_epi64::<FACTOR_BITS>(sizes);
        self.wide |= _mm512_mask_test_epi64_mask(kept, over, over);
        let squares = _mm512_mul_epi32(more, both);
        self.more = _mm512_mask_add_epi64(self.more, kept, self.more, more);
        self.squares = _mm512_mask_add_epi64(self.squares, kept, self.squares, squares);
        self.min = _mm512_mask_min_epu64(self.min, kept, self.min, keys);
        self.max = _mm512_mask_max_epu64(self.max, kept, self.max, keys);
    }

    /// The sums, unless a factor was too large.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn finish(self, (wants_squares, wants_ends): (bool, bool)) -> Option<OutlierSums> {
        (self.wide == 0 || !wants_squares).then(|| OutlierSums {
            more: _mm512_reduce_add_epi64(self.more).into(),
            squares: match wants_squares {
                true => _mm512_reduce_add_epi64(self.squares).into(),
                false => 0,
            },
            min: if wants_ends {
                _mm512_reduce_min_epu64(self.min)
            } else {
                u64::MAX
            },
            max: if wants_ends {
                _mm512_reduce_max_epu64(self.max)
            } else {
                0
            },
        })
    }
}
