//! When does compression pay: a retained range that `k` queries read, encoding counted.
//!
//! ```text
//! kind of data → ns a row to keep encoded and plain, to read encoded and plain, caches flushed
//!     → (keeping plain + k reads) / (encoding + k encoded reads), and the k at which that is 1
//! ```
//! A read compares each row with a constant and sums the rows that pass. Keeping plain Arrow costs
//! its statistics: the batch stays where it is. The second figure lets the chooser know `k`.

use std::hint::black_box;
use std::time::Instant;

use arrow_array::{Array, ArrayRef};
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Uses};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::{Selection, Shape};

use crate::Options;
use crate::column::Kind;
use crate::limits::{known_bandwidth, read};
use crate::measure::{Timing, summarise};
use crate::report::{Point, Report};

/// Rows of each kind unless the command line says otherwise.
const ROWS: usize = 1 << 24;
/// Reads of the retained range.
const READS: [u32; 5] = [1, 2, 5, 20, 100];
/// Bytes that are read to flush the caches.
const FLUSH_BYTES: usize = 512 << 20;
/// The longest time that counts as the choice of the right side, in times of the better side.
const WORSE_MAX: f64 = 1.1;

const KINDS: [(&str, Kind); 6] = [
    ("event times", Kind::Times),
    ("small integers", Kind::Small),
    ("runs", Kind::Runs),
    ("steps", Kind::Steps),
    ("decimals", Kind::Decimals),
    ("noise", Kind::Noise),
];

/// What encoding and one read took, seconds.
struct Cost {
    encode: Timing,
    read: Timing,
    /// Rows of the chunks that statistics left to be read.
    rows_read: usize,
    label: String,
}

impl Cost {
    fn of_reads(&self, reads: u32) -> f64 {
        self.encode.median_s + f64::from(reads) * self.read.median_s
    }
}

/// How a range is kept.
#[derive(Clone, Copy)]
enum Kept {
    Plain,
    /// By choice, for so many reads.
    Chosen(f64),
}

/// Prints both figures.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let flush = vec![1u64; FLUSH_BYTES / 8];
    let bytes_per_s = known_bandwidth().of_threads(1);
    for (name, kind) in KINDS {
        let rows = options.scaled(ROWS).next_multiple_of(BATCH_ROWS);
        let (array, middle) = kind.column(rows);
        let predicate = Predicate::compare(array.data_type(), Comparison::Greater, &middle)?;
        let ranges = Ranges {
            array,
            predicate,
            flush: &flush,
            repetitions: options.repetitions.min(5),
        };
        let plain = ranges.measure(Kept::Plain)?;
        let hot = ranges.measure(Kept::Chosen(Uses::default().reads))?;
        let traffic = (8 * plain.rows_read) as f64 / bytes_per_s / plain.read.median_s;
        break_even(report, name, rows, [&plain, &hot], traffic);
        for reads in READS {
            let chosen = ranges.measure(Kept::Chosen(f64::from(reads)))?;
            let of_plain = |cost: &Cost| plain.of_reads(reads) / cost.of_reads(reads);
            ratio(
                report,
                "pays",
                (name, reads),
                of_plain(&hot),
                hot.read.spread,
            );
            let worse = 1f64.max(of_plain(&hot)) / of_plain(&chosen);
            let verdict = if worse <= WORSE_MAX { "right" } else { "WRONG" };
            report.note(&format!(
                "{name}, {reads} reads: {} chosen, {verdict} side",
                chosen.label
            ));
            ratio(
                report,
                "pays_chosen",
                (name, reads),
                of_plain(&chosen),
                chosen.read.spread,
            );
        }
    }
    Ok(())
}

/// One kind of data, and how it is read.
struct Ranges<'a> {
    array: ArrayRef,
    predicate: Predicate,
    flush: &'a [u64],
    repetitions: usize,
}

