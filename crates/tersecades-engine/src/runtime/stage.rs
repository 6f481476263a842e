//! A stage: transforms, then at most one group-by.
//!
//! A query is a chain of stages; each group-by ends one. Every worker binds the first stage for
//! itself; plans, prepared tables and key dictionaries are shared.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};

use crate::event_time::Arrival;
use crate::expression::col;
use crate::expression::filter::BoundFilter;
use crate::frame::{Frame, Scope, Slot};
use crate::operator::Operator;
use crate::operator::filter::Filter;
use crate::operator::lookup_join::{LookupJoin, PreparedTable};
use crate::operator::project::Project;
use crate::operator::row::each_window::EachWindow;
use crate::operator::row::{RowInput, RowOperatorPlan};
use crate::operator::window_aggregate::WindowAggregate;
use crate::operator::window_aggregate::feed::Sharing;
use crate::operator::window_aggregate::plan::AggregatePlan;
use crate::plan::{AggregateCall, EventTime, Query, Step};
use crate::window::Windowing;

use super::bound_time::bind_time;
use super::first::ask_for_first;
use super::meter::{self, Meter, Reading};
use super::option::RunOptions;
use super::part::Part;

/// What all workers of a stage share.
#[derive(Debug, Clone)]
pub struct StagePlan {
    /// Schema of the encoded batches that come in.
    pub input: SchemaRef,
    /// Where event time comes from.
    pub event_time: EventTime,
    pub(super) steps: Vec<Step>,
    tables: Vec<Arc<PreparedTable>>,
    aggregate: Option<Arc<AggregatePlan>>,
    /// Schema of what comes out.
    pub output: SchemaRef,
    /// Unit of event time.
    pub unit: TimeUnit,
    /// The zone that event times are shown in.
    zone: Option<Arc<str>>,
    /// Whether frames carry an event time: windows or a retained range read it.
    pub timed: bool,
}

/// One worker's part of a stage.
pub struct Stage {
    operators: Vec<Box<dyn Operator>>,
    /// The group-by, if the stage ends with one.
    pub aggregate: Option<WindowAggregate>,
    visible: Vec<(String, DataType, Slot)>,
    /// Figures of each operator and of the group-by, where they are taken.
    meters: Vec<Meter>,
}

/// Splits a query into its first stage and the parts that follow it.
///
/// # Errors
/// What binding says; `Unsupported` for a window over rows that are in no order of time.
pub fn plan_parts(query: &Query, input: SchemaRef) -> Result<(StagePlan, Vec<Part>)> {
    check_names(&input)?;
    let (steps, mut rest) = split_stage(&query.steps);
    let tables = prepare_tables(steps)?;
    let mut first = StagePlan::bind(steps, input, query.event_time.clone(), (tables, false))?;
    ask_for_first(&mut first, rest);
    let mut flow = RowInput {
        schema: Arc::clone(&first.output),
        event_time: query.event_time.clone(),
        windowed: false,
        reordered: false,
    };
    follow(&first, &mut flow);
    let mut parts = Vec::new();
    parts.extend(cut_windows(&first, rest, &flow)?);
    let mut updates = first.updates();
    while let Some(next) = rest.first() {
        if let Step::Rows(plan) = next {
            check_final(updates)?;
            let operator = plan.bind(&flow)?;
            flow.schema = operator.schema();
            flow.windowed &= plan.keeps_windows();
            flow.reordered |= plan.reorders();
            parts.push(Part::rows(Arc::clone(plan), operator));
            rest = &rest[1..];
            continue;
        }
        let (steps, following) = split_stage(rest);
        let tables = prepare_tables(steps)?;
        let schema = Arc::clone(&flow.schema);
        let mut plan = StagePlan::bind(steps, schema, flow.event_time.clone(), (tables, false))?;
        ask_for_first(&mut plan, following);
        let aggregate = plan.aggregate.as_deref();
        let needs_time = aggregate.is_some_and(AggregatePlan::needs_time);
        if needs_time && (flow.reordered || !flow.windowed) {
            return Err(Error::unsupported("a window over rows in no order of time")
                .hint("sort after the window"));
        }
        if plan.aggregate.is_some() {
            check_final(updates)?;
            updates = plan.updates();
        }
        follow(&plan, &mut flow);
        let cut = cut_windows(&plan, following, &flow)?;
        parts.push(Part::stage(plan)?);
        parts.extend(cut);
        rest = following;
    }
    Ok((first, parts))
}

