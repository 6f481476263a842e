//! Compare on encoded blocks.
//!
//! Compare reads the deltas of the blocks that zones and ends leave over. A saturated delta answers
//! as the near end of its group's reach, so patches are looked at only where their true values
//! could answer differently.

use std::ops::Range;

use crate::bitmap::{WORD_ROWS, ones};
use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS, block_count, block_rows};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::kernels::kernels;
use crate::lane::{KeyLane, with_lanes};
use crate::narrow::{Bounded, compare_ranges, widest};
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{Selection, Shape};
use crate::zone::ZoneMarks;

use super::View;

pub(super) const WORDS: usize = BLOCK_ROWS / WORD_ROWS;

/// Blocks whose patches are tested at once.
const STRIP: usize = 8;

/// What comparing takes, in nanoseconds: a row by itself, whose delta is most often in no cache; a
/// block that ends settle; a byte of the deltas of one that they do not; a patch.
///
/// Reckoned from profiles of the reference queries, whose filters leave one row in a hundred.
const ROW_NS: f64 = 8.0;
const BLOCK_NS: f64 = 20.0;
const BYTE_NS: f64 = 0.05;
const PATCH_NS: f64 = 2.0;

/// Whether whole blocks are compared sooner than `listed` rows by themselves: where most blocks lie
/// on one side of the ends of `range`, their deltas need not be read.
pub(super) fn blocks_pay(chunk: &Chunk, range: KeyRange, listed: usize) -> bool {
    let (view, blocks) = (View::of(chunk), block_count(chunk.rows));
    let settled_ns = blocks as f64 * BLOCK_NS + view.patches.len() as f64 * PATCH_NS;
    let spare_ns = listed as f64 * ROW_NS - settled_ns;
    spare_ns > 0.0 && open_bytes(&view, range) as f64 * BYTE_NS < spare_ns
}

/// Bytes of the deltas of the blocks that ends do not settle.
fn open_bytes(view: &View<'_>, range: KeyRange) -> usize {
    let strips = view
        .bases
        .chunks(STRIP * GROUPS)
        .zip(view.maxima.chunks(STRIP * GROUPS));
    let widths = view.deltas.widths.chunks(STRIP);
    let open = strips.zip(widths).map(|((bases, maxima), widths)| {
        let (mut any, mut all) = ([0; STRIP], [0; STRIP]);
        let (any, all) = (&mut any[..widths.len()], &mut all[..widths.len()]);
        (kernels().overlap)(bases, maxima, range.low..=range.high, any, all);
        let ends = any.iter().zip(&*all).zip(widths);
        let open = ends.filter(|((any, all), _)| **any != 0 && **all != u8::MAX);
        open.map(|(_, width)| BLOCK_ROWS * usize::from(*width))
            .sum::<usize>()
    });
    open.sum()
}

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
            let mut zones = chunk.body.zones.test(range);
            if !view.patches.is_empty() {
                zones = zones.with_outliers();
            }
            blocks.compare(range, zones, within, out, tally);
            if !view.patches.is_empty() {
                with_lanes!(view.patches.keys(), keys => {
                    correct_blocks(chunk, (&view, keys), (range, zones), out);
                }, else {});
            }
        },
    );
}

