//! `delta`: differences of neighbours, left to the codec inside.
//!
//! ```text
//! section 0: first key of each block, u64     section 2: largest key of each block, u64
//! section 1: smallest key of each block, u64  section 3: 1 for blocks that ascend, else 0, u8
//! inner chunk: the steps, signed integers of the column's lane width
//!
//! key(i) = key(i - 1) + step(i), modulo the lane, but for the first row of each block
//! ```
//! Blocks stand alone: their ends let them be skipped or taken whole, and a block that ascends is
//! searched instead of compared. The step of a block's first row means nothing; it repeats the
//! next one, so that it widens nothing. The hole of a null repeats the key before it, or, at the
//! start of a block, the first one after it.
//! Example: `[100, 103, 106, 107]` is the first key 100 and the steps `3, 3, 3, 1`.
//!
//! Source: the delta step of "Compression: CPU vs. Memory Tradeoff" (LSM trees) §3, under its RLE-
//! Delta and Varint-Delta. Differences: it codes a whole file as one sequence; blocks of 1,024 with
//! keys and ends of their own are skipped, searched and decoded one by one.

mod encode;
mod scan;

use std::ops::Range;

use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::kernels::kernels;
use crate::lane::with_lanes;
use crate::predicate::Predicate;
use crate::selection::{Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

const FIRSTS: usize = 0;
const MINIMA: usize = 1;
const MAXIMA: usize = 2;
const ASCENDING: usize = 3;

/// Bytes of a block's entries in the sections.
const BLOCK_BYTES: usize = 3 * 8 + 1;

/// Differences of neighbours, left to the codec inside.
#[derive(Debug)]
pub struct Delta;

/// The sections of one chunk.
#[derive(Clone, Copy)]
struct View<'a> {
    rows: usize,
    firsts: &'a [u64],
    minima: &'a [u64],
    maxima: &'a [u64],
    ascending: &'a [u8],
    steps: &'a Chunk,
    /// The largest key of the column's lane.
    key_max: u64,
}

impl<'a> View<'a> {
    /// `None` for a chunk without its steps, which no `encode` leaves.
    fn of(chunk: &'a Chunk) -> Option<Self> {
        Some(View {
            rows: chunk.rows,
            firsts: chunk.body.section(FIRSTS),
            minima: chunk.body.section(MINIMA),
            maxima: chunk.body.section(MAXIMA),
            ascending: chunk.body.section(ASCENDING),
            steps: chunk.body.inner[0].as_deref()?,
            key_max: chunk.physical.key_max(),
        })
    }

    /// Appends the keys of `rows`, which start with a block.
    ///
    /// # Cost
    /// What the codec inside takes, and two passes over each block.
    fn decode(&self, rows: Range<usize>, out: &mut Values) {
        let (first, start) = (rows.start / BLOCK_ROWS, out.keys.len());
        self.steps.codec.decode(self.steps, rows, out);
        let blocks = out.keys[start..].chunks_mut(BLOCK_ROWS);
        for (keys, first) in blocks.zip(&self.firsts[first..]) {
            self.add_up(keys, *first);
        }
    }

    /// Makes keys of steps, but for the first, which is given.
    fn add_up(&self, keys: &mut [u64], first: u64) {
        let flip = self.steps.physical.flip();
        keys[0] = first;
        (kernels().u64.prefix_sum)(keys, 0);
        // Every step came as its key, half the lane too large; two halves are none.
        let (pairs, last) = keys.as_chunks_mut::<2>();
        for [even, odd] in pairs {
            *even &= self.key_max;
            *odd = (*odd ^ flip) & self.key_max;
        }
        last.iter_mut().for_each(|even| *even &= self.key_max);
    }

    /// Calls `visit` with the keys of every block that `wanted` asks for.
    ///
    /// Blocks that the codec inside decodes together are decoded in one go.
    fn for_each_block(
        &self,
        values: &mut Values,
        wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, &mut [u64]),
    ) {
        let unit = self.steps.codec.unit_rows().max(BLOCK_ROWS) / BLOCK_ROWS;
        let blocks = block_count(self.rows);
        for start in (0..blocks).step_by(unit) {
            let mut together = start..blocks.min(start + unit);
            let Some(first) = together.find(|block| wanted(*block)) else {
                continue;
            };
            let last = together.rfind(|block| wanted(*block)).unwrap_or(first);
            let rows = first * BLOCK_ROWS..block_rows(last, self.rows).end;
            values.reset(self.steps.physical);
            self.decode(rows, values);
            let keys = values.keys.chunks_mut(BLOCK_ROWS);
            for (block, keys) in (first..=last).zip(keys) {
                if wanted(block) {
                    visit(block, keys);
                }
            }
        }
    }
}

/// The physical shape of the steps of a column of `physical`.
fn step_physical(physical: Physical) -> Physical {
    match physical {
        Physical::Integer { bytes, .. } => Physical::Integer {
            bytes,
            signed: true,
        },
        other => other,
    }
}

impl Codec for Delta {
    fn id(&self) -> u8 {
        10
    }

