//! What the machine can do: reading and copying memory, one thread and two.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::kernels::kernels;

use crate::Options;
use crate::measure::{Timing, interleave};
use crate::report::Report;

const GIB: usize = 1 << 30;

/// Prints the limits.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let items = options.scaled(2 * GIB / 8);
    let source = vec![1u64; items];
    let mut target = vec![2u64; items];
    let bytes = (items * 8) as f64;
    let [one, two] = interleave(
        options.repetitions,
        [&mut || read(&source, 1), &mut || read(&source, 2)],
    );
    add(report, "read, 1 thread", one, bytes);
    add(report, "read, 2 threads", two, bytes);
    let mut other = std::mem::take(&mut target);
    let [one] = interleave(options.repetitions, [&mut || copy(&source, &mut other, 1)]);
    add(report, "copy, 1 thread, read + written", one, 2.0 * bytes);
    let [two] = interleave(options.repetitions, [&mut || copy(&source, &mut other, 2)]);
    add(report, "copy, 2 threads, read + written", two, 2.0 * bytes);
    Ok(())
}

fn add(report: &mut Report, name: &str, timing: Timing, bytes: f64) {
    report.add(name, timing.rate(bytes) / 1e9, "GB/s");
}

/// Sums `source` on `threads` threads.
pub(crate) fn read(source: &[u64], threads: usize) {
    let part = source.len().div_ceil(threads).max(1);
    if threads == 1 {
        black_box((kernels().u64.sum_flat)(source));
        return;
    }
    std::thread::scope(|scope| {
        for part in source.chunks(part) {
            scope.spawn(|| black_box((kernels().u64.sum_flat)(part)));
        }
    });
}

fn copy(source: &[u64], target: &mut [u64], threads: usize) {
    let part = source.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (source, target) in source.chunks(part).zip(target.chunks_mut(part)) {
            scope.spawn(|| target.copy_from_slice(source));
        }
    });
    black_box(target);
}