/// Answers for patched rows by their true keys, in blocks whose holes could answer differently.
fn correct_blocks<K: KeyLane>(
    chunk: &Chunk,
    (view, keys): (&View<'_>, &[K]),
    (range, zones): (KeyRange, ZoneMarks),
    out: &mut Selection,
) {
    if out.shape() == Shape::None {
        return list_patches(chunk, (view, keys), range, out);
    }
    for_each_patched(chunk, (view, keys), range, |block, passing, first| {
        let settled = !zones.touches(block) || zones.covers(block);
        let agree = || is_read(chunk, view, block, range) && holes_agree(chunk, view, block, range);
        if !settled && !agree() {
            let rows = &view.patches.rows()[view.patches.of_block(block)];
            let words = &mut out.bits_mut()[block * WORDS..];
            let last = words.len().min(WORDS);
            correct_patches(rows, (passing, first), &mut words[..last]);
        }
    });
}

/// Selects the patches in `range`, where no delta is.
fn list_patches<K: KeyLane>(
    chunk: &Chunk,
    (view, keys): (&View<'_>, &[K]),
    range: KeyRange,
    out: &mut Selection,
) {
    let list = out.set_rows(chunk.rows);
    for_each_strip(chunk, (view, keys), range, |strip, passing, first| {
        let start = list.len();
        // Numbers of patches at first, then their rows.
        (kernels().bitmap.to_rows)(passing, first as u32, list);
        let mut found = list[start..].iter_mut().peekable();
        for block in strip {
            let (row, end) = (
                (block * BLOCK_ROWS) as u32,
                view.patches.of_block(block).end,
            );
            while let Some(slot) = found.next_if(|patch| (**patch as usize) < end) {
                *slot = row + view.patches.row(*slot as usize) as u32;
            }
        }
    });
    if list.is_empty() {
        out.set_none(chunk.rows);
    }
}

/// Visits the blocks with patches: in the words, from the bit on, those in `range` have a bit.
fn for_each_patched<K: KeyLane>(
    chunk: &Chunk,
    (view, keys): (&View<'_>, &[K]),
    range: KeyRange,
    mut visit: impl FnMut(usize, &[u64], usize),
) {
    for_each_strip(chunk, (view, keys), range, |strip, passing, first| {
        for block in strip {
            let patches = view.patches.of_block(block);
            if !patches.is_empty() {
                visit(block, passing, patches.start - first);
            }
        }
    });
}

/// Visits strips of blocks with patches: bit `i` of the words is set where patch `i` from the given
/// one on is in `range`.
fn for_each_strip<K: KeyLane>(
    chunk: &Chunk,
    (view, keys): (&View<'_>, &[K]),
    range: KeyRange,
    mut visit: impl FnMut(Range<usize>, &[u64], usize),
) {
    let blocks = block_count(chunk.rows);
    let mut passing = [0; STRIP * WORDS];
    for start in (0..blocks).step_by(STRIP) {
        let strip = start..blocks.min(start + STRIP);
        let first = view.patches.of_block(strip.start).start;
        let keys = &keys[first..view.patches.of_block(strip.end - 1).end];
        if keys.is_empty() {
            continue;
        }
        let passing = &mut passing[..keys.len().div_ceil(WORD_ROWS)];
        test_keys(keys, range, passing);
        visit(strip, passing, first);
    }
}

/// Sets the bits of the keys in `range` in `passing`, which has just the words they need.
pub(super) fn test_keys<K: KeyLane>(keys: &[K], range: KeyRange, passing: &mut [u64]) {
    if range.low > K::MAX.key() {
        return passing.fill(0);
    }
    let span = range.high.min(K::MAX.key()) - range.low;
    (K::of(kernels()).range_mask_flat)(keys, K::cut(range.low), K::cut(span), passing);
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
pub(super) fn holes_agree(chunk: &Chunk, view: &View<'_>, block: usize, range: KeyRange) -> bool {
    let bases = &view.bases[block * GROUPS..(block + 1) * GROUPS];
    let lowest = bases.iter().copied().min().unwrap_or(0);
    let highest = bases.iter().copied().max().unwrap_or(0);
    holes_between(chunk, (lowest, highest), view.deltas.widths[block], range)
}

/// [`holes_agree`] of blocks whose bases lie in `lowest..=highest`, their deltas of `width` bytes
/// or more.
pub(super) fn holes_between(
    chunk: &Chunk,
    (lowest, highest): (u64, u64),
    width: u8,
    range: KeyRange,
) -> bool {
    let top = lowest.saturating_add(widest(usize::from(width)));
    let above = range.high < top || (range.low <= top && chunk.stats.none_above(range.high));
    let below = range.low > highest || (range.high >= highest && chunk.stats.none_below(range.low));
    above && below
}

/// Answers for the patches of a block in its `rows`, in the `words` of the block; the first is bit
/// `first` of `passing`.
///
/// Where no bit of the block is set, only those that pass are touched.
pub(super) fn correct_patches(rows: &[u16], (passing, first): (&[u64], usize), words: &mut [u64]) {
    let range = first..first + rows.len();
    let bit = |row: u16| {
        (
            usize::from(row) / WORD_ROWS,
            1 << (usize::from(row) % WORD_ROWS),
        )
    };
    if words.iter().all(|word| *word == 0) {
        // Rows ascend: what a word has so far need not be read again.
        let (mut last, mut bits) = (usize::MAX, 0);
        for index in ones(passing, range) {
            let (word, bit) = bit(rows[index - first]);
            bits = if word == last { bits | bit } else { bit };
            words[word] = bits;
            last = word;
        }
        return;
    }
    for (row, index) in rows.iter().zip(range) {
        let (word, bit) = bit(*row);
        let passes = passing[index / WORD_ROWS] >> (index % WORD_ROWS) & 1;
        words[word] = (words[word] & !bit) | (bit * passes);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    use super::super::rows::RowTest;
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

    /// What each row of a shape is; deltas reach both ends of their lanes, as holes and as values.
    pub(crate) const SHAPES: [fn(i64) -> i64; 5] = [
        |row| row / 1_024 * 1_000_000 + row % 251,
        |row| match row % 59 {
            3 => 70_000_000 + row,
            5 => -70_000_000 - row,
            7 => 0,
            11 => 255,
            _ => row * 31 % 256,
        },
        |row| match (row / 1_024 % 3, row % 173) {
            (1, 5) => -900_000,
            (0, _) => 77,
            (1, _) => row * 31 % 200,
            _ => row * 31 % 20_000,
        },
        |row| match row % 700 {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => row * 1_299_709 % 4_000_000_000,
        },
        |row| row.wrapping_mul(0x5851_F42D_4C95_7F2D),
    ];

    #[test]
    fn listed_rows_are_the_same_by_themselves_and_by_whole_blocks() {
        let rows = 6_300;
        let mut pays = [0, 0];
        for (shape, value) in SHAPES.iter().enumerate() {
            let array: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(value)));
            let mut encoder = ColumnEncoder::new(&DataType::Int64).unwrap();
            encoder.pin(by_id(2).unwrap());
            let chunk = encoder.encode_new(&array).unwrap();
            assert_eq!(chunk.codec.id(), 2);
            let key = |row: i64| value(row).cast_unsigned() ^ 1 << 63;
            let keys: Vec<u64> = (0..rows).map(key).collect();
            let near = [0, 3, 5, 1_025, 3_000, 6_299].map(|row| keys[row]);
            let near = near.iter().flat_map(|key| [key.saturating_sub(1), *key]);
            let ends: Vec<u64> = near.chain([0, 1, u64::MAX]).collect();
            let pairs = ends
                .iter()
                .flat_map(|low| ends.iter().map(move |high| (*low, *high)));
            for (low, high) in pairs.filter(|(low, high)| low <= high) {
                let range = KeyRange { low, high };
                for (every, first) in [(1, 0), (7, 3), (59, 5), (900, 0), (1, 6_200), (1, 6_300)] {
                    let list: Vec<u32> = (first..rows as u32).step_by(every).collect();
                    let what = format!("shape {shape}, {range:?}, every {every} from {first}");
                    pays[usize::from(blocks_pay(&chunk, range, list.len()))] += 1;
                    check_listed(&chunk, range, (&keys, &list), &what);
                }
            }
        }
        assert!(pays.iter().all(|count| *count > 50), "{pays:?}");
    }

    fn check_listed(chunk: &Chunk, range: KeyRange, (keys, list): (&[u64], &[u32]), what: &str) {
        let passes = |row: &u32| (range.low..=range.high).contains(&keys[*row as usize]);
        let expected: Vec<u32> = list.iter().copied().filter(passes).collect();
        let (mut alone, stats) = (Vec::new(), chunk.stats);
        RowTest { range, stats }.select(&View::of(chunk), list, &mut alone);
        assert_eq!(alone, expected, "{what}, by themselves");
        let (mut within, mut found) = (Selection::default(), Selection::default());
        within.set_rows(chunk.rows).extend(list);
        let (predicate, mut work) = (Predicate::Keys(vec![range]), Work::default());
        compare_blocks(chunk, &predicate, &within, &mut found, &mut work);
        found.to_rows();
        assert_eq!(found.list(), expected, "{what}, by blocks");
    }
}
