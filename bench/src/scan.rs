//! Comparing, filtering and summing single columns, against a rival's compressed arrays.
//!
//! Both sides read the same file, choose their own encodings, and end with what a caller wants: a
//! selection, an Arrow array of the rows kept, a number. Answers are compared by the harness
//! (`rivals/headline.py --suite scans`).

use std::hint::black_box;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::{Error, Result};
use tersecades_engine::source::{self, SourceOptions};

use crate::Options;
use crate::data::batches;
use crate::measure::interleave;
use crate::report::{QueryRate, Report};

/// File, column, and the constant that it is compared with: as in `rivals/scans.py`.
const COLUMNS: &[(&str, &str, i64)] = &[
    ("integers.arrow", "D1", 1 << 5),
    ("integers.arrow", "D2", 1 << 25),
    ("integers.arrow", "D3", 500_000),
    ("integers.arrow", "D4", 1 << 5),
    ("pingmesh_10m.arrow", "timestamp", 1_700_000_050_000),
    ("pingmesh_10m.arrow", "rtt_us", 1_000),
    ("pingmesh_10m.arrow", "error_code", 0),
];

/// Times each operation on each column.
///
/// # Errors
/// What reading and encoding say.
pub(crate) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(folder) = options.data.as_ref().filter(|data| data.is_dir()) else {
        report.note("skipped: needs --data FOLDER of bench/rivals/gen_integers.py");
        return Ok(());
    };
    for (file, column, constant) in COLUMNS {
        let chunks = load(&folder.join(file), column)?;
        let size: usize = chunks.iter().map(Chunk::byte_size).sum();
        let rows: usize = chunks.iter().map(Chunk::rows).sum();
        let label = chunks.first().map(Chunk::codec_label).unwrap_or_default();
        report.add(
            format!("{column} as {label}"),
            size as f64 / rows as f64,
            "B/value",
        );
        let scan = Scan::new(column, *constant, chunks)?;
        scan.measure(rows, options, report)?;
    }
    Ok(())
}

/// One column and the comparisons with its constant.
struct Scan<'a> {
    column: &'a str,
    chunks: Vec<Chunk>,
    equal: Predicate,
    greater: Predicate,
}

impl<'a> Scan<'a> {
    fn new(column: &'a str, constant: i64, chunks: Vec<Chunk>) -> Result<Self> {
        let data_type = chunks.first().map(Chunk::data_type);
        let data_type = data_type.ok_or_else(|| Error::invalid("the file is empty"))?;
        let constant = constant.into();
        Ok(Scan {
            equal: Predicate::compare(data_type, Comparison::Equal, &constant)?,
            greater: Predicate::compare(data_type, Comparison::Greater, &constant)?,
            column,
            chunks,
        })
    }

    fn measure(&self, rows: usize, options: &Options, report: &mut Report) -> Result<()> {
        let answers = [
            ("equal", self.count().to_string()),
            ("filter", check_kept(&self.keep()?)?),
            ("sum", wrapped(self.sum())),
        ];
        let timings = interleave(
            options.repetitions,
            [
                &mut || {
                    black_box(self.count());
                },
                &mut || drop(black_box(self.keep())),
                &mut || {
                    black_box(self.sum());
                },
            ],
        );
        for ((operation, checksum), timing) in answers.iter().zip(timings) {
            report.query(&QueryRate {
                query: &format!("{} {operation}", self.column),
                threads: 1,
                rows,
                rows_per_s: timing.rate(rows as f64),
                checksum,
            });
        }
        Ok(())
    }

    fn count(&self) -> usize {
        let (mut out, mut work, mut found) = (Selection::default(), Work::default(), 0);
        for chunk in &self.chunks {
            let all = Selection::all(chunk.rows());
            chunk.compare(&self.equal, &all, &mut out, &mut work);
            found += black_box(&out).count();
        }
        found
    }

    fn keep(&self) -> Result<Vec<ArrayRef>> {
        let (mut out, mut work) = (Selection::default(), Work::default());
        let kept = self.chunks.iter().map(|chunk| {
            let all = Selection::all(chunk.rows());
            chunk.compare(&self.greater, &all, &mut out, &mut work);
            chunk.to_arrow(&out, &mut work)
        });
        kept.collect()
    }

    fn sum(&self) -> i128 {
        let asked = Asked {
            sum: true,
            ..Asked::default()
        };
        let (mut total, mut work) = (Fold::default(), Work::default());
        for chunk in &self.chunks {
            chunk.fold(asked, &Selection::all(chunk.rows()), &mut total, &mut work);
        }
        total.sum
    }
}

/// The column as our engine takes it in: encoded as chosen, batch by batch.
fn load(path: &Path, column: &str) -> Result<Vec<Chunk>> {
    let mut source = source::open(path, &SourceOptions::default())?;
    let mut chunks = Vec::new();
    let mut encoder: Option<ColumnEncoder> = None;
    for batch in batches(source.as_mut()) {
        let array = column_of(&batch?, column)?;
        let encoder = match &mut encoder {
            Some(encoder) => encoder,
            None => encoder.insert(ColumnEncoder::new(array.data_type())?),
        };
        for start in (0..array.len()).step_by(tersecades_columnar::batch::BATCH_ROWS) {
            let rows = tersecades_columnar::batch::BATCH_ROWS.min(array.len() - start);
            chunks.push(encoder.encode_new(&array.slice(start, rows))?);
        }
    }
    Ok(chunks)
}

fn column_of(batch: &RecordBatch, column: &str) -> Result<ArrayRef> {
    let array = batch.column_by_name(column).cloned();
    let array = array.ok_or_else(|| Error::invalid(format!("the file has no column {column}")))?;
    Ok(match array.data_type() {
        DataType::Timestamp(..) => cast(&array, &DataType::Int64)?,
        _ => array,
    })
}

/// Number and sum of what was kept.
fn check_kept(kept: &[ArrayRef]) -> Result<String> {
    let (mut rows, mut sum) = (0, 0i128);
    for array in kept {
        rows += array.len();
        let values = cast(array, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>().values();
        sum += values.iter().map(|value| i128::from(*value)).sum::<i128>();
    }
    Ok(format!("{rows}:{}", wrapped(sum)))
}

/// A sum as the rival has it: modulo 2^64.
fn wrapped(sum: i128) -> String {
    (sum as i64).to_string()
}
