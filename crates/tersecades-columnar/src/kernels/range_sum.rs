//! The lanes of a block that lie in a range, and their sum, in one pass.

use std::ops::RangeInclusive;

use super::based::{self, Moved};
use super::level::{LINE_BYTES, Word};
use super::moment::{self, BLOCK_BITS, Moments};
use super::{BLOCK_LANES, GROUP_LANES, GROUPS, Lane, PerGroup, WORD_LANES, prefetch_far_past};

/// How far ahead of the lanes at hand memory is asked for: 2 KiB are too late for the third-level
/// cache, 8 KiB lose what they bring.
pub(super) const BLOCK_AHEAD_BYTES: usize = 6144;

/// Words of a group.
const WORDS: usize = GROUP_LANES / WORD_LANES;

/// The sums of a level that takes full blocks at once.
pub(super) trait RangeSums<W: Lane>: Moments<W> {
    /// Sets `out` to the lanes of `keep` in the range that `moved` says, all without `keep`, and
    /// answers their sum; nothing where the level has no such loop.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn full_in_range(
        _values: &[W; BLOCK_LANES],
        _moved: &Moved<GROUPS>,
        _keep: Option<&[u64; BLOCK_BITS]>,
        _out: &mut [u64; BLOCK_BITS],
    ) -> Option<u64> {
        None
    }
}

/// Sets each word of `out` to what `step` answers of its lanes, where the range starts and how wide
/// it is in them, and which of them may pass; memory is asked for ahead.
#[inline(always)]
pub(super) fn for_each_word<W: Lane>(
    values: &[W; BLOCK_LANES],
    moved: &Moved<GROUPS>,
    keep: Option<&[u64; BLOCK_BITS]>,
    out: &mut [u64; BLOCK_BITS],
    mut step: impl FnMut(&Word<W>, [i64; 2], u64) -> u64,
) {
    let (groups, _) = values.as_chunks::<GROUP_LANES>();
    let (slots, _) = out.as_chunks_mut::<WORDS>();
    for (group, (lanes, slots)) in groups.iter().zip(slots).enumerate() {
        let range = [moved.from[group], moved.span[group]].map(u64::cast_signed);
        // None may where no lane reaches the range from its base.
        let met = u64::from(moved.met >> group & 1).wrapping_neg();
        let (words, _) = lanes.as_chunks::<WORD_LANES>();
        for (word, (lanes, slot)) in words.iter().zip(slots).enumerate() {
            (0..size_of_val(lanes))
                .step_by(LINE_BYTES)
                .for_each(|line| prefetch_far_past(lanes, BLOCK_AHEAD_BYTES + line));
            let kept = keep.map_or(u64::MAX, |keep| keep[group * WORDS + word]);
            *slot = step(lanes, range, met & kept);
        }
    }
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn range_sum<L: RangeSums<W>, W: Lane>(
    values: &[W],
    bases: &PerGroup<u64>,
    range: RangeInclusive<u64>,
    keep: Option<&[u64]>,
    out: &mut [u64],
) -> u128 {
    assert(values.len(), keep, out.len());
    if let (Some(values), Some(out)) = (values.as_array(), out.first_chunk_mut()) {
        // SAFETY: the caller promised the features of `L`.
        let sum = unsafe {
            let moved = L::moved(bases, *range.start(), *range.end());
            L::full_in_range(
                values,
                &moved,
                keep.and_then(|words| words.first_chunk()),
                out,
            )
        };
        if let Some(sum) = sum {
            return u128::from(sum);
        }
    }
    let out = &mut out[..values.len().div_ceil(WORD_LANES)];
    let mut sums = [0; GROUPS];
    // SAFETY: the caller promised the features of `L`.
    unsafe {
        based::range_mask::<L, W, GROUPS>(values, bases, range, out);
        if let Some(keep) = keep {
            out.iter_mut()
                .zip(keep)
                .for_each(|(out, keep)| *out &= keep);
        }
        moment::sum::<L, W>(values, Some(out), &mut sums);
    }
    sums.iter().sum()
}

/// Asserts what every level relies on.
#[inline(always)]
pub(super) fn assert(lanes: usize, keep: Option<&[u64]>, words: usize) {
    super::assert_block(lanes, keep);
    assert!(words >= lanes.div_ceil(WORD_LANES), "short bitmap");
}

#[cfg(test)]
mod tests {
    use super::super::scalar;
    use super::super::tests::{Cut, Random, faster_levels};
    use super::*;

    /// Bases near the range and far from it, ranges of a key, of some and of all.
    fn sums_match<W: Cut>() {
        let mut random = Random(0x5a11);
        for level in faster_levels() {
            for round in 0..900 {
                let lanes = [0, 1, 63, 64, 65, 127, 700, 1_023, 1_024, 1_024][round % 10];
                let values: Vec<W> = random.lanes(lanes);
                let far = [1 << 8, 1 << 17, 1 << 40, u64::MAX >> 1][random.next() as usize % 4];
                let bases: PerGroup<u64> = std::array::from_fn(|_| random.bits() % far);
                let most: u64 = W::MAX.into();
                // Sums of a base and a lane stay below 2^64.
                let bases = bases.map(|base| base.min(u64::MAX - most));
                let near = |random: &mut Random| {
                    let base = bases[random.next() as usize % GROUPS];
                    base.saturating_add(random.bits() & most)
                };
                let (a, b) = (near(&mut random), near(&mut random));
                let range = match round / 10 % 5 {
                    0 => 0..=u64::MAX,
                    1 => a..=a,
                    2 => a..=u64::MAX,
                    _ => a.min(b)..=a.max(b),
                };
                let words = random.words(BLOCK_BITS);
                let keep = (round % 3 > 0).then_some(&words[..]);
                let mut expected = [7; BLOCK_BITS];
                let mut answer = [5; BLOCK_BITS];
                let truth = W::of(&scalar::KERNELS).range_sum;
                let sum = truth(&values, &bases, range.clone(), keep, &mut expected);
                let found = (W::of(level).range_sum)(&values, &bases, range, keep, &mut answer);
                let used = lanes.div_ceil(WORD_LANES);
                assert_eq!(found, sum, "{} {round}", level.name);
                assert_eq!(answer[..used], expected[..used], "{} {round}", level.name);
                assert!(
                    answer[used..].iter().all(|word| *word == 5),
                    "{}",
                    level.name
                );
            }
        }
    }

    #[test]
    fn sums_of_ranges_are_those_of_their_lanes() {
        sums_match::<u8>();
        sums_match::<u16>();
        sums_match::<u32>();
        sums_match::<u64>();
    }

    /// Sixteen bits at both ends, in every lane of a block.
    #[test]
    fn sums_of_full_blocks_do_not_wrap() {
        for value in [0, 1, u16::MAX >> 1, 1 << 15, u16::MAX] {
            let values = [value; BLOCK_LANES];
            for level in faster_levels() {
                for keep in [None, Some(&[u64::MAX; BLOCK_BITS][..])] {
                    let mut out = [0; BLOCK_BITS];
                    let range_sum = u16::of(level).range_sum;
                    let sum = range_sum(&values, &[9; GROUPS], 9..=70_000, keep, &mut out);
                    assert_eq!(sum, u128::from(value) * 1_024, "{}", level.name);
                    assert_eq!(out, [u64::MAX; BLOCK_BITS], "{}", level.name);
                }
            }
        }
    }
}
