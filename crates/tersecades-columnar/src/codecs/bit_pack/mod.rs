//! `bit_pack`: each block at the width its range needs, above its smallest key.
//!
//! ```text
//! section 0: bases   u64, the smallest key of each block    section 2: widths  u8, bits, 0 to 64
//! section 1: maxima  u64, the largest key of each block     section 3: offsets u32, blocks + 1,
//! section 4: packed, 128 x width bytes a block                         in steps of 128 bytes
//!
//! key(i) = base + packed lane i
//! ```
//! A block is packed in the narrowest lane that holds its width, columns of bits side by side (see
//! the packing kernels), the last one filled up with zeros. Nothing is unpacked to be compared,
//! summed or fetched. The hole of a null holds the base. Outliers widen their block: keeping them
//! apart is the business of a codec around this one.
//! Example: keys `1000, 1003, 1001` are base 1000, maximum 1003 and the two-bit lanes `0, 3, 1`.
//!
//! Source: frame of reference (Goldstein, Ramakrishnan and Shaft, ICDE 1998) over the interleaved
//! layout of FastLanes (PVLDB 16(9), 2023); FOR + SIMD-BP128 of "Integer Compression in
//! NVRAM-centric Data Stores" (DaMoN'19) §3.1. Difference: comparisons and folds run on the packed
//! block.

mod made;
mod scan;

use std::ops::Range;

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::kernels::{BlockMask, Lane, Narrow, get_packed, kernels, packed_lanes, prefetch};
use crate::lane::{KeyLane, with_lanes};
use crate::predicate::Predicate;
use crate::primitive::arithmetic::{Change, map_decoded};
use crate::primitive::slice::slice_decoded;
use crate::selection::{Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

const BASES: usize = 0;
const MAXIMA: usize = 1;
const WIDTHS: usize = 2;
const OFFSETS: usize = 3;
const PACKED: usize = 4;

/// Bytes that a block takes for each bit of its width.
const STEP_BYTES: usize = BLOCK_ROWS / 8;
/// Bytes of a block's entries in the sections.
const BLOCK_BYTES: usize = 8 + 8 + 1 + 4;

/// Each block at the width its range needs.
#[derive(Debug)]
pub struct BitPack;

/// The sections of one chunk.
#[derive(Clone, Copy)]
struct View<'a> {
    rows: usize,
    bases: &'a [u64],
    maxima: &'a [u64],
    widths: &'a [u8],
    offsets: &'a [u32],
    packed: &'a [u8],
}

