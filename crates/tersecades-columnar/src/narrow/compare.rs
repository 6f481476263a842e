//! Comparing blocks of bases and narrow deltas with ranges.
//!
//! ```text
//! zones          what the chunk itself says of each block      no byte of the block is read
//! ends           base and maximum of the blocks left over      one vector compare a block
//! deltas         runs of blocks of one width that are left     one kernel call a run
//! ```
//! The comparison of deltas is exact without the ends, so these are read only as long as they rule
//! blocks out, and not at all where zones are as fine.

use std::ops::Range;

use crate::aligned::CACHE_LINE_BYTES;
use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS};
use crate::chunk::Chunk;
use crate::codec::{Tally, Work};
use crate::kernels::{kernels, prefetch_start};
use crate::lane::KeyLane;
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape, clear_tail};
use crate::zone::ZoneMarks;

use super::{Deltas, START_BYTES, single_range};

const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// Blocks whose ends are tested at once.
const STRIP: usize = 8;

/// Strips between the one at hand and the one whose ends are asked for.
const AHEAD_STRIPS: usize = 2;

/// Selects the rows of `within` that pass `predicate`, range by range.
///
/// `compare` selects the rows of one range; whether it selects rows outside `within` does not
/// matter.
pub(crate) fn compare_ranges(
    chunk: &Chunk,
    predicate: &Predicate,
    (within, out): (&Selection, &mut Selection),
    work: &mut Work,
    mut compare: impl FnMut(KeyRange, &mut Selection, &mut Tally),
) {
    let Predicate::Keys(ranges) = predicate else {
        return out.set_none(chunk.rows);
    };
    if let Some((range, inverted)) = single_range(predicate, chunk.physical.key_max()) {
        compare(range, out, &mut work.tally);
        if inverted {
            out.invert();
        }
    } else {
        let mut part = std::mem::take(&mut work.selection);
        out.set_none(chunk.rows);
        for range in ranges {
            compare(*range, &mut part, &mut work.tally);
            out.unite(&part);
        }
        work.selection = part;
    }
    out.intersect(within);
}

/// What is to be done for a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No row passes, or none is wanted.
    Skip,
    /// Every row passes.
    Take,
    /// Its deltas tell.
    Read,
}

/// Blocks of deltas that count from `PER` bases each, and what bounds their values.
pub(crate) struct Bounded<'a, const PER: usize> {
    pub(crate) deltas: Deltas<'a>,
    pub(crate) bases: &'a [u64],
    pub(crate) maxima: &'a [u64],
}

