//! Pricing a column without encoding it: a window of rows stands for a block.
//!
//! All groups of a block share one width, so a window takes the width that is cheapest for all of
//! its groups together, patches included.

use std::ops::Range;

use crate::block::{BLOCK_ROWS, GROUP_ROWS, GROUPS};
use crate::input::Input;
use crate::narrow::{widest, width_of};

use super::encode::{PATCH_SHARE_MIN, patch_cost};

/// Widths in bytes, widest first.
const WIDTHS: [usize; 5] = [8, 4, 2, 1, 0];

/// Expected bytes per row, statistics included.
pub(super) fn estimate(input: &Input<'_>, windows: &[Range<usize>]) -> f64 {
    let (mut bytes, mut rows) = (0, 0);
    for window in windows {
        bytes += price_window(input, window.clone());
        rows += window.len();
    }
    let statistics = (2 * GROUPS * 8 + 9) as f64 / BLOCK_ROWS as f64;
    bytes as f64 / (rows as f64).max(1.0) + statistics
}

/// Bytes of a window at its cheapest width.
fn price_window(input: &Input<'_>, window: Range<usize>) -> usize {
    let lane_bytes = input.physical.lane_bytes();
    let mut outliers = [0; WIDTHS.len()];
    let mut keys = [0u64; GROUP_ROWS];
    for start in window.clone().step_by(GROUP_ROWS) {
        let rows = start..(start + GROUP_ROWS).min(window.end);
        let mut count = 0;
        for row in rows.filter(|row| input.is_valid(*row)) {
            keys[count] = input.key(row);
            count += 1;
        }
        let keys = &mut keys[..count];
        keys.sort_unstable();
        for (outliers, width) in outliers.iter_mut().zip(WIDTHS) {
            *outliers += outside(keys, width);
        }
    }
    // As the encoder does: the widest width with few patches, narrower ones where they are cheaper,
    // and no deltas at all only where nothing is patched.
    let legal = outliers.iter().zip(WIDTHS).filter(|(outliers, width)| {
        let few = **outliers * PATCH_SHARE_MIN <= window.len() * usize::from(*width > 0);
        *width <= lane_bytes && few
    });
    let cost = |(outliers, width): &(&usize, usize)| {
        width * window.len() + **outliers * patch_cost(lane_bytes)
    };
    let best = legal.min_by_key(cost);
    best.map_or(0, |(outliers, width)| {
        width * window.len() + outliers * (2 + lane_bytes)
    })
}

/// Sorted keys that deltas of `width` bytes cannot reach from one base.
fn outside(keys: &[u64], width: usize) -> usize {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return 0;
    };
    if width_of(last - first) <= width {
        return 0;
    }
    let limit = widest(width);
    let from_low = keys.partition_point(|key| key - first <= limit);
    let from_high = keys.len() - keys.partition_point(|key| last - key > limit);
    keys.len() - from_low.max(from_high)
}