/// Runs `$body` with `$lanes` bound to the packed lanes of `$block`, typed by its width, which is
/// not 0; else `$zero`.
macro_rules! with_packed {
    ($view:expr, $block:expr, $lanes:ident => $body:expr, zero $zero:expr) => {
        match $view.widths[$block] {
            0 => $zero,
            1..=8 => {
                let $lanes = $view.lanes::<u8>($block);
                $body
            }
            9..=16 => {
                let $lanes = $view.lanes::<u16>($block);
                $body
            }
            17..=32 => {
                let $lanes = $view.lanes::<u32>($block);
                $body
            }
            _ => {
                let $lanes = $view.lanes::<u64>($block);
                $body
            }
        }
    };
}
use with_packed;

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        View {
            rows: chunk.rows,
            bases: chunk.body.section(BASES),
            maxima: chunk.body.section(MAXIMA),
            widths: chunk.body.section(WIDTHS),
            offsets: chunk.body.section(OFFSETS),
            packed: chunk.body.section(PACKED),
        }
    }

    fn width(&self, block: usize) -> u32 {
        u32::from(self.widths[block])
    }

    /// The packed lanes of a block whose width belongs to the lane.
    fn lanes<T: KeyLane>(&self, block: usize) -> &'a [T] {
        let start = self.offsets[block] as usize * STEP_BYTES;
        let bytes = packed_lanes::<T>(self.width(block)) * size_of::<T>();
        bytemuck::cast_slice(&self.packed[start..start + bytes])
    }

    /// The key of one row.
    #[inline]
    fn key(&self, row: usize) -> u64 {
        let (block, index) = (row / BLOCK_ROWS, row % BLOCK_ROWS);
        let delta = with_packed!(self, block,
            lanes => get_packed(lanes, self.width(block), index).key(),
            zero 0);
        self.bases[block].wrapping_add(delta)
    }

    /// Writes the keys of a block, and its base in the rows it does not have.
    fn decode(&self, block: usize, keys: &mut [u64; BLOCK_ROWS]) {
        let (base, width) = (self.bases[block], self.width(block));
        with_packed!(self, block, lanes => unpack(lanes, width, base, keys), zero keys.fill(base));
    }

    /// Whether the lanes of a block, whose sections have the right lengths, reach from its base to
    /// its maximum, with zeros after its rows.
    fn fits(&self, block: usize) -> bool {
        let rows = block_rows(block, self.rows).len();
        let inside: BlockMask = std::array::from_fn(|word| match rows.saturating_sub(word * 64) {
            0 => 0,
            rows => u64::MAX >> (WORD_ROWS - rows.min(WORD_ROWS)),
        });
        let after = inside.map(|word| !word);
        let width = self.width(block);
        let (low, high, padding) = with_packed!(self, block, lanes => {
            let (low, high) = ends(lanes, width, &inside);
            (low, high, ends(lanes, width, &after).1)
        }, zero (0, 0, 0));
        low == 0 && padding == 0 && self.bases[block].checked_add(high) == Some(self.maxima[block])
    }
}

fn unpack<T: KeyLane>(lanes: &[T], width: u32, base: u64, keys: &mut [u64; BLOCK_ROWS]) {
    (T::packs(kernels()).unpack_keys)(lanes, width, base, keys);
}

/// The smallest and largest lane of `mask`.
fn ends<T: KeyLane>(lanes: &[T], width: u32, mask: &BlockMask) -> (u64, u64) {
    let (low, high) = (T::packs(kernels()).min_max)(lanes, width, Some(mask));
    (low.key(), high.key())
}

/// The smallest and largest key of a block that are not null; zeros where there is none.
fn key_ends<T: KeyLane>(values: &[T], input: &Input<'_>, block: usize) -> (u64, u64) {
    let first = block * BLOCK_ROWS / WORD_ROWS;
    let last = first + values.len().div_ceil(WORD_ROWS);
    let mask = input
        .validity
        .map(|validity| &validity.words()[first..last]);
    let (mut min, mut max) = ([T::MAX; GROUPS], [T::cut(0); GROUPS]);
    let flip = T::cut(input.physical.flip());
    (T::of(kernels()).min_max)(values, flip, mask, &mut min, &mut max);
    let low = min.into_iter().map(KeyLane::key).min().unwrap_or(0);
    let high = max.into_iter().map(KeyLane::key).max().unwrap_or(0);
    if low <= high { (low, high) } else { (0, 0) }
}

fn width_of(low: u64, high: u64) -> u8 {
    (u64::BITS - (high - low).leading_zeros()) as u8
}

