//! `frame_of_reference`: one base for each block and narrow deltas, nothing else.
//!
//! ```text
//! section 0: bases    u64, one a block     section 3: offsets  u32, blocks + 1, in cache lines
//! section 1: maxima   u64, one a block     section 4: deltas, 1,024 x width a block, 64-aligned
//! section 2: widths   u8, bytes per delta (0, 1, 2, 4, 8), one a block
//!
//! key(i) = bases[i / 1024] + deltas[i], at most maxima[i / 1024]
//! ```
//! The least overhead a block can have, 0.02 bytes a value, and the shortest loops. One outlier
//! widens its whole block, so values should be free of them, or be kept free by a codec around
//! this one. The hole of a null holds the base,
//! in sums any delta of its block's range.
//!
//! Example: keys `1000, 1003, 1001` are base 1000, maximum 1003 and the one-byte deltas `0, 3, 1`.
//!
//! Source: Goldstein, Ramakrishnan and Shaft, "Compressing Relations and Indexes" (ICDE 1998).

mod scan;

use std::ops::Range;

use crate::aligned::CACHE_LINE_BYTES;
use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::kernels::{kernels, prefetch_rows};
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::{
    BASES, DELTAS, Deltas, MAXIMA, OFFSETS, WIDTHS, add_banded, adds_banded, fill_holes,
    line_number, map_banded, maps_banded, narrow, prefetch_eighth, section_mut, slice_banded,
    widen, widest, width_of, with_deltas,
};
use crate::predicate::{KeyRange, Predicate};
use crate::primitive::arithmetic::Change;
use crate::primitive::fold_where::RangeFold;
use crate::primitive::pair::Bands;
use crate::selection::{Selection, Shape};
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

/// Rows of a sample that are priced together; values of a block drift this many times as far as
/// from one half of them to the other.
const PIECE_ROWS: usize = 256;
const PIECE_DRIFT: u64 = (2 * BLOCK_ROWS / PIECE_ROWS - 2) as u64;

/// How many listed rows ahead a delta is asked for.
const PREFETCH_ROWS: usize = 64;

/// The ends of two halves of the same kind are apart by less than one part in this many of their
/// range: what each of 128 values at random leaves free at an end.
const CHANCE_SHARE: u64 = 64;

/// One base for each block and narrow deltas.
#[derive(Debug)]
pub struct FrameOfReference;

/// The sections of one chunk.
#[derive(Clone, Copy)]
struct View<'a> {
    bases: &'a [u64],
    maxima: &'a [u64],
    deltas: Deltas<'a>,
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        View {
            bases: chunk.body.section(BASES),
            maxima: chunk.body.section(MAXIMA),
            deltas: Deltas::of(chunk, WIDTHS),
        }
    }

    /// Visits the keys of listed rows.
    #[inline]
    fn for_each_key(&self, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
        match self.deltas.uniform_width() {
            1 => self.for_each_uniform::<u8>(rows, visit),
            2 => self.for_each_uniform::<u16>(rows, visit),
            4 => self.for_each_uniform::<u32>(rows, visit),
            8 => self.for_each_uniform::<u64>(rows, visit),
            _ => rows.iter().for_each(|row| {
                let at = *row as usize;
                visit(*row, self.bases[at / BLOCK_ROWS] + self.deltas.get(at).0);
            }),
        }
    }

    /// [`View::for_each_key`] where every delta is a `D`.
    #[inline]
    fn for_each_uniform<D: KeyLane>(&self, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
        let deltas = self.deltas.all::<D>();
        for row in rows {
            let at = *row as usize;
            visit(*row, self.bases[at / BLOCK_ROWS] + deltas[at].key());
        }
    }

    /// Appends the listed rows whose key is in `range` to `list`.
    fn select(&self, rows: &[u32], range: KeyRange, list: &mut Vec<u32>) {
        match self.deltas.uniform_width() {
            1 => self.select_uniform::<u8>(rows, range, list),
            2 => self.select_uniform::<u16>(rows, range, list),
            4 => self.select_uniform::<u32>(rows, range, list),
            8 => self.select_uniform::<u64>(rows, range, list),
            _ => self.for_each_key(rows, |row, key| {
                list.extend(range.contains(key).then_some(row))
            }),
        }
    }

    /// [`View::select`] where every delta is a `D`: what passes is as good as random, so nothing
    /// branches on it, and deltas are asked for ahead.
    fn select_uniform<D: KeyLane>(&self, rows: &[u32], range: KeyRange, list: &mut Vec<u32>) {
        let deltas = self.deltas.all::<D>();
        let ahead = &rows[rows.len().min(PREFETCH_ROWS)..];
        prefetch_rows(deltas, &rows[..rows.len() - ahead.len()]);
        let mut kept = list.len();
        list.resize(kept + rows.len(), 0);
        for (index, row) in rows.iter().enumerate() {
            prefetch_rows(deltas, &[*ahead.get(index).unwrap_or(row)]);
            let at = *row as usize;
            let key = self.bases[at / BLOCK_ROWS].wrapping_add(deltas[at].key());
            list[kept] = *row;
            kept += usize::from(range.contains(key));
        }
        list.truncate(kept);
    }

    /// Whether base, maximum and deltas of a block fit one another.
    fn block_fits(&self, block: usize, key_max: u64) -> bool {
        let (base, maximum) = (self.bases[block], self.maxima[block]);
        let reach = widest(usize::from(self.deltas.widths[block]));
        let largest = with_deltas!(self.deltas, block, deltas => {
            deltas.iter().map(|delta| delta.key()).max().unwrap_or(0)
        }, zero 0);
        let span = maximum.checked_sub(base);
        maximum <= key_max && span.is_some_and(|span| largest <= span && span <= reach)
    }
}

