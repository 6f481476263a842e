//! Statistics of a chunk: what lets it be skipped or taken whole.

use crate::bitmap::WORD_ROWS;
use crate::block::{BLOCK_ROWS, GROUPS};
use crate::input::{Input, Lanes};
use crate::kernels::kernels;
use crate::lane::KeyLane;
use crate::types::Physical;

/// The smallest and largest value of a chunk, as keys that sort as the values do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Smallest key: [`Physical::key_of`] for integers,
    /// [`float_key`](crate::types::float_key) for floats.
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
    /// One pass at memory speed.
    pub fn of(input: &Input<'_>) -> Self {
        match (input.physical, input.lanes) {
            (Physical::Integer { .. }, Lanes::U8(lanes)) => integer_ends(lanes, input),
            (Physical::Integer { .. }, Lanes::U16(lanes)) => integer_ends(lanes, input),
            (Physical::Integer { .. }, Lanes::U32(lanes)) => integer_ends(lanes, input),
            (Physical::Integer { .. }, Lanes::U64(lanes)) => integer_ends(lanes, input),
            (Physical::Float { .. }, Lanes::U32(lanes)) => {
                float_ends(lanes, input, kernels().float.single_keys)
            }
            (Physical::Float { .. }, Lanes::U64(lanes)) => {
                float_ends(lanes, input, kernels().float.keys)
            }
            _ => Stats::default(),
        }
    }
}

/// The mask of the values of `block`, where some are null.
fn mask_of<'a>(input: &'a Input<'_>, block: usize, rows: usize) -> Option<&'a [u64]> {
    let validity = input.validity?;
    let first = block * BLOCK_ROWS / WORD_ROWS;
    Some(&validity.words()[first..first + rows.div_ceil(WORD_ROWS)])
}

/// The ends of blocks, taken together.
#[derive(Debug)]
struct Ends {
    low: u64,
    high: u64,
}

impl Ends {
    /// The ends of no value.
    const NONE: Ends = Ends {
        low: u64::MAX,
        high: 0,
    };

    /// Adds the values of a block, the keys of which are `values ^ flip`.
    fn add<T: KeyLane>(&mut self, values: &[T], flip: T, mask: Option<&[u64]>) {
        let (mut min, mut max) = ([T::cut(0); GROUPS], [T::cut(0); GROUPS]);
        (T::of(kernels()).min_max)(values, flip, mask, &mut min, &mut max);
        for (min, max) in min.into_iter().zip(max) {
            let (min, max) = (min.key(), max.key());
            if min <= max {
                self.low = self.low.min(min);
                self.high = self.high.max(max);
            }
        }
    }
}

fn integer_ends<T: KeyLane>(lanes: &[T], input: &Input<'_>) -> Stats {
    let flip = T::cut(input.physical.flip());
    let mut ends = Ends::NONE;
    for (block, values) in lanes.chunks(BLOCK_ROWS).enumerate() {
        ends.add(values, flip, mask_of(input, block, values.len()));
    }
    Stats::from_ends(ends.low, ends.high)
}

/// As [`integer_ends`] of the keys that `keys` makes of the bits of floats.
fn float_ends<T>(lanes: &[T], input: &Input<'_>, keys: fn(&[T], &mut [u64])) -> Stats {
    let mut ends = Ends::NONE;
    let mut room = [0; BLOCK_ROWS];
    for (block, bits) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let room = &mut room[..bits.len()];
        keys(bits, room);
        ends.add(room, 0, mask_of(input, block, bits.len()));
    }
    Stats::from_ends(ends.low, ends.high)
}
