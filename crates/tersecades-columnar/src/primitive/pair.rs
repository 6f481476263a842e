//! `compare_columns`: the rows in which one column's integer stands in some relation to another's.
//!
//! ```text
//! x < y     base x + dx < base y + dy     dx - dy in a range that the bases of a group tell
//! ```
//! Where both columns lie as bases and narrow deltas, a block whose ends tell is not looked at, and
//! another is answered by the differences of its deltas, in lanes of twice their width. Rows that
//! are patched on either side are tested by themselves. Other columns are decoded block by block.

use std::ops::RangeInclusive;

use crate::bitmap::{Bitmap, WORD_ROWS};
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::{Deltas, with_deltas};
use crate::patch::Patches;
use crate::predicate::Comparison;
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// A chunk of integers as bases, narrow deltas and patches.
#[derive(Clone, Copy)]
pub struct Bands<'a> {
    pub(crate) physical: Physical,
    /// The base and the largest unpatched key of each group of a block, or one for all of them, or
    /// one for the whole chunk.
    pub(crate) bases: &'a [u64],
    pub(crate) maxima: &'a [u64],
    pub(crate) bases_a_block: usize,
    /// None where every value that is not patched is the base.
    pub(crate) deltas: Option<Deltas<'a>>,
    pub(crate) patches: Option<Patches<'a>>,
}

/// The values of the groups of a block: the smallest and how far the others lie above it.
type Ends = [(i128, i128); GROUPS];

impl Bands<'_> {
    fn ends(&self, block: usize) -> Ends {
        std::array::from_fn(|group| {
            let index = match self.bases_a_block {
                0 => 0,
                bases => block * bases + group * bases / GROUPS,
            };
            let base = self.bases[index];
            (
                self.physical.value_of(base),
                i128::from(self.maxima[index] - base),
            )
        })
    }

    /// The bases of `block`.
    pub(crate) fn bases_of(&self, block: usize) -> &[u64] {
        match self.bases_a_block {
            0 => &self.bases[..1],
            bases => &self.bases[block * bases..(block + 1) * bases],
        }
    }

    /// Bytes of a delta of `block`.
    fn width(&self, block: usize) -> u8 {
        self.deltas.map_or(0, |deltas| deltas.widths[block])
    }

    /// The deltas of `block`, as lanes wide enough.
    fn load<W: KeyLane>(&self, block: usize, out: &mut [W]) {
        let Some(deltas) = self.deltas else {
            return out.fill(W::cut(0));
        };
        with_deltas!(deltas, block, lanes => {
            for (slot, lane) in out.iter_mut().zip(lanes) {
                *slot = W::cut(lane.key());
            }
        }, zero out.fill(W::cut(0)));
    }

    /// The value of one row.
    fn value(&self, row: usize) -> i128 {
        let patch = self
            .patches
            .and_then(|patches| patches.find(row / BLOCK_ROWS, row % BLOCK_ROWS));
        if let Some(key) = patch {
            return self.physical.value_of(key);
        }
        let (base, _) = self.ends(row / BLOCK_ROWS)[row % BLOCK_ROWS / GROUP_ROWS];
        base + i128::from(self.deltas.map_or(0, |deltas| deltas.get(row).0))
    }

    /// Calls `see` with each patched row of `block`, counted from its first.
    fn for_each_patch(&self, block: usize, mut see: impl FnMut(usize)) {
        if let Some(patches) = self.patches {
            patches
                .of_block(block)
                .for_each(|index| see(patches.row(index)));
        }
    }
}

impl Comparison {
    /// Whether it holds for `a` and `b`.
    fn holds(self, a: i128, b: i128) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }
    }

    /// The differences `dx - dy` for which `x + dx` and `y + dy` pass, where `apart` is `y - x`,
    /// and whether those outside pass instead.
    fn differences(self, apart: i128) -> (RangeInclusive<i128>, bool) {
        let (least, most) = (i128::MIN, i128::MAX);
        match self {
            Comparison::Equal => (apart..=apart, false),
            Comparison::NotEqual => (apart..=apart, true),
            Comparison::Less => (least..=apart - 1, false),
            Comparison::LessOrEqual => (least..=apart, false),
            Comparison::Greater => (apart + 1..=most, false),
            Comparison::GreaterOrEqual => (apart..=most, false),
        }
    }
}

/// Two chunks of as many rows, compared row by row.
struct Pair<'a> {
    sides: [Bands<'a>; 2],
    how: Comparison,
}

