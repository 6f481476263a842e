//! Fold on encoded blocks.
//!
//! A hole is a delta like any other to the kernels; what it adds is taken away again where its
//! patch adds the true value. Only ends cannot be taken away: where they are asked for, holes are
//! left out. Blocks that could not move the ends found so far are passed over where only ends are
//! asked for; what stands for their holes is not looked at then.

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
use super::rows::for_each_key;
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
    if asked.is_sum_alone() && within.shape() == Shape::All {
        work.tally.direct += chunk.rows as u64;
        out.count += chunk.rows as u64;
        return out.add_sum(sum_all(chunk, &view));
    }
    let (mut unpatched, mut patched) = ([0; WORDS], Patched::new());
    for block in 0..block_count(chunk.rows) {
        let rows = view.deltas.block_len(block);
        let mut mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        work.tally.direct += rows as u64;
        let is_patched = !view.patches.of_block(block).is_empty();
        let wanted = mask;
        if is_patched && asked.ends {
            mask = Some(leave_out(&view, block, (rows, mask), &mut unpatched));
        }
        let part = GroupFold::new(chunk.physical, view.block_bases(block), rows, mask);
        if part.add_enclosed(&view.block_maxima(block), asked, out) {
            if is_patched {
                patched.read(&view, block, &[0u8; BLOCK_ROWS], wanted);
            }
        } else {
            with_deltas!(view.deltas, block, deltas => {
                part.fold(deltas, asked, out);
                if is_patched {
                    patched.read(&view, block, deltas, wanted);
                }
            }, zero {
                part.fold_bases(asked, out);
                if is_patched {
                    patched.read(&view, block, &[0u8; BLOCK_ROWS], wanted);
                }
            });
        }
        if is_patched {
            patched.fold(chunk.physical.flip(), asked, out);
        }
    }
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
    let (mut sum, mut min, mut max) = (0, u64::MAX, 0);
    for_each_key(&View::of(chunk), rows, |_, key| {
        sum += u128::from(key);
        (min, max) = (min.min(key), max.max(key));
        if asked.squares {
            let size = u128::from(key.abs_diff(zero));
            out.squares.add(size * size);
        }
    });
    out.count += rows.len() as u64;
    if asked.sum {
        out.add_sum(sum as i128 - (u128::from(zero) * rows.len() as u128) as i128);
    }
    if asked.ends && !rows.is_empty() {
        out.add_end(i128::from(min));
        out.add_end(i128::from(max));
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

/// The selected patches of one block: their keys and those that their holes stand for.
struct Patched {
    keys: [u64; BLOCK_ROWS],
    holes: [u64; BLOCK_ROWS],
    len: usize,
}

impl Patched {
    fn new() -> Self {
        Patched {
            keys: [0; BLOCK_ROWS],
            holes: [0; BLOCK_ROWS],
            len: 0,
        }
    }

    /// Takes in the patches of `block`, those of `mask` if there is one.
    fn read<D: KeyLane>(
        &mut self,
        view: &View<'_>,
        block: usize,
        deltas: &[D],
        mask: Option<&[u64]>,
    ) {
        let patches = view.patches.of_block(block);
        let rows = &view.patches.rows()[patches.clone()];
        with_lanes!(view.patches.keys(), keys => {
            let pairs = self.keys.iter_mut().zip(&keys[patches]);
            pairs.for_each(|(slot, key)| *slot = key.key());
        }, else return);
        let bases = view.block_bases(block);
        for (slot, row) in self.holes.iter_mut().zip(rows) {
            let row = usize::from(*row);
            *slot = bases[row / GROUP_ROWS % GROUPS].wrapping_add(deltas[row].key());
        }
        self.len = rows.len();
        if let Some(mask) = mask {
            self.keep(rows, mask);
        }
    }

    /// Drops patches outside `mask`, without a branch on what is as good as random.
    fn keep(&mut self, rows: &[u16], mask: &[u64]) {
        let mut kept = 0;
        for (index, row) in rows.iter().enumerate() {
            self.keys[kept] = self.keys[index];
            self.holes[kept] = self.holes[index];
            let row = usize::from(*row);
            kept += (mask[row / WORD_ROWS] >> (row % WORD_ROWS) & 1) as usize;
        }
        self.len = kept;
    }

    /// Adds the patches, and takes away the holes unless ends are asked for.
    fn fold(&self, zero: u64, asked: Asked, out: &mut Fold) {
        let (keys, holes) = (&self.keys[..self.len], &self.holes[..self.len]);
        let sum = |keys: &[u64]| (kernels().u64.sum_flat)(keys) as i128;
        if asked.sum {
            out.add_sum(match asked.ends {
                true => sum(keys) - (u128::from(zero) * self.len as u128) as i128,
                false => sum(keys) - sum(holes),
            });
        }
        if asked.squares {
            out.squares.merge(squares(keys, zero));
        }
        if asked.squares && !asked.ends {
            out.squares.unmerge(squares(holes, zero));
        }
        if asked.ends && !keys.is_empty() {
            let ends = keys.iter().fold((u64::MAX, 0), |(min, max), key| {
                (*key.min(&min), *key.max(&max))
            });
            out.count += self.len as u64;
            out.add_end(i128::from(ends.0));
            out.add_end(i128::from(ends.1));
        }
    }
}

/// The sum of the squares of the values behind `keys`, where `zero` is the key of zero.
fn squares(keys: &[u64], zero: u64) -> SquareSum {
    let sizes = || keys.iter().map(|key| key.abs_diff(zero));
    let mut sum = SquareSum::default();
    // Squares of a block below 2^64 each stay in 128 bits together.
    match sizes().fold(0, |bits, size| bits | size) >> 32 {
        0 => sum.add(sizes().map(|size| u128::from(size * size)).sum()),
        _ => sizes().for_each(|size| sum.add(u128::from(size) * u128::from(size))),
    }
    sum
}

/// The sum of the keys that the holes of a block stand for.
fn sum_of_holes(view: &View<'_>, block: usize) -> u128 {
    let rows = &view.patches.rows()[view.patches.of_block(block)];
    let bases = view.block_bases(block);
    let base = |row: usize| bases[row / GROUP_ROWS % GROUPS];
    let mut sum = 0;
    with_deltas!(view.deltas, block, deltas => {
        for row in rows.iter().map(|row| usize::from(*row)) {
            sum += u128::from(base(row).wrapping_add(deltas[row].key()));
        }
    }, zero {
        sum += rows.iter().map(|row| u128::from(base(usize::from(*row)))).sum::<u128>();
    });
    sum
}

fn sum_flat<K: KeyLane>(keys: &[K]) -> u128 {
    (K::of(kernels()).sum_flat)(keys)
}

/// The sum of all values: bases times their rows, deltas in runs of one width, patches in place of
/// their holes.
fn sum_all(chunk: &Chunk, view: &View<'_>) -> i128 {
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
        with_lanes!(view.patches.keys(), keys => correction += sum_flat(keys) as i128, else {});
        for block in 0..view.deltas.widths.len() {
            correction -= sum_of_holes(view, block) as i128;
        }
    }
    let flips = i128::from(chunk.physical.flip()) * chunk.rows as i128;
    keys as i128 + correction - flips
}
