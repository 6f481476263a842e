//! Selected 64-bit lanes moved to the front.
//!
//! ```text
//! lanes 50 60 70 80     bits 0 1 1 0  ─▶  60 70 . .     two are kept, what follows means nothing
//! ```

use super::WORD_LANES;
use super::level::{Level, Word};

/// Fewer lanes of a word than this are moved one by one.
pub(super) const ONE_BY_ONE_MAX: u32 = 12;

/// The steps of a level that move lanes.
pub(super) trait Compact: Level {
    /// Writes the lanes whose bit is set to the front of `out`; what follows means nothing.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn compact(lanes: &Word<u64>, bits: u64, out: &mut Word<u64>) {
        one_by_one(lanes, bits, out);
    }
}

/// The definition of [`Compact::compact`].
#[inline(always)]
pub(super) fn one_by_one(lanes: &Word<u64>, bits: u64, out: &mut Word<u64>) {
    let (mut rest, mut kept) = (bits, 0);
    while rest != 0 {
        out[kept % WORD_LANES] = lanes[rest.trailing_zeros() as usize % WORD_LANES];
        kept += 1;
        rest &= rest - 1;
    }
}

/// What [`super::BitmapKernels::compact`] answers.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn compact<L: Compact>(words: &[u64], lanes: &mut [u64]) -> usize {
    assert!(
        words.len() >= lanes.len().div_ceil(WORD_LANES),
        "short bitmap"
    );
    let (full, mut kept) = (lanes.len() / WORD_LANES, 0);
    for (index, &bits) in words[..full].iter().enumerate() {
        let start = index * WORD_LANES;
        if bits == u64::MAX {
            lanes.copy_within(start..start + WORD_LANES, kept);
        } else if bits != 0 {
            let (front, rest) = lanes.split_at_mut(start);
            let from = rest.first_chunk().unwrap_or(&[0; WORD_LANES]);
            match front[kept..].first_chunk_mut() {
                // SAFETY: the caller promised the features of `L`.
                Some(out) => unsafe { L::compact(from, bits, out) },
                // What is written would overlap what is read.
                None => {
                    let mut out = [0; WORD_LANES];
                    // SAFETY: the caller promised the features of `L`.
                    unsafe { L::compact(from, bits, &mut out) };
                    lanes[kept..kept + WORD_LANES].copy_from_slice(&out);
                }
            }
        }
        kept += bits.count_ones() as usize;
    }
    for index in full * WORD_LANES..lanes.len() {
        if words[full] >> (index % WORD_LANES) & 1 == 1 {
            lanes[kept] = lanes[index];
            kept += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use crate::kernels::scalar;
    use crate::kernels::tests::{LENGTHS, Random, faster_levels};

    #[test]
    fn kept_lanes_are_those_of_set_bits() {
        let mut random = Random(0xc0ca);
        for length in LENGTHS.into_iter().chain([4_099]) {
            let lanes: Vec<u64> = (0..length).map(|_| random.bits()).collect();
            let mut words = random.words(length.div_ceil(64) + 1);
            for density in 0..6 {
                // Few bits, many, none and all, word by word.
                for word in &mut words {
                    *word = match (density, random.bits() % 4) {
                        (0, _) | (5, 0) => random.bits(),
                        (1, _) => random.bits() & random.bits() & random.bits(),
                        (2, _) => random.bits() | random.bits() | random.bits(),
                        (3, _) | (5, 1) => u64::MAX,
                        (4, _) | (5, 2) => 0,
                        _ => 1 << (random.bits() % 64),
                    };
                }
                let mut expected = lanes.clone();
                let kept = (scalar::KERNELS.bitmap.compact)(&words, &mut expected);
                for level in faster_levels() {
                    let mut found = lanes.clone();
                    let count = (level.bitmap.compact)(&words, &mut found);
                    assert_eq!(count, kept, "{} {length} {density}", level.name);
                    assert_eq!(found[..kept], expected[..kept], "{} {length}", level.name);
                }
            }
        }
    }

    #[test]
    fn the_definition_keeps_the_order() {
        let mut lanes = vec![50, 60, 70, 80];
        let kept = (scalar::KERNELS.bitmap.compact)(&[0b0110], &mut lanes);
        assert_eq!(lanes[..kept], [60, 70]);
    }
}
