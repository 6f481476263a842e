//! Narrowing a block whose bases are guessed, and saying which groups the guess fits.

use super::level::{LINE_BYTES, Level};
use super::{BLOCK_LANES, GROUP_LANES, Lane, Narrow, PerGroup, prefetch_past};

/// How far ahead of the values at hand memory is asked for.
const AHEAD_BYTES: usize = 4096;

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn try_narrow<L: Level, T: Narrow<D>, D: Lane>(
    values: &[T],
    flip: T,
    bases: &PerGroup<T>,
    out: &mut [D],
    (min, max): (&mut PerGroup<D>, &mut PerGroup<D>),
) -> u8 {
    assert!(
        values.len() == BLOCK_LANES && out.len() == BLOCK_LANES,
        "a full block"
    );
    let (groups, _) = values.as_chunks::<GROUP_LANES>();
    let (groups_out, _) = out.as_chunks_mut::<GROUP_LANES>();
    let mut fits = 0;
    for (group, (values, out)) in groups.iter().zip(groups_out).enumerate() {
        for line in (0..size_of_val(values)).step_by(LINE_BYTES) {
            prefetch_past(values, AHEAD_BYTES + line);
        }
        // Where the top bit flips, that is the same as adding it: both sides may flip instead.
        // SAFETY: the caller promised the features of `L`.
        let over = unsafe { L::cut::<T, D>(values, bases[group] ^ flip, out) };
        if D::BITS < T::BITS && over <= T::from(D::MAX) {
            let (low, high) = out
                .iter()
                .fold((D::MAX, D::default()), |(low, high), &delta| {
                    (low.min(delta), high.max(delta))
                });
            out.iter_mut()
                .for_each(|delta| *delta = delta.wrapping_sub(low));
            (min[group], max[group]) = (low, high);
            fits |= 1 << group;
        }
    }
    fits
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