impl Ranges<'_> {
    fn measure(&self, kept: Kept) -> Result<Cost> {
        let (mut encoding, mut reading) = (Vec::new(), Vec::new());
        let (mut label, mut rows_read) = (String::new(), 0);
        for repetition in 0..=self.repetitions {
            read(self.flush, 1);
            let start = Instant::now();
            let chunks = self.encode(kept)?;
            let encoded = start.elapsed().as_secs_f64();
            read(self.flush, 1);
            let start = Instant::now();
            rows_read = self.read(&chunks);
            // The first repetition gets the memory from the system.
            if repetition > 0 {
                reading.push(start.elapsed().as_secs_f64());
                encoding.push(encoded);
            }
            label = chunks.last().map(Chunk::codec_label).unwrap_or_default();
        }
        Ok(Cost {
            encode: summarise(encoding),
            read: summarise(reading),
            rows_read,
            label,
        })
    }

    fn encode(&self, kept: Kept) -> Result<Vec<Chunk>> {
        let mut encoder = ColumnEncoder::new(self.array.data_type())?;
        match kept {
            Kept::Plain => encoder.require("plain".parse::<Scheme>()?)?,
            Kept::Chosen(reads) => encoder.aim(Goal {
                uses: Uses {
                    reads,
                    ..Uses::default()
                },
                ..Goal::default()
            }),
        }
        let starts = (0..self.array.len()).step_by(BATCH_ROWS);
        starts
            .map(|start| encoder.encode_new(&self.array.slice(start, BATCH_ROWS)))
            .collect()
    }

    /// Compares and sums; the rows of chunks that were looked at.
    fn read(&self, chunks: &[Chunk]) -> usize {
        let asked = Asked {
            sum: true,
            ..Asked::default()
        };
        let (mut within, mut out) = (Selection::default(), Selection::default());
        let (mut total, mut work) = (Fold::default(), Work::default());
        let mut rows_read = 0;
        for chunk in chunks {
            within.set_all(chunk.rows());
            let skipped = work.tally.skipped;
            chunk.compare(&self.predicate, &within, &mut out, &mut work);
            if work.tally.skipped == skipped || out.shape() != Shape::None {
                rows_read += chunk.rows();
            }
            chunk.fold(asked, &out, &mut total, &mut work);
        }
        black_box(&total);
        rows_read
    }
}

fn ratio(
    report: &mut Report,
    figure: &'static str,
    at: (&str, u32),
    value: f64,
    spread: Option<f64>,
) {
    report.point(&Point {
        figure,
        series: at.0,
        x: at.1.into(),
        value,
        unit: "x plain",
        spread,
        share: None,
        note: None,
    });
}

/// The costs of a row, and after how many reads encoding has paid.
fn break_even(report: &mut Report, kind: &str, rows: usize, costs: [&Cost; 2], traffic: f64) {
    let [plain, hot] = costs;
    let gain = plain.read.median_s - hot.read.median_s;
    let reads = match gain > 0.0 {
        true => (hot.encode.median_s - plain.encode.median_s).max(0.0) / gain,
        false => f64::INFINITY,
    };
    let each = |timing: &Timing| timing.ns_each(rows as f64);
    let line = |series, value, unit, spread, share| Point {
        figure: "pays_break_even",
        series,
        x: kind.into(),
        value,
        unit,
        spread,
        share,
        note: None,
    };
    let label = format!("{kind}: {}", hot.label);
    report.note(&label);
    for point in [
        line("break-even reads", reads, "", None, None),
        line(
            "encode",
            each(&hot.encode),
            "ns/row",
            hot.encode.spread,
            None,
        ),
        line(
            "keep plain",
            each(&plain.encode),
            "ns/row",
            plain.encode.spread,
            None,
        ),
        line(
            "read encoded",
            each(&hot.read),
            "ns/row",
            hot.read.spread,
            None,
        ),
        line(
            "read plain",
            each(&plain.read),
            "ns/row",
            plain.read.spread,
            Some(traffic),
        ),
    ] {
        report.point(&point);
    }
}
