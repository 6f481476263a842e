//! Packed blocks at every width up to 32 bits, from the second-level cache.
//!
//! Beside our kernels stand two others, both as this program is compiled: the `fastlanes` crate
//! unpacking its own layout, and BitWeaving/H comparing without unpacking. Neither picks an
//! instruction set at run time, so `RUSTFLAGS="-C target-cpu=native"` shows them at their best.
//!
//! Source: Li and Patel, "BitWeaving: Fast Scans for Main Memory Data Processing", SIGMOD 2013.

use std::hint::black_box;

use fastlanes::BitPacking;
use tersecades_columnar::Result;
use tersecades_columnar::kernels::{
    BLOCK_LANES, BLOCK_WORDS, BlockMask, Kernels, Lane, get_packed, levels,
};

use crate::Options;
use crate::data::Random;
use crate::measure::{Timing, interleave};
use crate::report::{Bar, Report};

/// Bytes of the packed blocks: half of a common second-level cache.
const PACKED_BYTES: usize = 512 << 10;
/// Passes over them timed together.
const PASSES: usize = 8;
/// Timings of each case.
const REPETITIONS: usize = 9;

/// Segments of BitWeaving side by side.
const SEGMENTS: usize = 8;

/// Prints one line per width, kernel and level.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(_options: &Options, report: &mut Report) -> Result<()> {
    macro_rules! widths {
        ($($lane:ident: $($width:literal)*;)*) => {
            $($(width::<$lane, $width, { 128 * $width / size_of::<$lane>() }>(report);)*)*
        };
    }
    widths!(
        u8: 1 2 3 4 5 6 7 8;
        u16: 9 10 11 12 13 14 15 16;
        u32: 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32;
    );
    Ok(())
}

/// Every case of one width; a block takes `LANES` lanes.
fn width<W: Lane + BitPacking, const WIDTH: usize, const LANES: usize>(report: &mut Report) {
    let mut random = Random::new(WIDTH as u64);
    let blocks = PACKED_BYTES / (128 * WIDTH);
    let packed: Vec<W> = (0..blocks * LANES)
        .map(|_| W::truncate(random.bits() >> 20 ^ random.bits() << 30))
        .collect();
    let packed = packed.as_chunks::<LANES>().0;
    let mut unpacked = [W::default(); BLOCK_LANES];
    let [rival] = timed([&mut || {
        for block in packed {
            W::unpack::<WIDTH, LANES>(black_box(block), &mut unpacked);
            black_box(&unpacked);
        }
    }]);
    let rate = |timing: Timing| timing.rate((PASSES * blocks * BLOCK_LANES) as f64) / 1e9;
    let rival = rate(rival);
    point(report, WIDTH, "fastlanes crate", "unpack", rival);
    let (above, equal) = weaving::<W, WIDTH, LANES>(packed);
    point(report, WIDTH, "BitWeaving/H", "above", rate(above));
    point(report, WIDTH, "BitWeaving/H", "equal", rate(equal));
    let all = levels();
    for level in &all[1..] {
        let [unpack, range_mask, sum] = ours::<W, WIDTH, LANES>(level, packed).map(rate);
        if level.name == all[all.len() - 1].name {
            let name = |kernel| format!("{WIDTH:>2} bits, {:<15} {kernel}", level.name);
            let bar = |bits: usize| Bar::AtLeast(if bits <= 8 { 40.0 } else { 0.0 });
            point(report, WIDTH, level.name, "range_mask", range_mask);
            point(report, WIDTH, level.name, "sum", sum);
            point(report, WIDTH, level.name, "unpack", unpack);
            report.judge(name("range_mask"), range_mask, "G values/s", bar(WIDTH));
            report.judge(name("sum"), sum, "G values/s", bar(WIDTH));
            report.judge(name("unpack"), unpack, "G values/s", Bar::AtLeast(rival));
            let weaving = rate(above);
            let winner = if range_mask < weaving {
                "BitWeaving/H"
            } else {
                "range_mask"
            };
            report.note(&format!("{WIDTH:>2} bits, compare: {winner} wins"));
        } else {
            point(report, WIDTH, level.name, "range_mask", range_mask);
            point(report, WIDTH, level.name, "sum", sum);
            point(report, WIDTH, level.name, "unpack", unpack);
        }
    }
}

fn point(report: &mut Report, width: usize, who: &str, kernel: &str, rate: f64) {
    let figure = match kernel {
        "sum" => "packed_sum",
        "unpack" => "packed_unpack",
        _ => "packed_compare",
    };
    let series = match kernel {
        "above" | "equal" => format!("{who} {kernel}"),
        _ => who.to_owned(),
    };
    report.plain(figure, (&series, width.into()), rate, "G values/s");
}

/// Each case run [`PASSES`] times a timing.
fn timed<const N: usize>(mut cases: [&mut dyn FnMut(); N]) -> [Timing; N] {
    let mut repeated = cases.each_mut().map(|case| {
        move || {
            for _ in 0..PASSES {
                case();
            }
        }
    });
    interleave(
        REPETITIONS,
        repeated.each_mut().map(|case| case as &mut dyn FnMut()),
    )
}

fn ours<W: Lane, const WIDTH: usize, const LANES: usize>(
    level: &Kernels,
    packed: &[[W; LANES]],
) -> [Timing; 3] {
    let kernels = W::packs(level);
    let width = WIDTH as u32;
    let (low, span) = above::<W>(width);
    let mut unpacked = [W::default(); BLOCK_LANES];
    let mut mask = [0; BLOCK_WORDS];
    timed([
        &mut || {
            for block in packed {
                (kernels.unpack)(black_box(block), width, &mut unpacked);
                black_box(&unpacked);
            }
        },
        &mut || {
            for block in packed {
                (kernels.range_mask)(black_box(block), width, low, span, &mut mask);
                black_box(&mask);
            }
        },
        &mut || {
            for block in packed {
                black_box((kernels.sum)(black_box(block), width, None));
            }
        },
    ])
}