impl Pair<'_> {
    /// What the ends of `block` tell of all its unpatched rows.
    fn verdict(&self, a: &Ends, b: &Ends) -> Option<bool> {
        let mut verdict = None;
        for ((base_a, span_a), (base_b, span_b)) in a.iter().zip(b) {
            let (range, outside) = self.how.differences(base_b - base_a);
            let (low, high) = (-span_b, *span_a);
            let covers = *range.start() <= low && high <= *range.end();
            let misses = high < *range.start() || *range.end() < low;
            let passes = match (covers, misses) {
                (true, _) => !outside,
                (_, true) => outside,
                _ => return None,
            };
            if verdict.replace(passes).is_some_and(|known| known != passes) {
                return None;
            }
        }
        verdict
    }

    /// Writes which rows of `block` pass into `words`, which are zero; how many were looked at.
    fn mask(&self, block: usize, rows: usize, words: &mut [u64]) -> usize {
        let [a, b] = [self.sides[0].ends(block), self.sides[1].ends(block)];
        let verdict = self.verdict(&a, &b);
        let looked = match verdict {
            Some(false) => 0,
            Some(true) => {
                set_first(words, rows);
                0
            }
            None => {
                match self.sides[0].width(block).max(self.sides[1].width(block)) {
                    0 | 1 => self.mask_lanes::<u16>(block, (&a, &b), rows, words),
                    2 => self.mask_lanes::<u32>(block, (&a, &b), rows, words),
                    4 => self.mask_lanes::<u64>(block, (&a, &b), rows, words),
                    _ => self.mask_wide(block, (&a, &b), rows, words),
                }
                rows
            }
        };
        for side in &self.sides {
            side.for_each_patch(block, |row| {
                let [x, y] = [0, 1].map(|at| self.sides[at].value(block * BLOCK_ROWS + row));
                let bit = 1 << (row % WORD_ROWS);
                let word = &mut words[row / WORD_ROWS];
                *word = match self.how.holds(x, y) {
                    true => *word | bit,
                    false => *word & !bit,
                };
            });
        }
        looked
    }

    /// By differences of deltas of half the width of `W`.
    fn mask_lanes<W: KeyLane>(
        &self,
        block: usize,
        (a, b): (&Ends, &Ends),
        rows: usize,
        words: &mut [u64],
    ) {
        let mut lanes = [[W::cut(0); BLOCK_ROWS]; 2];
        for (side, lanes) in self.sides.iter().zip(&mut lanes) {
            side.load(block, &mut lanes[..rows]);
        }
        let [left, right] = &mut lanes;
        let bias = u64::MAX >> (u64::BITS - W::BITS / 2);
        let zero = W::cut(bias);
        for (x, y) in left[..rows].iter_mut().zip(&right[..rows]) {
            *x = zero.wrapping_add(*x).wrapping_sub(*y);
        }
        // No difference is all ones, which stands for a range without any.
        let (mut lows, mut spans) = ([W::MAX; GROUPS], [W::cut(0); GROUPS]);
        let bias = i128::from(bias);
        for (group, ((base_a, _), (base_b, _))) in a.iter().zip(b).enumerate() {
            let (range, _) = self.how.differences(base_b - base_a);
            let low = (*range.start()).max(-bias);
            let high = (*range.end()).min(bias);
            if low <= high {
                lows[group] = W::cut((low + bias) as u64);
                spans[group] = W::cut((high - low) as u64);
            }
        }
        (W::of(kernels()).range_mask)(&left[..rows], &lows, &spans, words);
        if self.how == Comparison::NotEqual {
            let mut all = [0; WORDS];
            set_first(&mut all, rows);
            let words = words.iter_mut().zip(all);
            words.for_each(|(word, all)| *word = !*word & all);
        }
    }

    /// Row by row, for deltas that no lane holds the differences of.
    fn mask_wide(&self, block: usize, (a, b): (&Ends, &Ends), rows: usize, words: &mut [u64]) {
        let mut lanes = [[0u64; BLOCK_ROWS]; 2];
        for (side, lanes) in self.sides.iter().zip(&mut lanes) {
            side.load(block, &mut lanes[..rows]);
        }
        for row in 0..rows {
            let group = row / GROUP_ROWS;
            let x = a[group].0 + i128::from(lanes[0][row]);
            let y = b[group].0 + i128::from(lanes[1][row]);
            words[row / WORD_ROWS] |= u64::from(self.how.holds(x, y)) << (row % WORD_ROWS);
        }
    }
}

