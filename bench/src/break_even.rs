//! When does compression pay: a retained range that `k` queries read, encoding counted.
//!
//! ```text
//! kind of data × k → ns a row to arrive: to be kept plain, encoded by choice, and encoded as the
//!     chooser does that knows k, each chunk read once while it is in the caches; and to be read
//!     again, caches flushed, all in turns
//!     → (plain: arriving + k - 1 reads) / (encoded: the same), and the k at which that is 1
//! ```
//! A read compares each row with a constant and sums the rows that pass; texts are compared alone.
//! Keeping plain Arrow costs its statistics: the batch stays where it is.

use std::hint::black_box;
use std::time::Instant;

use arrow_array::{Array, ArrayRef};
use serde_json::Value;
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
use tersecades_columnar::types::Physical;

use crate::Options;
use crate::column::Kind;
use crate::limits::{known_bandwidth, read};
use crate::measure::{Middle, ratio, summarise};
use crate::report::{Point, Report};

/// Rows of each kind unless the command line says otherwise.
const ROWS: usize = 1 << 24;
/// Reads of the retained range.
const READS: [u32; 5] = [1, 2, 5, 20, 100];
/// Bytes that are read to flush the caches.
const FLUSH_BYTES: usize = 512 << 20;
/// The longest time that counts as the choice of the right side, in times of the better side.
const WORSE_MAX: f64 = 1.1;

const KINDS: [(&str, Kind); 9] = [
    ("event times", Kind::Times),
    ("small integers", Kind::Small),
    ("mostly one value", Kind::Odd),
    ("runs", Kind::Runs),
    ("steps", Kind::Steps),
    ("decimals", Kind::Decimals),
    ("waves", Kind::Waves),
    ("noise", Kind::Noise),
    ("texts", Kind::Text),
];

/// Prints the figures.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let flush = vec![1u64; FLUSH_BYTES / 8];
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
        let (mut plain, mut hot) = (Cost::default(), Cost::default());
        for reads in READS {
            let costs = ranges.take_turns(reads)?;
            by_reads(report, (name, reads), &costs);
            let [of_plain, of_hot, _] = costs;
            plain.join(of_plain);
            hot.join(of_hot);
        }
        break_even(report, name, rows, [&plain, &hot]);
    }
    Ok(())
}

/// How a range is kept.
#[derive(Clone, Copy)]
enum Kept {
    Plain,
    /// By choice, for so many reads.
    Chosen(f64),
}

/// What arriving and one later read took, seconds, repetition by repetition.
#[derive(Default)]
struct Cost {
    /// Keeping or encoding, chunk by chunk, and the first read of each while it is in the caches.
    arrive: Vec<f64>,
    read: Vec<f64>,
    /// Bytes of the chunks that statistics left to be read.
    bytes_read: usize,
    label: String,
}

impl Cost {
    /// Arriving and so many reads, the first included, repetition by repetition.
    fn of_reads(&self, reads: u32) -> Vec<f64> {
        let each = self.arrive.iter().zip(&self.read);
        each.map(|(arrive, read)| arrive + f64::from(reads - 1) * read)
            .collect()
    }

    /// What `other` took besides.
    fn join(&mut self, other: Cost) {
        self.arrive.extend(other.arrive);
        self.read.extend(other.read);
        (self.bytes_read, self.label) = (other.bytes_read, other.label);
    }
}

/// One kind of data, and how it is read.
struct Ranges<'a> {
    array: ArrayRef,
    predicate: Predicate,
    flush: &'a [u64],
    repetitions: usize,
}

