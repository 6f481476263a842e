//! The folds of one argument for all groups of a pane, part by part.
//!
//! Only asked parts take memory: a count is 8 bytes a group, a sum of integers 8 more.

mod sum;

use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Asked, FloatSum, Fold, Spread, SquareSum};
use tersecades_columnar::primitive::fold_by::GroupFold;
use tersecades_columnar::types::Physical;
use tersecades_columnar::values::Values;

use crate::operator::window_aggregate::keys::SharedDictionary;
use crate::operator::window_aggregate::plan::Argument;
use crate::runtime::state::{StateReader, StateWriter};

use sum::Sums;

/// Folds of one argument, by group id.
#[derive(Debug, Clone)]
pub struct FoldColumn {
    asked: Asked,
    physical: Physical,
    dictionary: SharedDictionary,
    counts: Vec<u64>,
    sums: Sums,
    squares: Vec<SquareSum>,
    float_sums: Vec<FloatSum>,
    spreads: Vec<Spread>,
    ends: Vec<(i128, i128)>,
}

impl FoldColumn {
    /// No group, for values of `argument`.
    pub fn new(argument: &Argument) -> Self {
        FoldColumn {
            dictionary: argument.dictionary.clone(),
            ..FoldColumn::of(argument.physical, argument.asked)
        }
    }

