//! What the machine can do: reading, copying, adding and counting, one thread and two, memory and
//! caches.
//!
//! `MIMALLOC_ALLOW_LARGE_OS_PAGES=1` asks the system for huge pages, here as in every bench.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use tersecades_columnar::Result;
use tersecades_columnar::kernels::{Add, kernels};

use crate::Options;
use crate::measure::{Timing, interleave, summarise};
use crate::record::machine::cache_bytes;
use crate::report::{Done, Report};
use crate::split;

const GIB: usize = 1 << 30;

/// Bytes a second that plain reading takes in, and how steadily.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bandwidth {
    /// One thread, two threads.
    pub(crate) bytes_per_s: [f64; 2],
    /// The spread of each.
    pub(crate) spread: [f64; 2],
    /// The fastest reader of each.
    readers: [Reader; 2],
}

impl Bandwidth {
    /// Of so many threads; of more than two as of two.
    pub(crate) fn of_threads(&self, threads: usize) -> f64 {
        self.bytes_per_s[threads.clamp(1, 2) - 1]
    }
}

/// Bytes read for [`bandwidth`].
const PROBE_BYTES: usize = GIB / 2;
const PROBES: usize = 9;

/// Ways to read words. Which is fastest depends on the processor, the place and the threads, so all
/// take turns, and the limit is what the fastest reaches.
const READERS: [(&str, Reader); 4] = [
    ("four places", |words| (kernels().bitmap.union[0])(words)),
    ("eight places", |words| (kernels().bitmap.union[1])(words)),
    ("counting bits", |words| (kernels().bitmap.count)(words)),
    ("summing", |words| (kernels().u64.sum_flat)(words) as u64),
];

/// A way to read words; what it makes of them keeps the compiler from leaving it out.
type Reader = fn(&[u64]) -> u64;

/// Words that are read before those behind them: places that lie a large power of two apart share
/// banks of the memory, and a gibibyte in four of them is read at two thirds of the rate.
const PART_WORDS: usize = (1 << 20) / 8;

/// The read bandwidth at the time that something first asks for it: memory that nothing needs would
/// be in the peak of what is measured.
pub(crate) fn known_bandwidth() -> Bandwidth {
    static KNOWN: OnceLock<Bandwidth> = OnceLock::new();
    *KNOWN.get_or_init(bandwidth)
}

/// The read bandwidth.
pub(crate) fn bandwidth() -> Bandwidth {
    let words = vec![1u64; PROBE_BYTES / 8];
    let best = |threads| {
        let time = |reader| {
            let start = Instant::now();
            read_by(reader, &words, threads);
            start.elapsed().as_secs_f64()
        };
        fastest(PROBES, time)
    };
    let best = [best(1), best(2)];
    Bandwidth {
        bytes_per_s: best.each_ref().map(|(_, it)| it.rate(PROBE_BYTES as f64)),
        spread: best
            .each_ref()
            .map(|(_, timing)| timing.spread.unwrap_or(f64::NAN)),
        readers: best.map(|(index, _)| READERS[index].1),
    }
}

/// Which of [`READERS`] takes least, by medians of `repetitions` in which all take turns.
fn fastest(repetitions: usize, mut time: impl FnMut(Reader) -> f64) -> (usize, Timing) {
    let mut seconds = READERS.map(|_| Vec::new());
    for repetition in 0..=repetitions {
        for ((_, reader), seconds) in READERS.iter().zip(&mut seconds) {
            let taken = time(*reader);
            // The first one warms up.
            if repetition > 0 {
                seconds.push(taken);
            }
        }
    }
    let [first, rest @ ..] = seconds.map(summarise);
    let better = |best: (usize, Timing), it: (usize, Timing)| match it.1.median_s < best.1.median_s
    {
        true => it,
        false => best,
    };
    (1..).zip(rest).fold((0, first), better)
}

/// Bytes that are gone through together, at least.
const PASS_BYTES: usize = GIB / 2;

/// Where bytes lie.
struct Place {
    name: &'static str,
    /// Bytes of all arrays of an operation together.
    bytes: usize,
    /// Whether threads share the place, and the bytes in it.
    shared: bool,
}

