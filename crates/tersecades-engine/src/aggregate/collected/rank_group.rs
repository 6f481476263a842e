//! Ranks put together by group: made of a pane's log once, shared by every window it is in.
//!
//! ```text
//! log     group 2 0 2 1 0        grouped   ranks 3 8 │ 5 │ 7 9
//!         rank  9 3 7 5 8                  ends    2   3   5
//! ```
//! Where most ranks lie in a range of 16 bits, which one integer column's mostly do, a group has
//! their distances from the range's start in lanes of 16 bits, and the ranks outside apart. Such a
//! rank leaves the least or the greatest lane behind, which no other has: lanes are in the order
//! of the ranks, so that a quantile is found among lanes four or eight times as dense.
//!
//! A window over several panes names the runs of each of its groups; nothing is copied until a
//! quantile is read.

mod place;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use tersecades_columnar::kernels::{GROUPS, Lane, Narrow, WORD_LANES, kernels};

use crate::operator::window_aggregate::pane::NO_GROUP;

use place::Places;
pub(super) use place::Scratch;

/// The lane of ranks below the range.
const BELOW: u16 = 0;

/// The lane of ranks above the range.
const ABOVE: u16 = u16::MAX;

/// Ranks that the range is chosen by.
const SAMPLED: usize = 1_024;

/// Ranges with room for it start at multiples of this rank.
const STEP: u64 = 1 << 13;

/// Values that are put together at once: they stay in the first-level cache.
const PART_ROWS: usize = 1_024;

/// One rank in so many may lie outside the range.
const OUTSIDE_EVERY: usize = 8;

/// Values of groups, one group after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs<T> {
    values: Vec<T>,
    ends: Vec<usize>,
}

impl<T: Narrow<u16>> Runs<T> {
    /// Puts the values together that `fill` writes for ranges of rows, each of the group in `ids`;
    /// groups have as many values as `counts` says, if it says anything.
    ///
    /// # Cost
    /// A scattering pass, before it a counting one without `counts`.
    fn new(ids: &[u32], counts: &[u64], fill: impl FnMut(Range<usize>, &mut [T])) -> Self {
        match u32::try_from(ids.len()) {
            Ok(_) => Runs::together::<u32>(ids, counts, fill),
            Err(_) => Runs::together::<u64>(ids, counts, fill),
        }
    }

    /// [`Runs::new`] with places that `P` holds: narrow ones stay in the caches.
    fn together<P: Lane>(
        ids: &[u32],
        counts: &[u64],
        mut fill: impl FnMut(Range<usize>, &mut [T]),
    ) -> Self {
        let one = P::from(1);
        let place = |next: P| -> usize { Into::<u64>::into(next) as usize };
        let groups = match (ids, counts) {
            ([], _) => 0,
            (_, []) => ids.iter().fold(0, |most, id| most.max(*id)) as usize + 1,
            _ => counts.len(),
        };
        // The place of each group's next value; behind the last one, its end.
        let mut next = vec![P::default(); groups + 1];
        if counts.is_empty() {
            for id in ids {
                let count = &mut next[*id as usize + 1];
                *count = count.wrapping_add(one);
            }
        }
        for (next, count) in next.iter_mut().skip(1).zip(counts) {
            *next = P::truncate(*count);
        }
        for group in 0..groups {
            next[group + 1] = next[group + 1].wrapping_add(next[group]);
        }
        let mut together = vec![T::default(); ids.len()];
        let mut part = [T::default(); PART_ROWS];
        for (index, ids) in ids.chunks(PART_ROWS).enumerate() {
            let start = index * PART_ROWS;
            fill(start..start + ids.len(), &mut part[..ids.len()]);
            for (id, value) in ids.iter().zip(&part) {
                let next = &mut next[*id as usize];
                let at = *next;
                *next = at.wrapping_add(one);
                together[place(at)] = *value;
            }
        }
        next.truncate(groups);
        Runs {
            values: together,
            ends: next.into_iter().map(place).collect(),
        }
    }

    /// [`Runs::new`] of values that lie in the order of `ids`.
    fn of(ids: &[u32], values: &[T], counts: &[u64]) -> Self {
        Runs::new(ids, counts, |rows, part| {
            part.copy_from_slice(&values[rows])
        })
    }

    /// Where the values of group `id` lie.
    fn range(&self, id: u32) -> Range<usize> {
        let id = id as usize;
        let Some(end) = self.ends.get(id) else {
            return 0..0;
        };
        id.checked_sub(1).map_or(0, |before| self.ends[before])..*end
    }

    fn of_group(&self, id: u32) -> &[T] {
        &self.values[self.range(id)]
    }

