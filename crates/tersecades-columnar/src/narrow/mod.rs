//! Blocks of narrow deltas, as every codec with bases keeps them: widths, places, loops.
//!
//! Three sections in a row: bytes per delta of each block (0, 1, 2, 4 or 8), where each block's
//! deltas start in cache lines (`blocks + 1` counters), and the deltas, each block from the next
//! cache line on. What a delta is counted from is the codec's affair.

mod add;
mod arithmetic;
mod banded;
mod compare;
mod fold;
mod map;
mod slice;
mod write;

use std::ops::Range;

use crate::aligned::CACHE_LINE_BYTES;
use crate::block::{BLOCK_ROWS, GROUPS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::kernels::{Lane, Narrow, kernels, prefetch_rows, prefetch_start};
use crate::predicate::{KeyRange, Predicate};

pub(crate) use add::{add_banded, adds_banded};
pub(crate) use arithmetic::{bias, has_values, place};
pub(crate) use banded::{BASES, DELTAS, MAXIMA, OFFSETS, PATCHES, WIDTHS};
pub(crate) use compare::{Bounded, Verdict, compare_ranges};
pub(crate) use fold::{GroupFold, fold_tested, keep_within};
pub(crate) use map::{map_banded, maps_banded};
pub(crate) use slice::slice_banded;
pub(crate) use write::{fill_holes, line_number, narrow, prefetch_eighth, section_mut};

/// Bytes of deltas that are asked for before they are read.
const START_BYTES: usize = 4096;

/// The largest delta of `width` bytes.
#[inline]
pub(crate) fn widest(width: usize) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - 8 * width)
    }
}

/// The fewest bytes that hold `range`.
pub(crate) fn width_of(range: u64) -> usize {
    [0, 1, 2, 4]
        .into_iter()
        .find(|width| range <= widest(*width))
        .unwrap_or(8)
}

/// The one range to evaluate, and whether the rows it leaves out are meant.
///
/// A predicate of two ranges around a gap (`<>`) is evaluated by its gap; `None` when there are
/// more.
pub(crate) fn single_range(predicate: &Predicate, key_max: u64) -> Option<(KeyRange, bool)> {
    let Predicate::Keys(ranges) = predicate else {
        return None;
    };
    match ranges.as_slice() {
        [range] => Some((*range, false)),
        [below, above] if below.low == 0 && above.high == key_max => {
            let gap = KeyRange {
                low: below.high + 1,
                high: above.low - 1,
            };
            // Ranges side by side leave out nothing.
            (gap.low <= gap.high).then_some((gap, true))
        }
        _ => None,
    }
}

