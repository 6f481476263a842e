//! Compare and fold on encoded blocks.
//!
//! Compare, for each range of the predicate: one pass over all bases and maxima tells, per group,
//! whether the range can touch it and whether it covers it. Blocks no group of which is touched
//! become zeros, blocks covered whole become ones, and only the rest read their deltas, comparing
//! narrow lanes against the range moved to each group's base. Patches are looked at only where a
//! saturated delta could answer differently.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::{GroupFold, single_range, widest, with_deltas};
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape, clear_tail};

use super::View;

pub(super) const WORDS: usize = BLOCK_ROWS / WORD_ROWS;
const GROUP_WORDS: usize = GROUP_ROWS / WORD_ROWS;

/// [`crate::codec::Codec::compare`] over whole blocks.
pub(super) fn compare_blocks(
    chunk: &Chunk,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let Predicate::Keys(all_ranges) = predicate else {
        return out.set_none(chunk.rows);
    };
    let view = View::of(chunk);
    let mut marks = std::mem::take(&mut work.marks);
    if let Some((range, inverted)) = single_range(predicate, chunk.physical.key_max()) {
        if mark_groups(&view, range, &mut marks) || !view.patches.is_empty() {
            let words = out.set_bits(chunk.rows);
            fill_words(chunk, &view, range, &marks, (words, work));
        } else {
            work.tally.skipped += chunk.rows as u64;
            out.set_none(chunk.rows);
        }
        if inverted {
            out.invert();
        }
    } else {
        let words = out.set_bits(chunk.rows);
        let mut part = Selection::default();
        for range in all_ranges {
            let part_words = part.set_bits(chunk.rows);
            mark_groups(&view, *range, &mut marks);
            fill_words(chunk, &view, *range, &marks, (part_words, work));
            (kernels().bitmap.or)(words, part_words);
        }
    }
    work.marks = marks;
    out.intersect(within);
}

/// Which groups `range` touches (first half of `marks`) and which it covers (second half), a byte
/// per block; answers whether any is touched.
///
/// # Cost
/// One cache line per block that its bases rule out; the maxima of the others are read too.
fn mark_groups(view: &View<'_>, range: KeyRange, marks: &mut Vec<u8>) -> bool {
    let blocks = view.deltas.widths.len();
    marks.clear();
    marks.resize(2 * blocks, 0);
    let (any, all) = marks.split_at_mut(blocks);
    let overlap = kernels().overlap;
    let widest = widest(usize::from(
        view.deltas.widths.iter().copied().max().unwrap_or(0),
    ));
    let reached = range.low.saturating_sub(widest)..=range.high;
    overlap(view.bases, view.bases, reached, any, all);
    let mut touched = false;
    let mut start = 0;
    while let Some(first) = next_block(any, start, |mark| mark != 0) {
        let end = next_block(any, first, |mark| mark == 0).unwrap_or(blocks);
        let groups = first * GROUPS..end * GROUPS;
        let (bases, maxima) = (&view.bases[groups.clone()], &view.maxima[groups]);
        let (any, all) = (&mut any[first..end], &mut all[first..end]);
        overlap(bases, maxima, range.low..=range.high, any, all);
        touched |= any.iter().any(|mark| *mark != 0);
        start = end;
    }
    touched
}

/// The first block from `start` on whose mark passes.
fn next_block(marks: &[u8], start: usize, pass: impl Fn(u8) -> bool) -> Option<usize> {
    let found = marks[start..].iter().position(|mark| pass(*mark));
    found.map(|index| start + index)
}