    fn byte_size(&self) -> usize {
        size_of_val(&self.values[..]) + size_of_val(&self.ends[..])
    }
}

/// The ranks of each group together.
#[derive(Debug)]
pub(super) enum Grouped<T> {
    /// Distances from a rank, and what lies outside of their range in order.
    Narrow {
        /// The rank that a lane of zero would have.
        base: T,
        lanes: Runs<u16>,
        outside: Runs<T>,
    },
    /// As they are.
    Wide(Runs<T>),
}

/// Where the lanes that hold most of `ranks` start; `None` where no range of them does.
fn base_of<T: Narrow<u16>>(ranks: &[T]) -> Option<T> {
    let step = ranks.len().div_ceil(SAMPLED).max(1);
    let mut sample: Vec<u64> = ranks
        .iter()
        .step_by(step)
        .map(|rank| (*rank).into())
        .collect();
    sample.sort_unstable();
    let lanes = u64::from(ABOVE - BELOW) - 2;
    let (mut best, mut first) = ((0, 0), 0);
    for (index, rank) in sample.iter().enumerate() {
        while rank - sample[first] > lanes {
            first += 1;
        }
        best = best.max((index + 1 - first, first));
    }
    let outside = sample.len() - best.0;
    let start = *sample.get(best.1)?;
    // Room on both sides for what the sample missed.
    let end = sample[best.1 + best.0 - 1];
    let room = (lanes - (end - start)) / 2;
    let base = start.saturating_sub(room);
    // Panes that start alike are read together.
    let base = if room < STEP {
        base
    } else {
        base / STEP * STEP
    };
    let narrow = T::BITS > u16::BITS && outside * OUTSIDE_EVERY <= sample.len();
    narrow.then(|| T::truncate(base).wrapping_sub(T::from(1u8)))
}

/// Sets `lanes` to those of `ranks`, where lanes start at `base`.
fn fill_lanes<T: Narrow<u16>>(ranks: &[T], base: T, lanes: &mut [u16]) {
    let narrow = T::pair(kernels()).narrow;
    if base == T::MAX {
        // The range starts at the least rank there is: none lies below.
        narrow(ranks, T::default(), &[T::default(); GROUPS], lanes);
        lanes
            .iter_mut()
            .for_each(|lane| *lane = lane.saturating_add(1));
    } else {
        narrow(ranks, T::default(), &[base; GROUPS], lanes);
    }
}

