//! Joins by time: as-of, interval and window joins, as their conditions say.
//!
//! ```text
//! asof_join(a.ts >= b.ts)                            ─▶ asof_join, backward (before, if by >)
//! a.ts >= b.ts - i AND a.ts <= b.ts + j, watermarks  ─▶ interval_join from -j to i
//! a.window_start = b.window_start, one window        ─▶ window_join
//! ```

use arrow_schema::DataType;
use datafusion_common::{Column as PlanColumn, DFSchema, JoinType, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Join, Operator};
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::operator::join::as_of::Direction;

use super::Inputs;
use crate::function::join::AsOfMark;
use crate::function::window::Edge;
use crate::lower::rows::{Column, Rows};
use crate::lower::window::{TimeWindow, length};

/// How the rows of a join are paired besides equal keys.
pub(super) enum Pairing {
    /// Whenever they come.
    Any,
    /// With the nearest row in time.
    AsOf {
        direction: Direction,
        times: (Expr, Expr),
    },
    /// With rows whose times are so many nanoseconds apart.
    Interval {
        bounds: (i64, i64),
        times: (Expr, Expr),
    },
    /// In the same window.
    Window(TimeWindow),
}

/// Takes the terms out of `on` and `terms` that say how rows are paired in time.
///
/// # Errors
/// `Unsupported` for as-of conditions that are no inequality of times.
pub(super) fn pairing(
    join: &Join,
    inputs: &Inputs,
    on: &mut Vec<(Expr, Expr)>,
    terms: &mut Vec<Expr>,
) -> Result<Pairing> {
    if let Some(at) = terms
        .iter()
        .position(|term| as_of_condition(term).is_some())
    {
        let term = terms.remove(at);
        return as_of(as_of_condition(&term), join);
    }
    if let Some(window) = shared_window(join, inputs, on)? {
        return Ok(Pairing::Window(window));
    }
    Ok(interval(join, inputs, terms).unwrap_or(Pairing::Any))
}

fn as_of_condition(term: &Expr) -> Option<&BinaryExpr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = term else {
        return None;
    };
    func.inner().as_ref().downcast_ref::<AsOfMark>()?;
    match args.as_slice() {
        [Expr::BinaryExpr(condition)] => Some(condition),
        _ => None,
    }
}

fn as_of(condition: Option<&BinaryExpr>, join: &Join) -> Result<Pairing> {
    let wrong = |what: &str| {
        Err(Error::unsupported(format!("ASOF JOIN with {what}"))
            .hint("write a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts"))
    };
    let Some(BinaryExpr { left, op, right }) = condition else {
        return wrong("this condition");
    };
    let (left, op, right) = match (side_of(left, join), side_of(right, join)) {
        (Some(Which::Left), Some(Which::Right)) => (left, *op, right),
        (Some(Which::Right), Some(Which::Left)) => (right, op.swap().unwrap_or(*op), left),
        _ => return wrong("a time that is of neither side alone"),
    };
    let direction = match op {
        Operator::GtEq => Direction::Backward,
        Operator::LtEq => Direction::Forward,
        Operator::Gt => Direction::Before,
        Operator::Lt => Direction::After,
        _ => return wrong(&format!("`{op}` between the times")),
    };
    let times = (
        unwidened(left, join.left.schema()).clone(),
        unwidened(right, join.right.schema()).clone(),
    );
    Ok(Pairing::AsOf { direction, times })
}

/// `time` without casts to finer units, which both sides of a comparison get.
pub(super) fn unwidened<'e>(time: &'e Expr, schema: &DFSchema) -> &'e Expr {
    use DataType::{Date32, Timestamp};
    let Expr::Cast(cast) = time else {
        return time;
    };
    let Ok(from) = cast.expr.get_type(schema) else {
        return time;
    };
    match (&from, cast.field.data_type()) {
        (Timestamp(from, zone), Timestamp(to, into)) if from <= to && zone == into => {
            unwidened(&cast.expr, schema)
        }
        (Date32, Timestamp(_, None)) => unwidened(&cast.expr, schema),
        _ => time,
    }
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Left,
    Right,
}

