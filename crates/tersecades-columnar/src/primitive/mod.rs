//! The primitives of the waist, a file each, and what they default to.
//!
//! ```text
//! decoded       compare, fold, gather          their defaults alone
//! byte          keys of one byte               codes looked up in registers
//! repeats       (value, count) pairs           group, distinct, histograms
//! rank          keys that sort as values do    quantiles, merges, arg_min and arg_max
//! fold_by       a fold for each group id       windowed group-by
//! fold_where    the fold of what passes a test filters of what is added up
//! arithmetic    + and * into a new chunk       computed columns
//! pair          two columns, row by row        conditions on two columns
//! slice         a range of rows                cutting batches
//! search        the rows with a key            reads by key
//! prefetch      asks for what comes next       reads of few rows
//! ```
//! Each file has the default, which decodes and computes and is what overrides are tested
//! against, and the method of [`Chunk`] that keeps nulls out and asks the codec.

pub mod arithmetic;
pub mod byte;
mod counted;
pub mod decoded;
pub mod fold_by;
pub mod fold_where;
pub mod pair;
mod prefetch;
pub mod rank;
pub mod repeat;
pub mod search;
pub mod slice;

use crate::bitmap::WORD_ROWS;
use crate::chunk::Chunk;
use crate::codec::{Codec, Work};
use crate::kernels::kernels;
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

impl Chunk {
    /// Runs `run` with the rows of `within` that are not null.
    fn for_valid<R>(
        &self,
        within: &Selection,
        work: &mut Work,
        run: impl FnOnce(&Selection, &mut Work) -> R,
    ) -> R {
        if self.nulls == 0 {
            return run(within, work);
        }
        let mut valid = std::mem::take(&mut work.selection);
        valid.copy_from(within);
        valid.retain_words(self.validity.words());
        let result = run(&valid, work);
        work.selection = valid;
        result
    }
}

/// Decodes unit by unit and calls `visit` with the values of the rows of `within`, in order.
///
/// Text comes in one piece, because each decode may number its texts anew.
fn for_each_unit(
    codec: &dyn Codec,
    chunk: &Chunk,
    within: &Selection,
    work: &mut Work,
    mut visit: impl FnMut(&Values),
) {
    let mut values = std::mem::take(&mut work.values);
    values.reset(chunk.physical());
    if within.shape() == Shape::Rows {
        codec.gather(chunk, within.list(), &mut values, work);
        visit(&values);
        work.values = values;
        return;
    }
    let unit = match chunk.physical() {
        Physical::Text => chunk.rows().max(1),
        _ => codec.unit_rows(),
    };
    for start in (0..chunk.rows()).step_by(unit) {
        let end = chunk.rows().min(start + unit);
        let blocks = start / crate::block::BLOCK_ROWS..crate::block::block_count(end);
        let untouched = |block| matches!(within.block(block), BlockSelection::None);
        if blocks.into_iter().all(untouched) {
            continue;
        }
        values.reset(chunk.physical());
        codec.decode(chunk, start..end, &mut values);
        work.tally.decoded += values.len() as u64;
        if within.shape() == Shape::Bits {
            let words = &within.words()[start / WORD_ROWS..];
            keep_selected(&mut values.keys, words);
            keep_wide(&mut values.wide, words);
        }
        visit(&values);
    }
    work.values = values;
}

/// Drops the keys whose bit is not set.
pub(crate) fn keep_selected(keys: &mut Vec<u64>, words: &[u64]) {
    let kept = (kernels().bitmap.compact)(words, keys);
    keys.truncate(kept);
}

/// As [`keep_selected`], of decimals.
fn keep_wide(values: &mut Vec<i128>, words: &[u64]) {
    let mut row = 0;
    values.retain(|_| {
        let kept = words[row / WORD_ROWS] >> (row % WORD_ROWS) & 1 == 1;
        row += 1;
        kept
    });
}
