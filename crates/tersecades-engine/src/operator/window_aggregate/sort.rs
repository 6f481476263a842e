//! Putting the groups of a window in key order, by the cheapest form of the key that sorts right.
//!
//! Few texts: each group's rank is its position in an array, marked and read out in order.
//! Integers by direct address: the cells, in turn. Everything else: by the number that the first 64
//! bits of the key make, then those of one number column by column.

use std::cmp::Ordering;

use tersecades_columnar::dictionary::Ranks;
use tersecades_columnar::kernels::kernels;

use super::direct::EMPTY;
use super::keys::KeyLayout;
use super::pane::Pane;
use super::position::{Positions, ranks_of};

/// Scratch memory for sorting groups.
#[derive(Debug, Default)]
pub struct Sorter {
    order: Vec<u32>,
    numbers: Vec<(u64, u32)>,
    moved: Vec<(u64, u32)>,
    positions: Vec<u32>,
    marks: Vec<u64>,
    columns: Vec<Vec<i128>>,
}

impl Sorter {
    /// Group ids of `pane` in key order, nulls last; no two groups have one key.
    pub fn sort(&mut self, keys: &KeyLayout, pane: &Pane) -> &mut [u32] {
        self.sort_groups(keys, pane, true)
    }

    /// As [`Sorter::sort`], where several groups may have one key.
    pub fn sort_slots(&mut self, keys: &KeyLayout, pane: &Pane) -> &mut [u32] {
        self.sort_groups(keys, pane, false)
    }

    fn sort_groups(&mut self, keys: &KeyLayout, pane: &Pane, unique: bool) -> &mut [u32] {
        self.order.clear();
        if keys.columns.is_empty() {
            self.order.extend(0..pane.len() as u32);
            return &mut self.order;
        }
        let ranks = ranks_of(keys);
        // An array has a position for each key, not for each group.
        let sorted =
            unique && (self.read_cells(keys, pane) || self.sort_positions(keys, pane, &ranks));
        if !sorted && !self.sort_numbers(keys, pane, &ranks) {
            self.sort_columns(keys, pane, &ranks);
        }
        &mut self.order
    }

    /// Integers that all have cells, which lie in the order of the keys.
    fn read_cells(&mut self, keys: &KeyLayout, pane: &Pane) -> bool {
        if keys.columns.iter().any(|column| column.is_text()) {
            return false;
        }
        let cells = pane.groups.cells().iter();
        self.order.extend(cells.filter(|id| **id != EMPTY));
        let all = self.order.len() == pane.len();
        if !all {
            self.order.clear();
        }
        all
    }

