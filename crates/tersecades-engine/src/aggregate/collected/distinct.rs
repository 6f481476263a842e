//! Each different value of each group once: a hash table of group and value.

use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;

use super::Rows;
use crate::operator::window_aggregate::pane::NO_GROUP;
use crate::operator::window_aggregate::table::GroupTable;
use crate::runtime::state::{StateReader, StateWriter};

/// The different values of one argument.
#[derive(Debug, Clone)]
pub struct Distinct {
    physical: Physical,
    /// Keys are the group, then the value: in one word where both fit.
    seen: GroupTable,
    counts: Vec<u64>,
}

/// Words of a key.
fn words(physical: Physical) -> usize {
    match physical {
        Physical::Text | Physical::Integer { bytes: 1..=4, .. } => 1,
        Physical::Wide => 3,
        _ => 2,
    }
}

impl Distinct {
    /// No value of `physical`.
    pub(super) fn new(physical: Physical) -> Self {
        Distinct {
            physical,
            seen: GroupTable::of_words(words(physical)),
            counts: Vec::new(),
        }
    }

    pub(super) fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.counts.clear();
    }

    /// Adds values that are not null; where rows have no ids, all go to one group.
    pub(super) fn add(&mut self, rows: Rows<'_>, values: &Values) {
        for index in (0..values.len()).filter(|index| values.is_valid(*index)) {
            let value = values.ordered(index);
            self.insert(rows.id(index), value as u128);
        }
    }

    fn insert(&mut self, id: u32, value: u128) {
        let known = self.seen.group_count();
        let id_word = u64::from(id);
        match words(self.physical) {
            1 => self.seen.assign_one(&[id_word << 32 | value as u64]),
            2 => self.seen.assign_one(&[id_word, value as u64]),
            _ => self
                .seen
                .assign_one(&[id_word, value as u64, (value >> 64) as u64]),
        };
        if self.seen.group_count() > known {
            self.counts[id as usize] += 1;
        }
    }

    /// Calls `visit` with group and value of every key of `words`.
    fn for_each(&self, words: &[u64], mut visit: impl FnMut(u32, u128)) {
        for key in words.chunks_exact(self::words(self.physical)) {
            match *key {
                [both] => visit((both >> 32) as u32, u128::from(both as u32)),
                [id, value] => visit(id as u32, u128::from(value)),
                [id, low, high] => visit(id as u32, u128::from(low) | u128::from(high) << 64),
                _ => {}
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Distinct, targets: &[u32]) {
        other.for_each(other.seen.keys(), |id, value| {
            let target = targets[id as usize];
            if target != NO_GROUP {
                self.insert(target, value);
            }
        });
    }

    /// The number of different values of group `id`.
    pub(super) fn count(&self, id: u32) -> Value {
        Value::from(self.counts.get(id as usize).copied().unwrap_or(0))
    }

    pub(super) fn byte_size(&self) -> usize {
        self.seen.byte_size() + self.counts.capacity() * size_of::<u64>()
    }

    pub(super) fn snapshot(&self, out: &mut StateWriter) {
        out.u64(self.seen.keys().len() as u64);
        self.seen.keys().iter().for_each(|word| out.u64(*word));
    }

    pub(super) fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        self.grow(groups);
        let read: Result<Vec<u64>> = (0..from.count()?).map(|_| from.u64()).collect();
        let mut pairs = Vec::new();
        self.for_each(&read?, |id, value| pairs.push((id, value)));
        for (id, value) in pairs {
            if id as usize >= groups {
                return Err(Error::corrupt("a value belongs to no group"));
            }
            self.insert(id, value);
        }
        Ok(())
    }
}
