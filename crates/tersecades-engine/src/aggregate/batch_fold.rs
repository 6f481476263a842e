//! Counts, sums, squares and ends of one batch by group, in 64-bit cells, before they join the
//! folds of their groups.
//!
//! Integers are added as their distances from the least of the batch, floats as they are. Where
//! groups are few, rows of one group often follow each other, and each would wait for the store of
//! the one before: so neighbours have cells of their own, several for each group.

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::fold::{FloatSum, Fold, Spread};
use tersecades_columnar::primitive::fold_by::GroupFold;
use tersecades_columnar::stats::Stats;
use tersecades_columnar::types::{Physical, float_key};
use tersecades_columnar::values::{Values, float_of_bits};

use super::fold_column::FoldColumn;

/// Cells of a group where groups are few.
const LANES: usize = 4;

/// Most groups with several cells: they stay in the first-level cache.
const LANE_GROUPS_MAX: usize = 1_024;

/// Fewer rows for each group than this are added to the folds one by one.
const GROUP_ROWS_MIN: usize = 4;

/// Distances from zero and within a batch below which sums of squares fit 128 bits.
const SQUARED_BITS_MAX: u32 = 50;

/// The scratch memory of a worker, and the rows of each group of the batch at hand.
#[derive(Debug, Default)]
pub struct BatchFold {
    lanes: usize,
    counts: Vec<u64>,
    sums: Vec<u64>,
    squares: Vec<u64>,
    float_sums: Vec<FloatSum>,
    spreads: Vec<Spread>,
    ends: Vec<(u64, u64)>,
}

impl BatchFold {
    /// Counts the rows of each of `groups` groups; does nothing where they are too many for `ids`.
    pub fn count(&mut self, ids: &[u32], groups: usize) {
        self.counts.clear();
        if ids.len() < groups.saturating_mul(GROUP_ROWS_MIN) {
            return;
        }
        let few = groups <= LANE_GROUPS_MAX && ids.len() >= groups * LANES * GROUP_ROWS_MIN;
        self.lanes = if few { LANES } else { 1 };
        let (lanes, sums) = (self.lanes, &mut self.sums);
        reset(sums, groups * lanes, 0);
        visit(ids, ids, lanes, |cell, _| sums[cell] += 1);
        let groups = sums.chunks_exact(lanes);
        self.counts
            .extend(groups.map(|cells| cells.iter().sum::<u64>()));
    }

    /// Rows of each group; none where they were not counted.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Adds the values of `column`, which `read` hands out, to the folds of the groups `ids`; does
    /// nothing and says false where they have to go one by one.
    pub fn add(
        &mut self,
        (column, ids): (&Chunk, &[u32]),
        folds: &mut FoldColumn,
        read: impl FnOnce(&mut dyn GroupFold),
    ) -> bool {
        let asked = folds.asked();
        if self.counts.is_empty() || column.nulls() > 0 {
            return false;
        }
        if !(asked.sum || asked.squares || asked.ends) {
            folds.add_counts(&self.counts);
            return true;
        }
        let is_float = matches!(column.physical(), Physical::Float { .. });
        let base = match is_float {
            true => Some(0),
            false => base_of(column, ids.len(), asked.squares),
        };
        let Some(base) = base else {
            return false;
        };
        let all = self.counts.len() * self.lanes;
        let cells = |wanted: bool| if wanted { all } else { 0 };
        reset(
            &mut self.sums,
            cells(!is_float && (asked.sum || asked.squares)),
            0,
        );
        reset(&mut self.squares, cells(!is_float && asked.squares), 0);
        reset(
            &mut self.float_sums,
            cells(is_float && asked.sum),
            FloatSum::default(),
        );
        reset(
            &mut self.spreads,
            cells(is_float && asked.squares),
            Spread::default(),
        );
        reset(&mut self.ends, cells(asked.ends), (u64::MAX, 0));
        read(&mut Cells { base, batch: self });
        if is_float || asked.squares {
            let base = if is_float {
                0
            } else {
                column.physical().value_of(base)
            };
            let groups = self.counts.iter().enumerate();
            for (id, rows) in groups.filter(|(_, rows)| **rows > 0) {
                folds.merge_fold(id, &self.fold(id, *rows, base));
            }
            return true;
        }
        folds.add_counts(&self.counts);
        let (base, lanes) = (column.physical().value_of(base), self.lanes);
        let distances = self.sums.chunks_exact(lanes).zip(&self.counts);
        folds.add_sums(distances.map(|(cells, rows)| {
            let distances = cells.iter().map(|cell| i128::from(*cell));
            i128::from(*rows) * base + distances.sum::<i128>()
        }));
        folds.add_ends(self.ends.chunks_exact(lanes).map(|cells| {
            let ends = cells.iter().copied();
            ends.fold((u64::MAX, 0), |(low, high), (least, greatest)| {
                (low.min(least), high.max(greatest))
            })
        }));
        true
    }