/// Fills zeroed words with the rows of `range`, block by block as `marks` say.
fn fill_words(
    chunk: &Chunk,
    view: &View<'_>,
    range: KeyRange,
    marks: &[u8],
    (words, work): (&mut [u64], &mut Work),
) {
    let blocks = block_count(chunk.rows);
    let (any, all) = marks.split_at(blocks);
    let patched = !view.patches.is_empty();
    for block in 0..blocks {
        let rows = view.deltas.block_len(block);
        let first = block * WORDS;
        let words = &mut words[first..first + rows.div_ceil(WORD_ROWS)];
        match (any[block], all[block]) {
            (0, _) => work.tally.skipped += rows as u64,
            (_, 0xFF) => {
                work.tally.skipped += rows as u64;
                words.fill(u64::MAX);
                clear_tail(words, rows);
            }
            (any, _) => {
                work.tally.direct += rows as u64;
                with_deltas!(view.deltas, block, deltas => {
                    compare_deltas(deltas, &view.block_bases(block), range, any, words);
                }, zero {
                    compare_bases(any, words);
                    clear_tail(words, rows);
                });
            }
        }
        if patched
            && !view.patches.of_block(block).is_empty()
            && !holes_agree(chunk, view, block, range)
        {
            correct_patches(view, block, range, words);
        }
    }
}

/// Compares narrow lanes with the range moved to each group's base.
fn compare_deltas<D: KeyLane>(
    deltas: &[D],
    bases: &[u64; GROUPS],
    range: KeyRange,
    any: u8,
    words: &mut [u64],
) {
    let (mut low, mut span) = ([D::cut(0); GROUPS], [D::cut(0); GROUPS]);
    for group in 0..GROUPS {
        let from = range.low.saturating_sub(bases[group]).min(D::MAX.key());
        let to = range.high.saturating_sub(bases[group]).min(D::MAX.key());
        low[group] = D::cut(from);
        span[group] = D::cut(to - from);
    }
    (D::of(kernels()).range_mask)(deltas, &low, &span, words);
    if any != 0xFF {
        for (group, words) in words.chunks_mut(GROUP_WORDS).enumerate() {
            if any >> group & 1 == 0 {
                words.fill(0);
            }
        }
    }
}

/// Deltas of width 0: a touched group is its base, so it passes whole.
fn compare_bases(any: u8, words: &mut [u64]) {
    for (group, words) in words.chunks_mut(GROUP_WORDS).enumerate() {
        words.fill(if any >> group & 1 == 1 { u64::MAX } else { 0 });
    }
}

/// Whether every saturated hole of the block answers as its true value does.
///
/// A value above its group's top has the top in its hole: both fail when the range ends below the
/// top, both pass when the range starts at or below it and reaches the chunk's largest value. The
/// other end mirrors this.
fn holes_agree(chunk: &Chunk, view: &View<'_>, block: usize, range: KeyRange) -> bool {
    let bases = &view.bases[block * GROUPS..(block + 1) * GROUPS];
    let lowest = bases.iter().copied().min().unwrap_or(0);
    let highest = bases.iter().copied().max().unwrap_or(0);
    let top = lowest.saturating_add(widest(usize::from(view.deltas.widths[block])));
    let above = range.high < top || (range.low <= top && range.high >= chunk.stats.max);
    let below = range.low > highest || (range.high >= highest && range.low <= chunk.stats.min);
    above && below
}

fn correct_patches(view: &View<'_>, block: usize, range: KeyRange, words: &mut [u64]) {
    for index in view.patches.of_block(block) {
        let row = view.patches.row(index);
        let bit = 1 << (row % WORD_ROWS);
        let word = &mut words[row / WORD_ROWS];
        *word = if range.contains(view.patches.key(index)) {
            *word | bit
        } else {
            *word & !bit
        };
    }
}

/// [`crate::codec::Codec::fold`] over whole blocks.
pub(super) fn fold_blocks(
    chunk: &Chunk,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let view = View::of(chunk);
    let sum_alone = Asked {
        sum: true,
        ..Asked::default()
    };
    if asked == sum_alone && within.shape() == Shape::All {
        work.tally.direct += chunk.rows as u64;
        out.count += chunk.rows as u64;
        return out.add_sum(sum_all(chunk, &view));
    }
    let mut mask = [0; WORDS];
    for block in 0..block_count(chunk.rows) {
        let rows = view.deltas.block_len(block);
        let words = &mut mask[..rows.div_ceil(WORD_ROWS)];
        let patches = view.patches.of_block(block);
        let whole = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => {
                words.fill(u64::MAX);
                clear_tail(words, rows);
                true
            }
            BlockSelection::Bits(selected) => {
                words.copy_from_slice(selected);
                false
            }
        };
        work.tally.direct += rows as u64;
        let unpatched = patches.is_empty();
        for index in patches {
            let row = view.patches.row(index);
            let bit = 1u64 << (row % WORD_ROWS);
            if words[row / WORD_ROWS] & bit != 0 {
                words[row / WORD_ROWS] &= !bit;
                out.add_repeats(chunk.physical, view.patches.key(index), 1, asked);
            }
        }
        let selected = if whole && unpatched {
            None
        } else {
            Some(&*words)
        };
        let part = GroupFold::new(chunk.physical, view.block_bases(block), rows, selected);
        with_deltas!(view.deltas, block, deltas => part.fold(deltas, asked, out), zero {
            part.fold_bases(asked, out);
        });
    }
}

