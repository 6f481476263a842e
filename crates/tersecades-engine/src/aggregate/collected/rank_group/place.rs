//! Reading quantiles of groups: several of a group are found while it is ordered once.

use std::hint::select_unpredictable;
use std::ops::Range;

use tersecades_columnar::kernels::{Lane, Narrow, kernels};

use super::{ABOVE, BELOW, Grouped, Run, count};

/// What lies outside of lanes, in order: all of it, and where that of one group is.
pub(super) type Outside<'a, T> = (&'a [T], Range<usize>);

/// Where quantiles are sought among a group's ranks, and what was found.
#[derive(Debug, Default)]
pub(super) struct Places<T> {
    /// Positions among the ranks in order.
    pub(super) indices: Vec<usize>,
    /// The ranks there and behind; the last stands behind itself.
    pub(super) found: Vec<[T; 2]>,
    lanes: Vec<[u16; 2]>,
    /// How far behind each position its quantile lies.
    shares: Vec<f64>,
}

impl<T: Narrow<u16>> Places<T> {
    /// The places of `fractions` among `count` ranks.
    fn seek(&mut self, count: usize, fractions: &[f64]) {
        self.indices.resize(fractions.len(), 0);
        self.shares.resize(fractions.len(), 0.0);
        self.found.resize(fractions.len(), [T::default(); 2]);
        let places = self.indices.iter_mut().zip(&mut self.shares);
        for (fraction, (index, share)) in fractions.iter().zip(places) {
            (*index, *share) = place(count, *fraction);
        }
    }

    /// What was read, and how far between its ranks each quantile lies.
    fn read_between(&self) -> impl Iterator<Item = ([T; 2], f64)> {
        self.found.iter().copied().zip(self.shares.iter().copied())
    }

    /// Reads them of a group.
    pub(super) fn read(&mut self, group: &[T]) {
        (T::of(kernels()).nth)(group, &self.indices, &mut self.found);
    }

    /// Reads them of a group of lanes.
    pub(super) fn read_narrow(&mut self, base: T, lanes: &[u16], (all, of_group): Outside<'_, T>) {
        self.lanes.resize(self.indices.len(), [0; 2]);
        (u16::of(kernels()).nth)(lanes, &self.indices, &mut self.lanes);
        let last = all.len().saturating_sub(1);
        // Which lanes are outside no processor foresees: both are read, and no branch is taken.
        let rank = |lane: u16, index: usize| {
            // Ranks below come first, and those above last.
            let below = of_group.start + index;
            let above = (of_group.end + index).wrapping_sub(lanes.len());
            let at = select_unpredictable(lane == BELOW, below, above);
            let outside = all.get(at.min(last)).copied().unwrap_or_default();
            let inside = base.wrapping_add(T::truncate(lane.into()));
            select_unpredictable(lane == BELOW || lane == ABOVE, outside, inside)
        };
        let places = self.indices.iter().zip(&self.lanes);
        for (found, (index, [lane, behind])) in self.found.iter_mut().zip(places) {
            let next = (index + 1).min(lanes.len() - 1);
            *found = [rank(*lane, *index), rank(*behind, next)];
        }
    }
}

/// The rank below `fraction` of the way through `count` ranks, and how far behind it that is.
///
/// Signed numbers are made into floats and back by one instruction each.
#[inline]
pub(super) fn place(count: usize, fraction: f64) -> (usize, f64) {
    let last = count as i64 - 1;
    let position = fraction * last as f64;
    let index = (position as i64).min(last);
    (index as usize, position - index as f64)
}

/// Reads quantiles of groups, its memory reused.
#[derive(Debug, Default)]
pub(in super::super) struct Scratch<T> {
    ranks: Vec<T>,
    lanes: Vec<u16>,
    places: Places<T>,
}

impl<T: Narrow<u16>> Scratch<T> {
    /// For each of `fractions` the ranks that far through all `runs`, between which a quantile
    /// lies, and how far between; nothing without ranks.
    #[inline]
    pub(in super::super) fn between<'a>(
        &mut self,
        runs: impl Iterator<Item = Run<'a, T>> + Clone,
        fractions: &[f64],
    ) -> impl Iterator<Item = ([T; 2], f64)> {
        let runs = runs.filter(|run| count(*run) > 0);
        let mut more = runs.clone();
        match (more.next(), more.next()) {
            (None, _) => self.places.seek(0, &[]),
            (Some(run), None) => self.read_one(run, fractions),
            (Some((first, _)), Some(_)) => self.read_several(first.base(), runs, fractions),
        }
        self.places.read_between()
    }

    /// [`Scratch::between`] of one run.
    #[inline]
    pub(in super::super) fn within(
        &mut self,
        run: Run<'_, T>,
        fractions: &[f64],
    ) -> impl Iterator<Item = ([T; 2], f64)> {
        match count(run) {
            0 => self.places.seek(0, &[]),
            _ => self.read_one(run, fractions),
        }
        self.places.read_between()
    }

    fn read_one(&mut self, (grouped, id): Run<'_, T>, fractions: &[f64]) {
        self.places.seek(grouped.count(id), fractions);
        grouped.read(id, &mut self.places);
    }

    /// Reads groups of which the first has its lanes from `base` on, if it has lanes.
    fn read_several<'a>(
        &mut self,
        base: Option<T>,
        runs: impl Iterator<Item = Run<'a, T>> + Clone,
        fractions: &[f64],
    ) {
        let Scratch {
            ranks,
            lanes,
            places,
        } = self;
        ranks.clear();
        let alike = |base: &T| {
            runs.clone()
                .all(|(grouped, _)| grouped.base() == Some(*base))
        };
        let Some(base) = base.filter(alike) else {
            runs.for_each(|(grouped, id)| grouped.each(id, |rank| ranks.push(rank)));
            places.seek(ranks.len(), fractions);
            places.read(ranks);
            return;
        };
        lanes.clear();
        for (grouped, id) in runs {
            if let Grouped::Narrow {
                lanes: inside,
                outside,
                ..
            } = grouped
            {
                lanes.extend_from_slice(inside.of_group(id));
                ranks.extend_from_slice(outside.of_group(id));
            }
        }
        ranks.sort_unstable();
        places.seek(lanes.len(), fractions);
        places.read_narrow(base, lanes, (ranks, 0..ranks.len()));
    }
}