/// Half of each cache, and memory.
fn places() -> [Place; 4] {
    let cache = |name, level, usual, shared| Place {
        name,
        bytes: cache_bytes(level).unwrap_or(usual) / 2,
        shared,
    };
    [
        cache("L1", 1, 32 << 10, false),
        cache("L2", 2, 1 << 20, false),
        cache("L3", 3, 32 << 20, true),
        Place {
            name: MEMORY,
            bytes: GIB,
            shared: true,
        },
    ]
}

const MEMORY: &str = "memory";

/// Prints the limits.
///
/// # Errors
/// None; the signature is that of every bench.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    for mut place in places() {
        if let Some(rows) = options.rows {
            place.bytes = place.bytes.min(rows * 8);
        }
        for threads in [1, 2] {
            measure(&place, threads, options.repetitions, report);
        }
    }
    Ok(())
}

/// A name, and what is done with the words of a thread.
type Operation = (&'static str, fn(&mut [u64]));

fn measure(place: &Place, threads: usize, repetitions: usize, report: &mut Report) {
    let bytes = place.bytes / if place.shared { threads } else { 1 };
    let passes = (PASS_BYTES / bytes).max(1);
    let mut parts = vec![vec![1u64; bytes / 8]; threads];
    let touched = (passes * bytes * threads) as f64;
    let done = Done {
        amount: touched / 1e9,
        unit: "GB/s",
        // A cache is not read from memory.
        bytes: if place.name == MEMORY { touched } else { 0.0 },
        threads,
    };
    let time = |reader: Reader| {
        let start = Instant::now();
        each(&mut parts, passes, |words| in_parts(reader, words));
        start.elapsed().as_secs_f64()
    };
    let (reader, timing) = fastest(repetitions, time);
    report.note(&format!("{}: fastest is {}", place.name, READERS[reader].0));
    let series = format!("read, {threads} thread(s)");
    report.timed("limit", (&series, place.name.into()), &timing, done);
    let add: fn(&mut [u64]) = match place.name {
        MEMORY => |words| add_thirds(words, kernels().u64.add_past),
        _ => |words| add_thirds(words, kernels().u64.add),
    };
    let operations: [Operation; 3] = [
        ("copy", copy_half),
        ("add", add),
        ("count", |words| {
            black_box((kernels().bitmap.count)(words));
        }),
    ];
    for (name, operation) in operations {
        let [timing] = interleave(repetitions, [&mut || each(&mut parts, passes, operation)]);
        let series = format!("{name}, {threads} thread(s)");
        report.timed("limit", (&series, place.name.into()), &timing, done);
    }
}

fn copy_half(words: &mut [u64]) {
    let (from, to) = words.split_at_mut(words.len() / 2);
    to[..from.len()].copy_from_slice(from);
}

/// Two thirds are added into the last one.
fn add_thirds(words: &mut [u64], add: Add<u64>) {
    let third = words.len() / 3;
    let (a, rest) = words.split_at_mut(third);
    let (b, sum) = rest.split_at_mut(third);
    add(a, b, &mut sum[..third]);
}

/// Runs `operation` `passes` times on each part, a thread for each.
fn each(parts: &mut [Vec<u64>], passes: usize, operation: impl Fn(&mut [u64]) + Sync) {
    let repeat = |part: &mut Vec<u64>| {
        for _ in 0..passes {
            operation(part);
            black_box(&part);
        }
    };
    split::each(parts, repeat);
}

/// Reads `source` on `threads` threads, as [`known_bandwidth`] found to be fastest.
pub(crate) fn read(source: &[u64], threads: usize) {
    let reader = known_bandwidth().readers[threads.clamp(1, 2) - 1];
    read_by(reader, source, threads);
}

fn read_by(reader: Reader, source: &[u64], threads: usize) {
    split::evenly(threads, source, |words| in_parts(reader, words));
}

fn in_parts(reader: Reader, words: &[u64]) {
    words.chunks(PART_WORDS).for_each(|part| {
        black_box(reader(part));
    });
}
