//! Joins of streams.

use std::sync::Arc;
use std::time::Duration;

use tersecades_columnar::error::Result;

use crate::expression::col;
use crate::operator::join::as_of::{AsOfSpec, Direction};
use crate::operator::join::interval::IntervalSpec;
use crate::operator::join::table::{JoinSpec, JoinTime};
use crate::operator::join::window::WindowJoinSpec;
use crate::operator::join::{JoinKind, JoinOptions, JoinTable};
use crate::plan::LookupTable;
use crate::window::Window;

use super::Stream;

impl Stream {
    /// Joins rows with equal values of the columns `on` (left, right), whenever they come.
    ///
    /// `right` is read whole and kept first. Left columns keep their names; right ones that the
    /// left stream has too get a suffix. Event time is that of the left rows, and of the right
    /// ones where only they all come out; rows of a right join come in any order of it, and none is
    /// late.
    ///
    /// # Errors
    /// What binding both streams says; `InvalidArgument` and `SchemaMismatch` for keys that do not
    /// compare and names that are doubled.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use tersecades_engine::operator::join::{JoinKind, JoinOptions};
    /// use tersecades_engine::stream::Stream;
    /// let stream = |values: Vec<i64>| {
    ///     let id: ArrayRef = Arc::new(Int64Array::from(values));
    ///     let rows = RecordBatch::try_from_iter([("id", id)]).unwrap();
    ///     Stream::from_batches(rows.schema(), vec![rows])
    /// };
    /// let joined = stream(vec![1, 2, 3])
    ///     .join(stream(vec![2, 3, 4]), JoinKind::Inner, &[("id", "id")], JoinOptions::default())
    ///     .unwrap();
    /// let rows: usize = joined.run().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    /// assert_eq!(rows, 2);
    /// ```
    pub fn join(
        self,
        right: Stream,
        kind: JoinKind,
        on: &[(&str, &str)],
        options: JoinOptions,
    ) -> Result<Stream> {
        self.join_by(right, (kind, options), on, JoinTime::Any)
    }

    /// Joins rows with equal values of the columns `on` in the same window.
    ///
    /// The columns `window_start` and `window_end` come first; the former is the event time.
    ///
    /// # Errors
    /// As [`Stream::join`]; for streams whose results lack their event time; `Unsupported` for
    /// windows that differ between keys or may come out more than once.
    pub fn window_join(
        self,
        right: Stream,
        window: Window,
        kind: JoinKind,
        on: &[(&str, &str)],
    ) -> Result<Stream> {
        let time = JoinTime::Window(WindowJoinSpec { window });
        self.join_by(right, (kind, JoinOptions::default()), on, time)
    }

    /// Joins rows with equal values of the columns `on` where `time of the right row - time of the
    /// left row` is between `lower` and `upper` nanoseconds, both included.
    ///
    /// # Errors
    /// As [`Stream::window_join`]; `InvalidArgument` for bounds in the wrong order.
    pub fn interval_join(
        self,
        right: Stream,
        on: &[(&str, &str)],
        (lower_ns, upper_ns): (i64, i64),
        kind: JoinKind,
    ) -> Result<Stream> {
        let time = JoinTime::Interval(IntervalSpec { lower_ns, upper_ns });
        self.join_by(right, (kind, JoinOptions::default()), on, time)
    }

    /// Joins each row with the row of `right` with equal values of the columns `on` that is
    /// nearest in time, and no further away than `tolerance`.
    ///
    /// # Errors
    /// As [`Stream::window_join`]; `InvalidArgument` for kinds that keep right rows.
    pub fn asof_join(
        self,
        right: Stream,
        on: &[(&str, &str)],
        (direction, tolerance): (Direction, Option<Duration>),
        kind: JoinKind,
    ) -> Result<Stream> {
        let time = JoinTime::AsOf(AsOfSpec {
            direction,
            tolerance,
        });
        self.join_by(right, (kind, JoinOptions::default()), on, time)
    }

    /// Joins each row with the version of a table row that holds at its event time: of the rows
    /// with equal values of the columns `on`, the one with the latest `valid_from` that is not
    /// after it.
    ///
    /// # Errors
    /// As [`Stream::asof_join`].
    pub fn versioned_lookup(
        self,
        table: &LookupTable,
        on: &[(&str, &str)],
        valid_from: &str,
        kind: JoinKind,
    ) -> Result<Stream> {
        let rows = table.rows.clone();
        // Versions may stand in any order: none is late.
        let versions = Stream::from_batches(rows.schema(), vec![rows])
            .event_time(col(valid_from), Duration::MAX)
            .event_time_unit(self.query.event_time.unit);
        self.asof_join(versions, on, (Direction::Backward, None), kind)
    }

    /// Joins as `spec` says, which a join by time may give options too.
    ///
    /// # Errors
    /// As the joins above; `Unsupported` for residual conditions of as-of joins.
    pub fn join_with(self, right: Stream, mut spec: JoinSpec) -> Result<Stream> {
        if let JoinTime::Window(WindowJoinSpec { window }) = &mut spec.time {
            *window = right.put_on(self.put_on(*window));
        }
        let updates = self.updates;
        let table = JoinTable::new(self, right, spec)?;
        let event_time = table.event_time();
        let mut joined = Stream::new(Arc::new(table), event_time);
        joined.updates = updates;
        Ok(joined)
    }

    fn join_by(
        self,
        right: Stream,
        (kind, options): (JoinKind, JoinOptions),
        on: &[(&str, &str)],
        time: JoinTime,
    ) -> Result<Stream> {
        let on = on
            .iter()
            .map(|(left, right)| ((*left).to_owned(), (*right).to_owned()));
        let on = on.collect();
        let spec = JoinSpec {
            kind,
            on,
            time,
            options,
        };
        self.join_with(right, spec)
    }
}