/// Sets the first `rows` bits.
fn set_first(words: &mut [u64], rows: usize) {
    for (index, word) in words.iter_mut().enumerate() {
        let left = rows.saturating_sub(index * WORD_ROWS).min(WORD_ROWS) as u32;
        *word = u64::MAX.checked_shr(u64::BITS - left).unwrap_or(0);
    }
}

impl Chunk {
    /// Selects the rows of `within` in which this column and `other`, of as many rows, are not null
    /// and `how` holds; both must hold integers, which compare as numbers whatever their types.
    ///
    /// # Cost
    /// Where both columns lie as bases and narrow deltas, one pass over the deltas of blocks that
    /// their ends do not decide; else both are decoded.
    pub fn compare_columns(
        &self,
        how: Comparison,
        other: &Chunk,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        debug_assert_eq!(self.rows, other.rows);
        let mut rows = std::mem::take(&mut work.selection);
        rows.copy_from(within);
        for validity in [&self.validity, &other.validity] {
            retain(&mut rows, validity);
        }
        let bands = (self.codec.bands(self), other.codec.bands(other));
        match bands {
            (Some(a), Some(b)) if !work.decode_first => {
                let pair = Pair { sides: [a, b], how };
                compare_bands(&pair, &rows, out, work);
            }
            _ => compare_decoded(how, [self, other], &rows, out, work),
        }
        work.selection = rows;
    }
}

fn retain(rows: &mut Selection, validity: &Bitmap) {
    if !validity.is_empty() {
        rows.retain_words(validity.words());
    }
}

fn compare_bands(pair: &Pair<'_>, within: &Selection, out: &mut Selection, work: &mut Work) {
    let rows = within.rows();
    if within.shape() == Shape::Rows {
        let list = out.set_rows(rows);
        let passes = |row: &&u32| {
            let [x, y] = [0, 1].map(|at| pair.sides[at].value(**row as usize));
            pair.how.holds(x, y)
        };
        list.extend(within.list().iter().filter(passes));
        work.tally.direct += 2 * within.count() as u64;
        return;
    }
    let words = out.set_bits(rows);
    for (block, words) in (0..block_count(rows)).zip(words.chunks_mut(WORDS)) {
        let len = block_rows(block, rows).len();
        let looked = match within.block(block) {
            BlockSelection::None => 0,
            _ => pair.mask(block, len, words),
        };
        work.tally.direct += 2 * looked as u64;
        work.tally.skipped += 2 * (len - looked) as u64;
    }
    out.intersect(within);
}

/// What columns of other layouts fall back to: decode a unit of both, then compare.
fn compare_decoded(
    how: Comparison,
    sides: [&Chunk; 2],
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let rows = within.rows();
    let mut values = [&mut work.values, &mut work.others].map(std::mem::take);
    let holds = |values: &[Values; 2], index: usize| {
        let [x, y] = [0, 1].map(|at| sides[at].physical.value_of(values[at].keys[index]));
        how.holds(x, y)
    };
    if within.shape() == Shape::Rows {
        for (chunk, values) in sides.iter().zip(&mut values) {
            values.reset(chunk.physical);
            chunk.codec.gather(chunk, within.list(), values, work);
        }
        let list = out.set_rows(rows);
        let listed = within.list().iter().enumerate();
        list.extend(listed.filter(|(at, _)| holds(&values, *at)).map(|it| *it.1));
    } else {
        let unit = sides.map(|chunk| chunk.codec.unit_rows()).into_iter().max();
        let words = out.set_bits(rows);
        for start in (0..rows).step_by(unit.unwrap_or(BLOCK_ROWS)) {
            let range = start..rows.min(start + unit.unwrap_or(BLOCK_ROWS));
            for (chunk, values) in sides.iter().zip(&mut values) {
                values.reset(chunk.physical);
                chunk.codec.decode(chunk, range.clone(), values);
                work.tally.decoded += values.len() as u64;
            }
            for (index, row) in range.enumerate() {
                let bit = u64::from(holds(&values, index));
                words[row / WORD_ROWS] |= bit << (row % WORD_ROWS);
            }
        }
        out.intersect(within);
    }
    [work.values, work.others] = values;
}

#[cfg(test)]
mod tests;
