//! A choice that is kept while it holds, so that choosing costs little and does not flap.
//!
//! A choice is priced again after 1, 2, 4 … chunks, up to the goal's interval, and at once when a
//! chunk comes out of a size it has not had under this choice. Where encoding a chunk takes less
//! time than pricing it, the interval is so much longer that pricing stays a small share. Another
//! codec takes over only when it is clearly cheaper, more clearly where choices of late did not
//! last: estimates of near equals change places from sample to sample. A codec that came out dearer
//! than its sample promised is taken to do so again, which is forgotten by and by.

use crate::choose::{Candidates, Place, choose_inside};
use crate::codec::Codec;
use crate::cost_table::Operation;
use crate::goal::Goal;
use crate::input::Input;

/// What another codec must cost less than, where choices last: a share of the present one's cost.
const SWITCH_SHARE: f64 = 0.95;

/// A choice that held for no more chunks than this did not last. For each such choice of late, up
/// to so many, the next must be cheaper by as much again.
const SHORT_LIVED: u32 = 4;
const RESTLESS_MAX: i32 = 3;

/// How far outside the known sizes a chunk may be.
const SIZE_MARGIN: f64 = 0.1;

/// Bytes per row that a chunk may be outside the known sizes besides: a chunk of next to nothing
/// that becomes twice as much is still read in no time.
const SIZE_SLACK: f64 = 0.02;

/// What pricing a chunk takes, in nanoseconds, by tier, and the share of encoding it may be.
const LOOK_NS: [f64; 2] = [100_000.0, 250_000.0];
const LOOK_SHARE: f64 = 0.02;

/// Nanoseconds that encoding a value takes at least.
const COPY_NS: f64 = 0.1;

/// Most times the goal's interval between two looks.
const INTERVALS_MAX: u32 = 64;

