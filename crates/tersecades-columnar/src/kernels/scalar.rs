//! The definition of every kernel: one lane at a time, nothing clever.
//!
//! Tests hold each faster level against this file.

use super::bit_stream::assert_stream;
use super::pack::scalar::packs;
use super::{
    BLOCK_LANES, BitmapKernels, GROUP_LANES, GROUPS, Kernels, Lane, LaneKernels, Narrow,
    PairKernels, PerGroup, Reach, WORD_LANES, assert_add, assert_based, assert_block,
    assert_overlap,
};
use std::ops::RangeInclusive;

/// The table of this level.
pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    u8: lanes(),
    u16: lanes(),
    u32: lanes(),
    u64: lanes(),
    packed_u8: packs(),
    packed_u16: packs(),
    packed_u32: packs(),
    packed_u64: packs(),
    u8_u8: pair(),
    u16_u8: pair(),
    u16_u16: pair(),
    u32_u8: pair(),
    u32_u16: pair(),
    u32_u32: pair(),
    u64_u8: pair(),
    u64_u16: pair(),
    u64_u32: pair(),
    u64_u64: pair(),
    float: super::float::SCALAR,
    bitmap: BitmapKernels {
        and,
        and_not,
        or,
        count,
        count_groups,
        union: [union; 2],
        to_rows,
        compact,
        from_rows,
    },
    overlap,
    unpack_stream,
    code_sum: super::code_sum::code_sum,
    cells: super::cell::cells,
};

const fn lanes<W: Lane>() -> LaneKernels<W> {
    LaneKernels {
        range_mask,
        range_mask_flat,
        range_mask_groups: range_mask_based::<W, GROUP_LANES>,
        range_mask_blocks: range_mask_based::<W, BLOCK_LANES>,
        sum,
        sum_flat,
        moments,
        range_sum,
        outliers: super::outlier::sums,
        min_max,
        prefix_sum,
        add,
        add_past: add,
        nth,
        take,
    }
}

const fn pair<T: Narrow<D>, D: Lane>() -> PairKernels<T, D> {
    PairKernels {
        narrow,
        try_narrow,
        widen,
    }
}

fn is_set(words: &[u64], lane: usize) -> bool {
    words[lane / WORD_LANES] >> (lane % WORD_LANES) & 1 == 1
}

fn assign(words: &mut [u64], lane: usize, bit: bool) {
    let word = &mut words[lane / WORD_LANES];
    if lane.is_multiple_of(WORD_LANES) {
        *word = 0;
    }
    *word |= u64::from(bit) << (lane % WORD_LANES);
}

fn range_mask<W: Lane>(values: &[W], low: &PerGroup<W>, span: &PerGroup<W>, out: &mut [u64]) {
    assert_block(values.len(), Some(&*out));
    for (lane, value) in values.iter().enumerate() {
        let group = lane / GROUP_LANES;
        assign(out, lane, value.wrapping_sub(low[group]) <= span[group]);
    }
}

fn range_mask_flat<W: Lane>(values: &[W], low: W, span: W, out: &mut [u64]) {
    for (lane, value) in values.iter().enumerate() {
        assign(out, lane, value.wrapping_sub(low) <= span);
    }
}

fn range_mask_based<W: Lane, const LANES: usize>(
    values: &[W],
    bases: &[u64],
    range: RangeInclusive<u64>,
    out: &mut [u64],
) {
    assert_based(values.len(), LANES, bases.len(), out.len());
    let (low, high) = range.into_inner();
    for (lane, &value) in values.iter().enumerate() {
        let sum = u128::from(bases[lane / LANES]) + Into::<u128>::into(value);
        assign(
            out,
            lane,
            (u128::from(low)..=u128::from(high)).contains(&sum),
        );
    }
}

