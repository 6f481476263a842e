//! Compressed units of [`UNIT_ROWS`] rows, each readable by itself.
//!
//! ```text
//! section 0: the units, one after the other
//! section 1: where each unit ends, u32
//! ```

use std::ops::Range;

use crate::block::UNIT_ROWS;
use crate::chunk::{Body, Chunk};
use crate::error::{Error, Result};

const BYTES: usize = 0;
const ENDS: usize = 1;

/// The units of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
}

impl<'a> Units<'a> {
    pub(crate) fn of(chunk: &'a Chunk) -> Self {
        Units {
            bytes: chunk.body.section(BYTES),
            ends: chunk.body.section(ENDS),
        }
    }

    /// Adds the sections of units that lie in `bytes` and end at `ends`.
    pub(crate) fn write(body: &mut Body, bytes: &[u8], ends: &[u32]) {
        body.add_section(BYTES, bytes.len()).copy_from_slice(bytes);
        body.add_section(ENDS, ends.len()).copy_from_slice(ends);
    }

    /// Checks that there are the units of `rows` rows, in order, and nothing else.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn validate(self, rows: usize) -> Result<()> {
        let last = self.ends.last().copied().unwrap_or(0) as usize;
        let count = rows.div_ceil(UNIT_ROWS);
        match self.ends.len() == count && self.ends.is_sorted() && last == self.bytes.len() {
            true => Ok(()),
            false => Err(Error::corrupt("compressed units do not match the rows")),
        }
    }

    /// The bytes of unit `index`.
    pub(crate) fn get(self, index: usize) -> &'a [u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }
}

/// The end of a unit that was added to `bytes`.
///
/// # Errors
/// `LimitExceeded` beyond 4 GiB.
pub(crate) fn end(bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len())
        .map_err(|_| Error::limit("the compressed values of a chunk passed 4 GiB"))
}

/// The units that `rows` of a chunk of `all` rows lie in, each with its rows.
pub(crate) fn touched(
    rows: Range<usize>,
    all: usize,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let units = rows.start / UNIT_ROWS..rows.end.div_ceil(UNIT_ROWS);
    let units = if rows.is_empty() { 0..0 } else { units };
    units.map(move |unit| {
        let start = unit * UNIT_ROWS;
        (unit, start..(start + UNIT_ROWS).min(all))
    })
}

/// The part of `unit` that `rows` cover, counted from the unit's first row.
pub(crate) fn covered(unit: &Range<usize>, rows: &Range<usize>) -> Range<usize> {
    let (start, end) = (rows.start.max(unit.start), rows.end.min(unit.end));
    start - unit.start..end - unit.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_touch_the_units_they_lie_in() {
        let all = 3 * UNIT_ROWS - 5;
        let touching = |rows: Range<usize>| {
            let units = touched(rows.clone(), all);
            units
                .map(|(unit, inside)| (unit, covered(&inside, &rows)))
                .collect::<Vec<_>>()
        };
        assert_eq!(touching(0..0), []);
        assert_eq!(touching(UNIT_ROWS..UNIT_ROWS), []);
        assert_eq!(touching(5..UNIT_ROWS), [(0, 5..UNIT_ROWS)]);
        assert_eq!(
            touching(UNIT_ROWS - 1..all),
            [
                (0, UNIT_ROWS - 1..UNIT_ROWS),
                (1, 0..UNIT_ROWS),
                (2, 0..UNIT_ROWS - 5)
            ]
        );
    }
}