    fn name(&self) -> &'static str {
        "delta"
    }

    fn summary(&self) -> &'static str {
        "differences of neighbours under another codec, blocks that stand alone"
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

    /// Counters whose pace drifts have small differences of differences.
    fn nests_in_itself(&self) -> bool {
        true
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        encode::estimate(sample)
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        with_lanes!(input.lanes, lanes => encode::encode(lanes, input, out, work),
            else Err(Error::internal("delta takes lanes of at most eight bytes")))
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 8, 8, 1]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        let Some(view) = View::of(chunk).filter(|_| integer) else {
            return Err(Error::corrupt("a delta chunk lacks its steps or its type"));
        };
        let blocks = block_count(chunk.rows);
        let lengths = [view.firsts.len(), view.minima.len(), view.maxima.len()];
        if lengths != [blocks; 3] || view.ascending.len() != blocks {
            return Err(Error::corrupt(
                "delta sections do not fit the number of blocks",
            ));
        }
        let fits =
            view.steps.rows == chunk.rows && view.steps.physical == step_physical(chunk.physical);
        if !fits || view.firsts.iter().any(|first| *first > view.key_max) {
            return Err(Error::corrupt("steps do not fit the rows or their type"));
        }
        view.steps.codec.validate(view.steps)?;
        let mut wrong = None;
        view.for_each_block(
            &mut Values::default(),
            |_| true,
            |block, keys| {
                let ends = (keys.iter().min(), keys.iter().max());
                let right = ends == (Some(&view.minima[block]), Some(&view.maxima[block]))
                    && view.ascending[block] == u8::from(keys.is_sorted());
                if !right {
                    wrong.get_or_insert(block);
                }
            },
        );
        match wrong {
            None => Ok(()),
            Some(block) => {
                Err(Error::corrupt("the ends of a block are not its keys'").block(block as u32))
            }
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let Some(view) = View::of(chunk).filter(|_| !rows.is_empty()) else {
            return;
        };
        let start = out.keys.len();
        let first = rows.start / BLOCK_ROWS * BLOCK_ROWS;
        view.decode(first..rows.end, out);
        out.keys.drain(start..start + rows.start - first);
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        match (View::of(chunk), within.shape()) {
            (Some(view), Shape::Rows) => scan::compare_rows(&view, predicate, within, out, work),
            (Some(view), _) => scan::compare_blocks(&view, predicate, within, out, work),
            (None, _) => out.set_none(chunk.rows),
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
        match (View::of(chunk), within.shape()) {
            (Some(view), Shape::All | Shape::Bits) => {
                scan::fold_blocks(&view, chunk.physical, asked, within, (out, work));
            }
            _ => fold_decoded(self, chunk, asked, within, out, work),
        }
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        if let Some(view) = View::of(chunk) {
            scan::gather(&view, rows, out, work);
        }
    }

    fn search(&self, chunk: &Chunk, key: u64, rows: Range<usize>, work: &mut Work) -> Range<usize> {
        match View::of(chunk) {
            Some(view) => scan::find_key(&view, key, rows, work),
            None => rows.start..rows.start,
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int8Array, Int64Array, UInt64Array};

    use super::*;
    use crate::encoder::ColumnEncoder;
    use crate::predicate::Comparison;
    use crate::registry::by_id;

    fn encode(array: ArrayRef) -> Chunk {
        let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
        encoder.pin(by_id(10).unwrap());
        encoder.encode_new(&array).unwrap()
    }

    fn keys(chunk: &Chunk, rows: Range<usize>) -> Vec<u64> {
        let mut values = Values::default();
        values.reset(chunk.physical);
        Delta.decode(chunk, rows, &mut values);
        values.keys
    }

    #[test]
    fn steps_wrap_at_the_ends_of_a_type() {
        let ends = [i8::MIN, i8::MAX, -1, 0, i8::MAX, i8::MIN, i8::MIN, 1];
        let array = Int8Array::from_iter_values(ends.into_iter().cycle().take(2_050));
        let expected: Vec<u64> = array
            .values()
            .iter()
            .map(|v| (*v as u8 ^ 128).into())
            .collect();
        let chunk = encode(Arc::new(array));
        chunk.codec.validate(&chunk).unwrap();
        for rows in [
            0..2_050,
            0..0,
            5..5,
            1_023..1_025,
            2_049..2_050,
            2_048..2_048,
        ] {
            assert_eq!(keys(&chunk, rows.clone()), expected[rows]);
        }
        let wide = [0, u64::MAX, 1, u64::MAX - 1, 1 << 63];
        let chunk = encode(Arc::new(UInt64Array::from(wide.to_vec())));
        assert_eq!(keys(&chunk, 0..5), wide);
    }

    #[test]
    fn holes_and_first_rows_widen_nothing() {
        // Blocks far apart; the second starts with nulls, the third has nothing else.
        let value = |row: i64| match row {
            1_024..1_030 | 2_048..3_072 => None,
            row => Some(row / 1_024 * 1_000_000_000 + row % 1_024 * 3),
        };
        let chunk = encode(Arc::new((0..4_096).map(value).collect::<Int64Array>()));
        let view = View::of(&chunk).unwrap();
        let step = |value: i64| view.steps.physical.key_of(value.into()).unwrap();
        let stats = view.steps.stats;
        assert_eq!((stats.min, stats.max), (step(0), step(3)));
        let key = |value: i64| chunk.physical.key_of(value.into()).unwrap();
        assert_eq!(view.minima[1], key(1_000_000_018));
        assert_eq!(view.ascending, [1; 4]);
        assert_eq!(
            (view.minima[2], view.maxima[2]),
            (view.maxima[1], view.maxima[1])
        );
    }

    #[test]
    fn only_blocks_that_the_ends_leave_open_are_decoded() {
        let chunk = encode(Arc::new(Int64Array::from_iter_values(
            (0..10_000).map(|v| v * 7),
        )));
        let predicate = Predicate::compare(chunk.data_type(), Comparison::Less, &30_000.into());
        let (mut found, mut work) = (Selection::default(), Work::default());
        let all = Selection::all(10_000);
        chunk.compare(&predicate.unwrap(), &all, &mut found, &mut work);
        assert_eq!(found.count(), 30_000usize.div_ceil(7));
        assert_eq!(
            (work.tally.decoded, work.tally.skipped),
            (1_024, 10_000 - 1_024)
        );
    }
}