    /// No group, for values of `physical`.
    pub fn of(physical: Physical, asked: Asked) -> Self {
        FoldColumn {
            asked,
            physical,
            dictionary: SharedDictionary::default(),
            counts: Vec::new(),
            sums: Sums::of(physical),
            squares: Vec::new(),
            float_sums: Vec::new(),
            spreads: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn is_float(&self) -> bool {
        matches!(self.physical, Physical::Float { .. })
    }

    /// Makes room for `groups` groups; new ones are empty.
    pub fn grow(&mut self, groups: usize) {
        let (asked, float) = (self.asked, self.is_float());
        self.counts.resize(groups, 0);
        if asked.sum && float {
            self.float_sums.resize(groups, FloatSum::default());
        } else if asked.sum {
            self.sums.grow(groups);
        }
        if asked.squares && float {
            self.spreads.resize(groups, Spread::default());
        } else if asked.squares {
            self.squares.resize(groups, SquareSum::default());
        }
        if asked.ends {
            self.ends.resize(groups, (i128::MAX, i128::MIN));
        }
    }

    /// Forgets all groups, keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.sums.clear();
        self.squares.clear();
        self.float_sums.clear();
        self.spreads.clear();
        self.ends.clear();
    }

    /// Adds value `i` of `values` to group `ids[i]`, for every `i`; nulls are left out.
    ///
    /// Texts are codes of the argument's shared dictionary.
    pub fn update(&mut self, ids: &[u32], values: &Values) {
        self.for_valid(ids, values, |counts, id, _| counts.counts[id] += 1);
        let (asked, float) = (self.asked, self.is_float());
        if asked.sum && float {
            self.for_valid(ids, values, |to, id, i| {
                to.float_sums[id].add(values.float(i))
            });
        } else if asked.sum {
            self.for_valid(ids, values, |to, id, i| to.sums.add(id, values.integer(i)));
        }
        if asked.squares && float {
            self.for_valid(ids, values, |to, id, i| to.spreads[id].add(values.float(i)));
        } else if asked.squares {
            self.for_valid(ids, values, |to, id, i| {
                to.squares[id].add_square(values.integer(i))
            });
        }
        if asked.ends && self.physical == Physical::Text {
            self.for_valid(ids, values, |to, id, i| {
                to.add_text_end(id, values.ordered(i))
            });
        } else if asked.ends {
            self.for_valid(ids, values, |to, id, i| {
                let key = values.ordered(i);
                to.ends[id] = (to.ends[id].0.min(key), to.ends[id].1.max(key));
            });
        }
    }

    /// Widens the ends of a group by the text of `code`; ends of texts are codes too.
    fn add_text_end(&mut self, id: usize, code: i128) {
        let (Some(ends), Some(dictionary)) = (self.ends.get_mut(id), self.dictionary.get()) else {
            return;
        };
        let reader = dictionary.read();
        let text = |code: i128| u32::try_from(code).ok().map(|code| reader.get(code));
        if ends.0 == i128::MAX || text(code) < text(ends.0) {
            ends.0 = code;
        }
        if ends.1 == i128::MIN || text(code) > text(ends.1) {
            ends.1 = code;
        }
    }

    #[inline]
    fn for_valid(
        &mut self,
        ids: &[u32],
        values: &Values,
        mut visit: impl FnMut(&mut Self, usize, usize),
    ) {
        for (index, id) in ids.iter().enumerate() {
            if values.is_valid(index) {
                visit(self, *id as usize, index);
            }
        }
    }

    /// The parts kept.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Adds to how many values a group has, for each group and number of `counts`.
    pub fn add_counts(&mut self, counts: impl Iterator<Item = (usize, u64)>) {
        counts.for_each(|(group, count)| self.counts[group] += count);
    }

    /// Adds sums of integers to those of groups.
    pub fn add_sums(&mut self, sums: impl Iterator<Item = (usize, i128)>) {
        sums.for_each(|(group, sum)| self.sums.add(group, sum));
    }

    /// Widens the ends of groups to keys.
    pub fn add_ends(&mut self, ends: impl Iterator<Item = (usize, (u64, u64))>) {
        for (group, (least, greatest)) in ends {
            let known = &mut self.ends[group];
            let (least, greatest) = (i128::from(least), i128::from(greatest));
            *known = (known.0.min(least), known.1.max(greatest));
        }
    }

    /// Adds `fold` to group `id`.
    pub fn merge_fold(&mut self, id: usize, fold: &Fold) {
        self.counts[id] += fold.count;
        if self.asked.sum && !self.is_float() {
            self.sums.merge_fold(id, fold);
        }
        if let Some(squares) = self.squares.get_mut(id) {
            squares.merge(fold.squares);
        }
        if let Some(sum) = self.float_sums.get_mut(id) {
            sum.merge(fold.float_sum);
        }
        if let Some(spread) = self.spreads.get_mut(id) {
            spread.merge(fold.spread);
        }
        if self.physical == Physical::Text {
            if fold.min != i128::MAX {
                self.add_text_end(id, fold.min);
                self.add_text_end(id, fold.max);
            }
        } else if let Some(ends) = self.ends.get_mut(id) {
            *ends = (ends.0.min(fold.min), ends.1.max(fold.max));
        }
    }

    /// The folds of the groups `ids`, in their order.
    pub fn select(&self, ids: &[u32]) -> Self {
        FoldColumn {
            asked: self.asked,
            physical: self.physical,
            dictionary: self.dictionary.clone(),
            counts: select(&self.counts, ids),
            sums: self.sums.select(ids),
            squares: select(&self.squares, ids),
            float_sums: select(&self.float_sums, ids),
            spreads: select(&self.spreads, ids),
            ends: select(&self.ends, ids),
        }
    }

    /// Adds the fold of group `id` of `other` to that of group `targets[id]`, where there is one.
    pub fn merge(&mut self, other: &FoldColumn, targets: &[u32]) {
        for_each_target(&mut self.counts, &other.counts, targets, |to, count| {
            *to += count;
        });
        self.sums.merge(&other.sums, targets);
        for_each_target(&mut self.squares, &other.squares, targets, |to, squares| {
            to.merge(*squares);
        });
        let (sums, theirs) = (&mut self.float_sums, &other.float_sums);
        for_each_target(sums, theirs, targets, |to, sum| to.merge(*sum));
        for_each_target(&mut self.spreads, &other.spreads, targets, |to, spread| {
            to.merge(*spread);
        });
        if self.physical == Physical::Text {
            for (ends, target) in other.ends.iter().zip(targets) {
                if ends.0 != i128::MAX {
                    self.add_text_end(*target as usize, ends.0);
                    self.add_text_end(*target as usize, ends.1);
                }
            }
        } else {
            for_each_target(&mut self.ends, &other.ends, targets, |to, ends| {
                *to = (to.0.min(ends.0), to.1.max(ends.1));
            });
        }
    }

    /// Takes away again what [`FoldColumn::merge`] added: counts, sums and squares of integers.
    pub fn unmerge(&mut self, other: &FoldColumn, targets: &[u32]) {
        for_each_target(&mut self.counts, &other.counts, targets, |to, count| {
            *to -= count;
        });
        self.sums.unmerge(&other.sums, targets);
        for_each_target(&mut self.squares, &other.squares, targets, |to, squares| {
            to.unmerge(*squares);
        });
    }

    /// The fold of group `id`.
    pub fn get(&self, id: usize) -> Fold {
        let mut fold = [Fold::default()];
        self.read(&[id as u32], &mut fold);
        fold[0]
    }

    /// Replaces `folds` by those of the groups `ids`.
    ///
    /// # Cost
    /// Part by part, so that many reads of distant groups are on their way at once.
    pub fn read(&self, ids: &[u32], folds: &mut [Fold]) {
        folds.fill(Fold::default());
        read(&self.counts, ids, folds, |fold, count| fold.count = *count);
        self.sums.read(ids, folds);
        read(&self.squares, ids, folds, |fold, squares| {
            fold.squares = *squares
        });
        read(&self.float_sums, ids, folds, |fold, sum| {
            fold.float_sum = *sum
        });
        read(&self.spreads, ids, folds, |fold, spread| {
            fold.spread = *spread
        });
        read(&self.ends, ids, folds, |fold, (min, max)| {
            (fold.min, fold.max) = (*min, *max);
        });
    }

    /// The count of group `id`.
    pub fn count(&self, id: usize) -> u64 {
        self.counts[id]
    }

    /// Bytes of memory held.
    pub fn byte_size(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
            + self.sums.byte_size()
            + self.squares.capacity() * size_of::<SquareSum>()
            + self.float_sums.capacity() * size_of::<FloatSum>()
            + self.spreads.capacity() * size_of::<Spread>()
            + self.ends.capacity() * size_of::<(i128, i128)>()
    }

    /// Writes the fold of every group.
    pub fn snapshot(&self, out: &mut StateWriter) {
        for id in 0..self.counts.len() {
            let fold = self.get(id);
            out.u64(fold.count);
            out.i128(fold.sum);
            out.i64(fold.carries);
            fold.squares
                .words()
                .into_iter()
                .for_each(|word| out.u64(word));
            fold.float_sum
                .parts()
                .into_iter()
                .for_each(|part| out.f64(part));
            out.u64(fold.spread.count);
            out.f64(fold.spread.mean);
            out.f64(fold.spread.deviation);
            out.i128(fold.min);
            out.i128(fold.max);
        }
    }

    /// Reads what [`FoldColumn::snapshot`] wrote for `groups` groups.
    ///
    /// # Errors
    /// `Corrupt` when the bytes end early.
    pub fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        self.grow(groups);
        for id in 0..groups {
            let fold = Fold {
                count: from.u64()?,
                sum: from.i128()?,
                carries: from.i64()?,
                squares: SquareSum::from_words([from.u64()?, from.u64()?, from.u64()?]),
                float_sum: FloatSum::from_parts([from.f64()?, from.f64()?]),
                spread: Spread {
                    count: from.u64()?,
                    mean: from.f64()?,
                    deviation: from.f64()?,
                },
                min: from.i128()?,
                max: from.i128()?,
            };
            self.merge_fold(id, &fold);
        }
        Ok(())
    }
}