/// The deltas of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct Deltas<'a> {
    rows: usize,
    /// Bytes per delta of each block.
    pub(crate) widths: &'a [u8],
    /// Where each block starts, and the end, in cache lines.
    pub(crate) offsets: &'a [u32],
    /// The deltas of all blocks.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Deltas<'a> {
    /// The deltas in the sections from `first` on.
    pub(crate) fn of(chunk: &'a Chunk, first: usize) -> Self {
        Deltas {
            rows: chunk.rows,
            widths: chunk.body.section(first),
            offsets: chunk.body.section(first + 1),
            bytes: chunk.body.section(first + 2),
        }
    }

    /// Rows of a block.
    #[inline]
    pub(crate) fn block_len(&self, block: usize) -> usize {
        block_rows(block, self.rows).len()
    }

    /// The deltas of a block whose width is the lane's.
    #[inline]
    pub(crate) fn block<D: bytemuck::Pod>(&self, block: usize) -> &'a [D] {
        let start = self.offsets[block] as usize * CACHE_LINE_BYTES;
        let bytes = self.block_len(block) * size_of::<D>();
        bytemuck::cast_slice(&self.bytes[start..start + bytes])
    }

    /// The deltas of a run of blocks whose width is the lane's.
    #[inline]
    pub(crate) fn run<D: bytemuck::Pod>(&self, blocks: Range<usize>) -> &'a [D] {
        let start = self.offsets[blocks.start] as usize * CACHE_LINE_BYTES;
        let rows = self.rows.min(blocks.end * BLOCK_ROWS) - blocks.start * BLOCK_ROWS;
        bytemuck::cast_slice(&self.bytes[start..start + rows * size_of::<D>()])
    }

    /// All deltas, where every block has the lane's width.
    #[inline]
    pub(crate) fn all<D: bytemuck::Pod>(&self) -> &'a [D] {
        bytemuck::cast_slice(self.bytes)
    }

    /// The delta of one row and the widest of its block.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> (u64, u64) {
        let block = row / BLOCK_ROWS;
        let width = self.widths[block];
        let start = self.offsets[block] as usize * CACHE_LINE_BYTES;
        let at = start + (row % BLOCK_ROWS) * usize::from(width);
        match width {
            0 => (0, 0),
            1 => (u64::from(self.bytes[at]), u64::from(u8::MAX)),
            2 => (read::<2>(self.bytes, at), u64::from(u16::MAX)),
            4 => (read::<4>(self.bytes, at), u64::from(u32::MAX)),
            _ => (read::<8>(self.bytes, at), u64::MAX),
        }
    }

    /// The width of all blocks, where they share one that is not zero; else zero.
    pub(crate) fn uniform_width(&self) -> u8 {
        let first = self.widths.first().copied().unwrap_or(0);
        if self.widths.iter().all(|width| *width == first) {
            first
        } else {
            0
        }
    }

    /// The sum of the deltas of the first `blocks` blocks, which are full.
    pub(crate) fn sum(&self, blocks: usize) -> u128 {
        let (mut sum, mut start) = (0, 0);
        while start < blocks {
            let width = self.widths[start];
            let same = self.widths[start..blocks]
                .iter()
                .position(|next| *next != width);
            let end = same.map_or(blocks, |count| start + count);
            sum += sum_bytes(width, self.of_blocks(start..end));
            start = end;
        }
        sum
    }

    /// The deltas of blocks of one width, each up to its last cache line.
    pub(crate) fn of_blocks(&self, blocks: Range<usize>) -> &'a [u8] {
        let start = self.offsets[blocks.start] as usize * CACHE_LINE_BYTES;
        &self.bytes[start..self.offsets[blocks.end] as usize * CACHE_LINE_BYTES]
    }

    /// Asks for what is read first, for whoever reads all deltas after something else.
    pub(crate) fn prefetch_start(&self) {
        prefetch_start(self.widths, START_BYTES);
        prefetch_start(bytemuck::cast_slice(self.offsets), START_BYTES);
        prefetch_start(self.bytes, START_BYTES);
    }

    /// Asks for the lines of the listed rows.
    pub(crate) fn prefetch(&self, rows: &[u32]) {
        match self.uniform_width() {
            1 => prefetch_rows(self.bytes, rows),
            2 => prefetch_rows(self.all::<u16>(), rows),
            4 => prefetch_rows(self.all::<u32>(), rows),
            8 => prefetch_rows(self.all::<u64>(), rows),
            _ => rows
                .chunk_by(|a, b| *a as usize / BLOCK_ROWS == *b as usize / BLOCK_ROWS)
                .for_each(|rows| self.prefetch_block(rows)),
        }
    }

    /// Asks for the lines of the listed rows, all of one block.
    pub(crate) fn prefetch_block(&self, rows: &[u32]) {
        let block = rows.first().map_or(0, |row| *row as usize / BLOCK_ROWS);
        let width = usize::from(self.widths[block]);
        let start = self.offsets[block] as usize * CACHE_LINE_BYTES;
        for row in rows.iter().filter(|_| width > 0) {
            let at = start + *row as usize % BLOCK_ROWS * width;
            prefetch_rows(self.bytes, &[at as u32]);
        }
    }

    /// Checks what the accessors rely on.
    ///
    /// # Errors
    /// `Corrupt` with the block.
    pub(crate) fn validate(&self, lane_bytes: usize) -> Result<()> {
        let blocks = block_count(self.rows);
        if self.widths.len() != blocks || self.offsets.len() != blocks + 1 {
            return Err(Error::corrupt(
                "delta sections do not fit the number of blocks",
            ));
        }
        let mut end = 0;
        for block in 0..blocks {
            let width = self.widths[block];
            let bytes = self.block_len(block) * usize::from(width);
            let lines = bytes.div_ceil(CACHE_LINE_BYTES);
            let fits = self.offsets[block] == end
                && (end as usize + lines) * CACHE_LINE_BYTES <= self.bytes.len();
            let narrow = usize::from(width) <= lane_bytes;
            if !matches!(width, 0 | 1 | 2 | 4 | 8) || !narrow || !fits {
                return Err(Error::corrupt("deltas out of range").block(block as u32));
            }
            end += lines as u32;
        }
        let ends = end as usize * CACHE_LINE_BYTES == self.bytes.len();
        match self.offsets[blocks] == end && ends {
            true => Ok(()),
            false => Err(Error::corrupt(
                "the deltas end elsewhere than the last block",
            )),
        }
    }
}

#[inline]
fn read<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(word)
}

/// The sum of deltas of `width` bytes.
fn sum_bytes(width: u8, bytes: &[u8]) -> u128 {
    match width {
        0 => 0,
        1 => (kernels().u8.sum_flat)(bytes),
        2 => (kernels().u16.sum_flat)(bytemuck::cast_slice(bytes)),
        4 => (kernels().u32.sum_flat)(bytemuck::cast_slice(bytes)),
        _ => (kernels().u64.sum_flat)(bytemuck::cast_slice(bytes)),
    }
}

/// Fills `out` with `bases[g] + delta` of one block.
pub(crate) fn widen<D: Lane>(deltas: &[D], bases: &[u64; GROUPS], out: &mut [u64])
where
    u64: Narrow<D>,
{
    (<u64 as Narrow<D>>::pair(kernels()).widen)(deltas, bases, 0, out);
}

/// Runs `$body` with `$lanes` bound to the deltas of `$block`, typed by the block's width, or
/// `$zero` when the width is 0.
macro_rules! with_deltas {
    ($deltas:expr, $block:expr, $lanes:ident => $body:expr, zero $zero:expr) => {
        match $deltas.widths[$block] {
            0 => $zero,
            1 => {
                let $lanes = $deltas.block::<u8>($block);
                $body
            }
            2 => {
                let $lanes = $deltas.block::<u16>($block);
                $body
            }
            4 => {
                let $lanes = $deltas.block::<u32>($block);
                $body
            }
            _ => {
                let $lanes = $deltas.block::<u64>($block);
                $body
            }
        }
    };
}
pub(crate) use with_deltas;