/// Refuses results that replace earlier ones as the rows of a further step.
pub(crate) fn check_final(updates: bool) -> Result<()> {
    match updates {
        true => Err(Error::unsupported(
            "a step over windows that come out more than once would count rows twice",
        )
        .hint("emit final results without allowed lateness, or put updates on the last window")),
        false => Ok(()),
    }
}

/// The steps of the next stage, which ends with a group-by or before an operator on rows.
fn split_stage(steps: &[Step]) -> (&[Step], &[Step]) {
    let end = steps
        .iter()
        .position(|step| matches!(step, Step::Aggregate { .. } | Step::Rows(_)));
    let end = end.map_or(steps.len(), |end| match steps[end] {
        Step::Rows(_) => end,
        _ => end + 1,
    });
    steps.split_at(end)
}

/// What comes out of `plan`, which takes in `flow`.
fn follow(plan: &StagePlan, flow: &mut RowInput) {
    flow.schema = Arc::clone(&plan.output);
    if plan.aggregate.is_some() {
        let first = plan.output.fields().first();
        flow.windowed = first.is_some_and(|field| field.name() == "window_start");
        flow.reordered = false;
        flow.event_time = EventTime {
            expression: col("window_start"),
            unit: plan.unit,
            lateness: std::time::Duration::ZERO,
        };
    }
}

/// What cuts the results of `plan` for steps that take each window by itself, where batches hold
/// several.
fn cut_windows(plan: &StagePlan, rest: &[Step], flow: &RowInput) -> Result<Option<Part>> {
    let window = plan.aggregate().map(|aggregate| &aggregate.window);
    let mixes = matches!(
        window,
        Some(Windowing::Session { .. } | Windowing::Count { .. })
    );
    let rows = rest
        .iter()
        .take_while(|step| !matches!(step, Step::Aggregate { .. }))
        .filter_map(|step| match step {
            Step::Rows(plan) => Some(plan),
            _ => None,
        });
    let mut taken = rows.take_while(|plan| plan.keeps_windows());
    if !(mixes && flow.windowed && taken.any(|plan| plan.takes_windows())) {
        return Ok(None);
    }
    let operator = EachWindow.bind(flow)?;
    Ok(Some(Part::rows(Arc::new(EachWindow), operator)))
}

/// The indexed tables of all lookups, in order.
fn prepare_tables(steps: &[Step]) -> Result<Vec<Arc<PreparedTable>>> {
    let mut tables = Vec::new();
    for step in steps {
        if let Step::LookupJoin {
            table,
            table_key,
            columns,
            prepared,
            ..
        } = step
        {
            if let Some(table) = prepared.get() {
                tables.push(Arc::clone(table));
                continue;
            }
            let table = Arc::new(PreparedTable::new(&*table.keyed(table_key)?, columns)?);
            tables.push(Arc::clone(prepared.get_or_init(|| table)));
        }
    }
    Ok(tables)
}

/// Refuses streams in which a name would mean two columns.
fn check_names(input: &Schema) -> Result<()> {
    let names: Vec<&String> = input.fields().iter().map(|field| field.name()).collect();
    let doubled = names
        .iter()
        .enumerate()
        .find(|(index, name)| names[..*index].contains(name));
    match doubled {
        Some((_, name)) => Err(Error::schema(format!("two columns are named `{name}`"))
            .hint("rename one of them in the source")),
        None => Ok(()),
    }
}

impl StagePlan {
    fn bind(
        steps: &[Step],
        input: SchemaRef,
        event_time: EventTime,
        (tables, timed): (Vec<Arc<PreparedTable>>, bool),
    ) -> Result<Self> {
        let has_time = !event_time.is_absent(&input);
        let windowed = steps.iter().any(|step| match step {
            Step::Aggregate { window, .. } => {
                window.needs_time() || window.reads_time() && has_time
            }
            _ => false,
        });
        let mut plan = StagePlan {
            output: Arc::clone(&input),
            input,
            event_time,
            steps: steps.to_vec(),
            tables,
            aggregate: None,
            unit: TimeUnit::Millisecond,
            zone: None,
            timed: windowed || timed,
        };
        if plan.timed {
            let time = bind_time(&plan.event_time, &mut Scope::of_schema(&plan.input))?;
            (plan.unit, plan.zone) = (time.unit, time.zone);
        }
        let stage = plan.instantiate(false)?;
        plan.output = match &stage.aggregate {
            Some(aggregate) => Arc::clone(&aggregate.plan().schema),
            None => visible_schema(&stage.visible),
        };
        plan.aggregate = stage
            .aggregate
            .map(|aggregate| Arc::clone(aggregate.plan()));
        Ok(plan)
    }

