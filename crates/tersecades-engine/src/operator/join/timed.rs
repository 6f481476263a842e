//! An input of a join by time: its rows with their event times and the watermark before each.
//!
//! Each input has a watermark of its own, defined by the rows that reach the join: the largest
//! event time of its earlier rows, less its lateness; rows beyond the future limit do not move it,
//! and results of windows that come in no order of their starts hold it back. Whether a row is late
//! depends on nothing else, so the answer does not depend on which input is read first.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::event_time::clock::{ticks_late, whole_ticks};
use crate::frame::Scope;
use crate::operator::row::expression::RowExpressions;
use crate::operator::row::shape::take;
use crate::operator::window_aggregate::plan::tick_ns;
use crate::plan::EventTime;
use crate::runtime::Running;
use crate::runtime::bound_time::{BoundTime, bind_time};
use crate::runtime::option::TimeOptions;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::SourceState;
use crate::stream::Stream;

/// Rows that have an event time.
pub struct TimedRows {
    /// The rows.
    pub rows: RecordBatch,
    /// Their event times.
    pub times: Vec<i64>,
    /// The watermark before each; the smallest time when there is none.
    pub watermarks: Vec<i64>,
}

/// A running query whose results have event times.
pub struct TimedInput {
    running: Running,
    time: RowExpressions,
    /// Ticks of the join in one of this input's.
    scale: i64,
    lateness: i64,
    newest: Option<i64>,
    /// What held the watermark back before the rows that were read last.
    held_at: Option<i64>,
    is_ended: bool,
    is_waiting: bool,
    options: TimeOptions,
    /// Nanoseconds of a tick of the join.
    tick_ns: i64,
    /// Rows without an event time.
    untimed_rows: u64,
    /// Rows too far in the future to move the watermark.
    future_rows: u64,
}

/// The unit of `stream`'s event time, which its results must still hold.
///
/// # Errors
/// `InvalidArgument` when they do not, `SchemaMismatch` when it is no time.
pub fn unit_of(stream: &Stream) -> Result<TimeUnit> {
    bound_time(stream).map(|time| time.unit)
}

/// The zone that the event times of `stream` are shown in.
///
/// # Errors
/// As [`unit_of`].
pub fn zone_of(stream: &Stream) -> Result<Option<Arc<str>>> {
    bound_time(stream).map(|time| time.zone)
}

fn bound_time(stream: &Stream) -> Result<BoundTime> {
    let schema = stream.schema()?;
    let bound = bind_time(&stream.output_time(), &mut Scope::of_schema(&schema));
    bound.map_err(|error| {
        let hint = "steps by time need the columns of the event time of their streams";
        let hint = error
            .hint_text()
            .map_or_else(|| hint.to_owned(), |own| format!("{hint}; {own}"));
        error.hint(hint)
    })
}

/// The finer of two units, for which every time of either is whole.
pub fn common_unit(left: TimeUnit, right: TimeUnit) -> TimeUnit {
    if tick_ns(left) <= tick_ns(right) {
        left
    } else {
        right
    }
}

/// `nanos`, which are the join's `what`, in ticks of `unit`.
///
/// # Errors
/// `InvalidArgument` when they are no whole number of ticks, or too many.
pub fn in_ticks(what: &str, nanos: i128, unit: TimeUnit) -> Result<i64> {
    let tick = i128::from(tick_ns(unit));
    if nanos % tick != 0 {
        let message = format!("the {what} of {nanos} ns is no whole number of ticks");
        return Err(Error::invalid(message).hint("use a multiple of the time columns' unit"));
    }
    i64::try_from(nanos / tick).map_err(|_| Error::invalid(format!("the {what} is too long")))
}

impl TimedInput {
    /// `running`, which runs `stream`, with times in ticks of `unit`.
    ///
    /// # Errors
    /// What binding the event time says.
    pub fn new(running: Running, stream: &Stream, unit: TimeUnit) -> Result<Self> {
        let time = stream.output_time();
        let EventTime {
            expression,
            lateness,
            ..
        } = time.without_dates(&Scope::of_schema(&running.schema()));
        let mut input = TimedInput {
            time: RowExpressions::bind([&expression], &running.schema())?,
            running,
            scale: tick_ns(unit_of(stream)?) / tick_ns(unit),
            lateness: ticks_late(lateness, tick_ns(unit)),
            newest: None,
            held_at: None,
            is_ended: false,
            is_waiting: false,
            options: stream.time_options().clone(),
            tick_ns: tick_ns(unit),
            untimed_rows: 0,
            future_rows: 0,
        };
        input.held_at = input.oldest_to_come();
        Ok(input)
    }

    /// The query that runs.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Whether the source of the query gives again what was read before a restore.
    ///
    /// # Errors
    /// `Unsupported` for a source of encoded batches.
    pub fn pass_over(&mut self, is_given_again: bool) -> Result<()> {
        self.running.pass_over(is_given_again)
    }

    /// Columns of the rows.
    pub fn schema(&self) -> SchemaRef {
        self.running.schema()
    }

    /// Whether no row will come any more.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether it had nothing to go on with when it was asked last.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// No row that is not late comes before this time any more.
    pub fn watermark(&self) -> i64 {
        match self.is_ended {
            true => i64::MAX,
            false => self.behind_newest(self.oldest_to_come()),
        }
    }

    /// The least event time of rows to come, where they come in no order of it and it is known.
    fn oldest_to_come(&self) -> Option<i64> {
        let oldest = self.running.oldest_to_come();
        oldest.map(|oldest| oldest.saturating_mul(self.scale))
    }

