//! Event time: when a row happened, and how far the stream has come.
//!
//! The watermark before row `i` is the largest event time of the rows before it, less the
//! lateness; of several partitions, the one furthest behind counts (see [`partition`]). It is
//! defined by rows, not by batches, so batch size never changes an answer: a batch in which a row
//! arrives after its window has closed is cut there (see [`watermark`]).

pub mod clock;
pub mod partition;
pub mod watermark;

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;

use crate::frame::{Frame, Slot};

pub use clock::{Clock, SharedClock, SystemClock, TestClock};
pub use watermark::{Closing, Course, Cut, Watermark};

/// What an operator needs to know about the time of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Where the frame keeps its event time.
    pub time_slot: Slot,
    /// The watermark before the frame's first row; the smallest time when there is none.
    pub watermark: i64,
    /// Smallest and largest event time of the batch, or of the rows of it that are meant.
    pub time_range: (i64, i64),
    /// How the rows themselves move the watermark; `None` where something else moves it.
    pub course: Option<Course>,
    /// Rows of the stream before the batch.
    pub rows_before: u64,
}

impl Arrival {
    /// Leaves in `frame` only rows in the time range; `found` is memory to work in.
    pub fn narrow(&self, frame: &mut Frame, found: &mut Selection, work: &mut Work) {
        let time = frame.column(self.time_slot);
        let (first, last) = self.time_range;
        let times = key_range(time.physical(), first, last);
        time.compare(&times, &frame.selection, found, work);
        found.settle();
        std::mem::swap(&mut frame.selection, found);
    }
}

/// The smallest and largest time of a column; `None` when no row has one.
///
/// # Errors
/// `LimitExceeded` for times that 63 bits do not hold.
pub fn time_range(column: &Chunk) -> Result<Option<(i64, i64)>> {
    let (stats, physical) = (column.stats(), column.physical());
    if !stats.known {
        return Ok(None);
    }
    let time = |key| i64::try_from(physical.value_of(key));
    match (time(stats.min), time(stats.max)) {
        (Ok(first), Ok(last)) => Ok(Some((first, last))),
        _ => Err(Error::limit("an event time is beyond 2^63 ticks")
            .hint("check the column's unit; event times are signed 64-bit numbers")),
    }
}

/// The predicate for times in `first..=last`, over the keys of a time column.
pub fn key_range(physical: Physical, first: i64, last: i64) -> Predicate {
    let mut predicate = Predicate::Keys(Vec::new());
    set_key_range(&mut predicate, physical, (first, last));
    predicate
}

/// Makes `predicate` that of [`key_range`], keeping its memory.
pub fn set_key_range(predicate: &mut Predicate, physical: Physical, (first, last): (i64, i64)) {
    let least = physical.value_of(0);
    let most = physical.value_of(physical.key_max());
    if i128::from(last) < least || i128::from(first) > most || first > last {
        return predicate.set_key_range(1, 0);
    }
    let key = |time: i64| {
        let clamped = i128::from(time).clamp(least, most);
        physical.key_of(clamped).unwrap_or_default()
    };
    predicate.set_key_range(key(first), key(last));
}
