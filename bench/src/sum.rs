//! Summing encoded values, against summing plain 64-bit ones.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::selection::Selection;

use crate::Options;
use crate::chunk::encoded;
use crate::data::timestamps;
use crate::measure::{Timing, interleave};
use crate::report::{Bar, Done, Report};
use crate::split;

fn sum_plain(batches: &[Vec<u64>]) {
    for values in batches {
        black_box((kernels().u64.sum_flat)(values));
    }
}

fn sum_direct(chunks: &[Chunk]) {
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    let (mut total, mut work) = (Fold::default(), Work::default());
    for chunk in chunks {
        let all = Selection::all(chunk.rows());
        chunk.fold(asked, &all, &mut total, &mut work);
    }
    black_box(total);
}

/// Prints the sum from memory on one thread and on two.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(1 << 30).next_multiple_of(BATCH_ROWS);
    let plain = vec![vec![3u64; BATCH_ROWS]; rows / BATCH_ROWS / 4];
    let chunks = encoded(timestamps(16 * BATCH_ROWS, 0, 3), rows)?;
    let late = encoded(timestamps(16 * BATCH_ROWS, 5, 3), rows)?;
    for threads in [1, 2] {
        let [wide, direct, patched] = interleave(
            options.repetitions,
            [
                &mut || split::evenly(threads, &plain, sum_plain),
                &mut || split::evenly(threads, &chunks, sum_direct),
                &mut || split::evenly(threads, &late, sum_direct),
            ],
        );
        let size = |chunks: &[Chunk]| chunks.iter().map(Chunk::byte_size).sum::<usize>();
        let plain_rows = plain.len() * BATCH_ROWS;
        for (series, timing, rows, bytes) in [
            ("plain u64", &wide, plain_rows, 8 * plain_rows),
            ("direct", &direct, rows, size(&chunks)),
            ("direct, 0.5 % late rows", &patched, rows, size(&late)),
        ] {
            let done = Done {
                amount: rows as f64 / 1e9,
                unit: "G rows/s",
                bytes: bytes as f64,
                threads,
            };
            report.timed("sum", (series, threads.into()), timing, done);
        }
        let ratio = |timing: &Timing| timing.rate(rows as f64) / wide.rate(plain_rows as f64);
        let name = format!("direct / plain u64, {threads} thread(s)");
        report.judge(name, ratio(&direct), "x", Bar::AtLeast(5.5));
        let name = format!("direct with late rows / plain u64, {threads} thread(s)");
        report.add(name, ratio(&patched), "x");
    }
    Ok(())
}