    /// One or two text columns with few texts.
    fn sort_positions(&mut self, keys: &KeyLayout, pane: &Pane, ranks: &[Option<Ranks>]) -> bool {
        let Some(positions) = Positions::of(keys, ranks, pane.len()) else {
            return false;
        };
        let count = positions.count();
        self.marks.clear();
        self.marks.resize(count.div_ceil(64), 0);
        // What lies at a position without a mark is left over and never read.
        self.positions.resize(self.positions.len().max(count), 0);
        positions.list(keys, pane.groups.keys(), &mut self.order);
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

    /// Keys that start with a column of at most 64 bits, and are mostly told apart by those.
    fn sort_numbers(&mut self, keys: &KeyLayout, pane: &Pane, ranks: &[Option<Ranks>]) -> bool {
        let Some(numbers) = Numbers::of(keys, ranks) else {
            return false;
        };
        self.numbers.clear();
        let mut whole = true;
        for id in 0..pane.len() {
            let (number, is_whole) = numbers.number(pane.groups.key(id));
            whole &= is_whole;
            self.numbers.push((number, id as u32));
        }
        sort_numbers(&mut self.numbers, &mut self.moved);
        if !whole {
            let runs = || self.numbers.chunk_by(|a, b| a.0 == b.0);
            let tied = runs().map(<[_]>::len).filter(|len| *len > 1);
            if tied.sum::<usize>() > pane.len() / TIED_PART {
                return false;
            }
            let key = |id: u32| pane.groups.key(id as usize);
            for run in self.numbers.chunk_by_mut(|a, b| a.0 == b.0) {
                run.sort_unstable_by(|a, b| compare(keys, ranks, key(a.1), key(b.1)));
            }
        }
        self.order.extend(self.numbers.iter().map(|(_, id)| *id));
        true
    }

    /// Any keys: each column as numbers that sort as it does, then compared in turn.
    fn sort_columns(&mut self, keys: &KeyLayout, pane: &Pane, ranks: &[Option<Ranks>]) {
        self.columns.resize_with(keys.columns.len(), Vec::new);
        for (index, column) in self.columns.iter_mut().enumerate() {
            let ranks = ranks[index].as_ref().map(|ranks| &*ranks.rank_of);
            column.clear();
            let ids = 0..pane.len();
            column.extend(ids.map(|id| keys.ordered(pane.groups.key(id), index, ranks)));
        }
        self.order.extend(0..pane.len() as u32);
        let columns = &self.columns;
        self.order.sort_unstable_by(|a, b| {
            let parts = columns
                .iter()
                .map(|column| column[*a as usize].cmp(&column[*b as usize]));
            parts.fold(Ordering::Equal, Ordering::then)
        });
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

/// Makes numbers of keys, of which no later key in their order has a smaller one: their first 64
/// bits, all ones from the first null on.
pub(super) struct Numbers<'a> {
    keys: &'a KeyLayout,
    ranks: &'a [Option<Ranks>],
    /// Bits of each of the first columns that count.
    bits: Vec<u32>,
    /// Whether those are all there are.
    whole: bool,
}

impl<'a> Numbers<'a> {
    /// Those of keys of a layout, whose texts rank by `ranks`; `None` where the first column is
    /// wider than 64 bits.
    pub(super) fn of(keys: &'a KeyLayout, ranks: &'a [Option<Ranks>]) -> Option<Self> {
        let (mut bits, mut room) = (Vec::new(), u64::BITS);
        for column in &keys.columns {
            if room == 0 || column.bits() > u64::BITS {
                break;
            }
            bits.push(column.bits().min(room));
            room -= column.bits().min(room);
        }
        let all: u32 = keys.columns.iter().map(|column| column.bits()).sum();
        let whole = all <= u64::BITS;
        (!bits.is_empty()).then_some(Numbers {
            keys,
            ranks,
            bits,
            whole,
        })
    }

    /// The number of `key`, and whether no other key has it.
    #[inline]
    pub(super) fn number(&self, key: &[u64]) -> (u64, bool) {
        let mut number = 0u64;
        for (index, bits) in self.bits.iter().enumerate() {
            if self.keys.is_null(key, index) {
                let rest: u32 = self.bits[index..].iter().sum();
                let ones = u64::MAX >> (u64::BITS - rest);
                return (number.checked_shl(rest).unwrap_or(0) | ones, false);
            }
            let column = &self.keys.columns[index];
            let part = column.part(key);
            let rank = self.ranks[index].as_ref().map(|ranks| &ranks.rank_of);
            let rank = rank.and_then(|rank_of| rank_of.get(part as usize));
            let part = rank.map_or(part, |rank| (*rank).into());
            number = number.checked_shl(*bits).unwrap_or(0) | part >> (column.bits() - bits);
        }
        (number, self.whole)
    }
}

/// Keys are put in order column by column where more than one of so many shares its number.
const TIED_PART: usize = 4;

/// Fewer numbers than this are compared with each other.
const RADIX_MIN: usize = 256;

/// Bits of a number that one pass sorts by, where numbers are few and where they are many.
const DIGIT_BITS: [u32; 2] = [8, 11];

/// From how many numbers on the counts of a wide digit are worth it.
const WIDE_FROM: usize = 2_048;

/// Sorts by number: digit by digit from the lowest, each of which starts with a bit that is not the
/// same in all.
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
