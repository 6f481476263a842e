//! `zfp`: smooth floats within an absolute tolerance.
//!
//! ```text
//! section 0:    the tolerance, f64
//! section 1:    where each block's stream starts, in 64-bit words, u32, blocks + 1 of them
//! section 2:    the streams, each read alone
//! sections 3-5: patches: what is not finite or does not come back within the tolerance
//!
//! stream = four values …, filled up with zeros to whole 64-bit little-endian words
//! four   = 0                          four zeros, or four values below the tolerance
//!        | 1  exponent  plane …       exponent: 8 or 11 bits; planes from the highest
//! ```
//! Lossy, so only where a scheme asks for it: `zfp(0.001)`. Every value that comes back is checked
//! while encoding.
//!
//! Bits are read from the lowest of a word. Four values are scaled by their largest exponent to
//! integers of two spare bits, transformed (so that smooth values leave all but the first small),
//! written in base -2 (so that small numbers of both signs have leading zeros) and cut into bit
//! planes, of which those below the tolerance are left out. The streams are those of the reference
//! library for one dimension in its fixed-accuracy mode, without header. That library overflows for
//! values whose largest magnitude is below `2^-961` (`f64`) or `2^-97` (`f32`) and above the
//! tolerance; here they are scaled exactly.
//!
//! Source: Lindstrom, Fixed-Rate Compressed Floating-Point Arrays, TVCG 2014;
//! <https://zfp.readthedocs.io/en/latest/algorithm.html>.

mod plane;

mod block;
mod stream;

use std::ops::Range;

use crate::block::{BLOCK_ROWS, block_count, block_rows};
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, LANE_ITEM, Work};
use crate::error::{Error, Result};
use crate::goal::Tier;
use crate::input::{Input, Lanes};
use crate::patch::{self as patches, Patches};
use crate::primitive::slice::slice_decoded;
use crate::stats::Stats;
use crate::stream::{self as streams, Streams};
use crate::types::{Physical, float_key};
use crate::values::{Values, float_of_bits};

use plane::SIZE;
pub use stream::{Format, decode, encode};
use stream::{MARKED, encode_marked};

const TOLERANCE: usize = 0;
const STREAMS: usize = 1;
const PATCHES: usize = 3;

/// Smooth floats within an absolute tolerance.
#[derive(Debug)]
pub struct Zfp;

fn format_of(physical: Physical) -> Format {
    match physical.lane_bytes() {
        4 => Format::SINGLE,
        _ => Format::DOUBLE,
    }
}

fn is_tolerance(tolerance: f64) -> bool {
    tolerance > 0.0 && tolerance.is_finite()
}

/// The value of `row`.
fn value_of(input: &Input<'_>, row: usize) -> f64 {
    float_of_bits(input.lanes.bits(row), input.physical.lane_bytes() as u8)
}

/// Fills `values` with those of `rows`; says whether all are finite.
fn read(input: &Input<'_>, rows: Range<usize>, values: &mut [f64]) -> bool {
    match &input.lanes {
        Lanes::U64(lanes) => {
            for (value, bits) in values.iter_mut().zip(&lanes[rows]) {
                *value = f64::from_bits(*bits);
            }
        }
        Lanes::U32(lanes) => {
            for (value, bits) in values.iter_mut().zip(&lanes[rows]) {
                *value = f64::from(f32::from_bits(*bits));
            }
        }
        _ => {
            for (value, row) in values.iter_mut().zip(rows) {
                *value = value_of(input, row);
            }
        }
    }
    values
        .iter()
        .fold(true, |all, value| all & value.is_finite())
}

/// Whether every value came back within `tolerance`.
fn is_within(values: &[f64], back: &[f64], tolerance: f64) -> bool {
    let pairs = values.iter().zip(back);
    pairs.fold(true, |all, (value, back)| {
        all & ((value - back).abs() <= tolerance)
    })
}

