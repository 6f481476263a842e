//! Single rows: tests and keys by position, without a look at the rest of their blocks.

use std::ops::Range;

use crate::bitmap::{WORD_ROWS, ones};
use crate::block::{BLOCK_ROWS, GROUP_ROWS};
use crate::kernels::prefetch_rows;
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::with_deltas;
use crate::predicate::KeyRange;
use crate::stats::Stats;

use super::View;

/// How many rows ahead a delta is asked for.
///
/// Measured on rows picked at random, one in a hundred: 10 ns each; 14 to 19 where the loop runs
/// into its misses, or asks for all rows before it starts.
const PREFETCH_ROWS: usize = 64;

/// Rows that are tested before patches are searched for.
const TESTED_ROWS: usize = 512;

/// Most rows of a word whose patches are searched for one by one.
const SEARCHED_MAX: u32 = 4;

/// Most patches of a block for each row looked up, of which all are written.
const SCATTERED_MAX: usize = 3;

/// What is known of the rows that are tested together, in memory that is set up once.
struct Tested {
    passing: [bool; TESTED_ROWS],
    /// Rows for which patches have to be searched.
    unsure: [usize; TESTED_ROWS],
}

impl Tested {
    fn new() -> Self {
        Tested {
            passing: [false; TESTED_ROWS],
            unsure: [0; TESTED_ROWS],
        }
    }
}

/// A test of single rows against one range.
pub(super) struct RowTest {
    pub(super) range: KeyRange,
    pub(super) stats: Stats,
}

impl RowTest {
    /// Appends the rows whose key is in the range to `list`.
    pub(super) fn select(&self, view: &View<'_>, rows: &[u32], list: &mut Vec<u32>) {
        let mut tested = Tested::new();
        let out = (&mut tested, list);
        match view.deltas.uniform_width() {
            1 => self.select_of(view, (view.deltas.all::<u8>(), 0), rows, out),
            2 => self.select_of(view, (view.deltas.all::<u16>(), 0), rows, out),
            4 => self.select_of(view, (view.deltas.all::<u32>(), 0), rows, out),
            8 => self.select_of(view, (view.deltas.all::<u64>(), 0), rows, out),
            _ => for_each_run(view, rows, |block, rows| {
                let first = block * BLOCK_ROWS;
                let (tested, list) = (&mut *out.0, &mut *out.1);
                with_deltas!(view.deltas, block, deltas => {
                    self.select_of(view, (deltas, first), rows, (tested, list));
                }, zero {
                    let passes = |row: &&u32| self.range.contains(view.key(**row as usize));
                    list.extend(rows.iter().filter(passes));
                });
            }),
        }
    }

    /// [`RowTest::select`] where `deltas` are those of all rows from `first` on.
    ///
    /// A saturated delta stands for a patch or for the end itself. Where the range treats all keys
    /// beyond that end alike, the patches need not be searched; the others are asked for together,
    /// and searched after all deltas were seen. What passes is as good as random, so nothing
    /// branches on it.
    #[inline]
    fn select_of<D: KeyLane>(
        &self,
        view: &View<'_>,
        (deltas, first): (&[D], usize),
        rows: &[u32],
        (tested, list): (&mut Tested, &mut Vec<u32>),
    ) {
        if first == 0 {
            prefetch_rows(deltas, &rows[..rows.len().min(PREFETCH_ROWS)]);
        }
        let last = rows.len().saturating_sub(1);
        let Tested { passing, unsure } = tested;
        for start in (0..rows.len()).step_by(TESTED_ROWS) {
            let ahead = &rows[(start + PREFETCH_ROWS).min(last)..];
            let rows = &rows[start..rows.len().min(start + TESTED_ROWS)];
            let mut searches = 0;
            for (index, (row, passes)) in rows.iter().zip(&mut *passing).enumerate() {
                let next = ahead.get(index).unwrap_or(row);
                prefetch_rows(deltas, &[next - first as u32]);
                let at = *row as usize;
                let delta = deltas[at - first].key();
                let key = view.bases[at / GROUP_ROWS].wrapping_add(delta);
                *passes = self.range.contains(key);
                unsure[searches] = index;
                searches += usize::from(!self.is_sure(delta, D::MAX.key(), key));
            }
            let unsure = &unsure[..searches];
            for index in unsure {
                view.patches.prefetch(rows[*index] as usize);
            }
            for index in unsure {
                let at = rows[*index] as usize;
                if let Some(key) = view.patches.find(at / BLOCK_ROWS, at % BLOCK_ROWS) {
                    passing[*index] = self.range.contains(key);
                }
            }
            let mut kept = list.len();
            list.resize(kept + rows.len(), 0);
            for (row, passes) in rows.iter().zip(&*passing) {
                list[kept] = *row;
                kept += usize::from(*passes);
            }
            list.truncate(kept);
        }
    }

