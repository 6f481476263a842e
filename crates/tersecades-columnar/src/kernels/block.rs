//! The loops over lanes that all levels but `scalar` share.
//!
//! Everything here is inlined into a level's `run`. A group or a word of lanes is a fixed-size
//! array, so the compiler sees constant trip counts; the last, short piece goes the same way as
//! a slice or as a word padded with zeros. Accumulators are as narrow as their bound allows.

use super::level::{LINE_BYTES, Level, Steps, Word};
use super::{GROUP_LANES, Lane, Narrow, PerGroup, WORD_LANES, assert_add, assert_block};

/// Words of a group.
pub(super) const GROUP_WORDS: usize = GROUP_LANES / WORD_LANES;

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn range_mask<L: Steps<W>, W: Lane>(
    values: &[W],
    low: &PerGroup<W>,
    span: &PerGroup<W>,
    out: &mut [u64],
) {
    assert_block(values.len(), Some(&*out));
    let (full, rest) = values.as_chunks::<WORD_LANES>();
    for (index, (word, slot)) in full.iter().zip(out.iter_mut()).enumerate() {
        let group = index / GROUP_WORDS;
        // SAFETY: the caller promised the features of `L`.
        unsafe { L::range(word, low[group].repeated(), span[group].repeated(), slot) };
    }
    if !rest.is_empty() {
        let group = full.len() / GROUP_WORDS;
        // SAFETY: the caller promised the features of `L`.
        unsafe { range_rest::<L, W>(rest, low[group], span[group], &mut out[full.len()]) };
    }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn range_mask_flat<L: Steps<W>, W: Lane>(
    values: &[W],
    low: W,
    span: W,
    out: &mut [u64],
) {
    assert!(
        out.len() >= values.len().div_ceil(WORD_LANES),
        "short bitmap"
    );
    let (full, rest) = values.as_chunks::<WORD_LANES>();
    let (all_low, all_span) = (low.repeated(), span.repeated());
    for (word, slot) in full.iter().zip(out.iter_mut()) {
        // SAFETY: the caller promised the features of `L`.
        unsafe { L::range(word, all_low, all_span, slot) };
    }
    if !rest.is_empty() {
        // SAFETY: the caller promised the features of `L`.
        unsafe { range_rest::<L, W>(rest, low, span, &mut out[full.len()]) };
    }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn range_rest<L: Steps<W>, W: Lane>(rest: &[W], low: W, span: W, out: &mut u64) {
    // SAFETY: the caller promised the features of `L`.
    unsafe { L::range(&padded(rest), low.repeated(), span.repeated(), out) };
    *out &= first_bits(rest.len());
}

/// `values[i]` where bit `i` of `keep` is set, else `fill`.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn select<L: Steps<W>, W: Lane>(
    values: &[W; GROUP_LANES],
    keep: [u64; GROUP_WORDS],
    fill: W,
) -> [W; GROUP_LANES] {
    let mut kept = [fill; GROUP_LANES];
    let (words, _) = values.as_chunks::<WORD_LANES>();
    let (slots, _) = kept.as_chunks_mut::<WORD_LANES>();
    for ((slot, word), keep) in slots.iter_mut().zip(words).zip(keep) {
        // SAFETY: the caller promised the features of `L`.
        unsafe { L::select(word, keep, fill, slot) };
    }
    kept
}

/// The mask of the last, short group, without the bits after its `lanes` lanes.
#[inline(always)]
pub(super) fn rest_mask(mask: &[u64], group: usize, lanes: usize) -> [u64; GROUP_WORDS] {
    let first = group * GROUP_WORDS;
    std::array::from_fn(|word| match lanes.saturating_sub(word * WORD_LANES) {
        0 => 0,
        count if count < WORD_LANES => mask[first + word] & first_bits(count),
        _ => mask[first + word],
    })
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn min_max<L: Steps<W>, W: Lane>(
    values: &[W],
    flip: W,
    mask: Option<&[u64]>,
    min: &mut PerGroup<W>,
    max: &mut PerGroup<W>,
) {
    assert_block(values.len(), mask);
    min.fill(W::MAX);
    max.fill(W::default());
    let Some(mask) = mask else {
        let (full, rest) = values.as_chunks::<GROUP_LANES>();
        for (index, group) in full.iter().enumerate() {
            (min[index], max[index]) = ends(group, flip);
        }
        if !rest.is_empty() {
            (min[full.len()], max[full.len()]) = ends(rest, flip);
        }
        return;
    };
    let (full, rest) = values.as_chunks::<GROUP_LANES>();
    let (masks, _) = mask.as_chunks::<GROUP_WORDS>();
    for (index, (group, &keep)) in full.iter().zip(masks).enumerate() {
        // SAFETY: the caller promised the features of `L`.
        (min[index], max[index]) = unsafe { masked_ends::<L, W>(group, flip, keep) };
    }
    if !rest.is_empty() {
        let keep = rest_mask(mask, full.len(), rest.len());
        // SAFETY: the caller promised the features of `L`.
        let ends = unsafe { masked_ends::<L, W>(&padded(rest), flip, keep) };
        (min[full.len()], max[full.len()]) = ends;
    }
}

/// The smallest and the largest `value ^ flip` of the lanes of `keep`.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn masked_ends<L: Steps<W>, W: Lane>(
    values: &[W; GROUP_LANES],
    flip: W,
    keep: [u64; GROUP_WORDS],
) -> (W, W) {
    let Some(word) = keep.iter().position(|&word| word != 0) else {
        return (W::MAX, W::default());
    };
    // A lane outside the mask repeats a lane inside it and so moves no end.
    let inside = values[word * WORD_LANES + keep[word].trailing_zeros() as usize];
    // SAFETY: the caller promised the features of `L`.
    ends(&unsafe { select::<L, W>(values, keep, inside) }, flip)
}

/// The smallest and the largest `value ^ flip`.
#[inline(always)]
fn ends<W: Lane>(values: &[W], flip: W) -> (W, W) {
    values
        .iter()
        .fold((W::MAX, W::default()), |(min, max), &value| {
            let value = value ^ flip;
            (min.min(value), max.max(value))
        })
}

#[inline(always)]
pub(super) fn add<W: Lane>(a: &[W], b: &[W], out: &mut [W]) {
    assert_add(a.len(), b.len(), out.len());
    for ((slot, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *slot = a.wrapping_add(b);
    }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn add_past<L: Level, W: Lane>(a: &[W], b: &[W], out: &mut [W]) {
    assert_add(a.len(), b.len(), out.len());
    let head = out.as_ptr().align_offset(LINE_BYTES).min(out.len());
    let (first_a, a) = a.split_at(head);
    let (first_b, b) = b.split_at(head);
    let (first, out) = out.split_at_mut(head);
    add(first_a, first_b, first);
    let (words_a, last_a) = a.as_chunks::<WORD_LANES>();
    let (words_b, last_b) = b.as_chunks::<WORD_LANES>();
    let (words, last) = out.as_chunks_mut::<WORD_LANES>();
    for ((slot, a), b) in words.iter_mut().zip(words_a).zip(words_b) {
        let sum: Word<W> = std::array::from_fn(|lane| a[lane].wrapping_add(b[lane]));
        for line in (0..size_of::<Word<W>>()).step_by(LINE_BYTES) {
            // SAFETY: the caller promised the features of `L`; sum and slot are whole lines long,
            // the slot starts on a line because the head was split off.
            unsafe {
                let from = sum.as_ptr().cast::<u8>().add(line);
                L::store_past(from, slot.as_mut_ptr().cast::<u8>().add(line));
            }
        }
    }
    add(last_a, last_b, last);
    // SAFETY: the caller promised the features of `L`.
    unsafe { L::fence() };
}

#[inline(always)]
pub(super) fn narrow<T: Narrow<D>, D: Lane>(
    values: &[T],
    flip: T,
    bases: &PerGroup<T>,
    out: &mut [D],
) {
    assert_block(values.len(), None);
    let delta = |value: T, base: T| (value ^ flip).max(base).wrapping_sub(base).saturate();
    map_groups(values, bases, &mut out[..values.len()], delta);
}

#[inline(always)]
pub(super) fn widen<T: Narrow<D>, D: Lane>(
    values: &[D],
    bases: &PerGroup<T>,
    flip: T,
    out: &mut [T],
) {
    assert_block(values.len(), None);
    let whole = |value: D, base: T| base.wrapping_add(T::from(value)) ^ flip;
    map_groups(values, bases, &mut out[..values.len()], whole);
}

/// `out[i] = map(values[i], bases[g])` for a block; the lengths are equal.
#[inline(always)]
fn map_groups<A: Lane, B: Lane, C: Lane>(
    values: &[A],
    bases: &PerGroup<C>,
    out: &mut [B],
    map: impl Fn(A, C) -> B,
) {
    let (full, rest) = values.as_chunks::<GROUP_LANES>();
    let (full_out, rest_out) = out.as_chunks_mut::<GROUP_LANES>();
    for ((group, group_out), &base) in full.iter().zip(full_out).zip(bases) {
        for (slot, &value) in group_out.iter_mut().zip(group) {
            *slot = map(value, base);
        }
    }
    if !rest.is_empty() {
        let base = bases[full.len()];
        for (slot, &value) in rest_out.iter_mut().zip(rest) {
            *slot = map(value, base);
        }
    }
}

/// `rest`, shorter than `LANES`, followed by zeros.
#[inline(always)]
pub(super) fn padded<W: Lane, const LANES: usize>(rest: &[W]) -> [W; LANES] {
    let mut lanes = [W::default(); LANES];
    lanes[..rest.len()].copy_from_slice(rest);
    lanes
}

/// A word whose first `count` bits are set; `count` is below 64.
#[inline(always)]
fn first_bits(count: usize) -> u64 {
    (1 << count) - 1
}
