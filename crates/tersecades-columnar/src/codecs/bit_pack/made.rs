//! Packed blocks of chunks that are made of another: bases move, lanes are copied.

use std::ops::Range;

use crate::block::{BLOCK_ROWS, block_count};
use crate::chunk::Chunk;
use crate::narrow::{bias, has_values, place};
use crate::primitive::arithmetic::Change;

use super::{BASES, MAXIMA, OFFSETS, PACKED, STEP_BYTES, View, WIDTHS};

/// Adds the constant of `change`; false when only decoding tells the results.
pub(super) fn shift(chunk: &Chunk, change: Change, out: &mut Chunk) -> bool {
    let by = bias(&[chunk.physical]) + change.apply(0);
    out.begin_results(chunk.codec, chunk);
    let view = View::of(chunk);
    let moved = |block: usize, end: u64| {
        let span = view.maxima[block] - view.bases[block];
        let has_values = || has_values::<1>(chunk, block);
        let base = place(i128::from(view.bases[block]) + by, span, has_values)?;
        Some(base + (end - view.bases[block]))
    };
    view.copy(0..block_count(chunk.rows), moved, out)
}

/// Fills `out` with `rows`; false when they are no whole blocks.
pub(super) fn cut(chunk: &Chunk, rows: Range<usize>, out: &mut Chunk) -> bool {
    let blocks = rows.start / BLOCK_ROWS..block_count(rows.end);
    let ends = rows.end.is_multiple_of(BLOCK_ROWS) || rows.end == chunk.rows;
    if rows.is_empty() || !rows.start.is_multiple_of(BLOCK_ROWS) || !ends {
        return false;
    }
    out.begin_slice(chunk.codec, chunk, rows);
    View::of(chunk).copy(blocks, |_, end| Some(end), out)
}

impl View<'_> {
    /// Gives `out` the packed lanes of `blocks`, and ends that `end` makes of each block's own;
    /// false when it makes none.
    fn copy(
        &self,
        blocks: Range<usize>,
        end: impl Fn(usize, u64) -> Option<u64>,
        out: &mut Chunk,
    ) -> bool {
        for (section, ends) in [(BASES, self.bases), (MAXIMA, self.maxima)] {
            let slots = out.body.add_section::<u64>(section, blocks.len());
            for (slot, block) in slots.iter_mut().zip(blocks.clone()) {
                match end(block, ends[block]) {
                    Some(end) => *slot = end,
                    None => return false,
                }
            }
        }
        let widths = out.body.add_section::<u8>(WIDTHS, blocks.len());
        widths.copy_from_slice(&self.widths[blocks.clone()]);
        let [start, last] = [blocks.start, blocks.end].map(|block| self.offsets[block]);
        let offsets = out.body.add_section::<u32>(OFFSETS, blocks.len() + 1);
        for (slot, offset) in offsets.iter_mut().zip(&self.offsets[blocks.start..]) {
            *slot = offset - start;
        }
        let bytes = start as usize * STEP_BYTES..last as usize * STEP_BYTES;
        let packed = out.body.add_section::<u8>(PACKED, bytes.len());
        packed.copy_from_slice(&self.packed[bytes]);
        true
    }
}
