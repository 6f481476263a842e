//! Columns of real data as the chooser keeps them, hot and cold: equality, sums and decoding.
//!
//! ```text
//! folder of data → up to three columns of integers or decimals, repeated up to three times the
//!     third-level cache → chosen codec, bytes a value; values a second, share of the read
//!     bandwidth, times of decoding first and of plain values over ours
//! ```

use std::hint::black_box;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::types::Value;
use tersecades_columnar::{Error, Result};

use super::{THREADS, read_by};
use crate::Options;
use crate::choice::set;
use crate::integer::work::{Way, bytes, compare, decode_then, encode, encode_as, sum};
use crate::measure::{Middle, ratio, summarise, take_turns};
use crate::record::machine::cache_bytes;
use crate::report::{Done, Point, Report, share};

/// Rows that are read of a folder.
const ROWS: usize = 1_000_000;
/// Columns of a folder.
const COLUMNS: usize = 3;
/// Digits behind the point of decimals, as a factor.
const DECIMALS: f64 = 1e6;

/// Prints the figure.
///
/// # Errors
/// What encoding says; files that cannot be read are named and passed over.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let Some(data) = options.data_folder().filter(|it| it.is_dir()) else {
        report.note("real columns are left out: they need --data FOLDER or TERSECADES_DATA");
        return Ok(());
    };
    for (name, files) in set::sets(&data)? {
        for column in columns(&name, &files, options, report)? {
            for tier in [Tier::Hot, Tier::Cold] {
                measure(&column, tier, options.repetitions.min(5), report)?;
            }
        }
    }
    Ok(())
}

/// A column of a set of data.
struct Column {
    name: String,
    values: ArrayRef,
    /// Equal to one of the values.
    equal: Predicate,
}

/// Up to [`COLUMNS`] columns of the files of a set.
fn columns(
    set: &str,
    files: &[PathBuf],
    options: &Options,
    report: &mut Report,
) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    for file in files {
        match of_file(file, options.rows) {
            Ok(columns) => found.extend(columns),
            Err(error) => report.note(&format!("{set}: passed over: {error}")),
        }
        if found.len() >= COLUMNS {
            break;
        }
    }
    found.truncate(COLUMNS);
    for column in &mut found {
        column.name = format!("{set}/{}", column.name);
    }
    Ok(found)
}

/// The columns of a file that are of a kind and not constant, up to `rows` rows of each.
fn of_file(file: &Path, rows: Option<usize>) -> Result<Vec<Column>> {
    let table = set::read(file, rows.unwrap_or(ROWS).min(ROWS))?;
    let Some(first) = table.batches.first() else {
        return Ok(Vec::new());
    };
    let mut columns = Vec::new();
    for (index, field) in first.schema().fields().iter().enumerate() {
        if !field.data_type().is_numeric() || columns.len() == COLUMNS {
            continue;
        }
        let parts: Vec<&dyn Array> = table
            .batches
            .iter()
            .map(|batch| batch.column(index).as_ref())
            .collect();
        let values = concat(&parts)?;
        let Some(middle) = middle(&values)? else {
            continue;
        };
        columns.push(Column {
            name: format!("{}, {}", table.name, field.name()),
            equal: Predicate::compare(values.data_type(), Comparison::Equal, &middle)?,
            values: repeated(&values, rows)?,
        });
    }
    Ok(columns)
}

/// A value from the middle of `values`, if they are of a kind and not constant.
fn middle(values: &ArrayRef) -> Result<Option<Value>> {
    if values.null_count() * 2 > values.len() {
        return Ok(None);
    }
    let floats = cast(values, &DataType::Float64)?;
    let mut floats = floats.as_primitive::<Float64Type>().iter().flatten();
    let Some(first) = floats.next() else {
        return Ok(None);
    };
    let (mut varies, mut decimal) = (false, true);
    for float in floats {
        varies |= float != first;
        decimal &= (float * DECIMALS).round() / DECIMALS == float;
    }
    let middle = (values.len() / 2..values.len()).find(|&row| values.is_valid(row));
    let (Some(row), true, true) = (middle, varies, decimal) else {
        return Ok(None);
    };
    let one = values.slice(row, 1);
    Ok(Some(if values.data_type().is_integer() {
        let one = cast(&one, &DataType::Int64)?;
        one.as_primitive::<Int64Type>().value(0).into()
    } else {
        let one = cast(&one, &DataType::Float64)?;
        one.as_primitive::<Float64Type>().value(0).into()
    }))
}

