//! `fold_where`: the fold of the values that pass a test.
//!
//! Comparing and folding one after the other reads a column twice, and writes and reads a bitmap
//! of all its rows; a codec that keeps blocks does both while one is in the nearest cache.

use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold};
use crate::predicate::{Coverage, Predicate};
use crate::selection::Selection;

/// The default of [`crate::codec::Codec::fold_where`]: compares, then folds what is left.
pub fn fold_where_compared(
    chunk: &Chunk,
    (predicate, within): (&Predicate, &Selection),
    asked: Asked,
    out: &mut Fold,
    work: &mut Work,
) {
    let mut passing = std::mem::take(&mut work.passing);
    chunk.compare(predicate, within, &mut passing, work);
    passing.settle();
    chunk.fold(asked, &passing, out, work);
    work.passing = passing;
}

impl Chunk {
    /// Whether [`Chunk::fold_where`] beats comparing and folding one after the other.
    pub fn folds_where(&self, predicate: &Predicate) -> bool {
        self.nulls == 0 && self.codec.folds_where(self, predicate)
    }

    /// Folds the values of `within` that are not null and pass `predicate` into `out`.
    pub fn fold_where(
        &self,
        (predicate, within): (&Predicate, &Selection),
        asked: Asked,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let coverage = match self.stats.known && !work.decode_first {
            true if self.nulls < self.rows => predicate.coverage(self.stats.min, self.stats.max),
            true => Coverage::None,
            false => Coverage::Some,
        };
        let test = (predicate, within);
        match coverage {
            Coverage::None => work.tally.skipped += self.rows as u64,
            Coverage::All => self.fold(asked, within, out, work),
            Coverage::Some if self.nulls == 0 && !work.decode_first => {
                self.codec.fold_where(self, test, asked, out, work);
            }
            Coverage::Some => fold_where_compared(self, test, asked, out, work),
        }
    }
}
