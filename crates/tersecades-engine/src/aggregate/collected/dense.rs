//! A bit for each value of a narrow range, group after group.
//!
//! ```text
//! base 64, 2 words a group:   group 0 │ 64..127 │ 128..191 │ group 1 │ 64..127 │ 128..191 │ …
//! ```
//! The range starts and ends at whole words, so that ranges of other panes are united word by
//! word. It takes at most a word for each row seen, or the first 4 KiB: no more than a table of
//! the values would.

use super::taken;

/// Words that a range may take whatever rows there are.
const WORDS_FREE: u64 = 512;

/// Words that a range may take at most: 8 MiB.
const WORDS_MAX: u64 = 1 << 20;

/// Values of a narrow range, by group id.
#[derive(Debug, Clone, Default)]
pub(super) struct Dense {
    /// The least value of the range, a multiple of 64.
    base: u64,
    /// Words of each group.
    words: usize,
    groups: usize,
    bits: Vec<u64>,
    /// Rows seen so far.
    rows: u64,
}

impl Dense {
    pub(super) fn clear(&mut self) {
        *self = Dense {
            bits: std::mem::take(&mut self.bits),
            ..Dense::default()
        };
        self.bits.clear();
    }

    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Takes note that rows are coming, which makes room for a wider range.
    pub(super) fn expect(&mut self, rows: u64) {
        self.rows += rows;
    }

    fn may_take(&self, groups: usize, words: u64) -> bool {
        let allowed = self.rows.clamp(WORDS_FREE, WORDS_MAX);
        (groups as u64).saturating_mul(words) <= allowed
    }

    /// Makes room for `groups` groups; false where they would take too much.
    #[must_use]
    pub(super) fn grow(&mut self, groups: usize) -> bool {
        if !self.may_take(groups, self.words as u64) {
            return false;
        }
        self.groups = groups;
        self.bits.resize(groups * self.words, 0);
        true
    }

    /// Makes the range hold `low` and `high`; false where it would take too much.
    #[must_use]
    pub(super) fn widen(&mut self, low: u64, high: u64) -> bool {
        let (low, high) = match self.words {
            0 => (low, high),
            words => (
                low.min(self.base),
                high.max(self.base + (words as u64 * 64 - 1)),
            ),
        };
        let base = low & !63;
        let words = (high - base) / 64 + 1;
        if words <= self.words as u64 {
            return true;
        }
        // A range that grew once will again.
        let roomy = if self.words == 0 {
            words
        } else {
            words.next_power_of_two()
        };
        let fits = base.checked_add(roomy.saturating_mul(64)).is_some();
        let words = if fits { roomy } else { words };
        if !self.may_take(self.groups, words) {
            return false;
        }
        let words = words as usize;
        let mut bits = vec![0; self.groups * words];
        let shift = (self.base.saturating_sub(base) / 64) as usize;
        for group in 0..self.groups {
            let own = &self.bits[group * self.words..][..self.words];
            if !own.is_empty() {
                bits[group * words + shift..][..self.words].copy_from_slice(own);
            }
        }
        (self.base, self.words, self.bits) = (base, words, bits);
        true
    }

    /// Adds a value to group `id`; false where the range would take too much.
    #[inline]
    #[must_use]
    pub(super) fn insert(&mut self, id: u32, value: u64) -> bool {
        let offset = value.wrapping_sub(self.base);
        if offset / 64 >= self.words as u64 || value < self.base {
            return self.widen(value, value) && self.insert(id, value);
        }
        self.bits[id as usize * self.words + (offset / 64) as usize] |= 1 << (offset % 64);
        true
    }

    /// Adds the groups of `other`, group `id` to group `targets[id]`; false, and nothing added,
    /// where the range would take too much.
    #[must_use]
    pub(super) fn merge(&mut self, other: &Dense, targets: &[u32]) -> bool {
        self.rows += other.rows;
        if other.words == 0 {
            return true;
        }
        let end = other.base + (other.words as u64 * 64 - 1);
        if !self.widen(other.base, end) {
            return false;
        }
        let shift = ((other.base - self.base) / 64) as usize;
        let groups: Vec<&[u64]> = other.bits.chunks_exact(other.words).collect();
        for (group, target) in taken(&groups, targets) {
            let own = &mut self.bits[target * self.words + shift..][..other.words];
            own.iter_mut()
                .zip(*group)
                .for_each(|(own, theirs)| *own |= theirs);
        }
        true
    }

    /// The number of different values of group `id`.
    pub(super) fn count(&self, id: u32) -> u64 {
        let group = self.bits.chunks_exact(self.words.max(1)).nth(id as usize);
        let ones = group
            .into_iter()
            .flatten()
            .map(|word| u64::from(word.count_ones()));
        ones.sum()
    }

    /// Group and value of every different value.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let base = self.base;
        let groups = self.bits.chunks_exact(self.words.max(1)).enumerate();
        groups.flat_map(move |(id, group)| {
            let words = group.iter().enumerate();
            words.flat_map(move |(index, word)| {
                let first = base + index as u64 * 64;
                let ones = (0..64).filter(move |bit| word >> bit & 1 == 1);
                ones.map(move |bit| (id as u32, first + bit))
            })
        })
    }

    pub(super) fn byte_size(&self) -> usize {
        self.bits.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranges_hold_what_sets_hold_wherever_they_lie() {
        for (first, step) in [(0, 1), (1_000_003, 7), (u64::MAX - 3_000, 1), (1 << 63, 13)] {
            let (mut dense, mut merged) = (Dense::default(), Dense::default());
            let mut known = BTreeSet::new();
            assert!(dense.grow(2) && merged.grow(3));
            dense.expect(4_000);
            let mut seed = 5u64;
            for _ in 0..500 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (id, value) = ((seed >> 40 & 1) as u32, first + (seed >> 50) % 200 * step);
                assert!(dense.insert(id, value));
                known.insert((id, value));
            }
            assert!(merged.insert(2, first + 64));
            assert!(merged.merge(&dense, &[2, 0]));
            assert_eq!(dense.pairs().collect::<BTreeSet<_>>(), known);
            let mut moved: BTreeSet<(u32, u64)> = known
                .iter()
                .map(|(id, value)| ([2, 0][*id as usize], *value))
                .collect();
            moved.insert((2, first + 64));
            assert_eq!(merged.pairs().collect::<BTreeSet<_>>(), moved);
            let count = |id| moved.iter().filter(|pair| pair.0 == id).count() as u64;
            assert_eq!([0, 1, 2].map(|id| merged.count(id)), [0, 1, 2].map(count));
        }
    }

    #[test]
    fn wide_ranges_are_refused_and_nothing_is_lost() {
        let mut dense = Dense::default();
        assert!(dense.grow(1) && dense.insert(0, 5));
        assert!(!dense.insert(0, 1 << 40));
        assert!(!dense.grow(10_000));
        assert_eq!(dense.pairs().collect::<Vec<_>>(), [(0, 5)]);
        dense.expect(1 << 15);
        assert!(dense.insert(0, 1 << 20));
        assert_eq!(dense.count(0), 2);
    }
}