/// [`Codec::encode`] over lanes of one width.
fn encode<T: KeyLane>(lanes: &[T], input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) {
    let blocks = block_count(lanes.len());
    let (bases, maxima) = (&mut work.keys, &mut work.patch_keys);
    let (widths, offsets) = (&mut work.bytes, &mut work.ends);
    bases.clear();
    maxima.clear();
    widths.clear();
    offsets.clear();
    let mut end = 0;
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let (low, high) = key_ends(values, input, block);
        bases.push(low);
        maxima.push(high);
        widths.push(width_of(low, high));
        offsets.push(end);
        end += u32::from(width_of(low, high));
    }
    offsets.push(end);
    let body = &mut out.body;
    body.add_section::<u64>(BASES, blocks)
        .copy_from_slice(bases);
    body.add_section::<u64>(MAXIMA, blocks)
        .copy_from_slice(maxima);
    body.add_section::<u8>(WIDTHS, blocks)
        .copy_from_slice(widths);
    body.add_section::<u32>(OFFSETS, blocks + 1)
        .copy_from_slice(offsets);
    let mut packed = body.add_section::<u8>(PACKED, end as usize * STEP_BYTES);
    let mut keys = [0; BLOCK_ROWS];
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let (base, width) = (bases[block], u32::from(widths[block]));
        for (row, (key, value)) in keys.iter_mut().zip(values).enumerate() {
            *key = match input.is_valid(block * BLOCK_ROWS + row) {
                true => value.key() ^ input.physical.flip(),
                false => base,
            };
        }
        let keys = &keys[..values.len()];
        let out;
        (out, packed) = packed.split_at_mut(width as usize * STEP_BYTES);
        match width {
            0 => {}
            1..=8 => pack::<u8>(keys, base, width, out),
            9..=16 => pack::<u16>(keys, base, width, bytemuck::cast_slice_mut(out)),
            17..=32 => pack::<u32>(keys, base, width, bytemuck::cast_slice_mut(out)),
            _ => pack::<u64>(keys, base, width, bytemuck::cast_slice_mut(out)),
        }
    }
}

fn pack<D: Lane>(keys: &[u64], base: u64, width: u32, out: &mut [D])
where
    u64: Narrow<D>,
{
    let mut deltas = [D::default(); BLOCK_ROWS];
    (<u64 as Narrow<D>>::pair(kernels()).narrow)(keys, 0, &[base; GROUPS], &mut deltas);
    (D::packs(kernels()).pack)(&deltas[..keys.len()], width, out);
}

/// Mean width of the blocks that the sampled windows start in.
fn width<T: KeyLane>(lanes: &[T], sample: &Sample<'_>) -> f64 {
    let widths = sample.windows.iter().map(|window| {
        let block = window.start / BLOCK_ROWS;
        let values = &lanes[block_rows(block, lanes.len())];
        let (low, high) = key_ends(values, sample.input, block);
        usize::from(width_of(low, high))
    });
    widths.sum::<usize>() as f64 / sample.windows.len().max(1) as f64
}

impl Codec for BitPack {
    fn id(&self) -> u8 {
        9
    }

