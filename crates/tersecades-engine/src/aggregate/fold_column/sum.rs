//! Sums of integers by group id: a word each, and a second one for all once one of them needs it.
//!
//! ```text
//! at most 8 bytes a value   sum = low + high x 2^64; no high word as long as all sums fit the low
//! 16 bytes a value          128 bits, and how often the sum left them
//! ```

use tersecades_columnar::fold::{Fold, add_carrying};
use tersecades_columnar::types::Physical;

use super::for_each_target;

/// Sums of the integers of each group.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    is_wide: bool,
    low: Vec<i64>,
    /// No longer than `low`; sums behind its end have none.
    high: Vec<i64>,
    wide: Vec<(i128, i64)>,
}

impl Sums {
    /// No group, for values of `physical`.
    pub(super) fn of(physical: Physical) -> Self {
        Sums {
            is_wide: physical == Physical::Wide,
            ..Sums::default()
        }
    }

    /// Makes room for `groups` groups; new ones are 0.
    pub(super) fn grow(&mut self, groups: usize) {
        match self.is_wide {
            true => self.wide.resize(groups, (0, 0)),
            false => self.low.resize(groups, 0),
        }
    }

    /// Forgets all groups, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
        self.wide.clear();
    }

    /// Adds `value` to group `id`.
    #[inline]
    pub(super) fn add(&mut self, id: usize, value: i128) {
        if self.is_wide {
            let (sum, carries) = &mut self.wide[id];
            return add_carrying((sum, carries), value);
        }
        let low = value as i64;
        let high = (value.wrapping_sub(low.into()) >> 64) as i64;
        let (sum, left) = self.low[id].overflowing_add(low);
        self.low[id] = sum;
        if left || high != 0 {
            // -1 where the part is negative.
            self.carry(id, high + (1 | low >> 63) * i64::from(left));
        }
    }

    #[cold]
    fn carry(&mut self, id: usize, high: i64) {
        if self.high.len() <= id {
            self.high.resize(self.low.len(), 0);
        }
        self.high[id] += high;
    }

    /// Adds the sum of `fold` to group `id`.
    pub(super) fn merge_fold(&mut self, id: usize, fold: &Fold) {
        self.add(id, fold.sum);
        if let Some((_, carries)) = self.wide.get_mut(id) {
            *carries += fold.carries;
        }
    }

    /// The sum of a group, whose values are not wide.
    fn sum(&self, id: usize) -> i128 {
        let high = self.high.get(id).copied().unwrap_or(0);
        i128::from(self.low[id]) + (i128::from(high) << 64)
    }

    /// The sums of the groups `ids`, in their order.
    pub(super) fn select(&self, ids: &[u32]) -> Self {
        let high = |id: &u32| self.high.get(*id as usize).copied().unwrap_or(0);
        Sums {
            is_wide: self.is_wide,
            low: super::select(&self.low, ids),
            high: match self.high.is_empty() {
                true => Vec::new(),
                false => ids.iter().map(high).collect(),
            },
            wide: super::select(&self.wide, ids),
        }
    }

    /// Adds the sum of each group of `other` to that of its target, where there is one.
    pub(super) fn merge(&mut self, other: &Sums, targets: &[u32]) {
        for_each_target(&mut self.wide, &other.wide, targets, |to, sum| {
            add_carrying((&mut to.0, &mut to.1), sum.0);
            to.1 += sum.1;
        });
        self.add_narrow(other, targets, |sum| sum);
    }

    /// Takes away again what [`Sums::merge`] added.
    pub(super) fn unmerge(&mut self, other: &Sums, targets: &[u32]) {
        for_each_target(&mut self.wide, &other.wide, targets, |to, sum| {
            to.0 = to.0.wrapping_sub(sum.0);
        });
        self.add_narrow(other, targets, |sum| -sum);
    }

    fn add_narrow(&mut self, other: &Sums, targets: &[u32], part: impl Fn(i128) -> i128) {
        for (id, target) in (0..other.low.len()).zip(targets) {
            if (*target as usize) < self.low.len() {
                self.add(*target as usize, part(other.sum(id)));
            }
        }
    }

    /// Writes the sums of the groups `ids` to `folds`, where sums are kept.
    pub(super) fn read(&self, ids: &[u32], folds: &mut [Fold]) {
        super::read(&self.wide, ids, folds, |fold, (sum, carries)| {
            (fold.sum, fold.carries) = (*sum, *carries);
        });
        super::read(&self.low, ids, folds, |fold, sum| fold.sum = (*sum).into());
        if self.high.is_empty() {
            return;
        }
        for (fold, id) in folds.iter_mut().zip(ids) {
            fold.sum = self.sum(*id as usize);
        }
    }

    /// Bytes of memory held.
    pub(super) fn byte_size(&self) -> usize {
        let words = self.low.capacity() + self.high.capacity();
        words * size_of::<i64>() + self.wide.capacity() * size_of::<(i128, i64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `sums` says of each of so many groups.
    fn read(sums: &Sums, groups: u32) -> Vec<i128> {
        let ids: Vec<u32> = (0..groups).collect();
        let mut folds = vec![Fold::default(); ids.len()];
        sums.read(&ids, &mut folds);
        folds.iter().map(|fold| fold.sum).collect()
    }

    #[test]
    fn sums_of_values_of_any_size_are_exact() {
        let physical = Physical::Integer {
            bytes: 8,
            signed: false,
        };
        let values = [
            0,
            1,
            -1,
            i64::MAX.into(),
            i64::MIN.into(),
            u64::MAX.into(),
            i128::from(i64::MIN) - 1,
            1 << 100,
            -(1 << 100),
        ];
        let (mut sums, mut model) = (Sums::of(physical), Vec::new());
        let mut state = 5u64;
        for turn in 0..4_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let groups = 1 + turn / 100;
            sums.grow(groups);
            model.resize(groups, 0i128);
            let (id, value) = ((state >> 33) as usize % groups, (state >> 40) as usize);
            // Sums stay in one word at first.
            let value = values[value % if turn < 1_000 { 3 } else { values.len() }];
            let fold = Fold {
                sum: value,
                ..Fold::default()
            };
            match turn % 2 {
                0 => sums.add(id, value),
                _ => sums.merge_fold(id, &fold),
            }
            model[id] += value;
            if turn % 500 == 0 || turn == 3_999 {
                assert_eq!(read(&sums, groups as u32), model);
                assert!(turn > 999 || sums.high.is_empty());
            }
        }
        let some: Vec<u32> = (0..40).filter(|id| id % 3 != 1).collect();
        let chosen: Vec<i128> = some.iter().map(|id| model[*id as usize]).collect();
        assert_eq!(read(&sums.select(&some), some.len() as u32), chosen);
        let before = sums.clone();
        let back: Vec<u32> = (0..40).rev().collect();
        sums.merge(&before, &back);
        let merged: Vec<i128> = (0..40).map(|id| model[id] + model[39 - id]).collect();
        assert_eq!(read(&sums, 40), merged);
        sums.unmerge(&before, &back);
        assert_eq!(read(&sums, 40), model);
        sums.clear();
        sums.grow(2);
        assert_eq!(read(&sums, 2), [0, 0]);
    }
}