    /// Whether a patch in the place of `delta`, which gives `key`, would answer as `key` does.
    #[inline(always)]
    fn is_sure(&self, delta: u64, top: u64, key: u64) -> bool {
        let RowTest { range, stats } = *self;
        let above = (key > range.high) | (stats.none_above(range.high) & (key >= range.low));
        let below = (key < range.low) | (stats.none_below(range.low) & (key <= range.high));
        ((delta != top) | above) & ((delta != 0) | below)
    }
}

/// Visits the listed rows block by block, with the deltas of the next block asked for.
fn for_each_run(view: &View<'_>, rows: &[u32], mut visit: impl FnMut(usize, &[u32])) {
    let mut runs = rows.chunk_by(|a, b| *a as usize / BLOCK_ROWS == *b as usize / BLOCK_ROWS);
    let mut next = runs.next();
    while let Some(run) = next {
        next = runs.next();
        if let Some(ahead) = next {
            view.deltas.prefetch_block(ahead);
        }
        visit(run[0] as usize / BLOCK_ROWS, run);
    }
}

/// Visits the keys of listed rows.
#[inline]
pub(super) fn for_each_key(view: &View<'_>, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
    for_each_keys::<false>(view, rows, |rows, keys| {
        let pairs = rows.iter().zip(keys);
        pairs.for_each(|(row, key)| visit(*row, *key));
    });
}

/// Visits the keys of listed rows, at most [`WORD_ROWS`] at once.
///
/// Where all blocks have one width, which most chunks do, the deltas are one array. They are asked
/// for ahead if `COLD`, which is lost time where they are at hand.
#[inline]
pub(super) fn for_each_keys<const COLD: bool>(
    view: &View<'_>,
    rows: &[u32],
    mut visit: impl FnMut(&[u32], &[u64]),
) {
    let (deltas, mut out) = (view.deltas, Gathered::new());
    let out = &mut out;
    match deltas.uniform_width() {
        1 => for_each_keys_of::<u8, COLD>(view, (deltas.all(), 0), (rows, out), visit),
        2 => for_each_keys_of::<u16, COLD>(view, (deltas.all(), 0), (rows, out), visit),
        4 => for_each_keys_of::<u32, COLD>(view, (deltas.all(), 0), (rows, out), visit),
        8 => for_each_keys_of::<u64, COLD>(view, (deltas.all(), 0), (rows, out), visit),
        _ => for_each_run(view, rows, |block, rows| {
            let first = block * BLOCK_ROWS;
            with_deltas!(deltas, block, deltas => {
                for_each_keys_of::<_, false>(view, (deltas, first), (rows, &mut *out), &mut visit);
            }, zero {
                rows.iter().for_each(|row| visit(&[*row], &[view.key(*row as usize)]));
            });
        }),
    }
}

