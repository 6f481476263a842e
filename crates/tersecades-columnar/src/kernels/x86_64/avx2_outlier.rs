//! Outliers eight at a time: a register has the bases of a block, four have its bitmap.
//!
//! Keys have up to 32 bits, so that their bases fit a lane as well. Keys and holes are added up
//! apart.

use super::avx2::{Avx2, lanes_32, lanes_64};
use crate::kernels::outlier::{OutlierSums, Outliers, Outlying, sums};
use crate::kernels::{GROUP_LANES, GROUPS, Lane};
use std::arch::x86_64::*;

/// Outliers of a register.
const LANES: usize = 8;
/// Bits of which the differences and sums of keys are multiplied; products of as many rows as a
/// block has add up below 2^63.
const FACTOR_BITS: u32 = 26;

impl Outlying<u64> for Avx2 {}

macro_rules! outlying {
    ($lane:ident, $widen:ident) => {
        impl Outlying<$lane> for Avx2 {
            #[inline]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn outliers(outliers: &Outliers<'_, $lane>) -> OutlierSums {
                outliers.assert();
                let widen = |keys: &[$lane; LANES]| $widen(keys);
                let found = match (outliers.squares, outliers.mask.is_some()) {
                    (false, false) => totals::<_, false, false>(outliers, widen),
                    (false, true) => totals::<_, false, true>(outliers, widen),
                    (true, false) => totals::<_, true, false>(outliers, widen),
                    (true, true) => totals::<_, true, true>(outliers, widen),
                };
                found.unwrap_or_else(|| sums(outliers))
            }
        }
    };
}

outlying!(u8, widen_8);
outlying!(u16, widen_16);
outlying!(u32, widen_32);