    fn name(&self) -> &'static str {
        "bit_pack"
    }

    fn summary(&self) -> &'static str {
        "each block packed at the width of its range, above its smallest key"
    }

    fn source(&self) -> &'static str {
        "FastLanes (PVLDB 16, 2023); FOR + SIMD-BP128 (DaMoN 2019 §3.1)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let width = with_lanes!(sample.input.lanes, lanes => width(lanes, sample),
            else return Estimate::from(f64::INFINITY));
        let rows = sample.encoded_rows;
        // The last block is filled up.
        let bytes = block_count(rows) as f64 * (width * STEP_BYTES as f64 + BLOCK_BYTES as f64);
        (bytes / rows.max(1) as f64).into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        with_lanes!(input.lanes, lanes => encode(lanes, input, out, work),
            else return Err(Error::internal("bit_pack takes lanes of at most eight bytes")));
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 8, 1, 4, 1]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(chunk.physical, Physical::Integer { .. }) {
            return Err(Error::corrupt("a bit_pack chunk of a type it cannot hold"));
        }
        let view = View::of(chunk);
        let blocks = block_count(chunk.rows);
        let lengths = [view.bases.len(), view.maxima.len(), view.widths.len()];
        if lengths != [blocks; 3] || view.offsets.len() != blocks + 1 {
            return Err(Error::corrupt(
                "bit_pack sections do not fit the number of blocks",
            ));
        }
        let (mut end, key_max) = (0usize, chunk.physical.key_max());
        let widest = 8 * chunk.physical.lane_bytes();
        for block in 0..blocks {
            let corrupt = || Error::corrupt("packed block out of range").block(block as u32);
            let width = usize::from(view.widths[block]);
            let here = view.offsets[block] as usize == end;
            end += width;
            let room = end * STEP_BYTES <= view.packed.len();
            if !here || !room || width > widest || view.maxima[block] > key_max {
                return Err(corrupt());
            }
            if !view.fits(block) {
                return Err(corrupt());
            }
        }
        let last = view.offsets.last().map(|last| *last as usize);
        match last == Some(end) && end * STEP_BYTES == view.packed.len() {
            true => Ok(()),
            false => Err(Error::corrupt("packed blocks end where they should not")),
        }
    }

    fn block_ends(&self, chunk: &Chunk, visit: &mut dyn FnMut(usize, u64, u64)) {
        let View { bases, maxima, .. } = View::of(chunk);
        for (block, (base, maximum)) in bases.iter().zip(maxima).enumerate() {
            visit(block, *base, *maximum);
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let view = View::of(chunk);
        let first = rows.start / BLOCK_ROWS;
        for block in first..block_count(rows.end).max(first) {
            let span = block_rows(block, chunk.rows);
            let start = out.keys.len();
            out.keys.resize(start + BLOCK_ROWS, 0);
            if let Some(keys) = out.keys[start..].first_chunk_mut() {
                view.decode(block, keys);
            }
            out.keys
                .truncate(start + rows.end.min(span.end) - span.start);
            let before = rows.start.max(span.start) - span.start;
            out.keys.drain(start..start + before);
        }
    }

    fn decode_bytes(
        &self,
        chunk: &Chunk,
        block: usize,
        out: &mut [u8; BLOCK_ROWS],
        _work: &mut Work,
    ) {
        let view = View::of(chunk);
        view.prefetch(block);
        let (base, width) = (view.bases[block] as u8, view.width(block));
        match width {
            0 => out.fill(base),
            _ => (kernels().packed_u8.unpack)(view.lanes(block), width, out),
        }
        if base > 0 && width > 0 {
            out.iter_mut()
                .for_each(|byte| *byte = byte.wrapping_add(base));
        }
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        let view = View::of(chunk);
        if within.shape() != Shape::Rows {
            return scan::compare_blocks(&view, predicate, within, out, work);
        }
        work.tally.direct += within.count() as u64;
        let list = out.set_rows(chunk.rows);
        let pass = |row: &u32| predicate.matches_key(view.key(*row as usize));
        list.extend(within.list().iter().copied().filter(pass));
    }

    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        if within.shape() == Shape::Rows {
            return fold_decoded(self, chunk, asked, within, out, work);
        }
        let view = View::of(chunk);
        scan::fold_blocks(&view, chunk.physical, asked, within, (out, work));
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let view = View::of(chunk);
        work.tally.direct += rows.len() as u64;
        let keys = rows.iter().map(|row| view.key(*row as usize));
        out.keys.extend(keys);
    }

    fn maps(&self, _chunk: &Chunk, change: Change) -> bool {
        matches!(change, Change::Add(_))
    }

    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        if !self.maps(chunk, change) || !made::shift(chunk, change, out) {
            return map_decoded(self, chunk, change, out, work, encode);
        }
        work.tally.direct += chunk.rows as u64;
        Ok(())
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        match made::cut(chunk, rows.clone(), out) {
            true => Ok(()),
            false => slice_decoded(self, chunk, rows, out, work, encode),
        }
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        let view = View::of(chunk);
        for row in rows {
            let (block, index) = (*row as usize / BLOCK_ROWS, *row as usize % BLOCK_ROWS);
            // Rows of a block lie in its bytes in proportion, whatever the lane.
            let within = index * usize::from(view.widths[block]) / 8;
            let start = view.offsets[block] as usize * STEP_BYTES;
            prefetch(view.packed, start + within);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests;
