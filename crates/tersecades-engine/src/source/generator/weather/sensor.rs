//! What sensors do to the weather: they lose values, and they get stuck.

use std::ops::Range;

use super::super::random::{Chance, CounterStream, below, high, low};
use super::super::signal::cell;
use super::metric::{METRICS, METRICS_COUNT};

/// Reports in which at most one sensor of a station gets stuck.
pub(super) const SLOT_STEPS: u64 = 64;

const MISSING_STREAM: u64 = 320;
const STUCK_STREAM: u64 = 321;
/// A sensor is stuck for 8 to 48 reports.
const LEAST_STEPS: u32 = 8;
const MOST_STEPS: u32 = 48;

/// A sensor that repeats its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stuck {
    /// Index into [`METRICS`].
    pub(super) metric: usize,
    pub(super) steps: Range<u64>,
}

/// The sensors of all stations.
pub(super) struct Sensors {
    missing: CounterStream,
    stuck: CounterStream,
    is_missing: Chance,
    is_stuck: Chance,
    /// Metrics that never repeat for long by themselves.
    lively: Vec<usize>,
}

impl Sensors {
    /// Sensors that lose `missing_share` of their values, and get stuck in `stuck_share` of slots.
    pub(super) fn new(seed: u64, missing_share: f64, stuck_share: f64) -> Self {
        Sensors {
            missing: CounterStream::new(seed, MISSING_STREAM),
            stuck: CounterStream::new(seed, STUCK_STREAM),
            is_missing: Chance::new(missing_share),
            is_stuck: Chance::new(stuck_share),
            lively: (0..METRICS_COUNT)
                .filter(|it| METRICS[*it].is_lively)
                .collect(),
        }
    }

    /// Puts NaN where a value of `station` at `step` is missing.
    pub(super) fn lose(&self, station: u64, step: u64, values: &mut [f64; METRICS_COUNT]) {
        const DRAWS: u64 = 16;
        let first = cell(station, step).wrapping_mul(DRAWS);
        for (pair, values) in (first..).zip(values.chunks_exact_mut(2)) {
            let draw = self.missing.draw(pair);
            for (value, bits) in values.iter_mut().zip([high(draw), low(draw)]) {
                if self.is_missing.decide(bits) {
                    *value = f64::NAN;
                }
            }
        }
    }

    /// The sensor of `station` that is stuck in slot number `slot`.
    ///
    /// Neither the first nor the last report of a slot is among the steps.
    pub(super) fn stuck(&self, station: u64, slot: u64) -> Option<Stuck> {
        let draw = self.stuck.draw(cell(station, slot));
        if !self.is_stuck.decide(high(draw)) {
            return None;
        }
        let bits = low(draw);
        // Rotated, because `below` reads the upper bits.
        let metric = below(bits.rotate_left(8), self.lively.len() as u32);
        let length = LEAST_STEPS + below(bits, MOST_STEPS - LEAST_STEPS + 1);
        let room = SLOT_STEPS as u32 - 1 - length;
        let start = slot * SLOT_STEPS + 1 + u64::from(below(bits.rotate_left(16), room));
        Some(Stuck {
            metric: self.lively[metric as usize],
            steps: start..start + u64::from(length),
        })
    }
}