/// Smallest and largest key of the rows that are not null.
fn ends<T: KeyLane>(values: &[T], flip: T, valid: Option<&[u64]>) -> Option<(T, T)> {
    let (mut min, mut max) = ([T::MAX; GROUPS], [T::cut(0); GROUPS]);
    (T::of(kernels()).min_max)(values, flip, valid, &mut min, &mut max);
    let low = min.into_iter().min().unwrap_or(T::MAX);
    let high = max.into_iter().max().unwrap_or(T::cut(0));
    (low <= high).then_some((low, high))
}

fn encode<T: KeyLane>(lanes: &[T], input: &Input<'_>, out: &mut Chunk) -> Result<()> {
    let blocks = block_count(lanes.len());
    out.body.add_section::<u64>(BASES, blocks);
    out.body.add_section::<u64>(MAXIMA, blocks);
    out.body.add_section::<u8>(WIDTHS, blocks);
    out.body.add_section::<u32>(OFFSETS, blocks + 1);
    out.body.add_section::<u8>(DELTAS, 0);
    let deltas_start = out.body.bytes.bytes().len();
    let flip = T::cut(input.physical.flip());
    let mut filled = [T::cut(0); BLOCK_ROWS];
    let (mut low, mut high) = (u64::MAX, 0);
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let next = lanes.get((block + 1) * BLOCK_ROWS..).unwrap_or(&[]);
        let valid = input.validity.map(|validity| {
            let first = block * BLOCK_ROWS / WORD_ROWS;
            &validity.words()[first..first + values.len().div_ceil(WORD_ROWS)]
        });
        (0..GROUPS / 2).for_each(|eighth| prefetch_eighth(next, eighth));
        let found = ends(values, flip, valid);
        let (min, max) = found.unwrap_or_default();
        if found.is_some() {
            (low, high) = (low.min(min.key()), high.max(max.key()));
        }
        let values = match valid {
            Some(valid) => fill_holes(values, flip, &[min; GROUPS], valid, &mut filled),
            None => values,
        };
        let width = width_of(max.key() - min.key());
        if block == 0 {
            out.body.bytes.reserve((blocks + 1) * BLOCK_ROWS * width);
        }
        section_mut::<u64>(out, BASES)[block] = min.key();
        section_mut::<u64>(out, MAXIMA)[block] = max.key();
        section_mut::<u8>(out, WIDTHS)[block] = width as u8;
        let start = out.body.bytes.grow(values.len() * width);
        section_mut::<u32>(out, OFFSETS)[block] =
            line_number((start - deltas_start) / CACHE_LINE_BYTES)?;
        let deltas = &mut out.body.bytes.bytes_mut()[start..][..values.len() * width];
        let between = |part| prefetch_eighth(next, GROUPS / 2 + part);
        narrow(values, flip, &[min; GROUPS], width, deltas, between);
    }
    let end = out.body.bytes.bytes().len();
    out.body.sections[DELTAS] = (deltas_start, end - deltas_start);
    section_mut::<u32>(out, OFFSETS)[blocks] =
        line_number((end - deltas_start) / CACHE_LINE_BYTES)?;
    out.stats = Stats::from_ends(low, high);
    Ok(())
}