/// [`for_each_keys`] where `deltas` are those of all rows from `first` on.
///
/// Keys are put together many at a time without a branch; those of saturated deltas, which may be
/// holes, are looked at afterwards.
#[inline]
fn for_each_keys_of<D: KeyLane, const COLD: bool>(
    view: &View<'_>,
    (deltas, first): (&[D], usize),
    (rows, out): (&[u32], &mut Gathered),
    mut visit: impl FnMut(&[u32], &[u64]),
) {
    let mut ahead = if COLD { rows } else { &[] }.iter();
    let mut ask = || ahead.next().map(|row| prefetch_rows(deltas, &[*row]));
    (0..PREFETCH_ROWS).for_each(|_| _ = ask());
    for rows in rows.chunks(WORD_ROWS) {
        let mut read = |row: u32| {
            ask();
            let delta = deltas[row as usize - first].key();
            (
                delta,
                view.bases[row as usize / GROUP_ROWS].wrapping_add(delta),
            )
        };
        let (mut saturated, slots) = (0, out.keys.iter_mut().zip(rows));
        if view.patches.is_empty() {
            slots.for_each(|(slot, row)| *slot = read(*row).1);
        } else {
            for (index, (slot, row)) in slots.enumerate() {
                let (delta, key) = read(*row);
                saturated |= u64::from((delta == 0) | (delta == D::MAX.key())) << index;
                *slot = key;
            }
        }
        if saturated.count_ones() > SEARCHED_MAX {
            put_patches(view, (rows, saturated), out);
        } else {
            for index in ones(&[saturated], 0..WORD_ROWS) {
                let at = rows[index] as usize;
                if let Some(key) = view.patches.find(at / BLOCK_ROWS, at % BLOCK_ROWS) {
                    out.keys[index] = key;
                }
            }
        }
        visit(rows, &out.keys[..rows.len()]);
    }
}

/// Puts the keys of patches in place, which can be in the rows whose bit of `saturated` is set.
///
/// Such rows are many where a filter has kept what lies far out: block by block, all patches are
/// written to where their rows go, or the rows are met in one walk.
fn put_patches(view: &View<'_>, (rows, saturated): (&[u32], u64), out: &mut Gathered) {
    let (mut places, mut listed, mut count) = ([0; WORD_ROWS], [0; WORD_ROWS], 0);
    for index in ones(&[saturated], 0..WORD_ROWS) {
        (places[count], listed[count]) = (index as u8, rows[index]);
        count += 1;
    }
    let (places, listed) = (&places[..count], &listed[..count]);
    let pairs = listed.iter().zip(&listed[1..]);
    if !pairs.fold(true, |all, (row, next)| all & (row < next)) {
        return out.walk(view, (listed, places));
    }
    let mut start = 0;
    while let Some(row) = listed.get(start) {
        let block = *row as usize / BLOCK_ROWS;
        let in_block = |row: &u32| *row as usize / BLOCK_ROWS == block;
        let run = start..start + listed[start..].partition_point(in_block);
        let patched = view.patches.of_block(block);
        start = run.end;
        let few = patched.len() > run.len() * SCATTERED_MAX;
        let run = (&listed[run.clone()], &places[run]);
        match few {
            true => out.walk(view, run),
            false => out.scatter(view, run, patched),
        }
    }
}

/// The keys of a few rows, and where those of a block's patches go.
struct Gathered {
    /// The last one takes what belongs to no row.
    keys: [u64; WORD_ROWS + 1],
    places: [u8; BLOCK_ROWS],
}

impl Gathered {
    fn new() -> Self {
        Gathered {
            keys: [0; WORD_ROWS + 1],
            places: [WORD_ROWS as u8; BLOCK_ROWS],
        }
    }

    /// Replaces the keys, which are at `places`, of those of `rows` that are patched.
    fn walk(&mut self, view: &View<'_>, (rows, places): (&[u32], &[u8])) {
        let mut places = places.iter();
        view.patches.for_each_row(rows, |_, patched| {
            if let (Some(place), Some(key)) = (places.next(), patched) {
                self.keys[usize::from(*place)] = key;
            }
        });
    }