impl Ranges<'_> {
    /// Plain, by choice, and by choice for so many reads.
    fn take_turns(&self, reads: u32) -> Result<[Cost; 3]> {
        let usual = Uses::default().reads;
        let ways = [
            Kept::Plain,
            Kept::Chosen(usual),
            Kept::Chosen(f64::from(reads)),
        ];
        let mut costs = ways.map(|_| Cost::default());
        for repetition in 0..=self.repetitions {
            for (kept, cost) in ways.into_iter().zip(&mut costs) {
                read(self.flush, 1);
                let start = Instant::now();
                let chunks = self.arrive(kept)?;
                let arrived = start.elapsed().as_secs_f64();
                read(self.flush, 1);
                let start = Instant::now();
                cost.bytes_read = self.read(&chunks);
                // The first repetition gets the memory from the system.
                if repetition > 0 {
                    cost.read.push(start.elapsed().as_secs_f64());
                    cost.arrive.push(arrived);
                }
                cost.label = chunks.last().map(Chunk::codec_label).unwrap_or_default();
            }
        }
        Ok(costs)
    }

    /// Keeps the column chunk by chunk and reads each as it comes.
    fn arrive(&self, kept: Kept) -> Result<Vec<Chunk>> {
        let mut encoder = ColumnEncoder::new(self.array.data_type())?;
        // What is read but once stays where it is.
        let reads = match kept {
            Kept::Plain => 1.0,
            Kept::Chosen(reads) => reads,
        };
        encoder.aim(Goal {
            uses: Uses {
                reads,
                ..Uses::default()
            },
            ..Goal::default()
        });
        if let Kept::Plain = kept {
            encoder.require("plain".parse::<Scheme>()?)?;
        }
        let mut chunks = Vec::new();
        for start in (0..self.array.len()).step_by(BATCH_ROWS) {
            chunks.push(encoder.encode_new(&self.array.slice(start, BATCH_ROWS))?);
            self.read(&chunks[chunks.len() - 1..]);
        }
        Ok(chunks)
    }

    /// Compares and sums; the bytes of chunks that were looked at.
    fn read(&self, chunks: &[Chunk]) -> usize {
        let asked = Asked {
            sum: true,
            ..Asked::default()
        };
        let (mut within, mut out) = (Selection::default(), Selection::default());
        let (mut total, mut work) = (Fold::default(), Work::default());
        let mut bytes_read = 0;
        for chunk in chunks {
            within.set_all(chunk.rows());
            let skipped = work.tally.skipped;
            chunk.compare(&self.predicate, &within, &mut out, &mut work);
            if work.tally.skipped == skipped || out.shape() != Shape::None {
                bytes_read += chunk.byte_size();
            }
            if chunk.physical() != Physical::Text {
                chunk.fold(asked, &out, &mut total, &mut work);
            }
        }
        black_box((&out, &total));
        bytes_read
    }
}

/// How the ways compare at a number of reads, and whether the chooser was right.
fn by_reads(report: &mut Report, (kind, reads): (&str, u32), costs: &[Cost; 3]) {
    let [plain, hot, chosen] = costs.each_ref().map(|cost| cost.of_reads(reads));
    let hot_pays = ratio(&plain, &hot);
    let (better, better_label) = match hot_pays.median > 1.0 {
        true => (&hot, &costs[1].label),
        false => (&plain, &costs[0].label),
    };
    let label = &costs[2].label;
    let worse = ratio(&chosen, better);
    let half = worse.spread.unwrap_or(0.0) * worse.median / 2.0;
    let verdict = match worse.median {
        within if within <= WORSE_MAX || label == better_label => "right",
        beyond if beyond - half > WORSE_MAX => "WRONG",
        _ => "unclear",
    };
    let point = |figure, series, x: Value, ratio: Middle, unit, note| Point {
        figure,
        series,
        x,
        value: ratio.median,
        unit,
        spread: ratio.spread,
        share: None,
        note,
    };
    let of_plain = "x plain";
    let note = Some(format!("{verdict}, {label}"));
    let reads_shown = format!("{reads} reads");
    for point in [
        point("pays", kind, reads.into(), hot_pays, of_plain, None),
        point(
            "pays_chosen",
            kind,
            reads.into(),
            ratio(&plain, &chosen),
            of_plain,
            None,
        ),
        point("pays_verdict", &reads_shown, kind.into(), worse, "x", note),
    ] {
        report.point(&point);
    }
}

/// The costs of a row, and after how many reads encoding has paid.
fn break_even(report: &mut Report, kind: &str, rows: usize, costs: [&Cost; 2]) {
    let timing = |seconds: &Vec<f64>| summarise(seconds.clone());
    let [keep, encode] = costs.map(|cost| timing(&cost.arrive));
    let [read_plain, read_hot] = costs.map(|cost| timing(&cost.read));
    let gain = read_plain.median_s - read_hot.median_s;
    let reads = match gain > 0.0 && costs[1].label != costs[0].label {
        true => 1.0 + (encode.median_s - keep.median_s).max(0.0) / gain,
        false => f64::INFINITY,
    };
    let traffic_s = costs[0].bytes_read as f64 / known_bandwidth().of_threads(1);
    report.note(&format!("{kind}: {}", costs[1].label));
    report.plain(BREAK_EVEN, ("break-even reads", kind.into()), reads, "");
    for (series, timing, share) in [
        ("arrive encoded", encode, None),
        ("arrive plain", keep, None),
        ("read encoded", read_hot, None),
        (
            "read plain",
            read_plain,
            Some(traffic_s / read_plain.median_s),
        ),
    ] {
        report.point(&Point {
            figure: BREAK_EVEN,
            series,
            x: kind.into(),
            value: timing.ns_each(rows as f64),
            unit: "ns/row",
            spread: timing.spread,
            share,
            note: None,
        });
    }
}

const BREAK_EVEN: &str = "pays_break_even";
