//! `fold_where`: the fold of the values that pass a test.
//!
//! Comparing and folding one after the other reads a column twice, and writes and reads a bitmap
//! of all its rows; a codec that keeps blocks does both while one is in the nearest cache.

use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold};
use crate::predicate::{Coverage, KeyRange, Predicate};
use crate::selection::{Selection, Shape};

/// Folds the values of a selection that lie in a range; the selection is no list of rows.
pub type RangeFold = fn(&Chunk, (KeyRange, &Selection), Asked, &mut Fold, &mut Work);

/// Compares, then folds what is left.
fn fold_compared(
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
        self.range_fold(predicate).is_some()
    }

    fn range_fold(&self, predicate: &Predicate) -> Option<(RangeFold, KeyRange)> {
        let range = predicate.as_range().filter(|_| self.nulls == 0)?;
        let fold = self.codec.range_fold(self, predicate);
        fold.map(|fold| (fold, range))
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
        let by_block = matches!(within.shape(), Shape::All | Shape::Bits) && !work.decode_first;
        match coverage {
            Coverage::None => work.tally.skipped += self.rows as u64,
            Coverage::All => self.fold(asked, within, out, work),
            Coverage::Some => match self.range_fold(predicate).filter(|_| by_block) {
                Some((fold, range)) => fold(self, (range, within), asked, out, work),
                None => fold_compared(self, (predicate, within), asked, out, work),
            },
        }
    }
}
