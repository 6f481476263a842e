//! Narrowing a block whose bases are guessed, and saying which groups the guess fits: differences
//! are cut to deltas, whose ends are found, and moved to the smallest.
//!
//! Memory is not asked for ahead: values are read once and in order, which processors see by
//! themselves.

use super::level::Level;
use super::{BLOCK_LANES, GROUP_LANES, Lane, Narrow, PerGroup, Reach};

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn try_narrow<L: Level, T: Narrow<D>, D: Lane>(
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
    let (groups, _) = values.as_chunks::<GROUP_LANES>();
    let (groups_out, _) = out.as_chunks_mut::<GROUP_LANES>();
    let mut fits = 0;
    for (group, (values, out)) in groups.iter().zip(groups_out).enumerate() {
        // Where the top bit flips, that is the same as adding it: both sides may flip instead.
        let base = bases[group] ^ flip;
        // SAFETY: the caller promised the features of `L`.
        if let Some((low, high)) = unsafe { try_group::<L, T, D>(values, base, out) } {
            (reach.min[group], reach.max[group]) = (low, high);
            fits |= 1 << group;
        }
    }
    fits
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn try_group<L: Level, T: Narrow<D>, D: Lane>(
    values: &[T; GROUP_LANES],
    base: T,
    out: &mut [D; GROUP_LANES],
) -> Option<(D, D)> {
    // SAFETY: the caller promised the features of `L`.
    let over = unsafe { L::cut::<T, D>(values, base, out) };
    if D::BITS >= T::BITS || over > T::from(D::MAX) {
        return None;
    }
    let ends = |(low, high): (D, D), delta: &D| (low.min(*delta), high.max(*delta));
    let (low, high) = out.iter().fold((D::MAX, D::default()), ends);
    for delta in out {
        *delta = delta.wrapping_sub(low);
    }
    Some((low, high))
}

/// `out[i]` becomes the low bits of `values[i] - base`; answers all differences, ORed.
#[inline(always)]
pub(super) fn cut<T: Narrow<D>, D: Lane>(
    values: &[T; GROUP_LANES],
    base: T,
    out: &mut [D; GROUP_LANES],
) -> T {
    let mut over = T::default();
    for (slot, value) in out.iter_mut().zip(values) {
        let delta = value.wrapping_sub(base);
        over = over | delta;
        *slot = D::truncate(u64::from(delta.low_half()));
    }
    over
}
