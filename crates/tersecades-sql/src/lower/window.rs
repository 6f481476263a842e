//! Windows: from the functions that stand for their edges to windows of the engine.

use std::time::Duration;

use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::Expression;
use tersecades_engine::window::{Window, calendar, count, cumulate, hop, session, tumble};

use super::expression::{Lowerer, constant_number};
use super::rows::Column;
use crate::error::of_datafusion;
use crate::function::window::{Edge, IN_WINDOW, Kind, WindowEdge};

/// An edge of the window of a row, before any group-by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EdgeColumn {
    /// Which edge.
    pub(crate) edge: Edge,
    /// The window.
    pub(crate) window: TimeWindow,
}

/// A window over a time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeWindow {
    /// How it was written.
    pub(crate) kind: Kind,
    /// The time, over the columns of the stream.
    pub(crate) time: Expression,
    /// The window of the engine.
    pub(crate) window: Window,
    /// Whether rows without a time are rows of an outer join without a pair, whose window is null.
    pub(crate) filled: bool,
}

impl EdgeColumn {
    /// The edge that `expr` is, if it is one.
    ///
    /// # Errors
    /// `InvalidArgument` when its intervals are no constant lengths of time.
    pub(crate) fn of(expr: &Expr, lowerer: &Lowerer<'_>) -> Result<Option<Self>> {
        let call = match expr {
            Expr::Alias(alias) => return EdgeColumn::of(&alias.expr, lowerer),
            Expr::ScalarFunction(call) => call,
            _ => return Ok(None),
        };
        let Some(function) = call.func.inner().as_ref().downcast_ref::<WindowEdge>() else {
            return Ok(None);
        };
        let Some((time, parameters)) = call.args.split_first() else {
            return Err(outside(function.kind));
        };
        let kind = function.kind;
        let window = TimeWindow {
            kind,
            time: lowerer.value(time)?,
            window: window_of(kind, parameters)?,
            filled: false,
        };
        Ok(Some(EdgeColumn {
            edge: function.edge,
            window,
        }))
    }

    /// The error of an edge that the condition of a join reads, where rows may be in several
    /// windows.
    pub(crate) fn in_condition(&self) -> Error {
        let (name, edge) = (self.window.kind.name().to_uppercase(), self.edge.column());
        let message = format!("{name} whose `{edge}` the condition of a join reads");
        Error::unsupported(message).hint(
            "group by the window in a subquery and join that, or join tables of one window by \
             both its edges: a.window_start = b.window_start AND a.window_end = b.window_end",
        )
    }

    /// The error of an edge that no group-by reads.
    pub(crate) fn outside(&self) -> Error {
        outside(self.window.kind)
    }
}

/// Whether `term` is the condition that stands on a window table.
pub(crate) fn is_window_mark(term: &Expr) -> bool {
    matches!(term, Expr::ScalarFunction(call) if call.func.name() == IN_WINDOW)
}

/// The window of the table that the condition `mark` stands on.
///
/// # Errors
/// What looking up its columns says.
pub(crate) fn marked_window(mark: &Expr, lowerer: &Lowerer<'_>) -> Result<TimeWindow> {
    let columns = mark.column_refs();
    let mut window = None;
    for column in columns {
        let index = lowerer.schema.index_of_column(column);
        let index = index.map_err(|error| of_datafusion(&error))?;
        if let Some(Column::Edge(edge)) = lowerer.columns.get(index) {
            window = Some(edge.window.clone());
        }
    }
    window.ok_or_else(|| {
        Error::invalid(format!("`{IN_WINDOW}` is no function of columns"))
            .hint(format!("write FROM {}", Kind::Tumble.usage()))
    })
}

/// The error of a window outside of a group-by.
pub(crate) fn outside(kind: Kind) -> Error {
    let name = kind.name().to_uppercase();
    Error::unsupported(format!(
        "{name} without a GROUP BY of its window is not supported"
    ))
    .hint("add GROUP BY window_start, window_end and aggregates")
}

impl TimeWindow {
    /// Whether they come out in the order of their starts, which no two share.
    pub(crate) fn starts_ascend(&self) -> bool {
        matches!(self.kind, Kind::Tumble | Kind::Hop | Kind::Calendar)
    }

    /// Whether each row with a time is in one of them, whatever other rows there are.
    pub(crate) fn holds_each_once(&self) -> bool {
        matches!(self.kind, Kind::Tumble | Kind::Calendar)
    }

    /// Whether windows with one start have several ends.
    pub(crate) fn ends_differ(&self) -> bool {
        self.kind == Kind::Cumulate
    }
}

