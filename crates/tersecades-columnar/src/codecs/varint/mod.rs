//! `varint`: runs of integers of 0, 1, 2, 4 or 8 bytes, as short as their distance from zero.
//!
//! ```text
//! section 0: starts   u32, blocks + 1: first run of each block, and how many there are
//! section 1: offsets  u32, blocks + 1: where each block's bytes start, in steps of 8
//! section 2: runs     u16 each: (rows - 1) x 8 + code; width is 0, 1, 2, 4 or 8 bytes by code
//! section 3: bytes    per block the 8-byte integers of all runs, then those of 4, 2 and 1,
//!                     padded to 8
//!
//! key(i) = base(code) + integer, where base(code) is the key of the smallest value of that width
//! ```
//! A run's integers are two's complement numbers of its width, kept as keys: a signed byte is
//! value + 128. That is as short as zigzag and keeps their order, so a range is tested and a sum is
//! made on the narrow integers as they lie; widths stand apart inside a block so that every lane is
//! aligned. Width 0 is the value zero. The runs of a block are the cheapest there are: a new run
//! costs two bytes, a value too narrow for its run costs the difference.
//! Example: `[1, -2, 300, 0]` of type i32 is one run of four 2-byte integers.
//!
//! Source: Varint Encoding of "Compression: CPU vs. Memory Tradeoff" (LSM trees) §3. Differences:
//! signed numbers, widths 0 and 8, two bytes a run, runs chosen by cost instead of by each value's
//! own width, and blocks of 1,024 that are addressed alone.

mod cut;

use std::ops::Range;

use crate::bitmap::{WORD_ROWS, or_bits, set_range};
use crate::block::{BLOCK_ROWS, GROUPS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, compare_decoded, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::kernels::{Narrow, kernels};
use crate::keys::fold_keys;
use crate::lane::KeyLane;
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

use cut::{
    CODES, RUN_BYTES, STEP_BYTES, WIDTHS, append_integers, append_runs, base_of, needed_codes,
    read_run,
};

const STARTS: usize = 0;
const OFFSETS: usize = 1;
const RUNS: usize = 2;
const BYTES: usize = 3;

const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// Runs of integers of 0, 1, 2, 4 or 8 bytes.
#[derive(Debug)]
pub struct Varint;

/// The sections of one chunk.
#[derive(Clone, Copy)]
struct View<'a> {
    rows: usize,
    starts: &'a [u32],
    offsets: &'a [u32],
    runs: &'a [u16],
    bytes: &'a [u8],
    flip: u64,
}

/// One block: its runs, and its integers by width.
struct Block<'a> {
    runs: &'a [u16],
    bytes: &'a [u8],
    octets: &'a [u64],
    quads: &'a [u32],
    pairs: &'a [u16],
    flip: u64,
}

/// Rows of each code.
fn count_codes(runs: &[u16]) -> [usize; CODES] {
    let mut counts = [0; CODES];
    for (rows, code) in runs.iter().map(|run| read_run(*run)) {
        counts[code] += rows;
    }
    counts
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        View {
            rows: chunk.rows,
            starts: chunk.body.section(STARTS),
            offsets: chunk.body.section(OFFSETS),
            runs: chunk.body.section(RUNS),
            bytes: chunk.body.section(BYTES),
            flip: chunk.physical.flip(),
        }
    }

    fn block_runs(&self, block: usize) -> &'a [u16] {
        &self.runs[self.starts[block] as usize..self.starts[block + 1] as usize]
    }

    fn block(&self, block: usize) -> Block<'a> {
        let runs = self.block_runs(block);
        let [_, ones, pairs, quads, octets] = count_codes(runs);
        let rest = &self.bytes[self.offsets[block] as usize * STEP_BYTES..];
        let (octets, rest) = rest.split_at(octets * 8);
        let (quads, rest) = rest.split_at(quads * 4);
        let (pairs, rest) = rest.split_at(pairs * 2);
        Block {
            runs,
            bytes: &rest[..ones],
            octets: bytemuck::cast_slice(octets),
            quads: bytemuck::cast_slice(quads),
            pairs: bytemuck::cast_slice(pairs),
            flip: self.flip,
        }
    }

    /// Whether the runs of `block` fill its rows, at widths of the type, and its bytes.
    fn fits(&self, block: usize, lane_bytes: usize) -> bool {
        let (from, to) = (self.starts[block] as usize, self.starts[block + 1] as usize);
        let Some(runs) = self.runs.get(from..to) else {
            return false;
        };
        let narrow = |run: &u16| {
            let width = WIDTHS.get(read_run(*run).1);
            width.is_some_and(|width| *width <= lane_bytes)
        };
        if !runs.iter().all(narrow) {
            return false;
        }
        let counts = count_codes(runs);
        let sizes = counts.iter().zip(WIDTHS);
        let steps = sizes.map(|(rows, width)| rows * width).sum::<usize>();
        let steps = steps.div_ceil(STEP_BYTES);
        counts.iter().sum::<usize>() == block_rows(block, self.rows).len()
            && self.offsets[block].checked_add(steps as u32) == Some(self.offsets[block + 1])
    }
}

