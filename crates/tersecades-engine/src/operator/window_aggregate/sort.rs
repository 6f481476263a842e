//! Putting the groups of a window in key order, by the cheapest form of the key that sorts right.
//!
//! Few texts: each group's rank is its position in an array, marked and read out in order.
//! Integers by direct address: the cells, in turn. Everything else: by the numbers that 64 bits of
//! the keys at a time make.

use std::cmp::Ordering;

use tersecades_columnar::dictionary::Ranks;
use tersecades_columnar::kernels::kernels;

use super::direct::EMPTY;
use super::keys::KeyLayout;
use super::pane::Pane;
use super::part_number::KeyParts;
use super::position::{Positions, ranks_of};
use super::table::GroupTable;

/// Scratch memory for sorting groups.
#[derive(Debug, Default)]
pub struct Sorter {
    order: Vec<u32>,
    numbers: Vec<(u64, u32)>,
    moved: Vec<(u64, u32)>,
    positions: Vec<u32>,
    marks: Vec<u64>,
    parts: KeyParts,
}

impl Sorter {
    /// Group ids of `pane` in key order, nulls last; no two groups have one key.
    pub fn sort(&mut self, keys: &KeyLayout, pane: &Pane) -> &mut [u32] {
        self.sort_groups(keys, (&pane.groups, pane.len()), true)
    }

    /// As [`Sorter::sort`], where several groups may have one key.
    pub fn sort_slots(&mut self, keys: &KeyLayout, pane: &Pane) -> &mut [u32] {
        self.sort_groups(keys, (&pane.groups, pane.len()), false)
    }

    /// As [`Sorter::sort`], of groups that are in no pane.
    pub fn sort_table(&mut self, keys: &KeyLayout, groups: &GroupTable) -> &mut [u32] {
        self.sort_groups(keys, (groups, groups.group_count()), true)
    }

    fn sort_groups(
        &mut self,
        keys: &KeyLayout,
        groups: (&GroupTable, usize),
        unique: bool,
    ) -> &mut [u32] {
        self.order.clear();
        if keys.columns.is_empty() {
            self.order.extend(0..groups.1 as u32);
            return &mut self.order;
        }
        let ranks = ranks_of(keys);
        // An array has a position for each key, not for each group.
        let sorted =
            unique && (self.read_cells(keys, groups) || self.sort_positions(keys, groups, &ranks));
        if !sorted {
            self.sort_parts(keys, groups, &ranks);
        }
        &mut self.order
    }

    /// Integers that all have cells, which lie in the order of the keys.
    fn read_cells(&mut self, keys: &KeyLayout, (groups, count): (&GroupTable, usize)) -> bool {
        if keys.columns.iter().any(|column| column.is_text()) {
            return false;
        }
        let cells = groups.cells().iter();
        self.order.extend(cells.filter(|id| **id != EMPTY));
        let all = self.order.len() == count;
        if !all {
            self.order.clear();
        }
        all
    }

    /// One or two text columns with few texts.
    fn sort_positions(
        &mut self,
        keys: &KeyLayout,
        (groups, of): (&GroupTable, usize),
        ranks: &[Option<Ranks>],
    ) -> bool {
        let Some(positions) = Positions::of(keys, ranks, of) else {
            return false;
        };
        let count = positions.count();
        self.marks.clear();
        self.marks.resize(count.div_ceil(64), 0);
        // What lies at a position without a mark is left over and never read.
        self.positions.resize(self.positions.len().max(count), 0);
        positions.list(keys, groups.keys(), &mut self.order);
        for (id, at) in self.order.drain(..).enumerate() {
            self.marks[at as usize / 64] |= 1 << (at % 64);
            self.positions[at as usize] = id as u32;
        }
        (kernels().bitmap.to_rows)(&self.marks, 0, &mut self.order);
        for at in &mut self.order {
            *at = self.positions[*at as usize];
        }
        true
    }

