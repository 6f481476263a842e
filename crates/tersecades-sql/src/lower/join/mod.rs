//! Joins: by equal keys, with further conditions, and by time.

pub(super) mod key;
mod mark;
mod side;
mod timed;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{Field, Schema};
use datafusion_common::{JoinType, NullEquality};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, Join};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::aggregate::{call, count};
use tersecades_engine::expression::{Expression, col, lit};
use tersecades_engine::operator::join::as_of::AsOfSpec;
use tersecades_engine::operator::join::interval::IntervalSpec;
use tersecades_engine::operator::join::table::{JoinSpec, JoinTime};
use tersecades_engine::operator::join::window::WindowJoinSpec;
use tersecades_engine::operator::join::{JoinKind, JoinOptions};
use tersecades_engine::stream::Stream;

use super::Lowering;
use super::expression::Lowerer;
use super::rows::{Column, Reach, Rows};
use super::window::TimeWindow;
use crate::catalog::TableTime;
use crate::function::window::Edge;
use side::{Side, reads_no_edge};
use timed::Pairing;

/// Both inputs of a join.
pub(super) struct Inputs {
    pub(super) left: Rows,
    pub(super) right: Rows,
}

impl Lowering<'_> {
    /// Lowers a join.
    ///
    /// # Errors
    /// `Unsupported` for kinds that the engine does not have.
    pub(super) fn join(&self, join: &Join) -> Result<Rows> {
        if matches!(join.join_type, JoinType::LeftMark | JoinType::RightMark) {
            return self.mark_join(join);
        }
        joined(join, self.inputs(join)?)
    }

    /// Lowers both sides.
    ///
    /// # Errors
    /// What lowering them says.
    pub(super) fn inputs(&self, join: &Join) -> Result<Inputs> {
        Ok(Inputs {
            left: self.plan(&join.left)?,
            right: self.plan(&join.right)?,
        })
    }
}

/// Joins both sides, but for mark joins.
///
/// # Errors
/// `Unsupported` for kinds that the engine does not have.
pub(super) fn joined(join: &Join, mut inputs: Inputs) -> Result<Rows> {
    let mut on = join.on.clone();
    let filter = join.filter.clone();
    let mut terms = filter.map_or_else(Vec::new, split_conjunction_owned);
    let pairing = timed::pairing(join, &inputs, &mut on, &mut terms)?;
    let nulls_count = join.null_aware || join.null_equality == NullEquality::NullEqualsNull;
    on.iter_mut().for_each(|keys| key::exact(keys, join));
    if matches!(pairing, Pairing::Any) {
        on.iter_mut()
            .for_each(|keys| key::reach(keys, join, nulls_count));
    }
    // Rows that the join leaves out or fills with nulls tell their windows here or not at all.
    use JoinType::{Full, Left, LeftAnti, LeftSemi, Right, RightAnti, RightSemi};
    if matches!(join.join_type, Full | Left | LeftAnti | LeftSemi) {
        inputs.right = spread_but(inputs.right, &pairing, join.join_type)?.filled();
    }
    if matches!(join.join_type, Full | Right | RightAnti | RightSemi) {
        inputs.left = spread_but(inputs.left, &pairing, join.join_type)?.filled();
    }
    let mut taken = match pairing {
        Pairing::Window(_) => Edge::BOTH.map(|edge| edge.column().to_owned()).to_vec(),
        _ => Vec::new(),
    };
    let (left_time, right_time) = match &pairing {
        Pairing::AsOf { times, .. } | Pairing::Interval { times, .. } => {
            (Some(&times.0), Some(&times.1))
        }
        _ => (None, None),
    };
    let keys = on.iter().map(|(left, _)| left).chain(left_time);
    let left = Side::of(inputs.left, join.left.schema(), keys, &mut taken)?;
    let keys = on.iter().map(|(_, right)| right).chain(right_time);
    let right = Side::of(inputs.right, join.right.schema(), keys, &mut taken)?;
    let left = match join.null_aware {
        true => outside_list(join, left, &right)?,
        false => left,
    };
    match pairing {
        Pairing::Any => equal_join(join, left, right, terms),
        pairing => timed_join(join, (left, right), pairing, terms),
    }
}

/// The rows as they stand in their windows, but for the one by which they are paired.
fn spread_but(mut rows: Rows, pairing: &Pairing, join_type: JoinType) -> Result<Rows> {
    let of_pairing = |window: &TimeWindow| match pairing {
        Pairing::Window(paired) => window.window == paired.window,
        _ => false,
    };
    let pending = std::mem::take(&mut rows.pending);
    let (paired, others) = pending.into_iter().partition(of_pairing);
    rows.pending = others;
    let is_outer = matches!(join_type, JoinType::Full | JoinType::Left | JoinType::Right);
    let mut several = rows
        .pending
        .iter()
        .filter(|window| !window.holds_each_once());
    if let Some(window) = several.next().filter(|_| is_outer) {
        let name = window.kind.name().to_uppercase();
        let message = format!("{name} on the side of an outer join that it fills with nulls");
        return Err(Error::unsupported(message)
            .hint("group by the window in a subquery and join that, or write JOIN or TUMBLE"));
    }
    let rows = rows.spread()?;
    Ok(Rows {
        pending: paired,
        ..rows
    })
}

