//! Comparing lanes that count from a base each few of them share.
//!
//! The range is moved to the bases of a block together, so that narrow lanes are compared as they
//! are; lanes whose base none of theirs reaches the range from answer zeros.

use std::ops::RangeInclusive;

use super::block::range_rest;
use super::level::{LINE_BYTES, Steps};
use super::{
    BLOCK_LANES, GROUPS, Lane, WORD_LANES, assert_based, prefetch_far_past, prefetch_past,
};

/// How far ahead of the lanes at hand memory is asked for, as far as the lanes reach: what lies
/// behind them is fetched for nothing.
const AHEAD_BYTES: usize = 2048;

/// Blocks between the one at hand and the one whose bases are asked for.
const AHEAD_BLOCKS: usize = 8;

/// Words of a block.
const WORDS: usize = BLOCK_LANES / WORD_LANES;

/// `PER` bases a block.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn range_mask<L: Steps<W>, W: Lane, const PER: usize>(
    values: &[W],
    bases: &[u64],
    range: RangeInclusive<u64>,
    out: &mut [u64],
) {
    assert_based(values.len(), BLOCK_LANES / PER, bases.len(), out.len());
    let (low, high) = range.into_inner();
    let (blocks, rest) = values.as_chunks::<BLOCK_LANES>();
    let (slots, last_slots) = out.split_at_mut(blocks.len() * WORDS);
    let (slots, _) = slots.as_chunks_mut::<WORDS>();
    let (of_blocks, last_bases) = bases.split_at(blocks.len() * PER);
    let (of_blocks, _) = of_blocks.as_chunks::<PER>();
    let mut left = size_of_val(values);
    for ((block, bases), slots) in blocks.iter().zip(of_blocks).zip(slots) {
        // Where there is nothing ahead, a line at hand is asked for, which costs nothing.
        let ahead = if left > AHEAD_BYTES { AHEAD_BYTES } else { 0 };
        left -= size_of_val(block);
        prefetch_past(bases, AHEAD_BLOCKS * size_of_val(bases));
        // SAFETY: the caller promised the features of `L`.
        let moved = unsafe { L::moved(bases, low, high) };
        if moved.met == 0 {
            slots.fill(0);
            continue;
        }
        let (words, _) = block.as_chunks::<WORD_LANES>();
        for (index, (word, slot)) in words.iter().zip(&mut *slots).enumerate() {
            for line in (0..size_of_val(word)).step_by(LINE_BYTES) {
                prefetch_far_past(word, ahead + line);
            }
            let base = index / (WORDS / PER);
            // SAFETY: the caller promised the features of `L`.
            unsafe { L::range(word, moved.from[base], moved.span[base], slot) };
        }
        moved.clear(slots);
    }
    let groups = rest.chunks(BLOCK_LANES / PER).zip(last_bases);
    for ((lanes, base), slots) in groups.zip(last_slots.chunks_mut(WORDS / PER)) {
        let moved = Moved::of::<W>(&[*base], low, high);
        let slots = &mut slots[..lanes.len().div_ceil(WORD_LANES)];
        let (words, last) = lanes.as_chunks::<WORD_LANES>();
        for (word, slot) in words.iter().zip(&mut *slots) {
            // SAFETY: the caller promised the features of `L`.
            unsafe { L::range(word, moved.from[0], moved.span[0], slot) };
        }
        if !last.is_empty() {
            let (from, span) = (W::truncate(moved.from[0]), W::truncate(moved.span[0]));
            // SAFETY: the caller promised the features of `L`.
            unsafe { range_rest::<L, W>(last, from, span, &mut slots[words.len()]) };
        }
        moved.clear(slots);
    }
}

/// A range as the lanes of `PER` bases see it.
pub(super) struct Moved<const PER: usize> {
    /// Both [`Lane::repeated`].
    pub(super) from: [u64; PER],
    pub(super) span: [u64; PER],
    /// A bit for each base that a lane reaches the range from: the others mean nothing.
    pub(super) met: u8,
}

impl<const PER: usize> Moved<PER> {
    #[inline(always)]
    pub(super) fn of<W: Lane>(bases: &[u64; PER], low: u64, high: u64) -> Self {
        let widest = Into::<u64>::into(W::MAX);
        let (from, span, met) = ([0; PER], [0; PER], 0);
        let mut moved = Moved { from, span, met };
        for (index, &base) in bases.iter().enumerate() {
            let from = low.max(base) - base;
            let span = high.wrapping_sub(base).min(widest).wrapping_sub(from);
            moved.from[index] = W::truncate(from).repeated();
            moved.span[index] = W::truncate(span).repeated();
            moved.met |= u8::from(base <= high && from <= widest) << index;
        }
        moved
    }

    /// Clears the words of the bases that no lane reaches the range from.
    #[inline(always)]
    fn clear(&self, words: &mut [u64]) {
        if self.met == u8::MAX >> (GROUPS - PER) {
            return;
        }
        let each = words.len().div_ceil(PER);
        for (index, words) in words.chunks_mut(each).enumerate() {
            if self.met >> index & 1 == 0 {
                words.fill(0);
            }
        }
    }
}