/// Expected bytes of one value of a block like these rows.
fn price_piece(input: &Input<'_>, rows: Range<usize>) -> usize {
    let half = |rows: Range<usize>| {
        let valid = rows.filter(|row| input.is_valid(*row));
        valid.fold((u64::MAX, 0), |(low, high): (u64, u64), row| {
            let key = input.key(row);
            (low.min(key), high.max(key))
        })
    };
    let middle = rows.start + rows.len() / 2;
    let (first, second) = (half(rows.start..middle), half(middle..rows.end));
    let (low, high) = (first.0.min(second.0), first.1.max(second.1));
    if low > high {
        return 0;
    }
    let drift = match first.0 <= first.1 && second.0 <= second.1 {
        true => first.0.abs_diff(second.0).min(first.1.abs_diff(second.1)),
        false => 0,
    };
    let drift = if drift <= (high - low) / CHANCE_SHARE {
        0
    } else {
        drift
    };
    let range = (high - low).saturating_add(drift.saturating_mul(PIECE_DRIFT));
    width_of(range).min(input.physical.lane_bytes())
}

impl Codec for FrameOfReference {
    fn id(&self) -> u8 {
        5
    }

    fn name(&self) -> &'static str {
        "frame_of_reference"
    }

    fn summary(&self) -> &'static str {
        "one base per block, deltas of 0, 1, 2, 4 or 8 bytes, no exceptions"
    }

    fn source(&self) -> &'static str {
        "Goldstein, Ramakrishnan and Shaft, ICDE 1998"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let mut bytes = 0;
        for window in sample.windows {
            for start in window.clone().step_by(PIECE_ROWS) {
                let rows = start..(start + PIECE_ROWS).min(window.end);
                bytes += rows.len() * price_piece(sample.input, rows);
            }
        }
        let statistics = (8 + 8 + 1 + 4) as f64 / BLOCK_ROWS as f64;
        (bytes as f64 / sample.rows() as f64 + statistics).into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, _work: &mut EncodeWork) -> Result<()> {
        with_lanes!(input.lanes, lanes => encode(lanes, input, out),
            else Err(Error::internal("frame_of_reference takes lanes of at most eight bytes")))
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 8, 1, 4, 1]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(chunk.physical, Physical::Integer { .. }) {
            return Err(Error::corrupt(
                "a frame_of_reference chunk of a type it cannot hold",
            ));
        }
        let view = View::of(chunk);
        let blocks = block_count(chunk.rows);
        if [view.bases.len(), view.maxima.len()] != [blocks; 2] {
            return Err(Error::corrupt("one base and one maximum for each block"));
        }
        view.deltas.validate(chunk.physical.lane_bytes())?;
        let key_max = chunk.physical.key_max();
        match (0..blocks).find(|block| !view.block_fits(*block, key_max)) {
            None => Ok(()),
            Some(block) => {
                Err(Error::corrupt("deltas leave their block's range").block(block as u32))
            }
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
            let kept = rows.start.max(span.start)..rows.end.min(span.end);
            let start = out.keys.len();
            let base = view.bases[block];
            out.keys.resize(start + kept.len(), base);
            let kept = kept.start - span.start..kept.end - span.start;
            with_deltas!(view.deltas, block, deltas => {
                widen(&deltas[kept], &[base; GROUPS], &mut out.keys[start..]);
            }, zero {});
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
        if within.shape() != Shape::Rows {
            return scan::compare_blocks(chunk, predicate, within, out, work);
        }
        work.tally.direct += within.count() as u64;
        let list = out.set_rows(chunk.rows);
        let view = View::of(chunk);
        match predicate.as_range() {
            Some(range) => view.select(within.list(), range, list),
            None => view.for_each_key(within.list(), |row, key| {
                if predicate.matches_key(key) {
                    list.push(row);
                }
            }),
        }
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
            Shape::Rows => fold_decoded(self, chunk, asked, within, out, work),
            _ => scan::fold_blocks(chunk, asked, within, out, work),
        }
    }

    fn range_fold(&self, _chunk: &Chunk, _predicate: &Predicate) -> Option<RangeFold> {
        Some(scan::fold_range)
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        work.tally.direct += rows.len() as u64;
        out.keys.reserve(rows.len());
        View::of(chunk).for_each_key(rows, |_, key| out.keys.push(key));
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        Deltas::of(chunk, WIDTHS).prefetch(rows);
    }

    fn bands<'a>(&self, chunk: &'a Chunk) -> Option<Bands<'a>> {
        let view = View::of(chunk);
        Some(Bands {
            physical: chunk.physical,
            bases: view.bases,
            maxima: view.maxima,
            bases_a_block: 1,
            deltas: Some(view.deltas),
            patches: None,
        })
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
        map_banded::<1>(chunk, change, out, work, encode)
    }

    fn adds(&self, _chunk: &Chunk, other: &Chunk) -> bool {
        adds_banded::<1>(other)
    }

    fn add(
        &self,
        chunk: &Chunk,
        other: &Chunk,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        add_banded::<1>(chunk, other, out, work, encode)
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        slice_banded::<1>(chunk, rows, out, work, encode)
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests;
