//! Every codec under every primitive of the waist, in cache: encoded or decoded, and what it gains.
//!
//! ```text
//! scheme × primitive → values a second, ratio to the default that decodes, and whether the codec
//!                      decoded; share of the read bandwidth in encoded bytes
//! ```
//! Each scheme gets values that suit it, in one chunk of a batch; *fetch* is every 100th row, and
//! its values are those fetched.

use std::hint::black_box;

use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{EncodeWork, Work, compare_decoded, fold_decoded, gather_decoded};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::primitive::arithmetic::{Change, add_decoded, map_decoded};
use tersecades_columnar::primitive::fold_by::{Folds, fold_by_decoded};
use tersecades_columnar::primitive::rank::rank_decoded;
use tersecades_columnar::primitive::repeat::{Repeats, repeats_decoded};
use tersecades_columnar::primitive::slice::slice_decoded;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;
use tersecades_columnar::{Error, Result};

use crate::Options;
use crate::column::Kind;
use crate::limits::read;
use crate::measure::{Timing, interleave};
use crate::report::Report;

const GROUPS: u32 = 64;
const FETCHED_SHARE: usize = 100;

const SCHEMES: &[(&str, Kind)] = &[
    ("plain", Kind::Small),
    ("constant", Kind::Runs),
    ("base_delta", Kind::Times),
    ("frame_of_reference", Kind::Small),
    ("patched(frame_of_reference)", Kind::Times),
    ("gcd(frame_of_reference)", Kind::Steps),
    ("run_length", Kind::Runs),
    ("sequence", Kind::Steps),
    ("number_dictionary", Kind::Small),
    ("dictionary", Kind::Text),
    ("bit_pack", Kind::Small),
    ("delta(bit_pack)", Kind::Times),
    ("varint", Kind::Small),
    ("pco", Kind::Times),
    ("decimal", Kind::Decimals),
    ("xor", Kind::Noise),
    ("symbols", Kind::Text),
    ("lz4", Kind::Small),
    ("snappy", Kind::Small),
    ("zstd", Kind::Small),
    ("row", Kind::Small),
];

/// Prints the table.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let words = vec![1u64; 1 << 25];
    let [limit] = interleave(options.repetitions, [&mut || read(&words, 1)]);
    let bandwidth = limit.rate((words.len() * 8) as f64);
    report.add("read bandwidth", bandwidth / 1e9, "GB/s");
    report.head(&[
        "scheme",
        "B/value",
        "primitive",
        "how",
        "M values/s",
        "÷ decode",
        "% of read",
    ]);
    for (scheme, kind) in SCHEMES {
        let (array, middle) = kind.column(BATCH_ROWS);
        let mut encoder = ColumnEncoder::new(array.data_type())?;
        encoder.aim(Goal::of_tier(Tier::Cold));
        encoder.require(scheme.parse::<Scheme>()?)?;
        let chunk = encoder.encode_new(&array)?;
        let case = Case {
            scheme,
            chunk: &chunk,
            repetitions: options.repetitions,
            bandwidth,
        };
        case.reads(&middle, report)?;
        case.writes(report)?;
    }
    Ok(())
}

struct Case<'a> {
    scheme: &'a str,
    chunk: &'a Chunk,
    repetitions: usize,
    bandwidth: f64,
}

