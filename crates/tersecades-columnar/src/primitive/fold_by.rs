//! `fold_by`: values go to the folds of their groups, a block at a time.

use crate::chunk::Chunk;
use crate::codec::{Codec, Work, fold_values};
use crate::fold::{Asked, Fold};
use crate::selection::{Selection, Shape};
use crate::values::Values;

use super::for_each_unit;

/// Where the values of groups go, however their folds lie in memory.
pub trait GroupFold {
    /// Adds value `i` of `values` to group `ids[i]`, for every `i`.
    fn add(&mut self, ids: &[u32], values: &Values);

    /// Adds the one value of `value` to each of the groups `ids`, which may repeat.
    fn add_same(&mut self, ids: &[u32], value: &Values);
}

/// Folds in an array, by group id.
#[derive(Debug)]
pub struct Folds<'a> {
    /// The parts wanted.
    pub asked: Asked,
    /// One fold a group.
    pub folds: &'a mut [Fold],
}

impl GroupFold for Folds<'_> {
    fn add(&mut self, ids: &[u32], values: &Values) {
        for (index, id) in ids.iter().enumerate() {
            let fold = &mut self.folds[*id as usize];
            fold_values(values, std::iter::once(index), self.asked, fold);
        }
    }

    fn add_same(&mut self, ids: &[u32], value: &Values) {
        for id in ids {
            let fold = &mut self.folds[*id as usize];
            fold_values(value, std::iter::once(0), self.asked, fold);
        }
    }
}

/// The default of [`Codec::fold_by`]: decode unit by unit, hand each on while it is in cache.
pub fn fold_by_decoded(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    ids: &[u32],
    out: &mut dyn GroupFold,
    work: &mut Work,
) {
    let mut rest = ids;
    for_each_unit(codec, chunk, within, work, |values| {
        let (ids, following) = rest.split_at(values.len());
        out.add(ids, values);
        rest = following;
    });
}

/// The value whose key or raw bits are `key`, in memory that is reused.
pub(crate) fn single<'a>(chunk: &Chunk, key: u64, memory: &'a mut Values) -> &'a Values {
    memory.reset(chunk.physical());
    memory.keys.push(key);
    memory
}

impl Chunk {
    /// Adds each row of `within` that is not null to the fold of its group.
    ///
    /// # Shape
    /// `ids` has one group for each row of `within`, null or not, in row order.
    pub fn fold_by(
        &self,
        within: &Selection,
        ids: &[u32],
        out: &mut dyn GroupFold,
        work: &mut Work,
    ) {
        debug_assert_eq!(ids.len(), within.count());
        if within.shape() == Shape::None {
            return;
        }
        if self.nulls == 0 {
            return self.codec.fold_by(self, within, ids, out, work);
        }
        let mut valid_ids = std::mem::take(&mut work.list);
        valid_ids.clear();
        let mut next = ids.iter();
        within.for_each(|row| {
            let id = next.next().filter(|_| self.validity.get(row));
            valid_ids.extend(id);
        });
        self.for_valid(within, work, |within, work| {
            self.codec.fold_by(self, within, &valid_ids, out, work);
        });
        work.list = valid_ids;
    }
}
