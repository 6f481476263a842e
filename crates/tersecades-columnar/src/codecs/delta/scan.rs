//! Compare, fold and gather, block by block.

use std::ops::Range;

use crate::bitmap::{WORD_ROWS, set_range};
use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::codec::{Work, mask_keys};
use crate::fold::{Asked, Fold};
use crate::keys::fold_keys;
use crate::predicate::{Coverage, KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape};
use crate::types::Physical;
use crate::values::Values;

use super::View;

const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// Rows whose steps are added up before a search looks whether it has passed what it seeks.
const SEARCHED_ROWS: usize = 256;

impl View<'_> {
    /// What the ends of a block say.
    fn coverage(&self, predicate: &Predicate, block: usize) -> Coverage {
        predicate.coverage(self.minima[block], self.maxima[block])
    }

    fn is_wanted(&self, within: &Selection, block: usize) -> bool {
        !matches!(within.block(block), BlockSelection::None)
    }

    /// The first of those of `rows` that lie in `block`, and the keys from there on, which ascend:
    /// all of them, or as many as it takes to pass `bound`.
    fn keys_up_to<'v>(
        &self,
        block: usize,
        rows: &Range<usize>,
        (bound, values): (u64, &'v mut Values),
    ) -> (usize, &'v [u64]) {
        let whole = block_rows(block, self.rows);
        let from = whole.start.max(rows.start);
        values.reset(self.steps.physical);
        let (steps, inside) = (self.steps, whole.start..whole.end.min(rows.end));
        steps.codec.decode(steps, inside.clone(), values);
        let (mut start, mut end, mut first) = (0, 0, self.firsts[block]);
        while end < inside.len() {
            end = inside.len().min(start + SEARCHED_ROWS);
            self.add_up(&mut values.keys[start..end], first);
            // The last key begins the next piece.
            (start, first) = (end - 1, values.keys[end - 1]);
            if first > bound && whole.start + start >= from {
                break;
            }
        }
        (from, &values.keys[from - whole.start..end])
    }
}

/// [`crate::codec::Codec::compare`] within all rows or a bitmap.
pub(super) fn compare_blocks(
    view: &View<'_>,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let Predicate::Keys(ranges) = predicate else {
        return out.set_none(view.rows);
    };
    let words = out.set_bits(view.rows);
    for block in 0..block_count(view.rows) {
        let rows = block_rows(block, view.rows);
        match view.coverage(predicate, block) {
            Coverage::Some if view.is_wanted(within, block) => continue,
            Coverage::All => set_range(words, rows.clone()),
            Coverage::None | Coverage::Some => {}
        }
        work.tally.skipped += rows.len() as u64;
    }
    let mut values = std::mem::take(&mut work.values);
    let looked_at = |block: usize| {
        view.coverage(predicate, block) == Coverage::Some && view.is_wanted(within, block)
    };
    view.for_each_block(&mut values, looked_at, |block, keys| {
        work.tally.decoded += keys.len() as u64;
        if view.ascending[block] == 1 {
            return search(ranges, keys, block * BLOCK_ROWS, words);
        }
        let first = block * WORDS;
        let words = &mut words[first..first + keys.len().div_ceil(WORD_ROWS)];
        mask_keys(predicate, keys, words);
    });
    work.values = values;
    out.intersect(within);
}

/// Sets the rows, counted from `start`, whose ascending keys are in one of `ranges`.
fn search(ranges: &[KeyRange], keys: &[u64], start: usize, words: &mut [u64]) {
    for range in ranges {
        let from = keys.partition_point(|key| *key < range.low);
        let to = keys.partition_point(|key| *key <= range.high);
        set_range(words, start + from..start + to.max(from));
    }
}

/// The entries of a row list that lie in `block`.
fn listed(rows: &[u32], block: usize) -> Range<usize> {
    let before = |end: usize| rows.partition_point(|row| (*row as usize) < end);
    before(block * BLOCK_ROWS)..before((block + 1) * BLOCK_ROWS)
}