/// Codecs whose samples promised too much, and how much of that is forgotten in the goal's interval
/// between two looks.
const LESSONS: usize = 4;
const FORGOTTEN: f64 = 0.2;

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
    /// Choices of late that did not last.
    restless: i32,
    /// The codec that held last, by wire id, and the interval it had come to.
    held: Option<(u8, u32)>,
    /// Codecs by wire id, and how many times their estimate they came to.
    lessons: [Option<(u8, f64)>; LESSONS],
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
        let usual = goal.look_interval.max(1);
        let passed = f64::from(self.interval.clamp(1, usual)) / f64::from(usual);
        for lesson in &mut self.lessons {
            *lesson = lesson
                .map(|(id, times)| (id, 1.0 + (times - 1.0) * (1.0 - FORGOTTEN * passed)))
                .filter(|(_, times)| *times * SWITCH_SHARE > 1.0);
        }
        let expected = choose_inside(input, goal, place);
        self.candidates = expected.corrected(|id| self.times(id));
        let winner = self.candidates.codec();
        let present = self
            .chosen
            .and_then(|chosen| self.candidates.scan_ns(chosen.id()));
        let cheapest = self.candidates.scan_ns(winner.id());
        let stays = present
            .zip(cheapest)
            .is_some_and(|(present, cheapest)| cheapest >= self.switch_share() * present);
        if stays {
            let chosen = self.chosen.unwrap_or(winner);
            let longest = longest_interval(chosen, input.rows(), goal);
            self.interval = self.interval.saturating_mul(2).clamp(1, longest);
            if self.interval == longest {
                self.restless = (self.restless - 1).max(0);
            }
            self.held = Some((chosen.id(), self.interval));
        } else {
            self.take(winner);
        }
        self.left = self.interval - 1;
        self.chosen.unwrap_or(winner)
    }

    /// Chooses `codec` from here on; one that another was tried instead of holds as long as before.
    pub(crate) fn take(&mut self, codec: &'static dyn Codec) {
        let held = self.held.filter(|(id, _)| *id == codec.id());
        if self.chosen.is_some() && self.interval <= SHORT_LIVED {
            self.restless = (self.restless + 1).min(RESTLESS_MAX);
        }
        self.chosen = Some(codec);
        self.interval = held.map_or(1, |(_, interval)| interval);
        self.left = self.interval - 1;
        self.sizes = None;
    }

    /// A codec that is expected to be clearly cheaper than a chunk of `codec`, of cost `real_ns`.
    pub(crate) fn better(
        &self,
        codec: &'static dyn Codec,
        real_ns: f64,
    ) -> Option<&'static dyn Codec> {
        let mut others = self
            .candidates
            .iter()
            .filter(|it| it.codec.id() != codec.id());
        let cheapest = others.next()?;
        (cheapest.scan_ns < self.switch_share() * real_ns).then_some(cheapest.codec)
    }

    /// What another codec must cost less than, as a share of the present one's cost.
    fn switch_share(&self) -> f64 {
        SWITCH_SHARE.powi(1 + self.restless)
    }

    /// Takes note that a chunk of `codec` costs `real_ns`.
    pub(crate) fn learn(&mut self, codec: &'static dyn Codec, real_ns: f64) {
        let id = codec.id();
        let Some(expected_ns) = self.candidates.scan_ns(id) else {
            return;
        };
        let times = self.times(id) * real_ns / expected_ns;
        if !times.is_finite() || times * SWITCH_SHARE <= 1.0 {
            return;
        }
        let corrected = |other: u8| {
            if other == id {
                real_ns / expected_ns
            } else {
                1.0
            }
        };
        self.candidates = self.candidates.corrected(corrected);
        let least = |lesson: &Option<(u8, f64)>| match lesson {
            Some((known, _)) if *known == id => 0.0,
            Some((_, times)) => *times,
            None => 1.0,
        };
        let mut slots = self.lessons.iter_mut();
        let first = slots.next();
        let slot = first.map(|first| {
            slots.fold(first, |best, slot| {
                if least(slot) < least(best) {
                    slot
                } else {
                    best
                }
            })
        });
        if let Some(slot) = slot {
            *slot = Some((id, times));
        }
    }

    /// How many times its estimate the codec with wire id `id` came to.
    fn times(&self, id: u8) -> f64 {
        let mut lessons = self.lessons.iter().flatten();
        lessons
            .find(|(known, _)| *known == id)
            .map_or(1.0, |(_, times)| *times)
    }

    /// Takes note of what a chunk came to; whether it is of a known size.
    pub(crate) fn record(&mut self, bytes_per_row: f64) -> bool {
        let Some((low, high)) = self.sizes else {
            self.sizes = Some((bytes_per_row, bytes_per_row));
            return true;
        };
        self.sizes = Some((low.min(bytes_per_row), high.max(bytes_per_row)));
        let known =
            low * (1.0 - SIZE_MARGIN) - SIZE_SLACK..=high * (1.0 + SIZE_MARGIN) + SIZE_SLACK;
        known.contains(&bytes_per_row)
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

/// Most chunks of `rows` that `codec` is kept for before it is priced again.
fn longest_interval(codec: &dyn Codec, rows: usize, goal: &Goal) -> u32 {
    let encoding = goal.costs.cost(codec, Operation::Encode);
    let encode_ns = encoding.at(0.0).max(COPY_NS) * rows.max(1) as f64;
    let chunks = LOOK_NS[goal.tier as usize] / LOOK_SHARE / encode_ns;
    let shortest = goal.look_interval.max(1);
    (chunks as u32).clamp(shortest, shortest.saturating_mul(INTERVALS_MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::chunk::Chunk;
    use crate::cost_table::{Cost, CostTable};
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
        let looks = |encode_ns: f64, chunks: usize| -> Vec<usize> {
            let mut costs = CostTable::default();
            for codec in CODECS {
                let cost = costs.cost(*codec, Operation::Encode);
                let value_ns = cost.value_ns + encode_ns;
                costs.set(codec.id(), Operation::Encode, Cost { value_ns, ..cost });
            }
            let (mut goal, mut habit) = (Goal::default(), Habit::default());
            goal.costs = Arc::new(costs);
            let looks = |_: &usize| habit.choose(&input, &goal, Place::default()).1;
            (0..chunks).filter(looks).collect()
        };
        assert_eq!(looks(1e6, 64), [0, 1, 3, 7, 15, 31, 47, 63]);
        // What is encoded in less time than it is priced is priced as much more rarely.
        let rarely = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023];
        assert_eq!(looks(0.0, 1_100), rarely);
    }

    /// The default costs, where each operation on a value of `codec` takes `more_ns` longer.
    fn dearer(codec: &dyn Codec, more_ns: f64) -> Arc<CostTable> {
        let mut costs = CostTable::default();
        for operation in Operation::ALL {
            let cost = costs.cost(codec, operation);
            let value_ns = cost.value_ns + more_ns;
            costs.set(codec.id(), operation, Cost { value_ns, ..cost });
        }
        Arc::new(costs)
    }

    #[test]
    fn near_equals_do_not_change_places() {
        let values: Vec<u64> = (0..2_000).map(|row| noise(row) % 100).collect();
        let input = input(&DataType::UInt64, &values);
        let mut goal = Goal::default();
        let mut habit = Habit::default();
        let first = habit.look(&input, &goal, Place::default());
        let prices: Vec<f64> = habit.candidates().iter().map(|c| c.scan_ns).collect();
        let (best, second) = (prices[0], prices[1]);
        // Both uses of the default cost as much more as makes the present codec the second best.
        let gap = (second - best) / 2.0;
        goal.costs = dearer(first, gap + 0.01 * best);
        assert_eq!(habit.look(&input, &goal, Place::default()).id(), first.id());
        goal.costs = dearer(first, gap + 0.2 * second);
        assert_ne!(habit.look(&input, &goal, Place::default()).id(), first.id());
    }

    /// What is cheaper at one look and dearer at the next is not worth changing for.
    #[test]
    fn choices_that_do_not_last_become_rare() {
        let values: Vec<u64> = (0..2_000).map(|row| noise(row) % 100).collect();
        let input = input(&DataType::UInt64, &values);
        let mut habit = Habit::default();
        let mut goal = Goal::default();
        let first = habit.look(&input, &goal, Place::default());
        let prices: Vec<f64> = habit.candidates().iter().map(|c| c.scan_ns).collect();
        let (mut present, mut looks, mut changes) = (first.id(), 0, 0);
        for _ in 0..256 {
            // The first choice costs more or less than the second by more than changing takes.
            let share = [1.16, 0.92][looks % 2];
            goal.costs = dearer(first, (share * prices[1] - prices[0]) / 2.0);
            let (chosen, looked) = habit.choose(&input, &goal, Place::default());
            looks += usize::from(looked);
            changes += usize::from(chosen.id() != present);
            present = chosen.id();
        }
        assert!((1..=16).contains(&changes), "{changes} changes");
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