/// The side that all columns of `expr` are of.
fn side_of(expr: &Expr, join: &Join) -> Option<Which> {
    let columns = expr.column_refs();
    let all = |plan: &datafusion_expr::LogicalPlan| {
        !columns.is_empty()
            && columns
                .iter()
                .all(|column| plan.schema().has_column(column))
    };
    match (all(&join.left), all(&join.right)) {
        (true, false) => Some(Which::Left),
        (false, true) => Some(Which::Right),
        _ => None,
    }
}

/// The window whose starts are equal on both sides; the terms that say so are taken out.
fn shared_window(
    join: &Join,
    inputs: &Inputs,
    on: &mut Vec<(Expr, Expr)>,
) -> Result<Option<TimeWindow>> {
    let edge = |expr: &Expr, rows: &Rows, plan: &datafusion_expr::LogicalPlan| {
        let Expr::Column(column) = unwidened(expr, plan.schema()) else {
            return None;
        };
        let index = plan.schema().index_of_column(column).ok()?;
        match rows.columns.get(index) {
            Some(Column::Edge(edge)) => Some(edge.clone()),
            _ => None,
        }
    };
    let mut found: Option<TimeWindow> = None;
    let mut edges = Vec::new();
    let mut others = Vec::new();
    for (left, right) in on.drain(..) {
        let pair = (
            edge(&left, &inputs.left, &join.left),
            edge(&right, &inputs.right, &join.right),
        );
        match pair {
            (Some(a), Some(b))
                if (a.window.filled || b.window.filled) && join.join_type != JoinType::Inner =>
            {
                return Err(Error::unsupported(
                    "an outer join by a window that an outer join may leave null",
                )
                .hint("join the tables of the windows first, or group in a subquery"));
            }
            (Some(a), Some(b)) if a.edge == b.edge && a.window.window == b.window.window => {
                edges.push(a.edge);
                found = Some(a.window);
            }
            (None, None) => others.push((left, right)),
            (Some(a), _) | (_, Some(a)) => return Err(a.in_condition()),
        }
    }
    *on = others;
    let needs_end = |window: &TimeWindow| window.ends_differ();
    match found {
        Some(window) if !edges.contains(&Edge::Start) || needs_end(&window) && edges.len() < 2 => {
            Err(Error::unsupported("a join by one edge of such windows")
                .hint("join ON a.window_start = b.window_start AND a.window_end = b.window_end"))
        }
        found => Ok(found),
    }
}

/// A time: a column of one side, and what is added to it.
struct Point {
    which: Which,
    column: PlanColumn,
    plus_ns: i64,
}

