//! A running query: pulls batches, feeds stages, hands out results as windows close.

mod by_pane;
mod dispatch;
mod memory;
mod oldest;
mod open;
mod outline;
mod snapshot;
mod step;
mod time;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};

use crate::error_bound::{ResultBounds, bound_lines, bounds_of};
use crate::event_time::clock::ticks_late;
use crate::event_time::{Arrival, Course, Cut, Watermark, time_range};
use crate::frame::{Frame, Scope};
use crate::operator::row::bound::Reached;
use crate::operator::window_aggregate::WindowAggregate;
use crate::operator::window_aggregate::feed::Sharing;
use crate::operator::window_aggregate::plan::{AggregatePlan, tick_ns};
use crate::plan::Query;
use crate::source::SourceState;
use crate::window::{Emission, Rhythm, Windowing};

use super::bound_time::{BoundTime, bind_time};
use super::ingest::{Ingest, Origin};
use super::metrics::{LateWindow, Metrics};
use super::option::RunOptions;
use super::part::Part;
use super::retained::Retained;
use super::share::{Share, first_stage};
use super::stage::{Stage, StagePlan, plan_parts};
use super::worker::Workers;

use by_pane::ByPane;
use dispatch::Held;
use memory::range_of;
use oldest::Oldest;

pub use open::OpenWindow;
pub use outline::{columns_read, describe, output_schema, passing};

/// A query that is running; an iterator of result batches, one per window and stage end.
pub struct Running {
    ingest: Ingest,
    plan: StagePlan,
    time: Option<BoundTime>,
    watermark: Watermark,
    /// How the rows of the batch that is taken in move the watermark.
    course: Option<Course>,
    /// Nanoseconds of one tick of the event time.
    tick_ns: i64,
    /// What the query asks, for snapshots.
    query: String,
    /// The first stage as this thread runs it; its group-by state emits.
    stage: Stage,
    workers: Workers,
    /// Whether frames go to workers by pane.
    by_pane: ByPane,
    /// Windows that are to come out, with what the workers knew of them.
    closing: Option<Held>,
    /// Frames dispatched so far.
    frames: u64,
    /// When workers last gave all their rows.
    flushed: Instant,
    /// Rows of a stage without group-by, each batch with the number of its frame.
    unordered: Vec<(u64, RecordBatch)>,
    tails: Vec<Part>,
    options: RunOptions,
    retained: Option<Retained>,
    /// The time of the clock when the last batch came, where it was asked.
    came_at: Option<Duration>,
    ready: VecDeque<RecordBatch>,
    oldest: Oldest,
    results: Vec<RecordBatch>,
    /// How far the first rows of an order have come, if the source goes by that.
    reached: Option<Reached>,
    /// What lossy columns do to the results.
    bounds: ResultBounds,
    metrics: Metrics,
    work: Work,
    cuts: Vec<Cut>,
    spare: Option<Box<Frame>>,
    last_batch: Option<Arc<Batch>>,
    rows_before: u64,
    /// How many rows came before what is done.
    row: u64,
    finished: bool,
    /// Whether the source had nothing when it was asked last.
    is_silent: bool,
    /// At the end of the stream, which of the tails gives what it holds.
    finishing: Option<usize>,
    /// What went wrong behind the results that are ready, after which nothing goes on.
    failed: Option<Error>,
    /// Whether the iterator has told an error.
    is_over: bool,
}

impl Running {
    /// Binds `query` to what arrives and starts its workers.
    ///
    /// # Errors
    /// What binding says: unknown columns, wrong types, windows that are no whole ticks.
    pub fn start(origin: Origin, query: &Query, options: RunOptions) -> Result<Self> {
        Running::start_shared(origin, query, options, (None, None))
    }

