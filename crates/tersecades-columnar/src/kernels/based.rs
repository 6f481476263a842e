//! Comparing lanes that count from a base each few of them share.
//!
//! The range is moved to each base once, so that narrow lanes are compared as they are; a base
//! from which no lane reaches the range answers zeros without a look at its lanes.

use std::ops::RangeInclusive;

use super::block::range_rest;
use super::level::{LINE_BYTES, Steps};
use super::{Lane, WORD_LANES, assert_based, prefetch_past};

/// How far ahead of the lanes at hand memory is asked for.
const AHEAD_BYTES: usize = 4096;

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
    let (full, rest) = values.as_chunks::<LANES>();
    let slots = out.chunks_mut(LANES / WORD_LANES);
    for ((group, &base), slots) in full.iter().zip(bases).zip(slots) {
        for line in (0..size_of_val(group)).step_by(LINE_BYTES) {
            prefetch_past(group, AHEAD_BYTES + line);
        }
        let Some((from, span)) = moved::<W>(low, high, base) else {
            slots.fill(0);
            continue;
        };
        let (words, _) = group.as_chunks::<WORD_LANES>();
        for (word, slot) in words.iter().zip(slots) {
            // SAFETY: the caller promised the features of `L`.
            unsafe { L::range(word, from, span, slot) };
        }
    }
    if !rest.is_empty() {
        let slots = &mut out[full.len() * (LANES / WORD_LANES)..];
        let slots = &mut slots[..rest.len().div_ceil(WORD_LANES)];
        let Some((from, span)) = moved::<W>(low, high, bases[full.len()]) else {
            return slots.fill(0);
        };
        let (words, last) = rest.as_chunks::<WORD_LANES>();
        for (word, slot) in words.iter().zip(&mut *slots) {
            // SAFETY: the caller promised the features of `L`.
            unsafe { L::range(word, from, span, slot) };
        }
        if !last.is_empty() {
            // SAFETY: the caller promised the features of `L`.
            unsafe { range_rest::<L, W>(last, from, span, &mut slots[words.len()]) };
        }
    }
}

/// First lane and span of `low..=high` as seen from `base`, unless no lane reaches it.
#[inline(always)]
fn moved<W: Lane>(low: u64, high: u64, base: u64) -> Option<(W, W)> {
    let widest = u64::MAX >> (u64::BITS - W::BITS);
    let from = low.saturating_sub(base);
    if high < base || from > widest {
        return None;
    }
    let to = (high - base).min(widest);
    Some((W::truncate(from), W::truncate(to - from)))
}
