//! Cutting at blocks: bases, maxima, widths and deltas of whole blocks are copied as they are.

use std::ops::Range;

use crate::aligned::CACHE_LINE_BYTES;
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::{EncodeWork, Work};
use crate::error::Result;
use crate::patch as patches;
use crate::primitive::slice::slice_decoded;

use super::banded::{BASES, Banded, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};
use super::banded::{lay_out_blocks, lay_out_deltas};
use super::section_mut;

/// [`crate::codec::Codec::slice`] of chunks with `N` bases a block.
pub(crate) fn slice_banded<const N: usize>(
    chunk: &Chunk,
    rows: Range<usize>,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    match slice_blocks::<N>(chunk, rows.clone(), out, encode) {
        true => Ok(()),
        false => slice_decoded(chunk.codec, chunk, rows, out, work, encode),
    }
}

/// Fills `out` with `rows`, if they start with a block; false when only decoding does.
fn slice_blocks<const N: usize>(
    chunk: &Chunk,
    rows: Range<usize>,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) -> bool {
    let starts_block = rows.start.is_multiple_of(BLOCK_ROWS);
    let Some(view) = Banded::<N>::of(chunk).filter(|_| starts_block) else {
        return false;
    };
    let first = rows.start / BLOCK_ROWS;
    let count = block_count(rows.len());
    let kept = first..first + count;
    let groups = kept.start * N..kept.end * N;
    out.begin_slice(chunk.codec, chunk, rows.clone());
    lay_out_blocks::<N>(out, count);
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
    if let Some(patched) = view.patches {
        patched.collect(chunk.rows, rows, encode, |key| key);
        patches::write(&mut out.body, PATCHES, out.physical.lane_bytes(), encode);
    }
    true
}
