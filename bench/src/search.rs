//! Searching encoded values for a constant, against a bare loop over as many plain bytes.
//!
//! The loop is the best that any layout with one byte a value can do without an index: it reads
//! each byte once and writes the bitmap. Both sides reuse one small output.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::block::{BLOCK_ROWS, block_count, block_rows};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Work, compare_decoded};
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;

use crate::Options;
use crate::chunk::{GAP, dense_values, encode, encoded, encoded_as, gapped_values};
use crate::data::{slices, timestamps};
use crate::limits::read;
use crate::measure::{Timing, interleave};
use crate::report::{Bar, Done, Report};
use crate::split;

/// Prints search from memory and from cache.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    from_memory(options, report)?;
    from_cache(report)
}

fn from_memory(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(1 << 30).next_multiple_of(BATCH_ROWS);
    // Plain bytes lie as the chunks do, one allocation per batch, so pages favour neither side.
    let batch: Vec<u8> = (0..BATCH_ROWS).map(|row| (row * 37 % 251) as u8).collect();
    let bytes = vec![batch; rows / BATCH_ROWS];
    let dense = encoded(dense_values(), rows)?;
    let gapped = encoded(gapped_values(), rows)?;
    let sorted_values = timestamps(16 * BATCH_ROWS, 0, 3);
    let sorted = encoded(sorted_values, rows)?;
    let words = vec![1u64; rows / 8];
    let (everywhere, absent) = (equal(100)?, equal(10 * GAP + GAP / 2)?);
    let present = equal(crate::data::START_MS + 5_000)?;
    let mut search = Search::default();
    let (mut second, mut third) = (Search::default(), Search::default());
    let [limit, plain, full, skipping, known] = interleave(
        options.repetitions,
        [
            &mut || read(&words, 1),
            &mut || scan_bytes(&bytes),
            &mut || search.all(&dense, &everywhere),
            &mut || second.all(&gapped, &absent),
            &mut || third.all(&sorted, &present),
        ],
    );
    report.add("read bandwidth", limit.rate(rows as f64) / 1e9, "GB/s");
    let size = |chunks: &[Chunk]| chunks.iter().map(Chunk::byte_size).sum::<usize>();
    for (series, timing, bytes) in [
        ("Char", &plain, rows),
        ("direct, nothing to skip", &full, size(&dense)),
        ("direct, blocks to skip", &skipping, 0),
        ("direct, sorted", &known, 0),
    ] {
        searched(report, (series, 1), timing, (rows, bytes));
    }
    decoded(options, &dense, report);
    two_threads(options, [&dense, &gapped, &sorted], &bytes, report)?;
    drop((dense, gapped, sorted));
    let ratio = |ours: &Timing| plain.median_s / ours.median_s;
    report.judge(
        "nothing skippable / byte loop",
        ratio(&full),
        "x",
        Bar::AtLeast(0.8),
    );
    report.judge(
        "blocks skippable / byte loop",
        ratio(&skipping),
        "x",
        Bar::AtLeast(13.0),
    );
    report.judge("sorted / byte loop", ratio(&known), "x", Bar::AtLeast(13.0));
    one_base(options, &bytes, report)
}

/// A rate of the figure, of so many rows from so many bytes.
fn searched(
    report: &mut Report,
    (series, threads): (&str, usize),
    timing: &Timing,
    (rows, bytes): (usize, usize),
) {
    let done = Done {
        amount: rows as f64 / 1e9,
        unit: "G rows/s",
        bytes: bytes as f64,
        threads,
    };
    report.timed("search", (series, threads.into()), timing, done);
}

/// Of the chunks, one in this many is decoded first: that takes much longer.
const DECODED_SHARE: usize = 16;

/// Plain words, and words that are decoded first.
fn decoded(options: &Options, dense: &[Chunk], report: &mut Report) {
    let part: Vec<&Chunk> = dense.iter().step_by(DECODED_SHARE).collect();
    let rows = part.len() * BATCH_ROWS;
    let batch: Vec<u64> = (0..BATCH_ROWS as u64).map(|row| row * 37 % 251).collect();
    let words = vec![batch; part.len()];
    for threads in [1, 2] {
        let [wide, slow] = interleave(
            options.repetitions,
            [
                &mut || {
                    split::evenly(threads, &words, |batches| {
                        batches.iter().for_each(|batch| scan_plain(batch, 100));
                    });
                },
                &mut || {
                    split::evenly(threads, &part, |chunks| {
                        let mut values = Values::default();
                        for chunk in chunks {
                            decode_and_scan(chunk, &mut values, 100);
                        }
                    });
                },
            ],
        );
        let bytes: usize = part.iter().map(|chunk| chunk.byte_size()).sum();
        searched(report, ("Long", threads), &wide, (rows, 8 * rows));
        let name = "CharCompr (decode, compare)";
        searched(report, (name, threads), &slow, (rows, bytes));
    }
}

/// The bare loop and the direct searches on two threads.
fn two_threads(
    options: &Options,
    columns: [&Vec<Chunk>; 3],
    bytes: &[Vec<u8>],
    report: &mut Report,
) -> Result<()> {
    let keys = [100, 10 * GAP + GAP / 2, crate::data::START_MS + 5_000];
    let keys = keys.map(equal);
    let [everywhere, absent, present] = keys;
    let predicates = [everywhere?, absent?, present?];
    let run = |index: usize| {
        split::evenly(2, columns[index], |chunks: &[Chunk]| {
            Search::default().all(chunks, &predicates[index]);
        });
    };
    let [plain, full, skipping, known] = interleave(
        options.repetitions,
        [
            &mut || split::evenly(2, bytes, scan_bytes),
            &mut || run(0),
            &mut || run(1),
            &mut || run(2),
        ],
    );
    let rows = bytes.len() * BATCH_ROWS;
    let size: usize = columns[0].iter().map(Chunk::byte_size).sum();
    for (series, timing, bytes) in [
        ("Char", &plain, rows),
        ("direct, nothing to skip", &full, size),
        ("direct, blocks to skip", &skipping, 0),
        ("direct, sorted", &known, 0),
    ] {
        searched(report, (series, 2), timing, (rows, bytes));
    }
    Ok(())
}

