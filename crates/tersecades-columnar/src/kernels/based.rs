//! Comparing lanes that count from a base each few of them share.
//!
//! The range is moved to the bases of a block together, so that narrow lanes are compared as they
//! are; lanes whose base none of theirs reaches the range from answer zeros.

use std::ops::RangeInclusive;

use super::block::range_rest;
use super::level::{LINE_BYTES, Steps};
use super::{BLOCK_LANES, GROUPS, Lane, PerGroup, WORD_LANES, assert_based, prefetch_past};

/// How far ahead of the lanes at hand memory is asked for, as far as the lanes reach: what lies
/// behind them is fetched for nothing.
const AHEAD_BYTES: usize = 8192;

/// Blocks between the one at hand and the one whose bases are asked for.
const AHEAD_BLOCKS: usize = 8;

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn range_mask<L: Steps<W>, W: Lane, const LANES: usize>(
    values: &[W],
    bases: &[u64],
    range: RangeInclusive<u64>,
    out: &mut [u64],
) {
    assert_based(values.len(), LANES, bases.len(), out.len());
    let (low, high) = range.into_inner();
    let per_block = BLOCK_LANES / LANES;
    let (blocks, rest) = values.as_chunks::<BLOCK_LANES>();
    let (slots, last_slots) = out.split_at_mut(blocks.len() * (BLOCK_LANES / WORD_LANES));
    let (slots, _) = slots.as_chunks_mut::<{ BLOCK_LANES / WORD_LANES }>();
    let mut ahead = size_of_val(values).saturating_sub(AHEAD_BYTES);
    for ((block, bases), slots) in blocks.iter().zip(bases.chunks_exact(per_block)).zip(slots) {
        if ahead > 0 {
            for line in (0..size_of_val(block)).step_by(LINE_BYTES) {
                prefetch_past(block, AHEAD_BYTES + line);
            }
            ahead = ahead.saturating_sub(size_of_val(block));
        }
        prefetch_past(bases, AHEAD_BLOCKS * size_of_val(bases));
        let moved = Moved::of::<W>(low, high, bases);
        if moved.met == [0; GROUPS] {
            slots.fill(0);
            continue;
        }
        let (words, _) = block.as_chunks::<WORD_LANES>();
        for (index, (word, slot)) in words.iter().zip(&mut *slots).enumerate() {
            let base = index / (LANES / WORD_LANES);
            // SAFETY: the caller promised the features of `L`.
            unsafe { L::range(word, moved.from(base), moved.span(base), slot) };
        }
        moved.clear(bases.len(), slots);
    }
    let bases = &bases[blocks.len() * per_block..];
    for ((lanes, base), slots) in rest
        .chunks(LANES)
        .zip(bases)
        .zip(last_slots.chunks_mut(LANES / WORD_LANES))
    {
        let moved = Moved::of::<W>(low, high, std::slice::from_ref(base));
        let slots = &mut slots[..lanes.len().div_ceil(WORD_LANES)];
        let (words, last) = lanes.as_chunks::<WORD_LANES>();
        for (word, slot) in words.iter().zip(&mut *slots) {
            // SAFETY: the caller promised the features of `L`.
            unsafe { L::range(word, moved.from(0), moved.span(0), slot) };
        }
        if !last.is_empty() {
            let slot = &mut slots[words.len()];
            // SAFETY: the caller promised the features of `L`.
            unsafe { range_rest::<L, W>(last, moved.from(0), moved.span(0), slot) };
        }
        moved.clear(1, slots);
    }
}

/// A range as the lanes of up to eight bases see it.
struct Moved {
    from: PerGroup<u64>,
    span: PerGroup<u64>,
    /// 0 where no lane reaches the range: the rest means nothing there.
    met: PerGroup<u64>,
}

impl Moved {
    #[inline(always)]
    fn of<W: Lane>(low: u64, high: u64, bases: &[u64]) -> Self {
        let widest = u64::MAX >> (u64::BITS - W::BITS);
        let mut moved = Moved {
            from: [0; GROUPS],
            span: [0; GROUPS],
            met: [0; GROUPS],
        };
        let slots = moved.from.iter_mut().zip(&mut moved.span);
        for (((from, span), met), &base) in slots.zip(&mut moved.met).zip(bases) {
            *from = low.max(base) - base;
            *span = high.wrapping_sub(base).min(widest).wrapping_sub(*from);
            *met = u64::from(base <= high) & u64::from(*from <= widest);
        }
        moved
    }

    #[inline(always)]
    fn from<W: Lane>(&self, base: usize) -> W {
        W::truncate(self.from[base])
    }

    #[inline(always)]
    fn span<W: Lane>(&self, base: usize) -> W {
        W::truncate(self.span[base])
    }

    /// Clears the words of the first `bases` bases that no lane reaches the range from.
    #[inline(always)]
    fn clear(&self, bases: usize, words: &mut [u64]) {
        if self.met[..bases].iter().fold(1, |all, met| all & met) == 1 {
            return;
        }
        let each = words.len().div_ceil(bases);
        for (met, words) in self.met.iter().zip(words.chunks_mut(each)) {
            if *met == 0 {
                words.fill(0);
            }
        }
    }
}
