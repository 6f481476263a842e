//! Comparisons, folds and repeats on the multiples.

use crate::block::{BLOCK_ROWS, block_count};
use crate::chunk::Chunk;
use crate::codec::{Codec, Work, compare_decoded, fold_decoded};
use crate::fold::{Asked, Fold};
use crate::patch::Patches;
use crate::predicate::{KeyRange, Predicate};
use crate::primitive::repeat::{Repeats, repeats_decoded};
use crate::selection::{Selection, Shape};
use crate::types::float_key;
use crate::values::float_of_bits;

use super::{Grid, PATCHES, multiple_of_key, multiples};

/// Selects the rows of `within` that pass `predicate`.
pub(crate) fn compare(
    (grid, codec): (Grid, &dyn Codec),
    chunk: &Chunk,
    predicate: &Predicate,
    within: &Selection,
    out: &mut Selection,
    work: &mut Work,
) {
    let (Some(inner), Shape::All | Shape::Bits) = (multiples(chunk), within.shape()) else {
        return compare_decoded(codec, chunk, predicate, within, out, work);
    };
    let mut ranges = std::mem::take(&mut work.multiples);
    translate(grid, inner, predicate, &mut ranges);
    let translated = Predicate::Keys(ranges);
    inner.compare(&translated, within, out, work);
    if let Predicate::Keys(ranges) = translated {
        work.multiples = ranges;
    }
    let patches = Patches::of(chunk, PATCHES);
    if patches.is_empty() {
        return;
    }
    let mut patched = std::mem::take(&mut work.patched);
    list_patches(&patches, chunk.rows, patched.set_rows(chunk.rows), |_| true);
    out.subtract(&patched);
    let passes = |key| predicate.matches_key(float_key(float_of_bits(key, grid.bytes)));
    list_patches(&patches, chunk.rows, patched.set_rows(chunk.rows), passes);
    patched.intersect(within);
    out.unite(&patched);
    work.patched = patched;
}

/// Folds the values of `within` into `out`: counts and ends on the multiples, sums too where
/// they agree with the sum of the values; squares on the values.
pub(crate) fn fold(
    (grid, codec): (Grid, &dyn Codec),
    chunk: &Chunk,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let inner = multiples(chunk).filter(|_| !asked.squares && (!asked.sum || grid.bytes == 8));
    let Some(inner) = inner else {
        return fold_decoded(codec, chunk, asked, within, out, work);
    };
    let patches = Patches::of(chunk, PATCHES);
    let mut part = Fold::default();
    if patches.is_empty() {
        inner.fold(asked, within, &mut part, work);
    } else {
        let (mut patched, mut rest) = (
            std::mem::take(&mut work.patched),
            std::mem::take(&mut work.unpatched),
        );
        list_patches(&patches, chunk.rows, patched.set_rows(chunk.rows), |_| true);
        rest.copy_from(within);
        rest.subtract(&patched);
        inner.fold(asked, &rest, &mut part, work);
        (work.patched, work.unpatched) = (patched, rest);
    }
    if asked.sum && !sums_agree(inner, &part) {
        return fold_decoded(codec, chunk, asked, within, out, work);
    }
    out.count += part.count;
    if asked.sum {
        out.float_sum.add(grid.value(part.sum as f64));
    }
    if asked.ends && part.count > 0 {
        for key in [part.min, part.max] {
            out.add_end(i128::from(float_key(
                grid.value(multiple_of_key(key as u64)),
            )));
        }
    }
    add_patches(grid, chunk, asked, within, out);
}

