//! Counts, sums, squares and ends of one batch by bucket, in 64-bit cells, before they join the
//! folds of their groups.
//!
//! A bucket is a group, or a place by direct address that may have one: what the rows of a place
//! come to is known before its group is looked up, once for all of them. Integers are added as
//! their distances from the least of the batch, floats as they are. Where buckets are few, rows of
//! one often follow each other, and each would wait for the store of the one before: so neighbours
//! have cells of their own, several for each bucket.

mod cell;

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::fold::{Asked, FloatSum, Fold, Spread};
use tersecades_columnar::primitive::fold_by::GroupFold;
use tersecades_columnar::stats::Stats;
use tersecades_columnar::types::Physical;

use super::fold_column::FoldColumn;

use cell::{Cells, Counted, reset, visit};

/// Cells of a bucket where buckets are few.
const LANES: usize = 4;

/// Most buckets with several cells: they stay in the first-level cache.
const LANE_BUCKETS_MAX: usize = 1_024;

/// Fewer rows for each bucket than this are added to the folds one by one.
pub const BUCKET_ROWS_MIN: usize = 4;

/// Where the count begins in a cell that holds a sum of distances as well.
const COUNT_SHIFT: u32 = 40;

/// Distances from zero and within a batch below which sums of squares fit 128 bits.
const SQUARED_BITS_MAX: u32 = 50;

/// The scratch memory of a worker, and the rows of each bucket of the batch at hand.
#[derive(Debug, Default)]
pub struct BatchFold {
    lanes: usize,
    counts: Vec<u64>,
    /// The group of each bucket with rows; none where buckets are groups.
    groups: Vec<u32>,
    /// The argument that was added up as rows were counted, and the sum of each bucket.
    counted: Option<usize>,
    counted_sums: Vec<u64>,
    sums: Vec<u64>,
    squares: Vec<u64>,
    float_sums: Vec<FloatSum>,
    spreads: Vec<Spread>,
    ends: Vec<(u64, u64)>,
}

impl BatchFold {
    /// Counts the rows of each of `buckets` buckets; does nothing where they are too many for
    /// `ids`, each row's bucket.
    pub fn count(&mut self, ids: &[u32], buckets: usize) {
        if !self.start(ids, buckets) {
            return;
        }
        let (lanes, sums) = (self.lanes, &mut self.sums);
        visit(ids, ids, lanes, |cell, _| sums[cell] += 1);
        let buckets = sums.chunks_exact(lanes);
        self.counts
            .extend(buckets.map(|cells| cells.iter().sum::<u64>()));
    }

    /// As [`BatchFold::count`]; adds up argument `argument`, the integers of `column`, as it does,
    /// where one number holds both.
    pub fn count_and_add(
        &mut self,
        (ids, buckets): (&[u32], usize),
        (argument, column): (usize, &Chunk),
        read: impl FnOnce(&mut dyn GroupFold),
    ) {
        let base = Some(column).filter(|column| column.nulls() == 0);
        let base = base.and_then(|column| base_of(column, ids.len(), false));
        let Some(base) = base.filter(|base| {
            let span = column.stats().max - base;
            let sum = u128::from(span) * ids.len() as u128;
            sum >> COUNT_SHIFT == 0 && ids.len() >> (u64::BITS - COUNT_SHIFT) == 0
        }) else {
            return self.count(ids, buckets);
        };
        if !self.start(ids, buckets) {
            return;
        }
        let (lanes, cells) = (self.lanes, &mut self.sums);
        let one = (1u64 << COUNT_SHIFT).wrapping_sub(base);
        read(&mut Counted { one, lanes, cells });
        for cells in self.sums.chunks_exact(lanes) {
            let all: u64 = cells.iter().sum();
            self.counts.push(all >> COUNT_SHIFT);
            self.counted_sums.push(all & ((1 << COUNT_SHIFT) - 1));
        }
        self.counted = Some(argument);
    }

    /// Makes cells for rows to be counted in; says false where buckets are too many for `ids`.
    fn start(&mut self, ids: &[u32], buckets: usize) -> bool {
        self.counts.clear();
        self.counted = None;
        self.counted_sums.clear();
        if ids.len() < buckets.saturating_mul(BUCKET_ROWS_MIN) {
            return false;
        }
        let few = buckets <= LANE_BUCKETS_MAX && ids.len() >= buckets * LANES * BUCKET_ROWS_MIN;
        self.lanes = if few { LANES } else { 1 };
        reset(&mut self.sums, buckets * self.lanes, 0);
        true
    }

    /// As [`BatchFold::count`], for some of the rows, of buckets that are placed; there are
    /// `groups` groups.
    pub fn count_again(&mut self, ids: &[u32], groups: usize) {
        let buckets = match self.groups.len() {
            0 => groups,
            placed => placed,
        };
        self.count(ids, buckets);
    }

    /// Rows of each bucket, and where to put the group of each of those with rows; none where rows
    /// were not counted.
    pub fn place(&mut self) -> (&[u64], &mut Vec<u32>) {
        self.groups.clear();
        (&self.counts, &mut self.groups)
    }

    /// The group of each bucket with rows; none where buckets are groups.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Adds the rows of each group to `rows`; says false where they were not counted.
    pub fn add_rows(&self, rows: &mut [u64]) -> bool {
        let found = self.found();
        found.for_each(|(_, group, count)| rows[group] += count);
        !self.counts.is_empty()
    }

