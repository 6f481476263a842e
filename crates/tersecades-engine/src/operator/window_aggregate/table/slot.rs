//! Where hashes lead: slots with ids of groups, and bits of the hashes where ids leave room.
//!
//! ```text
//! hash  tag: the high bits ▏ … ▏ home: as many low bits as tell the slots
//! slot  tag ▏ id, one bit less than home has
//! ```
//! Where the tag of a slot differs, its group has another key, which need not be looked at.

use super::super::direct::EMPTY;
use super::ASSIGNED;

/// Fewest slots, so that an id has a bit.
const SLOTS_MIN: usize = 32;

/// Slots that the caches next to a core hold with the keys of their groups.
pub(super) const SLOTS_AT_HAND: usize = 1 << 14;

/// An open-addressing table of fewer than half as many groups as slots.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    slots: Vec<u32>,
}

/// The first slot that a key's group may be in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near {
    pub(super) hash: u64,
    slot: u32,
    /// What is left of the slot without the tag of the key: an id, if it is no greater than
    /// `id_max`.
    rest: u32,
    id_max: u32,
}

impl Near {
    /// The group there, if it may be that of the key.
    pub(super) fn group(&self) -> Option<u32> {
        (self.rest <= self.id_max).then_some(self.rest)
    }

    /// Whether no group has the key.
    pub(super) fn is_empty(&self) -> bool {
        self.slot == EMPTY
    }
}

impl Slots {
    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    /// Forgets all groups, keeps the slots.
    pub(super) fn forget(&mut self) {
        self.slots.fill(EMPTY);
    }

    /// Forgets all groups and slots.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Whether there are slots for one group more than `groups`: the greatest id is left out, as
    /// with a tag of nothing but ones it would be [`EMPTY`].
    pub(super) fn has_room(&self, groups: usize) -> bool {
        (groups + 1) * 2 < self.slots.len()
    }

    /// Makes empty slots for twice as many groups, for four times as many where they are few.
    pub(super) fn make_room(&mut self, groups: usize) {
        let room = if groups < SLOTS_AT_HAND { 2 } else { 1 };
        let capacity = ((groups + 1) * 2 + 1).next_power_of_two().max(SLOTS_MIN) * room;
        // What is there need not be moved.
        self.slots = Vec::new();
        self.slots.resize(capacity, EMPTY);
    }

    /// The bits of a slot that ids have.
    fn id_max(&self) -> u32 {
        // All of them for 2^33 slots.
        ((self.slots.len() / 2) as u32).wrapping_sub(1)
    }

    fn tag(&self, hash: u64) -> u32 {
        (hash >> u32::BITS) as u32 & !self.id_max()
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The first slots of at most [`ASSIGNED`] keys, all fetched at once.
    pub(super) fn near(&self, hashes: impl Iterator<Item = u64>) -> [Near; ASSIGNED] {
        let id_max = self.id_max();
        let empty = Near {
            hash: 0,
            slot: EMPTY,
            rest: EMPTY,
            id_max,
        };
        let mut near = [empty; ASSIGNED];
        for (near, hash) in near.iter_mut().zip(hashes) {
            let slot = self.slots[self.home(hash)];
            let rest = slot ^ self.tag(hash);
            *near = Near {
                hash,
                slot,
                rest,
                id_max,
            };
        }
        near
    }

    /// The group whose key is the `same`, or the slot that it would go to.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let (tag, id_max) = (self.tag(hash), self.id_max());
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return Err(at);
            }
            let id = slot ^ tag;
            if id <= id_max && same(id) {
                return Ok(id);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Puts a group into an empty slot.
    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, hash: u64, id: u32) {
        self.slots[at] = self.tag(hash) | id;
    }

    /// Adds the groups from `first` on, at most [`ASSIGNED`], but for those without a hash; none is
    /// there.
    pub(super) fn add(&mut self, first: u32, hashes: impl Iterator<Item = Option<u64>>) {
        let mut homes = [(0, 0, false); ASSIGNED];
        let mut count = 0;
        for (id, hash) in (first..).zip(hashes) {
            if let Some(hash) = hash {
                let home = self.home(hash);
                homes[count] = (home, self.tag(hash) | id, self.slots[home] != EMPTY);
                count += 1;
            }
        }
        // All of them are fetched by then.
        for (home, slot, is_taken) in &homes[..count] {
            let mut at = *home + usize::from(*is_taken);
            loop {
                at &= self.slots.len() - 1;
                if self.slots[at] == EMPTY {
                    break;
                }
                at += 1;
            }
            self.slots[at] = *slot;
        }
    }
}
