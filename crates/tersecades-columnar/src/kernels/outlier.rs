//! What values that deltas cannot hold add to sums and ends: those of a block, or of several that
//! share bases.
//!
//! Kernels fold every delta. In the row of an outlier stands the near end of what deltas reach, its
//! *hole*: sums are mended by the difference, without reading the hole.

use super::level::Level;
use super::moment::BLOCK_BITS;
use super::{BLOCK_LANES, GROUP_LANES, Lane, PerGroup, WORD_LANES};

/// The values of a block that its deltas cannot hold, or such values of several blocks without a
/// mask that share one base.
///
/// # Shape
/// As many rows as keys, at most 1,024, in any order; the rows are below 1,024 and inside the mask.
/// Neither a base nor the reach is above the largest key.
#[derive(Debug, Clone, Copy)]
pub struct Outliers<'a, W> {
    /// The row of each.
    pub rows: &'a [u16],
    /// The key of each; one that is neither below nor above the reach of its group changes no sum.
    pub keys: &'a [W],
    /// The smallest keys that deltas hold.
    pub bases: &'a PerGroup<u64>,
    /// The largest less the smallest.
    pub reach: u64,
    /// The rows that count, if not all.
    pub mask: Option<&'a [u64]>,
    /// The key of zero.
    pub zero: u64,
    /// Whether squares are wanted; they are 0 else.
    pub squares: bool,
    /// Whether ends are wanted; they are those without a key else.
    pub ends: bool,
}

/// What outliers change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlierSums {
    /// The sum of keys less holes.
    pub more: i128,
    /// The sum of squares of keys less that of holes, both counted from zero, modulo 2^128.
    ///
    /// Only 64-bit keys can reach the modulus.
    pub squares: i128,
    /// The smallest key; the largest there is without a key.
    pub min: u64,
    /// The largest key; 0 without a key.
    pub max: u64,
}

impl<W: Lane> Outliers<'_, W> {
    /// The words of the mask, all set without one.
    pub(super) fn kept(&self) -> [u64; BLOCK_BITS] {
        let Some(words) = self.mask else {
            return [u64::MAX; BLOCK_BITS];
        };
        let mut kept = [0; BLOCK_BITS];
        let count = words.len().min(BLOCK_BITS);
        kept[..count].copy_from_slice(&words[..count]);
        kept
    }

    /// Asserts what every level relies on.
    #[inline(always)]
    pub(super) fn assert(&self) {
        assert!(self.rows.len() == self.keys.len(), "one row per key");
    }
}

/// The definition, one outlier at a time.
#[inline(always)]
pub(super) fn sums<W: Lane>(outliers: &Outliers<'_, W>) -> OutlierSums {
    outliers.assert();
    let (kept, zero) = (outliers.kept(), i128::from(outliers.zero));
    let mut sums = OutlierSums {
        more: 0,
        squares: 0,
        min: u64::MAX,
        max: 0,
    };
    for (row, key) in outliers.rows.iter().zip(outliers.keys) {
        let row = usize::from(*row) % BLOCK_LANES;
        if kept[row / WORD_LANES] >> (row % WORD_LANES) & 1 == 0 {
            continue;
        }
        let (key, base) = (Into::<u64>::into(*key), outliers.bases[row / GROUP_LANES]);
        let hole = key.max(base).min(base.saturating_add(outliers.reach));
        let more = i128::from(key) - i128::from(hole);
        // k² - h² = (k - h)(k + h)
        let both = i128::from(key) + i128::from(hole) - 2 * zero;
        sums.more += more;
        if outliers.squares {
            sums.squares = sums.squares.wrapping_add(more.wrapping_mul(both));
        }
        if outliers.ends {
            (sums.min, sums.max) = (sums.min.min(key), sums.max.max(key));
        }
    }
    sums
}

/// The outliers of a level.
pub(super) trait Outlying<W: Lane>: Level {
    /// What `outliers` change.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn outliers(outliers: &Outliers<'_, W>) -> OutlierSums {
        sums(outliers)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalar;
    use super::super::tests::{Cut, Random, faster_levels};
    use super::*;

