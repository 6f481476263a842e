//! Adding two chunks encoded: bases add, narrow deltas add in place.
//!
//! ```text
//! x + y     bases add; deltas of a width add as they are where the spans of a block's groups,
//!           (max x - base x) + (max y - base y), fit that width, else in the width they fit
//! ```
//! A row that is patched on either side is computed by itself.
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
use crate::patch as patches;
use crate::primitive::arithmetic::{RESULT, add_decoded};
use crate::types::Physical;

use super::arithmetic::{bias, has_values, place, put};
use super::banded::{BASES, Banded, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};
use super::banded::{lay_out_blocks, lay_out_deltas, spreads};
use super::{section_mut, widen, width_of, with_deltas};

/// Blocks between the one at hand and the one whose ends are asked for.
const AHEAD_BLOCKS: usize = 8;

/// Whether [`add_banded`] works on the encoded form of `other`, whose blocks have `N` bases or one.
pub(crate) fn adds_banded<const N: usize>(other: &Chunk) -> bool {
    spreads::<N>(other)
}

/// [`crate::codec::Codec::add`] of chunks with `N` bases a block; the other may have one.
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

/// Adds two chunks of as many rows; false when only decoding tells the sums.
fn add<const N: usize>(
    chunk: &Chunk,
    other: &Chunk,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) -> bool {
    let mut memory = std::mem::take(&mut encode.keys);
    let right = Banded::spread(other, &mut memory);
    let added = match (Banded::<N>::of(chunk), right) {
        (Some(left), Some(right)) => add_sides([left, right], [chunk, other], out, encode),
        _ => false,
    };
    encode.keys = memory;
    added
}

fn add_sides<const N: usize>(
    sides: [Banded<'_, N>; 2],
    [chunk, other]: [&Chunk; 2],
    out: &mut Chunk,
    encode: &mut EncodeWork,
) -> bool {
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
    if sides.iter().any(|side| side.patches.is_some()) {
        add_patches(&sides, by, out, encode);
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
    sides: &[Banded<'_, N>; 2],
    by: i128,
    out: &mut Chunk,
    encode: &mut EncodeWork,
) {
    patches::begin(encode);
    for block in 0..block_count(out.rows) {
        patches::begin_block(encode);
        let mut rows = [0u64; BLOCK_ROWS / WORD_ROWS];
        for patches in sides.iter().filter_map(|side| side.patches) {
            for index in patches.of_block(block) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;
    use crate::encoder::ColumnEncoder;
    use crate::scheme::Scheme;
    use crate::selection::Selection;

    fn encode(array: &ArrayRef, scheme: &str) -> Chunk {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.require(scheme.parse::<Scheme>().unwrap()).unwrap();
        encoder.encode_new(array).unwrap()
    }

    /// Near 1,000 or 10^12, every hundredth far from its neighbours if wanted, some null.
    fn column(rows: i64, outliers: bool, nulls: bool) -> ArrayRef {
        let value = |row: i64| match (outliers && row % 100 == 7, row / 1_024 % 2) {
            (true, _) => -row * 1_000_003,
            (false, 0) => 1_000 + row * 7_919 % 200,
            (false, _) => 1_000_000_000_000 + row * 31 % 90_000,
        };
        let kept = |row: i64| !nulls || row % 1_500 > 300;
        Arc::new(Int64Array::from_iter(
            (0..rows).map(|row| kept(row).then(|| value(row))),
        ))
    }

    #[test]
    fn one_base_a_block_is_added_to_eight() {
        let (mut work, mut encode_work) = (Work::default(), EncodeWork::default());
        for rows in [0, 1, 127, 1_024, 1_025, 5_000] {
            for (outliers, nulls) in [(false, false), (true, false), (false, true), (true, true)] {
                let (a, b) = (column(rows, outliers, nulls), column(rows, false, !nulls));
                let eight = encode(&a, "base_delta");
                let one = encode(&b, "frame_of_reference");
                assert!(eight.adds(&one));
                let mut out = Chunk::default();
                let decoded = work.tally.decoded;
                eight
                    .add(&one, &mut out, &mut work, &mut encode_work)
                    .unwrap();
                out.codec().validate(&out).unwrap();
                assert_eq!(work.tally.decoded, decoded, "{rows} {outliers} {nulls}");
                let sums = out
                    .to_arrow(&Selection::all(out.rows()), &mut work)
                    .unwrap();
                let number = |array: &ArrayRef, row: i64| {
                    let array: &Int64Array = arrow_array::cast::AsArray::as_primitive(array);
                    let array = array.iter().nth(row as usize);
                    array.flatten()
                };
                for row in 0..rows {
                    let sum = number(&a, row).zip(number(&b, row)).map(|(a, b)| a + b);
                    assert_eq!(
                        number(&sums, row),
                        sum,
                        "{rows} {outliers} {nulls} row {row}"
                    );
                }
            }
        }
    }
}
