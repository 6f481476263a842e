//! Floats as whole multiples of a step: what codecs that turn floats into integers share.
//!
//! ```text
//! inner chunk:  the multiples, i64, at most 2^51 large, under whichever codec suits them
//! sections 1-3: patches: the values that are no multiples, by their bits
//! ```
//! A patched row holds the multiple before it, so it widens nothing; primitives that run on the
//! multiples correct it. Multiples and their values are in the same order, so a comparison becomes
//! one of integers, whose ends are found by bisection: no rule about rounding is needed.

mod direct;
mod encode;

use std::ops::Range;

use arrow_schema::DataType;

use crate::block::{BLOCK_ROWS, block_count};
use crate::chunk::Chunk;
use crate::codec::{EncodeWork, Work};
use crate::error::{Error, Result};
use crate::patch::{self as patches, Patches};
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

pub(crate) use direct::{compare, fold, repeats};
pub(crate) use encode::{apart_ns, encode, estimate};

/// The section of the codec that uses the grid.
const OWN: usize = 0;

/// First of the sections with patches.
const PATCHES: usize = 1;

/// The type of the multiples.
const MULTIPLES: DataType = DataType::Int64;
const MULTIPLES_PHYSICAL: Physical = Physical::Integer {
    bytes: 8,
    signed: true,
};

/// The largest multiple: up to here a float has room for a half, so rounding is right.
const LARGEST: i64 = 1 << 51;

/// In the neighbourhood of this float, [`LARGEST`] to both sides, floats are the integers: adding
/// it rounds, and the bits count.
const INTEGERS: f64 = 6_755_399_441_055_744.0;

/// What the multiples are multiples of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// A step.
    Times(f64),
    /// One part of so many; divided by, so that `7 / 100` is the float nearest to `0.07`.
    Over(f64),
}

/// The grid of a float column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// What its points are multiples of.
    pub(crate) unit: Unit,
    /// Bytes of a float.
    pub(crate) bytes: u8,
}

impl Grid {
    /// The value of a multiple.
    #[inline]
    fn value(self, multiple: f64) -> f64 {
        let value = match self.unit {
            Unit::Times(step) => multiple * step,
            Unit::Over(parts) => multiple / parts,
        };
        match self.bytes {
            4 => f64::from(value as f32),
            _ => value,
        }
    }

    /// The bits, in a lane, of the value of the multiple with this key.
    #[inline]
    fn bits_of_key(self, key: u64) -> u64 {
        let value = self.value(multiple_of_key(key));
        match self.bytes {
            4 => u64::from((value as f32).to_bits()),
            _ => value.to_bits(),
        }
    }

    /// The multiple nearest to `value`, and whether it stands for it: whether
    /// `keeps(value, value of the multiple)`.
    #[inline]
    pub(crate) fn place(self, value: f64, keeps: impl Fn(f64, f64) -> bool) -> (i64, bool) {
        let exact = match self.unit {
            Unit::Times(step) => value / step,
            Unit::Over(parts) => value * parts,
        };
        let shifted = exact + INTEGERS;
        let nearest = shifted - INTEGERS;
        let stands = nearest.abs() <= LARGEST as f64 && keeps(value, self.value(nearest));
        let multiple = (shifted.to_bits() as i64).wrapping_sub(INTEGERS.to_bits() as i64);
        (multiple, stands)
    }
}

/// The multiple with this key, as a float; those beyond [`LARGEST`] are some float.
#[inline]
fn multiple_of_key(key: u64) -> f64 {
    let multiple = (key ^ MULTIPLES_PHYSICAL.flip()) as i64;
    f64::from_bits((INTEGERS.to_bits() as i64).wrapping_add(multiple) as u64) - INTEGERS
}

/// The multiples of a chunk that was encoded or validated.
fn multiples(chunk: &Chunk) -> Option<&Chunk> {
    chunk.body.inner[0].as_deref()
}

