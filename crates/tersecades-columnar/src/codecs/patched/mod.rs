//! `patched`: outliers apart, everything else to the codec inside.
//!
//! ```text
//! sections 0-2: patches: starts, rows, keys (see `patches`)
//! inner chunk:  all values, each outlier replaced by the nearest end of the others
//! ```
//! The inner chunk's smallest and largest value are the ends of the range that is kept, and what
//! the holes of outliers hold (*saturated*), so the order of values is kept: a comparison asks the
//! inner chunk and corrects the rows of patches, if the two could differ at all. Folds take what
//! the holes added away again and add the outliers.
//! Example: `[3, 90000, 5, 4]` is the inner chunk `3, 5, 5, 4` and the patch `(row 1, 90000)`.
//!
//! Source: exceptions as in PFOR, Zukowski, Héman, Nes and Boncz, "Super-Scalar RAM-CPU Cache
//! Compression" (ICDE 2006), and FastPFOR, Lemire and Boytsov (2015), as a codec of its own.

mod fold;
mod kept;

use std::ops::Range;

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, block_count};
use crate::choose::{Estimate, SAMPLE_ROWS_MAX, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work, compare_decoded, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::{Goal, Tier};
use crate::input::{Input, Lanes};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::width_of;
use crate::patch::{self as patches, Patches};
use crate::predicate::{Coverage, Predicate};
use crate::primitive::arithmetic::{Change, RESULT, map_decoded};
use crate::primitive::fold_where::RangeFold;
use crate::selection::{Selection, Shape};
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

use kept::Kept;

const PATCHES: usize = 0;

/// Nanoseconds that folding an outlier takes with AVX-512: scans of set D4 with and without.
const FOLD_NS: f64 = 1.0;

/// Outliers apart, everything else to the codec inside.
#[derive(Debug)]
pub struct Patched;

/// The patches and the chunk inside.
#[derive(Clone, Copy)]
struct View<'a> {
    patches: Patches<'a>,
    inner: &'a Chunk,
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Option<Self> {
        Some(View {
            patches: Patches::of(chunk, PATCHES),
            inner: chunk.body.inner[0].as_deref()?,
        })
    }

    /// Calls `visit` with row and key of every outlier.
    fn for_each_patch(&self, mut visit: impl FnMut(usize, u64)) {
        for block in 0..block_count(self.inner.rows) {
            for index in self.patches.of_block(block) {
                let row = block * BLOCK_ROWS + self.patches.row(index);
                visit(row, self.patches.key(index));
            }
        }
    }

    /// What the hole of an outlier holds.
    fn hole(&self, key: u64) -> u64 {
        let Stats { min, max, .. } = self.inner.stats;
        key.clamp(min, max)
    }

    /// Whether every outlier answers as its hole does, because the predicate treats all keys from
    /// an end of the range outwards alike.
    fn holes_agree(&self, predicate: &Predicate, stats: Stats) -> bool {
        let Stats { min, max, .. } = self.inner.stats;
        self.patches.is_empty()
            || (predicate.coverage(max, stats.max) != Coverage::Some
                && predicate.coverage(stats.min, min) != Coverage::Some)
    }

    /// Whether every hole holds the near end of the other values.
    fn holes_fit(&self) -> bool {
        let (mut rows, mut keys) = (Vec::new(), Vec::new());
        self.for_each_patch(|row, key| {
            rows.push(row as u32);
            keys.push(key);
        });
        let (mut values, mut work) = (Values::default(), Work::default());
        values.reset(self.inner.physical);
        let codec = self.inner.codec;
        codec.gather(self.inner, &rows, &mut values, &mut work);
        let mut both = keys.iter().zip(&values.keys);
        rows.is_empty()
            || self.inner.stats.known
                && both.all(|(key, hole)| key != hole && *hole == self.hole(*key))
    }
}

/// Copies `lanes` to `inside` with outliers saturated, and collects those.
fn split<T: KeyLane>(
    lanes: &[T],
    input: &Input<'_>,
    kept: Kept,
    inside: &mut Vec<T>,
    work: &mut EncodeWork,
) {
    let flip = input.physical.flip();
    let ends = [T::cut(kept.low ^ flip), T::cut(kept.high ^ flip)];
    let span = T::cut(kept.high - kept.low);
    inside.clear();
    inside.extend_from_slice(lanes);
    for (block, values) in inside.chunks_mut(BLOCK_ROWS).enumerate() {
        patches::begin_block(work);
        let mut usual = [0; BLOCK_ROWS / WORD_ROWS];
        // XOR with the sign bit equals subtracting half the range, so raw lanes can be tested.
        (T::of(kernels()).range_mask_flat)(values, ends[0], span, &mut usual);
        for (index, lanes) in values.chunks_mut(WORD_ROWS).enumerate() {
            let word = block * BLOCK_ROWS / WORD_ROWS + index;
            let valid = input.validity.map_or(u64::MAX, |valid| valid.words()[word]);
            let used = u64::MAX >> (WORD_ROWS - lanes.len());
            let mut odd = !usual[index] & valid & used;
            while odd != 0 {
                let row = odd.trailing_zeros() as usize;
                let key = lanes[row].key() ^ flip;
                work.patch_rows.push((index * WORD_ROWS + row) as u16);
                work.patch_keys.push(key);
                lanes[row] = ends[usize::from(key > kept.high)];
                odd &= odd - 1;
            }
        }
    }
    patches::begin_block(work);
}

