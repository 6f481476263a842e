//! Single rows: tests and keys by position, without a look at the rest of their blocks.

use crate::block::{BLOCK_ROWS, GROUP_ROWS};
use crate::kernels::prefetch_rows;
use crate::lane::KeyLane;
use crate::narrow::with_deltas;
use crate::predicate::KeyRange;
use crate::stats::Stats;

use super::View;

/// How many rows ahead a delta is asked for.
///
/// Measured on rows picked at random, one in a hundred: 10 ns each; 14 to 19 where the loop runs
/// into its misses, or asks for all rows before it starts.
const PREFETCH_ROWS: usize = 64;

/// A test of single rows against one range.
pub(super) struct RowTest {
    pub(super) range: KeyRange,
    pub(super) stats: Stats,
}

impl RowTest {
    /// Appends the rows whose key is in the range to `list`.
    pub(super) fn select(&self, view: &View<'_>, rows: &[u32], list: &mut Vec<u32>) {
        match view.deltas.uniform_width() {
            1 => self.select_of(view, (view.deltas.all::<u8>(), 0), rows, list),
            2 => self.select_of(view, (view.deltas.all::<u16>(), 0), rows, list),
            4 => self.select_of(view, (view.deltas.all::<u32>(), 0), rows, list),
            8 => self.select_of(view, (view.deltas.all::<u64>(), 0), rows, list),
            _ => for_each_run(view, rows, |block, rows| {
                let first = block * BLOCK_ROWS;
                with_deltas!(view.deltas, block, deltas => {
                    self.select_of(view, (deltas, first), rows, list);
                }, zero {
                    let passes = |row: &&u32| self.range.contains(view.key(**row as usize));
                    list.extend(rows.iter().filter(passes));
                });
            }),
        }
    }

    /// [`RowTest::select`] where `deltas` are those of all rows from `first` on.
    ///
    /// A saturated delta stands for a patch or for the end itself; where the range treats all keys
    /// beyond that end alike, the patches need not be searched.
    #[inline]
    fn select_of<D: KeyLane>(
        &self,
        view: &View<'_>,
        (deltas, first): (&[D], usize),
        rows: &[u32],
        list: &mut Vec<u32>,
    ) {
        let RowTest { range, stats } = *self;
        let (to_top, from_bottom) = (stats.none_above(range.high), stats.none_below(range.low));
        if first == 0 {
            prefetch_rows(deltas, &rows[..rows.len().min(PREFETCH_ROWS)]);
        }
        for (index, row) in rows.iter().enumerate() {
            if let Some(ahead) = rows.get(index + PREFETCH_ROWS) {
                prefetch_rows(deltas, &[*ahead - first as u32]);
            }
            let at = *row as usize;
            let delta = deltas[at - first].key();
            let key = view.bases[at / GROUP_ROWS].wrapping_add(delta);
            let above = delta == D::MAX.key();
            let below = delta == 0;
            let alike = match (above, below) {
                (true, _) => key > range.high || (to_top && key >= range.low),
                (_, true) => key < range.low || (from_bottom && key <= range.high),
                _ => true,
            };
            let key = match alike {
                true => key,
                false => view
                    .patches
                    .find(at / BLOCK_ROWS, at % BLOCK_ROWS)
                    .unwrap_or(key),
            };
            if range.contains(key) {
                list.push(*row);
            }
        }
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
///
/// Where all blocks have one width, which most chunks do, the deltas are one array.
#[inline]
pub(super) fn for_each_key(view: &View<'_>, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
    let deltas = view.deltas;
    match deltas.uniform_width() {
        1 => for_each_key_of(view, (deltas.all::<u8>(), 0), rows, visit),
        2 => for_each_key_of(view, (deltas.all::<u16>(), 0), rows, visit),
        4 => for_each_key_of(view, (deltas.all::<u32>(), 0), rows, visit),
        8 => for_each_key_of(view, (deltas.all::<u64>(), 0), rows, visit),
        _ => for_each_run(view, rows, |block, rows| {
            let first = block * BLOCK_ROWS;
            with_deltas!(deltas, block, deltas => {
                for_each_key_of(view, (deltas, first), rows, &mut visit);
            }, zero {
                rows.iter().for_each(|row| visit(*row, view.key(*row as usize)));
            });
        }),
    }
}

/// [`for_each_key`] where `deltas` are those of all rows from `first` on.
#[inline]
fn for_each_key_of<D: KeyLane>(
    view: &View<'_>,
    (deltas, first): (&[D], usize),
    rows: &[u32],
    mut visit: impl FnMut(u32, u64),
) {
    for row in rows {
        let at = *row as usize;
        let delta = deltas[at - first].key();
        let saturated = delta == 0 || delta == D::MAX.key();
        let patch = match saturated {
            true => view.patches.find(at / BLOCK_ROWS, at % BLOCK_ROWS),
            false => None,
        };
        visit(
            *row,
            patch.unwrap_or_else(|| view.bases[at / GROUP_ROWS].wrapping_add(delta)),
        );
    }
}
