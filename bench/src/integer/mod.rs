//! The four data sets of 32-bit integers of the DaMoN'19 evaluation (its table 1), from a seed.
//!
//! ```text
//! D1  normal(2^5, 20)            small
//! D2  normal(2^25, 20)           large, in a narrow range
//! D3  uniform(0, 10^6 - 1)       sorted
//! D4  90 % as D1, 10 % as D2     outliers
//! ```
//! The integers are unsigned, so draws below 0 become 0.

pub(crate) mod work;

use crate::data::Random;

/// One data set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Set {
    /// Its name in the paper.
    pub(crate) name: &'static str,
    /// A value in the middle of what it holds: the constant of comparisons.
    pub(crate) middle: u32,
    make: fn(usize) -> Vec<u32>,
}

impl Set {
    /// `rows` values.
    pub(crate) fn values(&self, rows: usize) -> Vec<u32> {
        (self.make)(rows)
    }
}

/// All sets.
pub(crate) const SETS: &[Set] = &[
    Set {
        name: "D1",
        middle: 1 << 5,
        make: |rows| draw(rows, |random| normal(random, 1 << 5)),
    },
    Set {
        name: "D2",
        middle: 1 << 25,
        make: |rows| draw(rows, |random| normal(random, 1 << 25)),
    },
    Set {
        name: "D3",
        middle: 500_000,
        make: |rows| {
            let mut values = draw(rows, |random| random.below(1_000_000) as u32);
            values.sort_unstable();
            values
        },
    },
    Set {
        name: "D4",
        middle: 1 << 5,
        make: |rows| {
            draw(rows, |random| match random.below(10) {
                0 => normal(random, 1 << 25),
                _ => normal(random, 1 << 5),
            })
        },
    },
];

fn draw(rows: usize, mut value: impl FnMut(&mut Random) -> u32) -> Vec<u32> {
    let mut random = Random::new(1905);
    (0..rows).map(|_| value(&mut random)).collect()
}

/// A normal draw with deviation 20, by the sum of twelve uniform ones (Irwin and Hall).
fn normal(random: &mut Random, mean: u32) -> u32 {
    let twelve: u64 = (0..4)
        .map(|_| {
            let bits = random.bits() >> 4;
            (bits & 0xF_FFFF) + (bits >> 20 & 0xF_FFFF) + (bits >> 40 & 0xF_FFFF)
        })
        .sum();
    let deviations = twelve as f64 / f64::from(1 << 20) - 6.0;
    (f64::from(mean) + 20.0 * deviations).round().max(0.0) as u32
}
