//! When machines lose their network.

use std::ops::Range;

use super::super::random::{Chance, CounterStream, below, high, low};
use super::super::signal::cell;

/// Intervals in which a machine loses its network once at most.
pub(super) const SLOT_STEPS: u64 = 64;

const LOSS_STREAM: u64 = 110;
/// A loss takes 3 to 40 intervals.
const LEAST_STEPS: u32 = 3;
const MOST_STEPS: u32 = 40;

/// Losses of all machines.
pub(super) struct Losses {
    draws: CounterStream,
    happens: Chance,
}

impl Losses {
    /// Losses in `share` of all slots of each machine.
    pub(super) fn new(seed: u64, share: f64) -> Self {
        Losses {
            draws: CounterStream::new(seed, LOSS_STREAM),
            happens: Chance::new(share),
        }
    }

    /// The intervals of slot number `slot` in which `vm` has no network.
    ///
    /// Neither the first nor the last interval of a slot is among them, so losses never touch.
    pub(super) fn at(&self, vm: u64, slot: u64) -> Option<Range<u64>> {
        let draw = self.draws.draw(cell(vm, slot));
        if !self.happens.decide(high(draw)) {
            return None;
        }
        // Rotated, because `below` reads the upper bits.
        let bits = low(draw);
        let length = LEAST_STEPS + below(bits, MOST_STEPS - LEAST_STEPS + 1);
        let room = SLOT_STEPS as u32 - 1 - length;
        let start = slot * SLOT_STEPS + 1 + u64::from(below(bits.rotate_left(16), room));
        Some(start..start + u64::from(length))
    }
}
