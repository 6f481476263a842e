//! One block of four values: common exponent, integers, transform, negabinary, bit planes.

use super::plane::{CODES, LONGEST, PLANES, SIZE};
use super::stream::Format;
use crate::bits::{BitReader, BitWriter};

/// `…101010`: adding and then flipping these bits turns two's complement into base -2.
const NEGABINARY: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// Bit planes beyond the tolerance that the transform's growth of errors asks for: two per
/// dimension, and two.
const GUARD_PLANES: i32 = 4;

/// Writes four values and answers what [`decode`] will make of them; one that is not finite, which
/// the format lacks, is written as zero.
pub(super) fn encode(
    values: [f64; SIZE],
    format: Format,
    minexp: i32,
    writer: &mut BitWriter,
) -> [f64; SIZE] {
    let values = values.map(|value| if value.is_finite() { value } else { 0.0 });
    let largest = values
        .iter()
        .fold(0.0, |max: f64, value| max.max(value.abs()));
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
    let mut significant = 0;
    for plane in (format.bits - kept..format.bits).rev() {
        let bit = |index: usize| (coefficients[index] >> plane & 1) << index;
        let code = CODES[significant][(bit(0) | bit(1) | bit(2) | bit(3)) as usize];
        writer.put(u64::from(code.bits), u32::from(code.length));
        significant = usize::from(code.significant);
    }
    let read = u64::MAX << (format.bits - kept);
    restored(coefficients.map(|it| it & read), exponent, format)
}

/// Reads four values; any bits are values.
pub(super) fn decode(reader: &mut BitReader, format: Format, minexp: i32) -> [f64; SIZE] {
    if reader.take(1) == 0 {
        return [0.0; SIZE];
    }
    let exponent = reader.take(format.exponent_bits) as i32 - format.bias();
    let mut coefficients = [0u64; SIZE];
    let mut significant = 0;
    for plane in (format.bits - planes(exponent, format, minexp)..format.bits).rev() {
        let read = PLANES[significant][reader.peek(LONGEST) as usize];
        reader.take(u32::from(read.length));
        significant = usize::from(read.significant);
        for (index, coefficient) in coefficients.iter_mut().enumerate() {
            *coefficient |= u64::from(read.bits >> index & 1) << plane;
        }
    }
    restored(coefficients, exponent, format)
}

/// The values of the planes that were written.
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
/// In two steps, as `2^exponent` itself may be too large or too small for a float.
fn scaled(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

/// `2^exponent` for exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1_023) as u64) << 52)
}

/// The transform: a lifted approximation of the cosine transform's first four rows,
/// `(4 4 4 4, 5 1 -1 -5, -4 4 4 -4, -2 6 -6 2) / 16`.
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