    /// The fold of the `rows` rows of group `id`, whose distances are counted from `base`.
    fn fold(&self, id: usize, rows: u64, base: i128) -> Fold {
        let mut fold = Fold {
            count: rows,
            ..Fold::default()
        };
        let rows = i128::from(rows);
        let distances: i128 = self
            .cells(&self.sums, id)
            .map(|cell| i128::from(*cell))
            .sum();
        fold.sum = rows * base + distances;
        if !self.squares.is_empty() {
            let squares: i128 = self
                .cells(&self.squares, id)
                .map(|cell| i128::from(*cell))
                .sum();
            fold.squares
                .add((rows * base * base + 2 * base * distances + squares) as u128);
        }
        let (sums, spreads) = (&self.float_sums, &self.spreads);
        self.cells(sums, id)
            .for_each(|sum| fold.float_sum.merge(*sum));
        self.cells(spreads, id)
            .for_each(|spread| fold.spread.merge(*spread));
        for (least, greatest) in self.cells(&self.ends, id) {
            fold.min = fold.min.min(i128::from(*least));
            fold.max = fold.max.max(i128::from(*greatest));
        }
        fold
    }

    /// The cells of group `id`, of which there are none where the part is not asked for.
    fn cells<'a, T>(&self, cells: &'a [T], id: usize) -> impl Iterator<Item = &'a T> {
        let range = id * self.lanes..(id + 1) * self.lanes;
        cells.get(range).unwrap_or_default().iter()
    }
}

/// The key that distances are counted from, if 64 bits hold the sums of `rows` of them.
fn base_of(column: &Chunk, rows: usize, squares: bool) -> Option<u64> {
    let Stats { min, max, known } = column.stats();
    let is_integer = matches!(column.physical(), Physical::Integer { .. });
    let span = Some(max.wrapping_sub(min)).filter(|_| known && is_integer)?;
    if squares {
        let size = |key| column.physical().value_of(key).unsigned_abs();
        let bits = u128::BITS - size(min).max(size(max)).leading_zeros();
        let fit = span.checked_mul(span)?.checked_mul(rows as u64);
        return fit.filter(|_| bits <= SQUARED_BITS_MAX).map(|_| min);
    }
    span.checked_mul(rows as u64).map(|_| min)
}

/// Where the values of a batch go.
struct Cells<'a> {
    base: u64,
    batch: &'a mut BatchFold,
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

fn reset<T: Clone>(cells: &mut Vec<T>, count: usize, empty: T) {
    cells.clear();
    cells.resize(count, empty);
}

/// Calls `add` with the cell and the item of each row; neighbours have different cells.
#[inline(always)]
fn visit<T: Copy>(ids: &[u32], items: &[T], lanes: usize, mut add: impl FnMut(usize, T)) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array};
    use tersecades_columnar::codec::Work;
    use tersecades_columnar::encoder::ColumnEncoder;
    use tersecades_columnar::fold::Asked;
    use tersecades_columnar::registry::by_id;
    use tersecades_columnar::selection::Selection;

    use super::*;

    /// Equal but for the last digits of floats.
    fn same(all: &Fold, one: &Fold) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-300);
        near(all.float_sum.total(), one.float_sum.total())
            && near(all.spread.deviation, one.spread.deviation)
            && near(all.spread.mean, one.spread.mean)
            && (all.count, all.sum, all.squares) == (one.count, one.sum, one.squares)
            && (all.min, all.max) == (one.min, one.max)
    }

    #[test]
    fn folds_are_those_of_one_row_after_the_other() {
        let mut state = 5u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 20
        };
        let mut taken = 0;
        for case in 0..400u64 {
            let (rows, groups) = (1 + next() as usize % 3_000, 1 + next() as usize % 700);
            let base = [0, -7, i64::MIN, i64::MAX - 40, 1 << 49, -(1 << 51)][case as usize % 6];
            let span = [1, 40, 1 << 20, u64::MAX >> 20][case as usize / 6 % 4];
            let value = |random: u64| base.saturating_add((random % span) as i64);
            let integers = (0..rows).map(|_| value(next()));
            let values: ArrayRef = match case % 9 {
                8 => Arc::new(Float64Array::from_iter_values(
                    integers.map(|integer| (integer % 1_000) as f64 / 7.0),
                )),
                _ => Arc::new(Int64Array::from_iter_values(integers)),
            };
            let mut encoder = ColumnEncoder::new(values.data_type()).unwrap();
            let id = if case % 9 == 8 { 0 } else { case % 4 };
            encoder.pin(by_id(id as u8).unwrap());
            let chunk = encoder.encode_new(&values).unwrap();
            let ids: Vec<u32> = (0..rows).map(|_| (next() % groups as u64) as u32).collect();
            let asked = Asked {
                sum: case % 3 > 0,
                squares: case % 5 == 1,
                ends: case % 7 < 3,
            };
            let mut one = FoldColumn::of(chunk.physical(), asked);
            one.grow(groups);
            let mut all = one.clone();
            let (within, mut work) = (Selection::all(rows), Work::default());
            chunk.fold_by(&within, &ids, &mut one, &mut work);
            let mut batch = BatchFold::default();
            batch.count(&ids, groups);
            let read = |cells: &mut dyn GroupFold| chunk.fold_by(&within, &ids, cells, &mut work);
            if batch.add((&chunk, &ids), &mut all, read) {
                taken += 1;
                for id in 0..groups {
                    assert!(same(&all.get(id), &one.get(id)), "case {case}");
                }
            }
        }
        assert!(taken > 100, "{taken} batches were folded in cells");
    }
}
