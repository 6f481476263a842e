//! `gcd`: integers as whole multiples of their greatest common divisor above the smallest.
//!
//! ```text
//! section 0:    smallest key, divisor: u64 each
//! inner chunk:  (key - smallest key) / divisor, unsigned lanes as wide as the column's
//! ```
//! Times at whole seconds in a column of microseconds, prices in steps of five, addresses at fixed
//! distances: the quotients need fewer bits by the logarithm of the divisor, and are in the same
//! order, so comparisons and sums run on them. Values without a common divisor are divided by one.
//! The hole of a null holds the quotient 0.
//!
//! Example: `[1000, 1700, 1350]` is the smallest key 1000, the divisor 350 and `0, 2, 1`.
//!
//! Source: the codec GCD of ClickHouse, and Lucene's numeric doc values, which do the same.

use std::ops::Range;

use arrow_schema::DataType;

use crate::choose::{Estimate, SAMPLE_ROWS_MAX, Sample};
use crate::chunk::Chunk;
use crate::codec::{Codec, EncodeWork, Work, fold_decoded};
use crate::error::{Error, Result};
use crate::fold::{Asked, Fold};
use crate::input::{Input, Lanes};
use crate::lane::{KeyLane, with_lanes};
use crate::predicate::{KeyRange, Predicate};
use crate::primitive::repeat::Repeats;
use crate::selection::Selection;
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

const SCALE: usize = 0;

/// Integers as whole multiples of their greatest common divisor above the smallest.
#[derive(Debug)]
pub struct Gcd;

/// How quotients become keys: `base + step * quotient`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    base: u64,
    step: u64,
}

impl Scale {
    /// The scale of these keys.
    fn of(keys: impl Iterator<Item = u64> + Clone) -> Self {
        let base = keys.clone().min().unwrap_or(0);
        let mut step = 0;
        for key in keys {
            // Most keys after the first few change nothing, and one is never left again.
            if step == 1 {
                break;
            }
            if step == 0 || !(key - base).is_multiple_of(step) {
                step = greatest_divisor(step, key - base);
            }
        }
        Scale {
            base,
            step: step.max(1),
        }
    }

    /// Wraps where a hole holds a quotient that no key has.
    #[inline]
    fn key(self, quotient: u64) -> u64 {
        self.base.wrapping_add(self.step.wrapping_mul(quotient))
    }

    /// Makes quotients the keys that they are of, in the lanes of `physical` those of holes too.
    fn restore(self, quotients: &mut [u64], physical: Physical) {
        let key_max = physical.key_max();
        quotients
            .iter_mut()
            .for_each(|key| *key = self.key(*key) & key_max);
    }

    /// The quotients of the keys of `range`, unless there are none.
    fn quotients(self, range: KeyRange) -> Option<KeyRange> {
        let low = range.low.saturating_sub(self.base).div_ceil(self.step);
        let high = range.high.checked_sub(self.base)? / self.step;
        (low <= high).then_some(KeyRange { low, high })
    }
}

/// Euclid's algorithm; 0 has every divisor.
fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The type of the quotients of a column with lanes of so many bytes.
fn quotient_type(lane_bytes: usize) -> DataType {
    match lane_bytes {
        1 => DataType::UInt8,
        2 => DataType::UInt16,
        4 => DataType::UInt32,
        _ => DataType::UInt64,
    }
}

/// The scale and the quotients of a chunk that was encoded or validated.
fn parts(chunk: &Chunk) -> Option<(Scale, &Chunk)> {
    let &[base, step] = chunk.body.section::<u64>(SCALE) else {
        return None;
    };
    Some((Scale { base, step }, chunk.body.inner[0].as_deref()?))
}

fn encode<T: KeyLane>(
    lanes: &[T],
    input: &Input<'_>,
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let valid = (0..lanes.len()).filter(|row| input.is_valid(*row));
    let scale = Scale::of(valid.map(|row| input.key(row)));
    let mut quotients = std::mem::take(T::scratch(work));
    quotients.clear();
    quotients.extend((0..lanes.len()).map(|row| match input.is_valid(row) {
        true => T::cut((input.key(row) - scale.base) / scale.step),
        false => T::cut(0),
    }));
    let scales = out.body.add_section::<u64>(SCALE, 2);
    scales.copy_from_slice(&[scale.base, scale.step]);
    let data_type = quotient_type(size_of::<T>());
    let inner = Input {
        data_type: &data_type,
        physical: Physical::of(&data_type)?,
        lanes: T::lanes(&quotients),
        validity: input.validity,
        array: None,
    };
    let encoded = out.body.encode_inner(0, &inner, work);
    *T::scratch(work) = quotients;
    encoded?;
    if let Some(Stats { min, max, known }) = out.body.inner[0].as_deref().map(Chunk::stats)
        && known
    {
        out.stats = Stats::from_ends(scale.key(min), scale.key(max));
    }
    Ok(())
}

/// What a codec makes of the quotients of a sample.
fn estimate<T: KeyLane>(keys: &[u64], scale: Scale, sample: &Sample<'_>) -> Estimate {
    let mut room = [T::cut(0); SAMPLE_ROWS_MAX];
    for (slot, key) in room.iter_mut().zip(keys) {
        *slot = T::cut((key - scale.base) / scale.step);
    }
    sample.inner(
        &quotient_type(size_of::<T>()),
        T::lanes(&room[..keys.len()]),
    )
}

impl Codec for Gcd {
    fn id(&self) -> u8 {
        22
    }

