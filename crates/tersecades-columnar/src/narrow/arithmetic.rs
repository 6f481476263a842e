//! Adding encoded: bases move, narrow deltas add in place.
//!
//! ```text
//! x + c     bases and maxima move by c; deltas are copied; patches move too
//! -x        maxima become bases, deltas are counted down from the span of their group
//! x + y     bases add; deltas of a width add as they are where the spans of a block's groups,
//!           (max x - base x) + (max y - base y), fit that width, else in the width they fit
//! ```
//! A row that is patched on either side is computed by itself. A base that would leave 64 bits
//! belongs to a group without values, whose base may be any; else the caller decodes.
//!
//! Source: TerseCades (ATC'18) §3.3, which adds bytes where a batch allows and decodes where not.

use std::ops::Range;

use crate::aligned::CACHE_LINE_BYTES;
use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::{EncodeWork, Work};
use crate::error::Result;
use crate::kernels::{kernels, prefetch_past};
use crate::lane::KeyLane;
use crate::patch::{self as patches, Patches};
use crate::primitive::arithmetic::{Change, RESULT, add_decoded, map_decoded};
use crate::types::Physical;

use super::banded::{BASES, Banded, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};
use super::banded::{lay_out_blocks, lay_out_deltas};
use super::{section_mut, widen, widest, width_of, with_deltas};

/// Blocks between the one at hand and the one whose ends are asked for.
const AHEAD_BLOCKS: usize = 8;

/// How far the keys of results lie above the sum of the keys of `sides`.
fn bias(sides: &[Physical]) -> i128 {
    let flips = sides.iter().map(|side| i128::from(side.flip()));
    i128::from(RESULT.flip()) - flips.sum::<i128>()
}

/// Whether group `group` of the chunk, of `N` a block, has a value.
fn has_values<const N: usize>(chunk: &Chunk, group: usize) -> bool {
    let rows = group * (BLOCK_ROWS / N)..chunk.rows.min((group + 1) * (BLOCK_ROWS / N));
    match chunk.nulls {
        0 => !rows.is_empty(),
        _ => rows.into_iter().any(|row| chunk.validity.get(row)),
    }
}

/// `base` where values up to `span` above it are keys; any such base if the group has no values.
fn place(base: i128, span: u64, has_values: impl FnOnce() -> bool) -> Option<u64> {
    let top = i128::from(u64::MAX - span);
    if (0..=top).contains(&base) {
        return Some(base as u64);
    }
    (!has_values()).then(|| base.clamp(0, top) as u64)
}

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