fn range_sum<W: Lane>(
    values: &[W],
    bases: &PerGroup<u64>,
    range: RangeInclusive<u64>,
    mask: Option<&[u64]>,
    out: &mut [u64],
) -> u128 {
    super::range_sum::assert(values.len(), mask, out.len());
    let range = u128::from(*range.start())..=u128::from(*range.end());
    let mut sum = 0;
    for (lane, &value) in values.iter().enumerate() {
        let (base, value) = (u128::from(bases[lane / GROUP_LANES]), value.into());
        let kept = mask.is_none_or(|words| is_set(words, lane)) && range.contains(&(base + value));
        assign(out, lane, kept);
        sum += if kept { value } else { 0 };
    }
    sum
}

fn sum<W: Lane>(values: &[W], mask: Option<&[u64]>, out: &mut PerGroup<u128>) {
    assert_block(values.len(), mask);
    out.fill(0);
    for (lane, &value) in values.iter().enumerate() {
        if mask.is_none_or(|words| is_set(words, lane)) {
            out[lane / GROUP_LANES] += Into::<u128>::into(value);
        }
    }
}

fn sum_flat<W: Lane>(values: &[W]) -> u128 {
    values.iter().map(|&value| Into::<u128>::into(value)).sum()
}

fn moments<W: Lane>(values: &[W], mask: Option<&[u64]>, sums: &mut PerGroup<u128>) -> u128 {
    sum(values, mask, sums);
    let kept = values.iter().enumerate();
    let kept = kept.filter(|(lane, _)| mask.is_none_or(|words| is_set(words, *lane)));
    kept.fold(0, |total: u128, (_, &value)| {
        let wide: u128 = value.into();
        total.wrapping_add(wide * wide)
    })
}

fn min_max<W: Lane>(
    values: &[W],
    flip: W,
    mask: Option<&[u64]>,
    min: &mut PerGroup<W>,
    max: &mut PerGroup<W>,
) {
    assert_block(values.len(), mask);
    min.fill(W::MAX);
    max.fill(W::default());
    for (lane, &value) in values.iter().enumerate() {
        if mask.is_none_or(|words| is_set(words, lane)) {
            let group = lane / GROUP_LANES;
            min[group] = min[group].min(value ^ flip);
            max[group] = max[group].max(value ^ flip);
        }
    }
}