/// The constant that codes are compared with.
fn constant(width: u32) -> u64 {
    (1 << width) / 3
}

/// The range above [`constant`], as low end and span.
fn above<W: Lane>(width: u32) -> (W, W) {
    let low = constant(width) + 1;
    (W::truncate(low), W::truncate((1 << width) - 1 - low))
}

/// Codes of `WIDTH` bits and a delimiter above each, in words of 64 bits.
///
/// A segment is `WIDTH + 1` words; code `t * (WIDTH + 1) + i` is field `t` of word `i`, so that
/// delimiters of all words, shifted to different places, make the answers of a segment in order.
struct Woven<const WIDTH: usize> {
    words: Vec<[u64; SEGMENTS]>,
}

impl<const WIDTH: usize> Woven<WIDTH> {
    const FIELD: usize = WIDTH + 1;
    const FIELDS: usize = 64 / Self::FIELD;
    const CODES: usize = Self::FIELDS * Self::FIELD;

    /// The word, the segment and the field of code `index`.
    fn place(index: usize) -> (usize, usize, usize) {
        let (segment, code) = (index / Self::CODES, index % Self::CODES);
        let word = segment / SEGMENTS * Self::FIELD + code % Self::FIELD;
        (word, segment % SEGMENTS, code / Self::FIELD)
    }

    fn new(codes: impl ExactSizeIterator<Item = u64>) -> Self {
        let groups = codes.len().div_ceil(Self::CODES * SEGMENTS);
        let mut words = vec![[0; SEGMENTS]; groups * Self::FIELD];
        for (index, code) in codes.enumerate() {
            let (word, segment, field) = Self::place(index);
            words[word][segment] |= code << (field * Self::FIELD);
        }
        Self { words }
    }

    /// `value` in every field.
    fn repeated(value: u64) -> u64 {
        (0..Self::FIELDS).fold(0, |word, field| word | value << (field * Self::FIELD))
    }

    /// One word of answers per segment, of which the lowest `CODES` bits count.
    fn scan(&self, out: &mut [[u64; SEGMENTS]], delimiter: impl Fn(u64) -> u64) {
        let delimiters = Self::repeated(1 << WIDTH);
        for (group, answers) in self.words.chunks_exact(Self::FIELD).zip(out) {
            let mut found = [0; SEGMENTS];
            for (place, words) in group.iter().enumerate() {
                for (found, &word) in found.iter_mut().zip(words) {
                    *found |= (delimiter(word) & delimiters) >> (WIDTH - place);
                }
            }
            *answers = found;
        }
    }

    /// Adding the complement of the constant carries into the delimiter of a larger code.
    fn above(&self, constant: u64, out: &mut [[u64; SEGMENTS]]) {
        let complement = Self::repeated(constant ^ ((1 << WIDTH) - 1));
        self.scan(out, |word| word.wrapping_add(complement));
    }

    /// Adding all ones carries into the delimiter of a code that differs.
    fn equal(&self, constant: u64, out: &mut [[u64; SEGMENTS]]) {
        let (constant, most) = (Self::repeated(constant), Self::repeated((1 << WIDTH) - 1));
        self.scan(out, |word| !((word ^ constant).wrapping_add(most)));
    }
}

/// BitWeaving on the same values, after a check that it answers as `range_mask` does.
fn weaving<W: Lane, const WIDTH: usize, const LANES: usize>(
    packed: &[[W; LANES]],
) -> (Timing, Timing) {
    let width = WIDTH as u32;
    let code = |row: usize| get_packed(&packed[row / BLOCK_LANES], width, row % BLOCK_LANES).into();
    let woven = Woven::<WIDTH>::new((0..packed.len() * BLOCK_LANES).map(code));
    let constant = constant(width);
    let mut larger = vec![[0; SEGMENTS]; woven.words.len() / Woven::<WIDTH>::FIELD];
    let mut same = larger.clone();
    let timings = timed([
        &mut || {
            woven.above(black_box(constant), &mut larger);
            black_box(&larger);
        },
        &mut || {
            woven.equal(black_box(constant), &mut same);
            black_box(&same);
        },
    ]);
    let (low, span) = above::<W>(width);
    check::<W, WIDTH, LANES>(packed, low, span, &larger);
    check::<W, WIDTH, LANES>(packed, W::truncate(constant), W::default(), &same);
    let [above, equal] = timings;
    (above, equal)
}

fn check<W: Lane, const WIDTH: usize, const LANES: usize>(
    packed: &[[W; LANES]],
    low: W,
    span: W,
    woven: &[[u64; SEGMENTS]],
) {
    let kernels = W::packs(tersecades_columnar::kernels::kernels());
    let mut mask: BlockMask = [0; BLOCK_WORDS];
    for (block, lanes) in packed.iter().enumerate() {
        (kernels.range_mask)(lanes, WIDTH as u32, low, span, &mut mask);
        for lane in 0..BLOCK_LANES {
            let index = block * BLOCK_LANES + lane;
            let (segment, bit) = (index / Woven::<WIDTH>::CODES, index % Woven::<WIDTH>::CODES);
            assert_eq!(
                woven[segment / SEGMENTS][segment % SEGMENTS] >> bit & 1,
                mask[lane / 64] >> (lane % 64) & 1,
                "{WIDTH} bits, value {index}"
            );
        }
    }
}
