//! What tells the rows of a stream by their times: a stream that begins again with others is found.

use arrow_array::{Array as _, ArrayRef, Int64Array};
use arrow_schema::DataType;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::selection::Selection;

use crate::memory::Memory;
use crate::schema::StoreSchema;

/// What no time has been added to; other than 0, so that times of 0 count.
const START: u64 = 0xcbf2_9ce4_8422_2325;
/// Stands for a row without a time.
const NO_TIME: u64 = 0x6e6f_5f74_696d_6500;
/// 2^64 by the golden ratio: each bit of a time reaches the upper half.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number for the times of rows in their order, however they come in batches.
///
/// Other columns stay out: sums of floats may differ in the last digit when a stream begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times(pub(crate) u64);

impl Default for Times {
    fn default() -> Self {
        Times(START)
    }
}

impl Times {
    /// Adds the rows with these times.
    ///
    /// # Errors
    /// What casting them to integers says.
    pub(crate) fn add(&mut self, times: &ArrayRef) -> Result<()> {
        let times = arrow_cast::cast(times, &DataType::Int64)?;
        for time in Int64Array::from(times.to_data()).iter() {
            let mixed = (self.0 ^ time.map_or(NO_TIME, i64::cast_unsigned)).wrapping_mul(SPREAD);
            self.0 = mixed ^ (mixed >> 32);
        }
        Ok(())
    }
}

/// The rows in memory, and which of their columns is the time.
pub(crate) struct Arrived {
    rows: Memory,
    time: Option<usize>,
}

impl Arrived {
    /// `rows` of a store with the columns of `schema`.
    pub(crate) fn new(rows: Memory, schema: &StoreSchema) -> Self {
        Arrived {
            rows,
            time: schema.time_column(),
        }
    }

    /// Number of the row behind the last.
    pub(crate) fn end(&self) -> u64 {
        self.rows.sequences().end
    }

    /// `times` and those of the rows from number `first` on; `None` where these are not all in
    /// memory, or the store has no time.
    ///
    /// # Errors
    /// What decoding says.
    pub(crate) fn times_behind(&self, mut times: Times, first: u64) -> Result<Option<Times>> {
        let Some(column) = self.time.filter(|_| self.rows.sequences().start <= first) else {
            return Ok(None);
        };
        let mut begins = self.rows.sequences().start;
        for batch in self.rows.batches() {
            let before = first.saturating_sub(begins).min(batch.rows() as u64) as usize;
            begins += batch.rows() as u64;
            if before < batch.rows() {
                let all = Selection::all(batch.rows());
                let found = batch.column(column).to_arrow(&all, &mut Work::default())?;
                times.add(&found.slice(before, batch.rows() - before))?;
            }
        }
        Ok(Some(times))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn rows_are_told_by_their_times_however_they_come_in_batches() {
        let number = |parts: &[&[Option<i64>]]| {
            let mut times = Times::default();
            for part in parts {
                let part: ArrayRef = Arc::new(Int64Array::from(part.to_vec()));
                times.add(&part).unwrap();
            }
            times
        };
        let whole = number(&[&[Some(0), Some(7), None, Some(-3)]]);
        assert_eq!(
            number(&[&[Some(0)], &[], &[Some(7), None, Some(-3)]]),
            whole
        );
        for other in [
            &[Some(7), Some(0), None, Some(-3)][..],
            &[Some(0), Some(7), Some(-3), None],
            &[Some(0), Some(7), None],
            &[Some(0), Some(0), Some(7), None, Some(-3)],
        ] {
            assert_ne!(number(&[other]), whole, "{other:?}");
        }
        assert_ne!(number(&[&[Some(0)]]), Times::default());
    }
}
