//! Groups of keys, without new ones.

use super::super::direct::EMPTY;
use super::super::packer::PackedKeys;
use super::{ASSIGNED, GroupTable, hash};

impl GroupTable {
    /// Appends to `groups` the group of each of the packed `keys`, with or without the words for
    /// nulls; [`u32::MAX`] for keys without one.
    pub fn find_packed(&self, keys: PackedKeys<'_>, groups: &mut Vec<u32>) {
        match keys.words {
            words if words < self.words => self.find(&keys.widened(self.words), groups),
            words if words > self.words => {
                let first = groups.len();
                let chunks = || keys.keys.chunks_exact(words.max(1));
                let narrow = chunks().flat_map(|key| &key[..self.words]).copied();
                self.find(&narrow.collect::<Vec<_>>(), groups);
                // No group has a null.
                for (group, key) in groups[first..].iter_mut().zip(chunks()) {
                    if key[self.words..].iter().any(|word| *word != 0) {
                        *group = EMPTY;
                    }
                }
            }
            _ => self.find(keys.keys, groups),
        }
    }

    fn find(&self, keys: &[u64], groups: &mut Vec<u32>) {
        match self.words {
            1 if !self.direct.is_empty() => self.find_direct::<1>(keys, groups),
            2 if !self.direct.is_empty() => self.find_direct::<2>(keys, groups),
            3 if !self.direct.is_empty() => self.find_direct::<3>(keys, groups),
            1 => self.find_each::<1>(keys, groups),
            2 => self.find_each::<2>(keys, groups),
            3 => self.find_each::<3>(keys, groups),
            4 => self.find_each::<4>(keys, groups),
            words => {
                let same = |id: u32, key: &[u64]| self.key(id as usize) == key;
                let find = |key: &[u64]| match self.slots.len() {
                    0 => EMPTY,
                    _ => (self.slots.find(hash(key), |id| same(id, key))).unwrap_or(EMPTY),
                };
                groups.extend(keys.chunks_exact(words.max(1)).map(find));
            }
        }
    }

    fn find_direct<const WORDS: usize>(&self, keys: &[u64], groups: &mut Vec<u32>) {
        let (keys, _) = keys.as_chunks::<WORDS>();
        let address = self.direct.address();
        let has_slots = self.slots.len() > 0;
        groups.extend(keys.iter().map(|key| match address.cell(key) {
            Some(cell) => self.direct.get(cell),
            None if has_slots => self.find_array(hash(key), key),
            None => EMPTY,
        }));
    }

    /// [`GroupTable::find`], which has slots fetched for many keys at once, then the keys of their
    /// groups, before it looks.
    fn find_each<const WORDS: usize>(&self, keys: &[u64], groups: &mut Vec<u32>) {
        let (keys, _) = keys.as_chunks::<WORDS>();
        let (known, _) = self.keys.as_chunks::<WORDS>();
        if self.slots.len() == 0 {
            groups.resize(groups.len() + keys.len(), EMPTY);
            return;
        }
        for keys in keys.chunks(ASSIGNED) {
            let near = self.slots.near(keys.iter().map(|key| hash(key)));
            let mut found = [None; ASSIGNED];
            for ((key, near), found) in keys.iter().zip(&near).zip(&mut found) {
                *found = match near.group() {
                    _ if near.is_empty() => Some(EMPTY),
                    Some(id) if known.get(id as usize) == Some(key) => Some(id),
                    _ => None,
                };
            }
            for ((key, near), found) in keys.iter().zip(near).zip(found) {
                groups.push(found.unwrap_or_else(|| self.find_array(near.hash, key)));
            }
        }
    }

    fn find_array<const WORDS: usize>(&self, hash: u64, key: &[u64; WORDS]) -> u32 {
        let (known, _) = self.keys.as_chunks::<WORDS>();
        let same = |id: u32| known.get(id as usize) == Some(key);
        self.slots.find(hash, same).unwrap_or(EMPTY)
    }
}
