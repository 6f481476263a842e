//! Encoded columns that fill memory: the ground of the scan benches.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;

use crate::data::{codec, slices, timestamps};

/// Different chunks made before they repeat.
const PATTERNS: usize = 16;

/// `array` under the codec called `name`.
///
/// # Errors
/// What the encoder says.
pub(crate) fn encode(array: &ArrayRef, name: &str) -> Result<Chunk> {
    let mut encoder = ColumnEncoder::new(array.data_type())?;
    encoder.pin(codec(name));
    encoder.encode_new(array)
}

/// The share of the values of `chunks` that `step` looks at: not what its tally has as skipped.
pub(crate) fn looked_at(chunks: &[Chunk], mut step: impl FnMut(&Chunk, &mut Work)) -> f64 {
    let mut work = Work::default();
    chunks.iter().for_each(|chunk| step(chunk, &mut work));
    let rows: usize = chunks.iter().map(Chunk::rows).sum();
    1.0 - work.tally.skipped as f64 / rows as f64
}

/// `values`, over and over up to `rows`, as base_delta chunks, each with memory of its own.
///
/// # Errors
/// What the encoder says.
pub(crate) fn encoded(values: Vec<i64>, rows: usize) -> Result<Vec<Chunk>> {
    encoded_as("base_delta", values, rows)
}

/// [`encoded`] under the codec called `name`.
///
/// # Errors
/// What the encoder says.
pub(crate) fn encoded_as(name: &str, values: Vec<i64>, rows: usize) -> Result<Vec<Chunk>> {
    let arrays = slices(values, BATCH_ROWS);
    let mut encoder = ColumnEncoder::new(&DataType::Int64)?;
    encoder.pin(codec(name));
    let count = rows.div_ceil(BATCH_ROWS);
    let arrays = arrays.iter().cycle().take(count);
    arrays.map(|array| encoder.encode_new(array)).collect()
}

/// Values for [`encoded`] with nothing to skip: every group holds the middle of every other.
pub(crate) fn dense_values() -> Vec<i64> {
    let mut values = timestamps(PATTERNS * BATCH_ROWS, 0, 7);
    for (index, value) in values.iter_mut().enumerate() {
        *value = i64::try_from((index * 37) % 251).unwrap_or(0);
    }
    values
}

/// Values for [`encoded`] whose blocks lie far apart, with room between them.
pub(crate) fn gapped_values() -> Vec<i64> {
    let mut values = dense_values();
    for (index, value) in values.iter_mut().enumerate() {
        *value += i64::try_from(index % BATCH_ROWS / 1024).unwrap_or(0) * GAP;
    }
    values
}

/// Distance between the blocks of [`gapped_values`].
pub(crate) const GAP: i64 = 1_000_000;
