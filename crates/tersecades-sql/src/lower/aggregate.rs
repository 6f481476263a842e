//! Group-by: window, keys and aggregates in the engine's terms.

use std::time::Duration;

use datafusion_common::DFSchema;
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Aggregate, Expr};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::aggregate::string_agg::StringAgg;
use tersecades_engine::expression::{Expression, col};
use tersecades_engine::plan::AggregateCall;
use tersecades_engine::stream::Stream;
use tersecades_engine::window::{Emit, Updates, Window, global};

use super::Lowering;
use super::expression::{Lowerer, constant_number, is_constant};
use super::grouping::null;
use super::over::order_of;
use super::rows::{Column, Reach, Rows, free_name};
use super::window::{EdgeColumn, TimeWindow};
use crate::drawn::check_reads;
use crate::error::of_datafusion;
use crate::function::aggregate::{Shape, SqlAggregate};
use crate::function::string_agg::SqlStringAgg;
use crate::function::window::{Edge, Kind};
use crate::parse::window::two_windows;

/// How late rows may be where no event time is declared: any row of a bounded input counts.
pub(super) const ANY_LATENESS: Duration = Duration::MAX;

/// A group-by with its parts told apart.
#[derive(Default)]
struct Parts {
    window: Option<TimeWindow>,
    /// What each field of the result is.
    results: Vec<Part>,
    keys: Vec<(String, Expression)>,
    calls: Vec<AggregateCall>,
}

enum Part {
    Edge(Edge),
    Key(String),
    Call(String),
}

impl Lowering<'_> {
    /// Lowers a group-by.
    ///
    /// # Errors
    /// `Unsupported` for what neither the engine nor a scalar expression computes.
    pub(super) fn aggregate(&self, plan: &Aggregate) -> Result<Rows> {
        if let [Expr::GroupingSet(sets)] = plan.group_expr.as_slice() {
            return self.grouping_sets(plan, sets);
        }
        let updates = self.updates.take().unwrap_or_default();
        let mut rows = self.plan(&plan.input)?;
        let parts = Parts::of(plan, &rows)?;
        parts.check_edges()?;
        rows.pending
            .retain(|pending| parts.window.as_ref() != Some(pending));
        let (rows, keys) = project_keys(rows.spread()?, &parts)?;
        let reach = match &parts.window {
            Some(window) => Reach::Windows {
                in_order: window.starts_ascend(),
            },
            None => Reach::Other,
        };
        let stream = match &parts.window {
            Some(window) if window.filled => {
                check_reads(&plan.input, "a window that an outer join may leave null")?;
                filled_groups(rows, keys, &parts, updates)?
            }
            Some(window) => {
                let stream = timed(rows, window)?;
                let window = Window {
                    updates,
                    ..window.window
                };
                let groups = stream.window(window).group_by(keys);
                groups.aggregate(parts.calls)
            }
            None => {
                let window = Window {
                    updates,
                    ..global()
                };
                check_time(&rows.stream, updates)?;
                let groups = rows.stream.window(window).group_by(keys);
                groups.aggregate(parts.calls)
            }
        };
        let columns = parts.results.into_iter().map(|part| {
            Column::Value(match part {
                Part::Edge(edge) => col(edge.column()),
                Part::Key(name) | Part::Call(name) => col(name),
            })
        });
        Ok(Rows {
            stream,
            columns: columns.collect(),
            time: None,
            reach,
            pending: Vec::new(),
        })
    }
}

