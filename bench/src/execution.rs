//! Every codec at work: comparing, summing and decoding the paper's integers from memory.
//!
//! ```text
//! set × scheme × {equal, greater, sum, decode} × {1, 2} threads
//!     → bytes a value, values a second, share of the read bandwidth in encoded bytes,
//!       ratio to decode-then-compute, ratio to the same on plain 32-bit values
//! ```
//! A row holds the bar when it reaches 75 % of the read bandwidth of the run or 40 G values/s.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, UInt32Array};
use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;

use crate::Options;
use crate::chunk::looked_at;
use crate::integer::{SETS, Set};
use crate::limits::read;
use crate::measure::{Timing, interleave};
use crate::report::{Done, Report};
use crate::split;

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

/// Rows of a set in the paper.
const PAPER_ROWS: usize = 100_000_000;

/// Largest share of the plain size at which a scheme is worth timing.
const USELESS: f64 = 1.6;

/// Prints the table.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
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
        "÷ decode",
        "÷ plain",
    ]);
    for set in SETS {
        run_set(set, options, bandwidth, report)?;
    }
    Ok(())
}

fn run_set(set: &Set, options: &Options, bandwidth: [f64; 2], report: &mut Report) -> Result<()> {
    let rows = options.scaled(PAPER_ROWS);
    let values = UInt32Array::from(set.values(rows));
    let plain = encode(&values, "plain")?;
    let mut asked = SCHEMES.to_vec();
    asked.retain(|scheme| options.queries.is_empty() || listed(options, scheme));
    for scheme in asked {
        let start = Instant::now();
        let Ok(chunks) = encode(&values, scheme) else {
            report.note(&format!("{} {scheme}: not known", set.name));
            continue;
        };
        let encoding_s = start.elapsed().as_secs_f64();
        let size: usize = chunks.iter().map(Chunk::byte_size).sum();
        let name = scheme.split('(').next().unwrap_or(scheme);
        let taken = chunks.iter().all(|chunk| chunk.codec().name() == name);
        if !taken || size as f64 > USELESS * 4.0 * rows as f64 {
            continue;
        }
        let at = (scheme, set.name.into());
        let rate = rows as f64 / encoding_s / 1e9;
        report.plain("integers_encode", at.clone(), rate, "G values/s");
        let ratio = 4.0 * rows as f64 / size as f64;
        report.plain("integers_ratio", at, ratio, "x");
        for threads in [1, 2] {
            let place = Place {
                set,
                scheme,
                threads,
                rows: rows as f64,
                bytes: size as f64,
                bandwidth: bandwidth[threads - 1],
            };
            measure(&place, &chunks, &plain, options, report)?;
        }
    }
    Ok(())
}

fn listed(options: &Options, scheme: &str) -> bool {
    options.queries.iter().any(|listed| listed == scheme)
}

/// The whole set under `scheme`, in chunks of a batch, each with memory of its own.
fn encode(values: &UInt32Array, scheme: &str) -> Result<Vec<Chunk>> {
    let scheme: Scheme = scheme.parse()?;
    let mut encoder = ColumnEncoder::new(&DataType::UInt32)?;
    encoder.aim(Goal {
        tier: Tier::Cold,
        ..Goal::default()
    });
    encoder.pin(scheme);
    let starts = (0..values.len()).step_by(BATCH_ROWS);
    let slice = |start: usize| values.slice(start, BATCH_ROWS.min(values.len() - start));
    starts
        .map(|start| {
            // Plain chunks keep the array, so all share the memory of the set, as they lie in it.
            let slice: ArrayRef = Arc::new(slice(start));
            encoder.encode_new(&slice)
        })
        .collect()
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
            &mut || compare(chunks, &equal, threads),
            &mut || decode_then(chunks, threads, |keys| mask(keys, key, 0)),
            &mut || compare(plain, &equal, threads),
        ],
    );
    let read = read_by(place, chunks, &equal);
    line(place, "equal", read, [direct, decoded, scan], report);
    let [direct, decoded, scan] = interleave(
        repetitions,
        [
            &mut || compare(chunks, &greater, threads),
            &mut || decode_then(chunks, threads, |keys| mask(keys, key + 1, u64::MAX - key)),
            &mut || compare(plain, &greater, threads),
        ],
    );
    let read = read_by(place, chunks, &greater);
    line(place, "greater", read, [direct, decoded, scan], report);
    let [direct, decoded, scan] = interleave(
        repetitions,
        [
            &mut || sum(chunks, threads),
            &mut || {
                decode_then(chunks, threads, |keys| {
                    black_box(add(keys));
                })
            },
            &mut || sum(plain, threads),
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

/// Encoded bytes that a comparison reads from memory: statistics answer for the others.
fn read_by(place: &Place<'_>, chunks: &[Chunk], predicate: &Predicate) -> f64 {
    let mut out = Selection::default();
    let looked_at = looked_at(chunks, |chunk, work| {
        chunk.compare(predicate, &Selection::all(chunk.rows()), &mut out, work);
    });
    match looked_at < FROM_MEMORY {
        true => 0.0,
        false => place.bytes * looked_at,
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
    let threads = place.threads;
    let x = format!("{}, {threads} thread(s)", place.set.name);
    report.timed(
        figure,
        (place.scheme, x.into()),
        &direct,
        Done {
            amount: place.rows / 1e9,
            unit: "G values/s",
            bytes,
            threads,
        },
    );
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
            format!("{:.2}", decoded.median_s / direct.median_s),
            format!("{:.2}", plain.median_s / direct.median_s),
        ],
        rate,
        "G values/s",
    );
}

/// Runs `work` on each chunk, the chunks split evenly among threads.
fn each<S: Default>(chunks: &[Chunk], threads: usize, work: impl Fn(&mut S, &Chunk) + Sync) {
    let all = |chunks: &[Chunk]| {
        let mut state = S::default();
        chunks.iter().for_each(|chunk| work(&mut state, chunk));
    };
    split::evenly(threads, chunks, all);
}

fn compare(chunks: &[Chunk], predicate: &Predicate, threads: usize) {
    type State = (Selection, Selection, Work);
    each(chunks, threads, |state: &mut State, chunk| {
        let (within, out, work) = state;
        within.set_all(chunk.rows());
        chunk.compare(predicate, within, out, work);
        black_box(out);
    });
}

fn sum(chunks: &[Chunk], threads: usize) {
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    each(chunks, threads, |state: &mut (Fold, Work), chunk| {
        let (total, work) = state;
        chunk.fold(asked, &Selection::all(chunk.rows()), total, work);
        black_box(total);
    });
}

/// Decodes unit by unit into a small buffer and hands it on.
fn decode_then(chunks: &[Chunk], threads: usize, then: impl Fn(&[u64]) + Sync) {
    each(chunks, threads, |values: &mut Values, chunk| {
        let unit = chunk.codec().unit_rows();
        for start in (0..chunk.rows()).step_by(unit) {
            values.reset(chunk.physical());
            let rows = start..chunk.rows().min(start + unit);
            chunk.codec().decode(chunk, rows, values);
            then(&values.keys);
        }
    });
}

fn mask(keys: &[u64], low: u64, span: u64) {
    let mut words = [0u64; BATCH_ROWS / 64];
    (kernels().u64.range_mask_flat)(keys, low, span, &mut words);
    black_box(&words);
}

fn add(keys: &[u64]) -> u128 {
    (kernels().u64.sum_flat)(keys)
}
