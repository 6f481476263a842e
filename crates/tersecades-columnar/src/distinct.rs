//! The distinct keys of a column, numbered: open addressing, memory reused.

/// Slots of an empty table; a power of two.
const SLOTS_MIN: usize = 1 << 10;

/// Distinct keys, numbered in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    keys: Vec<u64>,
    /// Number + 1 of the key in each slot, 0 where none is; a power of two, at most half full.
    slots: Vec<u32>,
    ranks: Vec<u32>,
    order: Vec<u32>,
}

impl Distinct {
    /// Forgets the keys, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.slots.clear();
        self.slots.resize(SLOTS_MIN, 0);
    }

    /// Number of distinct keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The number of `key`, the next one if it is met for the first time.
    #[inline]
    pub(crate) fn number(&mut self, key: u64) -> u32 {
        let mut slot = self.first_slot(key);
        loop {
            match self.slots[slot] {
                0 => return self.insert(key, slot),
                taken if self.keys[taken as usize - 1] == key => return taken - 1,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    #[inline]
    fn first_slot(&self, key: u64) -> usize {
        let mixed = (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as usize >> 16
            & (self.slots.len() - 1)
    }

    #[cold]
    fn insert(&mut self, key: u64, slot: usize) -> u32 {
        self.keys.push(key);
        let number = self.keys.len() as u32;
        self.slots[slot] = number;
        if self.keys.len() * 2 > self.slots.len() {
            let slots = self.slots.len() * 2;
            self.slots.clear();
            self.slots.resize(slots, 0);
            for index in 0..self.keys.len() {
                let mut slot = self.first_slot(self.keys[index]);
                while self.slots[slot] != 0 {
                    slot = (slot + 1) & (slots - 1);
                }
                self.slots[slot] = index as u32 + 1;
            }
        }
        number - 1
    }

    /// Appends the keys to `sorted` in the order of `place`; answers the rank of each number.
    pub(crate) fn sort<K: Ord>(
        &mut self,
        place: impl Fn(u64) -> K,
        sorted: &mut Vec<u64>,
    ) -> &[u32] {
        let keys = &self.keys;
        self.order.clear();
        self.order.extend(0..keys.len() as u32);
        self.order
            .sort_unstable_by_key(|number| place(keys[*number as usize]));
        self.ranks.clear();
        self.ranks.resize(keys.len(), 0);
        for (rank, number) in self.order.iter().enumerate() {
            self.ranks[*number as usize] = rank as u32;
        }
        sorted.extend(self.order.iter().map(|number| keys[*number as usize]));
        &self.ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_numbers_while_the_table_grows() {
        let mut distinct = Distinct::default();
        for round in 0..2u64 {
            distinct.clear();
            let key = |index: u64| ((index << 40) ^ (index * 3)).rotate_left(round as u32 * 13);
            for index in 0..5_000u64 {
                assert_eq!(u64::from(distinct.number(key(index))), index);
                assert_eq!(distinct.number(key(index / 2)), (index / 2) as u32);
            }
            assert_eq!(distinct.len(), 5_000);
            let mut sorted = Vec::new();
            let ranks = distinct.sort(std::cmp::Reverse, &mut sorted);
            assert!(sorted.is_sorted_by(|a, b| a > b));
            assert!((0..5_000).all(|index| sorted[ranks[index] as usize] == key(index as u64)));
        }
    }
}
