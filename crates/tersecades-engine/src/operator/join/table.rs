//! A join as a table: each run of it runs both inputs anew.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::Result;

use crate::error_bound::{Pairing, ResultBounds, bounds_of_join};
use crate::expression::{Expression, col};
use crate::plan::EventTime;
use crate::runtime::Running;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::stage::check_final;
use crate::source::query::narrowed;
use crate::source::table::Table;
use crate::source::{Source, SourceState};
use crate::stream::Stream;

use super::as_of::{AsOf, AsOfSpec};
use super::equal::EqualJoin;
use super::interval::{IntervalJoin, IntervalSpec};
use super::kind::{JoinKind, JoinOptions};
use super::side::{JoinColumns, bind_keys};
use super::timed::{TimedInput, common_unit, unit_of, zone_of};
use super::window::{WindowJoin, WindowJoinSpec, with_window};

/// How rows are paired, besides equal keys.
#[derive(Debug, Clone)]
pub enum JoinTime {
    /// Whenever they come; the streams end.
    Any,
    /// Inside the same window.
    Window(WindowJoinSpec),
    /// With event times so far apart.
    Interval(IntervalSpec),
    /// With the nearest event time.
    AsOf(AsOfSpec),
}

/// What a join does.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// Which rows come out.
    pub kind: JoinKind,
    /// Columns that must be equal: of the left stream, of the right one.
    pub on: Vec<(String, String)>,
    /// How rows are paired besides.
    pub time: JoinTime,
    /// The rest.
    pub options: JoinOptions,
}

impl JoinSpec {
    /// The join, in a line.
    pub(super) fn label(&self) -> String {
        let kind = self.kind;
        match &self.time {
            JoinTime::Any => {
                let on = self.on.iter().map(|(l, r)| format!("{l} = {r}"));
                format!("join {kind:?} on [{}]", on.collect::<Vec<_>>().join(", "))
            }
            JoinTime::Window(spec) => format!("window_join {kind:?} in {}", spec.window),
            JoinTime::Interval(IntervalSpec { lower_ns, upper_ns }) => {
                format!("interval_join {kind:?} from {lower_ns} to {upper_ns} ns")
            }
            JoinTime::AsOf(spec) => format!("asof_join {kind:?} {:?}", spec.direction),
        }
    }

    /// The join, in full.
    pub(super) fn identity(&self) -> String {
        format!("{self:?}")
    }
}

/// The joined rows of two streams.
pub struct JoinTable {
    inputs: (Stream, Stream),
    schemas: (SchemaRef, SchemaRef),
    spec: JoinSpec,
    columns: JoinColumns,
    schema: SchemaRef,
    /// Ticks in which a join by time reckons.
    unit: TimeUnit,
}

