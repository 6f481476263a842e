//! Fold on encoded blocks.
//!
//! A hole is a delta like any other to the kernels; what it adds is taken away again where its
//! patch adds the true value. Only ends cannot be taken away: holes are left out of blocks that
//! could move the ends found so far. Ends of other blocks are not asked of their deltas.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold, SquareSum};
use crate::kernels::{Outliers, kernels};
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::{GroupFold, widest, with_deltas};
use crate::patch::mend;
use crate::selection::{BlockSelection, Selection, Shape, clear_tail};
use crate::types::Physical;

use super::View;
use super::rows::for_each_keys;
use super::scan::WORDS;

/// The deltas of a block that has none.
pub(super) static NO_DELTAS: [u8; BLOCK_ROWS] = [0; BLOCK_ROWS];

/// [`crate::codec::Codec::fold`] over whole blocks.
pub(super) fn fold_blocks(
    chunk: &Chunk,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let view = View::of(chunk);
    if asked.is_sum_alone() && within.shape() == Shape::All {
        work.tally.direct += chunk.rows as u64;
        out.count += chunk.rows as u64;
        return out.add_sum(sum_all(chunk, &view));
    }
    with_lanes!(view.patches.keys(), keys => {
        fold_each(chunk, (&view, keys), asked, within, out, work);
    }, else {});
}

fn fold_each<K: KeyLane>(
    chunk: &Chunk,
    (view, keys): (&View<'_>, &[K]),
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    for block in 0..block_count(chunk.rows) {
        let wanted = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        work.tally.direct += view.deltas.block_len(block) as u64;
        fold_block((chunk.physical, view, keys), (block, wanted), asked, out);
    }
}

/// Folds the rows of `wanted` of one block, all without one.
#[inline]
pub(super) fn fold_block<K: KeyLane>(
    (physical, view, keys): (Physical, &View<'_>, &[K]),
    (block, wanted): (usize, Option<&[u64]>),
    asked: Asked,
    out: &mut Fold,
) {
    let mut unpatched = [0; WORDS];
    let rows = view.deltas.block_len(block);
    let bases = view.block_bases(block);
    let patches = view.patches.of_block(block);
    let mut part = GroupFold::new(physical, bases, rows, wanted);
    let mut asked_of_deltas = asked;
    if asked.ends && part.is_enclosed(&view.block_maxima(block), out) {
        asked_of_deltas.ends = false;
    } else if asked.ends && !patches.is_empty() {
        let mask = leave_out(view, block, (rows, wanted), &mut unpatched);
        part = GroupFold::new(physical, bases, rows, Some(mask));
    }
    let patched = Patched {
        rows: &view.patches.rows()[patches.clone()],
        keys: &keys[patches],
        bases: &bases,
        mask: wanted,
        zero: physical.flip(),
        reach: widest(usize::from(view.deltas.widths[block])),
        left_out: asked_of_deltas.ends,
    };
    with_deltas!(view.deltas, block, deltas => {
        part.fold(deltas, asked_of_deltas, out);
        patched.fold(deltas, asked, out);
    }, zero {
        part.fold_bases(asked_of_deltas, out);
        patched.fold(&NO_DELTAS, asked, out);
    });
}

/// [`crate::codec::Codec::fold`] over listed rows.
pub(super) fn fold_rows(
    chunk: &Chunk,
    asked: Asked,
    rows: &[u32],
    out: &mut Fold,
    work: &mut Work,
) {
    work.tally.direct += rows.len() as u64;
    let zero = chunk.physical.flip();
    let (mut sum, mut ends) = (0, (u64::MAX, 0));
    for_each_keys::<false>(&View::of(chunk), rows, |_, keys| {
        if asked.sum {
            sum += sum_flat(keys);
        }
        if asked.squares {
            let sizes = keys.iter().map(|key| u128::from(key.abs_diff(zero)));
            sizes.for_each(|size| out.squares.add(size * size));
        }
        if asked.ends {
            ends = keys.iter().fold(ends, |(min, max), key| {
                (u64::min(min, *key), u64::max(max, *key))
            });
        }
    });
    out.count += rows.len() as u64;
    if asked.sum {
        out.add_sum(sum as i128 - (u128::from(zero) * rows.len() as u128) as i128);
    }
    if asked.ends && !rows.is_empty() {
        out.add_end(i128::from(ends.0));
        out.add_end(i128::from(ends.1));
    }
}

/// The rows of `mask` that have no patch.
fn leave_out<'a>(
    view: &View<'_>,
    block: usize,
    (rows, mask): (usize, Option<&[u64]>),
    words: &'a mut [u64; WORDS],
) -> &'a [u64] {
    let words = &mut words[..rows.div_ceil(WORD_ROWS)];
    match mask {
        Some(mask) => words.copy_from_slice(mask),
        None => {
            words.fill(u64::MAX);
            clear_tail(words, rows);
        }
    }
    for index in view.patches.of_block(block) {
        let row = view.patches.row(index);
        words[row / WORD_ROWS] &= !(1 << (row % WORD_ROWS));
    }
    words
}

