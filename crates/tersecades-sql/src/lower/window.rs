//! Windows: from the functions that stand for their edges to windows of the engine.

use std::time::Duration;

use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::expression::Expression;
use tersecades_engine::window::{Window, cumulate, hop, session, tumble};

use super::expression::Lowerer;
use crate::function::window::{Edge, Kind, WindowEdge};

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
    kind: Kind,
    /// The time, over the columns of the stream.
    pub(crate) time: Expression,
    intervals: Vec<Duration>,
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
        let Some((time, intervals)) = call.args.split_first() else {
            return Err(outside(function.kind));
        };
        let intervals: Result<Vec<Duration>> = intervals
            .iter()
            .map(|interval| length(interval, function.kind.usage()))
            .collect();
        Ok(Some(EdgeColumn {
            edge: function.edge,
            window: TimeWindow {
                kind: function.kind,
                time: lowerer.value(time)?,
                intervals: intervals?,
            },
        }))
    }

    /// The error of an edge that no group-by reads.
    pub(crate) fn outside(&self) -> Error {
        outside(self.window.kind)
    }
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
    /// The window of the engine.
    ///
    /// # Errors
    /// `Unsupported` for kinds that the engine does not have.
    pub(crate) fn to_window(&self) -> Result<Window> {
        match (self.kind, self.intervals.as_slice()) {
            (Kind::Tumble, [size]) => Ok(tumble(*size)),
            (Kind::Tumble, [size, offset]) => Ok(tumble(*size).offset(*offset)),
            (Kind::Hop, [slide, size]) => Ok(hop(*size, *slide)),
            (Kind::Hop, [slide, size, offset]) => Ok(hop(*size, *slide).offset(*offset)),
            (Kind::Cumulate, [step, size]) => Ok(cumulate(*size, *step)),
            (Kind::Session, [gap]) => Ok(session(*gap)),
            (kind, _) => {
                let name = kind.name().to_uppercase();
                Err(
                    Error::unsupported(format!("{name} windows are not supported"))
                        .hint("TUMBLE and HOP are"),
                )
            }
        }
    }
}

/// A constant length of time, as part of something written `usage`.
///
/// # Errors
/// `InvalidArgument` for anything else; `Unsupported` for months.
pub(crate) fn length(interval: &Expr, usage: &str) -> Result<Duration> {
    let wrong = |what: &str| {
        Error::invalid(format!("{what} in {usage}"))
            .hint("write lengths of time as INTERVAL '10' SECOND")
    };
    let value = match interval {
        Expr::Literal(value, _) => value,
        Expr::Alias(alias) => return length(&alias.expr, usage),
        _ => return Err(wrong("an interval is no constant")),
    };
    let nanos = match value {
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
    };
    let nanos = u64::try_from(nanos).map_err(|_| wrong("an interval is negative or too long"))?;
    Ok(Duration::from_nanos(nanos))
}
