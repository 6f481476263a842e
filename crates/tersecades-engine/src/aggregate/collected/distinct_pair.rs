//! Pairs of a group and a value, each once; many of them lie in several tables, by value, so that
//! several threads merge those of two panes.
//!
//! ```text
//! pane of a worker    │ table 0 │ table 1 │ table 2 │ …    one thread puts its table 0 into
//! pane of another     │ table 0 │ table 1 │ table 2 │ …    table 0, another its table 1 …
//! ```

use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;

use super::grouped_value::GroupedValues;
use super::target_of;
use crate::runtime::on_thread::on_threads;
use crate::runtime::state::{StateReader, StateWriter};

/// Tables of many pairs.
const TABLES: usize = 32;

/// Pairs that are many.
const MANY: usize = 1 << 16;

/// The pairs seen so far, and how many each group has.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    physical: Physical,
    /// One table, or so many that several threads work on them.
    tables: Vec<GroupedValues>,
    counts: Vec<u64>,
    threads: usize,
}

impl Pairs {
    /// No pair of `groups` groups with values of `physical`, on which so many threads may work.
    pub(super) fn new(physical: Physical, groups: usize, threads: usize) -> Self {
        Pairs {
            physical,
            tables: vec![GroupedValues::new(physical)],
            counts: vec![0; groups],
            threads,
        }
    }

    /// From here on so many threads may work on the pairs.
    pub(super) fn work_on(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Makes room for `groups` groups.
    pub(super) fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
    }

    pub(super) fn clear(&mut self) {
        self.tables.truncate(1);
        self.tables.iter_mut().for_each(GroupedValues::clear);
        self.counts.clear();
    }

    /// How many different values group `id` has.
    pub(super) fn count(&self, id: u32) -> u64 {
        self.counts.get(id as usize).copied().unwrap_or(0)
    }

    /// Group and value of every pair.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u128)> + '_ {
        self.tables.iter().flat_map(GroupedValues::pairs)
    }

    /// Puts a pair among those that are inserted by [`Pairs::settle`] at the latest.
    pub(super) fn put(&mut self, id: u32, value: u128) {
        let at = match self.tables.len() {
            1 => 0,
            _ => table_of(value),
        };
        if self.tables[at].put(id, value) {
            self.settle_one(at);
        }
    }

    fn settle_one(&mut self, at: usize) {
        for id in self.tables[at].settle() {
            self.counts[id as usize] += 1;
        }
    }

    /// Inserts the pairs put so far.
    pub(super) fn settle(&mut self) {
        (0..self.tables.len()).for_each(|at| self.settle_one(at));
        if let [table] = &self.tables[..]
            && self.threads > 1
            && table.len() >= MANY
        {
            self.split();
        }
    }

    /// Puts the pairs into many tables.
    fn split(&mut self) {
        let mut tables = vec![GroupedValues::new(self.physical); TABLES];
        for (id, value) in self.pairs() {
            let table = &mut tables[table_of(value)];
            if table.put(id, value) {
                table.settle().for_each(drop);
            }
        }
        for table in &mut tables {
            table.settle().for_each(drop);
        }
        self.tables = tables;
    }

    /// Adds the groups of `other`, group `id` to `targets[id]`.
    ///
    /// # Cost
    /// Of many pairs on both sides, each thread inserts its share.
    pub(super) fn merge(&mut self, other: &Pairs, targets: &[u32]) {
        if self.tables.len() == 1 || self.tables.len() != other.tables.len() {
            for (id, value) in other.pairs() {
                if let Some(target) = target_of(targets, id) {
                    self.put(target, value);
                }
            }
            return self.settle();
        }
        let both = self.tables.iter_mut().zip(&other.tables);
        let merged = on_threads(self.threads, both, |(own, theirs)| {
            let known = own.len();
            for (id, value) in theirs.pairs() {
                if let Some(target) = target_of(targets, id)
                    && own.put(target, value)
                {
                    own.settle().for_each(drop);
                }
            }
            own.settle().for_each(drop);
            Ok(known)
        });
        let known = merged.unwrap_or_default();
        assert_eq!(
            known.len(),
            self.tables.len(),
            "nothing that is inserted is an error"
        );
        for (table, known) in self.tables.iter().zip(known) {
            for (id, _) in table.pairs().skip(known) {
                self.counts[id as usize] += 1;
            }
        }
    }

    pub(super) fn byte_size(&self) -> usize {
        let tables: usize = self.tables.iter().map(GroupedValues::byte_size).sum();
        tables + self.counts.capacity() * size_of::<u64>()
    }

    pub(super) fn snapshot(&self, out: &mut StateWriter) {
        GroupedValues::snapshot_all(&self.tables, out);
    }

    /// Reads what was written for `groups` groups.
    ///
    /// # Errors
    /// `Corrupt` for pairs of other groups, or ones that repeat.
    pub(super) fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        *self = Pairs::new(self.physical, groups, self.threads);
        self.tables[0].restore(groups, from)?;
        for (id, _) in self.tables[0].pairs() {
            self.counts[id as usize] += 1;
        }
        self.settle();
        Ok(())
    }
}

