//! Statistics of a chunk: what lets it be skipped or taken whole.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS};
use crate::input::{Input, Lanes};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::types::{Physical, float_key};
use crate::values::float_of_bits;

/// The smallest and largest value of a chunk, as keys that sort as the values do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Smallest key: [`Physical::key_of`] for integers, [`float_key`] for floats.
    pub min: u64,
    /// Largest key.
    pub max: u64,
    /// Whether the keys are meant; false for text, decimals and chunks without values.
    pub known: bool,
}

impl Stats {
    /// Both ends, if there is a value between them.
    pub fn from_ends(min: u64, max: u64) -> Self {
        if min <= max {
            Stats {
                min,
                max,
                known: true,
            }
        } else {
            Stats::default()
        }
    }

    /// Whether no value is above `high`.
    pub(crate) fn none_above(&self, high: u64) -> bool {
        self.known && self.max <= high
    }

    /// Whether no value is below `low`.
    pub(crate) fn none_below(&self, low: u64) -> bool {
        self.known && self.min >= low
    }

    /// Statistics of values that are still plain.
    ///
    /// # Cost
    /// One pass at memory speed for integers.
    pub fn of(input: &Input<'_>) -> Self {
        match (input.physical, input.lanes) {
            (Physical::Integer { .. }, Lanes::U8(lanes)) => integer_ends(lanes, input),
            (Physical::Integer { .. }, Lanes::U16(lanes)) => integer_ends(lanes, input),
            (Physical::Integer { .. }, Lanes::U32(lanes)) => integer_ends(lanes, input),
            (Physical::Integer { .. }, Lanes::U64(lanes)) => integer_ends(lanes, input),
            (Physical::Float { bytes }, _) => float_ends(bytes, input),
            _ => Stats::default(),
        }
    }
}

fn integer_ends<T: KeyLane>(lanes: &[T], input: &Input<'_>) -> Stats {
    let table = T::of(kernels());
    let flip = T::cut(input.physical.flip());
    let (mut low, mut high) = (u64::MAX, 0);
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let mask = input.validity.map(|validity| {
            let first = block * BLOCK_ROWS / WORD_ROWS;
            &validity.words()[first..first + values.len().div_ceil(WORD_ROWS)]
        });
        let (mut min, mut max) = ([T::cut(0); GROUPS], [T::cut(0); GROUPS]);
        (table.min_max)(values, flip, mask, &mut min, &mut max);
        for (min, max) in min.into_iter().zip(max) {
            let (min, max) = (min.key(), max.key());
            if min <= max {
                low = low.min(min);
                high = high.max(max);
            }
        }
    }
    Stats::from_ends(low, high)
}

fn float_ends(bytes: u8, input: &Input<'_>) -> Stats {
    let (mut low, mut high) = (u64::MAX, 0);
    for row in (0..input.rows()).filter(|row| input.is_valid(*row)) {
        let key = float_key(float_of_bits(input.lanes.bits(row), bytes));
        low = low.min(key);
        high = high.max(key);
    }
    Stats::from_ends(low, high)
}
