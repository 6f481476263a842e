//! Random numbers by counter: the n-th draw costs the same whether or not the others were made.
//!
//! SplitMix64 adds a constant to its state and scrambles the sum, so its n-th output is
//! `mix(key + n * GAMMA)`. Used that way it is a counter-based generator: rows can be drawn in
//! any order, in any batch size, and never depend on how many draws another row needed.
//!
//! ```text
//! row r owns draws r*8 .. r*8+7; a Lane walks one of the eight over consecutive rows:
//!   lane 0:  r0.0  r1.0  r2.0 ...      lane 1:  r0.1  r1.1  r2.1 ...
//! ```

use std::hint::select_unpredictable;

/// Draws that each row owns.
pub const DRAWS_PER_ROW: u64 = 8;

/// SplitMix64's increment: 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of 64-bit draws addressed by counter.
///
/// # Source
/// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014;
/// constants of Stafford's variant 13, as in Vigna's public-domain `splitmix64.c`.
#[derive(Debug, Clone, Copy)]
pub struct CounterStream {
    key: u64,
}

impl CounterStream {
    /// The stream number `stream` of `seed`; different numbers give unrelated draws.
    pub fn new(seed: u64, stream: u64) -> Self {
        CounterStream {
            key: mix(mix(seed.wrapping_add(GAMMA)).wrapping_add(stream)),
        }
    }

    /// The draw at `counter`.
    pub fn draw(self, counter: u64) -> u64 {
        mix(self.state(counter))
    }

    /// Draw number `lane` of `row`.
    pub fn row_draw(self, row: u64, lane: u64) -> u64 {
        self.draw(row.wrapping_mul(DRAWS_PER_ROW).wrapping_add(lane))
    }

    /// Draw number `lane` of row `first_row`, then of each row after it.
    pub fn lane(self, first_row: u64, lane: u64) -> Lane {
        let counter = first_row.wrapping_mul(DRAWS_PER_ROW).wrapping_add(lane);
        Lane {
            state: self.state(counter),
        }
    }

    /// The whole numbers `0..count` in random order (Fisher-Yates), from draws `0..count`.
    pub fn permutation(self, count: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count).collect();
        for (index, left) in (1..count).rev().enumerate() {
            let pick = below(high(self.draw(index as u64)), left + 1);
            order.swap(left as usize, pick as usize);
        }
        order
    }

    fn state(self, counter: u64) -> u64 {
        self.key
            .wrapping_add(counter.wrapping_add(1).wrapping_mul(GAMMA))
    }
}

/// One draw per row over consecutive rows; see [`CounterStream::lane`].
#[derive(Debug, Clone)]
pub struct Lane {
    state: u64,
}

impl Lane {
    /// The draw of the row at hand; moves on to the next row.
    #[inline]
    pub fn next_draw(&mut self) -> u64 {
        let draw = mix(self.state);
        self.state = self.state.wrapping_add(GAMMA.wrapping_mul(DRAWS_PER_ROW));
        draw
    }
}

#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The upper half of a draw.
#[inline]
pub fn high(draw: u64) -> u32 {
    (draw >> 32) as u32
}

/// The lower half of a draw.
#[inline]
pub fn low(draw: u64) -> u32 {
    (draw & u64::from(u32::MAX)) as u32
}

/// A number in `0..bound` from 32 random bits (0 for bound 0).
///
/// The bias of the multiplication is below `bound / 2^32`.
#[inline]
pub fn below(bits: u32, bound: u32) -> u32 {
    high(u64::from(bits) * u64::from(bound))
}

/// A number in (0, 1] from 32 random bits; never 0, so its logarithm is finite.
#[inline]
pub fn unit(bits: u32) -> f64 {
    (f64::from(bits) + 1.0) / SPAN
}

/// 2^32: how many values 32 random bits can take.
const SPAN: f64 = 4_294_967_296.0;

/// A yes-no decision with a set share of yes.
#[derive(Debug, Clone, Copy)]
pub struct Chance {
    yes_below: u64,
}

impl Chance {
    /// Says yes for `share` (0 to 1; what lies outside is cut off) of all draws.
    pub fn new(share: f64) -> Self {
        Chance {
            yes_below: (share.clamp(0.0, 1.0) * SPAN) as u64,
        }
    }

