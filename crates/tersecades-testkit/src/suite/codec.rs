//! The codec conformance suite: every primitive against the same computed from plain values.
//!
//! ```text
//! for each type, shape, length:   encode, then
//!   validate; values come back bit for bit; slices too
//!   for each selection:           gather, to_arrow, fold (everything that can be asked),
//!                                 repeats, rank, fold_by
//!     for each predicate:         compare, fold_where
//!   map, add, slice:              what comes out is checked as what went in
//! ```
//! A codec is checked on whatever it accepts; one that accepts nothing fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tersecades_columnar::block::{BLOCK_ROWS, block_count, block_rows};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Codec, Work};
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::Error;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::input::Lanes;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value, logical_type};
use tersecades_columnar::values::Values;
use tersecades_columnar::wire;

use super::case::{Case, Within, selections};
use super::expected::Expected;
use super::primitive::{check_fold_where, check_made, check_selected};
use crate::data::{SHAPES, Shape, column, types};
use crate::random::Random;

/// A length past the first unit of codecs that decode many blocks together.
const UNITS_ROWS: usize = 17_000;

/// Shapes that are as long.
const UNITS_SHAPES: [Shape; 3] = [Shape::Random, Shape::AlternatingNulls, Shape::Outliers];

/// Lengths around words, groups and blocks.
pub const LENGTHS: &[usize] = &[0, 1, 63, 64, 65, 127, 128, 1023, 1024, 1025, 2600];

/// Most failures that are written down.
const FAILURES_MAX: usize = 12;

/// Nothing, or what differs.
pub(super) type Check = Result<(), String>;

/// Checks `codec` on every type, shape and length.
///
/// # Panics
/// With the first failures, when any primitive of the codec differs from plain values.
pub fn check_codec(codec: &'static dyn Codec) {
    check(&codec.into());
}

/// Checks the cascade that `scheme` names on every type, shape and length.
///
/// # Panics
/// As [`check_codec`]; also when the scheme cannot be read or no column takes all of its codecs.
pub fn check_scheme(scheme: &str) {
    check(&scheme.parse().unwrap());
}

fn check(scheme: &Scheme) {
    let mut failures = Vec::new();
    let (mut checked, mut failed) = (0, 0);
    let mut seen = Vec::new();
    for data_type in types() {
        let lengths = lengths_of(&data_type, &mut seen);
        for shape in SHAPES {
            let mut run = || check_column(scheme, &data_type, *shape, lengths);
            let caught = catch_unwind(AssertUnwindSafe(&mut run));
            let outcome = caught.unwrap_or_else(|panic| Err(message(panic.as_ref())));
            match outcome {
                Ok(count) => checked += count,
                Err(failure) => {
                    failed += 1;
                    failures.push(format!("{data_type} {shape:?}: {failure}"));
                }
            }
        }
    }
    failures.truncate(FAILURES_MAX);
    let list = failures.join("\n");
    assert!(
        failures.is_empty(),
        "{scheme} fails on {failed} columns:\n{list}"
    );
    assert!(checked > 0, "{scheme} accepts no column");
}

/// Types that lie in memory as one before them are checked on short columns only.
fn lengths_of(data_type: &DataType, seen: &mut Vec<Physical>) -> &'static [usize] {
    let physical = Physical::of(data_type).unwrap();
    if seen.contains(&physical) {
        return &LENGTHS[..LENGTHS.len() / 2];
    }
    // Booleans are unpacked on their way in, so they do not stand for bytes.
    if *data_type != DataType::Boolean {
        seen.push(physical);
    }
    LENGTHS
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("panicked: {}", text.unwrap_or_default())
}

/// Whether the codecs of `chunk`, following the first chunk inside, are those of `scheme`.
fn has_scheme(chunk: &Chunk, scheme: &Scheme) -> bool {
    scheme.first().is_none_or(|stage| {
        let rest = scheme.rest();
        let mut inner = chunk.inner();
        chunk.codec().id() == stage.codec.id()
            && (rest.first().is_none() || inner.next().is_some_and(|i| has_scheme(i, &rest)))
    })
}

/// Checks one type and shape; returns how many lengths took all codecs of the scheme.
fn check_column(
    scheme: &Scheme,
    data_type: &DataType,
    shape: Shape,
    lengths: &[usize],
) -> Result<usize, String> {
    let mut random = Random::new(7);
    let mut encoder = ColumnEncoder::new(data_type).map_err(|error| error.to_string())?;
    encoder.pin(*scheme);
    let codec = scheme.first().unwrap().codec;
    let mut chunk = Chunk::default();
    let mut accepted = 0;
    let is_long = lengths.len() == LENGTHS.len() && UNITS_SHAPES.contains(&shape);
    let of_units = codec.unit_rows() > BLOCK_ROWS && is_long;
    let lengths = lengths.iter().chain(of_units.then_some(&UNITS_ROWS));
    for rows in lengths {
        let case = Case::new(data_type, column(data_type, shape, *rows, &mut random));
        encode(codec, &mut encoder, &case, &mut chunk)?;
        if chunk.codec().id() != codec.id() {
            continue;
        }
        accepted += usize::from(has_scheme(&chunk, scheme));
        check_chunk(&chunk, &case, &mut random).map_err(|error| format!("{rows} rows: {error}"))?;
        check_written(&chunk, &case).map_err(|error| format!("{rows} rows: {error}"))?;
        check_slice(&mut encoder, &case).map_err(|error| format!("{rows} rows: {error}"))?;
        check_made(codec, (&chunk, &mut encoder), &case, &mut random)
            .map_err(|error| format!("{rows} rows: {error}"))?;
    }
    Ok(accepted)
}

