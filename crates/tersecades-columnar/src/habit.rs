//! A choice that is kept while it holds, so that choosing costs little and does not flap.
//!
//! A choice is priced again after 1, 2, 4 … chunks, up to the goal's interval, and at once when a
//! chunk comes out of a size it has not had under this choice. Another codec takes over only when
//! it is clearly cheaper: estimates of near equals change places from sample to sample.

use crate::choose::{Candidates, Place, choose_inside};
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
        place: Place,
    ) -> (&'static dyn Codec, bool) {
        match self.chosen.filter(|codec| codec.accepts(input)) {
            Some(codec) if self.left > 0 => {
                self.left -= 1;
                (codec, false)
            }
            _ => (self.look(input, goal, place), true),
        }
    }

    /// Prices `input` and chooses.
    pub(crate) fn look(
        &mut self,
        input: &Input<'_>,
        goal: &Goal,
        place: Place,
    ) -> &'static dyn Codec {
        self.candidates = choose_inside(input, goal, place);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::chunk::Chunk;
    use crate::cost_table::{Cost, CostTable, Operation};
    use crate::encoder::ColumnEncoder;
    use crate::goal::{Tier, Uses};
    use crate::input::Lanes;
    use crate::registry::CODECS;
    use crate::types::Physical;

    fn input<'a>(data_type: &'a DataType, values: &'a [u64]) -> Input<'a> {
        Input {
            data_type,
            physical: Physical::of(data_type).unwrap(),
            lanes: Lanes::U64(values),
            validity: None,
            array: None,
        }
    }

    fn noise(row: u64) -> u64 {
        row.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[test]
    fn looks_become_rarer_up_to_the_interval() {
        let values: Vec<u64> = (0..2_000).map(|row| noise(row) % 100).collect();
        let input = input(&DataType::UInt64, &values);
        let (goal, mut habit) = (Goal::default(), Habit::default());
        let looks: Vec<usize> = (0..64)
            .filter(|_| habit.choose(&input, &goal, Place::default()).1)
            .collect();
        assert_eq!(looks, [0, 1, 3, 7, 15, 31, 47, 63]);
    }

    #[test]
    fn near_equals_do_not_change_places() {
        let values: Vec<u64> = (0..2_000).map(|row| noise(row) % 100).collect();
        let input = input(&DataType::UInt64, &values);
        let mut goal = Goal::default();
        let mut habit = Habit::default();
        let first = habit.look(&input, &goal, Place::default());
        let dearer = |share: f64| {
            let mut costs = CostTable::default();
            for operation in Operation::ALL {
                let cost = costs.cost(first, operation);
                let value_ns = cost.value_ns + share;
                costs.set(first.id(), operation, Cost { value_ns, ..cost });
            }
            Arc::new(costs)
        };
        let prices: Vec<f64> = habit.candidates().iter().map(|c| c.scan_ns).collect();
        let (best, second) = (prices[0], prices[1]);
        // Both uses of the default cost as much more as makes the present codec the second best.
        let gap = (second - best) / 2.0;
        goal.costs = dearer(gap + 0.01 * best);
        assert_eq!(habit.look(&input, &goal, Place::default()).id(), first.id());
        goal.costs = dearer(gap + 0.2 * second);
        assert_ne!(habit.look(&input, &goal, Place::default()).id(), first.id());
    }

    #[test]
    fn a_chunk_of_another_size_is_priced_and_encoded_anew() {
        let array = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let quiet = array(vec![7; 4_000]);
        let loud = array((0..4_000).map(|row| noise(row).cast_signed()).collect());
        let mut encoder = ColumnEncoder::new(&DataType::Int64).unwrap();
        let mut chunk = Chunk::default();
        for _ in 0..20 {
            encoder.encode(&quiet, &mut chunk).unwrap();
            assert!(chunk.bytes_per_row() < 0.1);
        }
        encoder.encode(&loud, &mut chunk).unwrap();
        assert!(chunk.bytes_per_row() <= 8.0, "{chunk:?}");
        encoder.encode(&quiet, &mut chunk).unwrap();
        assert!(chunk.bytes_per_row() < 0.1, "{chunk:?}");
    }

    #[test]
    fn what_is_read_once_stays_as_it_is() {
        let values: Vec<u64> = (0..2_000).map(|row| noise(row) % 100).collect();
        let input = input(&DataType::UInt64, &values);
        let codec = |uses| {
            let goal = Goal {
                uses,
                ..Goal::default()
            };
            Habit::default().look(&input, &goal, Place::default()).id()
        };
        let once = Uses {
            reads: 1.0,
            ..Uses::default()
        };
        assert_eq!(codec(once), crate::registry::fallback().id());
        assert_ne!(codec(Uses::default()), crate::registry::fallback().id());
    }

    #[test]
    fn what_is_done_with_a_column_decides() {
        let values: Vec<u64> = (0..2_000).map(|row| noise(row) % 100).collect();
        let input = input(&DataType::UInt64, &values);
        let mut costs = CostTable::unmeasured();
        let free = Cost::default();
        let [one, other] = [CODECS[0].id(), CODECS[2].id()];
        costs.set_byte_ns(Tier::Hot, 0.0);
        costs.set(one, Operation::Compare, free);
        costs.set(other, Operation::Fold, free);
        costs.set(one, Operation::Encode, free);
        costs.set(other, Operation::Encode, free);
        let codec = |compare, fold| {
            let uses = Uses {
                compare,
                fold,
                ..Uses::default()
            };
            let costs = Arc::new(costs.clone());
            let goal = Goal {
                uses,
                costs,
                ..Goal::default()
            };
            Habit::default().look(&input, &goal, Place::default()).id()
        };
        assert_eq!(codec(1.0, 0.0), one);
        assert_eq!(codec(0.0, 1.0), other);
    }
}
