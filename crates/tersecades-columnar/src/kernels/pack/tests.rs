//! Every level over packed blocks against the scalar definition, and that against bits.

use super::*;
use crate::kernels::tests::{Cut, Random, faster_levels};
use crate::kernels::{Kernels, levels, scalar};

const LENGTHS: [usize; 8] = [0, 1, 63, 64, 65, 500, 1023, 1024];
/// What a kernel must leave alone.
const UNTOUCHED: u64 = 0x5a5a_0123_4567_a5a5;

/// Values of `width` bits: one end, both ends in turn, or a mixture.
fn values<W: Cut>(random: &mut Random, width: u32, count: usize) -> Vec<W> {
    let most = if width == 0 {
        W::default()
    } else {
        ones(width)
    };
    let kind = random.next() % 6;
    let value = |random: &mut Random, index: usize| match kind {
        0 => most,
        1 if index.is_multiple_of(2) => most,
        1 => W::default(),
        _ => W::truncate(random.bits()) & most,
    };
    (0..count).map(|index| value(random, index)).collect()
}

fn block<W: Cut>(values: &[W]) -> [W; BLOCK_LANES] {
    let mut block = [W::default(); BLOCK_LANES];
    block[..values.len()].copy_from_slice(values);
    block
}

/// The packed block by its definition, bit by bit.
fn packed_bits<W: Cut>(values: &[W], width: u32) -> Vec<W> {
    let mut words = vec![0u64; packed_lanes::<W>(width)];
    for (index, &value) in values.iter().enumerate() {
        let (row, column) = (index / row_lanes::<W>(), index % row_lanes::<W>());
        for bit in 0..width {
            let place = row as u32 * width + bit;
            let word = (place / W::BITS) as usize * row_lanes::<W>() + column;
            let value: u64 = value.into();
            words[word] |= (value >> bit & 1) << (place % W::BITS);
        }
    }
    words.into_iter().map(W::truncate).collect()
}

fn for_each_block<W: Cut>(mut check: impl FnMut(&mut Random, &Kernels, u32, &[W])) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for level in faster_levels() {
        for width in 0..=W::BITS {
            for length in LENGTHS {
                let values = values::<W>(&mut random, width, length);
                check(&mut random, level, width, &values);
            }
        }
    }
}

fn packing<W: Cut>() {
    for_each_block::<W>(|random, level, width, values| {
        let expected = packed_bits(values, width);
        // Bits above the width do not count.
        let above = if width == W::BITS {
            0
        } else {
            u64::MAX << width
        };
        let dirty = |value: &W| *value ^ W::truncate(random.next() & above);
        let dirty: Vec<W> = values.iter().map(dirty).collect();
        for kernels in [W::packs(&scalar::KERNELS), W::packs(level)] {
            let mut packed = vec![W::truncate(UNTOUCHED); expected.len() + 3];
            (kernels.pack)(&dirty, width, &mut packed);
            let (written, rest) = packed.split_at(expected.len());
            assert_eq!(written, expected, "{} {width}", level.name);
            assert_eq!(rest, [W::truncate(UNTOUCHED); 3], "{} {width}", level.name);
            let mut back = [W::MAX; BLOCK_LANES];
            (kernels.unpack)(&packed, width, &mut back);
            assert_eq!(back, block(values), "{} {width}", level.name);
            let (mut keys, base) = ([1; BLOCK_LANES], random.bits());
            (kernels.unpack_keys)(written, width, base, &mut keys);
            assert_eq!(
                keys,
                back.map(|value| base.wrapping_add(value.into())),
                "{} {width}",
                level.name
            );
        }
        for (index, &value) in block(values).iter().enumerate() {
            assert_eq!(
                get_packed(&expected, width, index),
                value,
                "{width} {index}"
            );
        }
    });
}

