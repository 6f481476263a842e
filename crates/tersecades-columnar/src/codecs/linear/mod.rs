//! `linear`: a line through each block, and how far keys are above it.
//!
//! ```text
//! section 0:    base and slope of each block, u64 each; slopes in 1/1024ths, two's complement
//! inner chunk:  residuals, unsigned lanes as wide as the column's
//!
//! key(i) = base + floor(slope x i / 1024) + residual(i), modulo the lane, i from the block's start
//! ```
//! Times of a clock that is not quite regular jitter about a line: their differences have twice the
//! range of what is left above it. A key needs no other key, so one row is read alone. The line is
//! that of least squares, its slope whole where it is nearly that, lowered until no residual is
//! negative. The hole of a null holds the residual 0.
//!
//! Example: `[100, 111, 119, 131]` is the base 99, the slope 10342 and `1, 2, 0, 2`.
//!
//! Source: the linear model of LeCo, Liu, Zeng and Zhang, "LeCo: Lightweight Compression via
//! Learning Serial Correlations" (SIGMOD 2024), with blocks of 1,024 rows in place of partitions
//! that are searched for.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::bitmap::{WORD_ROWS, set_range};
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, SAMPLE_ROWS_MAX, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, compare_decoded, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::kernels::kernels;
use crate::lane::{KeyLane, with_lanes};
use crate::predicate::Predicate;
use crate::selection::{Selection, Shape};
use crate::stats::Stats;
use crate::types::{Physical, integer_type};
use crate::values::Values;

const LINES: usize = 0;

/// Bits of a slope behind the point: its error adds up to less than one in a block.
const SLOPE_BITS: u32 = 10;
const SLOPE_ONE: f64 = (1 << SLOPE_BITS) as f64;
const SLOPE_STEPS: i64 = 1 << SLOPE_BITS;

/// Largest magnitude of a slope, so that a product with a row of a block stays in 64 bits.
const SLOPE_MAX: i64 = 1 << 52;

/// How near to a whole number a slope is taken as that number.
const WHOLE_WITHIN: f64 = 2.0 / SLOPE_ONE;

/// A line through each block, and how far keys are above it.
#[derive(Debug)]
pub struct Linear;

/// The line of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    base: u64,
    slope: i64,
}

impl Line {
    /// How far the line is above its base at `row` of the block, two's complement.
    #[inline]
    fn rise(self, row: usize) -> u64 {
        (self.slope.wrapping_mul(row as i64) >> SLOPE_BITS).cast_unsigned()
    }

    #[inline]
    fn at(self, row: usize) -> u64 {
        self.base.wrapping_add(self.rise(row))
    }

    /// The sum of how far the line is above its base over the first `rows` of the block.
    fn rises(self, rows: usize) -> i128 {
        let (steps, part) = (self.slope >> SLOPE_BITS, self.slope & (SLOPE_STEPS - 1));
        let parts = match rows == BLOCK_ROWS {
            // What the floors leave off: as much as evenly spread remainders add up to.
            true => {
                let shared = 1 << part.trailing_zeros().min(SLOPE_BITS);
                ((part - 1) * (SLOPE_STEPS - 1) + shared - 1) / 2
            }
            false => (0..rows as i64).map(|row| (part * row) >> SLOPE_BITS).sum(),
        };
        let offsets = rows as i128 * (rows as i128 - 1) / 2;
        i128::from(steps) * offsets + i128::from(parts)
    }

    /// The line below the keys of a block, given with their rows.
    fn under(keys: impl Iterator<Item = (usize, u64)> + Clone) -> Self {
        let Some((_, first)) = keys.clone().next() else {
            return Line { base: 0, slope: 0 };
        };
        let apart = |key: u64| key.wrapping_sub(first).cast_signed();
        let points = keys.clone().map(|(row, key)| (row, apart(key) as f64));
        let mut line = Line {
            base: first,
            slope: slope_of(points),
        };
        let residuals = keys.map(|(row, key)| key.wrapping_sub(line.at(row)).cast_signed());
        let least = residuals.min().unwrap_or(0);
        line.base = line.base.wrapping_add_signed(least);
        line
    }

