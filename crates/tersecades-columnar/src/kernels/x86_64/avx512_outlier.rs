//! Outliers eight at a time: a register has the bases of a block, two have its bitmap.

use super::avx512::Avx512;
use crate::kernels::outlier::{OutlierSums, Outliers, Outlying, sums};
use crate::kernels::{GROUP_LANES, Lane};
use std::arch::x86_64::*;

/// Outliers of a register.
const LANES: usize = 8;
/// Bits of which the differences and sums of keys are multiplied; products of as many rows as a
/// block has add up below 2^63.
const FACTOR_BITS: u32 = 26;

impl Outlying<u64> for Avx512 {}

macro_rules! outlying {
    ($lane:ident, $load:ident, $widen:ident) => {
        impl Outlying<$lane> for Avx512 {
            #[inline]
            #[target_feature(
                enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
            )]
            unsafe fn outliers(outliers: &Outliers<'_, $lane>) -> OutlierSums {
                outliers.assert();
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
                    .finish(outliers.squares)
                    .unwrap_or_else(|| sums(outliers))
            }
        }
    };
}

outlying!(u8, _mm_maskz_loadu_epi8, _mm512_cvtepu8_epi64);
outlying!(u16, _mm_maskz_loadu_epi16, _mm512_cvtepu16_epi64);
outlying!(u32, _mm256_maskz_loadu_epi32, _mm512_cvtepu32_epi64);

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
    fn finish(self, wants_squares: bool) -> Option<OutlierSums> {
        (self.wide == 0 || !wants_squares).then(|| OutlierSums {
            more: _mm512_reduce_add_epi64(self.more).into(),
            squares: match wants_squares {
                true => _mm512_reduce_add_epi64(self.squares).into(),
                false => 0,
            },
            min: _mm512_reduce_min_epu64(self.min),
            max: _mm512_reduce_max_epu64(self.max),
        })
    }
}
