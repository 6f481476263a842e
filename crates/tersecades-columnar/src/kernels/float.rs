//! Floats by their bits: keys that sort as the values do, and sums that lose nothing to rounding.

use super::level::Steps;
use super::{WORD_LANES, assert_block};
use crate::types::float_key;

/// Sums side by side.
pub const FLOAT_SUMS: usize = 8;

/// Sums of floats, and what rounding lost of each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FloatSums {
    /// As additions gave them.
    pub sums: [f64; FLOAT_SUMS],
    /// What is to be added.
    pub lost: [f64; FLOAT_SUMS],
}

/// The kernels over bits of floats.
#[derive(Debug, Clone, Copy)]
pub struct FloatKernels {
    /// `(bits, out)`: the [`float_key`] of each double.
    ///
    /// Any number of them, as many as `out` has lanes.
    pub keys: fn(&[u64], &mut [u64]),
    /// `(bits, out)`: [`Self::keys`] of singles.
    pub single_keys: fn(&[u32], &mut [u64]),
    /// `(bits, out)`: adds double `i` to sum `i % 8`.
    ///
    /// Any number of them.
    pub sum: fn(&[u64], &mut FloatSums),
    /// `(bits, mask, out)`: [`Self::sum`] of a block, zero for doubles outside `mask`.
    ///
    /// # Shape
    /// That of block kernels with a bitmap.
    pub sum_masked: fn(&[u64], &[u64], &mut FloatSums),
}

/// The kernels of level `L`.
///
/// # Safety
/// No entry is called on a processor that lacks a feature of `L`.
pub(super) const unsafe fn floats<L: Steps<u64>>() -> FloatKernels {
    /// A call that runs with the features of `L`.
    macro_rules! at_level {
        ($call:expr) => {
            // SAFETY: the caller of `floats` promised the features of `L`.
            unsafe {
                L::run(
                    #[inline(always)]
                    || $call,
                )
            }
        };
    }
    FloatKernels {
        keys: |bits, out| at_level!(keys(bits, out)),
        single_keys: |bits, out| at_level!(single_keys(bits, out)),
        sum: |bits, out| at_level!(sum(bits, out)),
        sum_masked: |bits, mask, out| at_level!(sum_masked::<L>(bits, mask, out)),
    }
}

/// The definition, one value after the other.
pub(super) const SCALAR: FloatKernels = FloatKernels {
    keys: |bits, out| {
        assert_eq!(bits.len(), out.len(), "a key for each float");
        for (key, bits) in out.iter_mut().zip(bits) {
            *key = float_key(f64::from_bits(*bits));
        }
    },
    single_keys: |bits, out| {
        assert_eq!(bits.len(), out.len(), "a key for each float");
        for (key, bits) in out.iter_mut().zip(bits) {
            *key = float_key(f64::from(f32::from_bits(*bits)));
        }
    },
    sum: |bits, out| {
        for (index, bits) in bits.iter().enumerate() {
            add(out, index % FLOAT_SUMS, f64::from_bits(*bits));
        }
    },
    sum_masked: |bits, mask, out| {
        assert_block(bits.len(), Some(mask));
        for (index, bits) in bits.iter().enumerate() {
            if mask[index / WORD_LANES] >> (index % WORD_LANES) & 1 == 1 {
                add(out, index % FLOAT_SUMS, f64::from_bits(*bits));
            }
        }
    },
};

/// [`float_key`] without a branch.
#[inline(always)]
fn key(value: f64) -> u64 {
    // Adding zero makes negative zero positive.
    let bits = (value + 0.0).to_bits();
    let sign = (bits.cast_signed() >> 63).cast_unsigned();
    let key = bits ^ (sign | 1 << 63);
    if value.is_nan() { u64::MAX } else { key }
}

#[inline(always)]
fn keys(bits: &[u64], out: &mut [u64]) {
    assert_eq!(bits.len(), out.len(), "a key for each float");
    for (out, bits) in out.iter_mut().zip(bits) {
        *out = key(f64::from_bits(*bits));
    }
}

