//! Compare and fold on blocks of one base.
//!
//! Compare reads the deltas of the blocks that zones and ends leave over; a sum of everything reads
//! all deltas of one width in one go.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::{
    Bounded, GroupFold, Verdict, compare_ranges, fold_tested, keep_within, with_deltas,
};
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape, clear_tail};

use super::View;

/// Words of a block's bitmap.
const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// [`crate::codec::Codec::compare`] over whole blocks.
pub(super) fn compare_blocks(
    chunk: &Chunk,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let view = View::of(chunk);
    let blocks = bounded(&view);
    compare_ranges(
        chunk,
        predicate,
        (within, out),
        work,
        |range, out, tally| {
            let zones = chunk.body.zones.test(range);
            blocks.compare(range, zones, within, out, tally);
        },
    );
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
    if asked.is_sum_alone() && within.shape() == Shape::All {
        work.tally.direct += chunk.rows as u64;
        out.count += chunk.rows as u64;
        return out.add_sum(sum_all(chunk, &view));
    }
    for block in 0..block_count(chunk.rows) {
        let mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        work.tally.direct += view.deltas.block_len(block) as u64;
        fold_block(chunk, &view, (block, mask), asked, out);
    }
}

/// Folds the rows of `mask` of one block, all without one.
fn fold_block(
    chunk: &Chunk,
    view: &View<'_>,
    (block, mask): (usize, Option<&[u64]>),
    mut asked: Asked,
    out: &mut Fold,
) {
    let rows = view.deltas.block_len(block);
    let part = GroupFold::new(chunk.physical, [view.bases[block]; GROUPS], rows, mask);
    asked.ends &= !part.is_enclosed(&[view.maxima[block]; GROUPS], out);
    with_deltas!(view.deltas, block, deltas => part.fold(deltas, asked, out), zero {
        part.fold_bases(asked, out);
    });
}

/// [`crate::codec::Codec::range_fold`] over whole blocks.
pub(super) fn fold_range(
    chunk: &Chunk,
    (range, within): (KeyRange, &Selection),
    asked: Asked,
    out: &mut Fold,
    work: &mut Work,
) {
    let (view, zones) = (View::of(chunk), chunk.body.zones.test(range));
    if zones.is_empty() {
        work.tally.skipped += chunk.rows as u64;
        return;
    }
    bounded(&view).visit(
        range,
        zones,
        within,
        &mut work.tally,
        |block, verdict, kept| match verdict {
            Verdict::Skip => {}
            Verdict::Take => fold_block(chunk, &view, (block, kept), asked, out),
            Verdict::Read => fold_tested_block(chunk, &view, block, (range, kept), asked, out),
        },
    );
}

/// Folds the rows of a block that pass a test.
fn fold_tested_block(
    chunk: &Chunk,
    view: &View<'_>,
    block: usize,
    (range, kept): (KeyRange, Option<&[u64]>),
    asked: Asked,
    out: &mut Fold,
) {
    let mut words = [0; WORDS];
    let words = &mut words[..view.deltas.block_len(block).div_ceil(WORD_ROWS)];
    let place = (chunk.physical, &[view.bases[block]; GROUPS]);
    if !asked.squares && !asked.ends {
        with_deltas!(view.deltas, block, deltas => {
            fold_tested(place, deltas, (range, kept), (&mut *words, asked.sum), out);
        }, zero if range.contains(view.bases[block]) {
            fold_block(chunk, view, (block, kept), asked, out);
        });
        return;
    }
    bounded(view).read(block..block + 1, range, words);
    clear_tail(words, view.deltas.block_len(block));
    keep_within(words, kept);
    if words.iter().any(|word| *word != 0) {
        fold_block(chunk, view, (block, Some(words)), asked, out);
    }
}

fn bounded<'a>(view: &View<'a>) -> Bounded<'a, 1> {
    Bounded {
        deltas: view.deltas,
        bases: view.bases,
        maxima: view.maxima,
    }
}