/// Writes the values of `within` to `out`, which is empty: those of the multiples, then patches.
pub(crate) fn repeats(
    (grid, codec): (Grid, &dyn Codec),
    chunk: &Chunk,
    within: &Selection,
    out: &mut Repeats,
    work: &mut Work,
) {
    let (Some(inner), Shape::All | Shape::Bits) = (multiples(chunk), within.shape()) else {
        return repeats_decoded(codec, chunk, within, out, work);
    };
    debug_assert!(out.values.keys.is_empty(), "of another unit");
    let patches = Patches::of(chunk, PATCHES);
    if patches.is_empty() {
        inner.codec.repeats(inner, within, out, work);
    } else {
        let (mut patched, mut rest) = (
            std::mem::take(&mut work.patched),
            std::mem::take(&mut work.unpatched),
        );
        list_patches(&patches, chunk.rows, patched.set_rows(chunk.rows), |_| true);
        rest.copy_from(within);
        rest.subtract(&patched);
        inner.codec.repeats(inner, &rest, out, work);
        (work.patched, work.unpatched) = (patched, rest);
    }
    let keys = &mut out.values.keys;
    keys.iter_mut()
        .for_each(|key| *key = grid.bits_of_key(*key));
    for_each_patch(&patches, chunk.rows, |row, key| {
        if within.contains(row) {
            out.add(key, 1);
        }
    });
}

/// Adds the patches of `within`.
fn add_patches(grid: Grid, chunk: &Chunk, asked: Asked, within: &Selection, out: &mut Fold) {
    let patches = Patches::of(chunk, PATCHES);
    for_each_patch(&patches, chunk.rows, |row, key| {
        if !within.contains(row) {
            return;
        }
        let value = float_of_bits(key, grid.bytes);
        out.count += 1;
        if asked.sum {
            out.float_sum.add(value);
        }
        if asked.ends {
            out.add_end(i128::from(float_key(value)));
        }
    });
}

/// Calls `visit` with row and bits of each patch.
fn for_each_patch(patches: &Patches<'_>, rows: usize, mut visit: impl FnMut(usize, u64)) {
    for block in 0..block_count(rows) {
        for index in patches.of_block(block) {
            visit(block * BLOCK_ROWS + patches.row(index), patches.key(index));
        }
    }
}

/// Whether the sum of the multiples, scaled, is within 1e-9 of the sum of their values.
///
/// Each value is off its multiple by at most 2^-53 of the largest, so that is known unless most of
/// the sum cancels out.
fn sums_agree(inner: &Chunk, part: &Fold) -> bool {
    let size = |key| multiple_of_key(key).abs();
    let largest = size(inner.stats.min).max(size(inner.stats.max));
    let off = largest * part.count as f64 / (1u64 << 53) as f64;
    inner.stats.known && off <= part.sum.unsigned_abs() as f64 * 1e-10
}

/// Turns ranges of values into ranges of multiples.
fn translate(grid: Grid, inner: &Chunk, predicate: &Predicate, ranges: &mut Vec<KeyRange>) {
    ranges.clear();
    let Predicate::Keys(wanted) = predicate else {
        return;
    };
    if !inner.stats.known {
        return;
    }
    let value_key = |key| float_key(grid.value(multiple_of_key(key)));
    let (min, end) = (inner.stats.min, inner.stats.max + 1);
    for range in wanted {
        let low = bisect(min, end, |key| value_key(key) < range.low);
        let high = bisect(low, end, |key| value_key(key) <= range.high);
        if low < high {
            ranges.push(KeyRange {
                low,
                high: high - 1,
            });
        }
    }
}

/// The first key from `low` on, before `high`, for which `is_before` no longer holds.
fn bisect(mut low: u64, mut high: u64, is_before: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Lists the rows whose patches `wanted` wants.
fn list_patches(
    patches: &Patches<'_>,
    rows: usize,
    out: &mut Vec<u32>,
    wanted: impl Fn(u64) -> bool,
) {
    for block in 0..block_count(rows) {
        let of_block = patches.of_block(block);
        let wanted = of_block.filter(|index| wanted(patches.key(*index)));
        out.extend(wanted.map(|index| (block * BLOCK_ROWS + patches.row(index)) as u32));
    }
}
