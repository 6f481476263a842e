//! `sequence`: stretches in which every key differs from the one before by the same step.
//!
//! ```text
//! section 0: first key of each segment, one lane each
//! section 1: steps, two's complement, one lane each
//! section 2: ends of the segments, u32 rows from the start of the chunk, ascending
//! section 3: first segment of each block, u32, so that a row is found without a search of all
//!
//! key(i) = firsts[s] + steps[s] * (i - start of s), where i lies in segment s
//! ```
//! Keys never wrap inside a segment, so they rise, fall or stay: the rows that a range of keys
//! selects are one stretch of each segment, found by two divisions at most. Times at a fixed
//! interval, row numbers and counters without load become a few segments, however long.
//!
//! A null continues the segment it falls in, but never beyond the ends of the chunk's values.
//! Example: keys `10, 20, 30, 100, 110` are firsts `10, 100`, steps `10, 10` and ends `3, 5`.
//!
//! Source: Vortex's `sequence` array and the constant-delta mode of DuckDB's bit packing, which
//! hold one sequence each; here there are as many as it takes, kept as runs are.

mod find;
mod segment;

use std::ops::Range;

use crate::bitmap::set_range;
use crate::block::{BLOCK_ROWS, block_count};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::lane::{add_lanes_section, lanes_section};
use crate::predicate::{KeyRange, Predicate};
use crate::primitive::repeat::{Repeats, repeats_counted};
use crate::selection::{Selection, Shape};
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

use find::for_each_segment;
use segment::Segment;

const FIRSTS: usize = 0;
const STEPS: usize = 1;
const ENDS: usize = 2;
const FIRST_SEGMENTS: usize = 3;

/// Stretches in which every key differs from the one before by the same step.
#[derive(Debug)]
pub struct Sequence;

#[derive(Clone, Copy)]
struct View<'a> {
    bytes: usize,
    firsts: Lanes<'a>,
    steps: Lanes<'a>,
    ends: &'a [u32],
    first_segments: &'a [u32],
}

impl<'a> View<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        let bytes = chunk.physical.lane_bytes();
        View {
            bytes,
            firsts: lanes_section(&chunk.body, FIRSTS, bytes),
            steps: lanes_section(&chunk.body, STEPS, bytes),
            ends: chunk.body.section(ENDS),
            first_segments: chunk.body.section(FIRST_SEGMENTS),
        }
    }

    fn segment(&self, index: usize) -> Segment {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let unused = 64 - 8 * self.bytes;
        Segment {
            first: self.firsts.bits(index),
            step: (self.steps.bits(index) << unused) as i64 >> unused,
            rows: start as usize..self.ends[index] as usize,
        }
    }

    /// The segment that holds `row`.
    fn index_of(&self, row: usize) -> usize {
        let first = self.first_segments[row / BLOCK_ROWS] as usize;
        first + self.ends[first..].partition_point(|end| *end as usize <= row)
    }

    fn segments(&self) -> impl Iterator<Item = Segment> {
        (0..self.ends.len()).map(|index| self.segment(index))
    }

    /// The rows of `rows` whose key is `key`, where keys ascend.
    fn search(&self, key: u64, rows: Range<usize>) -> Range<usize> {
        if rows.is_empty() {
            return rows;
        }
        let (mut low, mut high) = (self.index_of(rows.start), self.index_of(rows.end - 1));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.segment(middle).last() < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let range = KeyRange {
            low: key,
            high: key,
        };
        let mut found = self.segment(low).rows_in(range);
        for index in low + 1..self.ends.len() {
            let next = self.segment(index).rows_in(range);
            if next.is_empty() || next.start >= rows.end {
                break;
            }
            found.end = next.end;
        }
        let end = found.end.min(rows.end).max(rows.start);
        found.start.clamp(rows.start, end)..end
    }

    /// Calls `visit` with the keys of ascending `rows`.
    fn for_each_key(&self, rows: &[u32], mut visit: impl FnMut(u32, u64)) {
        let mut segment = Segment::default();
        for row in rows {
            let at = *row as usize;
            if !segment.rows.contains(&at) {
                segment = self.segment(self.index_of(at));
            }
            visit(*row, segment.key(at));
        }
    }
}

impl Codec for Sequence {
    fn id(&self) -> u8 {
        7
    }