/// The groups by a window of a side that an outer join fills with nulls, and behind them those of
/// the rows without a pair, whose window is null.
fn filled_groups(rows: Rows, keys: Vec<String>, parts: &Parts, updates: Updates) -> Result<Stream> {
    let Some(window) = parts.window.as_ref().filter(|_| !updates.are_possible()) else {
        return Err(Error::unsupported(
            "windows that an outer join may leave null cannot come more than once",
        )
        .hint("write JOIN, or group by the window of the other table"));
    };
    if !rows.stream.begins_again() {
        return Err(Error::unsupported(
            "the join runs twice to group by a window that it may leave null, and some of its rows \
             can be read once only",
        )
        .hint("read them from a file, or write JOIN"));
    }
    let alone = rows.stream.clone().filter(window.time.clone().is_null());
    // Rows without a pair lack no event time: they are in the group of null.
    let paired = rows.stream.filter(!window.time.clone().is_null());
    let stream = paired.as_source()?;
    let paired = timed(Rows { stream, ..rows }, window)?;
    let groups = paired.window(window.window).group_by(keys.clone());
    let windows = groups.aggregate(parts.calls.clone());
    let (schema, read) = (windows.schema()?, alone.schema()?);
    let mut nulls = Vec::with_capacity(Edge::BOTH.len());
    for edge in Edge::BOTH {
        let kind = schema.field_with_name(edge.column())?.data_type();
        let name = free_name(edge.column(), |name| read.field_with_name(name).is_ok());
        nulls.push((name, null(kind.clone())?));
    }
    let names: Vec<String> = nulls.iter().map(|(name, _)| name.clone()).collect();
    let kept = read.fields().iter().map(|field| field.name().as_str());
    let kept = kept.map(|name| (name.to_owned(), col(name)));
    let alone = alone
        .project(nulls.into_iter().chain(kept))
        .window(global());
    let groups = alone.group_by(names.iter().cloned().chain(keys));
    let alone = groups.aggregate(parts.calls.clone());
    let renamed = schema.fields().iter().enumerate().map(|(at, field)| {
        let name = names.get(at).unwrap_or(field.name());
        (field.name().clone(), col(name.as_str()))
    });
    Stream::union([windows, alone.project(renamed)])
}

/// Refuses results by event time for rows that have none.
fn check_time(stream: &Stream, updates: Updates) -> Result<()> {
    let by_time = matches!(updates.emit, Emit::Every(_));
    match by_time && stream.output_time().is_absent(&*stream.schema()?) {
        true => Err(
            Error::invalid("EMIT EVERY goes by event time, which the rows do not have").hint(
                "say which column it is: CREATE STREAM s AS SELECT * FROM t WATERMARK FOR ts; or \
                 EMIT UPDATE",
            ),
        ),
        false => Ok(()),
    }
}

impl Parts {
    fn of(plan: &Aggregate, rows: &Rows) -> Result<Self> {
        let schema: &DFSchema = plan.input.schema();
        let lowerer = rows.lowerer(schema)?;
        let mut parts = Parts::default();
        let keys = distinct_keys(&plan.group_expr)?;
        for (index, key) in keys.iter().enumerate() {
            let name = plan.schema.field(index).name();
            parts.add_key(key, name, &lowerer)?;
        }
        for (index, call) in plan.aggr_expr.iter().enumerate() {
            let name = plan.schema.field(keys.len() + index).name();
            let name = free_name(name, |name| parts.is_taken(name));
            let call = aggregate_call(call, &lowerer)?.alias(name.as_str());
            parts.calls.push(call);
            parts.results.push(Part::Call(name));
        }
        Ok(parts)
    }

    /// Refuses windows of which several have the edges that are keys.
    fn check_edges(&self) -> Result<()> {
        let Some(window) = &self.window else {
            return Ok(());
        };
        let reads = |edge: Edge| {
            let mut results = self.results.iter();
            results.any(|part| matches!(part, Part::Edge(known) if *known == edge))
        };
        let tells_apart = match window.kind {
            Kind::Cumulate => reads(Edge::End),
            Kind::Count => reads(Edge::Start) && reads(Edge::End),
            _ => true,
        };
        match tells_apart {
            true => Ok(()),
            false => {
                let name = window.kind.name().to_uppercase();
                let message = format!("windows of {name} are not told apart by one edge");
                Err(Error::unsupported(message).hint("GROUP BY window_start, window_end"))
            }
        }
    }

    fn is_taken(&self, name: &str) -> bool {
        let windowed = self.window.is_some() && matches!(name, "window_start" | "window_end");
        windowed
            || self.keys.iter().any(|(key, _)| key == name)
            || self.calls.iter().any(|call| call.output == name)
    }

