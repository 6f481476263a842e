//! Every codec under every primitive of the waist, in cache: encoded or decoded, and what it gains.
//!
//! ```text
//! scheme × primitive → values a second, whether the codec decoded, ratio to decoding and then
//!                      computing, share of the read bandwidth in encoded bytes
//! ```
//! Each scheme gets values that suit it, in one chunk of a batch; *gather* is every 100th row, and
//! its values are those fetched; *codes* are the codes of every text; *pair* compares the column
//! with itself a row on, and *search* looks keys up in the values, sorted.

mod read;
mod write;

use std::hint::black_box;
use std::time::Instant;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Work, compare_decoded, fold_decoded};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::primitive::fold_by::{Folds, fold_by_decoded};
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};

use crate::Options;
use crate::column::Kind;
use crate::measure::{ratio, summarise, take_turns};
use crate::report::{Done, Point, Report, share};

const GROUPS: u32 = 64;

/// Seconds that a timing takes at least, by calls, of which there are not too many.
const TIMED_S: f64 = 2e-4;
const CALLS_MAX: f64 = 100.0;

const SUM: Asked = Asked {
    sum: true,
    squares: false,
    ends: false,
};

const SCHEMES: &[(&str, Kind)] = &[
    ("plain", Kind::Small),
    ("constant", Kind::Odd),
    ("base_delta", Kind::Times),
    ("frame_of_reference", Kind::Small),
    ("patched(frame_of_reference)", Kind::Times),
    ("gcd(frame_of_reference)", Kind::Steps),
    ("patched(bit_pack)", Kind::Times),
    ("run_length", Kind::Runs),
    ("run_length(varint)", Kind::Runs),
    ("sequence", Kind::Steps),
    ("number_dictionary", Kind::Small),
    ("number_dictionary(bit_pack)", Kind::Small),
    ("dictionary", Kind::Text),
    ("dictionary(bit_pack)", Kind::Text),
    ("bit_pack", Kind::Small),
    ("delta(bit_pack)", Kind::Times),
    ("delta(run_length)", Kind::Steps),
    ("delta(varint)", Kind::Times),
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
const PRIMITIVES: [&str; 14] = [
    "compare",
    "pair",
    "gather",
    "codes",
    "rank",
    "repeats",
    "fold (sum)",
    "fold_where (sum)",
    "fold_by (sum)",
    "slice",
    "map (+)",
    "map (x)",
    "add",
    "search",
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
        let chunk = encode(&array, scheme)?;
        let mut case = Case {
            scheme,
            chunk: &chunk,
            repetitions: options.repetitions,
            cells: PRIMITIVES.map(|_| None),
        };
        case.reads(&middle, report)?;
        case.folds(report);
        case.fold_where(&middle, report)?;
        case.writes(report)?;
        if let Some(numbers) = array.as_primitive_opt::<Int64Type>() {
            case.pair(numbers, report)?;
            case.search(numbers, report)?;
        }
        case.row(report);
    }
    Ok(())
}

fn encode(array: &ArrayRef, scheme: &str) -> Result<Chunk> {
    let mut encoder = ColumnEncoder::new(array.data_type())?;
    encoder.aim(Goal::of_tier(Tier::Cold));
    encoder.require(scheme.parse::<Scheme>()?)?;
    encoder.encode_new(array)
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
        let (mut first, mut second) = (Work::default(), Work::default());
        direct(&mut first);
        let start = Instant::now();
        direct(&mut first);
        let once_s = start.elapsed().as_secs_f64();
        let way = if first.tally.decoded > 0 {
            "decode"
        } else {
            "encoded"
        };
        let calls = (TIMED_S / once_s).ceil().clamp(1.0, CALLS_MAX);
        let calls = calls as usize;
        let [ours, theirs] = take_turns(
            self.repetitions,
            [
                &mut || (0..calls).for_each(|_| direct(&mut first)),
                &mut || (0..calls).for_each(|_| decoded(&mut second)),
            ],
        );
        let gain = ratio(&theirs, &ours);
        let mut how = format!("{way} {:.1} x", gain.median);
        if let Some(spread) = gain.spread {
            how += &format!(" ± {:.0} %", spread * 100.0);
        }
        let values = (calls * values) as f64;
        let done = Done {
            amount: values / 1e6,
            unit: "M values/s",
            // A search looks at few values.
            bytes: match primitive {
                "search" => 0.0,
                _ => values * self.chunk.bytes_per_row(),
            },
            threads: 1,
        };
        let ours = summarise(ours);
        let share = share(&ours, done);
        report.point(&Point {
            figure: "waist",
            series: primitive,
            x: self.scheme.into(),
            value: ours.rate(done.amount),
            unit: done.unit,
            spread: ours.spread,
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

    fn folds(&mut self, report: &mut Report) {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        let all = &Selection::all(chunk.rows());
        if chunk.physical() == Physical::Text {
            return;
        }
        self.line(
            "fold (sum)",
            chunk.rows(),
            &mut |work| {
                let mut fold = Fold::default();
                chunk.fold(SUM, all, &mut fold, work);
                black_box(fold);
            },
            &mut |work| {
                let mut fold = Fold::default();
                fold_decoded(codec, chunk, SUM, all, &mut fold, work);
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
                chunk.fold_by(all, &ids, &mut Folds { asked: SUM, folds }, work);
            },
            &mut |work| {
                let folds = &mut others[..];
                fold_by_decoded(
                    codec,
                    chunk,
                    all,
                    &ids,
                    &mut Folds { asked: SUM, folds },
                    work,
                );
            },
            report,
        );
    }

    /// The sum of the values below the middle.
    fn fold_where(&mut self, middle: &Value, report: &mut Report) -> Result<()> {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        let all = &Selection::all(chunk.rows());
        if chunk.physical() == Physical::Text {
            return Ok(());
        }
        let predicate = Predicate::compare(chunk.data_type(), Comparison::Less, middle)?;
        let mut passing = Selection::default();
        self.line(
            "fold_where (sum)",
            chunk.rows(),
            &mut |work| {
                let mut fold = Fold::default();
                chunk.fold_where((&predicate, all), SUM, &mut fold, work);
                black_box(fold);
            },
            &mut |work| {
                let mut fold = Fold::default();
                compare_decoded(codec, chunk, &predicate, all, &mut passing, work);
                passing.settle();
                fold_decoded(codec, chunk, SUM, &passing, &mut fold, work);
                black_box(fold);
            },
            report,
        );
        Ok(())
    }
}
