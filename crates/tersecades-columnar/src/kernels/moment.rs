//! Sums and sums of squares of blocks.
//!
//! A level may take a full block of narrow lanes at once, in one pass for both; all else goes group
//! by group through loops that the compiler vectorises.

use super::block::{GROUP_WORDS, padded, rest_mask, select};
use super::level::{LINE_BYTES, Steps};
use super::{
    BLOCK_LANES, GROUP_LANES, Lane, PerGroup, WORD_LANES, assert_block, prefetch_far_past,
};

/// Lanes summed before the accumulators are emptied: 2^14 lanes below 2^16 stay below 2^32.
const SUM_LANES: usize = 1 << 14;
/// Bytes summed before memory ahead is asked for, and how far ahead. Wider lanes, of which memory
/// holds fewer, are read as fast as the processor runs ahead by itself; asking slows them.
const ASK_BYTES: usize = 2048;
const AHEAD_BYTES: usize = 4096;
/// Words of a full block's bitmap.
pub(super) const BLOCK_BITS: usize = BLOCK_LANES / WORD_LANES;

/// The sums of a level that takes full blocks at once.
pub(super) trait Moments<W: Lane>: Steps<W> {
    /// Sets `sums` to those of the groups, of the lanes of `keep` when there is one; answers the
    /// sum of their squares if `SQUARES`, else 0, or nothing where the level has no such loop.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn full<const SQUARES: bool>(
        _values: &[W; BLOCK_LANES],
        _keep: Option<&[u64; BLOCK_BITS]>,
        _sums: &mut PerGroup<u128>,
    ) -> Option<u128> {
        None
    }
}

/// [`Moments::full`] of a block that is full.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn full<L: Moments<W>, W: Lane, const SQUARES: bool>(
    values: &[W],
    mask: Option<&[u64]>,
    sums: &mut PerGroup<u128>,
) -> Option<u128> {
    let values = values.as_array()?;
    let keep = match mask {
        Some(words) => Some(words.first_chunk()?),
        None => None,
    };
    // SAFETY: the caller promised the features of `L`.
    unsafe { L::full::<SQUARES>(values, keep, sums) }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn sum<L: Moments<W>, W: Lane>(
    values: &[W],
    mask: Option<&[u64]>,
    out: &mut PerGroup<u128>,
) {
    assert_block(values.len(), mask);
    // SAFETY: the caller promised the features of `L`.
    unsafe {
        if full::<L, W, false>(values, mask, out).is_none() {
            fold::<L, W>(
                values,
                mask,
                out,
                #[inline(always)]
                |lanes| sum_lanes::<L, W>(lanes),
            );
        }
    }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn moments<L: Moments<W>, W: Lane>(
    values: &[W],
    mask: Option<&[u64]>,
    sums: &mut PerGroup<u128>,
) -> u128 {
    assert_block(values.len(), mask);
    // SAFETY: the caller promised the features of `L`.
    if let Some(squares) = unsafe { full::<L, W, true>(values, mask, sums) } {
        return squares;
    }
    let mut squares = [0; _];
    // SAFETY: the caller promised the features of `L`.
    unsafe {
        sum::<L, W>(values, mask, sums);
        fold::<L, W>(values, mask, &mut squares, square_lanes);
    }
    squares.into_iter().fold(0, u128::wrapping_add)
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn sum_flat<L: Steps<W>, W: Lane>(values: &[W]) -> u128 {
    let mut total = 0;
    let bytes = W::BITS == 8;
    for lanes in values.chunks(if bytes { ASK_BYTES } else { SUM_LANES }) {
        if bytes {
            (0..ASK_BYTES)
                .step_by(LINE_BYTES)
                .for_each(|line| prefetch_far_past(lanes, AHEAD_BYTES + line));
        }
        // SAFETY: the caller promised the features of `L`.
        total += unsafe { sum_lanes::<L, W>(lanes) };
    }
    total
}

/// Folds each group, lanes outside the mask as zeros.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn fold<L: Steps<W>, W: Lane>(
    values: &[W],
    mask: Option<&[u64]>,
    out: &mut PerGroup<u128>,
    lanes: impl Fn(&[W]) -> u128,
) {
    out.fill(0);
    let Some(mask) = mask else {
        let (full, rest) = values.as_chunks::<GROUP_LANES>();
        for (total, group) in out.iter_mut().zip(full) {
            *total = lanes(group);
        }
        if !rest.is_empty() {
            out[full.len()] = lanes(rest);
        }
        return;
    };
    let (full, rest) = values.as_chunks::<GROUP_LANES>();
    let (masks, _) = mask.as_chunks::<GROUP_WORDS>();
    for (total, (group, &keep)) in out.iter_mut().zip(full.iter().zip(masks)) {
        if keep != [0; GROUP_WORDS] {
            // SAFETY: the caller promised the features of `L`.
            *total = lanes(&unsafe { select::<L, W>(group, keep, W::default()) });
        }
    }
    if !rest.is_empty() {
        let keep = rest_mask(mask, full.len(), rest.len());
        // SAFETY: the caller promised the features of `L`.
        out[full.len()] = lanes(&unsafe { select::<L, W>(&padded(rest), keep, W::default()) });
    }
}

/// The sum of at most [`SUM_LANES`] lanes.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn sum_lanes<L: Steps<W>, W: Lane>(values: &[W]) -> u128 {
    if let Some(bytes) = W::bytes(values) {
        // SAFETY: the caller promised the features of `L`.
        u128::from(unsafe { L::sum_bytes(bytes) })
    } else if W::BITS == 16 {
        u128::from(values.iter().map(|value| value.low_half()).sum::<u32>())
    } else if W::BITS == 32 {
        u128::from(
            values
                .iter()
                .map(|value| u64::from(value.low_half()))
                .sum::<u64>(),
        )
    } else {
        sum_halves(values.iter().map(|&value| value.into()))
    }
}

/// The sum of squares of at most a group of lanes, modulo 2^128.
#[inline(always)]
fn square_lanes<W: Lane>(values: &[W]) -> u128 {
    let low = |value: &W| u64::from(value.low_half());
    if W::BITS == 8 {
        u128::from(
            values
                .iter()
                .map(|value| value.low_half() * value.low_half())
                .sum::<u32>(),
        )
    } else if W::BITS == 16 {
        u128::from(
            values
                .iter()
                .map(|value| low(value) * low(value))
                .sum::<u64>(),
        )
    } else if W::BITS == 32 {
        sum_halves(values.iter().map(|value| low(value) * low(value)))
    } else {
        let wide = |value: &W| Into::<u128>::into(*value);
        values.iter().fold(0, |total: u128, value| {
            total.wrapping_add(wide(value) * wide(value))
        })
    }
}

/// The sum of up to 2^32 values, whose halves are added apart so that neither can overflow.
#[inline(always)]
fn sum_halves(values: impl Iterator<Item = u64>) -> u128 {
    let (low, high) = values.fold((0u64, 0u64), |(low, high), value| {
        (low + (value & u64::from(u32::MAX)), high + (value >> 32))
    });
    u128::from(low) + (u128::from(high) << 32)
}
