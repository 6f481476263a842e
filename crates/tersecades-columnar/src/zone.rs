//! Zones of a chunk: where the values of its blocks lie, to within a 256th of the chunk's range.
//!
//! ```text
//! zone z: blocks z << blocks_shift ..     mark of a key: (key - smallest key) >> key_shift
//! low[z], high[z]: marks of the smallest and largest key of the zone
//! ```
//! They lie in the chunk itself, so a chunk that has nothing to find is passed over without a look
//! at its bytes, and of the others only blocks that may hold something are read. They are made
//! when a chunk is encoded or loaded, and are no part of its bytes.
//!
//! Source: Moerkotte, "Small Materialized Aggregates" (VLDB 1998), with marks instead of values.

use crate::block::block_count;
use crate::chunk::Chunk;
use crate::kernels::kernels;
use crate::predicate::KeyRange;
use crate::stats::Stats;

/// Most zones of a chunk.
const ZONES: usize = 64;

/// Where the values of each zone lie.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Zones {
    /// Zones in use; 0 when nothing is known.
    count: usize,
    /// The ends that marks are counted between.
    ends: Stats,
    blocks_shift: u32,
    key_shift: u32,
    low: [u8; ZONES],
    high: [u8; ZONES],
}

impl Default for Zones {
    fn default() -> Self {
        Zones {
            count: 0,
            ends: Stats::default(),
            blocks_shift: 0,
            key_shift: 0,
            low: [u8::MAX; ZONES],
            high: [0; ZONES],
        }
    }
}

/// What zones tell about a range: a bit per zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZoneMarks {
    touched: u64,
    covered: u64,
    blocks_shift: u32,
    fine: bool,
}

impl ZoneMarks {
    /// What is said without zones: every block may hold something.
    const UNKNOWN: ZoneMarks = ZoneMarks {
        touched: u64::MAX,
        covered: 0,
        // One zone stands for every block.
        blocks_shift: u64::BITS - 1,
        fine: false,
    };

    /// Whether no value is in the range.
    pub(crate) fn is_empty(&self) -> bool {
        self.touched == 0
    }

    /// Whether each block has marks of its own, no wider than the narrowest deltas reach: the
    /// exact ends of a block hardly tell more.
    pub(crate) fn are_fine(&self) -> bool {
        self.fine
    }

    /// The same of blocks whose ends leave out outliers, which zones take in: ends tell more.
    pub(crate) fn with_outliers(self) -> Self {
        ZoneMarks {
            fine: false,
            ..self
        }
    }

    /// Whether a value of `block` may be in the range.
    #[inline]
    pub(crate) fn touches(&self, block: usize) -> bool {
        self.touched >> (block >> self.blocks_shift) & 1 == 1
    }

    /// Whether every value of `block` is in the range.
    #[inline]
    pub(crate) fn covers(&self, block: usize) -> bool {
        self.covered >> (block >> self.blocks_shift) & 1 == 1
    }

    /// The end of the blocks from `block` on whose values may be in the range and need not be,
    /// of `blocks` blocks in all.
    #[inline]
    pub(crate) fn open_until(&self, block: usize, blocks: usize) -> usize {
        let zone = block >> self.blocks_shift;
        let open = (self.touched & !self.covered) >> zone;
        let end = zone + open.trailing_ones() as usize;
        match end > (blocks - 1) >> self.blocks_shift {
            true => blocks,
            false => (end << self.blocks_shift).max(block),
        }
    }

    /// The first block whose values may be in the range.
    pub(crate) fn first_touched(&self) -> usize {
        match self.touched {
            u64::MAX => 0,
            touched => (touched.trailing_zeros() as usize) << self.blocks_shift,
        }
    }
}

impl Zones {
    /// The zones of a chunk whose statistics are known, as its codec tells them.
    pub(crate) fn of(chunk: &Chunk) -> Self {
        let mut zones = Zones::new(chunk.stats, block_count(chunk.rows));
        let mut told = 0;
        if zones.count > 0 {
            chunk.codec.block_ends(chunk, &mut |block, low, high| {
                zones.add(block, low, high);
                told += 1;
            });
        }
        if told == 0 {
            zones.count = 0;
        }
        zones
    }

    fn new(stats: Stats, blocks: usize) -> Self {
        let per_zone = blocks.div_ceil(ZONES).max(1);
        let range = stats.max.saturating_sub(stats.min);
        let range_bits = u64::BITS - range.leading_zeros();
        let blocks_shift = per_zone.next_power_of_two().trailing_zeros();
        Zones {
            count: if stats.known {
                blocks.div_ceil(1 << blocks_shift)
            } else {
                0
            },
            ends: stats,
            blocks_shift,
            key_shift: range_bits.saturating_sub(u8::BITS),
            ..Zones::default()
        }
    }

    /// Takes in that the keys of `block` lie in `low..=high`.
    #[inline]
    fn add(&mut self, block: usize, low: u64, high: u64) {
        let zone = block >> self.blocks_shift;
        let (low, high) = (self.mark(low), self.mark(high));
        self.low[zone] = self.low[zone].min(low);
        self.high[zone] = self.high[zone].max(high);
    }

