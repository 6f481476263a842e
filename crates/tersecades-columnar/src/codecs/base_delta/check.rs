//! What blocks from outside must keep to, beyond lengths and order.
//!
//! Every value that is not patched lies in `base ..= maximum` of its group, a range the deltas can
//! reach. Every patch lies outside that reach, with its hole at the near end. Comparisons rely on
//! the first to skip groups and on the second to leave patches unread.

use crate::bitmap::WORD_ROWS;
use crate::block::{GROUP_ROWS, GROUPS};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::narrow::with_deltas;

use super::View;
use super::scan::WORDS;

/// Whether block `block`, whose sections have the right lengths, keeps to this.
pub(super) fn block_fits(view: &View<'_>, block: usize) -> bool {
    let rows = view.deltas.block_len(block);
    let mut unpatched = [u64::MAX; WORDS];
    for index in view.patches.of_block(block) {
        let row = view.patches.row(index);
        unpatched[row / WORD_ROWS] &= !(1 << (row % WORD_ROWS));
    }
    let unpatched = &unpatched[..rows.div_ceil(WORD_ROWS)];
    let patch_base = |row: usize| view.bases[block * GROUPS + row / GROUP_ROWS];
    with_deltas!(view.deltas, block, deltas => {
        let reach = reach(deltas);
        groups_fit(view, block, reach, largest(deltas, unpatched))
            && patches_fit(view, block, |row| (patch_base(row), deltas[row].key()), reach)
    }, zero {
        groups_fit(view, block, 0, [0; GROUPS])
            && patches_fit(view, block, |row| (patch_base(row), 0), 0)
    })
}

/// The largest delta there can be.
fn reach<D: KeyLane>(_: &[D]) -> u64 {
    D::MAX.key()
}

/// The largest delta of each group that is not patched.
fn largest<D: KeyLane>(deltas: &[D], unpatched: &[u64]) -> [u64; GROUPS] {
    let (mut min, mut max) = ([D::MAX; GROUPS], [D::cut(0); GROUPS]);
    (D::of(kernels()).min_max)(deltas, D::cut(0), Some(unpatched), &mut min, &mut max);
    max.map(KeyLane::key)
}

fn groups_fit(view: &View<'_>, block: usize, reach: u64, largest: [u64; GROUPS]) -> bool {
    let groups = block * GROUPS..(block + 1) * GROUPS;
    let ends = view.bases[groups.clone()].iter().zip(&view.maxima[groups]);
    ends.zip(largest).all(|((base, maximum), delta)| {
        let span = maximum.checked_sub(*base);
        span.is_some_and(|span| delta <= span && span <= reach)
    })
}

/// `hole` gives base and delta of a patched row.
fn patches_fit(
    view: &View<'_>,
    block: usize,
    hole: impl Fn(usize) -> (u64, u64),
    reach: u64,
) -> bool {
    view.patches.of_block(block).all(|index| {
        let key = view.patches.key(index);
        let (base, delta) = hole(view.patches.row(index));
        let above = base.checked_add(reach).is_some_and(|top| key > top);
        (delta == 0 && key < base) || (delta == reach && above)
    })
}