impl JoinTable {
    /// Joins `left` with `right`.
    ///
    /// # Errors
    /// What binding both says; `InvalidArgument` and `SchemaMismatch` for keys that do not
    /// compare, doubled names and kinds the join has no meaning for.
    pub fn new(left: Stream, right: Stream, spec: JoinSpec) -> Result<Self> {
        check_final(left.has_updates() || right.has_updates())?;
        let schemas = (left.schema()?, right.schema()?);
        let names: (&Schema, &Schema) = (&schemas.0, &schemas.1);
        let columns = JoinColumns::new(names, spec.kind, &spec.options)?;
        let bounds = bounds_of(&spec, (&left, &right), (&columns, names));
        let columns = columns.marked(bounds);
        bind_keys(names, &spec.on, spec.options.null_equals_null)?;
        let unit = match &spec.time {
            JoinTime::Any => TimeUnit::Nanosecond,
            _ => common_unit(unit_of(&left)?, unit_of(&right)?),
        };
        let schema = match &spec.time {
            JoinTime::Window(_) => {
                let time = DataType::Timestamp(unit, zone_of(&left)?);
                with_window(&columns.output, time)?
            }
            _ => Arc::clone(&columns.output),
        };
        let table = JoinTable {
            inputs: (left, right),
            schemas,
            spec,
            columns,
            schema,
            unit,
        };
        // Everything that can be wrong is found before a row is read.
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<()> {
        match &self.spec.time {
            JoinTime::Any => EqualJoin::check(&self.spec, &self.columns),
            JoinTime::Window(spec) => spec.check(&self.spec, (&self.columns, self.unit)),
            JoinTime::Interval(spec) => spec.check(&self.spec, (&self.columns, self.unit)),
            JoinTime::AsOf(spec) => spec.check(&self.spec, (&self.columns, self.unit)),
        }
    }

    /// Where the joined rows have their event time.
    pub fn event_time(&self) -> EventTime {
        let (left, right) = (self.inputs.0.output_time(), self.inputs.1.output_time());
        let by_right = self.spec.kind.goes_by_right();
        let mut time = if by_right { right } else { left };
        if by_right {
            time.expression.rename(&|name| self.columns.shown(name));
        }
        match &self.spec.time {
            // Pairs go by their left rows, and right rows without one come last: in any order.
            JoinTime::Any if self.spec.kind == JoinKind::Right => time.lateness = Duration::MAX,
            JoinTime::Any => {}
            JoinTime::Window(_) => {
                time.expression = col("window_start");
                time.lateness = Duration::ZERO;
            }
            JoinTime::Interval(_) | JoinTime::AsOf(_) => time.lateness = Duration::ZERO,
        }
        time
    }

    /// Starts both inputs, cut down to what the `wanted` columns need.
    fn start(
        &self,
        wanted: Option<&[String]>,
        options: &RunOptions,
    ) -> Result<((Running, Running), JoinColumns)> {
        let keys = |pick: fn(&(String, String)) -> &String| -> Vec<String> {
            self.spec.on.iter().map(|pair| pick(pair).clone()).collect()
        };
        let mut needed = (keys(|pair| &pair.0), keys(|pair| &pair.1));
        if !matches!(self.spec.time, JoinTime::Any) {
            needed.0.extend(self.inputs.0.time_columns());
            needed.1.extend(self.inputs.1.time_columns());
        }
        let needed = (needed.0.as_slice(), needed.1.as_slice());
        let residual = self.spec.options.residual.as_ref();
        let (left, right) = self.columns.inputs_of(wanted, needed, residual);
        let run = |stream: &Stream, schema: &SchemaRef, columns: Vec<String>| {
            let columns = (!columns.is_empty()).then_some(columns);
            let stream = narrowed(stream, schema, columns.as_deref());
            stream.inherit(options).run()
        };
        let left = run(&self.inputs.0, &self.schemas.0, left)?;
        let right = run(&self.inputs.1, &self.schemas.1, right)?;
        let columns = self.columns.over((&left.schema(), &right.schema()));
        Ok(((left, right), columns))
    }

    fn source(&self, wanted: Option<&[String]>, options: &RunOptions) -> Result<Box<dyn Source>> {
        let (running, columns) = self.start(wanted, options)?;
        let (spec, unit, limit) = (&self.spec, self.unit, options.memory_bytes_limit);
        let timed = |(left, right): (Running, Running)| -> Result<(TimedInput, TimedInput)> {
            Ok((
                TimedInput::new(left, &self.inputs.0, unit)?,
                TimedInput::new(right, &self.inputs.1, unit)?,
            ))
        };
        Ok(match &spec.time {
            JoinTime::Any => {
                let join = EqualJoin::new(running, (columns, wanted), spec, options)?;
                Box::new(join.timed_by(self.event_time().expression))
            }
            JoinTime::Window(window) => {
                let how = (window, unit, limit);
                let time = self.schema.field(0).data_type().clone();
                Box::new(WindowJoin::new(
                    timed(running)?,
                    (columns, time),
                    spec,
                    how,
                )?)
            }
            JoinTime::Interval(interval) => {
                let how = (interval, unit, limit);
                Box::new(IntervalJoin::new(timed(running)?, columns, spec, how)?)
            }
            JoinTime::AsOf(as_of) => {
                let how = (as_of, unit, limit);
                Box::new(AsOf::new(timed(running)?, columns, spec, how)?)
            }
        })
    }
}

impl Table for JoinTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn ends(&self) -> bool {
        self.inputs.0.ends() && self.inputs.1.ends()
    }

    fn may_reject(&self) -> bool {
        self.inputs.0.may_reject() || self.inputs.1.may_reject()
    }

    fn begins_again(&self) -> bool {
        self.inputs.0.begins_again() && self.inputs.1.begins_again()
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        Ok(Origin::Source(self.source(columns, options)?))
    }
}

/// What lossy columns of the inputs, which have `schemas`, do to the joined rows.
fn bounds_of(
    spec: &JoinSpec,
    inputs: (&Stream, &Stream),
    (columns, schemas): (&JoinColumns, (&Schema, &Schema)),
) -> ResultBounds {
    let keys = spec.on.iter();
    let keys = keys.flat_map(|(left, right)| [col(left.as_str()), col(columns.shown(right))]);
    let mut by: Vec<Expression> = keys.chain(spec.options.residual.clone()).collect();
    if !matches!(spec.time, JoinTime::Any) {
        let mut right = inputs.1.output_time().expression;
        right.rename(&|name| columns.shown(name));
        by.extend([inputs.0.output_time().expression, right]);
    }
    let is_nearest = matches!(spec.time, JoinTime::AsOf(_));
    let pairing = Pairing {
        by,
        optional: [
            spec.kind.keeps_right(),
            spec.kind.keeps_left() || is_nearest,
        ],
    };
    bounds_of_join(&columns.both, [schemas.0, schemas.1], &pairing)
}

/// What a join of inputs that stand so holds and has counted.
pub(super) fn state_of(inputs: (SourceState, SourceState), bytes: usize) -> SourceState {
    let mut state = inputs.0;
    state += inputs.1;
    state.bytes += bytes;
    state
}

/// Lines for explain: the join, then both inputs, indented.
pub(super) fn describe(join: String, inputs: (&Running, &Running)) -> Vec<String> {
    let inside = inputs.0.describe().into_iter().chain(inputs.1.describe());
    std::iter::once(join)
        .chain(inside.map(|line| format!("  {line}")))
        .collect()
}
