//! Every level against the scalar definition, on random and adversarial blocks.

#![allow(
    clippy::cast_possible_truncation,
    reason = "tests cut random bits to lanes"
)]

use super::*;

pub(super) const LENGTHS: [usize; 14] = [
    0, 1, 7, 63, 64, 65, 127, 128, 129, 500, 896, 1000, 1023, 1024,
];
const FLAT_LENGTHS: [usize; 11] = [0, 1, 63, 64, 65, 1023, 1024, 1025, 16_384, 16_385, 40_003];
const ROUNDS: usize = 24;
/// What a kernel must leave alone after the words that it writes.
const UNTOUCHED: u64 = 0x5a5a_0123_4567_a5a5;

/// Lanes that tests make from the lowest bits of a word.
pub(super) trait Cut: Lane {
    fn cut(bits: u64) -> Self;
}

macro_rules! cut {
    ($($lane:ident)*) => {
        $(impl Cut for $lane {
            fn cut(bits: u64) -> Self {
                bits as $lane
            }
        })*
    };
}

cut!(u8 u16 u32 u64);

/// A seeded xorshift generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Random bits, ends of every width, small numbers and their mirror images in equal parts.
    pub(super) fn bits(&mut self) -> u64 {
        const ENDS: [u64; 9] = [
            0,
            1,
            u64::MAX,
            u64::MAX - 1,
            1 << 63,
            255,
            256,
            65_535,
            u32::MAX as u64,
        ];
        let bits = self.next();
        match self.next() % 5 {
            0 => bits,
            1 => ENDS[bits as usize % ENDS.len()],
            2 => bits % 300,
            3 => u64::MAX - bits % 300,
            _ => bits % 70_000,
        }
    }

    /// A mixture, or one end everywhere.
    pub(super) fn lanes<W: Cut>(&mut self, count: usize) -> Vec<W> {
        match self.next() % 8 {
            0 => vec![W::MAX; count],
            1 => vec![W::default(); count],
            _ => (0..count).map(|_| W::cut(self.bits())).collect(),
        }
    }

    fn per_group<W: Cut>(&mut self) -> PerGroup<W> {
        std::array::from_fn(|_| W::cut(self.bits()))
    }

    fn flip<W: Cut>(&mut self) -> W {
        W::cut(if self.next().is_multiple_of(2) {
            0
        } else {
            1 << (W::BITS - 1)
        })
    }

    pub(super) fn words(&mut self, count: usize) -> Vec<u64> {
        let kind = self.next() % 7;
        let word = |random: &mut Self| match kind {
            0 => 0,
            1 => u64::MAX,
            2 => 0xaaaa_aaaa_aaaa_aaaa,
            3 => random.next() & random.next() & random.next() & random.next(),
            4 if !random.next().is_multiple_of(20) => 0,
            4 => 1 << (random.next() % 64),
            5 => random.next() | random.next(),
            _ => random.next(),
        };
        (0..count).map(|_| word(self)).collect()
    }
}

pub(super) fn faster_levels() -> Vec<&'static Kernels> {
    let levels = levels();
    assert_eq!(levels[0].name, "scalar");
    assert!(levels.len() > 1);
    levels[1..].to_vec()
}

fn for_each_case(lengths: &[usize], mut check: impl FnMut(&mut Random, &Kernels, usize)) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for level in faster_levels() {
        for &length in lengths {
            for _ in 0..ROUNDS {
                check(&mut random, level, length);
            }
        }
    }
}

fn range_masks<W: Cut>() {
    for_each_case(&LENGTHS, |random, level, length| {
        let values = random.lanes::<W>(length);
        let mut low = random.per_group::<W>();
        let mut span = random.per_group::<W>();
        (low[1], span[1]) = (W::default(), W::MAX);
        (low[2], span[2]) = (W::MAX, W::cut(2));
        let mut expected = vec![UNTOUCHED; 18];
        let mut answer = expected.clone();
        (W::of(&scalar::KERNELS).range_mask)(&values, &low, &span, &mut expected);
        (W::of(level).range_mask)(&values, &low, &span, &mut answer);
        assert_eq!(answer, expected, "{} {length}", level.name);
        assert!(
            answer[length.div_ceil(64)..]
                .iter()
                .all(|&word| word == UNTOUCHED)
        );
    });
    let lengths = LENGTHS.into_iter().chain(FLAT_LENGTHS);
    for_each_case(&lengths.collect::<Vec<_>>(), |random, level, length| {
        let values = random.lanes::<W>(length);
        let (low, span) = (random.per_group::<W>()[0], random.per_group::<W>()[0]);
        let mut expected = vec![UNTOUCHED; length.div_ceil(64) + 2];
        let mut answer = expected.clone();
        (W::of(&scalar::KERNELS).range_mask_flat)(&values, low, span, &mut expected);
        (W::of(level).range_mask_flat)(&values, low, span, &mut answer);
        assert_eq!(answer, expected, "{} {length}", level.name);
    });
}

