//! `run_length`: each value once, with where its repeats end.
//!
//! ```text
//! section 0: keys of the runs, one lane each
//! section 1: ends of the runs, u32 rows from the start of the chunk, ascending
//! section 2: first run of each block, u32, so that a row is found without a search of all runs
//!
//! composed, when keys and lengths are encoded themselves:
//! section 2: as above                      inner chunk 0: keys of the runs, integers of the lane
//! section 3: row where that run starts     inner chunk 1: rows of each run, u32
//! ```
//! Nulls continue the run they fall in. Every primitive works run by run; composed runs of the
//! blocks in question are decoded first. A scheme that names a codec inside composes, and so does
//! the cold tier where that is smaller.
//! Example: `[4, 4, 4, 9]` is keys `4, 9` and ends `3, 4`, or, composed, lengths `3, 1`.
//!
//! Source: Run-Length Encoding of "Compression: CPU vs. Memory Tradeoff" (LSM trees) §3, whose
//! combinations are `delta(run_length)` and `run_length(varint)` here. Difference: its pairs of
//! value and count are read from the start; ours are found by block.

mod composed;

use std::ops::Range;

use crate::block::{BLOCK_ROWS, block_count};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::lane::{add_lanes_section, lanes_section};
use crate::predicate::Predicate;
use crate::primitive::arithmetic::Change;
use crate::primitive::fold_by::{GroupFold, fold_by_decoded, single};
use crate::primitive::rank::{rank_decoded, rank_of};
use crate::primitive::repeat::{Repeats, repeats_decoded};
use crate::selection::{Selection, Shape};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

use composed::Decoded;

const KEYS: usize = 0;
const ENDS: usize = 1;
const FIRST_RUNS: usize = 2;
const FIRST_ROWS: usize = 3;

/// Each value once, with where its repeats end.
#[derive(Debug)]
pub struct RunLength;

/// Runs in the form all primitives work on, wherever they lie.
#[derive(Clone, Copy)]
struct View<'a> {
    keys: Lanes<'a>,
    ends: &'a [u32],
    first_runs: &'a [u32],
    /// Runs before the first of `keys`.
    skipped: usize,
}

impl<'a> View<'a> {
    /// The runs of `blocks`, and maybe more.
    fn of(chunk: &'a Chunk, blocks: Range<usize>, decoded: &'a mut Decoded) -> Self {
        let first_runs: &[u32] = chunk.body.section(FIRST_RUNS);
        let [Some(keys), Some(lengths)] = &chunk.body.inner else {
            return View {
                keys: lanes_section(&chunk.body, KEYS, chunk.physical.lane_bytes()),
                ends: chunk.body.section(ENDS),
                first_runs,
                skipped: 0,
            };
        };
        let first_rows = chunk.body.section::<u32>(FIRST_ROWS);
        let first = first_runs.get(blocks.start).map_or(0, |run| *run as usize);
        let after = first_runs.get(blocks.end).map(|run| *run as usize + 1);
        let start = first_rows.get(blocks.start).copied().unwrap_or(0);
        decoded.read(keys, lengths, first..after.unwrap_or(keys.rows), start);
        View {
            keys: Lanes::U64(&decoded.values.keys),
            ends: &decoded.ends,
            first_runs,
            skipped: first,
        }
    }

    fn of_all(chunk: &'a Chunk, decoded: &'a mut Decoded) -> Self {
        View::of(chunk, 0..block_count(chunk.rows), decoded)
    }

    /// The run that holds `row`.
    fn run_of(&self, row: usize) -> usize {
        let first = self.first_runs[row / BLOCK_ROWS] as usize - self.skipped;
        first + self.ends[first..].partition_point(|end| *end as usize <= row)
    }

