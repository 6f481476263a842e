//! Numbers packed one behind the other, lowest bit first, as other formats write them.

use super::level::Level;

/// Widest number.
const WIDTH_MAX: u32 = 32;

/// Numbers of a group, which starts on a byte at any width.
pub(super) const GROUP: usize = 8;

/// Bytes that unpacking a group may touch: the group and a word past its last number's byte.
const WINDOW: usize = 40;

/// The steps of a level that read streams of bits.
pub(super) trait BitStream: Level {
    /// Unpacks whole groups from the start, as many as it can; the numbers unpacked.
    ///
    /// # Safety
    /// The processor has every feature of the level.
    #[inline(always)]
    unsafe fn unpack_groups(_bytes: &[u8], _width: u32, _out: &mut [u32]) -> usize {
        0
    }
}

/// What [`super::Kernels::unpack_stream`] does.
///
/// # Safety
/// The processor has every feature of `L`.
#[inline(always)]
pub(super) unsafe fn unpack<L: BitStream>(bytes: &[u8], width: u32, out: &mut [u32]) {
    assert_stream(bytes, width, out);
    // SAFETY: the caller promised the features of `L`.
    let done = unsafe { L::unpack_groups(bytes, width, out) };
    let bytes = &bytes[done / GROUP * width as usize..];
    UNPACK[width as usize](bytes, &mut out[done..]);
}

/// Asserts what every level relies on.
pub(super) fn assert_stream(bytes: &[u8], width: u32, out: &[u32]) {
    assert!(width <= WIDTH_MAX, "a number has at most 32 bits");
    let bits = out.len() * width as usize;
    assert!(bits.div_ceil(8) <= bytes.len(), "every number is there");
}

type Unpack = fn(&[u8], &mut [u32]);

/// By width.
const UNPACK: [Unpack; WIDTH_MAX as usize + 1] = [
    unpack_all::<0>,
    unpack_all::<1>,
    unpack_all::<2>,
    unpack_all::<3>,
    unpack_all::<4>,
    unpack_all::<5>,
    unpack_all::<6>,
    unpack_all::<7>,
    unpack_all::<8>,
    unpack_all::<9>,
    unpack_all::<10>,
    unpack_all::<11>,
    unpack_all::<12>,
    unpack_all::<13>,
    unpack_all::<14>,
    unpack_all::<15>,
    unpack_all::<16>,
    unpack_all::<17>,
    unpack_all::<18>,
    unpack_all::<19>,
    unpack_all::<20>,
    unpack_all::<21>,
    unpack_all::<22>,
    unpack_all::<23>,
    unpack_all::<24>,
    unpack_all::<25>,
    unpack_all::<26>,
    unpack_all::<27>,
    unpack_all::<28>,
    unpack_all::<29>,
    unpack_all::<30>,
    unpack_all::<31>,
    unpack_all::<32>,
];

fn unpack_all<const WIDTH: usize>(bytes: &[u8], out: &mut [u32]) {
    for (group, numbers) in out.chunks_mut(GROUP).enumerate() {
        let bytes = &bytes[group * WIDTH..];
        let found = match bytes.first_chunk::<WINDOW>() {
            Some(window) => unpack_group::<WIDTH>(window),
            None => {
                let mut window = [0; WINDOW];
                let length = bytes.len().min(WIDTH);
                window[..length].copy_from_slice(&bytes[..length]);
                unpack_group::<WIDTH>(&window)
            }
        };
        numbers.copy_from_slice(&found[..numbers.len()]);
    }
}

#[inline(always)]
fn unpack_group<const WIDTH: usize>(window: &[u8; WINDOW]) -> [u32; GROUP] {
    let mask = (1_u64 << WIDTH) - 1;
    std::array::from_fn(|index| {
        let bit = index * WIDTH;
        let word = window[bit / 8..].first_chunk().copied();
        let word = u64::from_le_bytes(word.unwrap_or_default());
        (word >> (bit % 8) & mask) as u32
    })
}

#[cfg(test)]
mod tests {
    use super::WIDTH_MAX;
    use crate::kernels::scalar;
    use crate::kernels::tests::{LENGTHS, Random, faster_levels};

    #[test]
    fn numbers_of_every_width_and_count_are_those_of_the_bits() {
        let mut random = Random(0xb175);
        for width in 0..=WIDTH_MAX {
            for length in LENGTHS.into_iter().chain([1_025]) {
                let needed = (length * width as usize).div_ceil(8);
                for spare in [0, 1, 64] {
                    let bytes: Vec<u8> = (0..needed + spare).map(|_| random.next() as u8).collect();
                    let mut expected = vec![0; length];
                    (scalar::KERNELS.unpack_stream)(&bytes, width, &mut expected);
                    for level in faster_levels() {
                        let mut out = vec![0; length];
                        (level.unpack_stream)(&bytes, width, &mut out);
                        assert_eq!(out, expected, "{} {width} {length}", level.name);
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_number_lies_in_the_lowest_bits() {
        let mut out = [0; 4];
        (scalar::KERNELS.unpack_stream)(&[0b1000_1000, 0b1100_0110], 4, &mut out);
        assert_eq!(out, [0b1000, 0b1000, 0b0110, 0b1100]);
    }
}
