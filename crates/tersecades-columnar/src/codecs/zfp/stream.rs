//! A one-dimensional array as a stream of blocks, bounded by a tolerance.

use super::block;
use super::plane::SIZE;
use crate::bits::{BitReader, BitWriter};

/// The float type of an array; values themselves travel as `f64`, which holds both exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bits of a value and of its integer form.
    pub(super) bits: u32,
    /// Bits of its exponent.
    pub(super) exponent_bits: u32,
}

impl Format {
    /// `f32`.
    pub const SINGLE: Self = Self {
        bits: 32,
        exponent_bits: 8,
    };

    /// `f64`.
    pub const DOUBLE: Self = Self {
        bits: 64,
        exponent_bits: 11,
    };

    /// What is added to an exponent to store it.
    pub(super) fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The smallest `e` with `value < 2^e`, at least that of the smallest normal number; one less
    /// for zero.
    pub(super) fn exponent(self, value: f64) -> i32 {
        if value == 0.0 {
            return -self.bias();
        }
        let biased = (value.to_bits() >> 52) as i32;
        (biased - 1_022).max(1 - self.bias())
    }

    /// The integer that the lowest bits of `integer` are in two's complement.
    pub(super) fn wrap(self, integer: i64) -> i64 {
        let above = i64::BITS - self.bits;
        integer << above >> above
    }

    /// The nearest value of this type.
    pub(super) fn round(self, value: f64) -> f64 {
        if self == Self::SINGLE {
            f64::from(value as f32)
        } else {
            value
        }
    }
}

/// Exponent of the largest power of two that is not above `tolerance`; the smallest that a float
/// has for a tolerance of zero or none.
fn least_exponent(tolerance: f64) -> i32 {
    const SMALLEST: i32 = -1_074;
    if tolerance.is_nan() || tolerance <= 0.0 {
        return SMALLEST;
    }
    let bits = tolerance.to_bits();
    match (bits >> 52) as i32 {
        0 => SMALLEST + bits.ilog2() as i32,
        biased => biased - 1_023,
    }
}

/// Appends the stream of `values` to `out`, in whole 64-bit words.
///
/// What [`decode`] will make of it comes into `back`, of the same length. Values of
/// `Format::SINGLE` must be such that `f32` holds them. A value that is not finite is written as
/// zero: keep such values apart.
pub fn encode(values: &[f64], format: Format, tolerance: f64, out: &mut Vec<u8>, back: &mut [f64]) {
    let minexp = least_exponent(tolerance);
    let mut writer = BitWriter::new(out);
    for (values, back) in values.chunks(SIZE).zip(back.chunks_mut(SIZE)) {
        let restored = block::encode(padded(values), format, minexp, &mut writer);
        back.copy_from_slice(&restored[..back.len()]);
    }
    writer.finish();
}

/// Fills `out` from the stream in `bytes`; bits that are missing read as zero.
pub fn decode(bytes: &[u8], format: Format, tolerance: f64, out: &mut [f64]) {
    let minexp = least_exponent(tolerance);
    let mut reader = BitReader::new(bytes);
    for out in out.chunks_mut(SIZE) {
        let values = block::decode(&mut reader, format, minexp);
        out.copy_from_slice(&values[..out.len()]);
    }
}

/// A block of one to four values, filled up so that the transform has little to say.
fn padded(values: &[f64]) -> [f64; SIZE] {
    match *values {
        [x] => [x; SIZE],
        [x, y] => [x, y, y, x],
        [x, y, z] => [x, y, z, x],
        [x, y, z, w, ..] => [x, y, z, w],
        [] => [0.0; SIZE],
    }
}
