//! From packed keys to dense group ids: our own open-addressing table.
//!
//! Keys lie in one arena in order of arrival; slots hold group ids (slot.rs). Where the key is one
//! or two columns of few texts or integers, cells by direct address answer most look-ups without
//! hashing. A run may do without all that and find groups through the map of the standard library.
//! Keys lack the words for nulls until a key comes that needs them.

mod address;
mod find;
mod slot;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::runtime::state::StateWriter;

use self::slot::{SLOTS_AT_HAND, Slots};
use super::direct::{AXES, DirectCells, EMPTY, Span};
use super::keys::KeyLayout;
use super::packer::PackedKeys;

/// Rows that are looked through at once for new groups.
const ASSIGNED: usize = 32;

/// Group ids by packed key.
#[derive(Debug, Clone, Default)]
pub struct GroupTable {
    /// Words of each of the keys.
    words: usize,
    /// Words of a key without those for nulls, and with them.
    words_allowed: [usize; 2],
    keys: Vec<u64>,
    len: usize,
    slots: Slots,
    direct: DirectCells,
    /// The standard library's map, where it is to do the work.
    standard: Option<HashMap<Box<[u64]>, u32>>,
}

impl GroupTable {
    /// An empty table for keys of `layout`.
    pub fn new(layout: &KeyLayout) -> Self {
        let words = match layout.standard_map {
            true => layout.words,
            false => layout.words_without_nulls(),
        };
        GroupTable {
            standard: layout.standard_map.then(HashMap::new),
            words_allowed: [words, layout.words],
            ..GroupTable::of_words(words)
        }
    }

    /// An empty table for keys of `words` words.
    pub fn of_words(words: usize) -> Self {
        GroupTable {
            words,
            words_allowed: [words; 2],
            ..GroupTable::default()
        }
    }

    /// Number of groups.
    pub fn group_count(&self) -> usize {
        self.len
    }

    /// The packed key of group `id`.
    pub fn key(&self, id: usize) -> &[u64] {
        &self.keys[id * self.words..(id + 1) * self.words]
    }