    /// As [`Gathered::walk`], for rows that differ, of the block whose patches are `patched`.
    ///
    /// # Cost
    /// A few instructions for each row and each patch, and none of them a branch.
    fn scatter(&mut self, view: &View<'_>, (rows, places): (&[u32], &[u8]), patched: Range<usize>) {
        for (row, place) in rows.iter().zip(places) {
            self.places[*row as usize % BLOCK_ROWS] = *place;
        }
        with_lanes!(view.patches.keys(), keys => {
            let patches = view.patches.rows()[patched.clone()].iter().zip(&keys[patched]);
            for (row, key) in patches {
                let place = self.places[usize::from(*row) % BLOCK_ROWS];
                self.keys[usize::from(place)] = key.key();
            }
        }, else {});
        for row in rows {
            self.places[*row as usize % BLOCK_ROWS] = WORD_ROWS as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    use crate::codec::Work;
    use crate::encoder::ColumnEncoder;
    use crate::predicate::{Comparison, Predicate};
    use crate::registry::by_id;
    use crate::selection::Selection;
    use crate::values::Values;

    /// Blocks of deltas of nought, one and two bytes, some with outliers, the last one short.
    #[test]
    fn rows_of_blocks_of_several_widths_are_those_that_went_in() {
        let rows = 9 * 1_024 + 100;
        let value = |row: i64| match (row / 1_024 % 3, row % 173) {
            (0, _) => 77,
            (1, 5) => -900_000,
            (2, 7) => 9_000_000,
            (1, _) => row * 31 % 200,
            _ => row * 31 % 20_000,
        };
        let values: Vec<i64> = (0..rows).map(value).collect();
        let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
        let mut encoder = ColumnEncoder::new(&DataType::Int64).unwrap();
        encoder.pin(by_id(2).unwrap());
        let chunk = encoder.encode_new(&array).unwrap();
        let (mut within, mut work) = (Selection::default(), Work::default());
        let listed = (0..rows as u32).filter(|row| row % 11 < 2 || row % 173 == 5);
        within.set_rows(rows as usize).extend(listed);
        let list = within.list().to_vec();

        let mut gathered = Values::default();
        chunk.gather(&within, &mut gathered, &mut work);
        for (index, row) in list.iter().enumerate() {
            assert_eq!(
                gathered.integer(index) as i64,
                values[*row as usize],
                "{row}"
            );
        }
        for bound in [-900_000i64, 0, 77, 150, 9_000_000] {
            let below = Predicate::compare(chunk.data_type(), Comparison::Less, &bound.into());
            let mut found = Selection::default();
            chunk.compare(&below.unwrap(), &within, &mut found, &mut work);
            let expected = list
                .iter()
                .copied()
                .filter(|row| values[*row as usize] < bound);
            found.to_rows();
            assert_eq!(found.list(), expected.collect::<Vec<u32>>(), "{bound}");
        }
    }

    /// Outliers at both ends, looked up in order, twice each and backwards.
    #[test]
    fn rows_that_are_mostly_outliers_are_those_that_went_in() {
        let rows = 5 * 1_024 + 300;
        for every in [7, 25, 130] {
            let value = |row: i64| match row % every {
                3 => 90_000_000 + row,
                5 => row - 90_000_000,
                _ => row * 37 % 250,
            };
            let values: Vec<i64> = (0..rows).map(value).collect();
            let mut encoder = ColumnEncoder::new(&DataType::Int64).unwrap();
            encoder.pin(by_id(2).unwrap());
            let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
            let chunk = encoder.encode_new(&array).unwrap();
            let is_far = |row: &u32| [3, 5].contains(&(i64::from(*row) % every));
            let ascending: Vec<u32> = (0..rows as u32)
                .filter(|row| is_far(row) || row % 61 == 0)
                .collect();
            let twice = ascending.iter().flat_map(|row| [*row, *row]).collect();
            let backwards = ascending.iter().rev().copied().collect();
            for list in [ascending.clone(), twice, backwards] {
                let (mut found, mut work) = (Values::default(), Work::default());
                found.reset(chunk.physical());
                chunk.codec.gather(&chunk, &list, &mut found, &mut work);
                let found = (0..list.len()).map(|index| found.integer(index) as i64);
                let expected = list.iter().map(|row| values[*row as usize]);
                assert!(found.eq(expected), "one outlier in {every}");
            }
        }
    }
}