    fn name(&self) -> &'static str {
        "gcd"
    }

    fn summary(&self) -> &'static str {
        "integers divided by their greatest common divisor, quotients to another codec"
    }

    fn source(&self) -> &'static str {
        "ClickHouse's GCD; Lucene's numeric doc values"
    }

    fn accepts(&self, input: &Input<'_>) -> bool {
        matches!(input.physical, Physical::Integer { .. })
            && !matches!(input.lanes, Lanes::Codes { .. })
    }

    fn inner_max(&self) -> usize {
        1
    }

    fn estimate(&self, sample: &Sample<'_>) -> Estimate {
        let mut room = [0; SAMPLE_ROWS_MAX];
        let keys = sample.keys(&mut room);
        let scale = Scale::of(keys.iter().copied());
        if scale.step == 1 {
            return f64::INFINITY.into();
        }
        match sample.input.physical.lane_bytes() {
            1 => estimate::<u8>(keys, scale, sample),
            2 => estimate::<u16>(keys, scale, sample),
            4 => estimate::<u32>(keys, scale, sample),
            _ => estimate::<u64>(keys, scale, sample),
        }
    }

    fn encode(&self, input: &Input<'_>, out: &mut Chunk, work: &mut EncodeWork) -> Result<()> {
        with_lanes!(input.lanes, lanes => encode(lanes, input, out, work),
            else Err(Error::internal("gcd takes lanes of at most eight bytes")))
    }

    fn sections(&self, _physical: Physical) -> &'static [usize] {
        &[8]
    }

    fn validate(&self, chunk: &Chunk) -> Result<()> {
        let corrupt = || Error::corrupt("the quotients do not fit their chunk");
        let (scale, inner) = parts(chunk).ok_or_else(corrupt)?;
        let physical = Physical::of(&quotient_type(chunk.physical.lane_bytes()))?;
        let integer = matches!(chunk.physical, Physical::Integer { .. });
        if !integer || inner.physical != physical || inner.rows != chunk.rows || scale.step == 0 {
            return Err(corrupt());
        }
        let largest = scale.step.checked_mul(inner.stats.max);
        let largest = largest.and_then(|span| scale.base.checked_add(span));
        match largest.is_some_and(|key| key <= chunk.physical.key_max()) {
            true => Ok(()),
            false => Err(Error::corrupt("a quotient is too large")),
        }
    }

    fn decode(&self, chunk: &Chunk, rows: Range<usize>, out: &mut Values) {
        if let Some((scale, inner)) = parts(chunk) {
            let start = out.keys.len();
            inner.codec.decode(inner, rows, out);
            scale.restore(&mut out.keys[start..], chunk.physical);
        }
    }

    fn compare(
        &self,
        chunk: &Chunk,
        predicate: &Predicate,
        within: &Selection,
        out: &mut Selection,
        work: &mut Work,
    ) {
        let (Some((scale, inner)), Predicate::Keys(wanted)) = (parts(chunk), predicate) else {
            return out.set_none(chunk.rows);
        };
        let mut ranges = std::mem::take(&mut work.multiples);
        ranges.clear();
        ranges.extend(wanted.iter().filter_map(|range| scale.quotients(*range)));
        let translated = Predicate::Keys(ranges);
        inner.compare(&translated, within, out, work);
        if let Predicate::Keys(ranges) = translated {
            work.multiples = ranges;
        }
    }

    fn fold(
        &self,
        chunk: &Chunk,
        asked: Asked,
        within: &Selection,
        out: &mut Fold,
        work: &mut Work,
    ) {
        let Some((scale, inner)) = parts(chunk).filter(|_| !asked.squares) else {
            return fold_decoded(self, chunk, asked, within, out, work);
        };
        let mut part = Fold::default();
        inner.fold(asked, within, &mut part, work);
        out.count += part.count;
        if asked.sum {
            let base = chunk.physical.value_of(scale.base);
            out.add_sum(base * i128::from(part.count) + i128::from(scale.step) * part.sum);
        }
        if asked.ends && part.count > 0 {
            for quotient in [part.min, part.max] {
                out.add_end(i128::from(scale.key(quotient as u64)));
            }
        }
    }

    fn gather(&self, chunk: &Chunk, rows: &[u32], out: &mut Values, work: &mut Work) {
        if let Some((scale, inner)) = parts(chunk) {
            let start = out.keys.len();
            inner.codec.gather(inner, rows, out, work);
            scale.restore(&mut out.keys[start..], chunk.physical);
        }
    }

    fn rank(&self, chunk: &Chunk, within: &Selection, out: &mut Vec<u64>, work: &mut Work) {
        if let Some((scale, inner)) = parts(chunk) {
            let start = out.len();
            inner.codec.rank(inner, within, out, work);
            scale.restore(&mut out[start..], chunk.physical);
        }
    }

    fn repeats(&self, chunk: &Chunk, within: &Selection, out: &mut Repeats, work: &mut Work) {
        if let Some((scale, inner)) = parts(chunk) {
            debug_assert!(out.values.keys.is_empty(), "of another unit");
            inner.codec.repeats(inner, within, out, work);
            scale.restore(&mut out.values.keys, chunk.physical);
        }
    }

    fn prefetch(&self, chunk: &Chunk, rows: &[u32]) {
        if let Some((_, inner)) = parts(chunk) {
            inner.codec.prefetch(inner, rows);
        }
    }

    fn decoder(&self) -> &dyn Codec {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_holes_stay_within_their_lanes() {
        let scale = Scale {
            base: 20,
            step: u64::MAX - 29,
        };
        let mut keys = [0, 1, u64::MAX];
        scale.restore(&mut keys, Physical::of(&DataType::UInt32).unwrap());
        assert_eq!(keys[0], 20);
        assert!(
            keys.iter().all(|key| *key <= u64::from(u32::MAX)),
            "{keys:?}"
        );
    }
}