fn based_range_masks<W: Cut>() {
    let lengths = LENGTHS.into_iter().chain([1_025, 2_048, 5_000]);
    for_each_case(&lengths.collect::<Vec<_>>(), |random, level, length| {
        let values = random.lanes::<W>(length);
        let widest = u64::MAX >> (64 - W::BITS);
        let ends = [random.bits(), random.bits()];
        let range = ends[0].min(ends[1])..=ends[0].max(ends[1]);
        // Bases near the ends of the range, so that lanes decide.
        let base = |random: &mut Random| match random.next() % 4 {
            0 => random.bits(),
            1 => ends[0].wrapping_sub(random.bits() % 400),
            2 => ends[1].wrapping_sub(random.bits() % 400),
            _ => ends[0].wrapping_add(random.bits() % 400),
        };
        let bases: Vec<u64> = (0..length.div_ceil(128))
            .map(|_| base(random).min(u64::MAX - widest))
            .collect();
        let (truth, table) = (W::of(&scalar::KERNELS), W::of(level));
        for (expected_by, kernel) in [
            (truth.range_mask_groups, table.range_mask_groups),
            (truth.range_mask_blocks, table.range_mask_blocks),
        ] {
            let mut expected = vec![UNTOUCHED; 80];
            let mut answer = expected.clone();
            expected_by(&values, &bases, range.clone(), &mut expected);
            kernel(&values, &bases, range.clone(), &mut answer);
            assert_eq!(answer, expected, "{} {length} {range:?}", level.name);
        }
    });
}

fn folds<W: Cut>() {
    for_each_case(&LENGTHS, |random, level, length| {
        let values = random.lanes::<W>(length);
        let mask = random.words(length.div_ceil(64));
        let truth = W::of(&scalar::KERNELS);
        let kernels = W::of(level);
        let flip = random.flip::<W>();
        for mask in [None, Some(&mask[..])] {
            let (mut expected, mut answer) = ([7; 8], [9; 8]);
            (truth.sum)(&values, mask, &mut expected);
            (kernels.sum)(&values, mask, &mut answer);
            assert_eq!(answer, expected, "sum {} {length}", level.name);
            let (squares, mut answer) = ((truth.moments)(&values, mask, &mut expected), [5; 8]);
            assert_eq!((kernels.moments)(&values, mask, &mut answer), squares);
            assert_eq!(answer, expected, "moments {} {length}", level.name);
            let (mut min, mut max) = ([W::cut(3); 8], [W::cut(3); 8]);
            let (mut least, mut most) = ([W::cut(5); 8], [W::cut(5); 8]);
            (truth.min_max)(&values, flip, mask, &mut min, &mut max);
            (kernels.min_max)(&values, flip, mask, &mut least, &mut most);
            assert_eq!((least, most), (min, max), "min_max {} {length}", level.name);
        }
    });
    for_each_case(&FLAT_LENGTHS, |random, level, length| {
        let values = random.lanes::<W>(length);
        let expected = (W::of(&scalar::KERNELS).sum_flat)(&values);
        assert_eq!(
            (W::of(level).sum_flat)(&values),
            expected,
            "{} {length}",
            level.name
        );
    });
}

fn pairs<T: Narrow<D> + Cut, D: Cut>() {
    for_each_case(&LENGTHS, |random, level, length| {
        let truth = T::pair(&scalar::KERNELS);
        let kernels = T::pair(level);
        let mut bases = random.per_group::<T>();
        (bases[0], bases[3]) = (T::default(), T::MAX);
        let flip = random.flip::<T>();
        let values = random.lanes::<T>(length);
        let mut expected = vec![D::cut(77); length + 3];
        let mut answer = expected.clone();
        (truth.narrow)(&values, flip, &bases, &mut expected);
        (kernels.narrow)(&values, flip, &bases, &mut answer);
        assert_eq!(answer, expected, "narrow {} {length}", level.name);
        try_narrows::<T, D>(random, level);
        let deltas = random.lanes::<D>(length);
        let mut expected = vec![T::cut(77); length + 3];
        let mut answer = expected.clone();
        (truth.widen)(&deltas, &bases, flip, &mut expected);
        (kernels.widen)(&deltas, &bases, flip, &mut answer);
        assert_eq!(answer, expected, "widen {} {length}", level.name);
    });
}