    /// The smallest and largest key that residuals in `low..=high` may make of a block of `rows`;
    /// `None` where keys may wrap.
    fn ends(self, rows: usize, (low, high): (u64, u64), key_max: u64) -> Option<(u64, u64)> {
        let end = self.rise(rows.saturating_sub(1)).cast_signed();
        let least = i128::from(self.base) + i128::from(end.min(0)) + i128::from(low);
        let most = i128::from(self.base) + i128::from(end.max(0)) + i128::from(high);
        let inside = 0 <= least && most <= i128::from(key_max);
        inside.then_some((least as u64, most as u64))
    }
}

/// The slope of least squares, in steps of 1/1024.
fn slope_of(points: impl Iterator<Item = (usize, f64)>) -> i64 {
    let (mut count, mut sums, mut squares, mut products) = (0.0, (0.0, 0.0), 0.0, 0.0);
    for (row, value) in points {
        let row = row as f64;
        count += 1.0;
        sums = (sums.0 + row, sums.1 + value);
        squares += row * row;
        products += row * value;
    }
    let spread = count * squares - sums.0 * sums.0;
    let slope = (count * products - sums.0 * sums.1) / spread;
    let whole = slope.round();
    let near = (slope - whole).abs() < WHOLE_WITHIN;
    // A block of one value has no slope: no number becomes 0.
    let steps = (if near { whole } else { slope } * SLOPE_ONE).round() as i64;
    if steps.unsigned_abs() < SLOPE_MAX as u64 {
        steps
    } else {
        0
    }
}

/// The lines and the residuals.
#[derive(Clone, Copy)]
struct View<'a> {
    lines: &'a [[u64; 2]],
    residuals: &'a Chunk,
    /// The largest key of the column's lane.
    key_max: u64,
}

impl<'a> View<'a> {
    /// `None` for a chunk without its residuals, which no `encode` leaves.
    fn of(chunk: &'a Chunk) -> Option<Self> {
        Some(View {
            lines: chunk.body.section::<u64>(LINES).as_chunks().0,
            residuals: chunk.body.inner[0].as_deref()?,
            key_max: chunk.physical.key_max(),
        })
    }

    fn line(&self, block: usize) -> Line {
        let [base, slope] = self.lines[block];
        Line {
            base,
            slope: slope.cast_signed(),
        }
    }

    /// The sum of what the lines have for all rows of `chunk`; `None` where keys may wrap.
    fn line_sum(&self, chunk: &Chunk) -> Option<i128> {
        let (mut sum, mut blocks) = (0, 0);
        let codec = self.residuals.codec;
        codec.block_ends(self.residuals, &mut |block, low, high| {
            let (line, rows) = (self.line(block), block_rows(block, chunk.rows).len());
            if line.ends(rows, (low, high), self.key_max).is_some() {
                sum += rows as i128 * chunk.physical.value_of(line.base) + line.rises(rows);
                blocks += 1;
            }
        });
        (blocks == block_count(chunk.rows)).then_some(sum)
    }

    /// Between what the key of `row` lies, as its line and the greatest residual have it.
    fn near(&self, row: usize) -> (i128, i128) {
        let line = self.line(row / BLOCK_ROWS);
        let rise = line.rise(row % BLOCK_ROWS).cast_signed();
        let least = i128::from(line.base) + i128::from(rise);
        let Stats { max, known, .. } = self.residuals.stats;
        let most = least + i128::from(if known { max } else { self.key_max });
        match 0 <= least && most <= i128::from(self.key_max) {
            true => (least, most),
            // The key may have wrapped.
            false => (0, i128::from(self.key_max)),
        }
    }

    /// Makes keys of the residuals of `rows`, which lie in one block.
    fn add_line(&self, rows: Range<usize>, keys: &mut [u64]) {
        let line = self.line(rows.start / BLOCK_ROWS);
        for (row, key) in rows.zip(keys) {
            *key = key.wrapping_add(line.at(row % BLOCK_ROWS)) & self.key_max;
        }
    }
}