/// Encodes with the pinned codec; texts that no codec took as codes are offered as plain text.
fn encode(
    codec: &'static dyn Codec,
    encoder: &mut ColumnEncoder,
    case: &Case,
    chunk: &mut Chunk,
) -> Check {
    encoder
        .encode(&case.array, chunk)
        .map_err(|error| error.to_string())?;
    if chunk.codec().id() == codec.id() || case.array.null_count() > 0 {
        return Ok(());
    }
    let text = tersecades_columnar::arrow::lanes(case.array.as_ref());
    match text {
        Some(lanes @ Lanes::Text { .. }) => encoder
            .encode_values(lanes, chunk)
            .map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

pub(super) fn check_chunk(chunk: &Chunk, case: &Case, random: &mut Random) -> Check {
    let nulls = case.array.null_count();
    if (chunk.rows(), chunk.nulls()) != (case.values.len(), nulls) {
        return Err(format!(
            "{} rows, {} of {nulls} nulls",
            chunk.rows(),
            chunk.nulls()
        ));
    }
    chunk
        .codec()
        .validate(chunk)
        .map_err(|error| format!("validate: {error}"))?;
    let questions = case.questions(1, random);
    let mut work = Work::default();
    check_bytes(chunk, case, &mut work)?;
    for within in selections(chunk.rows(), random) {
        let place = |error| format!("within {}: {error}", within.name);
        check_gather(chunk, case, &within, &mut work).map_err(place)?;
        check_folds(chunk, case, &within, &mut work).map_err(place)?;
        check_selected(chunk, case, &within, &mut work).map_err(place)?;
        let mut found = Selection::default();
        for (index, question) in questions.iter().enumerate() {
            check_fold_where((chunk, case), &within, (index, question), &mut work)
                .map_err(place)?;
            chunk.compare(
                &question.predicate,
                &within.selection,
                &mut found,
                &mut work,
            );
            let expected: Vec<usize> = within
                .rows
                .iter()
                .copied()
                .filter(|row| question.passing[*row])
                .collect();
            let mut got = Vec::new();
            found.for_each(|row| got.push(row));
            if got != expected || found.count() != expected.len() || found.rows() != chunk.rows() {
                let first = got.iter().zip(&expected).position(|(a, b)| a != b);
                let first = first.unwrap_or(got.len().min(expected.len()));
                let row = got.get(first).min(expected.get(first));
                return Err(format!(
                    "within {}: {} gives {} rows instead of {}, first difference at {row:?} {:?}",
                    within.name,
                    question.name,
                    got.len(),
                    expected.len(),
                    row.or(expected.get(first)).map(|row| &case.values[*row]),
                ));
            }
        }
    }
    Ok(())
}

/// Checks the bytes of integers that have one.
fn check_bytes(chunk: &Chunk, case: &Case, work: &mut Work) -> Check {
    let Physical::Integer { bytes: 1, signed } = chunk.physical() else {
        return Ok(());
    };
    let mut bytes = [0; BLOCK_ROWS];
    for block in 0..block_count(chunk.rows()) {
        chunk.codec().decode_bytes(chunk, block, &mut bytes, work);
        for (row, byte) in block_rows(block, chunk.rows()).zip(bytes) {
            let value = i128::from(byte) - if signed { 128 } else { 0 };
            let expected = &case.values[row];
            if *expected != Value::Null && *expected != Value::Integer(value) {
                return Err(format!("byte {byte} at row {row} for {expected:?}"));
            }
        }
    }
    Ok(())
}

/// Checks a chunk that a primitive made: its bytes, its values, folds and a few comparisons.
pub(super) fn check_answers(chunk: &Chunk, case: &Case, random: &mut Random) -> Check {
    let nulls = case.array.null_count();
    if (chunk.rows(), chunk.nulls()) != (case.values.len(), nulls) {
        return Err(format!(
            "{} rows, {} of {nulls} nulls",
            chunk.rows(),
            chunk.nulls()
        ));
    }
    let valid = chunk.codec().validate(chunk);
    valid.map_err(|error| format!("validate: {error}"))?;
    let mut work = Work::default();
    let questions = case.questions(5, random);
    for within in selections(chunk.rows(), random).take(3) {
        check_gather(chunk, case, &within, &mut work)?;
        check_folds(chunk, case, &within, &mut work)?;
        let mut found = Selection::default();
        for question in &questions {
            let predicate = &question.predicate;
            chunk.compare(predicate, &within.selection, &mut found, &mut work);
            let mut got = Vec::new();
            found.for_each(|row| got.push(row));
            let rows = within.rows.iter().copied();
            let expected: Vec<usize> = rows.filter(|row| question.passing[*row]).collect();
            if got != expected {
                let shown = (chunk.codec_label(), got.len(), expected.len());
                return Err(format!("{} of a result is wrong: {shown:?}", question.name));
            }
        }
    }
    Ok(())
}

/// Bytes of the chunk read back hold the same values.
fn check_written(chunk: &Chunk, case: &Case) -> Check {
    let mut bytes = Vec::new();
    let said = |error: Error| format!("written and read: {error}");
    wire::write_chunk(chunk, &mut bytes).map_err(said)?;
    let (read, _) = wire::read_chunk(&bytes, None).map_err(said)?;
    let all = Selection::all(read.rows());
    let back = read.to_arrow(&all, &mut Work::default()).map_err(said)?;
    same_array(&back, &case.array).map_err(|error| format!("written and read: {error}"))
}

/// Values and arrays of the selected rows, bit for bit.
fn check_gather(chunk: &Chunk, case: &Case, within: &Within, work: &mut Work) -> Check {
    let mut values = Values::default();
    chunk.gather(&within.selection, &mut values, work);
    if values.len() != within.rows.len() {
        return Err(format!(
            "gathers {} rows instead of {}",
            values.len(),
            within.rows.len()
        ));
    }
    for (index, row) in within.rows.iter().enumerate() {
        let (expected, got) = (&case.values[*row], values.value(index));
        if !is_identical(expected, &got) {
            return Err(format!(
                "gathers {got:?} at row {row} instead of {expected:?}"
            ));
        }
    }
    let array = chunk
        .to_arrow(&within.selection, work)
        .map_err(|error| error.to_string())?;
    same_array(&array, &case.array_of(&within.rows))
}

/// Equal to the bit; gathered decimals do not know their scale.
fn is_identical(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Decimal(a, _), Value::Decimal(b, _)) => a == b,
        (Value::Binary(a), Value::Text(b)) => a.as_slice() == b.as_bytes(),
        _ => expected == got,
    }
}