fn prefix_sum<W: Lane>(values: &mut [W], start: W) {
    let mut sum = start;
    for value in values {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}

fn add<W: Lane>(a: &[W], b: &[W], out: &mut [W]) {
    assert_add(a.len(), b.len(), out.len());
    for (lane, slot) in out.iter_mut().enumerate() {
        *slot = a[lane].wrapping_add(b[lane]);
    }
}

fn narrow<T: Narrow<D>, D: Lane>(values: &[T], flip: T, bases: &PerGroup<T>, out: &mut [D]) {
    assert_block(values.len(), None);
    for (lane, &value) in values.iter().enumerate() {
        let base = bases[lane / GROUP_LANES];
        out[lane] = (value ^ flip).max(base).wrapping_sub(base).saturate();
    }
}

fn try_narrow<T: Narrow<D>, D: Lane>(
    values: &[T],
    flip: T,
    bases: &PerGroup<T>,
    out: &mut [D],
    reach: &mut Reach<D>,
) -> u8 {
    assert!(
        values.len() == BLOCK_LANES && out.len() == BLOCK_LANES,
        "a full block"
    );
    let mut fits = 0;
    for (group, &base) in bases.iter().enumerate() {
        let lanes = group * GROUP_LANES..(group + 1) * GROUP_LANES;
        let delta = |lane: usize| (values[lane] ^ flip).wrapping_sub(base);
        let least = lanes.clone().map(delta).fold(T::MAX, T::min);
        let most = lanes.clone().map(delta).fold(T::default(), T::max);
        for lane in lanes.clone() {
            out[lane] = delta(lane).saturate();
        }
        if D::BITS < T::BITS && most <= T::from(D::MAX) {
            fits |= 1 << group;
            (reach.min[group], reach.max[group]) = (least.saturate(), most.saturate());
            lanes.for_each(|lane| out[lane] = delta(lane).wrapping_sub(least).saturate());
        }
    }
    fits
}

fn widen<T: Narrow<D>, D: Lane>(values: &[D], bases: &PerGroup<T>, flip: T, out: &mut [T]) {
    assert_block(values.len(), None);
    for (lane, &value) in values.iter().enumerate() {
        out[lane] = bases[lane / GROUP_LANES].wrapping_add(T::from(value)) ^ flip;
    }
}

fn and(a: &mut [u64], b: &[u64]) {
    assert_eq!(a.len(), b.len(), "bitmaps of one length");
    for (index, word) in a.iter_mut().enumerate() {
        *word &= b[index];
    }
}

fn and_not(a: &mut [u64], b: &[u64]) {
    assert_eq!(a.len(), b.len(), "bitmaps of one length");
    for (index, word) in a.iter_mut().enumerate() {
        *word &= !b[index];
    }
}

fn or(a: &mut [u64], b: &[u64]) {
    assert_eq!(a.len(), b.len(), "bitmaps of one length");
    for (index, word) in a.iter_mut().enumerate() {
        *word |= b[index];
    }
}

fn union(words: &[u64]) -> u64 {
    words.iter().fold(0, |any, word| any | word)
}

fn count(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

fn count_groups(words: &[u64], out: &mut PerGroup<u64>) {
    *out = std::array::from_fn(|group| {
        let bits = group * GROUP_LANES..(group + 1) * GROUP_LANES;
        let known = bits.filter(|bit| *bit < words.len() * WORD_LANES);
        known.filter(|bit| is_set(words, *bit)).count() as u64
    });
}

fn to_rows(words: &[u64], base_row: u32, out: &mut Vec<u32>) {
    let mut row = base_row;
    for word in words {
        for bit in 0..u64::BITS {
            if word >> bit & 1 == 1 {
                out.push(row.wrapping_add(bit));
            }
        }
        row = row.wrapping_add(u64::BITS);
    }
}

fn compact(words: &[u64], lanes: &mut [u64]) -> usize {
    let mut kept = 0;
    for index in 0..lanes.len() {
        if is_set(words, index) {
            lanes[kept] = lanes[index];
            kept += 1;
        }
    }
    kept
}

fn from_rows(rows: &[u32], out: &mut [u64]) {
    out.fill(0);
    for &row in rows {
        let row = row as usize;
        out[row / WORD_LANES] |= 1 << (row % WORD_LANES);
    }
}

fn overlap(
    bases: &[u64],
    maxima: &[u64],
    range: RangeInclusive<u64>,
    any: &mut [u8],
    all: &mut [u8],
) {
    assert_overlap(bases.len(), maxima.len(), any.len(), all.len());
    any.fill(0);
    all.fill(0);
    let (low, high) = range.into_inner();
    for (entry, (&base, &maximum)) in bases.iter().zip(maxima).enumerate() {
        let bit = entry % GROUPS;
        any[entry / GROUPS] |= u8::from(maximum >= low && base <= high) << bit;
        all[entry / GROUPS] |= u8::from(base >= low && maximum <= high) << bit;
    }
}

fn unpack_stream(bytes: &[u8], width: u32, out: &mut [u32]) {
    assert_stream(bytes, width, out);
    let width = width as usize;
    for (index, number) in out.iter_mut().enumerate() {
        let bit = |bit: usize| u32::from(bytes[bit / 8] >> (bit % 8) & 1);
        *number = (0..width).map(|at| bit(index * width + at) << at).sum();
    }
}

fn take<W: Lane>(table: &[W], codes: &[u32], out: &mut [W]) -> bool {
    out.iter_mut().zip(codes).all(|(value, code)| {
        let found = table.get(*code as usize);
        *value = found.copied().unwrap_or_default();
        found.is_some()
    })
}

fn nth<W: Lane>(values: &[W], indices: &[usize], found: &mut [[W; 2]]) {
    assert_eq!(indices.len(), found.len(), "a place for each answer");
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    for (found, index) in found.iter_mut().zip(indices) {
        let behind = sorted.get(index + 1).unwrap_or(&sorted[*index]);
        *found = [sorted[*index], *behind];
    }
}
