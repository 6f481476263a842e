//! Compare on encoded blocks.
//!
//! Compare reads the deltas of the blocks that zones and ends leave over. A saturated delta answers
//! as the near end of its group's reach, so patches are looked at only where their true values
//! could answer differently.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::narrow::{Bounded, compare_ranges, widest};
use crate::predicate::{KeyRange, Predicate};
use crate::selection::Selection;
use crate::zone::ZoneMarks;

use super::View;

pub(super) const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// [`crate::codec::Codec::compare`] over whole blocks.
pub(super) fn compare_blocks(
    chunk: &Chunk,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let view = View::of(chunk);
    let blocks = Bounded::<GROUPS> {
        deltas: view.deltas,
        bases: view.bases,
        maxima: view.maxima,
    };
    compare_ranges(
        chunk,
        predicate,
        (within, out),
        work,
        |range, out, tally| {
            let zones = chunk.body.zones.test(range);
            blocks.compare(range, zones, within, out, tally);
            if !view.patches.is_empty() {
                correct_blocks(chunk, &view, range, zones, out);
            }
        },
    );
}

/// Answers for patched rows by their true keys, in blocks whose holes could answer differently.
fn correct_blocks(
    chunk: &Chunk,
    view: &View<'_>,
    range: KeyRange,
    zones: ZoneMarks,
    out: &mut Selection,
) {
    for block in 0..block_count(chunk.rows) {
        let settled = !zones.touches(block) || zones.covers(block);
        if settled || view.patches.of_block(block).is_empty() {
            continue;
        }
        let agree = is_read(chunk, view, block, range) && holes_agree(chunk, view, block, range);
        if !agree {
            correct_patches(view, block, range, &mut out.bits_mut()[block * WORDS..]);
        }
    }
}

/// Whether the deltas of the block, its holes among them, were compared: its ends, which leave the
/// patches out, neither rule it out nor in.
fn is_read(chunk: &Chunk, view: &View<'_>, block: usize, range: KeyRange) -> bool {
    let used = block_rows(block, chunk.rows).len().div_ceil(GROUP_ROWS);
    let mut ends = (block * GROUPS..block * GROUPS + used)
        .map(|group| (view.bases[group], view.maxima[group]));
    let touched = |(base, maximum)| base <= range.high && maximum >= range.low;
    let covered = |(base, maximum)| range.low <= base && maximum <= range.high;
    ends.clone().any(touched) && !ends.all(covered)
}

/// Whether every saturated hole of the block answers as its true value does, once compared.
///
/// A value above its group's top has the top in its hole: both fail when the range ends below the
/// top, both pass when the range starts at or below it and reaches the chunk's largest value. The
/// other end mirrors this.
fn holes_agree(chunk: &Chunk, view: &View<'_>, block: usize, range: KeyRange) -> bool {
    let bases = &view.bases[block * GROUPS..(block + 1) * GROUPS];
    let lowest = bases.iter().copied().min().unwrap_or(0);
    let highest = bases.iter().copied().max().unwrap_or(0);
    let top = lowest.saturating_add(widest(usize::from(view.deltas.widths[block])));
    let above = range.high < top || (range.low <= top && chunk.stats.none_above(range.high));
    let below = range.low > highest || (range.high >= highest && chunk.stats.none_below(range.low));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::codec::{compare_decoded, fold_decoded};
    use crate::encoder::ColumnEncoder;
    use crate::fold::{Asked, Fold};
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