impl Case<'_> {
    /// Times `direct` against `decoded`, and asks `direct` whether it decoded.
    fn line(
        &self,
        primitive: &str,
        values: usize,
        direct: &mut dyn FnMut(&mut Work),
        decoded: &mut dyn FnMut(&mut Work),
        report: &mut Report,
    ) {
        let mut tally = Work::default();
        direct(&mut tally);
        let how = match tally.tally.decoded {
            0 => "encoded",
            _ => "decode",
        };
        let (mut first, mut second) = (Work::default(), Work::default());
        let timings = interleave(
            self.repetitions,
            [&mut || direct(&mut first), &mut || decoded(&mut second)],
        );
        let [ours, theirs]: [Timing; 2] = timings;
        let rate = ours.rate(values as f64);
        report.plain(
            "waist",
            (primitive, self.scheme.into()),
            rate / 1e6,
            "M values/s",
        );
        let bytes = self.chunk.byte_size() as f64;
        let share = ours.rate(bytes) / self.bandwidth;
        report.row(
            &[
                self.scheme.to_owned(),
                format!("{:.3}", self.chunk.bytes_per_row()),
                primitive.to_owned(),
                how.to_owned(),
                format!("{:.0}", rate / 1e6),
                format!("{:.1}", theirs.median_s / ours.median_s),
                format!("{:.0}", share * 100.0),
            ],
            rate / 1e6,
            "M values/s",
        );
    }

    /// Primitives that read.
    fn reads(&self, middle: &Value, report: &mut Report) -> Result<()> {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        let rows = chunk.rows();
        let all = Selection::all(rows);
        let predicate = Predicate::compare(chunk.data_type(), Comparison::Less, middle)?;
        let (mut out, mut other) = (Selection::default(), Selection::default());
        self.line(
            "compare",
            rows,
            &mut |work| chunk.compare(&predicate, &all, &mut out, work),
            &mut |work| compare_decoded(codec, chunk, &predicate, &all, &mut other, work),
            report,
        );
        let mut list = Selection::default();
        list.set_rows(rows)
            .extend((0..rows as u32).step_by(FETCHED_SHARE));
        let (mut values, mut others) = (Values::default(), Values::default());
        self.line(
            "gather",
            list.count(),
            &mut |work| chunk.gather(&list, &mut values, work),
            &mut |work| {
                others.reset(chunk.physical());
                gather_decoded(codec, chunk, list.list(), &mut others, work);
            },
            report,
        );
        let (mut ranks, mut other_ranks) = (Vec::new(), Vec::new());
        self.line(
            "rank",
            rows,
            &mut |work| {
                ranks.clear();
                black_box(chunk.rank(&all, &mut ranks, work).is_ok());
            },
            &mut |work| {
                other_ranks.clear();
                rank_decoded(codec, chunk, &all, &mut other_ranks, work);
            },
            report,
        );
        let (mut repeats, mut other_repeats) = (Repeats::default(), Repeats::default());
        self.line(
            "repeats",
            rows,
            &mut |work| chunk.repeats(&all, &mut repeats, work),
            &mut |work| {
                other_repeats.reset(chunk.physical());
                repeats_decoded(codec, chunk, &all, &mut other_repeats, work);
            },
            report,
        );
        self.folds(&all, report);
        Ok(())
    }

    fn folds(&self, all: &Selection, report: &mut Report) {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        if chunk.physical() == Physical::Text {
            return;
        }
        let asked = Asked {
            sum: true,
            ..Asked::default()
        };
        self.line(
            "fold (sum)",
            chunk.rows(),
            &mut |work| {
                let mut fold = Fold::default();
                chunk.fold(asked, all, &mut fold, work);
                black_box(fold);
            },
            &mut |work| {
                let mut fold = Fold::default();
                fold_decoded(codec, chunk, asked, all, &mut fold, work);
                black_box(fold);
            },
            report,
        );
        let ids: Vec<u32> = (0..chunk.rows() as u32)
            .map(|row| row * 7 % GROUPS)
            .collect();
        let mut folds = vec![Fold::default(); GROUPS as usize];
        let mut others = folds.clone();
        self.line(
            "fold_by (sum)",
            chunk.rows(),
            &mut |work| {
                let folds = &mut folds[..];
                chunk.fold_by(all, &ids, &mut Folds { asked, folds }, work);
            },
            &mut |work| {
                let folds = &mut others[..];
                fold_by_decoded(codec, chunk, all, &ids, &mut Folds { asked, folds }, work);
            },
            report,
        );
    }

    /// Primitives that make a chunk.
    fn writes(&self, report: &mut Report) -> Result<()> {
        let (chunk, codec, rows) = (self.chunk, self.chunk.codec(), self.chunk.rows());
        let (mut out, mut other) = (Chunk::default(), Chunk::default());
        let (mut encode, mut other_encode) = (EncodeWork::default(), EncodeWork::default());
        let mut failed: Option<Error> = None;
        let mut note = |result: Result<()>| {
            if let Err(error) = result {
                failed = Some(error);
            }
        };
        let part = 1_024..rows - 1_024;
        let (start, end) = (part.start, part.end);
        self.line(
            "slice",
            rows,
            &mut |work| note(chunk.slice(start..end, &mut out, work, &mut encode)),
            &mut |work| {
                let encode = &mut other_encode;
                drop(slice_decoded(
                    codec,
                    chunk,
                    start..end,
                    &mut other,
                    work,
                    encode,
                ));
            },
            report,
        );
        if matches!(chunk.data_type(), arrow_schema::DataType::Int64) {
            let change = Change::Add(7);
            self.line(
                "map (+)",
                rows,
                &mut |work| note(chunk.map(change, &mut out, work, &mut encode)),
                &mut |work| {
                    let encode = &mut other_encode;
                    drop(map_decoded(codec, chunk, change, &mut other, work, encode));
                },
                report,
            );
            self.line(
                "add",
                rows,
                &mut |work| note(chunk.add(chunk, &mut out, work, &mut encode)),
                &mut |work| {
                    let encode = &mut other_encode;
                    drop(add_decoded(chunk, chunk, &mut other, work, encode));
                },
                report,
            );
        }
        failed.map_or(Ok(()), Err)
    }
}