/// The window of the engine.
fn window_of(kind: Kind, parameters: &[Expr]) -> Result<Window> {
    let length = |value: &Expr| length(value, kind.usage());
    Ok(match (kind, parameters) {
        (Kind::Tumble, [size]) => tumble(length(size)?),
        (Kind::Tumble, [size, offset]) => {
            let size = length(size)?;
            tumble(size).offset(shift(offset, size, kind.usage())?)
        }
        (Kind::Hop, [slide, size]) => hop(length(size)?, length(slide)?),
        (Kind::Hop, [slide, size, offset]) => {
            let slide = length(slide)?;
            hop(length(size)?, slide).offset(shift(offset, slide, kind.usage())?)
        }
        (Kind::Cumulate, [step, size]) => cumulate(length(size)?, length(step)?),
        (Kind::Session, [gap]) => session(length(gap)?),
        (Kind::Count, [rows]) => count(whole_number(rows, kind)?),
        (Kind::Calendar, [unit, zone]) => calendar(text(unit, kind)?.parse()?, text(zone, kind)?)?,
        (Kind::Calendar, [unit, zone, offset]) => {
            calendar(text(unit, kind)?.parse()?, text(zone, kind)?)?.offset(length(offset)?)
        }
        (kind, _) => return Err(misused(kind)),
    })
}

fn misused(kind: Kind) -> Error {
    let name = kind.name().to_uppercase();
    Error::invalid(format!("wrong arguments of {name}")).hint(format!("write {}", kind.usage()))
}

fn whole_number(value: &Expr, kind: Kind) -> Result<u64> {
    let number = constant_number(value).filter(|number| number.fract() == 0.0 && *number >= 1.0);
    number.map(|number| number as u64).ok_or_else(|| {
        let name = kind.name().to_uppercase();
        let message = format!("{name} takes a whole number of rows, 1 or more");
        Error::invalid(message).hint(format!("write {}", kind.usage()))
    })
}

fn text(value: &Expr, kind: Kind) -> Result<&str> {
    match value {
        Expr::Literal(value, _) => value.try_as_str().flatten().ok_or_else(|| misused(kind)),
        Expr::Alias(alias) => text(&alias.expr, kind),
        _ => Err(misused(kind)),
    }
}

/// A constant length of time, as part of something written `usage`.
///
/// # Errors
/// `InvalidArgument` for anything else; `Unsupported` for months.
pub(crate) fn length(interval: &Expr, usage: &str) -> Result<Duration> {
    let nanos = u64::try_from(nanos(interval, usage)?);
    let nanos = nanos.map_err(|_| no_length("an interval is negative or too long", usage))?;
    Ok(Duration::from_nanos(nanos))
}

/// How far windows that come every `period` are shifted; to the left is the rest to the right.
fn shift(interval: &Expr, period: Duration, usage: &str) -> Result<Duration> {
    let back = nanos(interval, usage)?;
    let period = period.as_nanos().cast_signed();
    if back >= 0 || period == 0 {
        return length(interval, usage);
    }
    let nanos = u64::try_from(back.rem_euclid(period));
    let nanos = nanos.map_err(|_| no_length("an interval is too long", usage))?;
    Ok(Duration::from_nanos(nanos))
}

fn no_length(what: &str, usage: &str) -> Error {
    Error::invalid(format!("{what} in {usage}"))
        .hint("write lengths of time as INTERVAL '10' SECOND")
}

fn nanos(interval: &Expr, usage: &str) -> Result<i128> {
    let wrong = |what: &str| no_length(what, usage);
    let value = match interval {
        Expr::Literal(value, _) => value,
        Expr::Alias(alias) => return nanos(&alias.expr, usage),
        _ => return Err(wrong("an interval is no constant")),
    };
    Ok(match value {
        ScalarValue::IntervalMonthDayNano(Some(value)) if value.months == 0 => {
            i128::from(value.days) * 86_400_000_000_000 + i128::from(value.nanoseconds)
        }
        ScalarValue::IntervalDayTime(Some(value)) => {
            i128::from(value.days) * 86_400_000_000_000 + i128::from(value.milliseconds) * 1_000_000
        }
        ScalarValue::IntervalMonthDayNano(_) | ScalarValue::IntervalYearMonth(_) => {
            return Err(
                Error::unsupported("months differ in length, windows do not")
                    .hint("give days: INTERVAL '30' DAY"),
            );
        }
        _ => return Err(wrong("an argument is no interval")),
    })
}
