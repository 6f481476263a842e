//! Fold on encoded blocks.
//!
//! A hole is a delta like any other to the kernels; what it adds is taken away again where its patch
//! adds the true value. Only ends cannot be taken away: where they are asked for, holes are left out.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold, SquareSum};
use crate::kernels::kernels;
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::{GroupFold, with_deltas};
use crate::selection::{BlockSelection, Selection, Shape, clear_tail};

use super::View;
use super::scan::WORDS;

/// [`crate::codec::Codec::fold`] over whole blocks.
pub(super) fn fold_blocks(
    chunk: &Chunk,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let view = View::of(chunk);
    let sum_alone = Asked {
        sum: true,
        ..Asked::default()
    };
    if asked == sum_alone && within.shape() == Shape::All {
        work.tally.direct += chunk.rows as u64;
        out.count += chunk.rows as u64;
        return out.add_sum(sum_all(chunk, &view));
    }
    let mut unpatched = [0; WORDS];
    for block in 0..block_count(chunk.rows) {
        let rows = view.deltas.block_len(block);
        let mut mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        work.tally.direct += rows as u64;
        let patched = !view.patches.of_block(block).is_empty();
        let patch_fold = PatchFold {
            zero: chunk.physical.flip(),
            asked,
            mask,
        };
        if patched && asked.ends {
            mask = Some(leave_out(&view, block, (rows, mask), &mut unpatched));
        }
        let part = GroupFold::new(chunk.physical, view.block_bases(block), rows, mask);
        with_deltas!(view.deltas, block, deltas => {
            part.fold(deltas, asked, out);
            if patched {
                patch_fold.fold(&view, block, deltas, out);
            }
        }, zero {
            part.fold_bases(asked, out);
            if patched {
                patch_fold.fold(&view, block, &[0u8; BLOCK_ROWS], out);
            }
        });
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

/// The fold of the patches of one block, less that of the holes if these are folded too.
struct PatchFold<'a> {
    /// The key of the value zero.
    zero: u64,
    asked: Asked,
    mask: Option<&'a [u64]>,
}

/// Sums of keys, and what is known of the values behind them.
#[derive(Default)]
struct PatchSums {
    count: u64,
    keys: u128,
    holes: u128,
    squares: SquareSum,
    hole_squares: SquareSum,
    min: u64,
    max: u64,
}

impl PatchFold<'_> {
    fn fold<D: KeyLane>(&self, view: &View<'_>, block: usize, deltas: &[D], out: &mut Fold) {
        let patches = view.patches.of_block(block);
        let bases = view.block_bases(block);
        let sums = with_lanes!(view.patches.keys(), keys => {
            let rows = &view.patches.rows()[patches.clone()];
            self.add(rows, &keys[patches], (&bases, deltas))
        }, else return);
        out.squares.merge(sums.squares);
        let taken_away = match self.asked.ends {
            false => {
                out.squares.unmerge(sums.hole_squares);
                sums.holes
            }
            true => u128::from(self.zero) * u128::from(sums.count),
        };
        if self.asked.sum {
            out.add_sum(sums.keys as i128 - taken_away as i128);
        }
        if self.asked.ends && sums.count > 0 {
            out.count += sums.count;
            out.add_end(i128::from(sums.min));
            out.add_end(i128::from(sums.max));
        }
    }

    /// Adds up patches without a branch on whether one is selected, which is as good as random.
    #[inline]
    fn add<K: KeyLane, D: KeyLane>(
        &self,
        rows: &[u16],
        keys: &[K],
        (bases, deltas): (&[u64; GROUPS], &[D]),
    ) -> PatchSums {
        let mut words = [u64::MAX; WORDS];
        if let Some(mask) = self.mask {
            words[..mask.len()].copy_from_slice(mask);
        }
        let mut sums = PatchSums {
            min: u64::MAX,
            ..PatchSums::default()
        };
        let square = |key: u64, kept: u64| {
            let size = key.abs_diff(self.zero) & kept;
            u128::from(size) * u128::from(size)
        };
        for (row, key) in rows.iter().zip(keys) {
            let (row, key) = (usize::from(*row) % BLOCK_ROWS, key.key());
            let selected = words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1;
            let kept = selected.wrapping_neg();
            let hole = bases[row / GROUP_ROWS].wrapping_add(deltas[row].key());
            sums.count += selected;
            sums.keys += u128::from(key & kept);
            sums.holes += u128::from(hole & kept);
            if self.asked.squares {
                sums.squares.add(square(key, kept));
                sums.hole_squares.add(square(hole, kept));
            }
            sums.min = sums.min.min(key | !kept);
            sums.max = sums.max.max(key & kept);
        }
        sums
    }
}

/// The sum of all values: bases times their rows, deltas in runs of one width, patches in place of
/// their holes.
fn sum_all(chunk: &Chunk, view: &View<'_>) -> i128 {
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
        for block in 0..view.deltas.widths.len() {
            for index in view.patches.of_block(block) {
                let hole = view.unpatched_key(block * BLOCK_ROWS + view.patches.row(index));
                correction += i128::from(view.patches.key(index)) - i128::from(hole);
            }
        }
    }
    let flips = i128::from(chunk.physical.flip()) * chunk.rows as i128;
    keys as i128 + correction - flips
}