    /// As [`Running::start`], for a query that may share panes with others, and whose source goes
    /// by how far the first rows of an order have come.
    ///
    /// # Errors
    /// As [`Running::start`].
    pub(crate) fn start_shared(
        origin: Origin,
        query: &Query,
        options: RunOptions,
        (share, reached): (Option<&Share>, Option<Reached>),
    ) -> Result<Self> {
        let (first, mut tails) = plan_parts(query, outline::logical_schema(&origin.schema())?)?;
        let uses = |column: &str| query.uses(column);
        let ingest = Ingest::new(origin, first.columns_read(), &options, &uses)?;
        let plan = first_stage(&first, &ingest, &options, share)?;
        let mut scope = Scope::of_schema(&plan.input);
        let time = plan
            .timed
            .then(|| bind_time(&plan.event_time, &mut scope))
            .transpose()?;
        let tick = tick_ns(time.as_ref().map_or(plan.unit, |time| time.unit));
        let lateness = ticks_late(plan.event_time.lateness, tick);
        let retained = range_of(&ingest, &plan.event_time, &options, tick);
        prepare(&mut tails, &options, reached.as_ref());
        let helpers = 0..helpers_of(&plan, &options);
        let stages: Result<Vec<Stage>> = helpers.map(|_| plan.start(&options)).collect();
        let by_pane = ByPane::of(&plan, &options);
        let own = by_pane.may_be().then(|| plan.start(&options));
        let workers = Workers::start(stages?, own.transpose()?, options.ablation)?;
        let bounds = bounds_of(query, ingest.schema(), &results_of(&plan, &tails));
        Ok(Running {
            bounds,
            stage: plan.start(&options)?,
            watermark: Watermark::of_partitions(lateness, ingest.partitions()),
            course: None,
            ingest,
            plan,
            time,
            tick_ns: tick,
            query: query.to_string(),
            workers,
            by_pane,
            closing: None,
            frames: 0,
            flushed: Instant::now(),
            unordered: Vec::new(),
            tails,
            reached,
            work: options.ablation.work(),
            options,
            retained,
            came_at: None,
            ready: VecDeque::new(),
            oldest: Oldest::new(),
            results: Vec::new(),
            metrics: Metrics::default(),
            cuts: Vec::new(),
            spare: None,
            last_batch: None,
            rows_before: 0,
            row: 0,
            finished: false,
            is_silent: false,
            finishing: None,
            failed: None,
            is_over: false,
        })
    }

    /// Columns of the results.
    pub fn schema(&self) -> SchemaRef {
        self.bounds.mark(&results_of(&self.plan, &self.tails))
    }

    /// What the first group-by computes.
    pub(crate) fn aggregate_plan(&self) -> Option<&Arc<AggregatePlan>> {
        self.plan.aggregate()
    }

    /// The retained range, if the stream is kept.
    pub fn retained(&self) -> Option<&Retained> {
        self.retained.as_ref()
    }

    /// Threads that it may use.
    pub fn threads(&self) -> usize {
        self.options.threads
    }

    /// How many rows will arrive, where that is known.
    pub fn rows_hint(&self) -> Option<u64> {
        self.ingest.rows_hint()
    }