/// The same with one base a block instead of eight.
fn one_base(options: &Options, bytes: &[Vec<u8>], report: &mut Report) -> Result<()> {
    const CODEC: &str = "frame_of_reference";
    let rows = bytes.len() * BATCH_ROWS;
    let dense = encoded_as(CODEC, dense_values(), rows)?;
    let gapped = encoded_as(CODEC, gapped_values(), rows)?;
    let (everywhere, absent) = (equal(100)?, equal(10 * GAP + GAP / 2)?);
    let (mut first, mut second) = (Search::default(), Search::default());
    let [plain, full, skipping] = interleave(
        options.repetitions,
        [
            &mut || scan_bytes(bytes),
            &mut || first.all(&dense, &everywhere),
            &mut || second.all(&gapped, &absent),
        ],
    );
    let ratio = |ours: &Timing| plain.median_s / ours.median_s;
    report.judge(
        "one base a block: nothing skippable / byte loop",
        ratio(&full),
        "x",
        Bar::AtLeast(0.8),
    );
    report.judge(
        "one base a block: blocks skippable / byte loop",
        ratio(&skipping),
        "x",
        Bar::AtLeast(13.0),
    );
    Ok(())
}

/// A search whose output is reused.
#[derive(Default)]
struct Search {
    within: Selection,
    out: Selection,
    work: Work,
}

impl Search {
    fn all(&mut self, chunks: &[Chunk], predicate: &Predicate) {
        for chunk in chunks {
            self.within.set_all(chunk.rows());
            chunk.compare(predicate, &self.within, &mut self.out, &mut self.work);
            black_box(&self.out);
        }
    }
}

fn equal(value: i64) -> Result<Predicate> {
    let data_type = arrow_schema::DataType::Int64;
    Predicate::compare(&data_type, Comparison::Equal, &value.into())
}

/// The bare loop: a bit per byte.
fn scan_bytes(batches: &[Vec<u8>]) {
    let mut words = [0u64; BATCH_ROWS / 64];
    for bytes in batches {
        (kernels().u8.range_mask_flat)(bytes, 100, 0, &mut words);
        black_box(&words);
    }
}

fn scan_plain(values: &[u64], key: u64) {
    let mut words = [0u64; BATCH_ROWS / 64];
    (kernels().u64.range_mask_flat)(values, key, 0, &mut words);
    black_box(&words);
}

/// Decodes block by block, then compares with the vector kernel.
fn decode_and_scan(chunk: &Chunk, values: &mut Values, value: i64) {
    let key = value.cast_unsigned() ^ chunk.physical().flip();
    let mut words = [0u64; BLOCK_ROWS / 64];
    for block in 0..block_count(chunk.rows()) {
        values.reset(chunk.physical());
        chunk
            .codec()
            .decode(chunk, block_rows(block, chunk.rows()), values);
        (kernels().u64.range_mask_flat)(&values.keys, key, 0, &mut words);
        black_box(&words);
    }
}

fn from_cache(report: &mut Report) -> Result<()> {
    const PASSES: usize = 50;
    let arrays = slices(dense_values(), BATCH_ROWS);
    let Some(array) = arrays.first() else {
        return Ok(());
    };
    let chunk = encode(array, "base_delta")?;
    let predicate = equal(100)?;
    let all = Selection::all(chunk.rows());
    let plain: Vec<u64> = dense_values()[..BATCH_ROWS]
        .iter()
        .map(|v| v.cast_unsigned())
        .collect();
    let (mut out, mut work) = (Selection::default(), Work::default());
    let (mut default_out, mut default_work) = (Selection::default(), Work::default());
    let mut values = Values::default();
    let [direct, decoded, default, wide] = interleave(
        41,
        [
            &mut || {
                for _ in 0..PASSES {
                    chunk.compare(&predicate, &all, &mut out, &mut work);
                    black_box(&out);
                }
            },
            &mut || {
                for _ in 0..PASSES {
                    decode_and_scan(&chunk, &mut values, 100);
                }
            },
            &mut || {
                let (out, work) = (&mut default_out, &mut default_work);
                compare_decoded(chunk.codec(), &chunk, &predicate, &all, out, work);
                black_box(out);
            },
            &mut || {
                for _ in 0..PASSES {
                    scan_plain(&plain, 100);
                }
            },
        ],
    );
    let values_read = (PASSES * BATCH_ROWS) as f64;
    let direct_rate = direct.rate(values_read) / 1e9;
    let decoded_rate = decoded.rate(values_read) / 1e9;
    let default_rate = default.rate(BATCH_ROWS as f64) / 1e9;
    let plain_rate = wide.rate(values_read) / 1e9;
    report.add("in cache: direct", direct_rate, "G rows/s");
    report.add("in cache: decode, then compare", decoded_rate, "G rows/s");
    report.add("in cache: the waist's default", default_rate, "G rows/s");
    report.add("in cache: compare plain i64", plain_rate, "G rows/s");
    let ratio = direct_rate / decoded_rate;
    report.judge(
        "direct / decode-then-compare",
        ratio,
        "x",
        Bar::AtLeast(8.0),
    );
    report.add("direct / plain i64", direct_rate / plain_rate, "x");
    Ok(())
}