impl Block<'_> {
    /// Calls `visit` with rows, code and first integer, among those of its width, of every run.
    fn for_each_run(&self, mut visit: impl FnMut(Range<usize>, usize, usize)) {
        let (mut row, mut used) = (0, [0; CODES]);
        for (rows, code) in self.runs.iter().map(|run| read_run(*run)) {
            visit(row..row + rows, code, used[code]);
            row += rows;
            used[code] += rows;
        }
    }

    /// Writes the keys of the block.
    fn decode(&self, keys: &mut [u64]) {
        let bases: [u64; CODES] = std::array::from_fn(|code| base_of(code, self.flip));
        self.for_each_run(|rows, code, first| {
            let (keys, integers) = (&mut keys[rows.clone()], first..first + rows.len());
            match code {
                0 => keys.fill(bases[0]),
                1 => widen(&self.bytes[integers], bases[1], keys),
                2 => widen(&self.pairs[integers], bases[2], keys),
                3 => widen(&self.quads[integers], bases[3], keys),
                _ => widen(&self.octets[integers], bases[4], keys),
            }
        });
    }

    /// Sets the bits of the rows in one of `ranges`; `words` are zeros.
    fn compare(&self, ranges: &[KeyRange], words: &mut [u64]) {
        let mut passing = [[0; WORDS]; CODES];
        let base = |code| base_of(code, self.flip);
        for range in ranges {
            mark(self.bytes, base(1), *range, &mut passing[1]);
            mark(self.pairs, base(2), *range, &mut passing[2]);
            mark(self.quads, base(3), *range, &mut passing[3]);
            mark(self.octets, base(4), *range, &mut passing[4]);
        }
        let zero = ranges.iter().any(|range| range.contains(base(0)));
        self.for_each_run(|rows, code, first| match code {
            0 if zero => set_range(words, rows),
            0 => {}
            _ => or_bits(words, rows.start, &passing[code], first..first + rows.len()),
        });
    }

    /// Folds all values, squares not asked.
    fn fold(&self, physical: Physical, asked: Asked, out: &mut Fold) {
        let base = |code| base_of(code, self.flip);
        let zeros = count_codes(self.runs)[0];
        out.add_repeats(physical, base(0), zeros, asked);
        fold_lanes(self.bytes, base(1), physical, asked, out);
        fold_lanes(self.pairs, base(2), physical, asked, out);
        fold_lanes(self.quads, base(3), physical, asked, out);
        fold_lanes(self.octets, base(4), physical, asked, out);
    }
}

fn widen<D: KeyLane>(integers: &[D], base: u64, keys: &mut [u64])
where
    u64: Narrow<D>,
{
    (<u64 as Narrow<D>>::pair(kernels()).widen)(integers, &[base; GROUPS], 0, keys);
}

