//! Pairs of a group and a value, each once, in a hash table; pairs have numbers in order of
//! arrival.

use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Physical;

use crate::operator::window_aggregate::table::GroupTable;
use crate::runtime::state::{StateReader, StateWriter};

/// Words of pairs that are inserted at once.
const PENDING_WORDS: usize = 1_024;

/// The pairs seen so far.
#[derive(Debug, Clone)]
pub(super) struct GroupedValues {
    /// Words of a key: the group, then the value, in one word where both fit.
    words: usize,
    table: GroupTable,
    /// Keys of pairs to come, and room for their numbers.
    pending: (Vec<u64>, Vec<u32>),
}

impl GroupedValues {
    /// No pair with values of `physical`.
    pub(super) fn new(physical: Physical) -> Self {
        let words = match physical {
            Physical::Text | Physical::Integer { bytes: 1..=4, .. } => 1,
            Physical::Wide => 3,
            _ => 2,
        };
        GroupedValues {
            words,
            table: GroupTable::of_words(words),
            pending: Default::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.pending.0.clear();
    }

    /// Number of pairs.
    pub(super) fn len(&self) -> usize {
        self.table.group_count()
    }

    /// The number of the pair, new if need be.
    pub(super) fn insert(&mut self, id: u32, value: u128) -> usize {
        let group = u64::from(id);
        let number = match self.words {
            1 => self.table.assign_array(&[group << 32 | value as u64]),
            2 => self.table.assign_array(&[group, value as u64]),
            _ => {
                let key = [group, value as u64, (value >> 64) as u64];
                self.table.assign_array(&key)
            }
        };
        number as usize
    }

    /// Puts the pair among those that [`GroupedValues::settle`] inserts; whether they are so many
    /// that it should.
    pub(super) fn put(&mut self, id: u32, value: u128) -> bool {
        let (group, value) = (u64::from(id), [value as u64, (value >> 64) as u64]);
        let (pending, _) = &mut self.pending;
        match self.words {
            1 => pending.push(group << 32 | value[0]),
            2 => pending.extend([group, value[0]]),
            _ => pending.extend([group, value[0], value[1]]),
        }
        pending.len() >= PENDING_WORDS
    }

    /// Inserts the pairs put so far; the groups of the new ones.
    pub(super) fn settle(&mut self) -> impl Iterator<Item = u32> + '_ {
        let known = self.table.keys().len();
        let (pending, numbers) = &mut self.pending;
        numbers.clear();
        self.table.assign(pending, numbers);
        pending.clear();
        pairs(&self.table.keys()[known..], self.words).map(|(id, _)| id)
    }

    /// Group and value of every pair, in order of their numbers.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u128)> + '_ {
        pairs(self.table.keys(), self.words)
    }

    /// The pairs' numbers with those of each group together, and where each group's end.
    pub(super) fn by_group(&self) -> (Vec<u32>, Vec<usize>) {
        let groups = self.pairs().map(|(id, _)| id as usize + 1).max();
        let mut next = vec![0usize; groups.unwrap_or(0) + 1];
        for (id, _) in self.pairs() {
            next[id as usize + 1] += 1;
        }
        for group in 1..next.len() {
            next[group] += next[group - 1];
        }
        let mut numbers = vec![0; self.len()];
        for (number, (id, _)) in self.pairs().enumerate() {
            let at = &mut next[id as usize];
            numbers[*at] = number as u32;
            *at += 1;
        }
        next.pop();
        (numbers, next)
    }

    pub(super) fn byte_size(&self) -> usize {
        let (pending, numbers) = &self.pending;
        let room = pending.capacity() * size_of::<u64>() + numbers.capacity() * size_of::<u32>();
        self.table.byte_size() + room
    }

    pub(super) fn snapshot(&self, out: &mut StateWriter) {
        GroupedValues::snapshot_all(std::slice::from_ref(self), out);
    }

    /// Writes the pairs of all of `tables`, which have none in common, as those of one.
    pub(super) fn snapshot_all(tables: &[GroupedValues], out: &mut StateWriter) {
        let words = tables.iter().map(|it| it.table.keys().len() as u64);
        out.u64(words.sum());
        let keys = tables.iter().flat_map(|it| it.table.keys());
        keys.for_each(|word| out.u64(*word));
    }

    /// Reads what was written for `groups` groups.
    ///
    /// # Errors
    /// `Corrupt` for pairs of other groups, or ones that repeat.
    pub(super) fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        let read: Result<Vec<u64>> = (0..from.count()?).map(|_| from.u64()).collect();
        let read = read?;
        for (id, value) in pairs(&read, self.words) {
            if id as usize >= groups {
                return Err(Error::corrupt("a value belongs to no group"));
            }
            self.insert(id, value);
        }
        match self.len() * self.words == read.len() {
            true => Ok(()),
            false => Err(Error::corrupt("a value of a group repeats")),
        }
    }
}

fn pairs(keys: &[u64], words: usize) -> impl Iterator<Item = (u32, u128)> + '_ {
    keys.chunks_exact(words).map(|key| match *key {
        [both] => ((both >> 32) as u32, u128::from(both as u32)),
        [id, value] => (id as u32, u128::from(value)),
        [id, low, high] => (id as u32, u128::from(low) | u128::from(high) << 64),
        _ => (0, 0),
    })
}
