//! Packed blocks at every width up to 32 bits, from the second-level cache.
//!
//! ```text
//! width × level of kernels → ours: above, equal, sum, unpack
//!                            BitWeaving/H: above, equal; the `fastlanes` crate: unpack
//! ```
//! At each level the others are compiled for its instruction set, and all take turns.

mod target;
mod unpack;
mod verdict;
mod woven;

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::kernels::{
    BLOCK_LANES, BLOCK_WORDS, BlockMask, Kernels, Lane, get_packed, levels,
};

use crate::Options;
use crate::data::Random;
use crate::measure::{Middle, ratio, summarise, take_turns};
use crate::report::{Bar, Done, Report};
use target::{Baseline, Body, Target};
use unpack::{Unpack, Unpacking};
use verdict::Verdicts;
use woven::{Answers, Comparison, Scan, Woven};

/// Bytes of the packed blocks: half of a common second-level cache.
const PACKED_BYTES: usize = 512 << 10;
/// Passes over them timed together.
const PASSES: usize = 8;
/// Timings of each case.
const REPETITIONS: usize = 9;

/// Prints one line per width, kernel and level.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(_options: &Options, report: &mut Report) -> Result<()> {
    let mut verdicts = Verdicts::default();
    macro_rules! widths {
        ($($lane:ident: $($width:literal)*;)*) => {
            $($(
                width::<$lane, $width, { 128 * $width / size_of::<$lane>() }>(
                    report,
                    &mut verdicts,
                );
            )*)*
        };
    }
    widths!(
        u8: 1 2 3 4 5 6 7 8;
        u16: 9 10 11 12 13 14 15 16;
        u32: 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32;
    );
    verdicts.print(report);
    Ok(())
}

/// Every case of one width; a block takes `LANES` lanes.
fn width<W: Unpack, const WIDTH: usize, const LANES: usize>(
    report: &mut Report,
    verdicts: &mut Verdicts,
) {
    let mut random = Random::new(WIDTH as u64);
    let blocks = PACKED_BYTES / (128 * WIDTH);
    let packed: Vec<W> = (0..blocks * LANES)
        .map(|_| W::truncate(random.bits() >> 20 ^ random.bits() << 30))
        .collect();
    let blocks = Blocks::<W, WIDTH, LANES>::new(packed.as_chunks::<LANES>().0);
    let all = levels();
    for level in &all[1..] {
        let taken = at_level(level, &blocks);
        let values = (PASSES * blocks.packed.len() * BLOCK_LANES) as f64;
        taken.points(report, (WIDTH, level.name), values);
        if level.name == all[all.len() - 1].name {
            taken.judge(report, (WIDTH, level.name), values);
        }
        verdicts.add(report, (WIDTH, level.name), taken.beside_weaving());
    }
}

/// Packed blocks, and the same values woven.
struct Blocks<'a, W, const WIDTH: usize, const LANES: usize> {
    packed: &'a [[W; LANES]],
    woven: Woven<WIDTH>,
}

impl<'a, W: Lane, const WIDTH: usize, const LANES: usize> Blocks<'a, W, WIDTH, LANES> {
    /// Of `packed`, after a check that both forms answer alike.
    fn new(packed: &'a [[W; LANES]]) -> Self {
        let code = |row: usize| {
            get_packed(&packed[row / BLOCK_LANES], WIDTH as u32, row % BLOCK_LANES).into()
        };
        let woven = Woven::<WIDTH>::new((0..packed.len() * BLOCK_LANES).map(code));
        let blocks = Blocks { packed, woven };
        let mut answers = blocks.woven.answers();
        blocks.scan(Comparison::Above, &mut answers).run();
        blocks.check(above::<W>(WIDTH), &answers);
        blocks.scan(Comparison::Equal, &mut answers).run();
        blocks.check(equal::<W>(WIDTH), &answers);
        blocks
    }

    /// What BitWeaving does with the woven values.
    fn scan<'b>(&'b self, comparison: Comparison, out: &'b mut [Answers]) -> Scan<'b, WIDTH> {
        Scan {
            woven: &self.woven,
            comparison,
            constant: constant(WIDTH),
            out,
        }
    }

    fn check(&self, (low, span): (W, W), answers: &[Answers]) {
        let kernels = W::packs(tersecades_columnar::kernels::kernels());
        let mut mask: BlockMask = [0; BLOCK_WORDS];
        for (block, lanes) in self.packed.iter().enumerate() {
            (kernels.range_mask)(lanes, WIDTH as u32, low, span, &mut mask);
            for lane in 0..BLOCK_LANES {
                let index = block * BLOCK_LANES + lane;
                assert_eq!(
                    Woven::<WIDTH>::says(answers, index),
                    mask[lane / 64] >> (lane % 64) & 1 == 1,
                    "{WIDTH} bits, value {index}"
                );
            }
        }
    }
}

/// The constant that codes are compared with.
fn constant(width: usize) -> u64 {
    (1 << width) / 3
}

/// The range above [`constant`], as low end and span.
fn above<W: Lane>(width: usize) -> (W, W) {
    let low = constant(width) + 1;
    (W::truncate(low), W::truncate((1 << width) - 1 - low))
}

