//! Every codec at work: comparing, summing and decoding the paper's integers from memory.
//!
//! ```text
//! set × scheme × {encode, equal, greater, sum, decode} × {1, 2} threads
//!     → bytes a value, values a second, share of the read bandwidth in encoded bytes,
//!       ratio to decode-then-compute, ratio to the same on plain 32-bit values
//! ```
//! Columns of real data, as the chooser keeps them, come behind: see `real`.
//! A row holds the bar when it reaches 75 % of the read bandwidth of the run or 40 G values/s.

mod real;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, UInt32Array};
use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;

use crate::Options;
use crate::chunk::looked_at;
use crate::integer::work::{Way, add, bytes, compare, decode_then, encode, mask, sum, useful};
use crate::integer::{SETS, Set};
use crate::limits::read;
use crate::measure::{Timing, interleave, summarise};
use crate::report::{Done, Point, Report};

/// What is tried on every set; a scheme that does not accept a set is left out.
const SCHEMES: &[&str] = &[
    "plain",
    "constant",
    "base_delta",
    "frame_of_reference",
    "patched(frame_of_reference)",
    "sequence",
    "run_length",
    "number_dictionary",
    "bit_pack",
    "patched(bit_pack)",
    "number_dictionary(bit_pack)",
    "delta(bit_pack)",
    "delta(run_length)",
    "varint",
    "delta(varint)",
    "run_length(varint)",
    "pco",
    "lz4",
    "snappy",
    "zstd",
];

/// What `--queries` calls the columns of real data.
const REAL: &str = "real";

/// Threads that everything runs on.
const THREADS: [usize; 2] = [1, 2];

/// Rows of a set in the paper.
const PAPER_ROWS: usize = 100_000_000;

/// Prints the table.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let asked = |name: &str| {
        options.queries.is_empty() || options.queries.iter().any(|asked| asked == name)
    };
    let mut schemes = SCHEMES.to_vec();
    schemes.retain(|scheme| asked(scheme));
    if !schemes.is_empty() {
        integers(&schemes, options, report)?;
    }
    match asked(REAL) {
        true => real::run(options, report),
        false => Ok(()),
    }
}

/// The sets of the paper.
fn integers(schemes: &[&str], options: &Options, report: &mut Report) -> Result<()> {
    let words = vec![1u64; options.scaled(1 << 27)];
    let [one, two] = interleave(
        options.repetitions,
        [&mut || read(&words, 1), &mut || read(&words, 2)],
    );
    let bytes = (words.len() * 8) as f64;
    let bandwidth = [one.rate(bytes), two.rate(bytes)];
    drop(words);
    report.add("read bandwidth, 1 thread", bandwidth[0] / 1e9, "GB/s");
    report.add("read bandwidth, 2 threads", bandwidth[1] / 1e9, "GB/s");
    report.head(&[
        "set",
        "scheme",
        "B/value",
        "threads",
        "operation",
        "G values/s",
        "% of read",
        "x decoding first",
        "x plain",
    ]);
    for set in SETS {
        run_set(set, schemes, (options, bandwidth), report)?;
    }
    Ok(())
}

fn run_set(
    set: &Set,
    schemes: &[&str],
    (options, bandwidth): (&Options, [f64; 2]),
    report: &mut Report,
) -> Result<()> {
    let rows = options.scaled(PAPER_ROWS);
    let values: ArrayRef = Arc::new(UInt32Array::from(set.values(rows)));
    let plain = encode(&values, "plain".parse()?, 1)?;
    for &scheme in schemes {
        let parsed: Scheme = scheme.parse()?;
        let Ok(chunks) = encode(&values, parsed, 1) else {
            report.note(&format!("{} {scheme}: not known", set.name));
            continue;
        };
        if !useful(&chunks, scheme) {
            continue;
        }
        let size = bytes(&chunks);
        let ratio = 4.0 * rows as f64 / size;
        let at = (scheme, set.name.into());
        report.plain("integers_ratio", at, ratio, "x");
        let place = |threads: usize| Place {
            set,
            scheme,
            threads,
            rows: rows as f64,
            bytes: size,
            bandwidth: bandwidth[threads - 1],
        };
        let encoding = encoding(&values, parsed, options.repetitions.min(3))?;
        for (threads, timing) in THREADS.into_iter().zip(encoding) {
            encoded(&place(threads), &timing, report);
        }
        for threads in THREADS {
            measure(&place(threads), &chunks, &plain, options, report)?;
        }
    }
    Ok(())
}

/// Encoding on each number of threads, in turns after a warm-up.
fn encoding(values: &ArrayRef, scheme: Scheme, repetitions: usize) -> Result<[Timing; 2]> {
    let mut seconds = THREADS.map(|_| Vec::new());
    for repetition in 0..=repetitions {
        for (threads, seconds) in THREADS.into_iter().zip(&mut seconds) {
            let start = Instant::now();
            let chunks = encode(values, scheme, threads)?;
            let taken = start.elapsed().as_secs_f64();
            if repetition > 0 {
                seconds.push(taken);
            }
            drop(chunks);
        }
    }
    Ok(seconds.map(summarise))
}

