//! What the machine can do: reading, copying, adding and counting, one thread and two, memory and
//! caches.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::kernels::kernels;

use crate::Options;
use crate::measure::interleave;
use crate::report::{Done, Report};

const GIB: usize = 1 << 30;

/// Bytes a second that plain reading takes in, and how steadily.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bandwidth {
    /// One thread, two threads.
    pub(crate) bytes_per_s: [f64; 2],
    /// The spread of each.
    pub(crate) spread: [f64; 2],
}

impl Bandwidth {
    /// Of so many threads; of more than two as of two.
    pub(crate) fn of_threads(&self, threads: usize) -> f64 {
        self.bytes_per_s[threads.clamp(1, 2) - 1]
    }
}

/// Bytes read for [`bandwidth`].
const PROBE_BYTES: usize = GIB / 2;
const PROBES: usize = 15;

/// The read bandwidth.
pub(crate) fn bandwidth() -> Bandwidth {
    let words = vec![1u64; PROBE_BYTES / 8];
    let [one, two] = interleave(PROBES, [&mut || read(&words, 1), &mut || read(&words, 2)]);
    Bandwidth {
        bytes_per_s: [one, two].map(|timing| timing.rate(PROBE_BYTES as f64)),
        spread: [one.spread, two.spread],
    }
}

/// Prints the read bandwidth alone: what a recorded run of the rivals is related to.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run_bandwidth(_options: &Options, report: &mut Report) -> Result<()> {
    let found = bandwidth();
    for (index, rate) in found.bytes_per_s.into_iter().enumerate() {
        let name = format!("read, {} thread(s)", index + 1);
        report.add(name, rate / 1e9, "GB/s");
    }
    Ok(())
}

/// Where the bytes lie, and how many there are for each thread.
const PLACES: [(&str, usize); 4] = [
    ("L1", 24 << 10),
    ("L2", 1 << 20),
    ("L3", 48 << 20),
    ("memory", GIB),
];

/// Bytes that are gone through together, at least.
const PASS_BYTES: usize = GIB / 4;

/// Prints the limits.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    for (place, bytes) in PLACES {
        let items = options.rows.map_or(bytes, |rows| bytes.min(rows * 8)) / 8;
        for threads in [1, 2] {
            measure(place, items, threads, options.repetitions, report);
        }
    }
    Ok(())
}

/// Name, arrays that it touches, and what it does with them.
type Operation = (&'static str, f64, fn(&mut Arrays));

/// Arrays of one thread.
struct Arrays {
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
}

fn measure(place: &str, items: usize, threads: usize, repetitions: usize, report: &mut Report) {
    let passes = (PASS_BYTES / (items * 8)).max(1);
    // Of memory the threads share what one thread alone goes through.
    let items = if passes == 1 { items / threads } else { items };
    let arrays = || Arrays {
        a: vec![1; items],
        b: vec![2; items],
        c: vec![3; items],
    };
    let mut parts: Vec<Arrays> = (0..threads).map(|_| arrays()).collect();
    let all = (passes * items * 8 * threads) as f64;
    let operations: [Operation; 4] = [
        ("read", 1.0, |it| read(&it.a, 1)),
        ("copy", 2.0, |it| it.c.copy_from_slice(&it.a)),
        ("add", 3.0, |it| {
            (kernels().u64.add_past)(&it.a, &it.b, &mut it.c)
        }),
        ("count", 1.0, |it| {
            black_box((kernels().bitmap.count)(&it.b));
        }),
    ];
    for (name, arrays, operation) in operations {
        let [timing] = interleave(repetitions, [&mut || each(&mut parts, passes, operation)]);
        let done = Done {
            amount: arrays * all / 1e9,
            unit: "GB/s",
            bytes: arrays * all,
            threads,
        };
        let series = format!("{name}, {threads} thread(s)");
        report.timed("limit", (&series, place.into()), &timing, done);
    }
}

/// Runs `operation` `passes` times on each part, a thread for each.
fn each(parts: &mut [Arrays], passes: usize, operation: fn(&mut Arrays)) {
    let repeat = |part: &mut Arrays| {
        for _ in 0..passes {
            operation(part);
            black_box(&part.c);
        }
    };
    match parts {
        [part] => repeat(part),
        parts => std::thread::scope(|scope| {
            for part in parts {
                scope.spawn(|| repeat(part));
            }
        }),
    }
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
