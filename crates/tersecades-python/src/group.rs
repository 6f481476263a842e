//! Groups of a stream: windows and keys, on the way to their aggregates.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tersecades::engine::expression::{Expression, col};
use tersecades::engine::plan::AggregateCall;
use tersecades::engine::stream;
use tersecades::engine::window;
use tersecades::prelude::Emit;

use crate::aggregate::Aggregate;
use crate::duration::Length;
use crate::error::invalid;
use crate::expression::{Column, columns};
use crate::stream::Stream;

/// A stream cut into windows, groups, or both; `.agg(...)` makes it a stream again.
#[pyclass(name = "GroupedStream", module = "tersecades", frozen)]
pub(crate) struct GroupedStream {
    stream: stream::Stream,
    window: window::Window,
    keys: Vec<(String, Expression)>,
}

impl GroupedStream {
    /// `stream` cut into windows.
    pub(crate) fn windowed(stream: stream::Stream, window: window::Window) -> Self {
        GroupedStream {
            stream,
            window,
            keys: Vec::new(),
        }
    }

    fn rewindowed(&self, change: impl FnOnce(window::Window) -> window::Window) -> Self {
        GroupedStream {
            stream: self.stream.clone(),
            window: change(self.window),
            keys: self.keys.clone(),
        }
    }

    fn aggregate(&self, calls: Vec<AggregateCall>) -> PyResult<stream::Stream> {
        let computed = self
            .keys
            .iter()
            .any(|(name, key)| *key != Expression::Column(name.clone()));
        let stream = match computed {
            true => self.stream.clone().project(self.columns_used(&calls)?),
            false => self.stream.clone(),
        };
        let keys = self.keys.iter().map(|(name, _)| name.clone());
        let windows = stream.window(self.window).group_by(keys);
        Ok(windows.aggregate(calls))
    }

    /// The keys, and the columns that the aggregates read, none of which a computed key may hide.
    fn columns_used(&self, calls: &[AggregateCall]) -> PyResult<Vec<(String, Expression)>> {
        let mut used = self.keys.clone();
        let hides =
            |(name, key): &(String, Expression), read: &str| name == read && *key != col(read);
        for call in calls {
            let of_user = call.user.iter().flat_map(|user| &user.arguments);
            let own = call.argument.iter().chain(&call.by).chain(&call.filter);
            for read in own.chain(of_user) {
                for name in read.columns() {
                    if self.keys.iter().any(|key| hides(key, name)) {
                        let message =
                            format!("the computed key `{name}` hides the column of that name");
                        let hint = format!(
                            "`{}` reads the column: give the key another alias",
                            call.output
                        );
                        return Err(invalid(message, &hint));
                    }
                    if !used.iter().any(|(known, _)| known == name) {
                        used.push((name.to_owned(), col(name)));
                    }
                }
            }
        }
        Ok(used)
    }
}

#[pymethods]
impl GroupedStream {
    /// Groups by columns as well: names, or expressions with an alias.
    #[pyo3(signature = (*keys))]
    pub(crate) fn group_by(&self, keys: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let keys = columns(keys)?.into_iter();
        let keys = keys.map(|key: Column| (key.name(), key.expression));
        Ok(GroupedStream {
            stream: self.stream.clone(),
            window: self.window,
            keys: self.keys.iter().cloned().chain(keys).collect(),
        })
    }

    /// Computes aggregates for each group: in order, or as `name=aggregate`.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=10_000)
    /// >>> windows = probes.window(tc.tumble("1s"))
    /// >>> windows.agg(tc.max("rtt_us"), n=tc.count()).columns
    /// ['window_start', 'window_end', 'max(rtt_us)', 'n']
    #[pyo3(signature = (*aggregates, **named))]
    fn agg(
        &self,
        aggregates: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        Ok(self.aggregate(aggregate_calls(aggregates, named)?)?.into())
    }

    /// Lets rows that far behind the watermark change results that came out; the last column,
    /// `change`, then says whether a row is new (`insert`), replaces an earlier one (`update`) or
    /// takes one back (`delete`, of sessions whose ends moved and of count windows).
    fn allowed_lateness(&self, late: Length) -> Self {
        self.rewindowed(|window| window.allowed_lateness(late.0))
    }

    /// Says when results come: `"final"` when a window closes, or without windows at the end;
    /// `"update"` also behind each batch, `every="10s"` also each time the watermark passes a
    /// multiple of that.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=100_000, event_time="timestamp", lateness="3s")
    /// >>> counts = probes.window(tc.tumble("1m")).emit(every="10s").agg(n=tc.count())
    /// >>> counts.columns
    /// ['window_start', 'window_end', 'n', 'change']
    #[pyo3(signature = (when=None, *, every=None))]
    fn emit(&self, when: Option<&str>, every: Option<Length>) -> PyResult<Self> {
        let emit = match (when, every) {
            (Some("final"), None) => Emit::Final,
            (Some("update"), None) => Emit::Update,
            (None, Some(period)) => Emit::Every(period.0),
            _ => {
                let hint = "emit(\"final\"), emit(\"update\") or emit(every=\"10s\")";
                return Err(invalid("emit takes a word or a period", hint));
            }
        };
        Ok(self.rewindowed(|window| window.emit(emit)))
    }

    fn __repr__(&self) -> String {
        let keys: Vec<&str> = self.keys.iter().map(|(name, _)| name.as_str()).collect();
        format!("GroupedStream({}, keys=[{}])", self.window, keys.join(", "))
    }
}

/// Aggregates given in order and by name.
pub(crate) fn aggregate_calls(
    aggregates: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<AggregateCall>> {
    let mut calls = Vec::new();
    for aggregate in aggregates {
        calls.push(extract(&aggregate)?.get().call.clone());
    }
    for (name, aggregate) in named.into_iter().flatten() {
        let call = extract(&aggregate)?.get().call.clone();
        calls.push(call.alias(name.extract::<String>()?));
    }
    Ok(calls)
}

fn extract<'a, 'py>(aggregate: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Aggregate>> {
    aggregate.cast::<Aggregate>().map_err(|_| {
        let class = aggregate.get_type();
        let hint = "as tc.count(), tc.sum(\"x\") or tc.quantile(\"x\", 0.99)";
        invalid(format!("{class} is no aggregate"), hint)
    })
}

/// Adds the class to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<GroupedStream>()
}