/// The sum of all values: bases times their rows, deltas in runs of one width.
fn sum_all(chunk: &Chunk, view: &View<'_>) -> i128 {
    let full = chunk.rows / BLOCK_ROWS;
    let bases: u128 = view.bases[..full]
        .iter()
        .map(|base| u128::from(*base))
        .sum();
    let mut keys = bases * BLOCK_ROWS as u128 + view.deltas.sum(full);
    if full < view.bases.len() {
        let rows = view.deltas.block_len(full);
        keys += u128::from(view.bases[full]) * rows as u128;
        keys += with_deltas!(view.deltas, full, deltas => sum(deltas), zero 0);
    }
    keys as i128 - i128::from(chunk.physical.flip()) * chunk.rows as i128
}

fn sum<D: KeyLane>(deltas: &[D]) -> u128 {
    (D::of(kernels()).sum_flat)(deltas)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;
    use crate::codec::{Codec, compare_decoded, fold_decoded};
    use crate::encoder::ColumnEncoder;
    use crate::registry::by_id;

    use super::super::FrameOfReference;

    /// Blocks of every width, at both ends of the type, nulls, a short last block.
    #[test]
    fn every_width_agrees_with_decoding() {
        let value = |row: i64| match row / 1_024 {
            0 => -7,
            1 => i64::MIN + row % 256,
            2 => i64::MAX - row % 60_000,
            3 => row * 1_000_003,
            4 => (row % 2) * i64::MAX,
            _ => row % 1_000,
        };
        for (rows, holes) in [(6_000, 0), (6_000, 5), (1, 0), (1_025, 2)] {
            let null = |row: &i64| holes > 0 && (row % holes == 1 || row / 1_024 == 0);
            let values = (0..rows).map(|row| (!null(&row)).then(|| value(row)));
            let array: ArrayRef = Arc::new(values.collect::<Int64Array>());
            let mut encoder = ColumnEncoder::new(array.data_type()).unwrap();
            encoder.pin(by_id(5).unwrap());
            let chunk = encoder.encode_new(&array).unwrap();
            FrameOfReference.validate(&chunk).unwrap();
            check(&chunk, &value);
        }
    }

    fn check(chunk: &Chunk, value: &dyn Fn(i64) -> i64) {
        let rows = chunk.rows();
        let mut work = Work::default();
        let mut bits = Selection::default();
        bits.set_rows(rows)
            .extend((0..rows as u32).filter(|row| row % 3 > 0 || row / 1_024 == 2));
        bits.to_bits();
        let asked = [(true, false), (true, true)].map(|(sum, rest)| Asked {
            sum,
            squares: rest,
            ends: rest,
        });
        for within in [Selection::all(rows), bits] {
            for asked in asked {
                let (mut direct, mut decoded) = (Fold::default(), Fold::default());
                FrameOfReference.fold(chunk, asked, &within, &mut direct, &mut work);
                fold_decoded(
                    &FrameOfReference,
                    chunk,
                    asked,
                    &within,
                    &mut decoded,
                    &mut work,
                );
                assert_eq!(direct, decoded);
            }
            for row in (0..rows as i64).step_by(101) {
                let key = chunk.physical.key_of(value(row).into()).unwrap();
                let (below, above) = (key.saturating_sub(9), key.saturating_add(70_000));
                let list = [(key, key), (below, above), (0, key), (key, u64::MAX)];
                let mut list = list
                    .map(|(low, high)| vec![KeyRange { low, high }])
                    .to_vec();
                list.push(
                    [below, key, above]
                        .map(|key| KeyRange {
                            low: key,
                            high: key,
                        })
                        .to_vec(),
                );
                for ranges in list {
                    let predicate = Predicate::Keys(ranges);
                    let (mut found, mut expected) = (Selection::default(), Selection::default());
                    compare_blocks(chunk, &predicate, &within, &mut found, &mut work);
                    let codec = &FrameOfReference;
                    compare_decoded(codec, chunk, &predicate, &within, &mut expected, &mut work);
                    let ranges = asked.map(|asked| Some((asked, predicate.as_range()?)));
                    for (asked, range) in ranges.into_iter().flatten() {
                        let (mut direct, mut truth) = (Fold::default(), Fold::default());
                        fold_range(chunk, (range, &within), asked, &mut direct, &mut work);
                        fold_decoded(codec, chunk, asked, &expected, &mut truth, &mut work);
                        assert_eq!(direct, truth, "{predicate:?} {asked:?}");
                    }
                    found.to_bits();
                    expected.to_bits();
                    assert_eq!(found.words(), expected.words(), "{predicate:?}");
                }
            }
        }
    }
}