/// Calls `set` with each fold and the part of its group, where the part is kept.
#[inline]
fn read<T>(parts: &[T], ids: &[u32], folds: &mut [Fold], set: impl Fn(&mut Fold, &T)) {
    if parts.is_empty() {
        return;
    }
    for (fold, id) in folds.iter_mut().zip(ids) {
        set(fold, &parts[*id as usize]);
    }
}

/// The parts of the groups `ids`, where parts are kept.
fn select<T: Clone>(parts: &[T], ids: &[u32]) -> Vec<T> {
    match parts.is_empty() {
        true => Vec::new(),
        false => ids.iter().map(|id| parts[*id as usize].clone()).collect(),
    }
}

/// Calls `change` with each element of `from` and the one of `to` that it goes to; those whose
/// target is beyond all groups are left out.
#[inline]
pub fn for_each_target<T>(
    to: &mut [T],
    from: &[T],
    targets: &[u32],
    mut change: impl FnMut(&mut T, &T),
) {
    for (from, target) in from.iter().zip(targets) {
        if let Some(to) = to.get_mut(*target as usize) {
            change(to, from);
        }
    }
}

impl GroupFold for FoldColumn {
    fn add(&mut self, ids: &[u32], values: &Values) {
        self.update(ids, values);
    }

    fn add_same(&mut self, ids: &[u32], value: &Values) {
        let asked = self.asked;
        if ids.len() == 1 || self.is_float() || asked.squares || asked.ends {
            return ids.iter().for_each(|id| self.update(&[*id], value));
        }
        let integer = match (self.physical, asked.sum) {
            (Physical::Text, _) | (_, false) => 0,
            _ => value.integer(0),
        };
        for id in ids {
            let id = *id as usize;
            self.counts[id] += 1;
            if asked.sum {
                self.sums.add(id, integer);
            }
        }
    }
}