/// Calls `visit` with the place of each lane whose rank lies outside of the range.
fn for_each_outside(lanes: &[u16], mut visit: impl FnMut(usize)) {
    let mut is_outside = [0; PART_ROWS / WORD_LANES];
    // The least lane follows the greatest.
    (u16::of(kernels()).range_mask_flat)(lanes, ABOVE, 1, &mut is_outside);
    for (start, mut word) in (0..lanes.len()).step_by(WORD_LANES).zip(is_outside) {
        while word != 0 {
            visit(start + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}

impl<T: Narrow<u16>> Grouped<T> {
    /// Puts `ranks` together, each of which is of the group in `ids`; groups have as many ranks as
    /// `counts` says, if it says anything.
    pub(super) fn new(ids: &[u32], ranks: &[T], counts: &[u64]) -> Self {
        let Some(base) = base_of(ranks) else {
            return Grouped::Wide(Runs::of(ids, ranks, counts));
        };
        let (mut outside_ids, mut outside) = (Vec::new(), Vec::new());
        let lanes = Runs::new(ids, counts, |rows, lanes| {
            let (ids, ranks) = (&ids[rows.clone()], &ranks[rows]);
            fill_lanes(ranks, base, lanes);
            for_each_outside(lanes, |index| {
                outside_ids.push(ids[index]);
                outside.push(ranks[index]);
            });
        });
        let mut outside = Runs::of(&outside_ids, &outside, &[]);
        let mut start = 0;
        for end in &outside.ends {
            outside.values[start..*end].sort_unstable();
            start = *end;
        }
        Grouped::Narrow {
            base,
            lanes,
            outside,
        }
    }

    /// Where lanes start, if there are lanes.
    fn base(&self) -> Option<T> {
        match self {
            Grouped::Narrow { base, .. } => Some(*base),
            Grouped::Wide(_) => None,
        }
    }

    /// Number of groups.
    fn groups(&self) -> usize {
        match self {
            Grouped::Narrow { lanes, .. } => lanes.ends.len(),
            Grouped::Wide(ranks) => ranks.ends.len(),
        }
    }

    /// Number of ranks of group `id`.
    fn count(&self, id: u32) -> usize {
        match self {
            Grouped::Narrow { lanes, .. } => lanes.of_group(id).len(),
            Grouped::Wide(ranks) => ranks.of_group(id).len(),
        }
    }

    /// Reads the ranks at `places` of group `id`.
    fn read(&self, id: u32, places: &mut Places<T>) {
        match self {
            Grouped::Wide(ranks) => places.read(ranks.of_group(id)),
            Grouped::Narrow {
                base,
                lanes,
                outside,
            } => {
                let outside = (&outside.values[..], outside.range(id));
                places.read_narrow(*base, lanes.of_group(id), outside);
            }
        }
    }

    /// Calls `visit` with each rank of group `id`, in any order.
    fn each(&self, id: u32, mut visit: impl FnMut(T)) {
        match self {
            Grouped::Wide(ranks) => ranks.of_group(id).iter().copied().for_each(visit),
            Grouped::Narrow {
                base,
                lanes,
                outside,
            } => {
                let inside = lanes.of_group(id).iter();
                inside
                    .filter(|lane| ![BELOW, ABOVE].contains(lane))
                    .for_each(|lane| visit(base.wrapping_add(T::truncate((*lane).into()))));
                outside.of_group(id).iter().copied().for_each(visit);
            }
        }
    }

    /// Bytes of memory.
    pub(super) fn byte_size(&self) -> usize {
        match self {
            Grouped::Narrow { lanes, outside, .. } => lanes.byte_size() + outside.byte_size(),
            Grouped::Wide(ranks) => ranks.byte_size(),
        }
    }
}

/// Groups of one pane, by the number that one of them has there.
pub(super) type Run<'a, T> = (&'a Grouped<T>, u32);

/// The groups of a pane under the numbers they have in a window.
#[derive(Debug, Clone)]
pub(super) struct Share<T> {
    grouped: Arc<Grouped<T>>,
    /// The pane's group of each of the window's; [`NO_GROUP`] where it has none.
    sources: Vec<u32>,
}

impl<T: Narrow<u16>> Share<T> {
    /// The groups as they are numbered.
    pub(super) fn whole(grouped: Arc<Grouped<T>>) -> Self {
        Share {
            sources: (0..grouped.groups() as u32).collect(),
            grouped,
        }
    }

    /// The groups of what `group` makes, group `id` being `targets[id]`; `None` where some are left
    /// out or put together, which a share cannot say.
    pub(super) fn new<'a>(
        group: impl FnOnce() -> &'a Arc<Grouped<T>>,
        targets: &[u32],
    ) -> Option<Self> {
        let sources = inverse((0..targets.len() as u32).zip(targets.iter().copied()))?;
        Some(Share {
            grouped: Arc::clone(group()),
            sources,
        })
    }

    /// The same groups renumbered once more.
    pub(super) fn renumbered(&self, targets: &[u32]) -> Option<Self> {
        let known = self.sources.iter().zip(targets);
        let known = known.filter(|(source, _)| **source != NO_GROUP);
        let sources = inverse(known.map(|(source, target)| (*source, *target)))?;
        Some(Share {
            grouped: Arc::clone(&self.grouped),
            sources,
        })
    }

    /// The ranks of the window's group `id`.
    pub(super) fn of(&self, id: u32) -> Run<'_, T> {
        let source = self.sources.get(id as usize).copied();
        (&self.grouped, source.unwrap_or(NO_GROUP))
    }

    /// Number of ranks.
    pub(super) fn len(&self) -> usize {
        let ids = 0..self.sources.len() as u32;
        ids.map(|id| count(self.of(id))).sum()
    }

    /// Calls `visit` with each of the window's groups and each of its ranks.
    pub(super) fn each(&self, mut visit: impl FnMut(u32, T)) {
        for id in 0..self.sources.len() as u32 {
            let (grouped, source) = self.of(id);
            grouped.each(source, |rank| visit(id, rank));
        }
    }

    /// Bytes of memory, those of shared ranks divided among the sharers.
    pub(super) fn byte_size(&self) -> usize {
        let sharers = Arc::strong_count(&self.grouped);
        self.grouped.byte_size() / sharers + self.sources.capacity() * size_of::<u32>()
    }
}

/// The sources by target of pairs (source, target); `None` unless every source has its own.
fn inverse(pairs: impl Iterator<Item = (u32, u32)>) -> Option<Vec<u32>> {
    let mut sources = Vec::new();
    for (source, target) in pairs {
        let at = target as usize;
        if target == NO_GROUP {
            return None;
        }
        if sources.len() <= at {
            sources.resize(at + 1, NO_GROUP);
        }
        if sources[at] != NO_GROUP {
            return None;
        }
        sources[at] = source;
    }
    Some(sources)
}

fn count<T: Narrow<u16>>((grouped, id): Run<'_, T>) -> usize {
    grouped.count(id)
}
