//! Which queries that stand over one stream share panes, and who fills them.
//!
//! ```text
//! count by host, 10 s          ┐ same steps before,   one filler: panes of 5 s, count and max
//! max by host, 60 s every 5 s  ┘ same keys            each query: its windows from these panes
//! ```
//! A filler runs the steps before the windows and takes rows in once, for panes as long as the
//! greatest common divisor of all that the queries need.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::operator::window_aggregate::feed::{Filled, ReadFrom, SharedPanes, Sharing};
use crate::operator::window_aggregate::plan::{AggregatePlan, tick_ns};
use crate::plan::{AggregateCall, EventTime, Query, Step};
use crate::window::{Shape, Updates, Window, Windowing, tumble};

use super::ingest::Ingest;
use super::option::RunOptions;
use super::retained::Keep;
use super::stage::{StagePlan, plan_parts};

/// Panes shorter than the shortest own pane of a query by more than this cost more than they save.
const SHORTER_MAX: u128 = 16;

/// The part of a run in panes that queries share.
pub(crate) enum Share {
    /// It fills them.
    Fill {
        /// The windows of each reader.
        windows: Vec<Window>,
        /// Where all of them read.
        panes: SharedPanes,
    },
    /// It reads them.
    Read {
        /// What the filler computes.
        filler: Arc<AggregatePlan>,
        /// Which of the filler's readings are its own.
        at: Vec<usize>,
        /// Where it reads.
        from: ReadFrom,
    },
}

impl Share {
    /// Gives the group-by of `plan` this part.
    ///
    /// # Errors
    /// What binding windows says.
    pub(crate) fn apply(&self, plan: &mut StagePlan) -> Result<()> {
        let tick_ns = tick_ns(plan.unit);
        let Some(plan) = plan.aggregate_mut() else {
            return Ok(());
        };
        match self {
            Share::Fill { windows, panes } => {
                let mut bound = Vec::new();
                for window in windows {
                    if let Windowing::Aligned(boundaries) = window.bind(tick_ns)? {
                        bound.push(boundaries);
                    }
                }
                let filled = Filled {
                    windows: bound,
                    panes: panes.clone(),
                };
                plan.sharing = Sharing::Fills(Arc::new(filled));
            }
            Share::Read { filler, at, from } => plan.read_panes(filler, at, from),
        }
        Ok(())
    }
}

/// The first stage of a run over what `ingest` reads, in its part in panes that are shared.
///
/// # Errors
/// What binding says.
pub(crate) fn first_stage(
    first: &StagePlan,
    ingest: &Ingest,
    options: &RunOptions,
    share: Option<&Share>,
) -> Result<StagePlan> {
    let timed = match options.keep {
        Some(Keep::Duration(_)) => true,
        Some(Keep::Bytes(_)) => !first.event_time.is_absent(ingest.schema()),
        None => false,
    };
    let plan = first.over(Arc::clone(ingest.schema()), timed)?;
    let mut plan = plan.for_run(options);
    share.map_or(Ok(()), |share| share.apply(&mut plan))?;
    Ok(plan)
}

/// The first group-by of a query, and where its boundaries lie.
struct Grouped<'a> {
    event_time: &'a EventTime,
    options: RunOptions,
    before: &'a [Step],
    window: Window,
    keys: &'a [String],
    calls: &'a [AggregateCall],
    /// The windows that others must have, where a row may fail: one that is late for these fails
    /// nothing, though it be in time for others.
    only: Option<Window>,
    step: u128,
    offset: u128,
}

impl<'a> Grouped<'a> {
    /// That of `query` over rows of `schema`, if it may share panes: windows on a grid that come
    /// out once, on one thread.
    fn of(query: &'a Query, options: &RunOptions, schema: &SchemaRef) -> Option<Self> {
        let end = query.steps.iter().position(|step| !is_plain(step))?;
        let Step::Aggregate {
            window,
            keys,
            aggregates,
        } = &query.steps[end]
        else {
            return None;
        };
        let alone = options.threads > 1 || options.measured;
        if alone || window.updates != Updates::default() {
            return None;
        }
        let (step, shift) = grid(window.shape)?;
        Some(Grouped {
            event_time: &query.event_time,
            options: RunOptions {
                keep: None,
                keep_late: false,
                keep_late_whole: false,
                ..options.clone()
            },
            before: &query.steps[..end],
            window: *window,
            keys,
            calls: aggregates,
            only: may_fail(query, schema).then_some(*window),
            step,
            offset: window.offset.as_nanos() % shift,
        })
    }

    /// Whether both take in the same rows, in the same groups.
    fn is_like(&self, other: &Grouped<'_>) -> bool {
        let mut steps = self.before.iter().zip(other.before);
        self.event_time == other.event_time
            && self.options == other.options
            && self.keys == other.keys
            && self.only == other.only
            && self.before.len() == other.before.len()
            && steps.all(|(a, b)| same(a, b))
    }
}

/// Whether a row may fail in what the first group-by of `query` computes.
fn may_fail(query: &Query, schema: &SchemaRef) -> bool {
    let plan = plan_parts(query, Arc::clone(schema));
    let stage = plan.and_then(|(first, _)| first.instantiate(false));
    // What is wrong with a query is said where it is bound by itself.
    let aggregate = stage.ok().and_then(|stage| stage.aggregate);
    aggregate.is_some_and(|aggregate| aggregate.may_fail())
}

