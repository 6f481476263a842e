//! Order statistics: the lanes at two positions of the sorted ones.
//!
//! A lane at a position is found by halving the range that it can lie in: the bits in which the
//! least and the greatest lane differ are settled from the top, each by counting the lanes below
//! a bound. That reads the lanes once a bit and moves none of them.

use super::Lane;
use super::level::Level;

/// Lanes counted before the counter is emptied, which is as wide as a lane.
const COUNTED_LANES: usize = 128;

/// The steps of a level that order lanes.
pub(super) trait Order<W: Lane>: Level {
    /// The number of lanes below `bound`.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn count_below(values: &[W], bound: W) -> usize {
        count(values, |value| value < bound)
    }

    /// What [`super::LaneKernels::nth`] answers, where sorting so few lanes is cheaper; otherwise
    /// false.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn nth_of_few(_values: &[W], _indices: &[usize], _found: &mut [[W; 2]]) -> bool {
        false
    }
}

/// The number of lanes that `holds` is true of.
#[inline(always)]
fn count<W: Lane>(values: &[W], holds: impl Fn(W) -> bool) -> usize {
    let parts = values.chunks(COUNTED_LANES).map(|part| {
        let flags = part.iter().map(|value| W::from(u8::from(holds(*value))));
        let held: u64 = flags.fold(W::default(), W::wrapping_add).into();
        held as usize
    });
    parts.sum()
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn nth<L: Order<W>, W: Lane>(
    values: &[W],
    indices: &[usize],
    found: &mut [[W; 2]],
) {
    assert_eq!(indices.len(), found.len(), "a place for each answer");
    let inside = indices.iter().all(|index| *index < values.len());
    assert!(inside, "positions of lanes");
    // SAFETY: the caller promised the features of `L`.
    if unsafe { L::nth_of_few(values, indices, found) } {
        return;
    }
    let ends = values.iter().fold((W::MAX, W::default()), |ends, value| {
        (ends.0.min(*value), ends.1.max(*value))
    });
    for (found, index) in found.iter_mut().zip(indices) {
        // SAFETY: the caller promised the features of `L`.
        *found = unsafe { nth_between::<L, W>(values, ends, *index) };
    }
}

/// The lanes at `index` and behind it of those from the least to the greatest, the `ends`.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn nth_between<L: Order<W>, W: Lane>(values: &[W], ends: (W, W), index: usize) -> [W; 2] {
    let (least, greatest): (u64, u64) = (ends.0.into(), ends.1.into());
    let open = u64::BITS - (least ^ greatest).leading_zeros();
    // The bits above those in which lanes differ are the same in all.
    let mut found = least
        .checked_shr(open)
        .unwrap_or(0)
        .checked_shl(open)
        .unwrap_or(0);
    for bit in (0..open).rev() {
        let bound = found | 1 << bit;
        // SAFETY: the caller promised the features of `L`.
        let below = unsafe { L::count_below(values, W::truncate(bound)) };
        if below <= index {
            found = bound;
        }
    }
    let found = W::truncate(found);
    let up_to = count(values, |value| value <= found);
    let next = match up_to > index + 1 || up_to == values.len() {
        true => found,
        false => {
            let after = found.wrapping_add(W::from(1));
            // Distances of lanes that do not lie behind wrap round, beyond all others.
            let least = |least: W, value: &W| least.min(value.wrapping_sub(after));
            after.wrapping_add(values.iter().fold(W::MAX, least))
        }
    };
    [found, next]
}

#[cfg(test)]
mod tests {
    use crate::kernels::scalar;
    use crate::kernels::tests::{Cut, Random, faster_levels};

    const LENGTHS: [usize; 19] = [
        1, 2, 3, 5, 8, 31, 32, 33, 63, 64, 65, 100, 129, 500, 1_000, 1_023, 1_024, 1_025, 4_099,
    ];

    fn check<W: Cut>() {
        let mut random = Random(0x0dd5);
        for level in faster_levels() {
            for length in LENGTHS.into_iter().cycle().take(200) {
                let mut values = random.lanes::<W>(length);
                if random.bits().is_multiple_of(2) {
                    // Most are there several times.
                    values
                        .iter_mut()
                        .for_each(|value| *value = *value & W::from(7));
                }
                let (truth, table) = (W::of(&scalar::KERNELS), W::of(level));
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let any = random.bits() as usize % length;
                let indices = [0, length / 2, length - 1, any];
                let expected = indices.map(|index| {
                    let behind = sorted.get(index + 1).unwrap_or(&sorted[index]);
                    [sorted[index], *behind]
                });
                for (name, table) in [("scalar", truth), (level.name, table)] {
                    for asked in [0..4, 1..2, 3..4, 0..0] {
                        let mut found = vec![[W::MAX; 2]; asked.len()];
                        (table.nth)(&values, &indices[asked.clone()], &mut found);
                        assert_eq!(found, expected[asked], "{name} {length} {indices:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn positions_are_those_of_sorted_lanes() {
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
    }
}