#[inline(always)]
fn single_keys(bits: &[u32], out: &mut [u64]) {
    assert_eq!(bits.len(), out.len(), "a key for each float");
    for (out, bits) in out.iter_mut().zip(bits) {
        *out = key(f64::from(f32::from_bits(*bits)));
    }
}

/// Adds `value` to sum `lane`.
///
/// # Source
/// Knuth's exact sum of two floats (TwoSum): six operations and no branch.
#[inline(always)]
fn add(out: &mut FloatSums, lane: usize, value: f64) {
    let known = out.sums[lane];
    let sum = known + value;
    let part = sum - known;
    out.lost[lane] += (known - (sum - part)) + (value - part);
    out.sums[lane] = sum;
}

#[inline(always)]
fn sum(bits: &[u64], out: &mut FloatSums) {
    let (groups, rest) = bits.as_chunks::<FLOAT_SUMS>();
    let mut sums = *out;
    for group in groups {
        for (lane, bits) in group.iter().enumerate() {
            add(&mut sums, lane, f64::from_bits(*bits));
        }
    }
    for (lane, bits) in rest.iter().enumerate() {
        add(&mut sums, lane, f64::from_bits(*bits));
    }
    *out = sums;
}

/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
unsafe fn sum_masked<L: Steps<u64>>(bits: &[u64], mask: &[u64], out: &mut FloatSums) {
    assert_block(bits.len(), Some(mask));
    let (words, rest) = bits.as_chunks::<WORD_LANES>();
    let mut kept = [0; WORD_LANES];
    for (word, keep) in words.iter().zip(mask) {
        // SAFETY: the caller promised the features of `L`.
        unsafe { L::select(word, *keep, 0, &mut kept) };
        sum(&kept, out);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD_LANES];
        last[..rest.len()].copy_from_slice(rest);
        // SAFETY: the caller promised the features of `L`.
        unsafe { L::select(&last, mask[words.len()], 0, &mut kept) };
        sum(&kept[..rest.len()], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::scalar;
    use crate::kernels::tests::{LENGTHS, Random, faster_levels};

    /// Bits of floats of every kind: numbers near each other, any bits, and the special ones.
    fn bits(random: &mut Random, length: usize) -> Vec<u64> {
        let special = [
            0.0,
            -0.0,
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE / 4.0,
            f64::MAX,
            f64::MIN,
        ];
        let kind = random.bits() % 3;
        let mut next = |_| match (kind, random.bits() % 16) {
            (1, _) => random.bits(),
            (2, 0) => special[random.bits() as usize % special.len()].to_bits(),
            _ => (random.bits() as i64 as f64 / 1e9).to_bits(),
        };
        (0..length).map(&mut next).collect()
    }

    /// The bits of sums: NaN of any kind is NaN.
    fn shown(sums: &FloatSums) -> Vec<u64> {
        let parts = sums.sums.iter().chain(&sums.lost);
        let one = |value: &f64| if value.is_nan() { f64::NAN } else { *value };
        parts.map(|value| one(value).to_bits()).collect()
    }

    #[test]
    fn keys_and_sums_are_those_of_one_value_after_the_other() {
        let mut random = Random(0xf10a7);
        for level in faster_levels() {
            for length in LENGTHS.into_iter().chain(0..70) {
                let doubles = bits(&mut random, length);
                let singles: Vec<u32> = (0..length).map(|_| random.bits() as u32).collect();
                let mask: Vec<u64> = (0..length.div_ceil(WORD_LANES))
                    .map(|word| [random.bits(), 0, u64::MAX][word % 3])
                    .collect();
                let all = |kernels: &FloatKernels| {
                    let mut keys = [vec![0; length], vec![0; length]];
                    (kernels.keys)(&doubles, &mut keys[0]);
                    (kernels.single_keys)(&singles, &mut keys[1]);
                    let mut sums = [FloatSums::default(); 2];
                    (kernels.sum)(&doubles, &mut sums[0]);
                    (kernels.sum)(&doubles, &mut sums[0]);
                    (kernels.sum_masked)(&doubles, &mask, &mut sums[1]);
                    (keys, sums.map(|sums| shown(&sums)))
                };
                let expected = all(&scalar::KERNELS.float);
                assert_eq!(all(&level.float), expected, "{} {length}", level.name);
            }
        }
    }
}