    /// The same of the rows that were read last and those to come.
    pub fn held_at(&self) -> Option<i64> {
        self.held_at
    }

    /// The watermark that the rows so far make, no later than what holds it back.
    fn behind_newest(&self, held_at: Option<i64>) -> i64 {
        match self.newest {
            // A lateness beyond all times: rows come in any order.
            Some(newest) if self.lateness < i64::MAX => {
                let behind = newest.saturating_sub(self.lateness);
                behind.min(held_at.unwrap_or(i64::MAX))
            }
            _ => i64::MIN,
        }
    }

    /// What the query holds and has counted, and how many rows did not count here.
    pub fn state(&self) -> SourceState {
        let mut state = self.running.state();
        state.untimed_rows += self.untimed_rows;
        state.future_rows += self.future_rows;
        state
    }

    /// Writes how far it has come.
    ///
    /// # Errors
    /// What the query that runs says.
    pub fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        out.list(self.newest.iter(), |out, newest| out.i64(*newest));
        out.bool(self.is_ended);
        out.u64(self.untimed_rows);
        out.u64(self.future_rows);
        self.running.snapshot_input(out)
    }

    /// Reads what [`TimedInput::snapshot`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    pub fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        let newest: Vec<i64> = from.list(StateReader::i64)?;
        self.newest = newest.first().copied();
        self.is_ended = from.bool()?;
        self.untimed_rows = from.u64()?;
        self.future_rows = from.u64()?;
        self.running.restore_input(from)?;
        self.held_at = self.oldest_to_come();
        Ok(())
    }

    /// The next rows that have an event time, none where there is nothing to go on with; `None` at
    /// the end.
    ///
    /// # Errors
    /// What running says; `LimitExceeded` for times beyond 63 bits.
    pub fn next_timed(&mut self) -> Result<Option<TimedRows>> {
        let Some((rows, ticks)) = self.read()? else {
            return Ok(None);
        };
        let timed: Vec<u32> = (0..ticks.len() as u32)
            .filter(|row| ticks[*row as usize].is_some())
            .collect();
        let mut times = Vec::with_capacity(timed.len());
        let mut watermarks = Vec::with_capacity(timed.len());
        let future_from = self.future_from();
        for time in ticks.iter().flatten() {
            times.push(*time);
            watermarks.push(self.behind_newest(self.held_at));
            self.see(*time, future_from);
        }
        self.untimed_rows += (rows.num_rows() - timed.len()) as u64;
        let rows = match timed.len() == rows.num_rows() {
            true => rows,
            false => take(&rows, timed)?,
        };
        Ok(Some(TimedRows {
            rows,
            times,
            watermarks,
        }))
    }

    /// The next rows and the largest event time up to each, the smallest time before the first;
    /// none and `None` as [`TimedInput::next_timed`] has them.
    ///
    /// # Errors
    /// As [`TimedInput::next_timed`].
    pub fn next_clocked(&mut self) -> Result<Option<(RecordBatch, Vec<i64>)>> {
        let Some((rows, ticks)) = self.read()? else {
            return Ok(None);
        };
        let mut clocks = Vec::with_capacity(ticks.len());
        let future_from = self.future_from();
        for time in ticks {
            if let Some(time) = time {
                self.see(time, future_from);
            }
            clocks.push(self.newest.unwrap_or(i64::MIN));
        }
        Ok(Some((rows, clocks)))
    }

    /// Rows after this time do not move the watermark.
    fn future_from(&self) -> i64 {
        let Some(limit) = self.options.future_limit else {
            return i64::MAX;
        };
        let now = self.options.clock.0.now();
        whole_ticks(now.saturating_add(limit), self.tick_ns)
    }

    /// Takes in the time of a row.
    fn see(&mut self, time: i64, future_from: i64) {
        match time > future_from {
            true => self.future_rows += 1,
            false => self.newest = self.newest.max(Some(time)),
        }
    }

    /// The next rows and their times, in ticks of the join.
    fn read(&mut self) -> Result<Option<(RecordBatch, Vec<Option<i64>>)>> {
        self.held_at = self.oldest_to_come();
        let Some(rows) = self.running.next_at_hand()? else {
            (self.is_ended, self.is_waiting) = (true, false);
            return Ok(None);
        };
        self.is_waiting = rows.num_rows() == 0;
        let values = self.time.evaluate(&rows)?;
        let [values] = values.as_slice() else {
            return Err(Error::internal("an event time is one column"));
        };
        let ticks = cast(values, &DataType::Int64)?;
        if ticks.null_count() > values.logical_null_count() {
            return Err(beyond());
        }
        let ticks = ticks.as_primitive::<Int64Type>().iter();
        let scaled = |time: i64| time.checked_mul(self.scale).ok_or_else(beyond);
        let ticks = ticks.map(|time| time.map(scaled).transpose());
        let ticks: Vec<Option<i64>> = ticks.collect::<Result<_>>()?;
        Ok(Some((rows, ticks)))
    }
}

fn beyond() -> Error {
    Error::limit("an event time is beyond 2^63 ticks of the join")
        .hint("check the columns' units; the finer of both streams is taken")
}

/// Which of two inputs to read next: the one that is behind, so that little waits for it.
pub fn is_right_next(left: &TimedInput, right: &TimedInput) -> bool {
    !right.is_ended && (left.is_ended || right.watermark() <= left.watermark())
}
