//! The lazy builder: each method hands out a longer query, and a result runs it.

mod join;
mod option;
mod result;
mod row;

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tersecades::engine::expression::{Expression, col};
use tersecades::engine::stream;
use tersecades::engine::window::global;
use tersecades::prelude::Retained;

use crate::duration::Length;
use crate::error::{OrRaise, invalid};
use crate::explain::Explanation;
use crate::expression::{Column, columns};
use crate::group::{GroupedStream, aggregate_calls};
use crate::projection::{self, Projection};
use crate::schema::ColumnSchema;
use crate::table::escape;
use crate::window::Window;

/// A stream and what is to be done with it; nothing is read before a result is asked for.
///
/// Each method gives a new stream, so one stream may be the start of many.
///
/// >>> import tersecades as tc
/// >>> probes = tc.generate("pingmesh", rows=10_000)
/// >>> slow = probes.filter(tc.col("rtt_us") > 1_000).select("timestamp", "rtt_us")
/// >>> slow.columns
/// ['timestamp', 'rtt_us']
#[pyclass(name = "Stream", module = "tersecades", frozen)]
pub(crate) struct Stream {
    pub(crate) stream: stream::Stream,
}

impl From<stream::Stream> for Stream {
    fn from(stream: stream::Stream) -> Self {
        Stream { stream }
    }
}

impl Stream {
    /// What is kept of a running stream.
    pub(crate) fn of_retained(retained: &Retained) -> Self {
        stream::Stream::from_retained(retained).into()
    }

    /// The columns that come out.
    pub(crate) fn output(&self) -> PyResult<SchemaRef> {
        self.stream.schema().or_raise()
    }

    fn change(&self, change: impl FnOnce(stream::Stream) -> stream::Stream) -> Self {
        change(self.stream.clone()).into()
    }

    fn project(&self, columns: Projection) -> Self {
        self.change(|stream| stream.project(columns))
    }

    fn both(&self, other: &Stream) -> (stream::Stream, stream::Stream) {
        (self.stream.clone(), other.stream.clone())
    }
}

/// A stream whose event time is `time`, or `timestamp` when only a lateness is given.
pub(crate) fn timed(
    stream: stream::Stream,
    time: Option<Column>,
    lateness: Option<Length>,
) -> PyResult<stream::Stream> {
    if time.is_none() && lateness.is_none() {
        return Ok(stream);
    }
    let time = time.map_or_else(|| col("timestamp"), |time| time.expression);
    let lateness = lateness.map_or_else(Default::default, |length| length.0);
    let stream = stream.event_time(time, lateness);
    stream.check_event_time().or_raise()?;
    Ok(stream)
}

#[pymethods]
impl Stream {
    /// Keeps the rows where every condition is true.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=10_000)
    /// >>> failed = probes.filter(tc.col("error_code") != 0, tc.col("rtt_us") >= 100)
    /// >>> len(failed.collect()) < 10_000
    /// True
    #[pyo3(signature = (*conditions))]
    fn filter(&self, conditions: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let conditions = columns(conditions)?.into_iter();
        let all = conditions.map(|condition| condition.expression);
        match all.reduce(Expression::and) {
            Some(condition) => Ok(self.change(|stream| stream.filter(condition))),
            None => Err(invalid("filter needs a condition", "as tc.col(\"x\") > 0")),
        }
    }

    /// Replaces the columns by these: names, expressions, or `name=expression`.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=10_000)
    /// >>> probes.select("rtt_us", rtt_ms=tc.col("rtt_us") / 1_000).columns
    /// ['rtt_us', 'rtt_ms']
    #[pyo3(signature = (*columns, **named))]
    fn select(
        &self,
        columns: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Ok(self.project(projection::named(columns, named)?))
    }

    /// Adds columns, or replaces those of the same name.
    #[pyo3(signature = (*columns, **named))]
    fn with_columns(
        &self,
        columns: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let added = projection::named(columns, named)?;
        Ok(self.project(projection::with(&*self.output()?, added)))
    }

    /// Leaves columns out.
    #[pyo3(signature = (*names))]
    fn drop(&self, names: Vec<String>) -> PyResult<Self> {
        let left = projection::without(&*self.output()?, &names)?;
        Ok(self.project(left))
    }

    /// Gives columns other names: `{"old": "new"}`.
    fn rename(&self, names: &Bound<'_, PyDict>) -> PyResult<Self> {
        let renamed = projection::renamed(&*self.output()?, names)?;
        Ok(self.project(renamed))
    }

    /// Cuts the stream into windows of event time, to be grouped and aggregated.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=10_000)
    /// >>> out = probes.window(tc.tumble("1s")).group_by("src_cluster").agg(n=tc.count())
    /// >>> out.columns
    /// ['window_start', 'window_end', 'src_cluster', 'n']
    fn window(&self, window: &Window) -> GroupedStream {
        GroupedStream::windowed(self.stream.clone(), window.window)
    }

    /// Groups the whole stream by columns; the groups come out at its end, sorted.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=10_000)
    /// >>> probes.group_by("error_code").agg(n=tc.count()).columns
    /// ['error_code', 'n']
    #[pyo3(signature = (*keys))]
    fn group_by(&self, keys: &Bound<'_, PyTuple>) -> PyResult<GroupedStream> {
        GroupedStream::windowed(self.stream.clone(), global()).group_by(keys)
    }

    /// Computes aggregates of the whole stream: one row, at its end.
    ///
    /// >>> import tersecades as tc
    /// >>> tc.generate("pingmesh", rows=10_000).agg(n=tc.count()).to_pylist()
    /// [{'n': 10000}]
    #[pyo3(signature = (*aggregates, **named))]
    fn agg(
        &self,
        aggregates: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let calls = aggregate_calls(aggregates, named)?;
        Ok(self.change(|stream| stream.aggregate(calls)))
    }

    /// Columns of the results.
    #[getter]
    fn schema(&self) -> PyResult<ColumnSchema> {
        Ok(self.output()?.into())
    }

    /// Names of the columns of the results.
    #[getter]
    fn columns(&self) -> PyResult<Vec<String>> {
        let schema = self.output()?;
        let fields = schema.fields().iter();
        Ok(fields.map(|field| field.name().clone()).collect())
    }

    fn __repr__(&self) -> PyResult<String> {
        Explanation::describe(self)
    }

    fn _repr_html_(&self) -> PyResult<String> {
        Ok(format!(
            "<pre>{}</pre>",
            escape(&Explanation::describe(self)?)
        ))
    }
}