#[inline]
#[target_feature(enable = "avx2")]
fn widen_8(lanes: &[u8; LANES]) -> __m256i {
    // SAFETY: the lanes are a quarter of a register.
    _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(lanes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_16(lanes: &[u16; LANES]) -> __m256i {
    // SAFETY: the lanes are half a register.
    _mm256_cvtepu16_epi32(unsafe { _mm_loadu_si128(lanes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_32(lanes: &[u32; LANES]) -> __m256i {
    // SAFETY: the lanes are a register.
    unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
}

/// What the outliers add up to, unless a factor of a square is too large.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn totals<W: Lane, const SQUARES: bool, const MASKED: bool>(
    outliers: &Outliers<'_, W>,
    widen: impl Fn(&[W; LANES]) -> __m256i,
) -> Option<OutlierSums> {
    let mut totals = Totals::<SQUARES, MASKED>::new(outliers);
    let (rows, last_rows) = outliers.rows.as_chunks::<LANES>();
    let (keys, _) = outliers.keys.as_chunks::<LANES>();
    let all = _mm256_set1_epi32(-1);
    for (rows, keys) in rows.iter().zip(keys) {
        totals.add(widen_16(rows), widen(keys), all);
    }
    let left = last_rows.len() as i32;
    let (places, count) = (_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), LANES as i32);
    if left == 0 {
        // Every outlier was in a full register.
    } else if let Some(rows) = outliers.rows.last_chunk()
        && let Some(keys) = outliers.keys.last_chunk()
    {
        let present = _mm256_cmpgt_epi32(places, _mm256_set1_epi32(count - left - 1));
        totals.add(widen_16(rows), widen(keys), present);
    } else {
        let (mut rows, mut keys) = ([0; LANES], [W::default(); LANES]);
        let slots = rows.iter_mut().zip(&mut keys);
        for (slots, (row, key)) in slots.zip(outliers.rows.iter().zip(outliers.keys)) {
            (*slots.0, *slots.1) = (*row, *key);
        }
        let present = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), places);
        totals.add(widen_16(&rows), widen(&keys), present);
    }
    totals.finish(outliers.ends)
}

/// What eight outliers at a time add up to.
struct Totals<const SQUARES: bool, const MASKED: bool> {
    bases: __m256i,
    reach: __m256i,
    kept: [__m256i; 4],
    zeros: __m256i,
    keys: __m256i,
    holes: __m256i,
    squares: __m256i,
    min: __m256i,
    max: __m256i,
    /// Lanes of ones where an outlier counted.
    any: __m256i,
    /// Bits that a factor is too large by.
    wide: __m256i,
}

impl<const SQUARES: bool, const MASKED: bool> Totals<SQUARES, MASKED> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new<W: Lane>(outliers: &Outliers<'_, W>) -> Self {
        let bases: [u32; GROUPS] = outliers.bases.map(|base| base as u32);
        let copied;
        let kept = match outliers.mask {
            Some(words) if let Some(kept) = words.first_chunk() => kept,
            _ => {
                copied = outliers.kept();
                &copied
            }
        };
        let (parts, _) = kept.as_chunks::<4>();
        // SAFETY: a part is one register long.
        let load = |part: usize| unsafe { _mm256_loadu_si256(parts[part].as_ptr().cast()) };
        let none = _mm256_setzero_si256();
        Totals {
            // SAFETY: the bases are one register long.
            bases: unsafe { _mm256_loadu_si256(bases.as_ptr().cast()) },
            reach: _mm256_set1_epi32(outliers.reach as i32),
            kept: [load(0), load(1), load(2), load(3)],
            zeros: _mm256_set1_epi64x(outliers.zero.wrapping_mul(2).cast_signed()),
            keys: none,
            holes: none,
            squares: none,
            min: _mm256_set1_epi32(-1),
            max: none,
            any: none,
            wide: none,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(&mut self, rows: __m256i, keys: __m256i, present: __m256i) {
        const GROUP_BITS: i32 = GROUP_LANES.trailing_zeros() as i32;
        let kept = match MASKED {
            true => _mm256_and_si256(self.is_kept(rows), present),
            false => present,
        };
        self.any = _mm256_or_si256(self.any, kept);
        let groups = _mm256_srli_epi32::<GROUP_BITS>(rows);
        let bases = _mm256_permutevar8x32_epi32(self.bases, groups);
        let above = _mm256_sub_epi32(_mm256_max_epu32(keys, bases), bases);
        let holes = _mm256_add_epi32(bases, _mm256_min_epu32(above, self.reach));
        let out = _mm256_xor_si256(kept, _mm256_set1_epi32(-1));
        self.min = _mm256_min_epu32(self.min, _mm256_or_si256(keys, out));
        let (keys, holes) = (_mm256_and_si256(keys, kept), _mm256_and_si256(holes, kept));
        self.max = _mm256_max_epu32(self.max, keys);
        let (even_keys, odd_keys) = halves(keys);
        let (even_holes, odd_holes) = halves(holes);
        self.keys = _mm256_add_epi64(self.keys, _mm256_add_epi64(even_keys, odd_keys));
        self.holes = _mm256_add_epi64(self.holes, _mm256_add_epi64(even_holes, odd_holes));
        if SQUARES {
            self.square(even_keys, even_holes);
            self.square(odd_keys, odd_holes);
        }
    }

    /// Lanes of ones where the bit of the row is set.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn is_kept(&self, rows: __m256i) -> __m256i {
        // Of a row, the lowest five bits say which bit of a lane, three which lane, two which part.
        let place = _mm256_srli_epi32::<5>(rows);
        let part = |part: usize| _mm256_permutevar8x32_epi32(self.kept[part], place);
        let pick = |first, second, chosen| {
            let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
            _mm256_castps_si256(_mm256_blendv_ps(first, second, _mm256_castsi256_ps(chosen)))
        };
        let is_odd = _mm256_slli_epi32::<{ 31 - 8 }>(rows);
        let is_late = _mm256_slli_epi32::<{ 31 - 9 }>(rows);
        let early = pick(part(0), part(1), is_odd);
        let bits = pick(early, pick(part(2), part(3), is_odd), is_late);
        let turn = _mm256_andnot_si256(rows, _mm256_set1_epi32(31));
        _mm256_srai_epi32::<31>(_mm256_sllv_epi32(bits, turn))
    }

    /// k² - h² = (k - h)(k + h), both counted from zero; lanes that do not count have 0 for both.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn square(&mut self, keys: __m256i, holes: __m256i) {
        let more = _mm256_sub_epi64(keys, holes);
        let both = _mm256_sub_epi64(_mm256_add_epi64(keys, holes), self.zeros);
        let product = _mm256_mul_epi32(more, both);
        self.squares = _mm256_add_epi64(self.squares, product);
        // A product with 0 is right whatever the other factor is.
        let is_none = _mm256_cmpeq_epi64(more, _mm256_setzero_si256());
        let sizes = _mm256_andnot_si256(is_none, _mm256_or_si256(size(more), size(both)));
        let over = _mm256_srli_epi64::<{ FACTOR_BITS as i32 }>(sizes);
        self.wide = _mm256_or_si256(self.wide, over);
    }

    /// The sums, unless a factor is too large.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish(self, wants_ends: bool) -> Option<OutlierSums> {
        if SQUARES && _mm256_testz_si256(self.wide, self.wide) == 0 {
            return None;
        }
        let sum = |register| lanes_64(register).into_iter().fold(0, u64::wrapping_add);
        let min = lanes_32(self.min).into_iter().fold(u32::MAX, u32::min);
        let max = lanes_32(self.max).into_iter().fold(0, u32::max);
        Some(OutlierSums {
            more: i128::from(sum(self.keys)) - i128::from(sum(self.holes)),
            squares: sum(self.squares).cast_signed().into(),
            min: match _mm256_testz_si256(self.any, self.any) {
                0 if wants_ends => min.into(),
                _ => u64::MAX,
            },
            max: if wants_ends { max.into() } else { 0 },
        })
    }
}

/// The even and the odd 32-bit lanes, each widened.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(lanes: __m256i) -> (__m256i, __m256i) {
    let even = _mm256_and_si256(lanes, _mm256_set1_epi64x(0xffff_ffff));
    (even, _mm256_srli_epi64::<32>(lanes))
}

/// The size of each signed 64-bit lane, less one where it is negative.
#[inline]
#[target_feature(enable = "avx2")]
fn size(lanes: __m256i) -> __m256i {
    let is_negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), lanes);
    _mm256_xor_si256(lanes, is_negative)
}