/// `values` again and again, as many as `rows` say, or as fill the third-level cache three times.
fn repeated(values: &ArrayRef, rows: Option<usize>) -> Result<ArrayRef> {
    let width = values.data_type().primitive_width();
    let width = width.ok_or_else(|| Error::internal("numbers have a width"))?;
    let enough = || 3 * cache_bytes(3).unwrap_or(32 << 20) / width;
    let times = rows.unwrap_or_else(enough).div_ceil(values.len());
    Ok(concat(&vec![values.as_ref(); times])?)
}

/// Values a second as the column lies, in times of decoding first and of plain values.
fn measure(column: &Column, tier: Tier, repetitions: usize, report: &mut Report) -> Result<()> {
    let plain = encode(&column.values, "plain".parse()?, 1)?;
    let chunks = encode_as(&column.values, 1, |encoder| {
        encoder.aim(Goal::of_tier(tier));
    })?;
    let place = Place {
        x: format!("{}, {tier}", column.name),
        rows: column.values.len() as f64,
        bytes: bytes(&chunks),
    };
    place.size(&chunks, report);
    let hand_on = |keys: &[u64]| {
        black_box(keys);
    };
    let read = place.bytes * read_by(&chunks, &column.equal);
    for threads in THREADS {
        let equal = |chunks: &[Chunk], way| compare(chunks, &column.equal, threads, way);
        let [direct, decoded, of_plain] = take_turns(
            repetitions,
            [
                &mut || equal(&chunks, Way::Direct),
                &mut || equal(&chunks, Way::DecodeFirst),
                &mut || equal(&plain, Way::Direct),
            ],
        );
        let gains = vec![ratio(&decoded, &direct), ratio(&of_plain, &direct)];
        place.point(report, ("equal", threads), (direct, read), gains);
        let [direct, decoded, of_plain] = take_turns(
            repetitions,
            [
                &mut || sum(&chunks, threads, Way::Direct),
                &mut || sum(&chunks, threads, Way::DecodeFirst),
                &mut || sum(&plain, threads, Way::Direct),
            ],
        );
        let gains = vec![ratio(&decoded, &direct), ratio(&of_plain, &direct)];
        place.point(report, ("sum", threads), (direct, place.bytes), gains);
        let [direct, of_plain] = take_turns(
            repetitions,
            [&mut || decode_then(&chunks, threads, hand_on), &mut || {
                decode_then(&plain, threads, hand_on)
            }],
        );
        let gains = vec![ratio(&of_plain, &direct)];
        place.point(report, ("decode", threads), (direct, place.bytes), gains);
    }
    Ok(())
}

/// Where numbers belong.
struct Place {
    x: String,
    rows: f64,
    bytes: f64,
}

impl Place {
    /// Bytes of a value, and the codec.
    fn size(&self, chunks: &[Chunk], report: &mut Report) {
        report.point(&Point {
            figure: "real_columns",
            series: "size",
            x: self.x.as_str().into(),
            value: self.bytes / self.rows,
            unit: "B/value",
            spread: None,
            share: None,
            note: chunks.last().map(Chunk::codec_label),
        });
    }

    fn point(
        &self,
        report: &mut Report,
        (operation, threads): (&str, usize),
        (seconds, bytes): (Vec<f64>, f64),
        gains: Vec<Middle>,
    ) {
        let done = Done {
            amount: self.rows / 1e9,
            unit: "G values/s",
            bytes,
            threads,
        };
        let timing = summarise(seconds);
        let gains: Vec<String> = gains
            .iter()
            .map(|gain| format!("{:.2}", gain.median))
            .collect();
        report.point(&Point {
            figure: "real_columns",
            series: &format!("{operation}, {threads} thread(s)"),
            x: self.x.as_str().into(),
            value: timing.rate(done.amount),
            unit: done.unit,
            spread: timing.spread,
            share: share(&timing, done),
            note: Some(format!("x {}", gains.join(", x "))),
        });
    }
}