fn encode<T: KeyLane>(
    lanes: &[T],
    input: &Input<'_>,
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let key_max = input.physical.key_max();
    let mut residuals = std::mem::take(T::scratch(work));
    residuals.clear();
    let lines = out
        .body
        .add_section::<u64>(LINES, 2 * block_count(lanes.len()));
    for (block, slot) in lines.chunks_exact_mut(2).enumerate() {
        let rows = block_rows(block, lanes.len());
        let valid = rows.clone().filter(|row| input.is_valid(*row));
        let line = Line::under(valid.map(|row| (row % BLOCK_ROWS, input.key(row))));
        slot.copy_from_slice(&[line.base & key_max, line.slope.cast_unsigned()]);
        residuals.extend(rows.map(|row| match input.is_valid(row) {
            true => T::cut(input.key(row).wrapping_sub(line.at(row % BLOCK_ROWS))),
            false => T::cut(0),
        }));
    }
    out.stats = Stats::of(input);
    let data_type = integer_type(size_of::<T>(), false);
    let inner = Input {
        data_type: &data_type,
        physical: Physical::of(&data_type)?,
        lanes: T::lanes(&residuals),
        validity: input.validity,
        array: None,
    };
    let encoded = out.body.encode_inner(0, &inner, work);
    *T::scratch(work) = residuals;
    encoded
}

/// What a codec makes of the residuals of a sample.
fn estimate<T: KeyLane>(sample: &Sample<'_>) -> Estimate {
    let mut room = [T::cut(0); SAMPLE_ROWS_MAX];
    let (mut count, mut sloping) = (0, false);
    for window in sample.windows {
        let valid = window.clone().filter(|row| sample.input.is_valid(*row));
        let keys = valid.map(|row| (row - window.start, sample.input.key(row)));
        let line = Line::under(keys.clone());
        sloping |= line.slope != 0;
        for (row, key) in keys {
            room[count] = T::cut(key.wrapping_sub(line.at(row)));
            count += 1;
        }
    }
    if !sloping {
        return f64::INFINITY.into();
    }
    let lanes = T::lanes(&room[..count]);
    let mut estimate = sample.inner(&integer_type(size_of::<T>(), false), lanes);
    estimate.bytes_per_row += size_of::<[u64; 2]>() as f64 / BLOCK_ROWS as f64;
    estimate
}

impl Codec for Linear {
    fn id(&self) -> u8 {
        23
    }

