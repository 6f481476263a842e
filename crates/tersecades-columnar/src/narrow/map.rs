//! Adding a constant and changing the sign: bases move, narrow deltas stay in place.
//!
//! ```text
//! x + c     bases and maxima move by c; deltas are copied; patches move too
//! -x        maxima become bases, deltas are counted down from the span of their group
//! ```

use crate::aligned::CACHE_LINE_BYTES;
use crate::block::{BLOCK_ROWS, block_count};
use crate::chunk::Chunk;
use crate::codec::{EncodeWork, Work};
use crate::error::Result;
use crate::lane::KeyLane;
use crate::patch as patches;
use crate::primitive::arithmetic::{Change, RESULT, map_decoded};

use super::arithmetic::{bias, has_values, place, put};
use super::banded::{BASES, Banded, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};
use super::banded::{lay_out_blocks, lay_out_deltas};
use super::section_mut;

/// [`crate::codec::Codec::map`] of chunks with `N` bases a block.
pub(crate) fn map_banded<const N: usize>(
    chunk: &Chunk,
    change: Change,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    let mapped = match change {
        Change::Add(_) => shift::<N>(chunk, change, out, encode),
        Change::Multiply(-1) => negate::<N>(chunk, out, encode),
        Change::Multiply(_) => false,
    };
    if !mapped {
        return map_decoded(chunk.codec, chunk, change, out, work, encode);
    }
    work.tally.direct += chunk.rows as u64;
    Ok(())
}

/// Whether [`map_banded`] works on the encoded form.
pub(crate) fn maps_banded(change: Change) -> bool {
    matches!(change, Change::Add(_) | Change::Multiply(-1))
}

/// Adds the constant of `change`; false when only decoding tells the results.
fn shift<const N: usize>(
    chunk: &Chunk,
    change: Change,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) -> bool {
    let Some(view) = Banded::<N>::of(chunk) else {
        return false;
    };
    let by = bias(&[chunk.physical]) + change.apply(0);
    out.begin_shift(chunk);
    if !move_bases(chunk, &view, out, |base, _| i128::from(base) + by) {
        return false;
    }
    if let Some(patched) = view.patches {
        let key = |key| change.key(chunk.physical, key);
        patched.collect(chunk.rows, 0..chunk.rows, encode, key);
        patches::write(&mut out.body, PATCHES, RESULT.lane_bytes(), encode);
    }
    true
}

/// Turns every value into its opposite; false when only decoding tells the results.
fn negate<const N: usize>(chunk: &Chunk, out: &mut Chunk, encode: &mut EncodeWork) -> bool {
    let Some(view) = Banded::<N>::of(chunk) else {
        return false;
    };
    let zero = i128::from(chunk.physical.flip()) + i128::from(RESULT.flip());
    out.begin_shift(chunk);
    let opposite = |_, maximum: u64| zero - i128::from(maximum);
    if !move_bases(chunk, &view, out, opposite) {
        return false;
    }
    for block in 0..block_count(chunk.rows) {
        let spans: [u64; N] = std::array::from_fn(|group| {
            view.maxima[block * N + group] - view.bases[block * N + group]
        });
        let line = view.deltas.offsets[block] as usize * CACHE_LINE_BYTES;
        let (rows, width) = (view.deltas.block_len(block), view.deltas.widths[block]);
        let bytes = line..line + rows * usize::from(width);
        let deltas = &mut section_mut::<u8>(out, DELTAS)[bytes];
        match width {
            0 => {}
            1 => mirror::<u8>(deltas, &spans),
            2 => mirror::<u16>(deltas, &spans),
            4 => mirror::<u32>(deltas, &spans),
            _ => mirror::<u64>(deltas, &spans),
        }
    }
    let Some(patched) = view.patches else {
        return true;
    };
    patches::begin(encode);
    for block in 0..block_count(chunk.rows) {
        patches::begin_block(encode);
        for index in patched.of_block(block) {
            let key = u64::try_from(zero - i128::from(patched.key(index))).ok();
            put::<N>(block, patched.row(index), key, out, encode);
        }
    }
    patches::begin_block(encode);
    patches::write(&mut out.body, PATCHES, RESULT.lane_bytes(), encode);
    true
}

/// Counts the deltas of each group down from its span; what patched rows hold comes later.
fn mirror<D: KeyLane>(deltas: &mut [u8], spans: &[u64]) {
    let lanes: &mut [D] = bytemuck::cast_slice_mut(deltas);
    for (lanes, span) in lanes.chunks_mut(BLOCK_ROWS / spans.len()).zip(spans) {
        let span = D::cut(*span);
        for lane in lanes {
            *lane = span.wrapping_sub(*lane);
        }
    }
}

/// Gives `out` the deltas of `chunk`, and each group the base that `base` makes of its own and its
/// maximum; false when a group with values has none.
fn move_bases<const N: usize>(
    chunk: &Chunk,
    view: &Banded<'_, N>,
    out: &mut Chunk,
    base: impl Fn(u64, u64) -> i128,
) -> bool {
    let blocks = block_count(chunk.rows);
    lay_out_blocks::<N>(out, blocks);
    for group in 0..blocks * N {
        let (low, high) = (view.bases[group], view.maxima[group]);
        let moved = place(base(low, high), high - low, || {
            has_values::<N>(chunk, group)
        });
        let Some(moved) = moved else {
            return false;
        };
        section_mut::<u64>(out, BASES)[group] = moved;
        section_mut::<u64>(out, MAXIMA)[group] = moved + (high - low);
    }
    section_mut::<u8>(out, WIDTHS).copy_from_slice(view.deltas.widths);
    section_mut::<u32>(out, OFFSETS).copy_from_slice(view.deltas.offsets);
    let deltas = view.deltas.of_blocks(0..blocks);
    lay_out_deltas(out, deltas.len() / CACHE_LINE_BYTES);
    section_mut::<u8>(out, DELTAS).copy_from_slice(deltas);
    true
}