    fn add_key(&mut self, key: &Expr, name: &str, lowerer: &Lowerer<'_>) -> Result<()> {
        if let Some(edge) = edge_of(key, lowerer)? {
            match &self.window {
                Some(known) if *known != edge.window => {
                    return Err(two_windows());
                }
                _ => self.window = Some(edge.window),
            }
            self.results.push(Part::Edge(edge.edge));
            return Ok(());
        }
        let value = lowerer.typed_value(key)?;
        let known = self.keys.iter().find(|(_, known)| *known == value);
        let name = match (known, &value) {
            (Some((name, _)), _) => name.clone(),
            (None, Expression::Column(column)) if !self.is_taken(column) => column.clone(),
            (None, _) => {
                let read = |name: &str| lowerer.stream.field_with_name(name).is_ok();
                let edge = |name: &str| matches!(name, "window_start" | "window_end");
                free_name(name, |name| self.is_taken(name) || read(name) || edge(name))
            }
        };
        if known.is_none() {
            self.keys.push((name.clone(), value));
        }
        self.results.push(Part::Key(name));
        Ok(())
    }
}

/// The keys that the plan has a field for: one that stands twice has one.
pub(super) fn distinct_keys(keys: &[Expr]) -> Result<Vec<&Expr>> {
    grouping_set_to_exprlist(keys).map_err(|error| of_datafusion(&error))
}

fn edge_of(key: &Expr, lowerer: &Lowerer<'_>) -> Result<Option<EdgeColumn>> {
    match key {
        Expr::Alias(alias) => edge_of(&alias.expr, lowerer),
        Expr::Column(column) => {
            let index = lowerer.schema.index_of_column(column);
            let index = index.map_err(|error| of_datafusion(&error))?;
            Ok(match lowerer.columns.get(index) {
                Some(Column::Edge(edge)) => Some(edge.clone()),
                _ => None,
            })
        }
        other => EdgeColumn::of(other, lowerer),
    }
}

/// The stream with every key as a column, and the names of the keys.
fn project_keys(rows: Rows, parts: &Parts) -> Result<(Rows, Vec<String>)> {
    let names: Vec<String> = parts.keys.iter().map(|(name, _)| name.clone()).collect();
    let is_bare = |(name, value): &(String, Expression)| *value == col(name.as_str());
    if parts.keys.iter().all(is_bare) {
        return Ok((rows, names));
    }
    let mut columns = parts.keys.clone();
    let mut read: Vec<&str> = Vec::new();
    for call in &parts.calls {
        call.expressions()
            .for_each(|expression| read.extend(expression.columns()));
    }
    if let Some(window) = &parts.window
        && rows.reach != Reach::Table
    {
        read.extend(window.time.columns());
    }
    for name in read {
        if !columns.iter().any(|(known, _)| known == name) {
            columns.push((name.to_owned(), col(name)));
        }
    }
    let stream = rows.stream.project(columns);
    Ok((Rows { stream, ..rows }, names))
}

/// The stream with the event time that `window` is over.
fn timed(rows: Rows, window: &TimeWindow) -> Result<Stream> {
    match rows.reach {
        Reach::Table => {
            let declared = rows
                .time
                .filter(|time| window.time == col(time.column.as_str()));
            let lateness = declared.map_or(ANY_LATENESS, |time| time.lateness);
            Ok(rows.stream.event_time(window.time.clone(), lateness))
        }
        Reach::Windows { .. } if window.time == col("window_start") => Ok(rows.stream),
        Reach::Windows { .. } | Reach::Other => {
            let stream = rows.stream.as_source()?;
            Ok(stream.event_time(window.time.clone(), ANY_LATENESS))
        }
    }
}

/// The engine's call of an aggregate.
fn aggregate_call(expr: &Expr, lowerer: &Lowerer<'_>) -> Result<AggregateCall> {
    let call = match expr {
        Expr::Alias(alias) => return aggregate_call(&alias.expr, lowerer),
        Expr::AggregateFunction(call) => call,
        other => return Err(Error::unsupported(format!("`{other}` is no aggregate"))),
    };
    if let Some(known) = call.func.inner().as_ref().downcast_ref::<SqlStringAgg>() {
        return string_agg(call, known, lowerer);
    }
    let Some(known) = call.func.inner().as_ref().downcast_ref::<SqlAggregate>() else {
        let message = format!("the aggregate {} is not supported", call.func.name());
        return Err(Error::unsupported(message));
    };
    let mut lowered = AggregateCall {
        function: known
            .function_of(call.params.distinct)
            .map_err(|error| of_datafusion(&error))?
            .to_owned(),
        ..AggregateCall::default()
    };
    arguments(call, known, lowerer, &mut lowered)?;
    if let Some(filter) = &call.params.filter {
        lowered.filter = Some(lowerer.value(filter)?);
    }
    Ok(lowered)
}

