//! `base_delta`: a base for each 128 values and narrow deltas, the paper's encoding.
//!
//! ```text
//! section 0: bases    u64, 8 a block       section 4: deltas, 1,024 x width a block, 64-aligned
//! section 1: maxima   u64, 8 a block       sections 5-7: patches (see `patches`)
//! section 2: widths   u8, bytes per delta (0, 1, 2, 4, 8), one a block
//! section 3: offsets  u32, blocks + 1, in cache lines from the start of section 4
//!
//! key(i) = bases[i / 128] + deltas[i], unless i is patched
//! ```
//! A value outside `base ..= base + widest delta` is a patch and its delta is *saturated* (0 or all
//! ones), so deltas keep the order of values and a comparison inside the range needs no patches.
//! `bases` and `maxima` bound the values that are not patched. The hole of a null holds the base,
//! in sums any delta of its group's range.
//!
//! Example: keys `1000, 1003, 1001, 999999` with one-byte deltas are base 1000, maximum 1003,
//! deltas `0, 3, 1, 255` and the patch `(row 3, 999999)`.
//!
//! Source: TerseCades (ATC'18) §3.3, figures 4 and 5. Differences: bases apart from deltas, eight
//! bases tested by one vector compare, patches at both ends, all widths, all comparisons.

mod check;
mod encode;
mod estimate;
mod fold;
mod fold_where;
mod rows;
mod scan;
mod speculate;

use std::ops::Range;

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::lane::with_lanes;
use crate::narrow::{
    BASES, DELTAS, Deltas, MAXIMA, OFFSETS, PATCHES, WIDTHS, add_banded, adds_banded, map_banded,
    maps_banded, slice_banded, widen, with_deltas,
};
use crate::patch::Patches;
use crate::predicate::Predicate;
use crate::primitive::arithmetic::Change;
use crate::primitive::fold_where::RangeFold;
use crate::primitive::keep_selected;
use crate::primitive::pair::Bands;
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

use fold::{fold_blocks, fold_rows};
use rows::{RowTest, for_each_key, for_each_keys};

/// A base for each 128 values and narrow deltas.
#[derive(Debug)]
pub struct BaseDelta;

/// The sections of one chunk.
#[derive(Clone, Copy)]
struct View<'a> {
    bases: &'a [u64],
    maxima: &'a [u64],
    deltas: Deltas<'a>,
    patches: Patches<'a>,
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        View {
            bases: chunk.body.section(BASES),
            maxima: chunk.body.section(MAXIMA),
            deltas: Deltas::of(chunk, WIDTHS),
            patches: Patches::of(chunk, PATCHES),
        }
    }

    fn block_bases(&self, block: usize) -> [u64; GROUPS] {
        of_block(self.bases, block)
    }

    fn block_maxima(&self, block: usize) -> [u64; GROUPS] {
        of_block(self.maxima, block)
    }

    /// Base plus delta of one row, whether or not a patch replaces it.
    fn unpatched_key(&self, row: usize) -> u64 {
        self.bases[row / GROUP_ROWS].wrapping_add(self.deltas.get(row).0)
    }

    /// The key of one row.
    #[inline]
    fn key(&self, row: usize) -> u64 {
        let (delta, widest) = self.deltas.get(row);
        if (delta == 0 || delta == widest)
            && let Some(key) = self.patches.find(row / BLOCK_ROWS, row % BLOCK_ROWS)
        {
            return key;
        }
        self.bases[row / GROUP_ROWS].wrapping_add(delta)
    }
}

/// What `keys`, one a group, has for the groups of `block`.
fn of_block(keys: &[u64], block: usize) -> [u64; GROUPS] {
    let mut groups = [0; GROUPS];
    groups.copy_from_slice(&keys[block * GROUPS..(block + 1) * GROUPS]);
    groups
}

impl Codec for BaseDelta {
    fn id(&self) -> u8 {
        2
    }

