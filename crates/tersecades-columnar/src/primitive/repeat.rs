//! `repeats`: the values of the selected rows, each with how many rows have it.

use crate::chunk::Chunk;
use crate::codec::{Codec, Work};
use crate::selection::{Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

use super::counted::count_in_cells;
use super::for_each_unit;

/// Values and how often each came; a value may be listed more than once.
///
/// # Shape
/// `values` holds no null and is as long as `counts`.
#[derive(Debug, Clone, Default)]
pub struct Repeats {
    /// The values: keys, raw float bits, codes of a dictionary, or decimals.
    pub values: Values,
    /// Rows that have each value, at least one.
    pub counts: Vec<u64>,
}

impl Repeats {
    /// Empties, for values of `physical`.
    pub fn reset(&mut self, physical: Physical) {
        self.values.reset(physical);
        self.counts.clear();
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Adds `count` rows with the value of `key`; equal neighbours become one pair.
    pub(crate) fn add(&mut self, key: u64, count: u64) {
        if count == 0 {
            return;
        }
        match (self.values.keys.last(), self.counts.last_mut()) {
            (Some(last), Some(known)) if *last == key => *known += count,
            _ => {
                self.values.keys.push(key);
                self.counts.push(count);
            }
        }
    }

    /// Adds a row with the value of each of `keys`, of which no neighbours are equal.
    pub(crate) fn add_each(&mut self, keys: impl Iterator<Item = u64>) {
        self.values.keys.extend(keys);
        self.counts.resize(self.values.keys.len(), 1);
    }

    fn add_wide(&mut self, value: i128) {
        match (self.values.wide.last(), self.counts.last_mut()) {
            (Some(last), Some(known)) if *last == value => *known += 1,
            _ => {
                self.values.wide.push(value);
                self.counts.push(1);
            }
        }
    }

    /// Makes one pair of each code below `codes`, if that makes fewer pairs.
    pub(crate) fn merge_codes(&mut self, codes: usize, totals: &mut Vec<u64>) {
        if codes >= self.len() {
            return;
        }
        totals.clear();
        totals.resize(codes, 0);
        for (code, count) in self.values.keys.iter().zip(&self.counts) {
            totals[*code as usize] += count;
        }
        self.values.keys.clear();
        self.counts.clear();
        for (code, count) in totals.iter().enumerate() {
            self.add(code as u64, *count);
        }
    }
}

/// The default of [`Codec::repeats`]: count in cells where keys lie close together, else decode.
///
/// # Cost
/// A step per row; what comes out is as short as the values are few.
pub fn repeats_counted(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    out: &mut Repeats,
    work: &mut Work,
) {
    if !count_in_cells(codec, chunk, within, out, work) {
        repeats_decoded(codec, chunk, within, out, work);
    }
}

/// Decodes unit by unit and merges equal neighbours: what [`Codec::repeats`] is measured against.
pub fn repeats_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    out: &mut Repeats,
    work: &mut Work,
) {
    for_each_unit(codec, chunk, within, work, |values| {
        values.keys.iter().for_each(|key| out.add(*key, 1));
        values.wide.iter().for_each(|value| out.add_wide(*value));
        out.values.dictionary.clone_from(&values.dictionary);
    });
}

impl Chunk {
    /// Fills `out` with the values of the rows of `within` that are not null.
    ///
    /// # Cost
    /// A step per run or per exception where the codec knows them, else per row.
    pub fn repeats(&self, within: &Selection, out: &mut Repeats, work: &mut Work) {
        out.reset(self.physical);
        self.for_valid(within, work, |within, work| {
            if within.shape() != Shape::None {
                self.codec.repeats(self, within, out, work);
            }
        });
    }
}