    /// Each bucket with rows, its group, and how many they are.
    fn found(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let group = |bucket| {
            let group = self.groups.get(bucket);
            group.map_or(bucket, |group| *group as usize)
        };
        let buckets = self.counts.iter().copied().enumerate();
        let found = buckets.filter(|(_, rows)| *rows > 0);
        found.map(move |(bucket, rows)| (bucket, group(bucket), rows))
    }

    /// Adds the values of `column`, argument `argument`, which `read` hands out by bucket, to the
    /// folds of their groups; does nothing and says false where they have to go one by one.
    pub fn add(
        &mut self,
        (column, ids): (&Chunk, &[u32]),
        (argument, folds): (usize, &mut FoldColumn),
        read: impl FnOnce(&mut dyn GroupFold),
    ) -> bool {
        let asked = folds.asked();
        if self.counts.is_empty() || column.nulls() > 0 {
            return false;
        }
        if !(asked.sum || asked.squares || asked.ends) {
            let rows = self.found().map(|(_, group, rows)| (group, rows));
            folds.add_counts(rows);
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
        let added = self.counted == Some(argument) && !asked.squares;
        self.empty_cells(asked, is_float, added);
        if !added || asked.ends {
            read(&mut Cells { base, batch: self });
        }
        if is_float || asked.squares {
            let base = if is_float {
                0
            } else {
                column.physical().value_of(base)
            };
            for (bucket, group, rows) in self.found() {
                folds.merge_fold(group, &self.fold(bucket, rows, base));
            }
            return true;
        }
        let base = column.physical().value_of(base);
        folds.add_counts(self.found().map(|(_, group, rows)| (group, rows)));
        if asked.sum {
            folds.add_sums(self.found().map(|(bucket, group, rows)| {
                let distances = match added {
                    true => i128::from(self.counted_sums[bucket]),
                    false => self.distances(bucket),
                };
                (group, i128::from(rows) * base + distances)
            }));
        }
        if asked.ends {
            folds.add_ends(self.found().map(|(bucket, group, _)| {
                let mut ends = (u64::MAX, 0);
                for (least, greatest) in self.cells(&self.ends, bucket) {
                    ends = (ends.0.min(*least), ends.1.max(*greatest));
                }
                (group, ends)
            }));
        }
        true
    }

    /// Makes cells for what is asked for, integers that were `added` left out.
    fn empty_cells(&mut self, asked: Asked, is_float: bool, added: bool) {
        let all = self.counts.len() * self.lanes;
        let cells = |wanted: bool| if wanted { all } else { 0 };
        let distances = cells(!is_float && (asked.sum || asked.squares) && !added);
        let floats = cells(is_float && asked.sum);
        let spreads = cells(is_float && asked.squares);
        reset(&mut self.sums, distances, 0);
        reset(&mut self.squares, cells(!is_float && asked.squares), 0);
        reset(&mut self.float_sums, floats, FloatSum::default());
        reset(&mut self.spreads, spreads, Spread::default());
        reset(&mut self.ends, cells(asked.ends), (u64::MAX, 0));
    }

    /// The sum of the distances in the cells of a bucket.
    fn distances(&self, bucket: usize) -> i128 {
        let cells = self.cells(&self.sums, bucket);
        cells.map(|cell| i128::from(*cell)).sum()
    }

    /// The fold of the `rows` rows of a bucket, whose distances are counted from `base`.
    fn fold(&self, bucket: usize, rows: u64, base: i128) -> Fold {
        let mut fold = Fold {
            count: rows,
            ..Fold::default()
        };
        let rows = i128::from(rows);
        let distances = self.distances(bucket);
        fold.sum = rows * base + distances;
        if !self.squares.is_empty() {
            let squares: i128 = self
                .cells(&self.squares, bucket)
                .map(|cell| i128::from(*cell))
                .sum();
            fold.squares
                .add((rows * base * base + 2 * base * distances + squares) as u128);
        }
        let (sums, spreads) = (&self.float_sums, &self.spreads);
        self.cells(sums, bucket)
            .for_each(|sum| fold.float_sum.merge(*sum));
        self.cells(spreads, bucket)
            .for_each(|spread| fold.spread.merge(*spread));
        for (least, greatest) in self.cells(&self.ends, bucket) {
            fold.min = fold.min.min(i128::from(*least));
            fold.max = fold.max.max(i128::from(*greatest));
        }
        fold
    }

    /// The cells of a bucket, of which there are none where the part is not asked for.
    fn cells<'a, T>(&self, cells: &'a [T], bucket: usize) -> impl Iterator<Item = &'a T> {
        let range = bucket * self.lanes..(bucket + 1) * self.lanes;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array};
    use tersecades_columnar::codec::Work;
    use tersecades_columnar::encoder::ColumnEncoder;
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
            let mut read = |cells: &mut dyn GroupFold| {
                chunk.fold_by(&within, &ids, cells, &mut work);
            };
            match case % 2 == 1 && case % 9 < 8 {
                true => batch.count_and_add((&ids, groups), (0, &chunk), &mut read),
                false => batch.count(&ids, groups),
            }
            batch.place();
            if batch.add((&chunk, &ids), (0, &mut all), read) {
                taken += 1;
                for id in 0..groups {
                    assert!(same(&all.get(id), &one.get(id)), "case {case}");
                }
            }
        }
        assert!(taken > 100, "{taken} batches were folded in cells");
    }
}