/// Sets the bits of the integers whose key is in `range`.
fn mark<D: KeyLane>(integers: &[D], base: u64, range: KeyRange, words: &mut [u64; WORDS]) {
    let top = base.saturating_add(D::MAX.key());
    if integers.is_empty() || range.high < base || range.low > top {
        return;
    }
    let low = range.low.max(base) - base;
    let high = range.high.min(top) - base;
    let mut part = [0; WORDS];
    (D::of(kernels()).range_mask_flat)(integers, D::cut(low), D::cut(high - low), &mut part);
    (kernels().bitmap.or)(words, &part);
}

fn fold_lanes<D: KeyLane>(
    integers: &[D],
    base: u64,
    physical: Physical,
    asked: Asked,
    out: &mut Fold,
) {
    if integers.is_empty() {
        return;
    }
    let table = D::of(kernels());
    let count = integers.len() as u64;
    out.count += count;
    if asked.sum {
        let bases = physical.value_of(base) * i128::from(count);
        out.add_sum(bases + (table.sum_flat)(integers) as i128);
    }
    if asked.ends {
        let (mut min, mut max) = ([D::MAX; GROUPS], [D::cut(0); GROUPS]);
        (table.min_max)(integers, D::cut(0), None, &mut min, &mut max);
        let low = min.into_iter().map(KeyLane::key).min().unwrap_or(0);
        let high = max.into_iter().map(KeyLane::key).max().unwrap_or(0);
        out.add_end(i128::from(base + low));
        out.add_end(i128::from(base + high));
    }
}

impl Codec for Varint {
    fn id(&self) -> u8 {
        11
    }

