//! What single cache lines of memory cost, where rows between them are passed over.
//!
//! Rows that pass a filter lie apart: of a column that is read at such rows, each takes a line of
//! its own, and how many lines a second there are is the limit, not how many bytes.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::kernels::prefetch_rows;

use crate::Options;
use crate::data::Random;
use crate::measure::interleave;
use crate::report::{Done, Report};
use crate::split;

/// Bytes that lines are spread over: more than caches hold.
const BYTES: usize = 1 << 30;

const LINE: usize = 64;

/// Lines that are asked for together, as of a chunk of 65,536 rows of which one in 128 passes.
const TOGETHER: usize = 512;

/// One line in so many is read, on average.
const EVERY: [usize; 6] = [1, 2, 3, 4, 8, 32];

/// Prints the figure.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let lines = options.rows.map_or(BYTES, |rows| rows * 8).min(BYTES) / LINE;
    let bytes = vec![1u8; lines * LINE];
    for threads in [1, 2] {
        for every in EVERY {
            let rows = ascending(lines, every);
            measure(&bytes, (&rows, every), threads, (options, report));
        }
    }
    Ok(())
}

fn measure(
    bytes: &[u8],
    (rows, every): (&[u32], usize),
    threads: usize,
    (options, report): (&Options, &mut Report),
) {
    let at_once = || split::evenly(threads, rows, |rows| read(bytes, rows));
    let asked_for = |rows: &[u32]| {
        rows.chunks(TOGETHER).for_each(|rows| {
            prefetch_rows(bytes, rows);
            read(bytes, rows);
        });
    };
    let timings = interleave(
        options.repetitions,
        [&mut || at_once(), &mut || {
            split::evenly(threads, rows, asked_for);
        }],
    );
    let done = Done {
        amount: rows.len() as f64 / 1e6,
        unit: "M lines/s",
        bytes: (rows.len() * LINE) as f64,
        threads,
    };
    for (way, timing) in ["read at once", "asked for first"].iter().zip(timings) {
        let series = format!("{way}, {threads} thread(s)");
        report.timed("single_lines", (&series, every.into()), &timing, done);
    }
}

/// The first byte of about one line in `every`, in order, at distances that no processor foresees.
fn ascending(lines: usize, every: usize) -> Vec<u32> {
    let mut random = Random::new(every as u64);
    let mut rows = Vec::with_capacity(lines / every + 1);
    let mut line = 0;
    while line < lines {
        rows.push((line * LINE) as u32);
        line += 1 + random.below(2 * every as u64 - 1) as usize;
    }
    rows
}

fn read(bytes: &[u8], rows: &[u32]) {
    let sum = rows.iter().fold(0u64, |sum, row| {
        sum + bytes.get(*row as usize).map_or(0, |byte| u64::from(*byte))
    });
    black_box(sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_ascend_and_are_as_many_as_asked_for() {
        for every in EVERY {
            let rows = ascending(1 << 14, every);
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
            let expected = (1 << 14) / every;
            assert!(rows.len().abs_diff(expected) <= expected / 20, "{every}");
        }
    }
}