fn ranges<W: Cut>() {
    for_each_block::<W>(|random, level, width, values| {
        let packed = packed_bits(values, width);
        let random_end = W::truncate(random.bits());
        let most = if width == 0 {
            W::default()
        } else {
            ones(width)
        };
        let one = W::truncate(1);
        for (low, span) in [
            (random_end, W::truncate(random.bits())),
            (random_end & most, W::truncate(random.bits()) & most),
            (W::default(), W::MAX),
            (W::MAX, W::MAX),
            (W::default(), W::default()),
            (most, W::default()),
            (most, one),
            (most.wrapping_add(one), W::MAX.wrapping_sub(one)),
            (W::MAX, one),
        ] {
            let mut answer = [UNTOUCHED; BLOCK_WORDS];
            (W::packs(level).range_mask)(&packed, width, low, span, &mut answer);
            let mut expected = [UNTOUCHED; BLOCK_WORDS];
            (W::packs(&scalar::KERNELS).range_mask)(&packed, width, low, span, &mut expected);
            assert_eq!(answer, expected, "{} {width} {low:?} {span:?}", level.name);
            for (lane, &value) in block(values).iter().enumerate() {
                let bit = answer[lane / 64] >> (lane % 64) & 1 == 1;
                assert_eq!(bit, value.wrapping_sub(low) <= span, "{width} {lane}");
            }
        }
    });
}

fn folds<W: Cut>() {
    for_each_block::<W>(|random, level, width, values| {
        let packed = packed_bits(values, width);
        let (truth, kernels) = (W::packs(&scalar::KERNELS), W::packs(level));
        let words: BlockMask = random.words(BLOCK_WORDS).try_into().expect("a block");
        for mask in [
            None,
            Some(&words),
            Some(&[0; BLOCK_WORDS]),
            Some(&[u64::MAX; BLOCK_WORDS]),
        ] {
            let name = (level.name, width, mask);
            let kept = block(values).into_iter().enumerate().filter(|(lane, _)| {
                mask.is_none_or(|mask| mask[lane / 64] >> (lane % 64) & 1 == 1)
            });
            let kept: Vec<u128> = kept.map(|(_, value)| value.into()).collect();
            assert_eq!((truth.sum)(&packed, width, mask), kept.iter().sum());
            let sum = (kernels.sum)(&packed, width, mask);
            assert_eq!(sum, (truth.sum)(&packed, width, mask), "{name:?}");
            let squares = (kernels.squares)(&packed, width, mask);
            assert_eq!(squares, (truth.squares)(&packed, width, mask), "{name:?}");
            let ends = (kernels.min_max)(&packed, width, mask);
            assert_eq!(ends, (truth.min_max)(&packed, width, mask), "{name:?}");
            if kept.is_empty() {
                assert_eq!(ends, (W::MAX, W::default()), "{name:?}");
            } else {
                assert_eq!(Some(ends.0.into()), kept.iter().min().copied(), "{name:?}");
                assert_eq!(Some(ends.1.into()), kept.iter().max().copied(), "{name:?}");
            }
        }
    });
}

fn prefix_sums<W: Cut>() {
    let mut random = Random(3);
    for level in levels() {
        for length in [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 5000] {
            for _ in 0..10 {
                let values = random.lanes::<W>(length);
                let start = W::truncate(random.bits());
                let (mut answer, mut sum) = (values.clone(), Into::<u128>::into(start));
                (W::of(level).prefix_sum)(&mut answer, start);
                for (index, &value) in values.iter().enumerate() {
                    sum += Into::<u128>::into(value);
                    let expected = W::truncate((sum & u128::from(u64::MAX)) as u64);
                    assert_eq!(answer[index], expected, "{} {length} {index}", level.name);
                }
            }
        }
    }
}

macro_rules! for_each_lane {
    ($($check:ident $name:ident)*) => {
        $(#[test]
        fn $name() {
            $check::<u8>();
            $check::<u16>();
            $check::<u32>();
            $check::<u64>();
        })*
    };
}

for_each_lane!(
    packing blocks_come_back
    ranges range_masks_match
    folds folds_match
    prefix_sums prefix_sums_match
);

#[test]
#[should_panic(expected = "a packed block")]
fn a_short_block_is_refused() {
    (levels()[1].packed_u16.unpack)(&[0; 127], 2, &mut [0; BLOCK_LANES]);
}

#[test]
#[should_panic(expected = "a packed block")]
fn a_width_beyond_the_lane_is_refused() {
    (levels()[1].packed_u8.sum)(&[0; 2048], 9, None);
}
