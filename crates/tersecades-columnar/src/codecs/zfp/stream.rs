//! A one-dimensional array as a stream of blocks, bounded by a tolerance.

use super::block;
use super::plane::SIZE;
use crate::bits::{BitReader, BitWriter, low_bits};

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

/// Values whose blocks a word marks.
pub(super) const MARKED: usize = SIZE * u64::BITS as usize;

/// Appends the stream of `values` to `out`, in whole 64-bit words.
///
/// What [`decode`] will make of it comes into `back`, of the same length. Values of
/// `Format::SINGLE` must be such that `f32` holds them. A value that is not finite is written as
/// zero: keep such values apart.
pub fn encode(values: &[f64], format: Format, tolerance: f64, out: &mut Vec<u8>, back: &mut [f64]) {
    encode_marked(values, format, tolerance, (out, back), |_, _| {});
}

/// As [`encode`]; `mark` is called for every 64 blocks with the first value of them and the blocks
/// that are not all zeros.
pub(super) fn encode_marked(
    values: &[f64],
    format: Format,
    tolerance: f64,
    target: (&mut Vec<u8>, &mut [f64]),
    mark: impl FnMut(usize, u64),
) {
    // Of a format known to the compiler, blocks are written without asking for it.
    match format {
        Format::SINGLE => encode_as(values, Format::SINGLE, tolerance, target, mark),
        _ => encode_as(values, Format::DOUBLE, tolerance, target, mark),
    }
}

#[inline(always)]
fn encode_as(
    values: &[f64],
    format: Format,
    tolerance: f64,
    (out, back): (&mut Vec<u8>, &mut [f64]),
    mut mark: impl FnMut(usize, u64),
) {
    let minexp = least_exponent(tolerance);
    let mut writer = BitWriter::new(out);
    let (mut last, mut repeated) = ([0; SIZE], None);
    back.fill(0.0);
    let parts = values.chunks(MARKED).zip(back.chunks_mut(MARKED));
    for (index, (values, back)) in parts.enumerate() {
        let used = used_blocks(values);
        mark(index * MARKED, used);
        let (mut left, mut next) = (used, 0);
        while left != 0 {
            let block = left.trailing_zeros();
            left &= left - 1;
            writer.put(0, block - next);
            next = block + 1;
            let start = block as usize * SIZE;
            match values[start..].first_chunk::<SIZE>() {
                Some(values) => {
                    let bits = values.map(f64::to_bits);
                    let restored = if bits == last {
                        let known =
                            *repeated.get_or_insert_with(|| Repeated::of(*values, format, minexp));
                        known.write(&mut writer)
                    } else {
                        (last, repeated) = (bits, None);
                        block::encode(*values, format, minexp, &mut writer)
                    };
                    back[start..start + SIZE].copy_from_slice(&restored);
                }
                None => {
                    let rest = padded(&values[start..]);
                    let restored = block::encode(rest, format, minexp, &mut writer);
                    back[start..].copy_from_slice(&restored[..values.len() - start]);
                }
            }
        }
        writer.put(0, values.len().div_ceil(SIZE) as u32 - next);
    }
    writer.finish();
}

/// A block that comes again: series that stand still have many.
#[derive(Clone, Copy)]
struct Repeated {
    /// Its bits, and how many they are.
    words: [u64; REPEATED_WORDS],
    length: u32,
    /// What it comes back as.
    restored: [f64; SIZE],
}

/// Words of the longest block: its head, and each of 64 planes in at most 7 bits.
const REPEATED_WORDS: usize = (1 + 11 + 64 * 7_usize).div_ceil(64);

impl Repeated {
    #[cold]
    fn of(values: [f64; SIZE], format: Format, minexp: i32) -> Self {
        let mut bytes = Vec::with_capacity(REPEATED_WORDS * size_of::<u64>());
        let mut writer = BitWriter::new(&mut bytes);
        let restored = block::encode(values, format, minexp, &mut writer);
        let length = writer.length() as u32;
        writer.finish();
        let mut words = [0; REPEATED_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Repeated {
            words,
            length,
            restored,
        }
    }

    fn write(&self, writer: &mut BitWriter) -> [f64; SIZE] {
        let mut left = self.length;
        for word in self.words {
            let count = left.min(u64::BITS);
            writer.put(word, count);
            left -= count;
            if left == 0 {
                break;
            }
        }
        self.restored
    }
}

/// The blocks of at most 64 that are not all zeros, as bits.
#[inline(always)]
fn used_blocks(values: &[f64]) -> u64 {
    let (whole, rest) = values.as_chunks::<SIZE>();
    let is_used = |block: &[f64]| {
        let bits = block.iter().fold(0, |any, value| any | value.to_bits());
        u64::from(bits << 1 != 0)
    };
    let blocks = whole.iter().enumerate();
    let used = blocks.fold(0, |used, (index, block)| used | is_used(block) << index);
    match rest {
        [] => used,
        rest => used | is_used(rest) << whole.len(),
    }
}

/// Fills `out` from the stream in `bytes`; bits that are missing read as zero.
pub fn decode(bytes: &[u8], format: Format, tolerance: f64, out: &mut [f64]) {
    match format {
        Format::SINGLE => decode_as(bytes, Format::SINGLE, tolerance, out),
        _ => decode_as(bytes, Format::DOUBLE, tolerance, out),
    }
}

#[inline(always)]
fn decode_as(bytes: &[u8], format: Format, tolerance: f64, out: &mut [f64]) {
    let minexp = least_exponent(tolerance);
    let mut reader = BitReader::new(bytes);
    let mut blocks = out.chunks_mut(SIZE);
    // The block before: its bits, where a peek holds them, and its values. Equal bits are equal
    // values, and series that stand still have many.
    let (mut known, mut known_bits, mut known_values) = (0, u64::MAX, [0.0; SIZE]);
    while blocks.len() > 0 {
        // A block of zeros is one bit, and where one is there are many.
        let (bits, held) = reader.peek_many();
        let zeros = (bits.trailing_zeros().min(held) as usize).min(blocks.len());
        blocks
            .by_ref()
            .take(zeros)
            .for_each(|block| block.fill(0.0));
        reader.pass(zeros as u32);
        if zeros == held as usize {
            continue;
        }
        let Some(out) = blocks.next() else { break };
        let (bits, held) = reader.peek_many();
        if (bits ^ known) & known_bits == 0 {
            reader.pass(known_bits.count_ones());
        } else {
            let start = reader.position();
            known_values = block::decode(&mut reader, format, minexp);
            let length = (reader.position() - start).min(u64::BITS as usize) as u32;
            (known, known_bits) = match length <= held {
                true => (bits, low_bits(length)),
                false => (0, u64::MAX),
            };
        }
        out.copy_from_slice(&known_values[..out.len()]);
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