    /// The mark of the key nearest to `key` between the ends of the chunk.
    #[inline]
    fn mark(&self, key: u64) -> u8 {
        let Stats { min, max, .. } = self.ends;
        ((key.clamp(min, max) - min) >> self.key_shift) as u8
    }

    /// What the zones tell about `range`.
    pub(crate) fn test(&self, range: KeyRange) -> ZoneMarks {
        if self.count == 0 {
            return ZoneMarks::UNKNOWN;
        }
        let Stats { min, max, .. } = self.ends;
        let used = u64::MAX >> (ZONES - self.count);
        let outside = range.high < min || range.low > max;
        let (from, to) = (self.mark(range.low), self.mark(range.high));
        let mut touched = used & self.marks_in((0, to), (from, u8::MAX));
        if outside {
            touched = 0;
        }
        // A mark that an end of the range falls into may hold keys on both sides of it.
        let inner_from = if range.low <= min {
            Some(0)
        } else {
            from.checked_add(1)
        };
        let inner_to = if range.high >= max {
            Some(u8::MAX)
        } else {
            to.checked_sub(1)
        };
        let covered = match (inner_from, inner_to) {
            (Some(from), Some(to)) => self.marks_in((from, u8::MAX), (0, to)),
            _ => 0,
        };
        ZoneMarks {
            touched,
            covered: covered & touched,
            blocks_shift: self.blocks_shift,
            fine: self.blocks_shift == 0 && self.key_shift <= u8::BITS,
        }
    }

    /// The zones whose low and high marks are inside the given ends.
    fn marks_in(&self, low: (u8, u8), high: (u8, u8)) -> u64 {
        let range_mask = kernels().u8.range_mask_flat;
        let (mut lows, mut highs) = ([0], [0]);
        range_mask(&self.low, low.0, low.1 - low.0, &mut lows);
        range_mask(&self.high, high.0, high.1 - high.0, &mut highs);
        lows[0] & highs[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of every size, and near both ends.
    fn key(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let bits = *seed ^ (*seed >> 29);
        match bits % 4 {
            0 => bits >> (bits % 64),
            1 => u64::MAX - (bits >> (bits % 64)),
            2 => 1_000_000 + bits % 5_000,
            _ => bits,
        }
    }

    #[test]
    fn no_block_is_passed_over_or_taken_wrongly() {
        let mut seed = 7;
        for (round, blocks) in [1usize, 3, 63, 64, 65, 200, 4_096].into_iter().enumerate() {
            let narrow = round % 2 == 0;
            let near = |key: u64| if narrow { 1_000_000 + key % 9_000 } else { key };
            let ends: Vec<(u64, u64)> = (0..blocks)
                .map(|_| (near(key(&mut seed)), near(key(&mut seed))))
                .map(|(a, b)| (a.min(b), a.max(b)))
                .collect();
            let low = ends.iter().map(|ends| ends.0).min().unwrap();
            let high = ends.iter().map(|ends| ends.1).max().unwrap();
            let mut zones = Zones::new(Stats::from_ends(low, high), blocks);
            for (block, ends) in ends.iter().enumerate() {
                zones.add(block, ends.0, ends.1);
            }
            for _ in 0..200 {
                let (a, b) = (near(key(&mut seed)), near(key(&mut seed)));
                for (low, high) in [(a.min(b), a.max(b)), (a, a), (0, a), (b, u64::MAX)] {
                    let marks = zones.test(KeyRange { low, high });
                    let mut touched = false;
                    for (block, ends) in ends.iter().enumerate() {
                        let meets = low <= ends.1 && ends.0 <= high;
                        let inside = low <= ends.0 && ends.1 <= high;
                        assert!(marks.touches(block) || !meets, "{blocks} {low} {high}");
                        assert!(!marks.covers(block) || inside, "{blocks} {low} {high}");
                        touched |= meets;
                    }
                    assert!(!touched || !marks.is_empty());
                    assert!(!touched || marks.touches(marks.first_touched()));
                }
            }
        }
    }

    #[test]
    fn blocks_far_apart_are_told_from_one_another() {
        let mut zones = Zones::new(Stats::from_ends(0, 64_000_250), 64);
        (0..64).for_each(|block| {
            let base = block as u64 * 1_000_000;
            zones.add(block, base, base + 250);
        });
        let only = |key| {
            let range = KeyRange {
                low: key,
                high: key,
            };
            zones.test(range)
        };
        assert!(only(10_500_000).is_empty());
        let marks = only(10_000_100);
        assert_eq!(marks.first_touched(), 10);
        assert!((0..64).all(|block| marks.touches(block) == (block == 10)));
    }

    #[test]
    fn without_zones_every_block_may_hold_something() {
        let marks = Zones::default().test(KeyRange { low: 3, high: 4 });
        assert!(!marks.is_empty() && marks.first_touched() == 0);
        assert!((0..100_000).all(|block| marks.touches(block) && !marks.covers(block)));
    }
}