    /// Any keys: by the last 64 bits, then by those before, leaving equal ones as they are.
    fn sort_parts(
        &mut self,
        keys: &KeyLayout,
        (groups, of): (&GroupTable, usize),
        ranks: &[Option<Ranks>],
    ) {
        self.parts.split(keys, groups.packed());
        let count = self.parts.count();
        let key = |id: u32| groups.key(id as usize);
        self.numbers.clear();
        self.numbers.extend((0..of as u32).map(|id| (0, id)));
        if count > 1 && self.numbers.len() < RADIX_MIN {
            let by_key = |a: &(u64, u32), b: &(u64, u32)| compare(keys, ranks, key(a.1), key(b.1));
            self.numbers.sort_unstable_by(by_key);
        } else {
            for part in (0..count).rev() {
                for (number, id) in &mut self.numbers {
                    *number = self.parts.number(part, (keys, ranks), key(*id));
                }
                sort_numbers(&mut self.numbers, &mut self.moved);
            }
        }
        self.order.extend(self.numbers.iter().map(|(_, id)| *id));
    }
}

/// The order of two keys, nulls last.
fn compare(keys: &KeyLayout, ranks: &[Option<Ranks>], a: &[u64], b: &[u64]) -> Ordering {
    let column = |index: usize| {
        let ranks = ranks[index].as_ref().map(|ranks| &*ranks.rank_of);
        let ordered = |key| keys.ordered(key, index, ranks);
        ordered(a).cmp(&ordered(b))
    };
    let columns = 0..keys.columns.len();
    columns.map(column).fold(Ordering::Equal, Ordering::then)
}

/// Fewer numbers than this are compared with each other.
const RADIX_MIN: usize = 256;

/// Bits of a number that one pass sorts by, where numbers are few and where they are many.
const DIGIT_BITS: [u32; 2] = [8, 11];

/// From how many numbers on the counts of a wide digit are worth it.
const WIDE_FROM: usize = 2_048;

/// Sorts by number: digit by digit from the lowest, each of which starts with a bit that is not the
/// same in all. Equal ones stay as they are where there are [`RADIX_MIN`].
fn sort_numbers(numbers: &mut Vec<(u64, u32)>, moved: &mut Vec<(u64, u32)>) {
    match numbers.len() {
        0..RADIX_MIN => numbers.sort_unstable(),
        RADIX_MIN..WIDE_FROM => sort_digits(numbers, moved, &mut [0; 1 << DIGIT_BITS[0]]),
        _ => sort_digits(numbers, moved, &mut [0; 1 << DIGIT_BITS[1]]),
    }
}

/// [`sort_numbers`] by digits of as many values as there are `starts`, a power of two.
fn sort_digits(numbers: &mut Vec<(u64, u32)>, moved: &mut Vec<(u64, u32)>, starts: &mut [u32]) {
    let (first, mask) = (numbers[0].0, starts.len() as u64 - 1);
    let differ = |bits, (number, _): &(u64, u32)| bits | (number ^ first);
    let mut differing = numbers.iter().fold(0, differ);
    moved.resize(numbers.len(), (0, 0));
    while differing != 0 {
        let shift = differing.trailing_zeros();
        differing &= !(mask << shift);
        let digit = |number: u64| (number >> shift & mask) as usize;
        starts.fill(0);
        for (number, _) in &*numbers {
            starts[digit(*number)] += 1;
        }
        let mut start = 0;
        for count in &mut *starts {
            start += std::mem::replace(count, start);
        }
        for entry in &*numbers {
            let slot = &mut starts[digit(entry.0)];
            moved[*slot as usize] = *entry;
            *slot += 1;
        }
        std::mem::swap(numbers, moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_out_as_comparison_sorts_them() {
        let mut seed = 5u64;
        for (count, mask) in [
            (0, 0),
            (1, 9),
            (255, 0xff),
            (1_000, 0x00ff_00ff_0000_1fff),
            (3_000, 0x8000_03ff_0000_0c01),
            (3_000, u64::MAX),
            (2_500, 0),
        ] {
            let mut numbers: Vec<(u64, u32)> = (0..count)
                .map(|id| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ((seed >> 7 ^ seed << 40) & mask, id)
                })
                .collect();
            let mut expected = numbers.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_numbers(&mut numbers, &mut Vec::new());
            let keys = |pairs: &[(u64, u32)]| pairs.iter().map(|(key, _)| *key).collect::<Vec<_>>();
            assert_eq!(keys(&numbers), keys(&expected));
        }
    }
}