/// Groups that fit their base, that just do not, and that are anything.
fn try_narrows<T: Narrow<D> + Cut, D: Cut>(random: &mut Random, level: &Kernels) {
    let flip = random.flip::<T>();
    let bases = random.per_group::<T>();
    let mut values = random.lanes::<T>(BLOCK_LANES);
    for (group, lanes) in values.chunks_mut(GROUP_LANES).enumerate() {
        if !random.next().is_multiple_of(8) {
            let cap = u64::MAX >> (64 - D::BITS);
            for lane in lanes.iter_mut() {
                let delta = random.bits() & cap;
                *lane = bases[group].wrapping_add(T::cut(delta)) ^ flip;
            }
        }
        if random.next().is_multiple_of(4) {
            let odd = random.next() as usize % GROUP_LANES;
            lanes[odd] = bases[group].wrapping_sub(T::cut(1)) ^ flip;
        }
    }
    let run = |kernels: &PairKernels<T, D>| {
        let mut out = vec![D::cut(77); BLOCK_LANES];
        let (min, max) = ([D::cut(3); GROUPS], [D::cut(3); GROUPS]);
        let mut reach = Reach { min, max };
        let fits = (kernels.try_narrow)(&values, flip, &bases, &mut out, &mut reach);
        let right = |group: usize| fits >> group & 1 == 1;
        for group in (0..GROUPS).filter(|group| !right(*group)) {
            (reach.min[group], reach.max[group]) = (D::cut(0), D::cut(0));
            for lane in group * GROUP_LANES..(group + 1) * GROUP_LANES {
                let delta = (values[lane] ^ flip).wrapping_sub(bases[group]);
                if D::BITS >= T::BITS || delta > T::from(D::MAX) {
                    out[lane] = D::cut(0);
                }
            }
        }
        (fits, out, reach)
    };
    let expected = run(T::pair(&scalar::KERNELS));
    assert!(run(T::pair(level)) == expected, "try_narrow {}", level.name);
}

#[test]
fn range_masks_match() {
    range_masks::<u8>();
    range_masks::<u16>();
    range_masks::<u32>();
    range_masks::<u64>();
    based_range_masks::<u8>();
    based_range_masks::<u16>();
    based_range_masks::<u32>();
    based_range_masks::<u64>();
}

fn additions<W: Cut>() {
    let mut random = Random(0xadd);
    for level in levels() {
        let table = W::of(level);
        for length in LENGTHS.into_iter().chain(FLAT_LENGTHS) {
            let (a, b): (Vec<W>, Vec<W>) = (random.lanes(length + 3), random.lanes(length + 3));
            for (kernel, start) in [(table.add, 0), (table.add_past, 0), (table.add_past, 3)] {
                let sum = |lane: usize| a[lane].wrapping_add(b[lane]);
                let mut expected: Vec<W> = vec![W::cut(77); length + 3];
                let mut got = expected.clone();
                let rows = start..start + length;
                rows.clone().for_each(|lane| expected[lane] = sum(lane));
                kernel(&a[rows.clone()], &b[rows.clone()], &mut got[rows]);
                assert_eq!(got, expected, "{} {length} {start}", level.name);
            }
        }
    }
}

#[test]
fn additions_wrap_and_keep_to_their_slice() {
    additions::<u8>();
    additions::<u16>();
    additions::<u32>();
    additions::<u64>();
}

#[test]
fn folds_match() {
    folds::<u8>();
    folds::<u16>();
    folds::<u32>();
    folds::<u64>();
}

#[test]
fn pairs_match() {
    pairs::<u8, u8>();
    pairs::<u16, u8>();
    pairs::<u16, u16>();
    pairs::<u32, u8>();
    pairs::<u32, u16>();
    pairs::<u32, u32>();
    pairs::<u64, u8>();
    pairs::<u64, u16>();
    pairs::<u64, u32>();
    pairs::<u64, u64>();
}

#[test]
fn widen_undoes_narrow_where_nothing_saturates() {
    for level in levels() {
        let values: Vec<u64> = (0..1024).map(|lane| 1 << 63 | (lane % 200)).collect();
        let flip = 1 << 63;
        let (mut bytes, mut back) = (vec![0u8; 1024], vec![0u64; 1024]);
        (level.u64_u8.narrow)(&values, flip, &[0; 8], &mut bytes);
        (level.u64_u8.widen)(&bytes, &[0; 8], flip, &mut back);
        assert_eq!(back, values, "{}", level.name);
    }
}