    fn name(&self) -> &'static str {
        "linear"
    }

    fn summary(&self) -> &'static str {
        "a line through each block, distances above it to another codec"
    }

    fn source(&self) -> &'static str {
        "LeCo (Liu et al., SIGMOD 2024)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        match sample.input.physical.lane_bytes() {
            1 => estimate::<u8>(sample),
            2 => estimate::<u16>(sample),
            4 => estimate::<u32>(sample),
            _ => estimate::<u64>(sample),
        }
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        with_lanes!(input.lanes, lanes => encode(lanes, input, out, work),
            else Err(Error::internal("linear takes lanes of at most eight bytes")))
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let corrupt = || Error::corrupt("lines or residuals do not fit their chunk");
        let view = View::of(chunk).ok_or_else(corrupt)?;
        let physical = Physical::of(&integer_type(chunk.physical.lane_bytes(), false))?;
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        let fits = view.residuals.physical == physical && view.residuals.rows == chunk.rows;
        let blocks = block_count(chunk.rows);
        if !integer || !fits || chunk.body.section::<u64>(LINES).len() != 2 * blocks {
            return Err(corrupt());
        }
        let wrong = (0..blocks).map(|block| view.line(block)).position(|line| {
            line.base > view.key_max || line.slope.unsigned_abs() >= SLOPE_MAX as u64
        });
        match wrong {
            None => Ok(()),
            Some(block) => {
                Err(Error::corrupt("a line leaves the range of its type").block(block as u32))
            }
        }
    }

    fn block_ends(&self, chunk: &Chunk, visit: &mut dyn FnMut(usize, u64, u64)) {
        let Some(view) = View::of(chunk) else {
            return;
        };
        let codec = view.residuals.codec;
        codec.block_ends(view.residuals, &mut |block, low, high| {
            let rows = block_rows(block, chunk.rows).len();
            let ends = view.line(block).ends(rows, (low, high), view.key_max);
            let (low, high) = ends.unwrap_or((0, view.key_max));
            visit(block, low, high);
        });
    }

    fn unit_rows(&self) -> usize {
        BLOCK_ROWS
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let Some(view) = View::of(chunk).filter(|_| !rows.is_empty()) else {
            return;
        };
        let mut start = out.keys.len();
        view.residuals
            .codec
            .decode(view.residuals, rows.clone(), out);
        for block in rows.start / BLOCK_ROWS..block_count(rows.end) {
            let span = block_rows(block, chunk.rows);
            let inside = span.start.max(rows.start)..span.end.min(rows.end);
            let end = start + inside.len();
            view.add_line(inside, &mut out.keys[start..end]);
            start = end;
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
        let Predicate::Keys(ranges) = predicate else {
            return out.set_none(chunk.rows);
        };
        if within.shape() == Shape::Rows {
            return compare_decoded(self, chunk, predicate, within, out, work);
        }
        let words = out.set_bits(chunk.rows);
        let mut values = std::mem::take(&mut work.values);
        for range in ranges {
            let marks = chunk.body.zones.test(*range);
            for block in 0..block_count(chunk.rows) {
                let rows = block_rows(block, chunk.rows);
                if marks.covers(block) {
                    set_range(words, rows.clone());
                }
                if marks.covers(block) || !marks.touches(block) {
                    work.tally.skipped += rows.len() as u64;
                    continue;
                }
                work.tally.decoded += rows.len() as u64;
                let first = rows.start / WORD_ROWS;
                values.reset(chunk.physical);
                self.decode(chunk, rows, &mut values);
                let mut passing = [0; BLOCK_ROWS / WORD_ROWS];
                let passing = &mut passing[..values.len().div_ceil(WORD_ROWS)];
                let width = range.high - range.low;
                (kernels().u64.range_mask_flat)(&values.keys, range.low, width, passing);
                (kernels().bitmap.or)(&mut words[first..first + passing.len()], passing);
            }
        }
        work.values = values;
        out.intersect(within);
    }

    /// Sums of all rows are those of the lines and of the residuals.
    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let sum = Asked {
            sum: true,
            ..Asked::default()
        };
        let whole = asked == sum && within.shape() == Shape::All;
        let view = View::of(chunk).filter(|_| whole);
        let lines = view.and_then(|view| Some((view.residuals, view.line_sum(chunk)?)));
        let Some((residuals, lines)) = lines else {
            return fold_decoded(self, chunk, asked, within, out, work);
        };
        let mut part = Fold::default();
        residuals
            .codec
            .fold(residuals, asked, within, &mut part, work);
        out.count += part.count;
        out.add_sum(lines + part.sum);
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let Some(view) = View::of(chunk) else {
            return;
        };
        let start = out.keys.len();
        view.residuals.codec.gather(view.residuals, rows, out, work);
        for (row, key) in rows.iter().zip(&mut out.keys[start..]) {
            let row = *row as usize;
            view.add_line(row..row + 1, std::slice::from_mut(key));
        }
    }

    /// Halves the rows by their lines, and looks at the few keys that these leave open.
    fn search(&self, chunk: &Chunk, key: u64, rows: Range<usize>, work: &mut Work) -> Range<usize> {
        let Some(view) = View::of(chunk) else {
            return rows.start..rows.start;
        };
        let mut values = std::mem::take(&mut work.values);
        let mut is_below = |row: usize, bound: i128| {
            let (least, most) = view.near(row);
            if most < bound || least >= bound {
                return most < bound;
            }
            values.reset(chunk.physical);
            self.gather(chunk, &[row as u32], &mut values, work);
            i128::from(values.keys[0]) < bound
        };
        let mut first_from = |mut from: usize, bound: i128| {
            let mut to = rows.end;
            while from < to {
                let middle = from + (to - from) / 2;
                match is_below(middle, bound) {
                    true => from = middle + 1,
                    false => to = middle,
                }
            }
            from
        };
        let start = first_from(rows.start, i128::from(key));
        let end = first_from(start, i128::from(key) + 1);
        work.values = values;
        start..end
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        if let Some(view) = View::of(chunk) {
            view.residuals.codec.prefetch(view.residuals, rows);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