    /// The decision for 32 random bits.
    #[inline]
    pub fn decide(self, bits: u32) -> bool {
        u64::from(bits) < self.yes_below
    }
}

/// Weighted choice in constant time: one multiplication, one comparison.
///
/// # Source
/// Walker's alias method in Vose's linear-time construction: "A linear algorithm for generating
/// random numbers with a given distribution", IEEE TSE 17(9), 1991.
#[derive(Debug, Clone)]
pub struct AliasTable {
    slots: Vec<AliasSlot>,
}

#[derive(Debug, Clone, Copy)]
struct AliasSlot {
    /// The slot keeps its own index for coins below this, else it gives `alias`.
    keep_below: u32,
    alias: u32,
}

impl AliasTable {
    /// A table that gives index `i` with probability `weights[i]` over the sum of all weights.
    ///
    /// Weights are finite and positive and there is at least one; at most `u32::MAX` are used.
    pub fn new(weights: &[f64]) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        let mut slots: Vec<AliasSlot> = (0..)
            .zip(weights)
            .map(|(own, _)| AliasSlot {
                keep_below: u32::MAX,
                alias: own,
            })
            .collect();
        let mut fill: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let (mut light, mut heavy): (Vec<usize>, Vec<usize>) =
            (0..fill.len()).partition(|&slot| fill[slot] < 1.0);
        while let (Some(small), Some(&large)) = (light.pop(), heavy.last()) {
            slots[small].keep_below = (fill[small] * SPAN) as u32;
            slots[small].alias = slots[large].alias;
            fill[large] -= 1.0 - fill[small];
            if fill[large] < 1.0 {
                heavy.pop();
                light.push(large);
            }
        }
        AliasTable { slots }
    }

    /// The index chosen by one 64-bit draw.
    #[inline]
    pub fn pick(&self, draw: u64) -> u32 {
        let product = u128::from(draw) * self.slots.len() as u128;
        let slot = (product >> 64) as u32;
        let coin = ((product >> 32) & u128::from(u32::MAX)) as u32;
        let AliasSlot { keep_below, alias } = self.slots[slot as usize];
        // A coin's fall cannot be predicted, so no branch.
        select_unpredictable(coin < keep_below, slot, alias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_splitmix64() {
        // The published first outputs for state 1234567.
        let stream = CounterStream { key: 1_234_567 };
        let drawn: Vec<u64> = (0..3).map(|counter| stream.draw(counter)).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, published);
    }

    #[test]
    fn lane_walks_the_draws_of_rows() {
        let stream = CounterStream::new(7, 3);
        let mut lane = stream.lane(1000, 5);
        for row in 1000..1100 {
            assert_eq!(lane.next_draw(), stream.row_draw(row, 5));
        }
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(
            CounterStream::new(1, 0).draw(0),
            CounterStream::new(1, 1).draw(0)
        );
        assert_ne!(
            CounterStream::new(1, 0).draw(0),
            CounterStream::new(2, 0).draw(0)
        );
    }

    #[test]
    fn permutation_holds_every_number_once() {
        let order = CounterStream::new(1, 1).permutation(1000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
        assert_ne!(order, sorted);
        assert!(CounterStream::new(1, 1).permutation(0).is_empty());
    }

    #[test]
    fn chance_keeps_its_share() {
        assert!(!Chance::new(0.0).decide(0));
        assert!(Chance::new(1.0).decide(u32::MAX));
        let stream = CounterStream::new(5, 0);
        let chance = Chance::new(0.25);
        let yes = (0..100_000)
            .filter(|&n| chance.decide(high(stream.draw(n))))
            .count();
        assert!((24_400..25_600).contains(&yes), "{yes}");
    }

    #[test]
    fn alias_table_follows_its_weights() {
        let weights = [8.0, 1.0, 4.0, 3.0, 0.001, 16.0];
        let total: f64 = weights.iter().sum();
        let table = AliasTable::new(&weights);
        let stream = CounterStream::new(11, 0);
        let draws = 400_000;
        let mut counts = [0_u32; 6];
        (0..draws).for_each(|n| counts[table.pick(stream.draw(n)) as usize] += 1);
        for (count, weight) in counts.iter().zip(weights) {
            let expected = weight / total * draws as f64;
            let allowed = 5.0 * expected.sqrt() + 1.0;
            assert!((f64::from(*count) - expected).abs() < allowed, "{counts:?}");
        }
    }
}
