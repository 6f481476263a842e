//! Folds: the one of the chunk inside, with the outliers in place of their holes.
//!
//! A fold of the values in a range asks the chunk inside for the same range where outliers pass
//! exactly if their holes do: holes at one end pass together, and the outliers at the ends in the
//! range replace them as in any other fold.

use crate::block::{BLOCK_ROWS, GROUPS, block_count};
use crate::chunk::Chunk;
use crate::codec::Work;
use crate::fold::{Asked, Fold, SquareSum};
use crate::kernels::Outliers;
use crate::lane::{KeyLane, with_lanes};
use crate::patch::mend;
use crate::predicate::{KeyRange, Predicate};
use crate::selection::{BlockSelection, Selection, Shape};
use crate::stats::Stats;

use super::View;

/// At which ends of the values inside a fold has holes to replace.
#[derive(Clone, Copy)]
struct Holes {
    low: bool,
    high: bool,
}

/// [`crate::codec::Codec::fold`] of all values of a selection that is no list.
pub(super) fn fold_all(
    view: &View<'_>,
    asked: Asked,
    within: &Selection,
    out: &mut Fold,
    work: &mut Work,
) {
    let holes = Holes {
        low: true,
        high: true,
    };
    work.tally.direct += view.patches.len() as u64;
    let inside = |fold: &mut Fold| view.inner.fold(asked, within, fold, work);
    mended((view, holes), (asked, within), inside, out);
}

/// [`crate::codec::Codec::range_fold`] where the chunk inside has one and holes answer as outliers.
pub(super) fn fold_range(
    chunk: &Chunk,
    (range, within): (KeyRange, &Selection),
    asked: Asked,
    out: &mut Fold,
    work: &mut Work,
) {
    let Some(view) = View::of(chunk) else {
        return;
    };
    let predicate = Predicate::Keys(vec![range]);
    let Stats { min, max, .. } = view.inner.stats;
    let holes = Holes {
        low: range.contains(min),
        high: range.contains(max),
    };
    let inside = |fold: &mut Fold| {
        view.inner
            .fold_where((&predicate, within), asked, fold, work)
    };
    mended((&view, holes), (asked, within), inside, out);
}

/// Adds what `inside` folds to `out`, outliers in place of their `holes`.
fn mended(
    (view, holes): (&View<'_>, Holes),
    (asked, within): (Asked, &Selection),
    inside: impl FnOnce(&mut Fold),
    out: &mut Fold,
) {
    if view.patches.is_empty() || !(holes.low || holes.high) {
        return inside(out);
    }
    let narrow = view.inner.physical.lane_bytes() <= 4 || !asked.squares;
    if asked.ends || !narrow {
        let mut fold = Fold::default();
        inside(&mut fold);
        return replace((view, holes), (asked, within), fold, out);
    }
    inside(out);
    if asked.sum || asked.squares {
        with_lanes!(view.patches.keys(), keys => {
            mend_blocks((view, holes), keys, (asked, within), out);
        }, else {});
    }
}

/// Adds the outliers of `within` in place of their `holes`.
fn mend_blocks<K: KeyLane>(
    (view, holes): (&View<'_>, Holes),
    keys: &[K],
    (asked, within): (Asked, &Selection),
    out: &mut Fold,
) {
    let Stats { min, max, .. } = view.inner.stats;
    // At an end without holes to replace, every key is in reach, and adds nothing.
    let low = if holes.low { min } else { 0 };
    let high = if holes.high { max } else { K::MAX.key() };
    let mut mend_some = |rows, keys, mask| {
        let outliers = Outliers {
            rows,
            keys,
            bases: &[low; GROUPS],
            reach: high - low,
            mask,
            zero: view.inner.physical.flip(),
            squares: asked.squares,
            ends: false,
        };
        mend(&outliers, asked, out);
    };
    if within.shape() == Shape::All {
        // As many as a block has at once: where they lie makes no difference.
        let parts = view.patches.rows().chunks(BLOCK_ROWS);
        return parts
            .zip(keys.chunks(BLOCK_ROWS))
            .for_each(|(rows, keys)| mend_some(rows, keys, None));
    }
    for block in 0..block_count(view.inner.rows) {
        let patches = view.patches.of_block(block);
        let mask = match within.block(block) {
            BlockSelection::None => continue,
            BlockSelection::All => None,
            BlockSelection::Bits(words) => Some(words),
        };
        mend_some(&view.patches.rows()[patches.clone()], &keys[patches], mask);
    }
}

/// Adds `inside` to `out`, the outliers of `within` in place of their `holes`, ends as well.
fn replace(
    (view, holes): (&View<'_>, Holes),
    (asked, within): (Asked, &Selection),
    mut inside: Fold,
    out: &mut Fold,
) {
    let physical = view.inner.physical;
    let mut outside = Fold::default();
    let mut squares = SquareSum::default();
    view.for_each_patch(|row, key| {
        let hole = view.hole(key);
        let folded = if key < hole { holes.low } else { holes.high };
        if folded && within.contains(row) {
            let hole = physical.value_of(hole);
            inside.count -= 1;
            inside.sum -= if asked.sum { hole } else { 0 };
            squares.add_square(if asked.squares { hole } else { 0 });
            outside.add_repeats(physical, key, 1, asked);
        }
    });
    inside.squares.unmerge(squares);
    // A hole ends at an end of the others, so it hides none of them, unless there are none.
    if inside.count == 0 {
        (inside.min, inside.max) = (i128::MAX, i128::MIN);
    }
    out.merge(&inside);
    out.merge(&outside);
}
