//! Adding two columns (`c = a + b`), encoded, against adding as many plain bytes and plain words.
//!
//! Encoded values have eight bases a block or, as the paper's, fewer: one.
//!
//! All sides write past the caches, batch by batch, into memory that was written before, and every
//! array is far larger than the caches.

use std::hint::black_box;

use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work};
use tersecades_columnar::kernels::{Lane, kernels};
use tersecades_columnar::primitive::arithmetic::add_decoded;

use crate::Options;
use crate::chunk::encoded_as;
use crate::data::timestamps;
use crate::measure::{Timing, interleave};
use crate::report::{Bar, Done, Report};
use crate::split;

/// Of the chunks, one in this many is decoded, added and encoded: that takes much longer.
const DECODED_SHARE: usize = 16;

/// Three columns, batch by batch: `c = a + b`.
struct Columns<T> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
}

impl<T: Send + Sync> Columns<T> {
    /// Adds on `threads` threads, each of which `add` is made for once.
    fn run(&mut self, threads: usize, add: impl Fn(&[T], &[T], &mut [T]) + Sync) {
        let part = self.c.len().div_ceil(threads);
        let sides = self.a.chunks(part).zip(self.b.chunks(part));
        split::each(sides.zip(self.c.chunks_mut(part)), |((a, b), c)| {
            add(a, b, c)
        });
        black_box(&self.c);
    }
}

fn plain<W: Lane>(rows: usize) -> Columns<Vec<W>> {
    let batch: Vec<W> = (0..BATCH_ROWS)
        .map(|row| W::from((row % 120) as u8))
        .collect();
    let column = || vec![batch.clone(); rows / BATCH_ROWS];
    Columns {
        a: column(),
        b: column(),
        c: column(),
    }
}

fn add_plain<W: Lane>(a: &[Vec<W>], b: &[Vec<W>], c: &mut [Vec<W>]) {
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        (W::of(kernels()).add_past)(a, b, c);
    }
}

fn add_direct(a: &[Chunk], b: &[Chunk], c: &mut [Chunk]) {
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    encode.past_caches = true;
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        let added = a.add(b, c, &mut work, &mut encode);
        debug_assert!(added.is_ok());
    }
    debug_assert_eq!(work.tally.decoded, 0);
}

fn decode_add_encode(a: &[Chunk], b: &[Chunk], c: &mut [Chunk]) {
    let (mut work, mut encode) = (Work::default(), EncodeWork::default());
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        let added = add_decoded(a, b, c, &mut work, &mut encode);
        debug_assert!(added.is_ok());
    }
}

/// Three columns of `rows` rows under the codec called `name`.
fn compressed(name: &str, rows: usize) -> Result<Columns<Chunk>> {
    let column = |seed| encoded_as(name, timestamps(16 * BATCH_ROWS, 0, seed), rows);
    let (a, b) = (column(3)?, column(5)?);
    let c = b.clone();
    Ok(Columns { a, b, c })
}

/// Every [`DECODED_SHARE`]th batch of `columns`.
fn part(columns: &Columns<Chunk>) -> Columns<Chunk> {
    let part = |column: &[Chunk]| column.iter().step_by(DECODED_SHARE).cloned().collect();
    Columns {
        a: part(&columns.a),
        b: part(&columns.b),
        c: part(&columns.c),
    }
}

/// Prints additions from memory to memory on one thread and on two.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let rows = options.scaled(1 << 30).next_multiple_of(8 * BATCH_ROWS);
    let mut eight = compressed("base_delta", rows)?;
    let mut one = compressed("frame_of_reference", rows)?;
    let mut decoded = part(&eight);
    let mut chars = plain::<u8>(rows);
    let mut longs = plain::<u64>(rows / 8);
    for threads in [1, 2] {
        let [long, char, direct, single, slow] = interleave(
            options.repetitions,
            [
                &mut || longs.run(threads, add_plain),
                &mut || chars.run(threads, add_plain),
                &mut || eight.run(threads, add_direct),
                &mut || one.run(threads, add_direct),
                &mut || decoded.run(threads, decode_add_encode),
            ],
        );
        // Read, and written past the caches.
        let encoded = |column: &[Chunk]| column.iter().map(Chunk::byte_size).sum::<usize>();
        for (series, timing, rows, bytes) in [
            ("Long", &long, rows / 8, rows),
            ("Char", &char, rows, rows),
            (
                "CharCompr (decode, add, encode)",
                &slow,
                rows / DECODED_SHARE,
                encoded(&decoded.a),
            ),
            ("direct", &direct, rows, encoded(&eight.a)),
            ("direct, one base", &single, rows, encoded(&one.a)),
        ] {
            let done = Done {
                amount: rows as f64 / 1e9,
                unit: "G rows/s",
                bytes: 3.0 * bytes as f64,
                threads,
            };
            report.timed("add", (series, threads.into()), timing, done);
        }
        let rate = |timing: &Timing, rows: usize| timing.rate(rows as f64) / 1e9;
        let (long, char) = (rate(&long, rows / 8), rate(&char, rows));
        for (bases, timing) in [("direct", &direct), ("direct, one base", &single)] {
            let direct = rate(timing, rows);
            let bars = [("u8", direct / char, 0.9), ("u64", direct / long, 6.1)];
            for (plain, ratio, bar) in bars {
                let name = format!("{bases} / plain {plain}, {threads} thread(s)");
                report.judge(name, ratio, "x", Bar::AtLeast(bar));
            }
        }
    }
    Ok(())
}