    /// Whether results may replace earlier ones.
    fn updates(&self) -> bool {
        let aggregate = self.aggregate.as_ref();
        aggregate.is_some_and(|plan| plan.emission.is_some())
    }

    /// The same plan for a run with `options`.
    pub fn for_run(mut self, options: &RunOptions) -> Self {
        if let Some(aggregate) = self.aggregate_mut() {
            aggregate.keys.standard_map = options.ablation.own_table;
            aggregate.threads = options.threads;
            aggregate.interrupt = options.interrupt.clone();
        }
        self
    }

    /// What the stage ends with, to change it for a run.
    pub(super) fn aggregate_mut(&mut self) -> Option<&mut AggregatePlan> {
        self.aggregate.as_mut().map(Arc::make_mut)
    }

    /// The windows, if the stage ends with a group-by.
    pub fn aggregate(&self) -> Option<&Arc<AggregatePlan>> {
        self.aggregate.as_ref()
    }

    /// One worker's part.
    ///
    /// # Errors
    /// What binding says; a plan that was bound once binds again.
    pub fn instantiate(&self, keep_late: bool) -> Result<Stage> {
        let mut scope = Scope::of_schema(&self.input);
        if self.timed {
            bind_time(&self.event_time, &mut scope)?;
        }
        let mut stage = Stage {
            operators: Vec::new(),
            aggregate: None,
            visible: Vec::new(),
            meters: Vec::new(),
        };
        let mut tables = self.tables.iter();
        for step in &self.steps {
            match step {
                Step::Filter(expression) => {
                    let filter = BoundFilter::bind(expression, &scope)?;
                    stage.operators.push(Box::new(Filter(filter)));
                }
                Step::Project(columns) => {
                    stage
                        .operators
                        .push(Box::new(Project::bind(columns, &mut scope)?));
                }
                Step::LookupJoin { stream_key, .. } => {
                    let Some(table) = tables.next() else {
                        return Err(Error::internal("a lookup has no prepared table"));
                    };
                    let join = LookupJoin::bind(Arc::clone(table), stream_key, &mut scope)?;
                    stage.operators.push(Box::new(join));
                }
                Step::Aggregate {
                    window,
                    keys,
                    aggregates,
                } => {
                    let mut computed = Vec::new();
                    let time_type = DataType::Timestamp(self.unit, self.zone.clone());
                    let window = (window, time_type, self.timed);
                    let bound =
                        AggregatePlan::bind(window, keys, aggregates, &mut scope, &mut computed)?;
                    let shared = self.aggregate.clone().unwrap_or_else(|| Arc::new(bound));
                    if matches!(shared.sharing, Sharing::Reads(_)) {
                        computed.clear();
                    }
                    let tested = shared.tested_slot().filter(|_| computed.is_empty());
                    let last = stage.operators.last_mut();
                    last.into_iter().for_each(|last| last.leave_over(tested));
                    stage.aggregate = Some(WindowAggregate::new(shared, computed, keep_late));
                }
                Step::Rows(_) => return Err(Error::internal("a stage holds no row operators")),
            }
        }
        let shown = scope.columns().iter();
        let shown = shown.filter(|(name, ..)| !name.starts_with('\u{0}'));
        stage.visible = shown.cloned().collect();
        Ok(stage)
    }

    /// One worker's part of a run with `options`.
    ///
    /// # Errors
    /// As [`StagePlan::instantiate`].
    pub fn start(&self, options: &RunOptions) -> Result<Stage> {
        let mut stage = self.instantiate(options.keep_late)?;
        if options.measured {
            stage.measure();
        }
        Ok(stage)
    }