/// Whether a step before a group-by is one that can be told to be the same as another.
fn is_plain(step: &Step) -> bool {
    matches!(
        step,
        Step::Filter(_) | Step::Project(_) | Step::LookupJoin { .. }
    )
}

fn same(a: &Step, b: &Step) -> bool {
    match (a, b) {
        (Step::Filter(a), Step::Filter(b)) => a == b,
        (Step::Project(a), Step::Project(b)) => a == b,
        (
            Step::LookupJoin {
                table,
                stream_key,
                table_key,
                columns,
                ..
            },
            Step::LookupJoin {
                table: other,
                stream_key: other_stream_key,
                table_key: other_table_key,
                columns: other_columns,
                ..
            },
        ) => {
            Arc::ptr_eq(table, other)
                && (stream_key, table_key) == (other_stream_key, other_table_key)
                && columns == other_columns
        }
        _ => false,
    }
}

/// Nanoseconds of a pane, and what an offset is counted beyond; `None` for windows on no grid.
fn grid(shape: Shape) -> Option<(u128, u128)> {
    let (pane, shift) = match shape {
        Shape::Tumble { size } => (size.as_nanos(), size.as_nanos()),
        Shape::Hop { size, slide } if slide <= size => {
            (gcd(size.as_nanos(), slide.as_nanos()), slide.as_nanos())
        }
        Shape::Cumulate { size, step } => (step.as_nanos(), size.as_nanos()),
        _ => return None,
    };
    (pane > 0 && shift > 0).then_some((pane, shift))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Queries that share panes.
pub(crate) struct Group {
    /// Their indexes, and which of `calls` each asks for.
    pub(crate) members: Vec<(usize, Vec<usize>)>,
    /// Their windows.
    pub(crate) windows: Vec<Window>,
    /// Everything that any asks for, each once.
    calls: Vec<AggregateCall>,
    step: u128,
    offset: u128,
    /// The shortest own pane.
    shortest: u128,
}

impl Group {
    /// Takes in a query, unless the panes would become too short.
    fn take(&mut self, index: usize, query: &Grouped<'_>) -> bool {
        let apart = self.offset.abs_diff(query.offset);
        let step = gcd(gcd(self.step, query.step), apart);
        let shortest = self.shortest.min(query.step);
        if step * SHORTER_MAX < shortest {
            return false;
        }
        (self.step, self.shortest) = (step, shortest);
        self.windows.push(query.window);
        let mut at = Vec::new();
        for call in query.calls {
            let as_own = |known: &AggregateCall| AggregateCall {
                output: known.output.clone(),
                ..call.clone()
            };
            let known = self.calls.iter().position(|known| *known == as_own(known));
            at.push(known.unwrap_or(self.calls.len()));
            if known.is_none() {
                self.calls.push(AggregateCall {
                    output: format!("\u{0}{}", self.calls.len()),
                    ..call.clone()
                });
            }
        }
        self.members.push((index, at));
        true
    }

    /// The panes, for explain: those of the queries called `names`.
    pub(crate) fn show(&self, names: &str) -> String {
        let step = std::time::Duration::from_nanos(u64::try_from(self.step).unwrap_or(u64::MAX));
        format!("panes of {step:?} shared by `{names}`")
    }

    /// The steps of the filler, those of a member being `steps`.
    pub(crate) fn steps(&self, steps: &[Step]) -> Option<Vec<Step>> {
        let end = steps.iter().position(|step| !is_plain(step))?;
        let Step::Aggregate { keys, .. } = &steps[end] else {
            return None;
        };
        let nanos = |nanos: u128| {
            let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
            let rest = (nanos % 1_000_000_000) as u32;
            Some(std::time::Duration::new(seconds, rest))
        };
        let window = tumble(nanos(self.step)?).offset(nanos(self.offset % self.step)?);
        let mut filler = steps[..end].to_vec();
        filler.push(Step::Aggregate {
            window,
            keys: keys.clone(),
            aggregates: self.calls.clone(),
        });
        Some(filler)
    }
}

/// The groups of at least two queries over rows of `schema` that share panes.
pub(crate) fn groups<'a>(
    queries: impl Iterator<Item = (&'a Query, &'a RunOptions)>,
    schema: &SchemaRef,
) -> Vec<Group> {
    let mut groups: Vec<(Grouped<'_>, Group)> = Vec::new();
    for (index, (query, options)) in queries.enumerate() {
        let Some(grouped) = Grouped::of(query, options, schema) else {
            continue;
        };
        let mut alike = groups
            .iter_mut()
            .filter(|(first, _)| first.is_like(&grouped));
        if alike.any(|(_, group)| group.take(index, &grouped)) {
            continue;
        }
        let mut group = Group {
            members: Vec::new(),
            windows: Vec::new(),
            calls: Vec::new(),
            step: grouped.step,
            offset: grouped.offset,
            shortest: grouped.step,
        };
        group.take(index, &grouped);
        groups.push((grouped, group));
    }
    let groups = groups.into_iter().map(|(_, group)| group);
    groups.filter(|group| group.members.len() > 1).collect()
}
