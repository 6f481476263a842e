//! Cutting at blocks: bases, maxima, widths and deltas of whole blocks are copied as they are.

use std::ops::Range;

use crate::aligned::CACHE_LINE_BYTES;
use crate::block::{BLOCK_ROWS, GROUPS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::EncodeWork;
use crate::narrow::section_mut;
use crate::patch as patches;

use super::arithmetic::{lay_out_blocks, lay_out_deltas};
use super::{BASES, DELTAS, MAXIMA, OFFSETS, PATCHES, View, WIDTHS};

/// The chunk of `rows`, which start with a block.
pub(super) fn blocks(chunk: &Chunk, rows: Range<usize>, out: &mut Chunk, encode: &mut EncodeWork) {
    let view = View::of(chunk);
    let first = rows.start / BLOCK_ROWS;
    let count = block_count(rows.len());
    let kept = first..first + count;
    let groups = kept.start * GROUPS..kept.end * GROUPS;
    out.begin_slice(chunk.codec, chunk, rows.clone());
    lay_out_blocks(out, count);
    section_mut::<u64>(out, BASES).copy_from_slice(&view.bases[groups.clone()]);
    section_mut::<u64>(out, MAXIMA).copy_from_slice(&view.maxima[groups]);
    section_mut::<u8>(out, WIDTHS).copy_from_slice(&view.deltas.widths[kept.clone()]);
    let start = view.deltas.offsets[first];
    let mut end = 0;
    for block in 0..count {
        let bytes =
            block_rows(block, rows.len()).len() * usize::from(view.deltas.widths[first + block]);
        section_mut::<u32>(out, OFFSETS)[block] = view.deltas.offsets[first + block] - start;
        end = view.deltas.offsets[first + block] - start + bytes.div_ceil(CACHE_LINE_BYTES) as u32;
    }
    section_mut::<u32>(out, OFFSETS)[count] = end;
    let lines = end as usize;
    lay_out_deltas(out, lines);
    let start = start as usize * CACHE_LINE_BYTES;
    let deltas = &view.deltas.bytes[start..start + lines * CACHE_LINE_BYTES];
    section_mut::<u8>(out, DELTAS).copy_from_slice(deltas);
    view.patches.collect(chunk.rows, rows, encode, |key| key);
    patches::write(&mut out.body, PATCHES, out.physical.lane_bytes(), encode);
}
