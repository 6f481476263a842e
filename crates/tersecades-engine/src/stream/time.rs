//! What time rows have, what moves the watermark, and when results come.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::Schema;
use tersecades_columnar::error::{ErrorKind, Result};

use crate::event_time::{Clock, SharedClock};
use crate::expression::col;
use crate::frame::Scope;
use crate::plan::LookupTable;
use crate::runtime::bound_time::bind_time;
use crate::runtime::option::{OnLimit, TimeKind, TimeOptions};
use crate::source::arrival::{ARRIVAL_TIME, ArrivalTable};
use crate::source::partitioned::PartitionedTable;
use crate::source::query::QueryTable;
use crate::source::table::Table;
use crate::window::Emit;

use super::{Stream, WindowedStream};

impl Stream {
    /// The rows of several tables of one schema, each a partition that is in order by itself.
    ///
    /// # Errors
    /// What [`PartitionedTable::new`] says.
    pub fn from_partitions(tables: Vec<Arc<dyn Table>>) -> Result<Stream> {
        Ok(Stream::from_table(PartitionedTable::new(tables)?))
    }

    /// Event time is the time of the clock when a row's batch arrives, in the column
    /// `arrival_time`; no row is late.
    pub fn ingestion_time(self) -> Self {
        self.by_arrival(TimeKind::Ingestion)
    }

    /// As [`Stream::ingestion_time`], and windows close by the clock when nothing arrives.
    pub fn processing_time(self) -> Self {
        self.by_arrival(TimeKind::Processing)
    }

    fn by_arrival(mut self, kind: TimeKind) -> Self {
        self.options.time.kind = kind;
        self.event_time(col(ARRIVAL_TIME), Duration::ZERO)
    }

    /// The table with what [`Stream::ingestion_time`] adds to it.
    pub(super) fn timed(mut self) -> Result<Stream> {
        if self.options.time.kind.stamps() {
            let clock = self.options.time.clock.clone();
            self.table = Arc::new(ArrivalTable::new(self.table, clock)?);
        }
        Ok(self)
    }

    /// Takes the time from `clock` instead of the system.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.options.time.clock = SharedClock(Arc::new(clock));
        self
    }

    /// A partition that is asked in vain for so long no longer holds the watermark back; 30
    /// seconds unless said.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.options.time.idle_timeout = timeout;
        self
    }

    /// Rows further than `limit` ahead of the clock do not move the watermark.
    ///
    /// Without it a single row with a time in the far future makes all rows behind it late.
    pub fn future_limit(mut self, limit: Duration) -> Self {
        self.options.time.future_limit = Some(limit);
        self
    }

    /// What happens at the memory limit.
    pub fn on_limit(mut self, on_limit: OnLimit) -> Self {
        self.options.on_limit = on_limit;
        self
    }

    /// When the results of windows that are put on from here on come; see
    /// [`WindowedStream::emit`].
    pub fn emit(mut self, emit: Emit) -> Self {
        self.updates.emit = emit;
        self
    }

    /// Rows up to `late` behind the watermark change the results of windows that are put on from
    /// here on; see [`WindowedStream::allowed_lateness`].
    pub fn allowed_lateness(mut self, late: Duration) -> Self {
        self.updates.allowed_lateness = late;
        self
    }
}

impl Stream {
    /// Whether the event time that is asked for can be had: of the rows of its table, for windows,
    /// or of the rows that come out, which joins and what goes by the order of time take.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns; `SchemaMismatch` for what is no time.
    pub fn check_event_time(&self) -> Result<()> {
        let stream = self.clone().timed()?;
        let of_rows = |schema: &Schema| {
            let bound = bind_time(&stream.query.event_time, &mut Scope::of_schema(schema));
            bound.map(|_| ())
        };
        match of_rows(&stream.table.schema()) {
            Err(error) if !self.query.steps.is_empty() => {
                let of_results = of_rows(self.schema()?.as_ref());
                of_results.map_err(|other| match other.kind() {
                    ErrorKind::SchemaMismatch => other,
                    _ => error,
                })
            }
            checked => checked,
        }
    }

    /// What moves its time.
    pub(crate) fn time_options(&self) -> &TimeOptions {
        &self.options.time
    }

    /// Whether the rows are those of its table, as they are.
    pub fn is_plain(&self) -> bool {
        self.query.steps.is_empty() && self.options.time.kind == TimeKind::Event
    }

    /// Whether rows of its table can be such that they are rejected.
    pub(crate) fn may_reject(&self) -> bool {
        self.table.may_reject()
    }

    /// How many rows its table has at most, where all of them are in memory already.
    pub fn rows_in_memory(&self) -> Option<usize> {
        self.table.rows_in_memory()
    }

    /// How many rows its table has at most, where that is known before they are read.
    pub fn rows_known(&self) -> Option<usize> {
        self.table.rows_known()
    }

    /// Whether the rows of its table are known to end.
    pub fn ends(&self) -> bool {
        self.table.ends()
    }

    /// Its rows to look up in, put together once for all streams of its table, where they are those
    /// of a table in memory as they are.
    pub fn lookup_table(&self) -> Option<Arc<LookupTable>> {
        let as_they_are = self.is_plain() && self.options.encoding.schemes.is_empty();
        as_they_are.then(|| self.table.lookup_table()).flatten()
    }

    /// The rows of the stream as a table: its own when nothing is done to them, else its results.
    ///
    /// # Errors
    /// What binding the stream says.
    pub fn into_table(self) -> Result<Arc<dyn Table>> {
        Ok(match self.is_plain() {
            true => self.table,
            false => Arc::new(QueryTable::new(self)?),
        })
    }
}

impl WindowedStream {
    /// When results come.
    ///
    /// Where they may come more than once, their last column `change` says of a row whether its
    /// window and keys are new (`insert`), replace what came before (`update`), or are taken back
    /// with the values they came with (`delete`, of sessions whose ends moved and of windows of so
    /// many rows, of which nothing is an `update`).
    pub fn emit(mut self, emit: Emit) -> Self {
        self.window = self.window.emit(emit);
        self
    }

    /// Rows up to `late` behind the watermark change results that came out; see
    /// [`WindowedStream::emit`].
    pub fn allowed_lateness(mut self, late: Duration) -> Self {
        self.window = self.window.allowed_lateness(late);
        self
    }
}