    /// The rows of `rows` whose key is `key`, where keys ascend.
    fn search(&self, key: u64, rows: Range<usize>) -> Range<usize> {
        let (first, last) = (self.run_of(rows.start), self.run_of(rows.end - 1));
        // The first row whose key does not pass, of keys that pass first.
        let end_of = |passes: &dyn Fn(u64) -> bool| {
            let (mut low, mut high) = (first, last + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                match passes(self.keys.bits(middle)) {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            match low > first {
                true => (self.ends[low - 1] as usize).min(rows.end),
                false => rows.start,
            }
        };
        end_of(&|other| other < key)..end_of(&|other| other <= key)
    }

    /// Calls `visit` with key and rows of every run that meets `rows`.
    fn for_each_run(&self, rows: Range<usize>, mut visit: impl FnMut(u64, Range<usize>)) {
        let mut start = rows.start;
        let mut run = if rows.is_empty() {
            self.ends.len()
        } else {
            self.run_of(start)
        };
        while start < rows.end && run < self.ends.len() {
            let end = (self.ends[run] as usize).min(rows.end);
            visit(self.keys.bits(run), start..end);
            start = end;
            run += 1;
        }
    }
}

/// Writes the run, or with `rows` its first row, that the first row of each block lies in.
fn add_firsts(out: &mut Chunk, section: usize, ends: &[u32], rows: bool) {
    let blocks = block_count(out.rows);
    let firsts = out.body.add_section::<u32>(section, blocks);
    let mut run = 0;
    for (block, first) in firsts.iter_mut().enumerate() {
        while ends[run] as usize <= block * BLOCK_ROWS {
            run += 1;
        }
        let row = || run.checked_sub(1).map_or(0, |before| ends[before]);
        *first = if rows { row() } else { run as u32 };
    }
}

impl View<'_> {
    /// Calls `visit` with the key of every run and how many of its rows are selected.
    fn for_each_selected(&self, within: &Selection, mut visit: impl FnMut(u64, usize)) {
        self.for_each_run(0..within.rows(), |key, rows| {
            let count = match within.shape() {
                Shape::Bits => crate::bitmap::count_range(within.words(), rows),
                _ => rows.len(),
            };
            visit(key, count);
        });
    }
}

fn passes(physical: Physical, predicate: &Predicate, key: u64) -> bool {
    match physical {
        Physical::Float { bytes } => predicate.matches_key(float_key(float_of_bits(key, bytes))),
        _ => predicate.matches_key(key),
    }
}

/// Calls `visit` with every row that starts a run and its key.
fn for_each_start(
    input: &Input<'_>,
    rows: impl Iterator<Item = usize>,
    mut visit: impl FnMut(usize, u64),
) {
    let mut last = None;
    for row in rows {
        if last.is_some() && !input.is_valid(row) {
            continue;
        }
        let key = input.key(row);
        if last != Some(key) {
            visit(row, key);
            last = Some(key);
        }
    }
}

impl Codec for RunLength {
    fn id(&self) -> u8 {
        3
    }

    fn name(&self) -> &'static str {
        "run_length"
    }

