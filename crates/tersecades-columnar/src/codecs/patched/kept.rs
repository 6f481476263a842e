//! Which range of keys stays inside, judged from a sample.
//!
//! ```text
//! for each width that deltas can have:    any number of bits in the cold, whole bytes else
//!     the window of that width that holds most of the sorted sample
//! cheapest of width x rows + outliers x outlier cost wins
//! ```

use crate::goal::Tier;

/// Above one outlier in this many rows a range is not considered.
const OUTLIER_SHARE_MIN: usize = 6;

/// An outlier costs its bytes, and as much again for the time a scan spends on it.
const OUTLIER_TIME_BYTES: usize = 6;

/// The keys that stay inside; a key beyond is an outlier with the nearest end in its hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// The bits that a range of keys takes.
fn bits_of(range: u64, tier: Tier) -> u32 {
    let exact = u64::BITS - range.leading_zeros();
    match tier {
        Tier::Cold => exact,
        Tier::Hot => match exact.div_ceil(8) {
            0 => 0,
            bytes => bytes.next_power_of_two() * 8,
        },
    }
}

/// The largest key of `bits` bits.
fn widest(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0)
}

/// The cheapest range for keys like the sorted `keys`, of lanes of `lane_bytes` bytes.
pub(super) fn choose(keys: &[u64], lane_bytes: usize, tier: Tier) -> Kept {
    let key_max = widest(8 * lane_bytes as u32);
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return Kept {
            low: 0,
            high: key_max,
        };
    };
    let exact = bits_of(last - first, tier);
    let mut best = (exact as usize * keys.len(), 0..keys.len(), exact);
    for bits in (0..exact).filter(|bits| bits_of(widest(*bits), tier) == *bits) {
        let window = fullest(keys, widest(bits));
        let outliers = keys.len() - window.len();
        if outliers * OUTLIER_SHARE_MIN > keys.len() {
            continue;
        }
        let outlier_bits = 8 * (2 + lane_bytes + OUTLIER_TIME_BYTES);
        let cost = bits as usize * keys.len() + outliers * outlier_bits;
        if cost < best.0 {
            best = (cost, window, bits);
        }
    }
    let (_, window, bits) = best;
    if window.len() == keys.len() {
        return Kept {
            low: 0,
            high: key_max,
        };
    }
    // What the sample missed is near what it has: the room left goes to both sides.
    let room = widest(bits) - (keys[window.end - 1] - keys[window.start]);
    let low = keys[window.start].saturating_sub(room / 2);
    let high = low.saturating_add(widest(bits)).min(key_max);
    Kept { low, high }
}

/// The longest stretch of sorted keys whose ends are at most `limit` apart.
fn fullest(keys: &[u64], limit: u64) -> std::ops::Range<usize> {
    let (mut best, mut end) = (0..0, 0);
    for start in 0..keys.len() {
        while end < keys.len() && keys[end] - keys[start] <= limit {
            end += 1;
        }
        if end - start > best.len() {
            best = start..end;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_range_keeps_the_many() {
        let mut keys: Vec<u64> = (0..900).map(|row| 5_000 + row % 100).collect();
        keys.extend((0..100).map(|row| row * 40_000_000));
        keys.sort_unstable();
        let hot = choose(&keys, 4, Tier::Hot);
        assert!(hot.low <= 5_000 && 5_099 <= hot.high);
        assert_eq!(hot.high - hot.low, 255);
        let cold = choose(&keys, 4, Tier::Cold);
        assert!(cold.low <= 5_000 && 5_099 <= cold.high);
        assert_eq!(cold.high - cold.low, 127);
    }

    #[test]
    fn ranges_stay_inside_their_type() {
        let ends = [0, 1, 2, 3, 4, 5, 6, u64::MAX - 1, u64::MAX];
        for tier in [Tier::Hot, Tier::Cold] {
            for keys in [&ends[..], &ends[..1], &ends[7..], &[], &[9; 40]] {
                let kept = choose(keys, 8, tier);
                assert!(kept.low <= kept.high, "{keys:?} {kept:?}");
            }
            let bytes: Vec<u64> = (250..256).chain([0]).collect::<Vec<u64>>();
            let mut bytes = bytes.repeat(9);
            bytes.sort_unstable();
            let kept = choose(&bytes, 1, tier);
            assert!(kept.low <= kept.high && kept.high <= 255, "{kept:?}");
        }
    }
}