/// The columns that a join of this kind shows.
fn shown(join: &Join, left: &Side, right: &Side) -> Vec<Column> {
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => left.columns.clone(),
        JoinType::RightSemi | JoinType::RightAnti => right.columns.clone(),
        _ => left.columns.iter().chain(&right.columns).cloned().collect(),
    }
}

/// The declared event time that the rows of a join still have: that of the left ones, in whose
/// order they come.
fn time_of(join: &Join, left: &Side) -> Option<TableTime> {
    let by_left = matches!(
        join.join_type,
        JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti
    );
    left.time.clone().filter(|_| by_left)
}

fn equal_join(join: &Join, left: Side, right: Side, terms: Vec<Expr>) -> Result<Rows> {
    let (columns, time) = (shown(join, &left, &right), time_of(join, &left));
    let residual = match conjunction(terms) {
        Some(filter) => Some(residual(&filter, join, &left, &right)?),
        None => None,
    };
    let options = JoinOptions {
        residual,
        null_equals_null: join.null_equality == NullEquality::NullEqualsNull,
        ..JoinOptions::default()
    };
    let on = pairs(&left.keys, &right.keys);
    let kind = kind_of(join, on.is_empty())?;
    Ok(Rows {
        stream: left.stream.join(right.stream, kind, &on, options)?,
        columns,
        time,
        reach: Reach::Table,
        pending: [left.pending, right.pending].concat(),
    })
}

fn pairs<'n>(left: &'n [String], right: &'n [String]) -> Vec<(&'n str, &'n str)> {
    let both = left.iter().zip(right);
    both.map(|(left, right)| (left.as_str(), right.as_str()))
        .collect()
}

fn timed_join(
    join: &Join,
    (mut left, mut right): (Side, Side),
    pairing: Pairing,
    terms: Vec<Expr>,
) -> Result<Rows> {
    let inner = join.join_type == JoinType::Inner;
    if !terms.is_empty() && !inner && matches!(pairing, Pairing::AsOf { .. }) {
        return Err(further_conditions());
    }
    let kind = kind_of(join, false)?;
    let times = match &pairing {
        Pairing::Window(window) => windowed(&mut left, &mut right, window)?,
        _ => (left.keys.pop(), right.keys.pop()),
    };
    let by_window = matches!(pairing, Pairing::Window(_));
    let (Some(left_time), Some(right_time)) = times else {
        return Err(Error::internal("a join by time without times"));
    };
    let streams = (left.timed(&left_time)?, right.timed(&right_time)?);
    let mut pending = [left.pending.as_slice(), &right.pending].concat();
    if let Pairing::Window(window) = &pairing {
        pending.retain(|pending| pending.window != window.window);
    }
    let (time_of_pairs, reach) = time_of_pairs(pairing)?;
    let condition = match conjunction(terms) {
        Some(filter) => Some(residual(&filter, join, &left, &right)?),
        None => None,
    };
    // Of inner joins the condition is a step behind them, which may run on encoded values.
    let (behind, residual) = if inner {
        (condition, None)
    } else {
        (None, condition)
    };
    let both = left.keys.iter().cloned().zip(right.keys.iter().cloned());
    let spec = JoinSpec {
        kind,
        on: both.collect(),
        time: time_of_pairs,
        options: JoinOptions {
            residual,
            ..JoinOptions::default()
        },
    };
    let stream = streams.0.join_with(streams.1, spec)?;
    if by_window {
        let times = [left_time.as_str(), &right_time];
        edges_of_pairs(join, [&mut left, &mut right], times, &stream)?;
    }
    let columns = shown(join, &left, &right);
    let in_order = TableTime {
        column: left_time,
        ..TableTime::default()
    };
    let time = time_of(join, &left)
        .map(|_| in_order)
        .filter(|_| reach == Reach::Table);
    let stream = match behind {
        Some(condition) => stream.filter(condition),
        None => stream,
    };
    Ok(Rows {
        stream,
        columns,
        time,
        reach,
        pending,
    })
}

fn further_conditions() -> Error {
    Error::unsupported("further conditions on an outer join with the nearest row")
        .hint("join by equal keys and times alone, filter the tables before")
}