fn string_agg(
    call: &AggregateFunction,
    known: &SqlStringAgg,
    lowerer: &Lowerer<'_>,
) -> Result<AggregateCall> {
    let params = &call.params;
    let Some(text) = params.args.first() else {
        return Err(Error::invalid("string_agg needs an argument"));
    };
    let separator = known.separator(&params.args);
    let separator = separator.map_err(|error| of_datafusion(&error))?;
    let order = order_of(&params.order_by, lowerer, |value| value)?;
    let joined = StringAgg::new(separator).order_by(order);
    let joined = match params.distinct {
        true => joined.distinct(),
        false => joined,
    };
    let lowered = joined.of(lowerer.typed_value(text)?);
    Ok(match &params.filter {
        Some(filter) => lowered.filter(lowerer.value(filter)?),
        None => lowered,
    })
}

fn arguments(
    call: &AggregateFunction,
    known: &SqlAggregate,
    lowerer: &Lowerer<'_>,
    lowered: &mut AggregateCall,
) -> Result<()> {
    let (Some(first), second) = (call.params.args.first(), call.params.args.get(1)) else {
        return Err(Error::invalid(format!("{} needs an argument", known.name)));
    };
    if known.function == "count" && !call.params.distinct && is_constant(first) {
        return Ok(());
    }
    lowered.argument = Some(lowerer.typed_value(first)?);
    match (known.shape, second) {
        (Shape::Parameter, Some(second)) => {
            let number = constant_number(second);
            let number = number.ok_or_else(|| {
                Error::invalid(format!(
                    "the second argument of {} must be a number",
                    known.name
                ))
            })?;
            let descending = call.params.order_by.first().is_some_and(|sort| !sort.asc);
            // A zero of either sign is the same share.
            let number = number + 0.0;
            lowered.parameter = Some(match (descending, known.function) {
                (false, _) => number,
                (true, "quantile_disc") => -number,
                (true, _) => 1.0 - number,
            });
        }
        (Shape::By | Shape::Pair, Some(second)) => lowered.by = Some(lowerer.typed_value(second)?),
        _ => {}
    }
    if !known.within_group && !call.params.order_by.is_empty() {
        ordered(call, known, lowerer, lowered)?;
    }
    Ok(())
}

/// `first(x ORDER BY t)` is `arg_min(x, t)`; others do not mind the order, or have none.
fn ordered(
    call: &AggregateFunction,
    known: &SqlAggregate,
    lowerer: &Lowerer<'_>,
    lowered: &mut AggregateCall,
) -> Result<()> {
    let forward = match (known.function, known.shape) {
        ("first", _) => true,
        ("last", _) => false,
        ("any_value" | "mode", _) | (_, Shape::By | Shape::Parameter) => {
            return Err(unordered(known));
        }
        _ => return Ok(()),
    };
    let [sort] = call.params.order_by.as_slice() else {
        return Err(Error::unsupported(format!(
            "{} in the order of two columns",
            known.name
        )));
    };
    if sort.asc && sort.nulls_first {
        let message = format!("{} in an order with NULLS FIRST", known.name);
        return Err(Error::unsupported(message)
            .hint("rows without a value of the order are left out; write it without NULLS FIRST"));
    }
    lowered.function = match (forward, sort.asc) {
        (true, true) => "arg_min",
        (true, false) => "arg_max",
        (false, true) => "arg_max_last",
        (false, false) => "arg_min_last",
    }
    .to_owned();
    lowered.by = Some(lowerer.typed_value(&sort.expr)?);
    Ok(())
}

/// The error of an order within an aggregate that does not go by it.
fn unordered(known: &SqlAggregate) -> Error {
    let error = Error::unsupported(format!("{} in an order", known.name));
    error.hint(match (known.function, known.shape) {
        ("any_value", _) => "write first(x ORDER BY t) FILTER (WHERE x IS NOT NULL)",
        ("mode", _) => "leave it out: of equally frequent values the least counts",
        (_, Shape::By) => "leave it out: of several rows the first or last to arrive counts",
        _ => "write percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)",
    })
}
