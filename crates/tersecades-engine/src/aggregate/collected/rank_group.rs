//! Ranks put together by group: made of a pane's log once, shared by every window it is in.
//!
//! ```text
//! log     group 2 0 2 1 0        grouped   ranks 3 8 │ 5 │ 7 9
//!         rank  9 3 7 5 8                  ends    2   3   5
//! ```
//! A window over several panes names the runs of each of its groups; nothing is copied until a
//! quantile is read.

use std::sync::Arc;

use crate::operator::window_aggregate::pane::NO_GROUP;

/// Groups of at most so many values are sorted when they are put together.
const SORTED_MAX: usize = 64;

/// A form in which ranks are kept.
pub(super) trait Rank:
    Copy + Ord + Default + std::fmt::Debug + Send + Sync + 'static
{
    /// The rank.
    fn rank(self) -> u64;
}

impl Rank for u32 {
    fn rank(self) -> u64 {
        self.into()
    }
}

impl Rank for u64 {
    fn rank(self) -> u64 {
        self
    }
}

/// The ranks of each group together.
#[derive(Debug)]
pub(super) struct Grouped<T> {
    ranks: Vec<T>,
    ends: Vec<usize>,
}

impl<T: Rank> Grouped<T> {
    /// Puts `ranks` together, each of which is of the group in `ids`.
    ///
    /// # Cost
    /// A counting pass, a scattering pass, and a sort of each small group.
    pub(super) fn new(ids: &[u32], ranks: &[T]) -> Self {
        let groups = ids.iter().max().map_or(0, |id| *id as usize + 1);
        let mut next = vec![0usize; groups + 1];
        for id in ids {
            next[*id as usize + 1] += 1;
        }
        for group in 0..groups {
            next[group + 1] += next[group];
        }
        let mut together = vec![T::default(); ranks.len()];
        for (id, rank) in ids.iter().zip(ranks) {
            let at = &mut next[*id as usize];
            together[*at] = *rank;
            *at += 1;
        }
        next.truncate(groups);
        let mut start = 0;
        for end in &next {
            if end - start <= SORTED_MAX {
                together[start..*end].sort_unstable();
            }
            start = *end;
        }
        Grouped {
            ranks: together,
            ends: next,
        }
    }

    /// The ranks of group `id`, in order where they are few.
    pub(super) fn of(&self, id: u32) -> &[T] {
        let id = id as usize;
        let Some(end) = self.ends.get(id) else {
            return &[];
        };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ranks[start..*end]
    }

    fn byte_size(&self) -> usize {
        size_of_val(&self.ranks[..]) + size_of_val(&self.ends[..])
    }
}

/// The groups of a pane under the numbers they have in a window.
#[derive(Debug, Clone)]
pub(super) struct Share<T> {
    grouped: Arc<Grouped<T>>,
    /// The pane's group of each of the window's; [`NO_GROUP`] where it has none.
    sources: Vec<u32>,
}

impl<T: Rank> Share<T> {
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
    pub(super) fn of(&self, id: u32) -> &[T] {
        match self.sources.get(id as usize) {
            Some(source) if *source != NO_GROUP => self.grouped.of(*source),
            _ => &[],
        }
    }

    /// The window's groups and their ranks.
    pub(super) fn groups(&self) -> impl Iterator<Item = (u32, &[T])> {
        (0..self.sources.len() as u32).map(|id| (id, self.of(id)))
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

/// The ranks at `fraction` of the way through all `runs`, between which a quantile lies, and how
/// far between; `None` without ranks.
pub(super) fn between<'a, T: Rank>(
    runs: impl Iterator<Item = &'a [T]>,
    fraction: f64,
    scratch: &mut Vec<T>,
) -> Option<(T, T, f64)> {
    let mut runs = runs.filter(|run| !run.is_empty());
    let first = runs.next()?;
    scratch.clear();
    let mut one = true;
    for run in runs {
        if one {
            scratch.extend_from_slice(first);
        }
        one = false;
        scratch.extend_from_slice(run);
    }
    let count = if one { first.len() } else { scratch.len() };
    let position = fraction * (count - 1) as f64;
    let index = (position.floor() as usize).min(count - 1);
    let share = position - index as f64;
    if one && count <= SORTED_MAX {
        let above = first.get(index + 1).unwrap_or(&first[index]);
        return Some((first[index], *above, share));
    }
    if one {
        scratch.extend_from_slice(first);
    }
    let (_, below, above) = scratch.select_nth_unstable(index);
    let below = *below;
    Some((below, above.iter().min().copied().unwrap_or(below), share))
}
