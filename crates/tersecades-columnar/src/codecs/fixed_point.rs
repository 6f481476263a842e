//! `fixed_point`: floats to the nearest multiple of a scale, within half of it.
//!
//! ```text
//! section 0:    the scale, f64
//! inner chunk, sections 1-3: value / scale as i64, and what keeps no bound (see `grid`)
//! ```
//! Lossy, so only where a scheme asks for it: `fixed_point(0.01)`. Every value that comes back is
//! checked while encoding: one further away than half the scale (very large, NaN, infinite) is a
//! patch and comes back as it was.
//! Example: `[1.234, NaN]` at `0.01` is the integers `123, 123` and a patch at row 1; the first
//! value comes back as `1.23`.

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
use crate::values::Values;

const SCALE: usize = 0;

/// Floats to the nearest multiple of a scale.
#[derive(Debug)]
pub struct FixedPoint;

/// Multiples of `scale`; of a part of one where it is one, so that decimals come back as written.
fn grid_of(scale: f64, physical: Physical) -> Grid {
    let parts = (1.0 / scale).round();
    let unit = match 1.0 / parts == scale {
        true => Unit::Over(parts),
        false => Unit::Times(scale),
    };
    Grid {
        unit,
        bytes: physical.lane_bytes() as u8,
    }
}

fn grid_of_chunk(chunk: &Chunk) -> Grid {
    grid_of(chunk.body.section::<f64>(SCALE)[0], chunk.physical)
}

/// Whether `scale` can be divided by and is not too large to have multiples.
fn is_scale(scale: f64) -> bool {
    scale > 0.0 && scale.is_normal() && (1.0 / scale).is_normal()
}

impl Codec for FixedPoint {
    fn id(&self) -> u8 {
        15
    }

    fn name(&self) -> &'static str {
        "fixed_point"
    }

    fn summary(&self) -> &'static str {
        "lossy, by request: floats to a multiple of a scale, as integers, themselves encoded"
    }

    fn source(&self) -> &'static str {
        "TerseCades (ATC 2018) §3.3"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        input.is_float()
    }

    fn is_lossy(&self) -> bool {
        true
    }

    fn takes_number(&self) -> bool {
        true
    }

    fn error_bound(&self, parameter: f64) -> f64 {
        parameter / 2.0
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, _sample: &Sample<'_>) -> Estimate {
        f64::INFINITY.into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let scale = work.parameter.filter(|scale| is_scale(*scale));
        let scale = scale.ok_or_else(|| {
            Error::invalid("fixed_point needs a positive scale").hint("write `fixed_point(0.01)`")
        })?;
        out.body.add_section::<f64>(SCALE, 1)[0] = scale;
        let is_near = |value: f64, back: f64| (value - back).abs() <= scale / 2.0;
        grid::encode(grid_of(scale, input.physical), input, is_near, out, work)
    }

    fn apart_ns(&self, chunk: &Chunk, goal: &Goal) -> f64 {
        grid::apart_ns(chunk, goal)
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 4, 2, LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        match *chunk.body.section::<f64>(SCALE) {
            [scale] if is_scale(scale) => grid::validate(chunk),
            _ => Err(Error::corrupt("a scale is missing or is none")),
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
