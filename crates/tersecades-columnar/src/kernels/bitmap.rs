//! The loops over words of bits, and over the zones of blocks, that levels share.
//!
//! Everything here is inlined into a level's `run`.

use super::level::{Level, ROWS_SLACK};
use super::{GROUP_LANES, GROUPS, PerGroup, WORD_LANES, assert_overlap};
use std::ops::RangeInclusive;

/// Words whose emptiness is tested at once: a cache line.
const LINE_WORDS: usize = 8;
/// Rows that those words stand for.
const LINE_ROWS: u32 = 512;

/// `a = combine(a, b)` word by word.
#[inline(always)]
pub(super) fn zip(a: &mut [u64], b: &[u64], combine: impl Fn(u64, u64) -> u64) {
    assert_eq!(a.len(), b.len(), "bitmaps of one length");
    for (word, &other) in a.iter_mut().zip(b) {
        *word = combine(*word, other);
    }
}

#[inline(always)]
pub(super) fn count(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[inline(always)]
pub(super) fn count_groups(words: &[u64], out: &mut PerGroup<u64>) {
    out.fill(0);
    for (slot, words) in out.iter_mut().zip(words.chunks(GROUP_LANES / WORD_LANES)) {
        *slot = count(words);
    }
}

/// Words that [`union`] takes from one place at a time: four cache lines.
const UNION_WORDS: usize = 32;

/// The OR of all words, taken from `PLACES` places in turn.
#[inline(always)]
pub(super) fn union<const PLACES: usize>(words: &[u64]) -> u64 {
    let (steps, rest) = words.as_chunks::<UNION_WORDS>();
    let each = steps.len() / PLACES;
    let mut found = [[0; UNION_WORDS]; PLACES];
    for step in 0..each {
        for (place, found) in found.iter_mut().enumerate() {
            let words = &steps[place * each + step];
            found
                .iter_mut()
                .zip(words)
                .for_each(|(it, word)| *it |= word);
        }
    }
    let left = steps[each * PLACES..].iter().flatten().chain(rest);
    let found = found.iter().flatten().chain(left);
    found.fold(0, |any, word| any | word)
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn to_rows<L: Level>(words: &[u64], base_row: u32, out: &mut Vec<u32>) {
    let set: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    out.reserve(set + ROWS_SLACK);
    let mut slots = out.spare_capacity_mut().as_mut_ptr().cast::<u32>();
    let mut row = base_row;
    for line in words.chunks(LINE_WORDS) {
        if line.iter().fold(0, |any, word| any | word) == 0 {
            row = row.wrapping_add(LINE_ROWS);
            continue;
        }
        for &word in line {
            // SAFETY: the caller promised the features of `L`; `reserve` left room for all set
            // bits and the slack, and `slots` has advanced by the bits before `word`.
            unsafe {
                L::rows(word, row, slots);
                slots = slots.add(word.count_ones() as usize);
            }
            row = row.wrapping_add(u64::BITS);
        }
    }
    // SAFETY: the loop initialised the `set` slots after the old length, inside the capacity.
    unsafe { out.set_len(out.len() + set) };
}

#[inline(always)]
pub(super) fn from_rows(rows: &[u32], out: &mut [u64]) {
    out.fill(0);
    for &row in rows {
        let row = row as usize;
        out[row / WORD_LANES] |= 1 << (row % WORD_LANES);
    }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn overlap<L: Level>(
    bases: &[u64],
    maxima: &[u64],
    range: RangeInclusive<u64>,
    any: &mut [u8],
    all: &mut [u8],
) {
    assert_overlap(bases.len(), maxima.len(), any.len(), all.len());
    let (low, high) = range.into_inner();
    let (bases, bases_rest) = bases.as_chunks::<GROUPS>();
    let (maxima, maxima_rest) = maxima.as_chunks::<GROUPS>();
    let bytes = any.iter_mut().zip(all.iter_mut());
    for ((base, maximum), (any, all)) in bases.iter().zip(maxima).zip(bytes) {
        // SAFETY: the caller promised the features of `L`.
        (*any, *all) = unsafe { L::overlap(base, maximum, low, high) };
    }
    if !bases_rest.is_empty() {
        let kept = bases_rest.len();
        let (mut base, mut maximum) = ([0; GROUPS], [0; GROUPS]);
        base[..kept].copy_from_slice(bases_rest);
        maximum[..kept].copy_from_slice(maxima_rest);
        // SAFETY: the caller promised the features of `L`.
        let (some, whole) = unsafe { L::overlap(&base, &maximum, low, high) };
        let inside = (1u8 << kept) - 1;
        any[bases.len()] = some & inside;
        all[bases.len()] = whole & inside;
    }
}
