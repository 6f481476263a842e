//! Single rows: tests and keys by position, without a look at the rest of their blocks.

use crate::block::{BLOCK_ROWS, GROUP_ROWS};
use crate::kernels::prefetch_rows;
use crate::lane::KeyLane;
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
    ///
    /// A saturated delta stands for a patch or for the end itself; where the range treats all keys
    /// beyond that end alike, the patches need not be searched.
    pub(super) fn select<D: KeyLane>(&self, view: &View<'_>, rows: &[u32], list: &mut Vec<u32>) {
        let deltas = view.deltas.all::<D>();
        let RowTest { range, stats } = *self;
        let (to_top, from_bottom) = (stats.none_above(range.high), stats.none_below(range.low));
        prefetch_rows(deltas, &rows[..rows.len().min(PREFETCH_ROWS)]);
        for (index, row) in rows.iter().enumerate() {
            if let Some(ahead) = rows.get(index + PREFETCH_ROWS) {
                prefetch_rows(deltas, std::slice::from_ref(ahead));
            }
            let at = *row as usize;
            let delta = deltas[at].key();
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

/// Visits the keys of listed rows.
///
/// Where all blocks have one width, which most chunks do, the deltas are one array.
#[inline]
pub(super) fn for_each_key(view: &View<'_>, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
    match view.deltas.uniform_width() {
        1 => for_each_uniform::<u8>(view, rows, visit),
        2 => for_each_uniform::<u16>(view, rows, visit),
        4 => for_each_uniform::<u32>(view, rows, visit),
        8 => for_each_uniform::<u64>(view, rows, visit),
        _ => rows
            .iter()
            .for_each(|row| visit(*row, view.key(*row as usize))),
    }
}

/// [`for_each_key`] where every delta is a `D`.
#[inline]
fn for_each_uniform<D: KeyLane>(view: &View<'_>, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
    let deltas = view.deltas.all::<D>();
    for row in rows {
        let at = *row as usize;
        let delta = deltas[at].key();
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
