//! Values per second of the main kernels, for every instruction set this processor runs.

use std::hint::black_box;
use std::time::Instant;

use tersecades_columnar::kernels::{BLOCK_LANES, GROUPS, Kernels, Lane, levels};

use crate::Options;
use crate::measure::summarise;
use crate::report::{Done, Report};

/// Calls timed together.
const CALLS: usize = 2_000;

/// Timings of each level, in turns after a warm-up.
const REPETITIONS: usize = 7;

/// Prints one line per kernel and level.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(_options: &Options, report: &mut Report) -> tersecades_columnar::Result<()> {
    lanes::<u8>(report, "u8");
    lanes::<u16>(report, "u16");
    lanes::<u32>(report, "u32");
    lanes::<u64>(report, "u64");
    pairs(report);
    bitmaps(report);
    Ok(())
}

/// Times `call`, which goes through `values` values, with the kernels of each level.
fn time(report: &mut Report, name: &str, values: usize, mut call: impl FnMut(&Kernels)) {
    let levels = levels();
    let mut seconds = vec![Vec::new(); levels.len()];
    for repetition in 0..=REPETITIONS {
        for (level, seconds) in levels.iter().zip(&mut seconds) {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call(level));
            if repetition > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    let done = Done {
        amount: (CALLS * values) as f64 / 1e9,
        unit: "G values/s",
        bytes: 0.0,
        threads: 1,
    };
    for (level, seconds) in levels.iter().zip(seconds) {
        report.timed(
            "kernels",
            (level.name, name.into()),
            &summarise(seconds),
            done,
        );
    }
}

fn lanes<W: Lane>(report: &mut Report, lane: &str) {
    let values: Vec<W> = (0..BLOCK_LANES)
        .map(|row| W::from((row % 251) as u8))
        .collect();
    let values = black_box(values);
    let (low, span) = ([W::from(7); GROUPS], [W::from(90); GROUPS]);
    let mut words = [0u64; BLOCK_LANES / 64];
    time(
        report,
        &format!("{lane} range_mask"),
        BLOCK_LANES,
        |level| {
            (W::of(level).range_mask)(black_box(&values), &low, &span, &mut words);
            black_box(&words);
        },
    );
    let mut sums = [0u128; GROUPS];
    time(report, &format!("{lane} sum"), BLOCK_LANES, |level| {
        (W::of(level).sum)(black_box(&values), None, &mut sums);
        black_box(&sums);
    });
    let (mut min, mut max) = ([W::default(); GROUPS], [W::default(); GROUPS]);
    time(report, &format!("{lane} min_max"), BLOCK_LANES, |level| {
        (W::of(level).min_max)(black_box(&values), W::default(), None, &mut min, &mut max);
        black_box((&min, &max));
    });
}

fn pairs(report: &mut Report) {
    let wide: Vec<u64> = (0..BLOCK_LANES as u64)
        .map(|row| 1_000 + row % 251)
        .collect();
    let bases = [1_000u64; GROUPS];
    let mut bytes = [0u8; BLOCK_LANES];
    time(report, "u64 -> u8 narrow", BLOCK_LANES, |level| {
        (level.u64_u8.narrow)(black_box(&wide), 0, &bases, &mut bytes);
        black_box(&bytes);
    });
    let mut widened = [0u64; BLOCK_LANES];
    time(report, "u8 -> u64 widen", BLOCK_LANES, |level| {
        (level.u64_u8.widen)(black_box(&bytes), &bases, 0, &mut widened);
        black_box(&widened);
    });
    let (mut any, mut all) = ([0u8; 64], [0u8; 64]);
    let entries: Vec<u64> = (0..64 * GROUPS as u64).collect();
    time(report, "overlap (groups)", entries.len(), |level| {
        (level.overlap)(black_box(&entries), &entries, 7..=9, &mut any, &mut all);
        black_box((&any, &all));
    });
}

fn bitmaps(report: &mut Report) {
    let words: Vec<u64> = (0..1024u64).map(|word| 1 << (word % 64)).collect();
    time(report, "bitmap count (rows)", words.len() * 64, |level| {
        black_box((level.bitmap.count)(black_box(&words)));
    });
    let mut rows = Vec::with_capacity(words.len() * 64);
    let mut random = 0x5EED_u64;
    let mut sparse = |halvings: u32| {
        let mut next = || {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            random ^ random >> 32
        };
        (0..halvings).fold(u64::MAX, |word, _| word & next())
    };
    let mut scattered = |halvings| (0..1024).map(|_| sparse(halvings)).collect::<Vec<u64>>();
    let cases = [
        ("1 in 64, one a word", words),
        ("1 in 64", scattered(6)),
        ("1 in 16", scattered(4)),
        ("1 in 8", scattered(3)),
    ];
    for (share, words) in cases {
        time(
            report,
            &format!("bitmap to_rows, {share} (rows)"),
            words.len() * 64,
            |level| {
                rows.clear();
                (level.bitmap.to_rows)(black_box(&words), 0, &mut rows);
                black_box(&rows);
            },
        );
    }
}