/// Makes the edges of windows null on a side that the join fills with nulls.
fn edges_of_pairs(
    join: &Join,
    [left, right]: [&mut Side; 2],
    times: [&str; 2],
    joined: &Stream,
) -> Result<()> {
    if matches!(join.join_type, JoinType::Left | JoinType::Full) {
        right.edges_of_pairs(times[1], joined)?;
    }
    if matches!(join.join_type, JoinType::Right | JoinType::Full) {
        left.edges_of_pairs(times[0], joined)?;
    }
    Ok(())
}

/// How the engine pairs rows by time, and what the rows of such a join are.
fn time_of_pairs(pairing: Pairing) -> Result<(JoinTime, Reach)> {
    Ok(match pairing {
        Pairing::AsOf { direction, .. } => {
            let tolerance = None;
            let nearest = AsOfSpec {
                direction,
                tolerance,
            };
            (JoinTime::AsOf(nearest), Reach::Table)
        }
        Pairing::Interval {
            bounds: (lower_ns, upper_ns),
            ..
        } => {
            let apart = IntervalSpec { lower_ns, upper_ns };
            (JoinTime::Interval(apart), Reach::Table)
        }
        Pairing::Window(window) => {
            let window = window.window;
            (JoinTime::Window(WindowJoinSpec { window }), Reach::Other)
        }
        Pairing::Any => return Err(Error::internal("a join by time without a time")),
    })
}

/// Makes columns of the window's edges on both sides; the names of their times.
fn windowed(
    left: &mut Side,
    right: &mut Side,
    window: &TimeWindow,
) -> Result<(Option<String>, Option<String>)> {
    let mut times = [left, right].map(|side| {
        let mut time = None;
        for column in &mut side.columns {
            if let Column::Edge(edge) = column
                && edge.window.window == window.window
            {
                time = edge
                    .window
                    .time
                    .columns()
                    .first()
                    .map(|name| (*name).to_owned());
                *column = Column::Value(edge.edge.value());
            }
        }
        time
    });
    Ok((times[0].take(), times[1].take()))
}

/// The left rows that `x NOT IN (SELECT y ...)` can be true for: none where some `y` is null, all
/// where there is no `y`, else those whose `x` is not null.
fn outside_list(join: &Join, left: Side, right: &Side) -> Result<Side> {
    let (None, [x], [y]) = (&join.filter, left.keys.as_slice(), right.keys.as_slice()) else {
        return Err(
            Error::unsupported("NOT IN with a subquery that reads the outer query")
                .hint("write NOT EXISTS"),
        );
    };
    let counts = [
        count().alias("rows"),
        call("count", col(y.as_str())).alias("filled"),
    ];
    let mut counted = [0, 0];
    for batch in right.stream.clone().aggregate(counts).run()? {
        let batch = batch?;
        for (number, column) in counted.iter_mut().zip(batch.columns()) {
            *number = column.as_primitive::<Int64Type>().value(0);
        }
    }
    let condition = match counted {
        [0, _] => return Ok(left),
        [rows, filled] if filled < rows => lit(0),
        _ => !col(x.as_str()).is_null(),
    };
    Ok(Side {
        stream: left.stream.filter(condition),
        ..left
    })
}

/// The condition besides equal keys, over the columns of both sides.
fn residual(filter: &Expr, join: &Join, left: &Side, right: &Side) -> Result<Expression> {
    let columns: Vec<Column> = left.columns.iter().chain(&right.columns).cloned().collect();
    let schema = join.left.schema().join(join.right.schema());
    let schema = schema.map_err(|error| crate::error::of_datafusion(&error))?;
    reads_no_edge(filter, &schema, &columns)?;
    let mut fields: Vec<Arc<Field>> = Vec::new();
    for side in [left, right] {
        fields.extend(side.stream.schema()?.fields().iter().cloned());
    }
    let stream = Arc::new(Schema::new(fields));
    Lowerer {
        schema: &schema,
        columns: &columns,
        stream,
    }
    .value(filter)
}

/// The engine's kind of a join.
fn kind_of(join: &Join, without_keys: bool) -> Result<JoinKind> {
    Ok(match join.join_type {
        JoinType::Inner if without_keys => JoinKind::Cross,
        JoinType::Inner => JoinKind::Inner,
        JoinType::Left => JoinKind::Left,
        JoinType::Right => JoinKind::Right,
        JoinType::Full => JoinKind::Full,
        JoinType::LeftSemi => JoinKind::LeftSemi,
        JoinType::RightSemi => JoinKind::RightSemi,
        JoinType::LeftAnti => JoinKind::LeftAnti,
        JoinType::RightAnti => JoinKind::RightAnti,
        JoinType::LeftMark | JoinType::RightMark => {
            return Err(Error::internal("a mark join is lowered by itself"));
        }
    })
}