/// The least and the largest of `values`, and of `ends` so far.
fn widened(ends: (f64, f64), values: &[f64]) -> (f64, f64) {
    values.iter().fold(ends, |(least, largest), it| {
        (
            if *it < least { *it } else { least },
            if *it > largest { *it } else { largest },
        )
    })
}

/// The parts of a block's values that are not all zeros.
#[derive(Default)]
struct Used([u64; BLOCK_ROWS / MARKED]);

impl Used {
    /// The ends of what came `back`, if it is all within `tolerance` of `values`. What was zero is
    /// not looked at again.
    fn ends(&self, values: &[f64], back: &[f64], tolerance: f64) -> Option<(u64, u64)> {
        let count: u32 = self.0.iter().map(|marks| marks.count_ones()).sum();
        let blocks = values.len().div_ceil(SIZE) as u32;
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let (least, largest) = if count > blocks / 2 {
            is_within(values, back, tolerance).then(|| widened(none, back))?
        } else {
            let mut ends = (0.0, 0.0);
            for (part, marks) in self.0.iter().enumerate() {
                let mut left = *marks;
                while left != 0 {
                    let start = part * MARKED + left.trailing_zeros() as usize * SIZE;
                    left &= left - 1;
                    let rows = start..(start + SIZE).min(values.len());
                    if !is_within(&values[rows.clone()], &back[rows.clone()], tolerance) {
                        return None;
                    }
                    ends = widened(ends, &back[rows]);
                }
            }
            ends
        };
        Some((float_key(least), float_key(largest)))
    }
}