/// The range of [`constant`] alone.
fn equal<W: Lane>(width: usize) -> (W, W) {
    (W::truncate(constant(width)), W::default())
}

/// All cases at `level`, the others compiled for its instruction set.
fn at_level<W: Unpack, const WIDTH: usize, const LANES: usize>(
    level: &Kernels,
    blocks: &Blocks<'_, W, WIDTH, LANES>,
) -> Taken {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = (target::Avx2::detect(), target::Avx512::detect());
        match (level.name, wide) {
            ("avx2", (Some(target), _)) => return measure(target, level, blocks),
            ("avx512", (_, Some(target))) => return measure(target, level, blocks),
            _ => {}
        }
    }
    measure(Baseline, level, blocks)
}

/// The seconds of each repetition.
struct Taken {
    unpack: Vec<f64>,
    above: Vec<f64>,
    equal: Vec<f64>,
    sum: Vec<f64>,
    rival_unpack: Vec<f64>,
    woven_above: Vec<f64>,
    woven_equal: Vec<f64>,
}

fn measure<T: Target, W: Unpack, const WIDTH: usize, const LANES: usize>(
    target: T,
    level: &Kernels,
    blocks: &Blocks<'_, W, WIDTH, LANES>,
) -> Taken {
    let Blocks { packed, woven } = blocks;
    let kernels = W::packs(level);
    let width = WIDTH as u32;
    let mut unpacked = [W::default(); BLOCK_LANES];
    let mut rival_unpacked = unpacked;
    let masks = |(low, span): (W, W)| {
        let mut mask = [0; BLOCK_WORDS];
        move || {
            for block in *packed {
                (kernels.range_mask)(black_box(block), width, low, span, &mut mask);
                black_box(&mask);
            }
        }
    };
    let (mut larger, mut same) = (woven.answers(), woven.answers());
    let [
        unpack,
        above,
        equal,
        sum,
        rival_unpack,
        woven_above,
        woven_equal,
    ] = timed([
        &mut || {
            for block in *packed {
                (kernels.unpack)(black_box(block), width, &mut unpacked);
                black_box(&unpacked);
            }
        },
        &mut masks(above::<W>(WIDTH)),
        &mut masks(equal::<W>(WIDTH)),
        &mut || {
            for block in *packed {
                black_box((kernels.sum)(black_box(block), width, None));
            }
        },
        &mut || {
            target.run(Unpacking::<W, WIDTH, LANES> {
                packed,
                out: &mut rival_unpacked,
            });
        },
        &mut || target.run(blocks.scan(Comparison::Above, &mut larger)),
        &mut || target.run(blocks.scan(Comparison::Equal, &mut same)),
    ]);
    Taken {
        unpack,
        above,
        equal,
        sum,
        rival_unpack,
        woven_above,
        woven_equal,
    }
}

/// Each case run [`PASSES`] times a timing.
fn timed<const N: usize>(mut cases: [&mut dyn FnMut(); N]) -> [Vec<f64>; N] {
    let mut repeated = cases.each_mut().map(|case| {
        move || {
            for _ in 0..PASSES {
                case();
            }
        }
    });
    take_turns(
        REPETITIONS,
        repeated.each_mut().map(|case| case as &mut dyn FnMut()),
    )
}

impl Taken {
    /// A point for each case.
    fn points(&self, report: &mut Report, (width, level): (usize, &str), values: f64) {
        let done = Done {
            amount: values / 1e9,
            unit: "G values/s",
            bytes: 0.0,
            threads: 1,
        };
        for (figure, rival, seconds) in [
            ("packed_compare", "", &self.above),
            ("packed_compare", "BitWeaving/H, ", &self.woven_above),
            ("packed_equal", "", &self.equal),
            ("packed_equal", "BitWeaving/H, ", &self.woven_equal),
            ("packed_sum", "", &self.sum),
            ("packed_unpack", "", &self.unpack),
            ("packed_unpack", "fastlanes crate, ", &self.rival_unpack),
        ] {
            let timing = summarise(seconds.clone());
            let series = format!("{rival}{level}");
            report.timed(figure, (&series, width.into()), &timing, done);
        }
    }

    /// What our kernels have to reach.
    fn judge(&self, report: &mut Report, (width, level): (usize, &str), values: f64) {
        let rate = |seconds: &Vec<f64>| summarise(seconds.clone()).rate(values) / 1e9;
        let least = Bar::AtLeast(if width <= 8 { 40.0 } else { 0.0 });
        for (kernel, seconds, bar) in [
            ("range_mask", &self.above, least),
            ("sum", &self.sum, least),
            (
                "unpack",
                &self.unpack,
                Bar::AtLeast(rate(&self.rival_unpack)),
            ),
        ] {
            let name = format!("{width:>2} bits, {level:<15} {kernel}");
            report.judge(name, rate(seconds), "G values/s", bar);
        }
    }

    /// The time of BitWeaving in times of ours: above and equal.
    fn beside_weaving(&self) -> [(&'static str, Middle); 2] {
        [
            ("above", ratio(&self.woven_above, &self.above)),
            ("equal", ratio(&self.woven_equal, &self.equal)),
        ]
    }
}