/// [`crate::codec::Codec::compare`] within a row list.
pub(super) fn compare_rows(
    view: &View<'_>,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let rows = within.list();
    let list = out.set_rows(view.rows);
    let mut values = std::mem::take(&mut work.values);
    let mut settled = 0;
    // Rows of blocks that pass whole, up to the next block that is looked at.
    let mut settle = |list: &mut Vec<u32>, end: usize| {
        let whole =
            |row: &&u32| view.coverage(predicate, **row as usize / BLOCK_ROWS) == Coverage::All;
        let part = &rows[std::mem::replace(&mut settled, end)..end];
        list.extend(part.iter().filter(whole));
    };
    let looked_at = |block: usize| {
        view.coverage(predicate, block) == Coverage::Some && !listed(rows, block).is_empty()
    };
    view.for_each_block(&mut values, looked_at, |block, keys| {
        work.tally.decoded += keys.len() as u64;
        let inside = listed(rows, block);
        settle(list, inside.start);
        let pass = |row: &&u32| predicate.matches_key(keys[**row as usize % BLOCK_ROWS]);
        list.extend(rows[inside].iter().filter(pass));
    });
    settle(list, rows.len());
    work.values = values;
}

/// [`crate::codec::Codec::fold`] within all rows or a bitmap.
pub(super) fn fold_blocks(
    view: &View<'_>,
    physical: Physical,
    asked: Asked,
    within: &Selection,
    (out, work): (&mut Fold, &mut Work),
) {
    let ends_alone = !asked.sum && !asked.squares;
    let whole = within.shape() == Shape::All;
    if ends_alone && whole {
        for block in 0..block_count(view.rows) {
            out.add_end(i128::from(view.minima[block]));
            out.add_end(i128::from(view.maxima[block]));
        }
        work.tally.skipped += view.rows as u64;
        out.count += view.rows as u64;
        return;
    }
    let mut values = std::mem::take(&mut work.values);
    let wanted = |block: usize| view.is_wanted(within, block);
    view.for_each_block(&mut values, wanted, |block, keys| {
        work.tally.decoded += keys.len() as u64;
        let mask = match within.block(block) {
            BlockSelection::Bits(words) => Some(words),
            BlockSelection::All | BlockSelection::None => None,
        };
        let mut rest = asked;
        if asked.ends && whole {
            out.add_end(i128::from(view.minima[block]));
            out.add_end(i128::from(view.maxima[block]));
            rest.ends = false;
        }
        fold_keys(keys, physical, rest, mask, out);
    });
    work.values = values;
}

/// [`crate::codec::Codec::gather`].
pub(super) fn gather(view: &View<'_>, rows: &[u32], out: &mut Values, work: &mut Work) {
    let mut values = std::mem::take(&mut work.values);
    let touched = |block: usize| !listed(rows, block).is_empty();
    view.for_each_block(&mut values, touched, |block, keys| {
        work.tally.decoded += keys.len() as u64;
        let inside = rows[listed(rows, block)].iter();
        out.keys
            .extend(inside.map(|row| keys[*row as usize % BLOCK_ROWS]));
    });
    work.values = values;
}

/// [`crate::codec::Codec::search`]: the first keys of blocks tell the block in which the wanted
/// rows begin, and the one in which they end; only those are decoded.
pub(super) fn find_key(
    view: &View<'_>,
    key: u64,
    rows: Range<usize>,
    work: &mut Work,
) -> Range<usize> {
    if rows.is_empty() {
        return rows;
    }
    let first = rows.start / BLOCK_ROWS;
    let starts = &view.firsts[first + 1..=(rows.end - 1) / BLOCK_ROWS];
    let begins = first + starts.partition_point(|start| *start < key);
    let ends = first + starts.partition_point(|start| *start <= key);
    let mut values = std::mem::take(&mut work.values);
    let (mut from, mut keys) = view.keys_up_to(begins, &rows, (key, &mut values));
    work.tally.decoded += keys.len() as u64;
    let start = from + keys.partition_point(|other| *other < key);
    if ends != begins {
        (from, keys) = view.keys_up_to(ends, &rows, (key, &mut values));
        work.tally.decoded += keys.len() as u64;
    }
    let end = from + keys.partition_point(|other| *other <= key);
    work.values = values;
    start..end
}