/// The patches of one block.
struct Patched<'a, K> {
    rows: &'a [u16],
    keys: &'a [K],
    bases: &'a [u64; GROUPS],
    /// The rows that are folded, if not all.
    mask: Option<&'a [u64]>,
    /// The key of zero.
    zero: u64,
    /// The largest delta there can be.
    reach: u64,
    /// Whether the rows of patches were left out of the fold so far, or folded as their holes are.
    left_out: bool,
}

impl<K: KeyLane> Patched<'_, K> {
    /// Adds the selected patches, and takes away their holes unless these were left out.
    fn fold<D: KeyLane>(&self, deltas: &[D], asked: Asked, out: &mut Fold) {
        if self.rows.is_empty() {
            return;
        }
        if !self.left_out && (size_of::<K>() <= 4 || !asked.squares) {
            let outliers = Outliers {
                rows: self.rows,
                keys: self.keys,
                bases: self.bases,
                reach: self.reach,
                mask: self.mask,
                zero: self.zero,
                squares: asked.squares,
                ends: asked.ends,
            };
            return mend(&outliers, asked, out);
        }
        if asked.ends {
            self.fold_ends(out);
        }
        if asked.sum || asked.squares {
            self.replace(deltas, asked, out);
        }
    }

    /// All ones where `row` is selected, else nothing.
    #[inline(always)]
    fn ones_if_kept(&self, row: u16) -> u64 {
        let row = usize::from(row);
        self.mask.map_or(u64::MAX, |words| {
            (words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1).wrapping_neg()
        })
    }

    #[inline(always)]
    fn hole<D: KeyLane>(&self, deltas: &[D], row: u16) -> u64 {
        let row = usize::from(row);
        self.bases[row / GROUP_ROWS % GROUPS].wrapping_add(deltas[row].key())
    }

    fn fold_ends(&self, out: &mut Fold) {
        let (mut min, mut max, mut count) = (u64::MAX, 0, 0);
        for (row, key) in self.rows.iter().zip(self.keys) {
            let kept = self.ones_if_kept(*row);
            min = min.min(key.key() | !kept);
            max = max.max(key.key() & kept);
            count += kept & 1;
        }
        if count > 0 {
            out.add_end(i128::from(min));
            out.add_end(i128::from(max));
        }
        if self.left_out {
            out.count += count;
        }
    }

    /// Adds the values of patches and takes away, unless they were left out, those of holes.
    fn replace<D: KeyLane>(&self, deltas: &[D], asked: Asked, out: &mut Fold) {
        let value = |key: u64| i128::from(key) - i128::from(self.zero);
        let (mut sum, mut less) = (0, SquareSum::default());
        for (row, key) in self.rows.iter().zip(self.keys) {
            if self.ones_if_kept(*row) == 0 {
                continue;
            }
            let key = value(key.key());
            sum += key;
            if asked.squares {
                out.squares.add_square(key);
            }
            if self.left_out {
                continue;
            }
            let hole = value(self.hole(deltas, *row));
            sum -= hole;
            if asked.squares {
                less.add_square(hole);
            }
        }
        if asked.sum {
            out.add_sum(sum);
        }
        out.squares.unmerge(less);
    }
}

/// What outliers add to the sum of all values in place of their holes.
fn sum_of_outliers<K: KeyLane>(view: &View<'_>, keys: &[K]) -> i128 {
    let blocks = view.deltas.widths.iter().enumerate();
    let sums = blocks.map(|(block, width)| {
        let patches = view.patches.of_block(block);
        let outliers = Outliers {
            rows: &view.patches.rows()[patches.clone()],
            keys: &keys[patches],
            bases: &view.block_bases(block),
            reach: widest(usize::from(*width)),
            mask: None,
            zero: 0,
            squares: false,
            ends: false,
        };
        (K::of(kernels()).outliers)(&outliers).more
    });
    sums.sum()
}

fn sum_flat<K: KeyLane>(keys: &[K]) -> u128 {
    (K::of(kernels()).sum_flat)(keys)
}

/// The sum of all values: bases times their rows, deltas in runs of one width, patches in place of
/// their holes.
fn sum_all(chunk: &Chunk, view: &View<'_>) -> i128 {
    view.deltas.prefetch_start();
    view.patches.prefetch_start();
    let full = chunk.rows / BLOCK_ROWS;
    let mut keys = (kernels().u64.sum_flat)(&view.bases[..full * GROUPS]) * GROUP_ROWS as u128;
    keys += view.deltas.sum(full);
    if full < view.deltas.widths.len() {
        for row in full * BLOCK_ROWS..chunk.rows {
            keys += u128::from(view.unpatched_key(row));
        }
    }
    let mut correction = 0;
    if !view.patches.is_empty() {
        with_lanes!(view.patches.keys(), keys => {
            correction = sum_of_outliers(view, keys);
        }, else {});
    }
    let flips = i128::from(chunk.physical.flip()) * chunk.rows as i128;
    keys as i128 + correction - flips
}
