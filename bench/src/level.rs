//! Values per second of the main kernels, for every instruction set this processor runs.

use std::hint::black_box;

use tersecades_columnar::kernels::{BLOCK_LANES, GROUPS, Kernels, Lane, levels};

use crate::Options;
use crate::measure::interleave;
use crate::report::Report;

/// Calls timed together.
const CALLS: usize = 2_000;

/// Prints one line per kernel and level.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(_options: &Options, report: &mut Report) -> tersecades_columnar::Result<()> {
    for level in levels() {
        lanes::<u8>(level, report, "u8");
        lanes::<u16>(level, report, "u16");
        lanes::<u32>(level, report, "u32");
        lanes::<u64>(level, report, "u64");
        pairs(level, report);
        bitmaps(level, report);
    }
    Ok(())
}

fn time(report: &mut Report, level: &Kernels, name: &str, values: usize, mut call: impl FnMut()) {
    let [timing] = interleave(
        7,
        [&mut || {
            for _ in 0..CALLS {
                call();
            }
        }],
    );
    let rate = timing.rate((CALLS * values) as f64) / 1e9;
    report.plain("kernels", (level.name, name.into()), rate, "G values/s");
}

fn lanes<W: Lane>(level: &Kernels, report: &mut Report, lane: &str) {
    let kernels = W::of(level);
    let values: Vec<W> = (0..BLOCK_LANES)
        .map(|row| W::from((row % 251) as u8))
        .collect();
    let values = black_box(values);
    let (low, span) = ([W::from(7); GROUPS], [W::from(90); GROUPS]);
    let mut words = [0u64; BLOCK_LANES / 64];
    time(
        report,
        level,
        &format!("{lane} range_mask"),
        BLOCK_LANES,
        || {
            (kernels.range_mask)(black_box(&values), &low, &span, &mut words);
            black_box(&words);
        },
    );
    let mut sums = [0u128; GROUPS];
    time(report, level, &format!("{lane} sum"), BLOCK_LANES, || {
        (kernels.sum)(black_box(&values), None, &mut sums);
        black_box(&sums);
    });
    let (mut min, mut max) = ([W::default(); GROUPS], [W::default(); GROUPS]);
    time(
        report,
        level,
        &format!("{lane} min_max"),
        BLOCK_LANES,
        || {
            (kernels.min_max)(black_box(&values), W::default(), None, &mut min, &mut max);
            black_box((&min, &max));
        },
    );
}

fn pairs(level: &Kernels, report: &mut Report) {
    let wide: Vec<u64> = (0..BLOCK_LANES as u64)
        .map(|row| 1_000 + row % 251)
        .collect();
    let bases = [1_000u64; GROUPS];
    let mut bytes = [0u8; BLOCK_LANES];
    time(report, level, "u64 -> u8 narrow", BLOCK_LANES, || {
        (level.u64_u8.narrow)(black_box(&wide), 0, &bases, &mut bytes);
        black_box(&bytes);
    });
    let mut widened = [0u64; BLOCK_LANES];
    time(report, level, "u8 -> u64 widen", BLOCK_LANES, || {
        (level.u64_u8.widen)(black_box(&bytes), &bases, 0, &mut widened);
        black_box(&widened);
    });
    let (mut any, mut all) = ([0u8; 64], [0u8; 64]);
    let entries: Vec<u64> = (0..64 * GROUPS as u64).collect();
    time(report, level, "overlap (groups)", entries.len(), || {
        (level.overlap)(black_box(&entries), &entries, 7..=9, &mut any, &mut all);
        black_box((&any, &all));
    });
}

fn bitmaps(level: &Kernels, report: &mut Report) {
    let words: Vec<u64> = (0..1024u64).map(|word| 1 << (word % 64)).collect();
    time(
        report,
        level,
        "bitmap count (rows)",
        words.len() * 64,
        || {
            black_box((level.bitmap.count)(black_box(&words)));
        },
    );
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
            level,
            &format!("bitmap to_rows, {share} (rows)"),
            words.len() * 64,
            || {
                rows.clear();
                (level.bitmap.to_rows)(black_box(&words), 0, &mut rows);
                black_box(&rows);
            },
        );
    }
}