    fn outliers_match<W: Cut>() {
        let mut random = Random(0x0071);
        for level in faster_levels() {
            for round in 0..600 {
                let count = [0, 1, 7, 8, 9, 35, 128, 1_024][round % 8];
                let step = BLOCK_LANES / count.max(1);
                let rows: Vec<u16> = (0..count)
                    .map(|index| (index * step + random.next() as usize % step) as u16)
                    .collect();
                let keys: Vec<W> = random.lanes(count);
                let most: u64 = W::MAX.into();
                let bases: PerGroup<u64> = std::array::from_fn(|_| random.bits() & most);
                let words = random.words(BLOCK_BITS);
                let outliers = Outliers {
                    rows: &rows,
                    keys: &keys,
                    bases: &bases,
                    reach: [0, 255, 65_535, most][random.next() as usize % 4].min(most),
                    mask: (round % 3 > 0).then_some(&words[..]),
                    zero: [0, 1 << (W::BITS - 1)][random.next() as usize % 2],
                    squares: !random.next().is_multiple_of(4),
                    ends: !random.next().is_multiple_of(4),
                };
                let expected = (W::of(&scalar::KERNELS).outliers)(&outliers);
                let answer = (W::of(level).outliers)(&outliers);
                assert_eq!(answer, expected, "{} {round} {outliers:?}", level.name);
            }
        }
    }

    #[test]
    fn outliers_change_what_their_keys_and_holes_say() {
        outliers_match::<u8>();
        outliers_match::<u16>();
        outliers_match::<u32>();
        outliers_match::<u64>();
    }

    /// Blocks of nothing but outliers, their squares around the sizes that levels add up in words.
    #[test]
    fn squares_of_a_block_of_outliers_do_not_wrap() {
        let rows: Vec<u16> = (0..BLOCK_LANES as u16).collect();
        for bits in 24..32 {
            for key in [
                (1 << bits) - 1,
                1 << bits,
                (1 << bits) + 99_999,
                3 << (bits - 1),
            ] {
                let keys = vec![key; BLOCK_LANES];
                let outliers = Outliers {
                    rows: &rows,
                    keys: &keys,
                    bases: &[0; 8],
                    reach: 255,
                    mask: None,
                    zero: 0,
                    squares: true,
                    ends: true,
                };
                let one = i128::from(key) * i128::from(key) - 255 * 255;
                for level in faster_levels() {
                    let found = (u32::of(level).outliers)(&outliers).squares;
                    assert_eq!(found, one * BLOCK_LANES as i128, "{} {key}", level.name);
                }
            }
        }
    }

    #[test]
    fn sums_with_outliers_are_those_of_the_keys() {
        let bases = std::array::from_fn(|group| 1_000 * group as u64);
        let outliers = Outliers {
            rows: &[3, 128, 1_023],
            keys: &[900u32, 5, 60_000],
            bases: &bases,
            reach: 255,
            mask: None,
            zero: 0,
            squares: true,
            ends: true,
        };
        let sums = sums(&outliers);
        let holes = [255i128, 1_000, 7_255];
        assert_eq!(sums.more, 900 + 5 + 60_000 - holes.iter().sum::<i128>());
        let squares = holes.iter().map(|hole| hole * hole).sum::<i128>();
        assert_eq!(sums.squares, 900 * 900 + 25 + 60_000 * 60_000 - squares);
        assert_eq!((sums.min, sums.max), (5, 60_000));
    }

    #[test]
    fn a_reach_to_the_end_of_all_keys_does_not_wrap() {
        let below = Outliers {
            rows: &[200],
            keys: &[5u64],
            bases: &[1_000; 8],
            reach: u64::MAX,
            mask: None,
            zero: 0,
            squares: false,
            ends: false,
        };
        assert_eq!(sums(&below).more, 5 - 1_000);
    }
}
