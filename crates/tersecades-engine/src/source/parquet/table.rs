//! The dictionary of a column: what its codes stand for.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::OffsetBuffer;
use bytes::Bytes;
use parquet::basic::Type;
use tersecades_columnar::error::Result;
use tersecades_columnar::kernels::Lane;
use tersecades_columnar::predicate::Predicate;

use super::page::{STRETCH, SplitChecked, ended, outside};
use super::tested::CodeTest;

/// Texts are tested where there are so many rows for each.
const ROWS_PER_TEXT: usize = 8;

/// The values that codes stand for.
pub(super) enum Table {
    Four(Vec<u32>),
    Eight(Vec<u64>),
    Text(ArrayRef),
}

/// Looks up values by codes; false if one is outside.
pub(super) type Take<W> = fn(&[W], &[u32], &mut [W]) -> bool;

/// The values of `codes`.
///
/// # Errors
/// `Corrupt` for codes without a value.
pub(super) fn look_up<W: Lane>(table: &[W], codes: &[u32], take: Take<W>) -> Result<Vec<W>> {
    let (mut values, mut found) = (Vec::with_capacity(codes.len()), [W::default(); STRETCH]);
    for codes in codes.chunks(STRETCH) {
        let found = &mut found[..codes.len()];
        if !take(table, codes, found) {
            return Err(outside());
        }
        values.extend_from_slice(found);
    }
    Ok(values)
}

impl Table {
    /// The `count` values of a dictionary page, which are written plainly.
    ///
    /// # Errors
    /// `Corrupt` if there are fewer.
    pub(super) fn read(bytes: &Bytes, count: usize, stored: Type) -> Result<Table> {
        Ok(match stored {
            Type::INT32 | Type::FLOAT => {
                let (values, _) = bytes.as_chunks();
                let values = values.get(..count).ok_or_else(ended)?;
                Table::Four(
                    values
                        .iter()
                        .map(|value| u32::from_le_bytes(*value))
                        .collect(),
                )
            }
            Type::INT64 | Type::DOUBLE => {
                let (values, _) = bytes.as_chunks();
                let values = values.get(..count).ok_or_else(ended)?;
                Table::Eight(
                    values
                        .iter()
                        .map(|value| u64::from_le_bytes(*value))
                        .collect(),
                )
            }
            _ => Table::Text(text_table(bytes.clone(), count)?),
        })
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Table::Four(values) => values.len(),
            Table::Eight(values) => values.len(),
            Table::Text(texts) => texts.len(),
        }
    }

    /// The test of codes that is `tests` of values, integers whose keys have `flip` flipped or
    /// texts; none where `rows` rows are hardly more than texts.
    pub(super) fn code_test(
        &self,
        flip: u64,
        tests: &[Arc<Predicate>],
        rows: usize,
    ) -> Option<CodeTest> {
        match self {
            Table::Four(values) => Some(CodeTest::of_numbers(values, flip, tests)),
            Table::Eight(values) => Some(CodeTest::of_numbers(values, flip, tests)),
            Table::Text(texts) if texts.len() <= rows / ROWS_PER_TEXT => {
                Some(CodeTest::of_texts(texts.as_string_opt()?, tests))
            }
            Table::Text(_) => None,
        }
    }
}

/// Texts, each behind its length.
fn text_table(mut bytes: Bytes, count: usize) -> Result<ArrayRef> {
    let mut lengths = Vec::with_capacity(count.min(bytes.len() / 4));
    let mut text = Vec::with_capacity(bytes.len());
    for _ in 0..count {
        let length = bytes.split_to_checked(4)?;
        let length = length.first_chunk().map_or(0, |n| u32::from_le_bytes(*n)) as usize;
        text.extend_from_slice(&bytes.split_to_checked(length)?);
        lengths.push(length);
    }
    let offsets: OffsetBuffer<i32> = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(StringArray::try_new(offsets, text.into(), None)?))
}