/// [`crate::codec::Codec::add`] of chunks with `N` bases a block.
pub(crate) fn add_banded<const N: usize>(
    chunk: &Chunk,
    other: &Chunk,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    if !chunk.adds(other) || !add::<N>(chunk, other, out, encode) {
        return add_decoded(chunk, other, out, work, encode);
    }
    work.tally.direct += 2 * chunk.rows as u64;
    Ok(())
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

/// Adds two chunks of as many rows; false when only decoding tells the sums.
fn add<const N: usize>(
    chunk: &Chunk,
    other: &Chunk,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) -> bool {
    let (Some(left), Some(right)) = (Banded::<N>::of(chunk), Banded::of(other)) else {
        return false;
    };
    let sides = [left, right];
    out.begin_shift(chunk);
    out.join_validity(chunk, other);
    let blocks = block_count(chunk.rows);
    lay_out_blocks::<N>(out, blocks);
    let by = bias(&[chunk.physical, other.physical]);
    let flips = signed_flips(&[chunk.physical, other.physical]);
    let mut lines = 0;
    for block in 0..blocks {
        sides.iter().for_each(|side| prefetch(side, block));
        let span = flips.and_then(|flips| add_bases_signed(&sides, flips, block, out));
        let Some(span) = span.or_else(|| add_bases(&sides, by, block, out)) else {
            return false;
        };
        let width = width_of(span);
        section_mut::<u8>(out, WIDTHS)[block] = width as u8;
        section_mut::<u32>(out, OFFSETS)[block] = lines as u32;
        lines += (block_rows(block, chunk.rows).len() * width).div_ceil(CACHE_LINE_BYTES);
    }
    section_mut::<u32>(out, OFFSETS)[blocks] = lines as u32;
    lay_out_deltas(out, lines);
    let mut start = 0;
    while start < blocks {
        let widths = |block: usize| {
            let width = out.body.section::<u8>(WIDTHS)[block];
            [
                sides[0].deltas.widths[block],
                sides[1].deltas.widths[block],
                width,
            ]
        };
        let differs = |block: &usize| widths(*block) != widths(start);
        let end = (start..blocks).find(differs).unwrap_or(blocks);
        let run = widths(start);
        add_run(&sides, run, start..end, out, encode.past_caches);
        start = end;
    }
    if let [Some(left), Some(right)] = [left.patches, right.patches] {
        add_patches((&sides, [left, right]), by, out, encode);
        patches::write(&mut out.body, PATCHES, RESULT.lane_bytes(), encode);
    }
    true
}

/// Asks for the ends of blocks behind `block`, and for a line of the deltas, which are added after
/// all ends.
fn prefetch<const N: usize>(side: &Banded<'_, N>, block: usize) {
    let ahead = AHEAD_BLOCKS * N * size_of::<u64>();
    for ends in [side.bases, side.maxima] {
        prefetch_past(&ends[block * N..], ahead);
    }
    prefetch_past(side.deltas.bytes, block * CACHE_LINE_BYTES);
}

/// What turns the keys of both sides into `i64`, where all of their values are some.
fn signed_flips(sides: &[Physical; 2]) -> Option<[u64; 2]> {
    let unsigned = Physical::Integer {
        bytes: 8,
        signed: false,
    };
    (!sides.contains(&unsigned)).then(|| sides.map(|side| side.flip()))
}

/// [`add_bases`] by sums of `i64`; `None`, with what was written stale, where one overflows.
///
/// # Cost
/// Straight-line code for all groups, a tenth of the general way.
fn add_bases_signed<const N: usize>(
    [a, b]: &[Banded<'_, N>; 2],
    flips: [u64; 2],
    block: usize,
    out: &mut Chunk,
) -> Option<u64> {
    let groups = block * N..(block + 1) * N;
    let [base_a, max_a] = [a.bases, a.maxima].map(|ends| ends[groups.clone()].first_chunk());
    let [base_b, max_b] = [b.bases, b.maxima].map(|ends| ends[groups.clone()].first_chunk());
    let (base_a, max_a): (&[u64; N], &[u64; N]) = (base_a?, max_a?);
    let (base_b, max_b): (&[u64; N], &[u64; N]) = (base_b?, max_b?);
    let (mut bases, mut maxima) = ([0; N], [0; N]);
    let (mut spans, mut overflow) = (0, 0);
    for group in 0..N {
        let value_a = base_a[group].wrapping_sub(flips[0]);
        let value_b = base_b[group].wrapping_sub(flips[1]);
        let sum = value_a.wrapping_add(value_b);
        let (span_a, span_b) = (max_a[group] - base_a[group], max_b[group] - base_b[group]);
        let span = span_a.wrapping_add(span_b);
        let top = sum.wrapping_add(span);
        // The top bits: a sum on the other side of zero than both its parts, a top below its base,
        // a span that half a key cannot hold.
        overflow |= (value_a ^ sum) & (value_b ^ sum) | !sum & top;
        overflow |= span_a | span_b | span;
        spans |= span;
        bases[group] = sum.wrapping_add(RESULT.flip());
        maxima[group] = top.wrapping_add(RESULT.flip());
    }
    if overflow >> (u64::BITS - 1) == 1 {
        return None;
    }
    section_mut::<u64>(out, BASES)[groups.clone()].copy_from_slice(&bases);
    section_mut::<u64>(out, MAXIMA)[groups].copy_from_slice(&maxima);
    Some(spans)
}

/// Adds bases and maxima of a block; returns the widest span of its groups.
fn add_bases<const N: usize>(
    sides: &[Banded<'_, N>; 2],
    by: i128,
    block: usize,
    out: &mut Chunk,
) -> Option<u64> {
    let groups = block * N..(block + 1) * N;
    let (mut bases, mut maxima) = ([0; N], [0; N]);
    let mut widest_span = 0;
    let ends = sides.map(|view| (&view.bases[groups.clone()], &view.maxima[groups.clone()]));
    let [(base_a, max_a), (base_b, max_b)] = ends;
    for group in 0..N {
        let span = (max_a[group] - base_a[group]).checked_add(max_b[group] - base_b[group])?;
        let base = i128::from(base_a[group]) + i128::from(base_b[group]) + by;
        let base = place(base, span, || has_values::<N>(out, groups.start + group))?;
        (bases[group], maxima[group]) = (base, base + span);
        widest_span = widest_span.max(span);
    }
    section_mut::<u64>(out, BASES)[groups.clone()].copy_from_slice(&bases);
    section_mut::<u64>(out, MAXIMA)[groups].copy_from_slice(&maxima);
    Some(widest_span)
}

/// Adds the deltas of blocks that share their three widths.
fn add_run<const N: usize>(
    sides: &[Banded<'_, N>; 2],
    [a, b, width]: [u8; 3],
    blocks: Range<usize>,
    out: &mut Chunk,
    past_caches: bool,
) {
    let offsets = out.body.section::<u32>(OFFSETS);
    let line = |block: usize| offsets[block] as usize * CACHE_LINE_BYTES;
    let bytes = line(blocks.start)..line(blocks.end);
    let deltas = &mut section_mut::<u8>(out, DELTAS)[bytes];
    let [left, right] = sides;
    match (a == width, b == width) {
        _ if width == 0 => {}
        (true, true) => {
            let sides = [
                left.deltas.of_blocks(blocks.clone()),
                right.deltas.of_blocks(blocks),
            ];
            match width {
                1 => add_lanes::<u8>(sides, deltas, past_caches),
                2 => add_lanes::<u16>(sides, deltas, past_caches),
                4 => add_lanes::<u32>(sides, deltas, past_caches),
                _ => add_lanes::<u64>(sides, deltas, past_caches),
            }
        }
        (true, false) if b == 0 => deltas.copy_from_slice(left.deltas.of_blocks(blocks)),
        (false, true) if a == 0 => deltas.copy_from_slice(right.deltas.of_blocks(blocks)),
        _ => {
            let size = BLOCK_ROWS * usize::from(width);
            for (block, deltas) in blocks.zip(deltas.chunks_mut(size)) {
                match width {
                    1 => add_widened::<u8, N>(sides, block, deltas),
                    2 => add_widened::<u16, N>(sides, block, deltas),
                    4 => add_widened::<u32, N>(sides, block, deltas),
                    _ => add_widened::<u64, N>(sides, block, deltas),
                }
            }
        }
    }
}

fn add_lanes<D: KeyLane>([a, b]: [&[u8]; 2], out: &mut [u8], past_caches: bool) {
    let table = D::of(kernels());
    let add = if past_caches {
        table.add_past
    } else {
        table.add
    };
    add(
        bytemuck::cast_slice(a),
        bytemuck::cast_slice(b),
        bytemuck::cast_slice_mut(out),
    );
}

/// Adds deltas of two widths, or such as need a wider one.
fn add_widened<D: KeyLane, const N: usize>(
    sides: &[Banded<'_, N>; 2],
    block: usize,
    out: &mut [u8],
) {
    let rows = sides[0].deltas.block_len(block);
    let mut lanes = [[0u64; BLOCK_ROWS]; 2];
    for (view, lanes) in sides.iter().zip(&mut lanes) {
        with_deltas!(view.deltas, block, deltas => {
            widen(deltas, &[0; GROUPS], &mut lanes[..rows]);
        }, zero {});
    }
    let [left, right] = &lanes;
    let mut sums = [0; BLOCK_ROWS];
    (kernels().u64.add)(left, right, &mut sums);
    let out: &mut [D] = bytemuck::cast_slice_mut(out);
    for (slot, sum) in out.iter_mut().zip(&sums) {
        *slot = D::cut(*sum);
    }
}

/// Computes the rows that are patched on either side.
fn add_patches<const N: usize>(
    (sides, patched): (&[Banded<'_, N>; 2], [Patches<'_>; 2]),
    by: i128,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) {
    patches::begin(encode);
    for block in 0..block_count(out.rows) {
        patches::begin_block(encode);
        let ranges = patched.each_ref().map(|patches| patches.of_block(block));
        if ranges.iter().all(Range::is_empty) {
            continue;
        }
        let mut rows = [0u64; BLOCK_ROWS / WORD_ROWS];
        for (patches, range) in patched.iter().zip(ranges) {
            for index in range {
                let row = patches.row(index);
                rows[row / WORD_ROWS] |= 1 << (row % WORD_ROWS);
            }
        }
        for (index, word) in rows.into_iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let row = index * WORD_ROWS + rest.trailing_zeros() as usize;
                let keys = sides.map(|view| i128::from(view.key(block * BLOCK_ROWS + row)));
                let key = u64::try_from(keys[0] + keys[1] + by).ok();
                put::<N>(block, row, key, out, encode);
                rest &= rest - 1;
            }
        }
    }
    patches::begin_block(encode);
}

/// Writes the delta of a row whose key is known, and its patch where the delta cannot hold it.
///
/// A row without a key is null on one side.
fn put<const N: usize>(
    block: usize,
    row: usize,
    key: Option<u64>,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) {
    let group = block * N + row / (BLOCK_ROWS / N);
    let base = section_mut::<u64>(out, BASES)[group];
    let width = usize::from(section_mut::<u8>(out, WIDTHS)[block]);
    let reach = widest(width);
    let key = key.unwrap_or(base);
    let delta = key.saturating_sub(base).min(reach);
    if key < base || key - base > reach {
        encode.patch_rows.push(row as u16);
        encode.patch_keys.push(key);
    } else {
        let maximum = &mut section_mut::<u64>(out, MAXIMA)[group];
        *maximum = key.max(*maximum);
    }
    let line = section_mut::<u32>(out, OFFSETS)[block] as usize;
    let at = line * CACHE_LINE_BYTES + row * width;
    let deltas = section_mut::<u8>(out, DELTAS);
    deltas[at..at + width].copy_from_slice(&delta.to_le_bytes()[..width]);
}

impl Chunk {
    /// Becomes a chunk of results without sections, its bytes stale.
    fn begin_shift(&mut self, source: &Chunk) {
        self.begin(
            source.codec,
            &arrow_schema::DataType::Int64,
            RESULT,
            source.rows,
        );
        self.nulls = source.nulls;
        self.validity.clone_from(&source.validity);
    }
}