/// Encoding reads plain values and writes encoded ones; plain ones are kept where they lie.
fn encoded(place: &Place<'_>, timing: &Timing, report: &mut Report) {
    let written = if place.scheme == "plain" {
        0.0
    } else {
        place.bytes
    };
    let done = Done {
        amount: place.rows / 1e9,
        unit: "G values/s",
        bytes: 4.0 * place.rows + written,
        threads: place.threads,
    };
    report.timed("integers_encode", (place.scheme, place.x()), timing, done);
}

/// Where a number belongs.
struct Place<'a> {
    set: &'a Set,
    scheme: &'a str,
    threads: usize,
    rows: f64,
    bytes: f64,
    bandwidth: f64,
}

impl Place<'_> {
    /// On the horizontal axis.
    fn x(&self) -> serde_json::Value {
        format!("{}, {} thread(s)", self.set.name, self.threads).into()
    }
}

fn measure(
    place: &Place<'_>,
    chunks: &[Chunk],
    plain: &[Chunk],
    options: &Options,
    report: &mut Report,
) -> Result<()> {
    let middle = i64::from(place.set.middle).into();
    let data_type = DataType::UInt32;
    let equal = Predicate::compare(&data_type, Comparison::Equal, &middle)?;
    let greater = Predicate::compare(&data_type, Comparison::Greater, &middle)?;
    let threads = place.threads;
    let key = u64::from(place.set.middle);
    let repetitions = options.repetitions.min(5);
    let [direct, decoded, scan] = interleave(
        repetitions,
        [
            &mut || compare(chunks, &equal, threads, Way::Direct),
            &mut || decode_then(chunks, threads, |keys| mask(keys, key, 0)),
            &mut || compare(plain, &equal, threads, Way::Direct),
        ],
    );
    let read = place.bytes * read_by(chunks, &equal);
    line(place, "equal", read, [direct, decoded, scan], report);
    let [direct, decoded, scan] = interleave(
        repetitions,
        [
            &mut || compare(chunks, &greater, threads, Way::Direct),
            &mut || decode_then(chunks, threads, |keys| mask(keys, key + 1, u64::MAX - key)),
            &mut || compare(plain, &greater, threads, Way::Direct),
        ],
    );
    let read = place.bytes * read_by(chunks, &greater);
    line(place, "greater", read, [direct, decoded, scan], report);
    let [direct, decoded, scan] = interleave(
        repetitions,
        [
            &mut || sum(chunks, threads, Way::Direct),
            &mut || {
                decode_then(chunks, threads, |keys| {
                    black_box(add(keys));
                })
            },
            &mut || sum(plain, threads, Way::Direct),
        ],
    );
    line(place, "sum", place.bytes, [direct, decoded, scan], report);
    let [direct, scan] = interleave(
        repetitions,
        [
            &mut || {
                decode_then(chunks, threads, |keys| {
                    black_box(keys);
                })
            },
            &mut || {
                decode_then(plain, threads, |keys| {
                    black_box(keys);
                })
            },
        ],
    );
    line(place, "decode", place.bytes, [direct, direct, scan], report);
    Ok(())
}

/// Least share of the values that are read from memory: fewer stay in the caches from run to run.
const FROM_MEMORY: f64 = 0.1;

/// The share of the bytes of `chunks` that a comparison reads from memory: statistics answer for
/// the others.
fn read_by(chunks: &[Chunk], predicate: &Predicate) -> f64 {
    let mut out = Selection::default();
    let looked_at = looked_at(chunks, |chunk, work| {
        chunk.compare(predicate, &Selection::all(chunk.rows()), &mut out, work);
    });
    match looked_at < FROM_MEMORY {
        true => 0.0,
        false => looked_at,
    }
}

fn line(place: &Place<'_>, operation: &str, bytes: f64, timings: [Timing; 3], report: &mut Report) {
    let [direct, decoded, plain] = timings;
    let rate = direct.rate(place.rows) / 1e9;
    let share = direct.rate(bytes) / place.bandwidth;
    let figure = match operation {
        "equal" => "integers_equal",
        "greater" => "integers_greater",
        "sum" => "integers_sum",
        _ => "integers_decode",
    };
    let [of_decoded, of_plain] =
        [decoded, plain].map(|other: Timing| other.median_s / direct.median_s);
    let beside_plain = format!("{of_plain:.2} x plain");
    report.point(&Point {
        figure,
        series: place.scheme,
        x: place.x(),
        value: rate,
        unit: "G values/s",
        spread: direct.spread,
        share: (bytes > 0.0).then_some(share),
        note: Some(match operation {
            "decode" => beside_plain,
            _ => format!("{of_decoded:.2} x decoding first, {beside_plain}"),
        }),
    });
    let holds = share >= 0.75 || rate >= 40.0;
    report.row(
        &[
            place.set.name.to_owned(),
            place.scheme.to_owned(),
            format!("{:.3}", place.bytes / place.rows),
            place.threads.to_string(),
            operation.to_owned(),
            format!("{rate:.2}"),
            format!("{:.0}{}", share * 100.0, if holds { " ✓" } else { "" }),
            format!("{of_decoded:.2}"),
            format!("{of_plain:.2}"),
        ],
        rate,
        "G values/s",
    );
}
