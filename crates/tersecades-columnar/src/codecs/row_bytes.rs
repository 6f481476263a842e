//! Where the bytes of each row lie, for codecs that store text row after row: a chunk inside holds
//! the length of every row, under whichever codec suits lengths.

use std::ops::Range;

use arrow_schema::DataType;

use crate::block::BLOCK_ROWS;
use crate::choose::{Estimate, Sample};
use crate::chunk::Chunk;
use crate::codec::{EncodeWork, Work};
use crate::dictionary::TEXT_BYTES_LIMIT;
use crate::error::{Error, Result};
use crate::input::{Input, Lanes};
use crate::types::Physical;
use crate::values::Values;

/// Position among the chunks inside.
const LENGTHS: usize = 0;

/// The text of row `row` of text lanes; that of a null is empty.
pub(crate) fn text_of<'a>(input: &Input<'a>, row: usize) -> &'a [u8] {
    match input.lanes {
        Lanes::Text { offsets, bytes } if input.is_valid(row) => {
            &bytes[offsets[row] as usize..offsets[row + 1] as usize]
        }
        _ => &[],
    }
}

/// Adds the lengths of all rows as the chunk inside `out`.
///
/// # Errors
/// What the codec of the lengths says.
pub(crate) fn encode_lengths(
    lengths: &[u32],
    out: &mut Chunk,
    work: &mut EncodeWork,
) -> Result<()> {
    let input = Input {
        data_type: &DataType::UInt32,
        physical: Physical::of(&DataType::UInt32)?,
        lanes: Lanes::U32(lengths),
        // A hole's length counts: it moves every row behind it.
        validity: None,
        array: None,
    };
    out.body.encode_inner(LENGTHS, &input, work)
}

/// What the lengths of the sampled rows would take.
pub(crate) fn estimate_lengths(sample: &Sample<'_>, lengths: &[u32]) -> Estimate {
    sample.inner(&DataType::UInt32, Lanes::U32(lengths))
}

/// The lengths of a validated chunk.
pub(crate) fn lengths(chunk: &Chunk) -> Option<&Chunk> {
    chunk.body.inner[LENGTHS].as_deref()
}

/// The lengths of a validated chunk.
///
/// # Errors
/// `Corrupt` where there are none, which no validated chunk lacks.
pub(crate) fn validated_lengths(chunk: &Chunk) -> Result<&Chunk> {
    lengths(chunk).ok_or_else(|| Error::corrupt("a chunk lacks the lengths of its rows"))
}

/// The lengths of `chunk`, whose codec is `name`, checked.
///
/// # Errors
/// `Corrupt` where there is not exactly one length a row.
pub(crate) fn validate_lengths<'a>(chunk: &'a Chunk, name: &str) -> Result<&'a Chunk> {
    let lengths = lengths(chunk)
        .ok_or_else(|| Error::corrupt(format!("a {name} chunk lacks the lengths of its rows")))?;
    let unsigned = Physical::Integer {
        bytes: 4,
        signed: false,
    };
    if lengths.physical != unsigned || lengths.rows != chunk.rows {
        return Err(Error::corrupt("lengths do not match the rows"));
    }
    lengths.codec.validate(lengths)?;
    Ok(lengths)
}

/// Counts the decoded bytes of a chunk, which one dictionary must be able to take.
#[derive(Debug, Default)]
pub(crate) struct TextBytes(usize);

impl TextBytes {
    /// Counts `bytes` more.
    ///
    /// # Errors
    /// `Corrupt` beyond [`TEXT_BYTES_LIMIT`].
    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        self.0 += bytes;
        match self.0 <= TEXT_BYTES_LIMIT {
            true => Ok(()),
            false => Err(Error::corrupt("a chunk claims more text than one can hold")),
        }
    }
}

/// Refuses text that is not UTF-8 where the type wants it to be.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn check_text(data_type: &DataType, text: &[u8]) -> Result<()> {
    match *data_type == DataType::Utf8 && std::str::from_utf8(text).is_err() {
        true => Err(Error::corrupt("text is not UTF-8")),
        false => Ok(()),
    }
}

/// Where the rows of a stretch end, counted from its first byte.
#[derive(Debug, Default)]
pub(crate) struct RowEnds {
    lengths: Values,
    ends: Vec<u32>,
}

impl RowEnds {
    /// Memory borrowed from `work`.
    pub(crate) fn take(work: &mut Work) -> Self {
        RowEnds {
            lengths: std::mem::take(&mut work.values),
            ends: std::mem::take(&mut work.list),
        }
    }

    /// Gives the memory back.
    pub(crate) fn give_back(self, work: &mut Work) {
        (work.values, work.list) = (self.lengths, self.ends);
    }

    /// Loads `rows` of the lengths; the bytes of all of them.
    pub(crate) fn load(&mut self, lengths: &Chunk, rows: Range<usize>) -> usize {
        self.lengths.reset(lengths.physical);
        lengths.codec.decode(lengths, rows, &mut self.lengths);
        self.ends.clear();
        let mut end = 0;
        self.ends.extend(self.lengths.keys.iter().map(|length| {
            end += *length as usize;
            end as u32
        }));
        end
    }

    /// The bytes of row `index` of those loaded.
    pub(crate) fn of(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[index] as usize
    }
}

/// The stretches of `rows` that lengths are best loaded in: whole units of their codec.
pub(crate) fn stretches(
    lengths: &Chunk,
    rows: Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let unit = lengths.codec.unit_rows().max(BLOCK_ROWS);
    let all = lengths.rows;
    (rows.start / unit..rows.end.div_ceil(unit))
        .map(move |index| index * unit..((index + 1) * unit).min(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_text_than_a_table_takes_is_refused() {
        let mut counted = TextBytes::default();
        assert!(counted.add(TEXT_BYTES_LIMIT).is_ok());
        assert!(counted.add(1).is_err());
    }
}
