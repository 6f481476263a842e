//! Joins of streams, as Python asks for them.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict, PyString, PyTuple};
use tersecades::engine::operator::join::as_of::{AsOfSpec, Direction};
use tersecades::engine::operator::join::interval::IntervalSpec;
use tersecades::engine::operator::join::table::{JoinSpec, JoinTime};
use tersecades::engine::operator::join::{JoinKind, JoinOptions};
use tersecades::engine::stream;

use crate::duration::Length;
use crate::error::{OrRaise, invalid};
use crate::expression::Column;

/// Every kind of join, by the name that users write.
const KINDS: &[(&str, JoinKind)] = &[
    ("inner", JoinKind::Inner),
    ("left", JoinKind::Left),
    ("right", JoinKind::Right),
    ("full", JoinKind::Full),
    ("semi", JoinKind::LeftSemi),
    ("anti", JoinKind::LeftAnti),
    ("right_semi", JoinKind::RightSemi),
    ("right_anti", JoinKind::RightAnti),
    ("cross", JoinKind::Cross),
];

/// The kind unless another one is named.
pub(crate) const INNER: NamedKind = NamedKind(JoinKind::Inner);

/// The kind of an as-of join unless another one is named.
pub(crate) const LEFT: NamedKind = NamedKind(JoinKind::Left);

/// The direction unless another one is named.
pub(crate) const BACKWARD: NamedDirection = NamedDirection(Direction::Backward);

/// Reads `suffix`, `where` and `null_equals_null`.
pub(crate) fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<JoinOptions> {
    let mut options = JoinOptions::default();
    for (name, value) in given.into_iter().flatten() {
        match &*name.extract::<String>()? {
            "suffix" => options.suffix = value.extract()?,
            "where" => options.residual = Some(value.extract::<Column>()?.expression),
            "null_equals_null" => options.null_equals_null = value.extract()?,
            other => {
                let hint = "the options are suffix, where and null_equals_null";
                return Err(invalid(format!("unknown option `{other}`"), hint));
            }
        }
    }
    Ok(options)
}

/// A kind of join that was given by name.
#[derive(Clone, Copy)]
pub(crate) struct NamedKind(pub(crate) JoinKind);

impl<'py> FromPyObject<'_, 'py> for NamedKind {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        let found = KINDS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| NamedKind(*kind)).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
            let hint = format!("the joins are {}", known.join(", "));
            invalid(format!("there is no join `{name}`"), &hint)
        })
    }
}

/// Where the row of an as-of join lies, by name.
#[derive(Clone, Copy)]
pub(crate) struct NamedDirection(pub(crate) Direction);

impl<'py> FromPyObject<'_, 'py> for NamedDirection {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        match &*name {
            "backward" => Ok(NamedDirection(Direction::Backward)),
            "forward" => Ok(NamedDirection(Direction::Forward)),
            "before" => Ok(NamedDirection(Direction::Before)),
            "after" => Ok(NamedDirection(Direction::After)),
            "nearest" => Ok(NamedDirection(Direction::Nearest)),
            _ => Err(invalid(
                format!("there is no direction `{name}`"),
                "backward, forward, before, after or nearest",
            )),
        }
    }
}

/// Columns that must be equal: a name of both, a pair of names, or a list of these.
#[derive(Default)]
pub(crate) struct Keys(Vec<(String, String)>);

impl Keys {
    /// Names of the left and the right column of each.
    pub(crate) fn pairs(&self) -> Vec<(&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(left, right)| (&**left, &**right)).collect()
    }
}

impl<'py> FromPyObject<'_, 'py> for Keys {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Keys::default());
        }
        if let Ok(both) = object.cast::<PyString>() {
            return Ok(Keys(vec![(both.to_string(), both.to_string())]));
        }
        if let Ok(pair) = object.extract::<(String, String)>()
            && object.cast::<PyTuple>().is_ok()
        {
            return Ok(Keys(vec![pair]));
        }
        let mut keys = Vec::new();
        for item in object.try_iter()? {
            let item = item?;
            keys.push(match item.cast::<PyString>() {
                Ok(both) => (both.to_string(), both.to_string()),
                Err(_) => item.extract()?,
            });
        }
        Ok(Keys(keys))
    }
}

/// A distance in time that may be below zero: `"-5s"`, `timedelta(seconds=-5)`.
pub(crate) struct Distance(i64);

impl<'py> FromPyObject<'_, 'py> for Distance {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let (negative, length): (bool, Length) = match object.cast::<PyString>() {
            Ok(text) => {
                let text = text.to_cow()?;
                match text.trim().strip_prefix('-') {
                    Some(positive) => (true, PyString::new(py, positive).extract()?),
                    None => (false, object.extract()?),
                }
            }
            Err(_) => {
                let below = object.cast::<PyDelta>().is_ok()
                    && object.getattr("days")?.extract::<i64>()? < 0;
                match below {
                    true => (true, object.neg()?.extract()?),
                    false => (false, object.extract()?),
                }
            }
        };
        let too_long = |_| invalid("the distance is too long", "use less than 292 years");
        let nanos = i64::try_from(length.0.as_nanos()).map_err(too_long)?;
        Ok(Distance(if negative { -nanos } else { nanos }))
    }
}

impl Distance {
    /// It as a shift of windows that come every `period`: to the left is the rest to the right.
    pub(crate) fn shift(&self, period: Duration) -> Duration {
        let period = i64::try_from(period.as_nanos()).unwrap_or(i64::MAX);
        let nanos = match self.0 < 0 && period > 0 {
            true => self.0.rem_euclid(period),
            false => self.0,
        };
        Duration::from_nanos(nanos.unsigned_abs())
    }
}

/// Joins rows with equal keys.
pub(crate) fn equal(
    (left, right): (stream::Stream, stream::Stream),
    (keys, kind): (&Keys, NamedKind),
    options: JoinOptions,
) -> PyResult<stream::Stream> {
    let without_keys = keys.0.is_empty() && options.residual.is_none();
    if without_keys && kind.0 != JoinKind::Cross {
        let hint = "give on=\"column\" or how=\"cross\"";
        return Err(invalid("a join needs columns that must be equal", hint));
    }
    left.join(right, kind.0, &keys.pairs(), options).or_raise()
}

/// Joins rows with equal keys whose times are paired as `time` says.
pub(crate) fn timed(
    (left, right): (stream::Stream, stream::Stream),
    (keys, kind): (&Keys, NamedKind),
    time: JoinTime,
    options: JoinOptions,
) -> PyResult<stream::Stream> {
    let spec = JoinSpec {
        kind: kind.0,
        on: keys.0.clone(),
        time,
        options,
    };
    left.join_with(right, spec).or_raise()
}

/// Times between two distances apart.
pub(crate) fn apart(lower: &Distance, upper: &Distance) -> JoinTime {
    JoinTime::Interval(IntervalSpec {
        lower_ns: lower.0,
        upper_ns: upper.0,
    })
}

/// The nearest time.
pub(crate) fn nearest(direction: NamedDirection, tolerance: Option<Duration>) -> JoinTime {
    JoinTime::AsOf(AsOfSpec {
        direction: direction.0,
        tolerance,
    })
}
