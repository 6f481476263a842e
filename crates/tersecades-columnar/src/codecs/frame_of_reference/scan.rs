//! Compare and fold on blocks of one base.
//!
//! Base and maximum tell whether a range misses or covers a block; only what is left reads its
//! deltas, comparing narrow lanes against the range moved to the base.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::{GroupFold, single_range, with_deltas};
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape, clear_tail};

use super::View;

const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// [`crate::codec::Codec::compare`] over whole blocks.
pub(super) fn compare_blocks(
    chunk: &Chunk,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let Predicate::Keys(ranges) = predicate else {
        return out.set_none(chunk.rows);
    };
    match single_range(predicate, chunk.physical.key_max()) {
        Some((range, inverted)) => {
            compare_ranges(chunk, &[range], within, out, work);
            if inverted {
                out.invert();
            }
        }
        None => compare_ranges(chunk, ranges, within, out, work),
    }
    out.intersect(within);
}

/// Selects the rows of `ranges`, and maybe rows outside `within`.
fn compare_ranges(
    chunk: &Chunk,
    ranges: &[KeyRange],
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let view = View::of(chunk);
    let ends = || view.bases.iter().zip(view.maxima);
    let meets = |range: &KeyRange| ends().any(|(a, b)| range.low <= *b && *a <= range.high);
    if !ranges.iter().any(meets) {
        work.tally.skipped += chunk.rows as u64;
        return out.set_none(chunk.rows);
    }
    let words = out.set_bits(chunk.rows);
    for block in 0..block_count(chunk.rows) {
        let rows = view.deltas.block_len(block);
        let first = block * WORDS;
        let words = &mut words[first..first + rows.div_ceil(WORD_ROWS)];
        let wanted = !matches!(within.block(block), BlockSelection::None);
        match wanted && compare_block(&view, block, ranges, words) {
            true => work.tally.direct += rows as u64,
            false => work.tally.skipped += rows as u64,
        }
    }
}

/// Sets the bits of the rows in `ranges`; whether deltas had to be read.
fn compare_block(view: &View<'_>, block: usize, ranges: &[KeyRange], words: &mut [u64]) -> bool {
    let (base, maximum) = (view.bases[block], view.maxima[block]);
    let mut read = false;
    let mut part = [0; WORDS];
    for range in ranges {
        if range.low > maximum || range.high < base {
            continue;
        }
        if range.low <= base && maximum <= range.high {
            words.fill(u64::MAX);
            clear_tail(words, view.deltas.block_len(block));
            return false;
        }
        let part = &mut part[..words.len()];
        let mask = if read { &mut *part } else { &mut *words };
        // Without deltas the maximum is the base, and a range that meets it covers it.
        with_deltas!(view.deltas, block, deltas => mask_block(deltas, base, *range, mask), zero {});
        if read {
            (kernels().bitmap.or)(words, part);
        }
        read = true;
    }
    read
}

fn mask_block<D: KeyLane>(deltas: &[D], base: u64, range: KeyRange, words: &mut [u64]) {
    let low = range.low.saturating_sub(base).min(D::MAX.key());
    let high = (range.high - base).min(D::MAX.key());
    (D::of(kernels()).range_mask_flat)(deltas, D::cut(low), D::cut(high - low), words);
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
    for block in 0..block_count(chunk.rows) {
        let mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        let rows = view.deltas.block_len(block);
        work.tally.direct += rows as u64;
        let part = GroupFold::new(chunk.physical, [view.bases[block]; GROUPS], rows, mask);
        with_deltas!(view.deltas, block, deltas => part.fold(deltas, asked, out), zero {
            part.fold_bases(asked, out);
        });
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
                    found.to_bits();
                    expected.to_bits();
                    assert_eq!(found.words(), expected.words(), "{predicate:?}");
                }
            }
        }
    }
}
