//! The builder: a stream, steps chained on it, and a run that hands out results.

mod flat;
mod join;
mod keep;
mod rows;
mod standing;
mod store;
mod time;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{SchemaRef, TimeUnit};
use tersecades_columnar::batch::{Batch, Layout};
use tersecades_columnar::cost_table::CostTable;
use tersecades_columnar::error::Result;
use tersecades_columnar::goal::{Goal, Tier, Uses};

use crate::error_bound::{bound_lines, encoded_by};
use crate::expression::{Expression, col};
use crate::frame::Scope;
use crate::observe::{Observed, Registered};
use crate::plan::{AggregateCall, EventTime, LookupTable, Query, Step};
use crate::runtime::ablation::Ablation;
use crate::runtime::engine::{columns_read, describe, output_schema, passing};
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::share::Share;
use crate::runtime::{Interrupt, Retained, Running, THREADS_MAX};
use crate::source::location::open_table;
use crate::source::passing::Passing;
use crate::source::table::{EncodedTable, MemoryTable, OneRun, Table, fewest};
use crate::source::{Source, SourceOptions};
use crate::window::{Updates, Window, global};

/// A stream and what is to be done with it; each run of it, or of a clone, opens its table anew.
///
/// # Examples
/// ```
/// use std::{sync::Arc, time::Duration};
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
/// use tersecades_engine::aggregate::{call, count};
/// use tersecades_engine::{expression::col, stream::Stream, window::tumble};
/// let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0, 400, 1_200]));
/// let rtt: ArrayRef = Arc::new(Int64Array::from(vec![10, 500, 30]));
/// let rows = RecordBatch::try_from_iter([("timestamp", time), ("rtt", rtt)]).unwrap();
/// let windows: Vec<RecordBatch> = Stream::from_batches(rows.schema(), vec![rows])
///     .event_time(col("timestamp"), Duration::ZERO)
///     .window(tumble(Duration::from_secs(1)))
///     .aggregate([count().alias("n"), call("max", col("rtt")).alias("worst")])
///     .run().unwrap()
///     .collect::<Result<_, _>>().unwrap();
/// assert_eq!(windows.len(), 2);
/// assert_eq!(windows[0].num_columns(), 4);
/// ```
#[derive(Clone)]
pub struct Stream {
    table: Arc<dyn Table>,
    query: Query,
    options: RunOptions,
    /// When results of windows to come come.
    updates: Updates,
    /// The queries a range is kept for, where it is not kept for all.
    registered: Option<Vec<Registered>>,
}

/// A stream cut into windows, or taken whole, to be grouped.
#[derive(Clone)]
pub struct WindowedStream {
    stream: Stream,
    window: Window,
    keys: Vec<String>,
}

impl Stream {
    fn new(table: Arc<dyn Table>, event_time: EventTime) -> Self {
        let event_time = event_time.without_dates(&Scope::of_schema(&table.schema()));
        let query = Query {
            event_time,
            steps: Vec::new(),
        };
        Stream {
            table,
            query,
            options: RunOptions::default(),
            updates: Updates::default(),
            registered: None,
        }
    }

    /// The rows of a file, of the files of a glob or a folder, or, by `-`, of standard input.
    ///
    /// The suffix tells the format unless `options` do.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown formats, `Io` and `Corrupt` for unreadable files.
    pub fn open(path: impl AsRef<Path>, options: &SourceOptions) -> Result<Self> {
        Ok(Self::new(open_table(path, options)?, default_time()))
    }

    /// The rows of a table.
    pub fn from_table(table: impl Table + 'static) -> Self {
        Self::from_shared(Arc::new(table))
    }

    /// The rows of a table that others read too.
    pub fn from_shared(table: Arc<dyn Table>) -> Self {
        Self::new(table, default_time())
    }

    /// The rows of a source, for one run.
    pub fn from_source(source: Box<dyn Source>) -> Self {
        Self::from_table(OneRun::new(source))
    }