    fn summary(&self) -> &'static str {
        "each value once, with the row where its repeats end"
    }

    fn source(&self) -> &'static str {
        "Compression: CPU vs. Memory Tradeoff (LSM trees) §3"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(
            input.physical,
            Physical::Integer { .. } | Physical::Float { .. }
        ) && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn inner_max(&self) -> usize {
        2
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let (input, windows) = (sample.input, sample.windows);
        let mut runs = 0;
        for window in windows {
            for_each_start(input, window.clone(), |_, _| runs += 1);
        }
        let run_bytes = 4 + input.physical.lane_bytes();
        let share = sample.run_share(runs);
        let flat = share * run_bytes as f64 + 4.0 / BLOCK_ROWS as f64;
        match composed::estimate(sample, share) {
            Some(composed) if composed.bytes_per_row < flat => composed,
            _ => flat.into(),
        }
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let (keys, ends) = (&mut work.keys, &mut work.ends);
        keys.clear();
        ends.clear();
        for_each_start(input, 0..input.rows(), |row, key| {
            if !keys.is_empty() {
                ends.push(row as u32);
            }
            keys.push(key);
        });
        if !keys.is_empty() {
            ends.push(input.rows() as u32);
        }
        if composed::encode(input, out, work)? {
            add_firsts(out, FIRST_RUNS, &work.ends, false);
            add_firsts(out, FIRST_ROWS, &work.ends, true);
            return Ok(());
        }
        write_runs(out, &work.keys, &work.ends);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[LANE_ITEM, 4, 4, 4]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(
            chunk.physical,
            Physical::Integer { .. } | Physical::Float { .. }
        ) {
            return Err(Error::corrupt(
                "a run_length chunk of a type it cannot hold",
            ));
        }
        if let [Some(keys), Some(lengths)] = &chunk.body.inner {
            return composed::validate(chunk, keys, lengths);
        }
        if chunk.inner().next().is_some() {
            return Err(Error::corrupt("keys and lengths of runs come together"));
        }
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        let ascending = view.ends.windows(2).all(|pair| pair[0] < pair[1]);
        let last = view.ends.last().copied().unwrap_or(0) as usize;
        let starts = view.ends.first().is_none_or(|end| *end > 0);
        if !ascending || !starts || last != chunk.rows || view.keys.len() != view.ends.len() {
            return Err(Error::corrupt("runs are out of order or range"));
        }
        let first = |block: usize| {
            view.ends
                .partition_point(|end| *end as usize <= block * BLOCK_ROWS) as u32
        };
        let blocks = block_count(chunk.rows);
        let right = view.first_runs.len() == blocks
            && chunk.body.section::<u32>(FIRST_ROWS).is_empty()
            && view
                .first_runs
                .iter()
                .enumerate()
                .all(|(block, run)| *run == first(block));
        match right {
            true => Ok(()),
            false => Err(Error::corrupt("first runs of blocks do not match the runs")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let blocks = rows.start / BLOCK_ROWS..block_count(rows.end);
        let mut decoded = Decoded::default();
        View::of(chunk, blocks, &mut decoded).for_each_run(rows, |key, rows| {
            out.keys.resize(out.keys.len() + rows.len(), key);
        });
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        if within.shape() == Shape::Rows {
            let pass = |row: &u32| {
                let key = view.keys.bits(view.run_of(*row as usize));
                passes(chunk.physical, predicate, key)
            };
            let list = out.set_rows(chunk.rows);
            list.extend(within.list().iter().copied().filter(pass));
            return;
        }
        let words = out.set_bits(chunk.rows);
        view.for_each_run(0..chunk.rows, |key, rows| {
            if passes(chunk.physical, predicate, key) {
                crate::bitmap::set_range(words, rows);
            }
        });
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
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        if !integer || within.shape() == Shape::Rows {
            return fold_decoded(self, chunk, asked, within, out, work);
        }
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        view.for_each_selected(within, |key, count| {
            out.add_repeats(chunk.physical, key, count, asked);
        });
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return;
        };
        let blocks = *first as usize / BLOCK_ROWS..*last as usize / BLOCK_ROWS + 1;
        let mut decoded = Decoded::default();
        let view = View::of(chunk, blocks, &mut decoded);
        work.tally.direct += rows.len() as u64;
        out.keys.extend(
            rows.iter()
                .map(|row| view.keys.bits(view.run_of(*row as usize))),
        );
    }

    fn search(&self, chunk: &Chunk, key: u64, rows: Range<usize>, work: &mut Work) -> Range<usize> {
        if rows.is_empty() {
            return rows;
        }
        let blocks = rows.start / BLOCK_ROWS..block_count(rows.end);
        let mut decoded = Decoded::default();
        let view = View::of(chunk, blocks, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        view.search(key, rows)
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        if within.shape() == Shape::Rows {
            return repeats_decoded(self, chunk, within, out, work);
        }
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        view.for_each_selected(within, |key, count| out.add(key, count as u64));
    }

    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        if within.shape() == Shape::Rows {
            return rank_decoded(self, chunk, within, out, work);
        }
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        view.for_each_selected(within, |key, count| {
            out.resize(out.len() + count, rank_of(chunk.physical, key));
        });
    }

    fn fold_by(
        &self,
        chunk: &Chunk,
        within: &Selection,
        ids: &[u32],
        out: &mut dyn GroupFold,
        work: &mut Work,
    ) {
        if within.shape() == Shape::Rows {
            return fold_by_decoded(self, chunk, within, ids, out, work);
        }
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        let mut value = std::mem::take(&mut work.others);
        let mut rest = ids;
        view.for_each_selected(within, |key, count| {
            let (ids, following) = rest.split_at(count);
            out.add_same(ids, single(chunk, key, &mut value));
            rest = following;
        });
        work.others = value;
    }

    fn maps(&self, _chunk: &Chunk, _change: Change) -> bool {
        true
    }

    fn map(
        &self,
        chunk: &Chunk,
        change: Change,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let mut decoded = Decoded::default();
        let view = View::of_all(chunk, &mut decoded);
        work.tally.direct += view.ends.len() as u64;
        let (keys, ends) = (&mut encode.keys, &mut encode.ends);
        keys.clear();
        ends.clear();
        keys.extend(
            (0..view.ends.len()).map(|run| change.key(chunk.physical, view.keys.bits(run))),
        );
        ends.extend_from_slice(view.ends);
        out.begin_results(chunk.codec, chunk);
        write_runs(out, keys, ends);
        Ok(())
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        _work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        let (keys, ends) = (&mut encode.keys, &mut encode.ends);
        keys.clear();
        ends.clear();
        let start = rows.start;
        let mut decoded = Decoded::default();
        View::of_all(chunk, &mut decoded).for_each_run(rows.clone(), |key, run| {
            keys.push(key);
            ends.push((run.end - start) as u32);
        });
        out.begin_slice(chunk.codec, chunk, rows);
        write_runs(out, keys, ends);
        Ok(())
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

/// Writes the sections of runs with these keys and ends.
fn write_runs(out: &mut Chunk, keys: &[u64], ends: &[u32]) {
    let bytes = out.physical.lane_bytes();
    add_lanes_section(&mut out.body, KEYS, bytes, keys);
    out.body
        .add_section::<u32>(ENDS, ends.len())
        .copy_from_slice(ends);
    add_firsts(out, FIRST_RUNS, ends, false);
}