impl<const PER: usize> Bounded<'_, PER> {
    /// Selects the rows of `range`, and maybe others outside `within`.
    pub(crate) fn compare(
        &self,
        range: KeyRange,
        zones: ZoneMarks,
        within: &Selection,
        out: &mut Selection,
        tally: &mut Tally,
    ) {
        let rows = self.deltas.rows;
        if zones.is_empty() {
            tally.skipped += rows as u64;
            return out.set_none(rows);
        }
        self.prefetch(zones.first_touched(), !zones.are_fine());
        let words = out.set_stale_bits(rows);
        let blocks = self.deltas.widths.len();
        let mut test = EndTest {
            range,
            useful: !zones.are_fine(),
        };
        let (mut seen, mut first) = (false, 0);
        while first < blocks {
            if let Some(end) = self.open_run(first, zones, within, &test) {
                let words = &mut words[first * WORDS..];
                let run_rows = rows.min(end * BLOCK_ROWS) - first * BLOCK_ROWS;
                let words = &mut words[..run_rows.div_ceil(WORD_ROWS)];
                self.read(first..end, range, words);
                tally.direct += run_rows as u64;
                (seen, first) = (true, end);
                continue;
            }
            let strip = first..(first + STRIP).min(blocks);
            self.prefetch_ends(first + AHEAD_STRIPS * STRIP, test.useful);
            let verdicts = self.judge(strip.clone(), zones, within, &mut test);
            seen |= verdicts[..strip.len()]
                .iter()
                .any(|verdict| *verdict != Verdict::Skip);
            self.settle(&strip, &verdicts, range, words, tally);
            first = strip.end;
        }
        match seen {
            true => clear_tail(words, rows),
            false => out.set_none(rows),
        }
    }

    /// Visits the blocks with rows of `within`: what is to be done for each, and which of its rows
    /// are meant, all without a bitmap.
    pub(crate) fn visit(
        &self,
        range: KeyRange,
        zones: ZoneMarks,
        within: &Selection,
        tally: &mut Tally,
        mut visit: impl FnMut(usize, Verdict, Option<&[u64]>),
    ) {
        let blocks = self.deltas.widths.len();
        let mut test = EndTest {
            range,
            useful: !zones.are_fine(),
        };
        self.prefetch(zones.first_touched(), test.useful);
        for start in (0..blocks).step_by(STRIP) {
            let strip = start..blocks.min(start + STRIP);
            let verdicts = self.judge(strip.clone(), zones, within, &mut test);
            for (block, verdict) in strip.zip(verdicts) {
                let looked_at = match verdict {
                    Verdict::Skip => &mut tally.skipped,
                    Verdict::Take | Verdict::Read => &mut tally.direct,
                };
                *looked_at += self.deltas.block_len(block) as u64;
                match within.block(block) {
                    BlockSelection::None => {}
                    BlockSelection::All => visit(block, verdict, None),
                    BlockSelection::Bits(words) => visit(block, verdict, Some(words)),
                }
            }
        }
    }

    /// The end of a run of blocks of one width that must all be read, where ends tell nothing.
    fn open_run(
        &self,
        first: usize,
        zones: ZoneMarks,
        within: &Selection,
        test: &EndTest,
    ) -> Option<usize> {
        if test.useful || within.shape() == Shape::Bits {
            return None;
        }
        let widths = &self.deltas.widths[first..zones.open_until(first, self.deltas.widths.len())];
        let differs = widths.iter().position(|width| *width != widths[0]);
        let run = differs.unwrap_or(widths.len());
        (run > 0).then_some(first + run)
    }

    /// Fills the words of a strip as its verdicts say.
    fn settle(
        &self,
        strip: &Range<usize>,
        verdicts: &[Verdict; STRIP],
        range: KeyRange,
        words: &mut [u64],
        tally: &mut Tally,
    ) {
        let mut start = strip.start;
        while start < strip.end {
            let end = self.run_end(start, strip, verdicts);
            let last = (end * WORDS).min(words.len());
            let words = &mut words[start * WORDS..last];
            let rows = self.deltas.rows.min(end * BLOCK_ROWS) - start * BLOCK_ROWS;
            let looked_at = match verdicts[start - strip.start] {
                Verdict::Skip => {
                    words.fill(0);
                    &mut tally.skipped
                }
                Verdict::Take => {
                    words.fill(u64::MAX);
                    &mut tally.skipped
                }
                Verdict::Read => {
                    self.read(start..end, range, words);
                    &mut tally.direct
                }
            };
            *looked_at += rows as u64;
            start = end;
        }
    }

    /// Asks for what is read first: widths, places, ends of the first strips, deltas of `block`.
    fn prefetch(&self, block: usize, maxima: bool) {
        prefetch_start(self.deltas.widths, START_BYTES);
        prefetch_start(bytemuck::cast_slice(self.deltas.offsets), START_BYTES);
        for strip in 0..AHEAD_STRIPS {
            self.prefetch_ends(
                block + strip * STRIP,
                maxima && (strip == 0 || PER < GROUPS),
            );
        }
        // The first block starts at the first line: that offset need not come from memory first.
        let line = match block {
            0 => 0,
            _ => self.deltas.offsets.get(block).copied().unwrap_or(0),
        };
        let start = line as usize * CACHE_LINE_BYTES;
        if let Some(deltas) = self.deltas.bytes.get(start..) {
            prefetch_start(deltas, START_BYTES);
        }
    }

    /// Asks for the bases, and maybe the maxima, of the strip that starts with `block`.
    fn prefetch_ends(&self, block: usize, maxima: bool) {
        let bytes = STRIP * PER * size_of::<u64>();
        for (values, wanted) in [(self.bases, true), (self.maxima, maxima)] {
            if wanted && let Some(values) = values.get(block * PER..) {
                prefetch_start(bytemuck::cast_slice(values), bytes);
            }
        }
    }

    /// What is to be done for each block of a strip.
    fn judge(
        &self,
        strip: Range<usize>,
        zones: ZoneMarks,
        within: &Selection,
        test: &mut EndTest,
    ) -> [Verdict; STRIP] {
        let mut verdicts = [Verdict::Skip; STRIP];
        let mut open = false;
        for (verdict, block) in verdicts.iter_mut().zip(strip.clone()) {
            let wanted = within.shape() != Shape::Bits
                || !matches!(within.block(block), BlockSelection::None);
            *verdict = match (wanted && zones.touches(block), zones.covers(block)) {
                (false, _) => Verdict::Skip,
                (true, true) => Verdict::Take,
                (true, false) => Verdict::Read,
            };
            open |= *verdict == Verdict::Read;
        }
        if open && test.useful {
            let (touched, covered) = self.test_ends(strip, test);
            for (index, verdict) in verdicts.iter_mut().enumerate() {
                *verdict = match *verdict {
                    Verdict::Read if touched >> index & 1 == 0 => Verdict::Skip,
                    Verdict::Read if covered >> index & 1 == 1 => Verdict::Take,
                    settled => settled,
                };
            }
            let read = verdicts.contains(&Verdict::Read);
            test.useful = !read || verdicts.iter().any(|verdict| *verdict != Verdict::Read);
        }
        verdicts
    }

    /// Which blocks of a strip the range touches and which it covers, a bit each.
    fn test_ends(&self, strip: Range<usize>, test: &EndTest) -> (u8, u8) {
        let (mut any, mut all) = ([0; STRIP], [0; STRIP]);
        let entries = strip.start * PER..strip.end * PER;
        let bytes = entries.len().div_ceil(GROUPS);
        let (bases, maxima) = (&self.bases[entries.clone()], &self.maxima[entries]);
        let range = test.range.low..=test.range.high;
        (kernels().overlap)(bases, maxima, range, &mut any[..bytes], &mut all[..bytes]);
        if PER < GROUPS {
            return (any[0], all[0]);
        }
        let bits = |pass: &dyn Fn(usize) -> bool| {
            (0..bytes).fold(0, |bits, block| bits | u8::from(pass(block)) << block)
        };
        (
            bits(&|block| any[block] != 0),
            bits(&|block| all[block] == u8::MAX),
        )
    }

    /// The end of the run that starts with `start`: blocks of one verdict and, read, one width.
    fn run_end(&self, start: usize, strip: &Range<usize>, verdicts: &[Verdict; STRIP]) -> usize {
        let verdict = verdicts[start - strip.start];
        let differs = |block: &usize| {
            let width_differs = self.deltas.widths[*block] != self.deltas.widths[start];
            verdicts[*block - strip.start] != verdict || (verdict == Verdict::Read && width_differs)
        };
        (start + 1..strip.end).find(differs).unwrap_or(strip.end)
    }

    /// Fills the words of a run of blocks of one width.
    pub(crate) fn read(&self, blocks: Range<usize>, range: KeyRange, words: &mut [u64]) {
        let bases = &self.bases[blocks.start * PER..blocks.end * PER];
        match self.deltas.widths[blocks.start] {
            0 => {
                for (base, words) in bases.iter().zip(words.chunks_mut(WORDS / PER)) {
                    words.fill(if range.contains(*base) { u64::MAX } else { 0 });
                }
            }
            1 => self.read_lanes::<u8>(blocks, bases, range, words),
            2 => self.read_lanes::<u16>(blocks, bases, range, words),
            4 => self.read_lanes::<u32>(blocks, bases, range, words),
            _ => self.read_lanes::<u64>(blocks, bases, range, words),
        }
    }

    fn read_lanes<D: KeyLane>(
        &self,
        blocks: Range<usize>,
        bases: &[u64],
        range: KeyRange,
        words: &mut [u64],
    ) {
        let table = D::of(kernels());
        let mask = match PER < GROUPS {
            true => table.range_mask_blocks,
            false => table.range_mask_groups,
        };
        mask(
            self.deltas.run::<D>(blocks),
            bases,
            range.low..=range.high,
            words,
        );
    }
}

/// The test of ends against a range, as long as it tells something.
struct EndTest {
    range: KeyRange,
    useful: bool,
}