    /// Operators, in order, one line each.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = self.ingest.describe();
        lines.extend(self.stage.describe());
        lines.extend(self.tails.iter().flat_map(Part::describe));
        lines.extend(self.retained.as_ref().and_then(Retained::at_limit));
        let observed = self.options.observed.iter();
        lines.extend(observed.flat_map(|observed| observed.lines()));
        lines.extend(bound_lines(&self.schema()));
        lines
    }

    /// What has been counted so far.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.metrics.clone();
        metrics.encode_ns = self.ingest.encode_ns;
        metrics.rejected_rows = self.ingest.rejected_rows();
        metrics.left_out_rows = self.ingest.rows_left_out();
        metrics.rows += metrics.left_out_rows;
        metrics.tally.merge(self.work.tally);
        let state = self.state();
        metrics.late_rows = state.late_rows;
        metrics.untimed_rows = state.untimed_rows;
        metrics.skipped_rows = state.skipped_rows;
        metrics.future_rows = state.future_rows;
        if let Some(retained) = &self.retained {
            metrics.shortened_rows = retained.shortened_rows();
            metrics.spilled_bytes = retained.spilled_bytes() as u64;
        }
        if let Some(late) = self.stage.aggregate.as_ref().map(|a| a.late_windows()) {
            let windows = late.iter();
            let windows = windows.map(|(start, end, rows)| LateWindow { start, end, rows });
            metrics.late_by_window = windows.collect();
            metrics.late_rows_older = late.older;
        }
        self.tails
            .iter()
            .for_each(|tail| metrics.tally.merge(tail.tally()));
        if let Some(batch) = &self.last_batch {
            metrics.describe_columns(batch);
        }
        metrics
    }

    fn aggregates(&self) -> impl Iterator<Item = &WindowAggregate> {
        let tails = self.tails.iter().filter_map(Part::aggregate);
        self.stage.aggregate.iter().chain(tails)
    }

    /// Takes the late rows kept so far, with the columns the query reads, or all of them with
    /// [`RunOptions::keep_late_whole`]; needs [`RunOptions::keep_late`].
    pub fn take_late(&mut self) -> Vec<RecordBatch> {
        self.stage
            .aggregate
            .as_mut()
            .map_or_else(Vec::new, WindowAggregate::take_late)
    }

    /// What the run holds, and which rows no window or join took.
    pub fn state(&self) -> SourceState {
        let mut state = self.ingest.source_state();
        state.bytes = self.state_bytes();
        let untimed = self.tails.iter().map(Part::untimed_rows);
        state.untimed_rows += self.metrics.untimed_rows + untimed.sum::<u64>();
        state.future_rows += self.watermark.future_rows();
        for aggregate in self.aggregates() {
            state.late_rows += aggregate.unplaced().late;
            state.skipped_rows += aggregate.unplaced().skipped;
        }
        state
    }

    /// Rows the source could not read and left out.
    pub fn rejected_rows(&self) -> u64 {
        self.ingest.rejected_rows()
    }

    fn take_in(&mut self, batch: Arc<Batch>) -> Result<()> {
        self.metrics.rows += batch.rows() as u64;
        self.metrics.batches += 1;
        self.metrics.count_batch(&batch);
        let mut frame = self.take_frame(&batch);
        let pushed = match self.prepare_time(&mut frame) {
            Ok(Some(time_range)) => self.push_cuts(frame, &batch, time_range),
            Ok(None) => {
                self.spare = Some(frame);
                Ok(())
            }
            Err(error) => Err(error),
        };
        self.rows_before += batch.rows() as u64;
        self.last_batch = Some(batch);
        pushed
    }

    /// Evaluates event time, moves the watermark and keeps the batch; `None` when no row has one.
    fn prepare_time(&mut self, frame: &mut Frame) -> Result<Option<(i64, i64)>> {
        self.cuts.clear();
        self.cuts.push(Cut {
            first_row: 0,
            watermark: i64::MIN,
        });
        let Some(time) = &mut self.time else {
            self.retain(&frame.batch, None);
            return Ok(Some((0, 0)));
        };
        time.evaluate(frame, &mut self.work)?;
        let column = frame.column(time.slot);
        let range = time_range(column)?;
        let aggregate = self.plan.aggregate();
        let windowing = aggregate.map(|plan| &plan.window);
        if windowing.is_none_or(Windowing::needs_time) {
            self.metrics.untimed_rows += column.nulls() as u64;
        }
        let closing = aggregate.and_then(|plan| plan.closing());
        self.course = Some(self.watermark.course());
        match aggregate.map(|plan| &plan.sharing) {
            Some(Sharing::Fills(filled)) => {
                let windows = &filled.windows;
                self.watermark
                    .pass_all(column, windows, &mut self.cuts, &mut self.work);
            }
            _ => self
                .watermark
                .pass(column, closing, &mut self.cuts, &mut self.work),
        }
        self.retain(&frame.batch, range);
        let aligned = matches!(windowing, Some(Windowing::Aligned(_)));
        Ok(range.or((!aligned).then_some((0, 0))))
    }

    fn push_cuts(
        &mut self,
        whole: Box<Frame>,
        batch: &Arc<Batch>,
        time_range: (i64, i64),
    ) -> Result<()> {
        let time_slot = self.time.as_ref().map_or(0, |time| time.slot);
        let mut whole = Some(whole);
        let cuts = std::mem::take(&mut self.cuts);
        for (index, cut) in cuts.iter().enumerate() {
            if index > 0 {
                self.row = self.rows_before + cut.first_row as u64;
                self.close(cut.watermark)?;
            }
            let mut frame = match whole.take() {
                Some(frame) => frame,
                None => self.timed_frame(batch)?,
            };
            if cuts.len() > 1 {
                let end = cuts
                    .get(index + 1)
                    .map_or(batch.rows(), |next| next.first_row);
                frame.select_range(cut.first_row..end);
            }
            let arrival = Arrival {
                time_slot,
                watermark: cut.watermark,
                time_range,
                course: self.course,
                rows_before: self.rows_before,
            };
            self.dispatch(frame, arrival)?;
        }
        self.cuts = cuts;
        self.row = self.rows_before + batch.rows() as u64;
        self.close(self.watermark.current())
    }

    fn take_frame(&mut self, batch: &Arc<Batch>) -> Box<Frame> {
        let recycled = || self.workers.recycled();
        match self.spare.take().or_else(recycled) {
            Some(mut frame) => {
                frame.reset(Arc::clone(batch));
                frame
            }
            None => Box::new(Frame::new(Arc::clone(batch))),
        }
    }

    fn timed_frame(&mut self, batch: &Arc<Batch>) -> Result<Box<Frame>> {
        let mut frame = self.take_frame(batch);
        if let Some(time) = &mut self.time {
            time.evaluate(&mut frame, &mut self.work)?;
        }
        Ok(frame)
    }

    /// Hands results to the next stage, or out.
    fn pass_on(&mut self) -> Result<()> {
        let mut results = std::mem::take(&mut self.results);
        let rows = results.iter().map(RecordBatch::num_rows);
        self.stage.count_results(rows.sum());
        let passed = self.run_tails(&mut results, 0);
        self.results = results;
        passed
    }

    fn run_tails(&mut self, results: &mut Vec<RecordBatch>, first: usize) -> Result<()> {
        let aggregate = self.stage.aggregate.as_ref();
        let start = aggregate.map_or(i64::MIN, WindowAggregate::least_start);
        let before = self.tails[..first].iter();
        let mut start = before.fold(start, |start, part| part.least_start(start));
        for part in &mut self.tails[first..] {
            let mut next = Vec::new();
            for batch in results.drain(..) {
                self.options.interrupt.check()?;
                part.push(batch, &mut next)?;
            }
            part.advance(start, &mut next)?;
            start = part.least_start(start);
            *results = next;
        }
        self.oldest.pass(start, !self.ready.is_empty());
        for batch in results.drain(..) {
            self.metrics.windows += u64::from(self.plan.aggregate().is_some());
            self.metrics.result_rows += batch.num_rows() as u64;
            self.ready.push_back(self.bounds.mark_batch(batch)?);
        }
        Ok(())
    }

    /// Has the tails give what they hold, until one has given a part of it.
    fn finish_some(&mut self) -> Result<()> {
        while let Some(index) = self.finishing.take().filter(|at| *at < self.tails.len()) {
            let mut results = Vec::new();
            let mut more = self.tails[index].finish(&mut results)?;
            self.run_tails(&mut results, index + 1)?;
            more &= !self.tails[index + 1..].iter().any(Part::is_done);
            self.finishing = Some(index + usize::from(!more));
            if more {
                break;
            }
        }
        Ok(())
    }
}