fn same_array(got: &ArrayRef, expected: &ArrayRef) -> Check {
    let logical = logical_type(got.data_type());
    let flat = arrow_cast::cast(got, &logical).map_err(|error| error.to_string())?;
    match flat.to_data() == expected.to_data() {
        true => Ok(()),
        false => Err(format!("array {flat:?} instead of {expected:?}")),
    }
}

fn check_folds(chunk: &Chunk, case: &Case, within: &Within, work: &mut Work) -> Check {
    let values: Vec<&Value> = within.rows.iter().map(|row| &case.values[*row]).collect();
    let expected = Expected::of(&case.data_type, &values);
    for parts in 0..8u8 {
        let asked = Asked {
            sum: parts & 1 > 0,
            squares: parts & 2 > 0,
            ends: parts & 4 > 0,
        };
        let mut fold = Fold::default();
        chunk.fold(asked, &within.selection, &mut fold, work);
        if let Some(difference) = expected.difference(asked, &fold) {
            return Err(format!("fold {asked:?}: {difference}"));
        }
        let (count, ends) = (fold.count, (fold.min, fold.max));
        chunk.fold(asked, &within.selection, &mut fold, work);
        if (fold.count, (fold.min, fold.max)) != (2 * count, ends) {
            return Err(format!("fold {asked:?} of the same again: {fold:?}"));
        }
    }
    Ok(())
}

/// Arrays that are slices of others and dictionaries come back too, whichever codec is chosen.
fn check_slice(encoder: &mut ColumnEncoder, case: &Case) -> Check {
    let Some(rows) = case.values.len().checked_sub(4) else {
        return Ok(());
    };
    let slice = case.array.slice(3, rows);
    let mut sources = vec![Arc::clone(&slice)];
    if let DataType::Utf8 | DataType::Binary = case.data_type {
        sources.push(as_dictionary(&slice)?);
    }
    let mut work = Work::default();
    let mut free = ColumnEncoder::new(&case.data_type).map_err(|error| error.to_string())?;
    for encoder in [encoder, &mut free] {
        for source in &sources {
            let chunk = encoder
                .encode_new(source)
                .map_err(|error| error.to_string())?;
            let back = chunk.to_arrow(&Selection::all(rows), &mut work);
            let back = back.map_err(|error| error.to_string())?;
            same_array(&back, &slice).map_err(|error| format!("slice as {chunk:?}: {error}"))?;
        }
    }
    Ok(())
}

fn as_dictionary(array: &ArrayRef) -> Result<ArrayRef, String> {
    let values = Box::new(array.data_type().clone());
    let data_type = DataType::Dictionary(Box::new(DataType::Int16), values);
    arrow_cast::cast(array, &data_type).map_err(|error| error.to_string())
}
