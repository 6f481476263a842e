//! One block of four values: common exponent, integers, transform, negabinary, bit planes.

use super::plane::{self, SIZE};
use super::stream::Format;
use crate::bits::{BitReader, BitWriter};

/// `…101010`: adding and then flipping these bits turns two's complement into base -2.
const NEGABINARY: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// The sign of a float.
const SIGN: u64 = 1 << 63;

/// Bit planes beyond the tolerance that the transform's growth of errors asks for: two per
/// dimension, and two.
const GUARD_PLANES: i32 = 4;

/// Writes four values and answers what [`decode`] will make of them; one that is not finite, which
/// the format lacks, is written as zero.
#[inline(always)]
pub(super) fn encode(
    values: [f64; SIZE],
    format: Format,
    minexp: i32,
    writer: &mut BitWriter,
) -> [f64; SIZE] {
    let magnitude = |value: &f64| value.to_bits() & !SIGN;
    let largest = values.iter().map(magnitude).fold(0, u64::max);
    if largest > f64::MAX.to_bits() {
        let finite = values.map(|value| if value.is_finite() { value } else { 0.0 });
        return encode_finite(finite, format, minexp, writer);
    }
    if largest == 0 {
        writer.put(0, 1);
        return [0.0; SIZE];
    }
    encode_largest(values, f64::from_bits(largest), (format, minexp), writer)
}

#[cold]
fn encode_finite(
    values: [f64; SIZE],
    format: Format,
    minexp: i32,
    writer: &mut BitWriter,
) -> [f64; SIZE] {
    let largest = values
        .iter()
        .fold(0.0, |max: f64, value| max.max(value.abs()));
    encode_largest(values, largest, (format, minexp), writer)
}

#[inline(always)]
fn encode_largest(
    values: [f64; SIZE],
    largest: f64,
    (format, minexp): (Format, i32),
    writer: &mut BitWriter,
) -> [f64; SIZE] {
    let exponent = format.exponent(largest);
    let biased = exponent + format.bias();
    let kept = planes(exponent, format, minexp);
    if kept == 0 || biased == 0 {
        writer.put(0, 1);
        return [0.0; SIZE];
    }
    writer.put(1 | (biased as u64) << 1, 1 + format.exponent_bits);
    let scale = format.bits as i32 - 2 - exponent;
    let integers = values.map(|value| scaled(value, scale) as i64);
    let coefficients = forward(integers).map(|integer| to_negabinary(integer, format));
    let read = u64::MAX << (format.bits - kept);
    let coefficients = coefficients.map(|it| it & read);
    plane::write(
        coefficients.map(|it| it << (u64::BITS - format.bits)),
        kept,
        writer,
    );
    restored(coefficients, exponent, format)
}

/// Reads four values; any bits are values.
#[inline(always)]
pub(super) fn decode(reader: &mut BitReader, format: Format, minexp: i32) -> [f64; SIZE] {
    let head = reader.take(1);
    if head == 0 {
        return [0.0; SIZE];
    }
    let exponent = reader.take(format.exponent_bits) as i32 - format.bias();
    let kept = planes(exponent, format, minexp);
    let coefficients = plane::read(kept, reader);
    restored(
        coefficients.map(|it| it >> (u64::BITS - format.bits)),
        exponent,
        format,
    )
}

/// The values of the planes that were written.
#[inline(always)]
fn restored(coefficients: [u64; SIZE], exponent: i32, format: Format) -> [f64; SIZE] {
    let integers = coefficients.map(|coefficient| from_negabinary(coefficient, format));
    let scale = exponent - (format.bits as i32 - 2);
    inverse(integers, format)
        .map(|integer| format.round(scaled(format.round(integer as f64), scale)))
}

/// Bit planes to keep of a block with this exponent, so that what is cut off is below `2^minexp`.
fn planes(exponent: i32, format: Format, minexp: i32) -> u32 {
    let wanted = (exponent - minexp + GUARD_PLANES).max(0);
    format.bits.min(wanted.unsigned_abs())
}

/// `value * 2^exponent`, rounded at most once.
///
/// In two steps where `2^exponent` itself is too large or too small for a float.
#[inline(always)]
fn scaled(value: f64, exponent: i32) -> f64 {
    if (-1_022..=1_023).contains(&exponent) {
        return value * power_of_two(exponent);
    }
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

/// `2^exponent` for exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1_023) as u64) << 52)
}

/// The transform: a lifted approximation of the cosine transform's first four rows,
/// `(4 4 4 4, 5 1 -1 -5, -4 4 4 -4, -2 6 -6 2) / 16`.
#[inline(always)]
fn forward([mut x, mut y, mut z, mut w]: [i64; SIZE]) -> [i64; SIZE] {
    let average = |a: &mut i64, b: &mut i64| {
        *a = (*a + *b) >> 1;
        *b -= *a;
    };
    average(&mut x, &mut w);
    average(&mut z, &mut y);
    average(&mut x, &mut z);
    average(&mut w, &mut y);
    w += y >> 1;
    y -= w >> 1;
    [x, y, z, w]
}

/// Undoes [`forward`] up to the bits it shifts out, wrapping at the format's width.
#[inline(always)]
fn inverse([mut x, mut y, mut z, mut w]: [i64; SIZE], format: Format) -> [i64; SIZE] {
    let undo = |a: &mut i64, b: &mut i64| {
        *a = a.wrapping_add(*b);
        *b = b.wrapping_add(*b).wrapping_sub(*a);
    };
    y = format.wrap(y.wrapping_add(w >> 1));
    w = w.wrapping_sub(y >> 1);
    undo(&mut y, &mut w);
    undo(&mut z, &mut x);
    undo(&mut y, &mut z);
    undo(&mut w, &mut x);
    [x, y, z, w].map(|integer| format.wrap(integer))
}

fn to_negabinary(integer: i64, format: Format) -> u64 {
    let digits = (integer as u64).wrapping_add(NEGABINARY) ^ NEGABINARY;
    digits & u64::MAX >> (u64::BITS - format.bits)
}

fn from_negabinary(digits: u64, format: Format) -> i64 {
    format.wrap((digits ^ NEGABINARY).wrapping_sub(NEGABINARY) as i64)
}