    fn name(&self) -> &'static str {
        "base_delta"
    }

    fn summary(&self) -> &'static str {
        "a base per 128 values, deltas of 0, 1, 2, 4 or 8 bytes, outliers as patches"
    }

    fn source(&self) -> &'static str {
        "TerseCades (ATC 2018) §3.3"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        estimate::estimate(sample.input, sample.windows).into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        with_lanes!(input.lanes, lanes => encode::encode(lanes, input, out, work),
            else Err(Error::internal("base_delta takes lanes of at most eight bytes")))
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 8, 1, 4, 1, 4, 2, LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(chunk.physical, Physical::Integer { .. }) {
            return Err(Error::corrupt(
                "a base_delta chunk of a type it cannot hold",
            ));
        }
        let view = View::of(chunk);
        let blocks = block_count(chunk.rows);
        if [view.bases.len(), view.maxima.len()] != [blocks * GROUPS; 2] {
            return Err(Error::corrupt(
                "base_delta sections do not fit the number of blocks",
            ));
        }
        view.deltas.validate(chunk.physical.lane_bytes())?;
        view.patches.validate(chunk.rows)?;
        let key_max = chunk.physical.key_max();
        let fits = |block: &usize| {
            let mut maxima = view.maxima[block * GROUPS..(block + 1) * GROUPS].iter();
            maxima.all(|maximum| *maximum <= key_max) && check::block_fits(&view, *block)
        };
        match (0..blocks).find(|block| !fits(block)) {
            None => Ok(()),
            Some(block) => {
                Err(Error::corrupt("deltas leave their group's range").block(block as u32))
            }
        }
    }

    fn block_ends(&self, chunk: &Chunk, visit: &mut dyn FnMut(usize, u64, u64)) {
        let view = View::of(chunk);
        for block in 0..block_count(chunk.rows) {
            let used = view.deltas.block_len(block).div_ceil(GROUP_ROWS);
            let groups = block * GROUPS..block * GROUPS + used;
            let low = view.bases[groups.clone()].iter().copied().min();
            let high = view.maxima[groups].iter().copied().max();
            let ends = (low.unwrap_or(u64::MAX), high.unwrap_or(0));
            let (low, high) = view
                .patches
                .of_block(block)
                .fold(ends, |(low, high), index| {
                    let key = view.patches.key(index);
                    (key.min(low), key.max(high))
                });
            visit(block, low, high);
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let view = View::of(chunk);
        let first = rows.start / BLOCK_ROWS;
        for block in first..block_count(rows.end).max(first) {
            let span = block_rows(block, chunk.rows);
            let kept = rows.start.max(span.start)..rows.end.min(span.end);
            let start = out.keys.len();
            decode_block(&view, block, &mut out.keys);
            out.keys.truncate(start + kept.end - span.start);
            out.keys.drain(start..start + kept.start - span.start);
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
        let range = predicate.as_range();
        let pays = |range| scan::blocks_pay(chunk, range, within.count());
        if within.shape() != Shape::Rows || range.is_some_and(pays) {
            return scan::compare_blocks(chunk, predicate, within, out, work);
        }
        let view = View::of(chunk);
        let list = out.set_rows(chunk.rows);
        work.tally.direct += within.count() as u64;
        if let Some(range) = range {
            let test = RowTest {
                range,
                stats: chunk.stats,
            };
            return test.select(&view, within.list(), list);
        }
        for_each_key(&view, within.list(), |row, key| {
            if predicate.matches_key(key) {
                list.push(row);
            }
        });
    }

    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        match within.shape() {
            Shape::Rows => fold_rows(chunk, asked, within.list(), out, work),
            _ => fold_blocks(chunk, asked, within, out, work),
        }
    }

    fn range_fold(&self, _chunk: &Chunk, _predicate: &Predicate) -> Option<RangeFold> {
        Some(fold_where::fold_range)
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let view = View::of(chunk);
        work.tally.direct += rows.len() as u64;
        out.keys.reserve(rows.len());
        for_each_keys::<true>(&view, rows, |_, keys| out.keys.extend_from_slice(keys));
    }

    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        let view = View::of(chunk);
        work.tally.direct += within.count() as u64;
        if within.shape() == Shape::Rows {
            return for_each_keys::<true>(&view, within.list(), |_, keys| {
                out.extend_from_slice(keys)
            });
        }
        let mut keys = std::mem::take(&mut work.values.keys);
        for block in 0..block_count(chunk.rows) {
            match within.block(block) {
                BlockSelection::None => {}
                BlockSelection::All => decode_block(&view, block, out),
                BlockSelection::Bits(words) => {
                    keys.clear();
                    decode_block(&view, block, &mut keys);
                    keep_selected(&mut keys, words);
                    out.extend_from_slice(&keys);
                }
            }
        }
        work.values.keys = keys;
    }

    fn maps(&self, _chunk: &Chunk, change: Change) -> bool {
        maps_banded(change)
    }

    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        map_banded::<GROUPS>(chunk, change, out, work, encode)
    }

    fn bands<'a>(&self, chunk: &'a Chunk) -> Option<Bands<'a>> {
        let view = View::of(chunk);
        Some(Bands {
            physical: chunk.physical,
            bases: view.bases,
            maxima: view.maxima,
            bases_a_block: GROUPS,
            deltas: Some(view.deltas),
            patches: Some(view.patches),
        })
    }

    fn adds(&self, _chunk: &Chunk, other: &Chunk) -> bool {
        adds_banded::<GROUPS>(other)
    }

    fn add(
        &self,
        chunk: &Chunk,
        other: &Chunk,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        add_banded::<GROUPS>(chunk, other, out, work, encode)
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        slice_banded::<GROUPS>(chunk, rows, out, work, encode)
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        Deltas::of(chunk, WIDTHS).prefetch(rows);
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

/// Appends the keys of a whole block.
fn decode_block(view: &View<'_>, block: usize, keys: &mut Vec<u64>) {
    let bases = view.block_bases(block);
    let start = keys.len();
    let rows = view.deltas.block_len(block);
    keys.resize(start + rows, 0);
    let out = &mut keys[start..];
    with_deltas!(view.deltas, block, deltas => widen(deltas, &bases, out), zero {
        for (group, keys) in out.chunks_mut(GROUP_ROWS).enumerate() {
            keys.fill(bases[group]);
        }
    });
    for index in view.patches.of_block(block) {
        out[view.patches.row(index)] = view.patches.key(index);
    }
}

const _: () = assert!(BLOCK_ROWS / WORD_ROWS == 16);
