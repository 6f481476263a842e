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
            keep_selected(&mut values.wide, words);
        }
        visit(&values);
    }
    work.values = values;
}

/// Drops the items whose bit is not set.
pub(crate) fn keep_selected<T: Copy>(items: &mut Vec<T>, words: &[u64]) {
    let mut kept = 0;
    let used = items.len().div_ceil(WORD_ROWS);
    for (index, word) in words.iter().take(used).enumerate() {
        let start = index * WORD_ROWS;
        if *word == u64::MAX {
            items.copy_within(start..start + WORD_ROWS, kept);
            kept += WORD_ROWS;
            continue;
        }
        let mut rest = *word;
        while rest != 0 {
            items[kept] = items[start + rest.trailing_zeros() as usize];
            kept += 1;
            rest &= rest - 1;
        }
    }
    items.truncate(kept);
}