#[test]
fn bitmaps_match() {
    let truth = &scalar::KERNELS.bitmap;
    for_each_case(&[0, 1, 7, 8, 9, 16, 33, 100], |random, level, length| {
        let a = random.words(length);
        let b = random.words(length);
        let kernels = &level.bitmap;
        for (expected, answer) in [
            (truth.and, kernels.and),
            (truth.and_not, kernels.and_not),
            (truth.or, kernels.or),
        ] {
            let (mut left, mut right) = (a.clone(), a.clone());
            expected(&mut left, &b);
            answer(&mut right, &b);
            assert_eq!(right, left, "{} {length}", level.name);
        }
        assert_eq!((kernels.count)(&a), (truth.count)(&a));
        let (mut expected, mut answer) = ([7; 8], [9; 8]);
        (truth.count_groups)(&a, &mut expected);
        (kernels.count_groups)(&a, &mut answer);
        assert_eq!(answer, expected);
        for (union, truth) in kernels.union.iter().zip(truth.union) {
            assert_eq!(union(&a), truth(&a));
            // Each word counts, wherever it stands.
            for at in 0..a.len() {
                let mut one = vec![0; a.len()];
                one[at] = 1 << (at % 64);
                assert_eq!(union(&one), one[at], "word {at} of {}", a.len());
            }
        }
        let (mut expected, mut rows) = (vec![42], vec![42]);
        (truth.to_rows)(&a, 1000, &mut expected);
        (kernels.to_rows)(&a, 1000, &mut rows);
        assert_eq!(rows, expected, "{} {length}", level.name);
        let (mut from_zero, mut back) = (Vec::new(), vec![UNTOUCHED; length]);
        (kernels.to_rows)(&a, 0, &mut from_zero);
        (kernels.from_rows)(&from_zero, &mut back);
        assert_eq!(back, a, "{} {length}", level.name);
    });
}

#[test]
fn rows_reach_the_last_position() {
    for level in levels() {
        let mut rows = Vec::new();
        (level.bitmap.to_rows)(&[0, u64::MAX], u32::MAX - 127, &mut rows);
        assert_eq!(
            rows,
            (u32::MAX - 63..=u32::MAX).collect::<Vec<_>>(),
            "{}",
            level.name
        );
    }
}

#[test]
fn overlaps_match() {
    for_each_case(&[0, 1, 7, 8, 9, 64, 511, 512], |random, level, length| {
        let pairs: Vec<_> = (0..length)
            .map(|_| (random.bits(), random.bits()))
            .collect();
        let bases: Vec<_> = pairs.iter().map(|&(a, b)| a.min(b)).collect();
        let maxima: Vec<_> = pairs.iter().map(|&(a, b)| a.max(b)).collect();
        let (low, high) = (random.bits(), random.bits());
        let bytes = length.div_ceil(8);
        let mut expected = (vec![1; bytes], vec![1; bytes]);
        let mut answer = (vec![2; bytes], vec![2; bytes]);
        let truth = scalar::KERNELS.overlap;
        truth(
            &bases,
            &maxima,
            low..=high,
            &mut expected.0,
            &mut expected.1,
        );
        (level.overlap)(&bases, &maxima, low..=high, &mut answer.0, &mut answer.1);
        assert_eq!(answer, expected, "{} {length}", level.name);
    });
}

#[test]
fn the_table_in_use_is_one_of_the_levels() {
    let picked = kernels().name;
    assert!(levels().iter().any(|level| level.name == picked));
    if let Ok(named) = std::env::var(LEVEL_VARIABLE)
        && levels().iter().any(|level| level.name == named)
    {
        assert_eq!(picked, named);
    }
}

#[test]
fn prefetch_takes_any_index() {
    prefetch(&[1u64, 2], 1);
    prefetch(&[1u64, 2], usize::MAX);
    prefetch::<u8>(&[], 0);
}

#[test]
#[should_panic(expected = "short bitmap")]
fn a_short_mask_is_refused() {
    (kernels().u8.sum)(&[1; 65], Some(&[1]), &mut [0; 8]);
}

#[test]
#[should_panic(expected = "at most")]
fn a_long_block_is_refused() {
    (kernels().u16.min_max)(&[1; 1025], 0, None, &mut [0; 8], &mut [0; 8]);
}
