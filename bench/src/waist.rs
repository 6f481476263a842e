//! Every codec under every primitive of the waist, in cache: encoded or decoded, and what it gains.
//!
//! ```text
//! scheme × primitive → values a second, whether the codec decoded, ratio to decoding and then
//!                      computing, share of the read bandwidth in encoded bytes
//! ```
//! Each scheme gets values that suit it, in one chunk of a batch; *gather* is every 100th row, and
//! its values are those fetched; *codes* are the codes of every text.

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
use crate::measure::{Timing, interleave};
use crate::report::{Done, Point, Report, share};

const GROUPS: u32 = 64;
const FETCHED_SHARE: usize = 100;

const SCHEMES: &[(&str, Kind)] = &[
    ("plain", Kind::Small),
    ("constant", Kind::Odd),
    ("base_delta", Kind::Times),
    ("frame_of_reference", Kind::Small),
    ("patched(frame_of_reference)", Kind::Times),
    ("gcd(frame_of_reference)", Kind::Steps),
    ("run_length", Kind::Runs),
    ("sequence", Kind::Steps),
    ("number_dictionary", Kind::Small),
    ("dictionary", Kind::Text),
    ("dictionary(bit_pack)", Kind::Text),
    ("bit_pack", Kind::Small),
    ("delta(bit_pack)", Kind::Times),
    ("linear(bit_pack)", Kind::Times),
    ("varint", Kind::Small),
    ("pco", Kind::Times),
    ("decimal", Kind::Decimals),
    ("fixed_point(0.5)", Kind::Decimals),
    ("xor", Kind::Noise),
    ("zfp(0.001)", Kind::Waves),
    ("symbols", Kind::Text),
    ("lz4", Kind::Small),
    ("snappy", Kind::Small),
    ("zstd", Kind::Small),
    ("row", Kind::Small),
];

/// The columns of the table.
const PRIMITIVES: [&str; 10] = [
    "compare",
    "gather",
    "codes",
    "rank",
    "repeats",
    "fold (sum)",
    "fold_by (sum)",
    "slice",
    "map (+)",
    "add",
];

/// Prints the table.
///
/// # Errors
/// What the encoder says.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let names: Vec<&str> = ["scheme", "B/value"]
        .into_iter()
        .chain(PRIMITIVES)
        .collect();
    report.head(&names);
    for (scheme, kind) in SCHEMES {
        let (array, middle) = kind.column(BATCH_ROWS);
        let mut encoder = ColumnEncoder::new(array.data_type())?;
        encoder.aim(Goal::of_tier(Tier::Cold));
        encoder.require(scheme.parse::<Scheme>()?)?;
        let chunk = encoder.encode_new(&array)?;
        let mut case = Case {
            scheme,
            chunk: &chunk,
            repetitions: options.repetitions,
            cells: PRIMITIVES.map(|_| None),
        };
        case.reads(&middle, report)?;
        case.folds(report);
        case.writes(report)?;
        case.row(report);
    }
    Ok(())
}

struct Case<'a> {
    scheme: &'a str,
    chunk: &'a Chunk,
    repetitions: usize,
    /// The line of the table, by primitive.
    cells: [Option<String>; PRIMITIVES.len()],
}

impl Case<'_> {
    /// Prints the line of the table.
    fn row(self, report: &mut Report) {
        let size = self.chunk.bytes_per_row();
        let mut cells = vec![format!("`{}`", self.scheme), format!("{size:.3}")];
        cells.extend(
            self.cells
                .into_iter()
                .map(|cell| cell.unwrap_or("–".to_owned())),
        );
        report.row(&cells, size, "B/value");
    }

    /// Times `direct` against `decoded`, and asks `direct` whether it decoded.
    fn line(
        &mut self,
        primitive: &str,
        values: usize,
        direct: &mut dyn FnMut(&mut Work),
        decoded: &mut dyn FnMut(&mut Work),
        report: &mut Report,
    ) {
        let mut work = Work::default();
        direct(&mut work);
        let decodes = work.tally.decoded > 0;
        let (mut first, mut second) = (Work::default(), Work::default());
        let timings = interleave(
            self.repetitions,
            [&mut || direct(&mut first), &mut || decoded(&mut second)],
        );
        let [ours, theirs]: [Timing; 2] = timings;
        let way = if decodes { "decode" } else { "encoded" };
        let how = format!("{way} {:.1} x", theirs.median_s / ours.median_s);
        let done = Done {
            amount: values as f64 / 1e6,
            unit: "M values/s",
            bytes: values as f64 * self.chunk.bytes_per_row(),
            threads: 1,
        };
        let share = share(&ours, done);
        report.point(&Point {
            figure: "waist",
            series: primitive,
            x: self.scheme.into(),
            value: ours.rate(done.amount),
            unit: done.unit,
            spread: None,
            share,
            note: Some(how.clone()),
        });
        let place = PRIMITIVES.iter().position(|name| *name == primitive);
        let cell = place.and_then(|place| self.cells.get_mut(place));
        let percent = share.map_or(String::new(), |share| format!(", {:.0} %", share * 100.0));
        if let Some(cell) = cell {
            *cell = Some(format!("{:.0}, {how}{percent}", ours.rate(done.amount)));
        }
    }

    /// Primitives that read.
    fn reads(&mut self, middle: &Value, report: &mut Report) -> Result<()> {
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
        self.codes(report);
        Ok(())
    }

    /// Codes of texts, which the default reads as they are decoded.
    fn codes(&mut self, report: &mut Report) {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        if chunk.physical() != Physical::Text {
            return;
        }
        let all = Selection::all(chunk.rows());
        let (mut codes, mut values) = (Vec::new(), Values::default());
        let mut decoded = Values::default();
        self.line(
            "codes",
            chunk.rows(),
            &mut |work| match chunk.codes() {
                Some(lie) => {
                    codes.clear();
                    black_box(lie.codes.rank(&all, &mut codes, work).is_ok());
                }
                None => {
                    values.reset(chunk.physical());
                    codec.decode(chunk, 0..chunk.rows(), &mut values);
                    work.tally.decoded += values.len() as u64;
                }
            },
            &mut |_| {
                decoded.reset(chunk.physical());
                codec.decode(chunk, 0..chunk.rows(), &mut decoded);
            },
            report,
        );
    }

    fn folds(&mut self, report: &mut Report) {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        let all = &Selection::all(chunk.rows());
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
    fn writes(&mut self, report: &mut Report) -> Result<()> {
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
