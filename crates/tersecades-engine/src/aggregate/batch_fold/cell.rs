//! Where the rows of a batch are added up: the cells of buckets, several for each where buckets are
//! few.

use tersecades_columnar::primitive::fold_by::GroupFold;
use tersecades_columnar::types::{Physical, float_key};
use tersecades_columnar::values::{Values, float_of_bits};

use super::{BatchFold, LANES};

/// Where rows are counted and integers added up at once: a key and `one` added to a cell are a row
/// and its distance.
pub(super) struct Counted<'a> {
    pub(super) one: u64,
    pub(super) lanes: usize,
    pub(super) cells: &'a mut [u64],
}

impl GroupFold for Counted<'_> {
    fn add(&mut self, ids: &[u32], values: &Values) {
        let (one, cells) = (self.one, &mut *self.cells);
        visit(ids, &values.keys, self.lanes, |cell, key| {
            cells[cell] = cells[cell].wrapping_add(key.wrapping_add(one));
        });
    }

    fn add_same(&mut self, ids: &[u32], value: &Values) {
        let (step, cells) = (value.keys[0].wrapping_add(self.one), &mut *self.cells);
        visit(ids, ids, self.lanes, |cell, _| {
            cells[cell] = cells[cell].wrapping_add(step);
        });
    }
}

/// Where the values of a batch go.
pub(super) struct Cells<'a> {
    pub(super) base: u64,
    pub(super) batch: &'a mut BatchFold,
}

impl Cells<'_> {
    fn add_integers(&mut self, ids: &[u32], keys: &[u64]) {
        let (base, lanes, batch) = (self.base, self.batch.lanes, &mut *self.batch);
        let (sums, squares) = (&mut batch.sums, &mut batch.squares);
        if !squares.is_empty() {
            visit(ids, keys, lanes, |cell, key| {
                let distance = key - base;
                sums[cell] += distance;
                squares[cell] += distance * distance;
            });
        } else if !sums.is_empty() {
            visit(ids, keys, lanes, |cell, key| sums[cell] += key - base);
        }
        if !batch.ends.is_empty() {
            visit(ids, keys, lanes, |cell, key| {
                widen(&mut batch.ends[cell], key)
            });
        }
    }

    /// Adds the one `key` to each of the groups `ids`.
    fn add_repeats(&mut self, ids: &[u32], key: u64) {
        let (distance, lanes, batch) = (key - self.base, self.batch.lanes, &mut *self.batch);
        let (sums, squares) = (&mut batch.sums, &mut batch.squares);
        if !sums.is_empty() {
            visit(ids, ids, lanes, |cell, _| sums[cell] += distance);
        }
        if !squares.is_empty() {
            visit(ids, ids, lanes, |cell, _| {
                squares[cell] += distance * distance
            });
        }
        if !batch.ends.is_empty() {
            visit(ids, ids, lanes, |cell, _| widen(&mut batch.ends[cell], key));
        }
    }

    fn add_floats(&mut self, ids: &[u32], keys: &[u64], bytes: u8) {
        let (lanes, batch) = (self.batch.lanes, &mut *self.batch);
        let value = |key| float_of_bits(key, bytes);
        if !batch.float_sums.is_empty() {
            visit(ids, keys, lanes, |cell, key| {
                batch.float_sums[cell].add(value(key))
            });
        }
        if !batch.spreads.is_empty() {
            visit(ids, keys, lanes, |cell, key| {
                batch.spreads[cell].add(value(key))
            });
        }
        if !batch.ends.is_empty() {
            let key_of = |key| float_key(value(key));
            visit(ids, keys, lanes, |cell, key| {
                widen(&mut batch.ends[cell], key_of(key))
            });
        }
    }
}

impl GroupFold for Cells<'_> {
    fn add(&mut self, ids: &[u32], values: &Values) {
        match values.physical {
            Physical::Float { bytes } => self.add_floats(ids, &values.keys, bytes),
            _ => self.add_integers(ids, &values.keys),
        }
    }

    fn add_same(&mut self, ids: &[u32], value: &Values) {
        match value.physical {
            Physical::Float { .. } => ids.iter().for_each(|id| self.add(&[*id], value)),
            _ => self.add_repeats(ids, value.keys[0]),
        }
    }
}

#[inline]
fn widen((least, greatest): &mut (u64, u64), key: u64) {
    (*least, *greatest) = ((*least).min(key), (*greatest).max(key));
}

pub(super) fn reset<T: Clone>(cells: &mut Vec<T>, count: usize, empty: T) {
    cells.clear();
    cells.resize(count, empty);
}

/// Calls `add` with the cell and the item of each row; neighbours have different cells.
#[inline(always)]
pub(super) fn visit<T: Copy>(
    ids: &[u32],
    items: &[T],
    lanes: usize,
    mut add: impl FnMut(usize, T),
) {
    if lanes == 1 {
        ids.iter()
            .zip(items)
            .for_each(|(id, item)| add(*id as usize, *item));
        return;
    }
    let (id_lanes, id_rest) = ids.as_chunks::<LANES>();
    let (item_lanes, item_rest) = items.as_chunks::<LANES>();
    for (ids, items) in id_lanes.iter().zip(item_lanes) {
        for lane in 0..LANES {
            add(ids[lane] as usize * LANES + lane, items[lane]);
        }
    }
    let rest = id_rest.iter().zip(item_rest);
    rest.for_each(|(id, item)| add(*id as usize * LANES, *item));
}
