//! Narrowing a block whose bases are guessed, and saying which groups the guess fits.
//!
//! ```text
//! ends are cheap    smallest and largest difference of a group, then its deltas: two readings
//! they are not      differences cut to deltas, whose ends are found, moved to the smallest
//! ```

use super::level::{LINE_BYTES, Level};
use super::{BLOCK_LANES, GROUP_LANES, Lane, Narrow, PerGroup, Reach, prefetch_past};

/// How far ahead of the values at hand memory is asked for.
const AHEAD_BYTES: usize = 4096;

/// Lanes whose ends are kept apart until a group is through.
const ENDS: usize = 32;

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
        let ends = unsafe {
            match L::HAS_WIDE_ENDS {
                true => ends_first::<L, T, D>(values, base, out),
                false => deltas_first::<L, T, D>(values, base, out),
            }
        };
        if let Some((low, high)) = ends {
            (reach.min[group], reach.max[group]) = (low, high);
            fits |= 1 << group;
        }
    }
    fits
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn ends_first<L: Level, T: Narrow<D>, D: Lane>(
    values: &[T; GROUP_LANES],
    base: T,
    out: &mut [D; GROUP_LANES],
) -> Option<(D, D)> {
    let (mut low, mut high) = ([T::MAX; ENDS], [T::default(); ENDS]);
    let (parts, _) = values.as_chunks::<ENDS>();
    for part in parts {
        prefetch(part);
        for ((low, high), value) in low.iter_mut().zip(&mut high).zip(part) {
            let difference = value.wrapping_sub(base);
            (*low, *high) = (difference.min(*low), difference.max(*high));
        }
    }
    let low = low.into_iter().fold(T::MAX, T::min);
    let high = high.into_iter().fold(T::default(), T::max);
    let fits = D::BITS < T::BITS && high <= T::from(D::MAX);
    let start = if fits { low } else { T::default() };
    // SAFETY: the caller promised the features of `L`.
    unsafe { L::cut::<T, D>(values, base.wrapping_add(start), out) };
    fits.then(|| (low.saturate(), high.saturate()))
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn deltas_first<L: Level, T: Narrow<D>, D: Lane>(
    values: &[T; GROUP_LANES],
    base: T,
    out: &mut [D; GROUP_LANES],
) -> Option<(D, D)> {
    prefetch(values);
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

/// Asks for what lies ahead of `values`.
#[inline(always)]
fn prefetch<T>(values: &[T]) {
    for line in (0..size_of_val(values)).step_by(LINE_BYTES) {
        prefetch_past(values, AHEAD_BYTES + line);
    }
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