/// Checks everything but the codec's own section.
///
/// # Errors
/// `Corrupt` for multiples or patches that do not fit the chunk.
pub(crate) fn validate(chunk: &Chunk) -> Result<()> {
    if !matches!(chunk.physical, Physical::Float { .. }) {
        return Err(Error::corrupt(
            "multiples of a step in a column of no floats",
        ));
    }
    let corrupt = || Error::corrupt("the multiples do not fit their chunk");
    let inner = multiples(chunk).ok_or_else(corrupt)?;
    if inner.physical != MULTIPLES_PHYSICAL || inner.rows != chunk.rows {
        return Err(corrupt());
    }
    let ends = [inner.stats.min, inner.stats.max];
    let inside = |key: u64| multiple_range().contains(&key);
    if inner.stats.known && !ends.into_iter().all(inside) {
        return Err(Error::corrupt("a multiple is too large"));
    }
    Patches::of(chunk, PATCHES).validate(chunk.rows)
}

/// Keys of multiples that are not too large.
fn multiple_range() -> std::ops::RangeInclusive<u64> {
    let flip = MULTIPLES_PHYSICAL.flip();
    flip - LARGEST as u64..=flip + LARGEST as u64
}

/// Appends the values of `rows` to `out`.
pub(crate) fn decode(grid: Grid, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
    let Some(inner) = multiples(chunk) else {
        return;
    };
    let start = out.keys.len();
    inner.codec.decode(inner, rows.clone(), out);
    let keys = &mut out.keys[start..];
    keys.iter_mut()
        .for_each(|key| *key = grid.bits_of_key(*key));
    let patches = Patches::of(chunk, PATCHES);
    for block in rows.start / BLOCK_ROWS..block_count(rows.end) {
        for index in patches.of_block(block) {
            let row = block * BLOCK_ROWS + patches.row(index);
            if rows.contains(&row) {
                keys[row - rows.start] = patches.key(index);
            }
        }
    }
}

/// Appends the values of the listed rows, ascending, to `out`.
pub(crate) fn gather(grid: Grid, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
    let Some(inner) = multiples(chunk) else {
        return;
    };
    let start = out.keys.len();
    inner.codec.gather(inner, rows, out, work);
    let patches = Patches::of(chunk, PATCHES);
    for (key, row) in out.keys[start..].iter_mut().zip(rows) {
        let (block, row) = (*row as usize / BLOCK_ROWS, *row as usize % BLOCK_ROWS);
        let patched = patches.find(block, row);
        *key = patched.unwrap_or_else(|| grid.bits_of_key(*key));
    }
}

/// Fills `out` with the values of `rows`: the codec's own section as it is, patches and multiples
/// cut.
///
/// # Errors
/// What the codec inside says.
pub(crate) fn slice(
    chunk: &Chunk,
    rows: Range<usize>,
    out: &mut Chunk,
    work: &mut Work,
    encode: &mut EncodeWork,
) -> Result<()> {
    let inner = multiples(chunk).ok_or_else(|| Error::internal("a grid has multiples"))?;
    let mut cut = out.body.take_inner(0).unwrap_or_default();
    out.begin_slice(chunk.codec, chunk, rows.clone());
    let own = chunk.body.section::<u8>(OWN);
    out.body
        .add_section::<u8>(OWN, own.len())
        .copy_from_slice(own);
    Patches::of(chunk, PATCHES).collect(chunk.rows, rows.clone(), encode, |key| key);
    patches::write(&mut out.body, PATCHES, out.physical.lane_bytes(), encode);
    inner.slice(rows, &mut cut, work, encode)?;
    if out.nulls > 0 {
        // What lies in null rows is anything and must not count.
        let mut valid = std::mem::take(&mut work.patched);
        valid.set_all(out.rows);
        valid.retain_words(out.validity.words());
        cut.stats = Stats::default();
        cut.settle_stats(&valid, work);
        work.patched = valid;
    }
    out.body.inner[0] = Some(cut);
    Ok(())
}

/// Asks for what the listed rows need.
pub(crate) fn prefetch(chunk: &Chunk, rows: &[u32]) {
    if let Some(inner) = multiples(chunk) {
        inner.codec.prefetch(inner, rows);
    }
}