/// Which of the tables a value lies in, whatever its group.
fn table_of(value: u128) -> usize {
    const STEP: u64 = 0xE703_7ED1_A0B4_28DB;
    let folded = value as u64 ^ (value >> 64) as u64;
    (folded.wrapping_mul(STEP) >> (64 - TABLES.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::operator::window_aggregate::pane::NO_GROUP;

    const GROUPS: u32 = 7;

    fn pairs_of(count: u64, salt: u64, threads: usize) -> (Pairs, BTreeSet<(u32, u128)>) {
        let mut pairs = Pairs::new(Physical::Wide, GROUPS as usize, threads);
        let mut known = BTreeSet::new();
        for at in 0..count {
            let mixed = (at * 3 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let value = u128::from(mixed % (count * 4)) << (at % 2 * 70);
            let id = (at % u64::from(GROUPS)) as u32;
            pairs.put(id, value);
            known.insert((id, value));
        }
        pairs.settle();
        (pairs, known)
    }

    fn check(pairs: &Pairs, known: &BTreeSet<(u32, u128)>) {
        let got: Vec<(u32, u128)> = pairs.pairs().collect();
        assert_eq!(got.len(), known.len(), "each pair is there once");
        assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), *known);
        for id in 0..GROUPS {
            let of_group = known.iter().filter(|(group, _)| *group == id).count();
            assert_eq!(pairs.count(id), of_group as u64, "group {id}");
        }
    }

    #[test]
    fn many_pairs_lie_in_many_tables_where_there_are_threads() {
        for (threads, tables) in [(1, 1), (2, TABLES)] {
            let (pairs, known) = pairs_of(MANY as u64 * 3, 0, threads);
            assert_eq!(pairs.tables.len(), tables);
            check(&pairs, &known);
        }
    }

    #[test]
    fn panes_are_merged_by_any_number_of_threads() {
        let (few, many) = (1_000, MANY as u64 * 2);
        let targets = [3, 0, NO_GROUP, 6, 5, 1, 2];
        for (own, theirs) in [(few, few), (few, many), (many, few), (many, many)] {
            for threads in [1, 2, 5] {
                let (mut merged, mut known) = pairs_of(own, 1, threads);
                let (other, more) = pairs_of(theirs, 2, threads);
                merged.merge(&other, &targets);
                let taken = more.iter().filter_map(|(id, value)| {
                    target_of(&targets, *id).map(|target| (target, *value))
                });
                known.extend(taken);
                check(&merged, &known);
            }
        }
    }

    #[test]
    fn many_tables_are_written_as_one_and_read_again() {
        let (pairs, known) = pairs_of(MANY as u64 * 2, 3, 4);
        let mut out = StateWriter::default();
        pairs.snapshot(&mut out);
        let bytes = out.seal();
        for threads in [1, 4] {
            let mut read = Pairs::new(Physical::Wide, 0, threads);
            let mut from = StateReader::open(&bytes).expect("sealed");
            read.restore(GROUPS as usize, &mut from)
                .expect("what was written");
            check(&read, &known);
        }
    }
}
