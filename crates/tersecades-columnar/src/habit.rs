//! A choice that is kept while it holds, so that choosing costs little and does not flap.
//!
//! A choice is priced again after 1, 2, 4 … chunks, up to the goal's interval, and at once when a
//! chunk comes out of a size it has not had under this choice. Another codec takes over only when
//! it is clearly cheaper: estimates of near equals change places from sample to sample.

use crate::choose::{Candidates, choose_inside};
use crate::codec::Codec;
use crate::goal::Goal;
use crate::input::Input;

/// What another codec must cost less than, as a share of the present one's cost.
const SWITCH_SHARE: f64 = 0.95;

/// How far outside the known sizes a chunk may be.
const SIZE_MARGIN: f64 = 0.1;

/// The choice of one column, or of one place inside a cascade.
#[derive(Debug, Default)]
pub(crate) struct Habit {
    candidates: Candidates,
    chosen: Option<&'static dyn Codec>,
    /// Chunks between two looks, and until the next.
    interval: u32,
    left: u32,
    /// Bytes per row of the smallest and largest chunk under this choice.
    sizes: Option<(f64, f64)>,
}

impl Habit {
    /// The codec for `input`, and whether it was priced just now.
    pub(crate) fn choose(
        &mut self,
        input: &Input<'_>,
        goal: &Goal,
        depth: usize,
    ) -> (&'static dyn Codec, bool) {
        match self.chosen.filter(|codec| codec.accepts(input)) {
            Some(codec) if self.left > 0 => {
                self.left -= 1;
                (codec, false)
            }
            _ => (self.look(input, goal, depth), true),
        }
    }

    /// Prices `input` and chooses.
    pub(crate) fn look(
        &mut self,
        input: &Input<'_>,
        goal: &Goal,
        depth: usize,
    ) -> &'static dyn Codec {
        self.candidates = choose_inside(input, goal, depth);
        let winner = self.candidates.codec();
        let present = self.chosen.and_then(|chosen| {
            let mut known = self.candidates.iter();
            known.find(|candidate| candidate.codec.id() == chosen.id())
        });
        let cheapest = self.candidates.iter().next();
        let stays = present
            .zip(cheapest)
            .is_some_and(|(present, cheapest)| cheapest.scan_ns >= SWITCH_SHARE * present.scan_ns);
        if stays {
            let longest = goal.look_interval.max(1);
            self.interval = (2 * self.interval).clamp(1, longest);
        } else {
            self.chosen = Some(winner);
            self.interval = 1;
            self.sizes = None;
        }
        self.left = self.interval - 1;
        self.chosen.unwrap_or(winner)
    }

    /// Takes note of what a chunk came to; whether it is of a known size.
    pub(crate) fn record(&mut self, bytes_per_row: f64) -> bool {
        let Some((low, high)) = self.sizes else {
            self.sizes = Some((bytes_per_row, bytes_per_row));
            return true;
        };
        self.sizes = Some((low.min(bytes_per_row), high.max(bytes_per_row)));
        (low * (1.0 - SIZE_MARGIN)..=high * (1.0 + SIZE_MARGIN)).contains(&bytes_per_row)
    }

    /// What was weighed last.
    pub(crate) fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// Starts anew.
    pub(crate) fn forget(&mut self) {
        *self = Habit::default();
    }
}