    /// Rows that are in memory.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self::from_table(MemoryTable::new(schema, batches))
    }

    /// Batches that are encoded already; nothing is encoded again.
    pub fn from_encoded(schema: SchemaRef, batches: Vec<Arc<Batch>>) -> Self {
        Self::from_table(EncodedTable::new(schema, batches))
    }

    /// The retained range of another stream, as it is when the query starts. Its rows are judged
    /// as when they came: of their partitions, and by what the clock said then.
    pub fn from_retained(retained: &Retained) -> Self {
        let table = Arc::new(retained.clone());
        let mut stream = Self::new(table, retained.event_time().clone());
        stream.options.time = retained.time().clone();
        stream
    }

    /// Event time is `time`, and rows may come `lateness` after newer ones; with `Duration::MAX` no
    /// row is late.
    ///
    /// Integers are milliseconds unless [`Stream::event_time_unit`] says otherwise, and dates their
    /// first second. Without this call event time is the column `timestamp`, in order.
    ///
    /// Behind a group-by whose results have the columns of `time` it is that of the results, for
    /// windows and steps by time on them; else that of the rows that are grouped.
    pub fn event_time(self, time: Expression, lateness: Duration) -> Self {
        let mut stream = self.grouped_by_time(&time);
        let scope = Scope::of_schema(&stream.table.schema());
        let event_time = EventTime {
            expression: time,
            lateness,
            unit: stream.query.event_time.unit,
        };
        stream.query.event_time = event_time.without_dates(&scope);
        stream
    }

    /// The unit of an integer event time.
    pub fn event_time_unit(mut self, unit: TimeUnit) -> Self {
        self.query.event_time.unit = unit;
        self
    }

    /// Keeps rows where `condition` is true.
    pub fn filter(mut self, condition: Expression) -> Self {
        self.query.push_filter(condition);
        self
    }

    /// As [`Stream::filter`], but terms that read nothing of lookups just before go before them.
    ///
    /// They are computed for rows, too, that the lookups would have dropped.
    pub fn filter_early(mut self, condition: Expression) -> Self {
        self.query.push_early_filter(condition);
        self
    }

    /// Replaces the columns by the named expressions.
    pub fn project<N: Into<String>>(
        mut self,
        columns: impl IntoIterator<Item = (N, Expression)>,
    ) -> Self {
        let columns = columns
            .into_iter()
            .map(|(name, column)| (name.into(), column))
            .collect();
        self.query.steps.push(Step::Project(columns));
        self
    }

    /// Adds `columns` (name in the table, new name) of the row of `table` whose `table_key`
    /// equals `stream_key`; rows without one are dropped.
    pub fn lookup_join(
        mut self,
        table: &Arc<LookupTable>,
        (stream_key, table_key): (&str, &str),
        columns: &[(&str, &str)],
    ) -> Self {
        let owned = |(name, output): &(&str, &str)| ((*name).to_owned(), (*output).to_owned());
        self.query.steps.push(Step::LookupJoin {
            table: Arc::clone(table),
            stream_key: stream_key.to_owned(),
            table_key: table_key.to_owned(),
            columns: columns.iter().map(owned).collect(),
            prepared: Arc::default(),
        });
        self
    }

    /// Cuts the stream into windows.
    pub fn window(self, window: Window) -> WindowedStream {
        WindowedStream {
            window: self.put_on(window),
            stream: self,
            keys: Vec::new(),
        }
    }

    /// `window`, whose results come as was said of those put on this stream.
    fn put_on(&self, mut window: Window) -> Window {
        if !window.updates.are_possible() {
            window.updates = self.updates;
        }
        window
    }

    /// Groups the whole stream by columns; the groups come out at its end, sorted by key.
    ///
    /// No event time is needed and no row is late. Without aggregates the result is each different
    /// key once.
    pub fn group_by<N: Into<String>>(self, keys: impl IntoIterator<Item = N>) -> WindowedStream {
        self.window(global()).group_by(keys)
    }

    /// Computes aggregates of the whole stream: one row at its end, for an empty stream too.
    pub fn aggregate(self, calls: impl IntoIterator<Item = AggregateCall>) -> Stream {
        self.window(global()).aggregate(calls)
    }

    /// Encodes `column` by `scheme`, as `delta(bit_pack)`, instead of a choice.
    pub fn encoding(mut self, column: impl Into<String>, scheme: impl Into<String>) -> Self {
        let schemes = &mut self.options.encoding.schemes;
        schemes.push((column.into(), scheme.into()));
        self
    }

    /// Encodes for `tier` what is kept.
    pub fn tier(mut self, tier: Tier) -> Self {
        self.options.encoding.tier = tier;
        self
    }

    /// Encodes for so many reads of what is kept, instead of the 32 that are assumed: where it is
    /// read less often, encoding counts for more, and bytes for less.
    pub fn reads(mut self, times: f64) -> Self {
        self.options.encoding.reads = Some(times);
        self
    }

    /// Lays batches out row after row or, the default, column by column.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options.encoding.layout = layout;
        self
    }

    /// Does without some parts of the engine, to see what they are worth.
    pub fn without(mut self, parts: Ablation) -> Self {
        self.options.ablation = parts;
        self
    }

    /// Chooses codecs by `costs` instead of the table that ships.
    pub fn costs(mut self, costs: impl Into<Arc<CostTable>>) -> Self {
        self.options.encoding.costs = Some(costs.into());
        self
    }

    /// Keeps late rows, with all columns of the stream, for [`Running::take_late`].
    pub fn keep_late_whole(mut self) -> Self {
        self.options.keep_late_whole = true;
        self.keep_late()
    }

    /// Names and types of the rows before any step, which late rows have that are kept whole.
    pub fn source_schema(&self) -> SchemaRef {
        self.table.schema()
    }

    /// Keeps late rows for [`Running::take_late`].
    pub fn keep_late(mut self) -> Self {
        self.options.keep_late = true;
        self
    }

    /// Runs on `threads` worker threads, on [`THREADS_MAX`] at most; answers do not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads.min(THREADS_MAX);
        self
    }

    /// Takes the figures of each operator, which its line in [`Running::describe`] then shows.
    pub fn measured(mut self) -> Self {
        self.options.measured = true;
        self
    }

    /// Refuses to hold more than `bytes` of window state and retained batches.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_bytes_limit = Some(bytes);
        self
    }

    /// Asks `interrupt` before every batch whether to go on.
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.options.interrupt = interrupt;
        self
    }

    /// Takes event time and steps from `query`.
    pub fn query(mut self, query: Query) -> Self {
        self.query = query;
        self
    }

    /// Appends a step.
    pub fn step(mut self, step: Step) -> Self {
        self.query.steps.push(step);
        self
    }

    /// What the query does with a column of its table.
    pub fn uses(&self, column: &str) -> Uses {
        self.query.uses(column)
    }

    /// What codecs of `column` are chosen by where the stream is kept.
    pub fn goal(&self, column: &str) -> Goal {
        self.options.encoding.goal(self.uses(column))
    }

    /// Names and logical types of the results.
    ///
    /// # Errors
    /// Everything that can be wrong with a query.
    pub fn schema(&self) -> Result<SchemaRef> {
        let stream = self.clone().prepared()?.timed()?;
        let schemes = &stream.options.encoding.schemes;
        output_schema(&stream.query, &encoded_by(&stream.table.schema(), schemes))
    }

    /// Operators, in order, one line each; nothing is opened.
    ///
    /// # Errors
    /// Everything that can be wrong with a query.
    pub fn describe(&self) -> Result<Vec<String>> {
        let bounds = bound_lines(self.schema()?.as_ref());
        let stream = self.clone().prepared()?;
        let mut lines = stream.table.describe()?;
        lines.extend(describe(&stream.query, &stream.table.schema())?);
        let observed = stream.timed()?.observed()?;
        lines.extend(observed.iter().flat_map(Observed::lines));
        lines.extend(bounds);
        Ok(lines)
    }

    /// Binds and starts the query.
    ///
    /// # Errors
    /// Everything that can be wrong with a query, before a row is read.
    pub fn run(self) -> Result<Running> {
        self.prepared()?.timed()?.start(None)
    }

    /// The stream as it runs, if its table holds what it asks for.
    fn prepared(self) -> Result<Stream> {
        let stream = self.flat();
        stream.admitted()?;
        stream.nested()
    }

    /// As [`Stream::run`], for a query that may share panes with others.
    ///
    /// # Errors
    /// As [`Stream::run`].
    pub(crate) fn run_shared(self, share: Option<&Share>) -> Result<Running> {
        self.prepared()?.timed()?.start(share)
    }

    fn start(mut self, share: Option<&Share>) -> Result<Running> {
        let observed = self.observed()?;
        let columns = match (self.options.keep, &observed) {
            _ if self.options.keep_late_whole => None,
            (Some(_), Some(observed)) => Some(observed.kept()),
            (Some(_), None) => None,
            (None, _) => columns_read(&self.query, &self.table.schema())?,
        };
        // Rows without columns have no number in most formats.
        let columns = match columns {
            Some(none) if none.is_empty() => fewest(&*self.table),
            columns => columns,
        };
        let encoding = &mut self.options.encoding;
        encoding.keep_read(&self.table.schema(), columns.as_deref())?;
        let kept = self.options.keep.is_some() || self.options.keep_late_whole;
        let passing = match kept {
            true => Passing::default(),
            false => passing(&self.query, &self.table.schema(), &self.options.time),
        };
        let origin = self
            .table
            .open_passing(columns.as_deref(), &self.options, &passing)?;
        let reached = passing.reached.map(|(_, reached)| reached);
        // What is encoded already, and late rows with all their columns, stay as they are.
        let reducible = matches!(origin, Origin::Source(_)) && !self.options.keep_late_whole;
        self.options.observed = observed.filter(|_| reducible).map(Arc::new);
        Running::start_shared(origin, &self.query, self.options, (share, reached))
    }
}