/// Tells the parts of a run what they have to know of it.
fn prepare(tails: &mut [Part], options: &RunOptions, reached: Option<&Reached>) {
    // What threads make at once is held until it comes out.
    let threads = options.memory_bytes_limit.map_or(options.threads, |_| 1);
    for part in &mut *tails {
        part.interrupt_with(&options.interrupt);
        part.work_on(threads);
    }
    if let (Some(reached), Some(next)) = (reached, tails.first_mut()) {
        next.tell(reached);
    }
    if options.measured {
        tails.iter_mut().for_each(Part::measure);
    }
}

/// Threads that run the first stage besides the caller's: none where each batch has results, for
/// which all of them would be waited for.
fn helpers_of(plan: &StagePlan, options: &RunOptions) -> usize {
    let mut aggregate = plan.aggregate().into_iter();
    let by_batch = |emission: &Emission| emission.rhythm == Rhythm::Batch;
    let is_split = |plan: &Arc<AggregatePlan>| {
        plan.window.is_mergeable() && !plan.emission.as_ref().is_some_and(by_batch)
    };
    match aggregate.all(is_split) {
        true => options.threads.saturating_sub(1),
        false => 0,
    }
}

/// Columns of the results of a plan and what follows it.
fn results_of(plan: &StagePlan, tails: &[Part]) -> SchemaRef {
    let last = tails.last().map(Part::schema);
    last.unwrap_or_else(|| Arc::clone(&plan.output))
}