/// The range to keep of `input`, from rows spread over it.
fn kept_of(input: &Input<'_>, work: &mut EncodeWork) -> Kept {
    let keys = &mut work.keys;
    keys.clear();
    let step = input.rows().div_ceil(SAMPLE_ROWS_MAX).max(1);
    let rows = (0..input.rows()).step_by(step);
    keys.extend(
        rows.filter(|row| input.is_valid(*row))
            .map(|row| input.key(row)),
    );
    keys.sort_unstable();
    kept::choose(keys, input.physical.lane_bytes(), work.goal.tier)
}

/// The sampled values as lanes, outliers saturated.
fn saturated<T: KeyLane>(keys: &[u64], kept: Kept, flip: u64) -> [T; SAMPLE_ROWS_MAX] {
    let mut lanes = [T::cut(0); SAMPLE_ROWS_MAX];
    for (lane, key) in lanes.iter_mut().zip(keys) {
        *lane = T::cut((*key).clamp(kept.low, kept.high) ^ flip);
    }
    lanes
}

impl Codec for Patched {
    fn id(&self) -> u8 {
        6
    }

    fn name(&self) -> &'static str {
        "patched"
    }

    fn summary(&self) -> &'static str {
        "outliers apart, all else to another codec, holes saturated so that order is kept"
    }

    fn source(&self) -> &'static str {
        "PFOR (Zukowski et al., ICDE 2006)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let input = sample.input;
        let (mut room, mut sorted_room) = ([0; SAMPLE_ROWS_MAX], [0; SAMPLE_ROWS_MAX]);
        let keys = sample.keys(&mut room);
        let range = keys.iter().max().zip(keys.iter().min());
        let width = range.map_or(0, |(high, low)| width_of(high - low));
        if sample.goal.tier == Tier::Hot && width < 2 {
            return f64::INFINITY.into();
        }
        let sorted = &mut sorted_room[..keys.len()];
        sorted.copy_from_slice(keys);
        sorted.sort_unstable();
        let (bytes, flip) = (input.physical.lane_bytes(), input.physical.flip());
        let kept = kept::choose(sorted, bytes, sample.goal.tier);
        let inside = |key: &&u64| (kept.low..=kept.high).contains(key);
        let outliers = keys.len() - keys.iter().filter(inside).count();
        if outliers == 0 {
            return f64::INFINITY.into();
        }
        let count = keys.len();
        let price = |lanes: Lanes<'_>| sample.inner(input.data_type, lanes);
        let mut estimate = match bytes {
            1 => price(Lanes::U8(&saturated(keys, kept, flip)[..count])),
            2 => price(Lanes::U16(&saturated(keys, kept, flip)[..count])),
            4 => price(Lanes::U32(&saturated(keys, kept, flip)[..count])),
            _ => price(Lanes::U64(&saturated(keys, kept, flip)[..count])),
        };
        let share = outliers as f64 / keys.len() as f64;
        estimate.bytes_per_row += share * (2 + bytes) as f64 + 4.0 / BLOCK_ROWS as f64;
        estimate.inner_ns += patches::correction_ns(share, FOLD_NS, sample.goal);
        estimate
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let kept = kept_of(input, work);
        patches::begin(work);
        macro_rules! encode {
            ($lanes:expr, $variant:ident, $buffer:ident) => {{
                let mut inside = std::mem::take(&mut work.$buffer);
                split($lanes, input, kept, &mut inside, work);
                let lanes = Lanes::$variant(&inside);
                let inner = Input {
                    lanes,
                    array: None,
                    ..*input
                };
                let encoded = out.body.encode_inner(0, &inner, work);
                work.$buffer = inside;
                encoded?;
            }};
        }
        match input.lanes {
            Lanes::U8(lanes) => encode!(lanes, U8, bytes),
            Lanes::U16(lanes) => encode!(lanes, U16, shorts),
            Lanes::U32(lanes) => encode!(lanes, U32, ends),
            Lanes::U64(lanes) => encode!(lanes, U64, keys),
            _ => {
                return Err(Error::internal(
                    "patched takes lanes of at most eight bytes",
                ));
            }
        }
        let bytes = input.physical.lane_bytes();
        patches::write(&mut out.body, PATCHES, bytes, work);
        if let Some(inner) = &out.body.inner[0] {
            out.stats = inner.stats;
            for key in &work.patch_keys {
                out.stats.min = out.stats.min.min(*key);
                out.stats.max = out.stats.max.max(*key);
            }
        }
        Ok(())
    }

    fn apart_ns(&self, chunk: &Chunk, goal: &Goal) -> f64 {
        let share = |view: View<'_>| view.patches.len() as f64 / chunk.rows.max(1) as f64;
        patches::correction_ns(View::of(chunk).map_or(0.0, share), FOLD_NS, goal)
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[4, 2, LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let view = View::of(chunk).filter(|view| {
            let integer = matches!(chunk.physical, Physical::Integer { .. });
            integer && view.inner.data_type == chunk.data_type && view.inner.rows == chunk.rows
        });
        let Some(view) = view else {
            return Err(Error::corrupt("a patched chunk lacks its values"));
        };
        view.patches.validate(chunk.rows)?;
        view.inner.codec.validate(view.inner)?;
        match view.holes_fit() {
            true => Ok(()),
            false => Err(Error::corrupt(
                "an outlier is none, or its hole is not at the end",
            )),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let Some(view) = View::of(chunk) else {
            return;
        };
        let start = out.keys.len();
        view.inner.codec.decode(view.inner, rows.clone(), out);
        for block in rows.start / BLOCK_ROWS..block_count(rows.end) {
            for index in view.patches.of_block(block) {
                let row = block * BLOCK_ROWS + view.patches.row(index);
                if rows.contains(&row) {
                    out.keys[start + row - rows.start] = view.patches.key(index);
                }
            }
        }
    }

    fn decode_bytes(
        &self,
        chunk: &Chunk,
        block: usize,
        out: &mut [u8; BLOCK_ROWS],
        work: &mut Work,
    ) {
        let Some(view) = View::of(chunk) else {
            return;
        };
        view.inner.codec.decode_bytes(view.inner, block, out, work);
        for index in view.patches.of_block(block) {
            out[view.patches.row(index)] = view.patches.key(index) as u8;
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
        let Some(view) = View::of(chunk) else {
            return out.set_none(chunk.rows);
        };
        if view.holes_agree(predicate, chunk.stats) {
            return view.inner.compare(predicate, within, out, work);
        }
        if within.shape() == Shape::Rows {
            return compare_decoded(self, chunk, predicate, within, out, work);
        }
        view.inner.compare(predicate, within, out, work);
        work.tally.direct += view.patches.len() as u64;
        if out.shape() == Shape::None {
            let list = out.set_rows(chunk.rows);
            view.for_each_patch(|row, key| {
                if predicate.matches_key(key) && within.contains(row) {
                    list.push(row as u32);
                }
            });
            return;
        }
        let words = out.bits_mut();
        view.for_each_patch(|row, key| {
            let bit = 1 << (row % WORD_ROWS);
            let word = &mut words[row / WORD_ROWS];
            *word = match predicate.matches_key(key) && within.contains(row) {
                true => *word | bit,
                false => *word & !bit,
            };
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
        let Some(view) = View::of(chunk) else {
            return;
        };
        if within.shape() == Shape::Rows {
            return fold_decoded(self, chunk, asked, within, out, work);
        }
        fold::fold_all(&view, asked, within, out, work);
    }

    fn range_fold(&self, chunk: &Chunk, predicate: &Predicate) -> Option<RangeFold> {
        let view = View::of(chunk).filter(|view| view.holes_agree(predicate, chunk.stats))?;
        let direct = view.inner.codec.range_fold(view.inner, predicate);
        direct.map(|_| fold::fold_range as RangeFold)
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let Some(view) = View::of(chunk) else {
            return;
        };
        let start = out.keys.len();
        view.inner.codec.gather(view.inner, rows, out, work);
        if view.patches.is_empty() {
            return;
        }
        let Stats { min, max, .. } = view.inner.stats;
        for (row, key) in rows.iter().zip(&mut out.keys[start..]) {
            if *key == min || *key == max {
                let (block, row) = (*row as usize / BLOCK_ROWS, *row as usize % BLOCK_ROWS);
                *key = view.patches.find(block, row).unwrap_or(*key);
            }
        }
    }

    fn maps(&self, chunk: &Chunk, change: Change) -> bool {
        let inner = View::of(chunk).map(|view| view.inner);
        matches!(change, Change::Add(_)) && inner.is_some_and(|inner| inner.maps(change))
    }

    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let Some(view) = View::of(chunk).filter(|_| self.maps(chunk, change)) else {
            return map_decoded(self, chunk, change, out, work, encode);
        };
        let mut inner = out.body.take_inner(0).unwrap_or_default();
        view.inner
            .codec
            .map(view.inner, change, &mut inner, work, encode)?;
        let key = |key| change.key(chunk.physical, key);
        if view.inner.stats.known {
            let Stats { min, max, .. } = view.inner.stats;
            inner.stats = Stats::from_ends(key(min), key(max));
        }
        out.begin_results(chunk.codec, chunk);
        out.body.inner[0] = Some(inner);
        view.patches.collect(chunk.rows, 0..chunk.rows, encode, key);
        patches::write(&mut out.body, PATCHES, RESULT.lane_bytes(), encode);
        Ok(())
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        if let Some(view) = View::of(chunk) {
            view.inner.codec.prefetch(view.inner, rows);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests;