impl WindowedStream {
    /// Groups by columns as well as by window.
    pub fn group_by<N: Into<String>>(mut self, keys: impl IntoIterator<Item = N>) -> Self {
        self.keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Computes aggregates for each group.
    pub fn aggregate(mut self, calls: impl IntoIterator<Item = AggregateCall>) -> Stream {
        self.stream.query.steps.push(Step::Aggregate {
            window: self.window,
            keys: self.keys,
            aggregates: calls.into_iter().collect(),
        });
        self.stream
    }
}

impl Stream {
    /// Where the results keep their event time: the windows' start, or where the rows had it.
    pub fn output_time(&self) -> EventTime {
        let grouped = |step: &Step| matches!(step, Step::Aggregate { .. });
        match self.query.steps.iter().any(grouped) {
            true => window_time(),
            false => self.query.event_time.clone(),
        }
    }

    /// Columns of the results that their event time is made of.
    pub(crate) fn time_columns(&self) -> Vec<String> {
        let time = self.output_time().expression;
        time.columns().into_iter().map(str::to_owned).collect()
    }

    /// The same stream, with what is left open of how to run it as in `options`.
    pub(crate) fn inherit(mut self, options: &RunOptions) -> Self {
        if self.options.threads <= 1 {
            self.options.threads = options.threads;
        }
        self.options.measured |= options.measured;
        let limit = self.options.memory_bytes_limit;
        self.options.memory_bytes_limit = limit.or(options.memory_bytes_limit);
        self.options.interrupt = self.options.interrupt.or(&options.interrupt);
        self
    }
}

/// Where the results of windows have their event time.
fn window_time() -> EventTime {
    EventTime {
        expression: col("window_start"),
        ..default_time()
    }
}

fn default_time() -> EventTime {
    EventTime {
        expression: col("timestamp"),
        unit: TimeUnit::Millisecond,
        lateness: Duration::ZERO,
    }
}