/// The sum of all values: bases times their rows, deltas in runs of one width, patches in place of
/// their holes.
fn sum_all(chunk: &Chunk, view: &View<'_>) -> i128 {
    let full = chunk.rows / BLOCK_ROWS;
    let mut keys = (kernels().u64.sum_flat)(&view.bases[..full * GROUPS]) * GROUP_ROWS as u128;
    keys += view.deltas.sum(full);
    if full < view.deltas.widths.len() {
        for row in full * BLOCK_ROWS..chunk.rows {
            keys += u128::from(view.unpatched_key(row));
        }
    }
    let mut correction = 0;
    if !view.patches.is_empty() {
        for block in 0..view.deltas.widths.len() {
            for index in view.patches.of_block(block) {
                let hole = view.unpatched_key(block * BLOCK_ROWS + view.patches.row(index));
                correction += i128::from(view.patches.key(index)) - i128::from(hole);
            }
        }
    }
    let flips = i128::from(chunk.physical.flip()) * chunk.rows as i128;
    keys as i128 + correction - flips
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::codec::{compare_decoded, fold_decoded};
    use crate::encoder::ColumnEncoder;
    use crate::predicate::Comparison;
    use crate::registry::by_id;

    /// Blocks far apart, outliers at both ends, a short last block, values around zero.
    #[test]
    fn whole_chunks_agree_with_decoding() {
        let rows = [1usize, 127, 1024, 5_000, 5_120];
        for (rows, wide) in rows.into_iter().flat_map(|rows| [(rows, 1), (rows, 90)]) {
            let value = |row: i64| match row % 197 {
                3 => 70_000_000,
                5 => -70_000_000,
                _ => row / 1024 * 1_000_000 - 2_000_000 + row * wide % 251,
            };
            let array: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..rows as i64).map(value)));
            let mut encoder = ColumnEncoder::new(&DataType::Int64).unwrap();
            encoder.pin(by_id(2).unwrap());
            let chunk = encoder.encode_new(&array).unwrap();
            let (all, mut work) = (Selection::all(rows), Work::default());
            let asked = Asked {
                sum: true,
                ..Asked::default()
            };
            let (mut direct, mut decoded) = (Fold::default(), Fold::default());
            chunk.fold(asked, &all, &mut direct, &mut work);
            fold_decoded(chunk.codec, &chunk, asked, &all, &mut decoded, &mut work);
            assert_eq!((direct.count, direct.sum), (decoded.count, decoded.sum));
            for how in [Comparison::Equal, Comparison::NotEqual, Comparison::Less] {
                for constant in [
                    -1_999_990i64,
                    -1_500_000,
                    70_000_000,
                    -70_000_000,
                    2_000_000,
                ] {
                    let data_type = chunk.data_type();
                    let predicate = Predicate::compare(data_type, how, &constant.into()).unwrap();
                    let (mut found, mut expected) = (Selection::default(), Selection::default());
                    chunk.compare(&predicate, &all, &mut found, &mut work);
                    let codec = chunk.codec;
                    compare_decoded(codec, &chunk, &predicate, &all, &mut expected, &mut work);
                    found.to_bits();
                    assert_eq!(found.words(), expected.words(), "{rows} {how:?} {constant}");
                }
            }
        }
    }
}