/// Encodes the rows of one block; returns the ends of what comes back.
///
/// Nulls, and what is not finite, hold the value before.
fn encode_block(
    input: &Input<'_>,
    rows: Range<usize>,
    tolerance: f64,
    last: &mut f64,
    work: &mut EncodeWork,
) -> (u64, u64) {
    let (mut values, mut back) = ([0.0; BLOCK_ROWS], [0.0; BLOCK_ROWS]);
    let (values, back) = (&mut values[..rows.len()], &mut back[..rows.len()]);
    let whole = read(input, rows.clone(), values) && input.validity.is_none();
    if !whole {
        for (slot, row) in values.iter_mut().zip(rows.clone()) {
            if !input.is_valid(row) || !slot.is_finite() {
                *slot = *last;
            }
            *last = *slot;
        }
    }
    *last = values[values.len() - 1];
    let mut used = Used::default();
    let target = (&mut work.bytes, &mut *back);
    let format = format_of(input.physical);
    encode_marked(values, format, tolerance, target, |first, marks| {
        used.0[first / MARKED] = marks;
    });
    streams::end_block(work);
    patches::begin_block(work);
    let ends = whole.then(|| used.ends(values, back, tolerance));
    if let Some(ends) = ends.flatten() {
        return ends;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    for (index, row) in rows.enumerate().filter(|(_, row)| input.is_valid(*row)) {
        let (value, mut back) = (value_of(input, row), back[index]);
        if !value.is_finite() || (value - back).abs() > tolerance || !back.is_finite() {
            work.patch_rows.push(index as u16);
            work.patch_keys.push(input.lanes.bits(row));
            back = value;
        }
        low = low.min(float_key(back));
        high = high.max(float_key(back));
    }
    (low, high)
}

impl Codec for Zfp {
    fn id(&self) -> u8 {
        16
    }

    fn name(&self) -> &'static str {
        "zfp"
    }

    fn summary(&self) -> &'static str {
        "lossy, by request: smooth floats within a tolerance, as transformed bit planes of four"
    }

    fn source(&self) -> &'static str {
        "ZFP (Lindstrom, TVCG 2014); TerseCades (ATC 2018) §3.3"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        input.is_float()
    }

    fn tier(&self) -> Tier {
        Tier::Cold
    }

    fn is_lossy(&self) -> bool {
        true
    }

    fn takes_number(&self) -> bool {
        true
    }

    fn error_bound(&self, parameter: f64) -> f64 {
        parameter
    }

    fn estimate(&self, _sample: &Sample<'_>) -> Estimate {
        f64::INFINITY.into()
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        let tolerance = work.parameter.filter(|tolerance| is_tolerance(*tolerance));
        let tolerance = tolerance.ok_or_else(|| {
            Error::invalid("zfp needs a positive tolerance").hint("write `zfp(0.001)`")
        })?;
        out.body.add_section::<f64>(TOLERANCE, 1)[0] = tolerance;
        streams::begin(work);
        patches::begin(work);
        let (mut low, mut high, mut last) = (u64::MAX, 0, 0.0);
        for block in 0..block_count(input.rows()) {
            let rows = block_rows(block, input.rows());
            let ends = encode_block(input, rows, tolerance, &mut last, work);
            (low, high) = (low.min(ends.0), high.max(ends.1));
        }
        patches::begin_block(work);
        streams::write(&mut out.body, STREAMS, work);
        let lane_bytes = input.physical.lane_bytes();
        patches::write(&mut out.body, PATCHES, lane_bytes, work);
        out.stats = Stats::from_ends(low, high);
        Ok(())
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8, 4, 1, 4, 2, LANE_ITEM]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        if !matches!(chunk.physical, Physical::Float { .. }) {
            return Err(Error::corrupt("a zfp chunk of no floats"));
        }
        match *chunk.body.section::<f64>(TOLERANCE) {
            [tolerance] if is_tolerance(tolerance) => {}
            _ => return Err(Error::corrupt("a tolerance is missing or is none")),
        }
        Streams::of(chunk, STREAMS).validate(chunk.rows)?;
        Patches::of(chunk, PATCHES).validate(chunk.rows)
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        let tolerance = chunk.body.section::<f64>(TOLERANCE)[0];
        let streams = Streams::of(chunk, STREAMS);
        let patches = Patches::of(chunk, PATCHES);
        let mut values = [0.0; BLOCK_ROWS];
        for block in rows.start / BLOCK_ROWS..block_count(rows.end) {
            let start = block * BLOCK_ROWS;
            let values = &mut values[..(rows.end - start).min(BLOCK_ROWS)];
            let format = format_of(chunk.physical);
            decode(streams.of_block(block), format, tolerance, values);
            let first = rows.start.saturating_sub(start);
            let out_start = out.keys.len();
            let wanted = values[first..].iter();
            match chunk.physical.lane_bytes() {
                4 => {
                    let single = |value: &f64| u64::from((*value as f32).to_bits());
                    out.keys.extend(wanted.map(single));
                }
                _ => out.keys.extend(wanted.map(|value| value.to_bits())),
            }
            let wanted = &mut out.keys[out_start..];
            for index in patches.of_block(block) {
                let row = patches.row(index).checked_sub(first);
                if let Some(key) = row.and_then(|row| wanted.get_mut(row)) {
                    *key = patches.key(index);
                }
            }
        }
    }

    fn slice(
        &self,
        chunk: &Chunk,
        rows: Range<usize>,
        out: &mut Chunk,
        work: &mut Work,
        encode: &mut EncodeWork,
    ) -> Result<()> {
        if !rows.start.is_multiple_of(BLOCK_ROWS) {
            return slice_decoded(self, chunk, rows, out, work, encode);
        }
        out.begin_slice(chunk.codec, chunk, rows.clone());
        let tolerance = chunk.body.section::<f64>(TOLERANCE);
        out.body
            .add_section::<f64>(TOLERANCE, tolerance.len())
            .copy_from_slice(tolerance);
        let blocks = rows.start / BLOCK_ROWS..block_count(rows.end);
        Streams::of(chunk, STREAMS).collect(blocks, encode);
        streams::write(&mut out.body, STREAMS, encode);
        Patches::of(chunk, PATCHES).collect(chunk.rows, rows, encode, |key| key);
        patches::write(&mut out.body, PATCHES, out.physical.lane_bytes(), encode);
        Ok(())
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}