    /// The words of all packed keys, in id order.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// All packed keys, in id order.
    pub fn packed(&self) -> PackedKeys<'_> {
        PackedKeys {
            keys: &self.keys,
            words: self.words,
        }
    }

    /// Writes all keys, of as many words as the layout has.
    pub fn snapshot(&self, out: &mut StateWriter) {
        let [_, wide] = self.words_allowed;
        out.u64((self.len * wide) as u64);
        for id in 0..self.len {
            self.key(id).iter().for_each(|word| out.u64(*word));
            (self.words..wide).for_each(|_| out.u64(0));
        }
    }

    /// The groups by direct address, in the order of their parts; empty without such cells.
    pub fn cells(&self) -> &[u32] {
        self.direct.cells()
    }

    /// Bytes of memory held.
    pub fn byte_size(&self) -> usize {
        self.slots.byte_size() + self.direct.byte_size() + self.keys.capacity() * size_of::<u64>()
    }

    /// Forgets all groups, keeps the memory.
    pub fn clear(&mut self) {
        self.direct.clear(&self.keys, self.words);
        self.slots.forget();
        self.keys.clear();
        self.len = 0;
        [self.words, _] = self.words_allowed;
        if let Some(standard) = &mut self.standard {
            standard.clear();
        }
    }

    /// Makes cells by direct address for keys whose columns span `spans`, of which `rows` are at
    /// hand; whether every such key without a null has one.
    pub fn cover(&mut self, layout: &KeyLayout, spans: Option<[Span; AXES]>, rows: usize) -> bool {
        let Some(spans) = spans.filter(|_| self.standard.is_none()) else {
            return false;
        };
        let known = PackedKeys {
            keys: &self.keys,
            words: self.words,
        };
        self.direct
            .cover(layout, spans, (known, self.len.max(rows)))
    }

    /// Whether keys have cells.
    pub fn has_cells(&self) -> bool {
        !self.direct.is_empty()
    }

    /// Gives up all cells.
    pub fn uncover(&mut self) {
        if !self.direct.is_empty() {
            self.direct = DirectCells::default();
            self.rehash();
        }
    }

    /// Makes cells for the keys that have them in `other`.
    pub fn cover_as(&mut self, layout: &KeyLayout, other: &GroupTable) {
        let spans = Some(other.direct.spans()).filter(|_| !other.direct.is_empty());
        self.cover(layout, spans, other.len);
    }

    /// Makes keys as wide as `words`, those that are there by zeros.
    fn widen(&mut self, words: usize) {
        if words > self.words {
            self.keys = self.packed().widened(words);
            self.words = words;
            // Hashes are of whole keys: the next look-up puts groups into slots anew.
            self.slots.clear();
        }
    }

    /// As [`GroupTable::assign`], with or without the words for nulls.
    pub fn assign_packed(&mut self, keys: PackedKeys<'_>, ids: &mut Vec<u32>) {
        self.widen(keys.words);
        match keys.words < self.words {
            true => self.assign(&keys.widened(self.words), ids),
            false => self.assign(keys.keys, ids),
        }
    }

    /// Appends to `ids` the group of each of the packed `keys`, which are as wide as those here,
    /// new ones included.
    pub fn assign(&mut self, keys: &[u64], ids: &mut Vec<u32>) {
        if self.standard.is_some() {
            let keys = keys.chunks_exact(self.words.max(1));
            return ids.extend(keys.map(|key| self.assign_standard(key)));
        }
        match self.words {
            1 if self.direct.is_empty() => self.assign_each::<1>(keys, ids),
            1 => self.assign_direct::<1>(keys, ids),
            2 if self.direct.is_empty() => self.assign_each::<2>(keys, ids),
            2 => self.assign_direct::<2>(keys, ids),
            3 if self.direct.is_empty() => self.assign_each::<3>(keys, ids),
            3 => self.assign_direct::<3>(keys, ids),
            4 => self.assign_each::<4>(keys, ids),
            5 => self.assign_each::<5>(keys, ids),
            6 => self.assign_each::<6>(keys, ids),
            7 => self.assign_each::<7>(keys, ids),
            8 => self.assign_each::<8>(keys, ids),
            words => {
                let keys = keys.chunks_exact(words.max(1));
                ids.extend(keys.map(|key| self.assign_hashed(key)));
            }
        }
    }

    fn assign_each<const WORDS: usize>(&mut self, keys: &[u64], ids: &mut Vec<u32>) {
        let (keys, _) = keys.as_chunks::<WORDS>();
        for keys in keys.chunks(ASSIGNED) {
            match self.slots.len() {
                0..SLOTS_AT_HAND => ids.extend(keys.iter().map(|key| self.assign_array(key))),
                _ => self.assign_far(keys, ids),
            }
        }
    }

    /// As [`GroupTable::assign_each`] for at most [`ASSIGNED`] keys, where slots are far from the
    /// core: it has them all fetched at once, then the keys of their groups, before it looks.
    fn assign_far<const WORDS: usize>(&mut self, keys: &[[u64; WORDS]], ids: &mut Vec<u32>) {
        let near = self.slots.near(keys.iter().map(|key| hash(key)));
        let (known, _) = self.keys.as_chunks::<WORDS>();
        let mut same = [None; ASSIGNED];
        for ((key, near), same) in keys.iter().zip(&near).zip(&mut same) {
            *same = near
                .group()
                .filter(|id| known.get(*id as usize) == Some(key));
        }
        for ((key, near), same) in keys.iter().zip(near).zip(same) {
            ids.push(match same {
                Some(id) => id,
                None => self.find_or_push(near.hash, key, |known| known.first_chunk() == Some(key)),
            });
        }
    }

    /// [`GroupTable::assign`] by direct address.
    ///
    /// Whether a key is new is as good as random where groups are many, so nothing branches on it:
    /// every key is written to where the next group goes, and stays there if it is new.
    fn assign_direct<const WORDS: usize>(&mut self, keys: &[u64], ids: &mut Vec<u32>) {
        let (keys, _) = keys.as_chunks::<WORDS>();
        let address = self.direct.address();
        self.keys.resize((self.len + keys.len()) * WORDS, 0);
        for (index, key) in keys.iter().enumerate() {
            let Some(cell) = address.cell(key) else {
                self.keys.truncate(self.len * WORDS);
                for key in &keys[index..] {
                    ids.push(self.assign_fitting(key));
                }
                return;
            };
            let next = self.len;
            let known = self.direct.get(cell);
            let new = known == EMPTY;
            let id = if new { next as u32 } else { known };
            self.keys[next * WORDS..][..WORDS].copy_from_slice(key);
            self.direct.set(cell, id);
            self.len += usize::from(new);
            ids.push(id);
        }
        self.keys.truncate(self.len * WORDS);
    }

    /// The group of one packed key, with or without the words for nulls, new if need be.
    pub fn assign_one(&mut self, key: &[u64]) -> u32 {
        let key = self.fitting(key);
        self.assign_fitting(&key)
    }

    /// `key` as wide as those here, which are made as wide as it is.
    fn fitting<'k>(&mut self, key: &'k [u64]) -> Cow<'k, [u64]> {
        self.widen(key.len());
        let mut key = Cow::Borrowed(key);
        if key.len() < self.words {
            key.to_mut().resize(self.words, 0);
        }
        key
    }

    fn assign_fitting(&mut self, key: &[u64]) -> u32 {
        if self.standard.is_some() {
            return self.assign_standard(key);
        }
        let Some(cell) = self.direct.cell(key) else {
            return self.assign_hashed(key);
        };
        match self.direct.get(cell) {
            EMPTY => {
                let id = self.push_fitting(key);
                self.direct.set(cell, id);
                id
            }
            id => id,
        }
    }

    fn assign_standard(&mut self, key: &[u64]) -> u32 {
        let next = self.len as u32;
        let Some(standard) = &mut self.standard else {
            return next;
        };
        let id = *standard.entry(key.into()).or_insert(next);
        if id == next {
            self.push_fitting(key);
        }
        id
    }

    /// Appends a group that no look-up finds, of a key with or without the words for nulls.
    pub fn push(&mut self, key: &[u64]) -> u32 {
        let key = self.fitting(key);
        self.push_fitting(&key)
    }

    fn push_fitting(&mut self, key: &[u64]) -> u32 {
        self.keys.extend_from_slice(key);
        self.len += 1;
        (self.len - 1) as u32
    }

    fn assign_hashed(&mut self, key: &[u64]) -> u32 {
        match *key {
            [a] => self.assign_array(&[a]),
            [a, b] => self.assign_array(&[a, b]),
            [a, b, c] => self.assign_array(&[a, b, c]),
            [a, b, c, d] => self.assign_array(&[a, b, c, d]),
            _ => self.find_or_push(hash(key), key, |known| known == key),
        }
    }

    /// As [`GroupTable::assign_one`], for a table of [`GroupTable::of_words`] that covers nothing.
    #[inline]
    pub fn assign_array<const WORDS: usize>(&mut self, key: &[u64; WORDS]) -> u32 {
        // Of a length that is known to the compiler, words are compared without a call.
        self.find_or_push(hash(key), key, |known| known.first_chunk() == Some(key))
    }

    #[inline(always)]
    fn find_or_push(&mut self, hash: u64, key: &[u64], same: impl Fn(&[u64]) -> bool) -> u32 {
        if !self.slots.has_room(self.len) {
            self.rehash();
        }
        let words = self.words;
        let known = |id: u32| same(&self.keys[id as usize * words..][..words]);
        match self.slots.find(hash, known) {
            Ok(id) => id,
            Err(at) => {
                let id = self.push_fitting(key);
                self.slots.put(at, hash, id);
                id
            }
        }
    }

    /// Makes room for so many groups in an empty table.
    pub fn reserve(&mut self, groups: usize) {
        self.keys.reserve(groups * self.words);
        if self.direct.is_empty() {
            self.slots.make_room(groups);
        }
    }

    /// Makes slots for more groups; those with a cell need none.
    fn rehash(&mut self) {
        self.slots.make_room(self.len);
        let words = self.words;
        for first in (0..self.len).step_by(ASSIGNED) {
            let ids = first..self.len.min(first + ASSIGNED);
            let keys = self.keys[ids.start * words..ids.end * words].chunks_exact(words.max(1));
            let hashed = keys.map(|key| self.direct.cell(key).is_none().then(|| hash(key)));
            self.slots.add(ids.start as u32, hashed);
        }
    }
}

/// Multiply and fold, word by word.
///
/// Source: the mixing step of wyhash; the constants are odd numbers with balanced bits.
#[inline]
fn hash(key: &[u64]) -> u64 {
    const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
    const STEP: u64 = 0xD6E8_FEB8_6659_FD93;
    let mut state = SEED;
    for word in key {
        let product = u128::from(state ^ word) * u128::from(STEP);
        state = (product as u64) ^ ((product >> 64) as u64);
    }
    state ^ state >> 32
}

#[cfg(test)]
mod tests;