fn point(expr: &Expr, join: &Join) -> Option<Point> {
    match expr {
        Expr::Column(column) => Some(Point {
            which: side_of(expr, join)?,
            column: column.clone(),
            plus_ns: 0,
        }),
        Expr::Cast(_) => {
            let schema = match side_of(expr, join)? {
                Which::Left => join.left.schema(),
                Which::Right => join.right.schema(),
            };
            match unwidened(expr, schema) {
                Expr::Cast(_) => None,
                bare => point(bare, join),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (time, interval) = match (left.as_ref(), op) {
                (Expr::Literal(..), Operator::Plus) => (right, left),
                _ => (left, right),
            };
            let Expr::Literal(value, _) = interval.as_ref() else {
                return None;
            };
            let interval = Expr::Literal(interval_of(value)?, None);
            let ns = i64::try_from(length(&interval, "a join").ok()?.as_nanos()).ok()?;
            let mut point = point(time, join)?;
            point.plus_ns += match op {
                Operator::Plus => ns,
                Operator::Minus => -ns,
                _ => return None,
            };
            Some(point)
        }
        _ => None,
    }
}

fn interval_of(value: &ScalarValue) -> Option<ScalarValue> {
    let is_interval = matches!(value.data_type(), arrow_schema::DataType::Interval(_));
    is_interval.then(|| value.clone())
}

/// The interval join that `terms` ask for, where both tables have a watermark on these times; the
/// terms that say so are taken out.
fn interval(join: &Join, inputs: &Inputs, terms: &mut Vec<Expr>) -> Option<Pairing> {
    let declared = |rows: &Rows| rows.time.as_ref().map(|time| time.column.clone());
    let (left, right) = (declared(&inputs.left)?, declared(&inputs.right)?);
    let (mut lower, mut upper) = (None, None);
    let mut times = None;
    let mut used = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let Some(bound) = bound(term, join) else {
            continue;
        };
        let names = (bound.left.name.clone(), bound.right.name.clone());
        if !is_column(&inputs.left, join.left.schema(), &bound.left, &left)
            || !is_column(&inputs.right, join.right.schema(), &bound.right, &right)
            || times.as_ref().is_some_and(|(known, _, _)| *known != names)
        {
            continue;
        }
        let known = if bound.is_upper {
            &mut upper
        } else {
            &mut lower
        };
        if known.is_some() {
            continue;
        }
        *known = Some(bound.ns);
        used.push(index);
        times = Some((names, Expr::Column(bound.left), Expr::Column(bound.right)));
    }
    let (lower, upper, (_, left, right)) = (lower?, upper?, times?);
    let finest = tick_ns(&left, join).min(tick_ns(&right, join));
    if finest == 0 {
        return None;
    }
    let bounds = (
        lower.div_euclid(finest) * finest
            + if lower.rem_euclid(finest) > 0 {
                finest
            } else {
                0
            },
        upper.div_euclid(finest) * finest,
    );
    if bounds.0 > bounds.1 {
        return None;
    }
    used.into_iter()
        .rev()
        .for_each(|index| drop(terms.remove(index)));
    let times = (left, right);
    Some(Pairing::Interval { bounds, times })
}

/// Whether `column` of a plan is the column `name` of its rows' table.
fn is_column(
    rows: &Rows,
    schema: &datafusion_common::DFSchema,
    column: &PlanColumn,
    name: &str,
) -> bool {
    let index = schema.index_of_column(column);
    index.is_ok_and(|index| {
        let value = rows.value(index);
        value.is_ok_and(|value| *value == tersecades_engine::expression::col(name))
    })
}

/// Nanoseconds of a tick of a time; 0 for what is no timestamp.
fn tick_ns(time: &Expr, join: &Join) -> i64 {
    use arrow_schema::{DataType, TimeUnit};
    let schema = join.left.schema().join(join.right.schema());
    match schema.and_then(|schema| time.get_type(&schema)) {
        Ok(DataType::Timestamp(TimeUnit::Second, _)) => 1_000_000_000,
        Ok(DataType::Timestamp(TimeUnit::Millisecond, _)) => 1_000_000,
        Ok(DataType::Timestamp(TimeUnit::Microsecond, _)) => 1_000,
        Ok(DataType::Timestamp(TimeUnit::Nanosecond, _)) => 1,
        _ => 0,
    }
}

/// A bound of `time of the right row - time of the left row`.
struct Bound {
    left: PlanColumn,
    right: PlanColumn,
    is_upper: bool,
    ns: i64,
}

fn bound(term: &Expr, join: &Join) -> Option<Bound> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = term else {
        return None;
    };
    let (a, b) = (point(left, join)?, point(right, join)?);
    let (left, op, right) = match (a.which, b.which) {
        (Which::Left, Which::Right) => (a, *op, b),
        (Which::Right, Which::Left) => (b, op.swap()?, a),
        _ => return None,
    };
    // left + p >= right + q  ⇔  right - left <= p - q
    let apart = left.plus_ns.checked_sub(right.plus_ns)?;
    let (is_upper, ns) = match op {
        Operator::GtEq => (true, apart),
        Operator::Gt => (true, apart.checked_sub(1)?),
        Operator::LtEq => (false, apart),
        Operator::Lt => (false, apart.checked_add(1)?),
        _ => return None,
    };
    Some(Bound {
        left: left.column,
        right: right.column,
        is_upper,
        ns,
    })
}
