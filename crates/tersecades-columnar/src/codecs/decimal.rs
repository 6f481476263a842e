//! `decimal`: floats that are decimals of few digits, as integers.
//!
//! ```text
//! section 0:    the power of ten, u8, at most 22
//! inner chunk, sections 1-3: value x 10^power as i64, and what is no such decimal (see `grid`)
//! ```
//! Sensors and prices say `21.5` and mean it: the float nearest to 215 / 10. A value whose bits do
//! not come back (NaN, infinities, negative zero, more digits) is a patch, so the codec is exact.
//! Example: `[1.5, 2.25, NaN]` is the power 2, the integers `150, 225, 225` and a patch at row 2.
//!
//! Source: Afroozeh, Kuffo and Boncz, ALP, SIGMOD 2024. ALP multiplies by an inexact `10^-e` and
//! needs a second factor to get digits back; dividing by an exact power of ten needs one.

use std::ops::Range;

use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::goal::Goal;
use crate::grid::{self, Grid, Unit};
use crate::input::Input;
use crate::predicate::Predicate;
use crate::primitive::repeat::Repeats;
use crate::selection::Selection;
use crate::types::Physical;
use crate::values::{Values, float_of_bits};

const POWER: usize = 0;

/// The largest power of ten that a float holds exactly.
const POWER_MAX: u8 = 22;

/// Values that the power is chosen by.
const LOOKED_AT: usize = 64;

/// One in so many values may be a patch for the codec to be worth a thought.
const PATCHED_MAX: usize = 8;

/// Floats that are decimals of few digits, as integers.
#[derive(Debug)]
pub struct Decimal;

/// Whether a value comes back with the same bits.
fn is_same(value: f64, back: f64) -> bool {
    value.to_bits() == back.to_bits()
}

fn grid_of(power: u8, physical: Physical) -> Grid {
    Grid {
        unit: Unit::Over(10f64.powi(i32::from(power))),
        bytes: physical.lane_bytes() as u8,
    }
}

fn grid_of_chunk(chunk: &Chunk) -> Grid {
    grid_of(chunk.body.section::<u8>(POWER)[0], chunk.physical)
}

/// The power of ten under which a few values take the fewest bits, and how many of how many it
/// fails.
fn choose_power(input: &Input<'_>) -> (u8, usize, usize) {
    let (mut values, mut count) = ([0.0; LOOKED_AT], 0);
    let step = (input.rows() / LOOKED_AT).max(1);
    let rows = (0..input.rows()).step_by(step);
    for (slot, row) in values
        .iter_mut()
        .zip(rows.filter(|row| input.is_valid(*row)))
    {
        *slot = float_of_bits(input.lanes.bits(row), input.physical.lane_bytes() as u8);
        count += 1;
    }
    let values = &values[..count];
    let mut best = (usize::MAX, 0, count);
    for power in 0..=POWER_MAX {
        let grid = grid_of(power, input.physical);
        let (mut failed, mut low, mut high) = (0, i64::MAX, i64::MIN);
        for value in values {
            match grid.place(*value, is_same) {
                (multiple, true) => (low, high) = (low.min(multiple), high.max(multiple)),
                (_, false) => failed += 1,
            }
        }
        let span = if low <= high { low.abs_diff(high) } else { 0 };
        let bits = (u64::BITS - span.leading_zeros()) as usize;
        let patch_bits = 8 * (2 + input.physical.lane_bytes());
        let cost = (count - failed) * bits + failed * patch_bits;
        if cost < best.0 {
            best = (cost, power, failed);
        }
        if failed == 0 {
            break;
        }
    }
    (best.1, best.2, count)
}

impl Codec for Decimal {
    fn id(&self) -> u8 {
        13
    }

    fn name(&self) -> &'static str {
        "decimal"
    }

    fn summary(&self) -> &'static str {
        "floats of few decimal digits as integers, themselves encoded; other values as patches"
    }

    fn source(&self) -> &'static str {
        "ALP (Afroozeh, Kuffo and Boncz, SIGMOD 2024)"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        input.is_float()
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let (power, failed, count) = choose_power(sample.input);
        if failed * PATCHED_MAX > count {
            return f64::INFINITY.into();
        }
        grid::estimate(grid_of(power, sample.input.physical), sample, is_same)
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let (power, ..) = choose_power(input);
        out.body.add_section::<u8>(POWER, 1)[0] = power;
        grid::encode(grid_of(power, input.physical), input, is_same, out, work)
    }

    fn apart_ns(&self, chunk: &Chunk, goal: &Goal) -> f64 {
        grid::apart_ns(chunk, goal)
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[1, 4, 2, LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        match *chunk.body.section::<u8>(POWER) {
            [0..=POWER_MAX] => grid::validate(chunk),
            _ => Err(Error::corrupt("a power of ten is missing or too large")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        grid::decode(grid_of_chunk(chunk), chunk, rows, out);
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        let grid = (grid_of_chunk(chunk), self.decoder());
        grid::compare(grid, chunk, predicate, within, out, work);
    }

    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let grid = (grid_of_chunk(chunk), self.decoder());
        grid::fold(grid, chunk, asked, within, out, work);
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        grid::gather(grid_of_chunk(chunk), chunk, rows, out, work);
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        let grid = (grid_of_chunk(chunk), self.decoder());
        grid::repeats(grid, chunk, within, out, work);
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        grid::slice(chunk, rows, out, work, encode)
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        grid::prefetch(chunk, rows);
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
