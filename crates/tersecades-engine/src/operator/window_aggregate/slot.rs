//! Groups that are told apart by more than their key: each open window of a key has a slot.
//!
//! All slots lie in one pane, whose group ids they are. Slots of closed windows stay until there
//! are more of them than open ones; then the pane is written anew.

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};

use crate::aggregate::fold_column::FoldColumn;
use crate::frame::Frame;
use crate::runtime::state::{StateReader, StateWriter};

use super::pane::{NO_GROUP, Pane};
use super::state::Shared;
use super::table::GroupTable;

/// Fewer slots than this are not worth tidying.
const KEPT_SLOTS_MAX: usize = 1_024;

/// Slots whose folds are copied at once.
const SLOTS_COPIED: usize = 4_096;

/// The slots of one state.
#[derive(Debug)]
pub struct Slots {
    /// Groups by slot; several may have one key.
    pane: Pane,
    /// Key ids by key.
    keys: GroupTable,
    /// The slots of each key id, of which the open ones matter.
    key_of: Vec<u32>,
}

impl Slots {
    /// No slot.
    pub(super) fn new(shared: &Shared) -> Self {
        Slots {
            pane: Pane::new(&shared.plan),
            keys: GroupTable::new(&shared.plan.keys),
            key_of: Vec::new(),
        }
    }

    /// Slots handed out.
    pub(super) fn len(&self) -> usize {
        self.key_of.len()
    }

    /// Key ids handed out.
    pub(super) fn key_count(&self) -> usize {
        self.keys.group_count().max(1)
    }

    /// The key id of `slot`.
    pub(super) fn key_of(&self, slot: u32) -> usize {
        self.key_of[slot as usize] as usize
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        self.pane.byte_size() + self.keys.byte_size() + self.key_of.capacity() * size_of::<u32>()
    }

    /// Whether so many slots are closed that [`Slots::replace`] should write the open ones anew.
    pub(super) fn is_untidy(&self, open: usize) -> bool {
        self.len() > KEPT_SLOTS_MAX && self.len() > 2 * open
    }

    /// The key id of each selected row.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub(super) fn read_keys(
        &mut self,
        shared: &mut Shared,
        frame: &Frame,
        ids: &mut Vec<u32>,
        work: &mut Work,
    ) -> Result<()> {
        ids.clear();
        let layout = &shared.plan.keys;
        if layout.columns.is_empty() {
            ids.resize(frame.selection.count(), 0);
            return Ok(());
        }
        let packer = &mut shared.scratch.packer;
        packer.pack(layout, frame, &frame.selection, work)?;
        let rows = frame.selection.count();
        self.keys.cover(layout, layout.spans(frame), rows);
        self.keys.assign_packed(packer.keys(), ids);
        Ok(())
    }

    /// A new slot for the key `key_id`.
    pub(super) fn open(&mut self, key_id: u32) -> u32 {
        let words: &[u64] = match self.keys.group_count() {
            0 => &[],
            _ => self.keys.key(key_id as usize),
        };
        self.key_of.push(key_id);
        self.pane.groups.push(words)
    }

    /// Adds the selected rows of `frame`, row `i` to slot `ids[i]`.
    ///
    /// # Errors
    /// What reading arguments says.
    pub(super) fn add(
        &mut self,
        shared: &mut Shared,
        (frame, rows_before): (&Frame, u64),
        ids: &[u32],
        work: &mut Work,
    ) -> Result<()> {
        shared.scratch.set_ids(ids);
        self.pane.grow(self.key_of.len());
        let rows = (frame, &frame.selection, rows_before);
        let scratch = (&mut shared.scratch, work);
        self.pane.add_assigned(&shared.plan, rows, scratch)
    }

    /// The groups of some slots: of each of `parts` the slot becomes part of the group.
    ///
    /// # Cost
    /// By the slots of `parts`; with collections, by all slots.
    pub(super) fn extract(&self, shared: &mut Shared, parts: &[(u32, u32)]) -> Pane {
        let mut extracted = shared.take_pane();
        let groups = parts.iter().map(|(_, group)| *group as usize + 1);
        let groups = groups.max().unwrap_or(0);
        let mut first = vec![0; groups];
        for (slot, group) in parts.iter().rev() {
            first[*group as usize] = *slot as usize;
        }
        for slot in first {
            extracted.groups.push(self.pane.groups.key(slot));
        }
        for parts in parts.chunks(SLOTS_COPIED) {
            let (slots, targets): (Vec<u32>, Vec<u32>) = parts.iter().copied().unzip();
            let rows = slots.iter().map(|slot| self.pane.rows[*slot as usize]);
            let rows: Vec<u64> = rows.collect();
            let folds = self.pane.folds.iter().map(|folds| folds.select(&slots));
            let folds: Vec<FoldColumn> = folds.collect();
            extracted.merge_folds((&rows, &folds), &targets, groups);
        }
        if !self.pane.collections.is_empty() {
            let mut targets = vec![NO_GROUP; self.len()];
            for (slot, group) in parts {
                targets[*slot as usize] = *group;
            }
            let collections = self.pane.collections.iter();
            for (own, theirs) in extracted.collections.iter_mut().zip(collections) {
                own.merge(&**theirs, &targets);
            }
        }
        extracted
    }

    /// Keeps only some slots: slot `i` becomes part of slot `targets[i]`, or of none.
    pub(super) fn replace(&mut self, shared: &mut Shared, targets: &[u32]) {
        let parts = (0..).zip(targets.iter().copied());
        let parts: Vec<_> = parts.filter(|(_, target)| *target != NO_GROUP).collect();
        let kept = self.extract(shared, &parts);
        let old = std::mem::replace(&mut self.pane, kept);
        shared.put_pane(old);
        self.index(shared);
    }

    /// Gives every key of the pane an id.
    fn index(&mut self, shared: &Shared) {
        self.keys = GroupTable::new(&shared.plan.keys);
        self.key_of.clear();
        let one_key = shared.plan.keys.columns.is_empty();
        for slot in 0..self.pane.groups.group_count() {
            let key = self.pane.groups.key(slot);
            self.key_of.push(match one_key {
                true => 0,
                false => self.keys.assign_one(key),
            });
        }
    }

    /// Writes all slots.
    pub(super) fn snapshot(&self, out: &mut StateWriter) {
        self.pane.snapshot(out);
    }

    /// Reads what [`Slots::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit the plan.
    pub(super) fn restore(&mut self, shared: &Shared, from: &mut StateReader<'_>) -> Result<()> {
        self.pane = Pane::restore_slots(&shared.plan, from)?;
        self.index(shared);
        Ok(())
    }
}

/// Adds `slots` to those of `touched`, where repeats stay few beside `count`, the slots there are.
pub(super) fn touch(touched: &mut Vec<u32>, slots: &[u32], count: usize) {
    for slot in slots {
        if touched.last() != Some(slot) {
            touched.push(*slot);
        }
    }
    // Results may not come for long, however often rows come to the same slots.
    if touched.len() > 2 * count {
        touched.sort_unstable();
        touched.dedup();
    }
}

/// Says that a snapshot names a slot that is not there.
pub(super) fn no_such_slot() -> Error {
    Error::corrupt("a snapshot names a window that it does not hold")
}
