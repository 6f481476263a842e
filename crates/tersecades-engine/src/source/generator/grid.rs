//! Streams whose row is a function of its number; most of them grids, in which every one of a
//! number of series reports at every step of time.
//!
//! ```text
//! step 0: series 0, series 1, ..., series n-1    step 1: series 0, ...
//! row  =  step * rows_per_step + place in the step
//! ```

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use super::kind::Generator;

/// What rows of a grid hold.
pub(super) trait GridModel: Send {
    /// Schema of the batches.
    fn schema(&self) -> SchemaRef;

    /// The rows of `range`.
    fn batch(&mut self, range: Range<u64>) -> Result<RecordBatch>;

    /// Writes what happens on purpose before row number `rows`.
    fn write_truth(&self, rows: u64, out: &mut dyn Write) -> Result<()>;

    /// Tables that queries on the stream join with, by name.
    fn tables(&self) -> Result<Vec<(&'static str, RecordBatch)>> {
        Ok(Vec::new())
    }
}

/// A [`GridModel`] with a beginning and an end.
pub(super) struct Grid<M> {
    model: M,
    rows: u64,
    next_row: u64,
}

impl<M: GridModel> Grid<M> {
    /// The first `rows` rows of `model`.
    pub(super) fn new(model: M, rows: u64) -> Self {
        Grid {
            model,
            rows,
            next_row: 0,
        }
    }
}

impl<M: GridModel> Generator for Grid<M> {
    fn schema(&self) -> SchemaRef {
        self.model.schema()
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn position(&self) -> u64 {
        self.next_row
    }

    fn seek(&mut self, row: u64) {
        self.next_row = row.min(self.rows);
    }

    fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let wanted = u64::try_from(rows.max(1)).unwrap_or(u64::MAX);
        let end = self.next_row.saturating_add(wanted).min(self.rows);
        if end == self.next_row {
            return Ok(None);
        }
        let batch = self.model.batch(self.next_row..end)?;
        self.next_row = end;
        Ok(Some(batch))
    }

    fn write_truth(&self, out: &mut dyn Write) -> Result<()> {
        self.model.write_truth(self.rows, out)?;
        Ok(out.flush()?)
    }

    fn tables(&self) -> Result<Vec<(&'static str, RecordBatch)>> {
        self.model.tables()
    }
}

/// When the steps of a grid are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// Time of step 0, in milliseconds since 1970 UTC.
    pub(super) start_ms: i64,
    /// Time between two steps.
    pub(super) step_ms: i64,
}

impl Clock {
    /// A clock that can tell `steps` steps, and a million more for what outlasts the stream.
    ///
    /// # Errors
    /// `InvalidArgument` for a step of no time, or for event times past 64 bits.
    pub(super) fn new(start_ms: i64, step: Duration, steps: u64) -> Result<Self> {
        const SPARE_STEPS: u64 = 1 << 20;
        let step_ms = i64::try_from(step.as_millis()).unwrap_or(i64::MAX);
        if step_ms == 0 {
            return Err(Error::invalid("`interval` is 0").hint("use 1ms or more"));
        }
        let steps = i64::try_from(steps.saturating_add(SPARE_STEPS)).unwrap_or(i64::MAX);
        let last = step_ms
            .checked_mul(steps)
            .and_then(|length_ms| start_ms.checked_add(length_ms));
        match last {
            Some(_) => Ok(Clock { start_ms, step_ms }),
            None => Err(
                Error::invalid("event times leave the range of 64-bit milliseconds")
                    .hint("bring `start_ms` nearer to 0, or shorten `interval`"),
            ),
        }
    }

    /// Time of step number `step`.
    pub(super) fn at_ms(self, step: u64) -> i64 {
        // `new` checked that every step of a stream fits.
        self.start_ms + self.step_ms * step.cast_signed()
    }

    /// Days since 1970 at step number `step`, with the part of the day.
    pub(super) fn day(self, step: u64) -> f64 {
        const DAY_MS: f64 = 86_400_000.0;
        self.at_ms(step) as f64 / DAY_MS
    }
}

/// A count between 1 and `most`.
///
/// # Errors
/// `InvalidArgument` that names the parameter.
pub(super) fn check_count(name: &str, count: u32, most: u32) -> Result<u32> {
    match (1..=most).contains(&count) {
        true => Ok(count),
        false => {
            Err(Error::invalid(format!("`{name}` is {count}")).hint(format!("use 1 to {most}")))
        }
    }
}