    fn name(&self) -> &'static str {
        "varint"
    }

    fn summary(&self) -> &'static str {
        "runs of integers of 0, 1, 2, 4 or 8 bytes, by their distance from zero"
    }

    fn source(&self) -> &'static str {
        "Compression: CPU vs. Memory Tradeoff (LSM trees) §3"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let (mut codes, mut runs) = ([0; BLOCK_ROWS], Vec::new());
        let mut bytes = 0;
        for window in sample.windows {
            for start in window.clone().step_by(BLOCK_ROWS) {
                let rows = start..window.end.min(start + BLOCK_ROWS);
                let count = needed_codes(sample.input, rows, &mut codes);
                bytes += append_runs(&codes[..count], &mut runs);
            }
        }
        bytes += runs.len() * RUN_BYTES as usize;
        let block_bytes = (4 + 4 + STEP_BYTES / 2) as f64;
        (bytes as f64 / sample.rows() as f64 + block_bytes / BLOCK_ROWS as f64).into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let (runs, bytes) = (&mut work.shorts, &mut work.bytes);
        let (starts, offsets) = (&mut work.ends, &mut work.patch_starts);
        runs.clear();
        bytes.clear();
        starts.clear();
        offsets.clear();
        let mut codes = [0; BLOCK_ROWS];
        for block in 0..block_count(input.rows()) {
            let rows = block_rows(block, input.rows());
            starts.push(runs.len() as u32);
            offsets.push((bytes.len() / STEP_BYTES) as u32);
            let first = runs.len();
            let count = needed_codes(input, rows.clone(), &mut codes);
            append_runs(&codes[..count], runs);
            append_integers(input, rows.start, &runs[first..], bytes);
        }
        starts.push(runs.len() as u32);
        offsets.push((bytes.len() / STEP_BYTES) as u32);
        let body = &mut out.body;
        let sections = [(STARTS, &*starts), (OFFSETS, &*offsets)];
        for (index, list) in sections {
            body.add_section::<u32>(index, list.len())
                .copy_from_slice(list);
        }
        body.add_section::<u16>(RUNS, runs.len())
            .copy_from_slice(runs);
        body.add_section::<u8>(BYTES, bytes.len())
            .copy_from_slice(bytes);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[4, 4, 2, 1]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(chunk.physical, Physical::Integer { .. }) {
            return Err(Error::corrupt("a varint chunk of a type it cannot hold"));
        }
        let view = View::of(chunk);
        let blocks = block_count(chunk.rows);
        let lengths = [view.starts.len(), view.offsets.len()];
        let first = |list: &[u32]| list.first() == Some(&0);
        let last = |list: &[u32]| list.last().map_or(0, |last| *last as usize);
        let whole = lengths == [blocks + 1; 2]
            && first(view.starts)
            && first(view.offsets)
            && last(view.starts) == view.runs.len()
            && last(view.offsets).checked_mul(STEP_BYTES) == Some(view.bytes.len());
        if !whole {
            return Err(Error::corrupt("varint sections do not fit one another"));
        }
        let lane_bytes = chunk.physical.lane_bytes();
        match (0..blocks).find(|block| !view.fits(*block, lane_bytes)) {
            None => Ok(()),
            Some(block) => {
                Err(Error::corrupt("runs do not fit the rows or bytes").block(block as u32))
            }
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let view = View::of(chunk);
        let first = rows.start / BLOCK_ROWS;
        for block in first..block_count(rows.end).max(first) {
            let span = block_rows(block, chunk.rows);
            let start = out.keys.len();
            out.keys.resize(start + span.len(), 0);
            view.block(block).decode(&mut out.keys[start..]);
            out.keys
                .truncate(start + rows.end.min(span.end) - span.start);
            let before = rows.start.max(span.start) - span.start;
            out.keys.drain(start..start + before);
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
        if within.shape() == Shape::Rows {
            return compare_decoded(self, chunk, predicate, within, out, work);
        }
        let Predicate::Keys(ranges) = predicate else {
            return out.set_none(chunk.rows);
        };
        let view = View::of(chunk);
        let words = out.set_bits(chunk.rows);
        for (block, words) in words.chunks_mut(WORDS).enumerate() {
            let rows = block_rows(block, chunk.rows).len() as u64;
            if let BlockSelection::None = within.block(block) {
                work.tally.skipped += rows;
                continue;
            }
            work.tally.direct += rows;
            view.block(block).compare(ranges, words);
        }
        out.intersect(within);
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
        let mut keys = [0; BLOCK_ROWS];
        for block in 0..block_count(chunk.rows) {
            let keys = &mut keys[..block_rows(block, chunk.rows).len()];
            let mask = match within.block(block) {
                BlockSelection::None => continue,
                BlockSelection::All if !asked.squares => {
                    work.tally.direct += keys.len() as u64;
                    view.block(block).fold(chunk.physical, asked, out);
                    continue;
                }
                BlockSelection::All => None,
                BlockSelection::Bits(words) => Some(words),
            };
            work.tally.decoded += keys.len() as u64;
            view.block(block).decode(keys);
            fold_keys(keys, chunk.physical, asked, mask, out);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, Int64Array};

    use super::*;
    use crate::encoder::ColumnEncoder;
    use crate::registry::by_id;

    fn encode(array: ArrayRef) -> Chunk {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.pin(by_id(11).unwrap());
        encoder.encode_new(&array).unwrap()
    }

    #[test]
    fn the_example_is_one_run_of_two_bytes() {
        let chunk = encode(Arc::new(Int32Array::from(vec![1, -2, 300, 0])));
        let view = View::of(&chunk);
        assert_eq!(view.runs, [3 << 3 | 2]);
        assert_eq!(view.block(0).pairs, [32_769, 32_766, 33_068, 32_768]);
    }

    #[test]
    fn small_numbers_of_either_sign_are_short() {
        let values = (0..4_096).map(|i| if i % 2 == 0 { i % 100 } else { -(i % 100) });
        let chunk = encode(Arc::new(Int64Array::from_iter_values(values)));
        assert!(chunk.byte_size() < 4_096 + 4 * 20, "{}", chunk.byte_size());
        let zeros = encode(Arc::new(Int64Array::from(vec![0; 4_096])));
        assert_eq!(zeros.byte_size(), 2 * 5 * 4 + 4 * 2);
    }
}