    fn name(&self) -> &'static str {
        "sequence"
    }

    fn summary(&self) -> &'static str {
        "arithmetic sequences: a first key, a step and the row where it ends"
    }

    fn source(&self) -> &'static str {
        "Vortex's `sequence`; DuckDB's bit packing of constant deltas"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let input = sample.input;
        let whole = Stats {
            min: 0,
            max: input.physical.key_max(),
            known: true,
        };
        let mut segments = 0;
        for window in sample.windows {
            for_each_segment(input, window.clone(), whole, |_| segments += 1);
        }
        let segment_bytes = 4 + 2 * input.physical.lane_bytes();
        let bytes = sample.run_share(segments) * segment_bytes as f64;
        (bytes + 4.0 / BLOCK_ROWS as f64).into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let (firsts, steps, ends) = (&mut work.keys, &mut work.patch_keys, &mut work.ends);
        firsts.clear();
        steps.clear();
        ends.clear();
        out.stats = Stats::of(input);
        for_each_segment(input, 0..input.rows(), out.stats, |segment| {
            firsts.push(segment.first);
            steps.push(segment.step as u64);
            ends.push(segment.rows.end as u32);
        });
        let bytes = input.physical.lane_bytes();
        add_lanes_section(&mut out.body, FIRSTS, bytes, firsts);
        add_lanes_section(&mut out.body, STEPS, bytes, steps);
        out.body
            .add_section::<u32>(ENDS, ends.len())
            .copy_from_slice(ends);
        let blocks = block_count(input.rows());
        let first_segments = out.body.add_section::<u32>(FIRST_SEGMENTS, blocks);
        let mut segment = 0;
        for (block, first) in first_segments.iter_mut().enumerate() {
            while ends[segment] as usize <= block * BLOCK_ROWS {
                segment += 1;
            }
            *first = segment as u32;
        }
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[LANE_ITEM, LANE_ITEM, 4, 4]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(chunk.physical, Physical::Integer { .. }) {
            return Err(Error::corrupt("a sequence chunk of a type it cannot hold"));
        }
        let view = View::of(chunk);
        let ascending = view.ends.windows(2).all(|pair| pair[0] < pair[1]);
        let last = view.ends.last().copied().unwrap_or(0) as usize;
        let starts = view.ends.first().is_none_or(|end| *end > 0);
        let lengths = [view.firsts.len(), view.steps.len()];
        if !ascending || !starts || last != chunk.rows || lengths != [view.ends.len(); 2] {
            return Err(Error::corrupt("segments are out of order or range"));
        }
        let key_max = chunk.physical.key_max();
        if !view.segments().all(|segment| segment.stays_below(key_max)) {
            return Err(Error::corrupt("a segment leaves the range of its type"));
        }
        let first = |block: usize| {
            view.ends
                .partition_point(|end| *end as usize <= block * BLOCK_ROWS) as u32
        };
        let mut firsts = view.first_segments.iter().enumerate();
        let right = view.first_segments.len() == block_count(chunk.rows)
            && firsts.all(|(block, segment)| *segment == first(block));
        match right {
            true => Ok(()),
            false => Err(Error::corrupt(
                "first segments of blocks do not match the segments",
            )),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let view = View::of(chunk);
        let mut start = rows.start;
        while start < rows.end {
            let segment = view.segment(view.index_of(start));
            let end = segment.rows.end.min(rows.end);
            out.keys.extend((start..end).map(|row| segment.key(row)));
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
        let view = View::of(chunk);
        if within.shape() == Shape::Rows {
            work.tally.direct += within.count() as u64;
            let list = out.set_rows(chunk.rows);
            view.for_each_key(within.list(), |row, key| {
                if predicate.matches_key(key) {
                    list.push(row);
                }
            });
            return;
        }
        work.tally.direct += view.ends.len() as u64;
        work.tally.skipped += (chunk.rows - view.ends.len()) as u64;
        let words = out.set_bits(chunk.rows);
        if let Predicate::Keys(ranges) = predicate {
            for segment in view.segments() {
                for range in ranges {
                    set_range(words, segment.rows_in(*range));
                }
            }
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
        work.tally.direct += view.ends.len() as u64;
        for segment in view.segments() {
            match within.shape() {
                Shape::Bits => segment.fold_bits(chunk.physical, asked, within.words(), out),
                _ => segment.fold(chunk.physical, asked, out),
            }
        }
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        if within.shape() != Shape::All {
            return repeats_counted(self, chunk, within, out, work);
        }
        work.tally.direct += chunk.rows as u64;
        for segment in View::of(chunk).segments() {
            if segment.step == 0 {
                out.add(segment.first, segment.rows.len() as u64);
            } else {
                let keys = segment.rows.clone().map(|row| segment.key(row));
                out.add_each(keys);
            }
        }
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        work.tally.direct += rows.len() as u64;
        out.keys.reserve(rows.len());
        View::of(chunk).for_each_key(rows, |_, key| out.keys.push(key));
    }

    fn search(&self, chunk: &Chunk, key: u64, rows: Range<usize>, work: &mut Work) -> Range<usize> {
        work.tally.direct += 1;
        View::of(chunk).search(key, rows)
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int8Array, Int64Array, UInt64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::codec::compare_decoded;
    use crate::encoder::ColumnEncoder;
    use crate::registry::by_id;

    fn encode(array: ArrayRef) -> Chunk {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.pin(by_id(7).unwrap());
        let chunk = encoder.encode_new(&array).unwrap();
        Sequence.validate(&chunk).unwrap();
        let back = chunk.to_arrow(&Selection::all(chunk.rows()), &mut Work::default());
        assert_eq!(&back.unwrap(), &array);
        chunk
    }

    fn segments(chunk: &Chunk) -> usize {
        View::of(chunk).ends.len()
    }

    #[test]
    fn regular_times_are_one_segment_a_gap() {
        let time = |row: i64| 1_700_000_000_000 + row * 10_000 + row / 1_000 * 77;
        let chunk = encode(Arc::new(Int64Array::from_iter_values((0..5_000).map(time))));
        assert_eq!(segments(&chunk), 5);
        let holes = (0..5_000).map(|row| (row % 7 > 2).then(|| time(row)));
        let chunk = encode(Arc::new(Int64Array::from_iter(holes)));
        assert!(segments(&chunk) <= 7, "{}", segments(&chunk));
    }

    #[test]
    fn keys_at_the_ends_of_a_type_do_not_wrap() {
        let falling = (0..256).map(|row| (127 - row) as i8);
        assert_eq!(
            segments(&encode(Arc::new(Int8Array::from_iter_values(falling)))),
            1
        );
        let jumps = (0..300).map(|row| if row % 2 == 0 { u64::MAX } else { 0 });
        encode(Arc::new(UInt64Array::from_iter_values(jumps)));
        let wraps = (0..600).map(|row| (row * 100) as i8);
        encode(Arc::new(Int8Array::from_iter_values(wraps)));
        let holes = (0..40).map(|row| (!(3..=30).contains(&row)).then_some((row * 40) as i8));
        encode(Arc::new(Int8Array::from_iter(holes)));
        let steep = [i64::MIN, -1, i64::MAX - 1];
        assert_eq!(
            segments(&encode(Arc::new(Int64Array::from_iter_values(steep)))),
            1
        );
    }

    #[test]
    fn closed_forms_agree_with_decoding() {
        let value = |row: i64| match row / 400 {
            0 => row * 7 - 900,
            1 => 500 - row * 3,
            2 => 42,
            3 => i64::MAX - (1_600 - row) * 1_000_003,
            _ => i64::MIN + (row - 1_600) * (1 << 50),
        };
        let array = Arc::new(Int64Array::from_iter_values((0..2_000).map(value)));
        let chunk = encode(array);
        let mut work = Work::default();
        let mut bits = Selection::default();
        let spread = |row: &u32| row.is_multiple_of(3) || (300..900).contains(row);
        bits.set_rows(2_000).extend((0..2_000).filter(spread));
        bits.to_bits();
        let asked = Asked {
            sum: true,
            squares: true,
            ends: true,
        };
        for within in [Selection::all(2_000), bits] {
            let (mut direct, mut decoded) = (Fold::default(), Fold::default());
            Sequence.fold(&chunk, asked, &within, &mut direct, &mut work);
            fold_decoded(&Sequence, &chunk, asked, &within, &mut decoded, &mut work);
            assert_eq!(direct, decoded);
            for row in (0..2_000).step_by(37) {
                let key = DataType::Int64;
                let key = Physical::of(&key)
                    .unwrap()
                    .key_of(value(row).into())
                    .unwrap();
                for (below, above) in [(0, 0), (1, 0), (0, 1), (u64::MAX, 0), (5_000, 900)] {
                    let predicate = Predicate::Keys(vec![KeyRange {
                        low: key.saturating_sub(below),
                        high: key.saturating_add(above),
                    }]);
                    let (mut found, mut expected) = (Selection::default(), Selection::default());
                    Sequence.compare(&chunk, &predicate, &within, &mut found, &mut work);
                    compare_decoded(
                        &Sequence,
                        &chunk,
                        &predicate,
                        &within,
                        &mut expected,
                        &mut work,
                    );
                    assert_eq!(found.words(), expected.words(), "{predicate:?}");
                }
            }
        }
    }
}