    /// Names of the input columns that the stage reads; `None` when it needs all.
    pub fn columns_read(&self) -> Option<Vec<String>> {
        let mut names: Vec<&str> = Vec::new();
        let mut narrowed = false;
        let time = self.timed.then_some(&self.event_time.expression);
        time.into_iter()
            .for_each(|expression| names.extend(expression.columns()));
        for step in &self.steps {
            match step {
                Step::Filter(expression) => names.extend(expression.columns()),
                Step::LookupJoin { stream_key, .. } => names.push(stream_key),
                Step::Project(columns) => {
                    narrowed = true;
                    let expressions = columns.iter().map(|(_, expression)| expression);
                    expressions.for_each(|expression| names.extend(expression.columns()));
                }
                Step::Aggregate {
                    keys, aggregates, ..
                } => {
                    narrowed = true;
                    names.extend(keys.iter().map(String::as_str));
                    let arguments = aggregates.iter().flat_map(AggregateCall::expressions);
                    arguments.for_each(|expression| names.extend(expression.columns()));
                }
                Step::Rows(_) => {}
            }
        }
        let fields = self.input.fields().iter().map(|field| field.name());
        let kept = fields.filter(|name| names.contains(&name.as_str()));
        narrowed.then(|| kept.cloned().collect())
    }

    /// The same plan over batches that lack the columns it does not read, with an event time if
    /// it needs one or they are `timed`.
    ///
    /// # Errors
    /// What binding says.
    pub fn over(&self, input: SchemaRef, timed: bool) -> Result<Self> {
        let shared = (self.tables.clone(), timed);
        let mut plan = StagePlan::bind(&self.steps, input, self.event_time.clone(), shared)?;
        if let (Some(bound), Some(known)) = (plan.aggregate_mut(), self.aggregate()) {
            bound.first.clone_from(&known.first);
        }
        Ok(plan)
    }
}

fn visible_schema(visible: &[(String, DataType, Slot)]) -> SchemaRef {
    let fields = visible
        .iter()
        .map(|(name, kind, _)| Field::new(name, kind.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Stage {
    /// One line for each operator.
    pub fn describe(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.operators.iter().map(|o| o.describe()).collect();
        let aggregate = self.aggregate.as_ref();
        lines.extend(aggregate.map(|a| format!("aggregate {}", a.plan().label)));
        let measured = |(at, text)| meter::line(text, self.meters.get(at));
        lines.into_iter().enumerate().map(measured).collect()
    }

    /// The slots of the columns that come out of a stage without group-by.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.visible.iter().map(|(.., slot)| *slot)
    }

    /// Takes the figures of each operator from here on; none leaves a test to the next.
    pub fn measure(&mut self) {
        self.operators
            .iter_mut()
            .for_each(|operator| operator.leave_over(None));
        let count = self.operators.len() + usize::from(self.aggregate.is_some());
        self.meters.resize(count, Meter::default());
    }

    /// Figures taken since the last call.
    pub fn take_meters(&mut self) -> Vec<Meter> {
        let fresh = vec![Meter::default(); self.meters.len()];
        std::mem::replace(&mut self.meters, fresh)
    }

    /// Adds the figures of another thread that ran the same stage.
    pub fn absorb_meters(&mut self, meters: &[Meter]) {
        let pairs = self.meters.iter_mut().zip(meters);
        pairs.for_each(|(own, other)| own.merge(other));
    }

    /// Counts the rows of results that the group-by gave.
    pub fn count_results(&mut self, rows: usize) {
        if let (Some(_), Some(meter)) = (&self.aggregate, self.meters.last_mut()) {
            meter.rows_out += rows as u64;
        }
    }

    /// Runs a frame through; rows of a stage without group-by come back as Arrow.
    ///
    /// # Errors
    /// What the operators say.
    pub fn push(
        &mut self,
        frame: &mut Frame,
        arrival: &Arrival,
        work: &mut Work,
    ) -> Result<Option<RecordBatch>> {
        for (at, operator) in self.operators.iter_mut().enumerate() {
            if frame.selection.is_empty() {
                return Ok(None);
            }
            let before = Reading::of(self.meters.get_mut(at), frame, work);
            operator.push(frame, work)?;
            Reading::finish(before, Some(frame), work);
        }
        if frame.selection.is_empty() {
            return Ok(None);
        }
        match &mut self.aggregate {
            Some(aggregate) => {
                let meter = self.meters.get_mut(self.operators.len());
                let before = Reading::of(meter, frame, work);
                aggregate.push(frame, arrival, work)?;
                Reading::finish(before, None, work);
                Ok(None)
            }
            None => self.to_arrow(frame, work).map(Some),
        }
    }

    fn to_arrow(&self, frame: &Frame, work: &mut Work) -> Result<RecordBatch> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, _, slot) in &self.visible {
            let array = frame.column(*slot).to_arrow(&frame.selection, work)?;
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(frame.selection.count()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}
