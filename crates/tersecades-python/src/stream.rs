//! The lazy builder: each method hands out a longer query, and a result runs it.

use std::path::PathBuf;

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use tersecades::engine::expression::{Expression, col};
use tersecades::engine::stream;
use tersecades::engine::window::global;
use tersecades::prelude::{Keep, Retained};

use crate::capsule::stream_capsule;
use crate::data_type::NamedUnit;
use crate::duration::{Bytes, Length};
use crate::error::{OrRaise, invalid};
use crate::explain::Explanation;
use crate::expression::{Column, columns};
use crate::group::{GroupedStream, aggregate_calls};
use crate::join::{self, BACKWARD, Distance, INNER, Keys, LEFT, NamedDirection, NamedKind};
use crate::lookup::Lookup;
use crate::metrics::Metrics;
use crate::order::sort_keys;
use crate::projection::{self, Projection};
use crate::running::{Drive, Running};
use crate::schema::ColumnSchema;
use crate::table::{ResultTable, escape};
use crate::window::Window;
use crate::writing;

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
) -> stream::Stream {
    let lateness_given = lateness.is_some();
    let lateness = lateness.map_or_else(Default::default, |length| length.0);
    match time {
        Some(time) => stream.event_time(time.expression, lateness),
        None if lateness_given => stream.event_time(col("timestamp"), lateness),
        None => stream,
    }
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

    /// Sorts the results of each window, after windows, or all rows: by names and expressions, or
    /// by `.asc()` and `.desc()` of them.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> stream = tc.from_arrow(pa.table({"n": [2, 3, 1]}))
    /// >>> stream.sort(tc.col("n").desc()).limit(2).to_pylist()
    /// [{'n': 3}, {'n': 2}]
    #[pyo3(signature = (*by, descending=false, nulls_first=false))]
    fn sort(&self, by: &Bound<'_, PyTuple>, descending: bool, nulls_first: bool) -> PyResult<Self> {
        let keys = sort_keys(by, descending, nulls_first)?;
        Ok(self.change(|stream| stream.sort(keys)))
    }

    /// The first `count` rows after `offset` of them; the source is not read further.
    #[pyo3(signature = (count, offset=0))]
    fn limit(&self, count: u64, offset: u64) -> Self {
        self.change(|stream| stream.limit(count, offset))
    }

    /// The first `count` rows in the order of a sort: of each window, after windows, or of all.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> stream = tc.from_arrow(pa.table({"n": [2, 3, 1]}))
    /// >>> stream.top_k(1, "n", descending=True).to_pylist()
    /// [{'n': 3}]
    #[pyo3(signature = (count, *by, descending=false, nulls_first=false))]
    fn top_k(
        &self,
        count: usize,
        by: &Bound<'_, PyTuple>,
        descending: bool,
        nulls_first: bool,
    ) -> PyResult<Self> {
        let keys = sort_keys(by, descending, nulls_first)?;
        Ok(self.change(|stream| stream.top_k(count, keys)))
    }

    /// The first of rows that are equal in every column; null equals null.
    fn distinct(&self) -> Self {
        self.change(stream::Stream::distinct)
    }

    /// Adds the value that `column` had so many rows earlier among those with the same `by`; null
    /// where there are not so many.
    #[pyo3(signature = (column, rows=1, *, by=Vec::new(), name=None))]
    fn lag(&self, column: &str, rows: usize, by: Vec<String>, name: Option<String>) -> Self {
        let name = name.unwrap_or_else(|| format!("previous_{column}"));
        self.change(|stream| stream.lag(column, rows, by, &name))
    }

    /// Keeps the rows in which `columns` differ from the row before with the same `by`, and adds
    /// their values before (`previous_...`) and how long they `lasted`, in ticks of event time.
    #[pyo3(signature = (columns, *, by=Vec::new()))]
    fn changes(&self, columns: Vec<String>, by: Vec<String>) -> Self {
        self.change(|stream| stream.changes(columns, by))
    }

    /// The rows of this stream and then those of the others, which have the same columns.
    #[pyo3(signature = (*others))]
    fn union(&self, others: Vec<Py<Stream>>) -> PyResult<Self> {
        let others = others.iter().map(|other| other.get().stream.clone());
        let all = std::iter::once(self.stream.clone()).chain(others);
        Ok(stream::Stream::union(all).or_raise()?.into())
    }

    /// Says what the event time is, and how late rows may come.
    ///
    /// `unit` is that of an integer time: `s`, `ms` (the default), `us` or `ns`.
    #[pyo3(signature = (time, lateness=None, *, unit=None))]
    fn event_time(&self, time: Column, lateness: Option<Length>, unit: Option<NamedUnit>) -> Self {
        self.change(|stream| {
            let stream = timed(stream, Some(time), lateness);
            match unit {
                Some(unit) => stream.event_time_unit(unit.0),
                None => stream,
            }
        })
    }

    /// Keeps the newest part of the stream, encoded, for `Running.retained()`: a length of event
    /// time, or at most so many bytes.
    #[pyo3(signature = (duration=None, *, bytes=None))]
    fn keep(&self, duration: Option<Length>, bytes: Option<Bytes>) -> PyResult<Self> {
        let keep = match (duration, bytes) {
            (Some(duration), None) => Keep::Duration(duration.0),
            (None, Some(bytes)) => Keep::Bytes(bytes.0),
            _ => {
                let message = "keep takes a duration or a number of bytes";
                return Err(invalid(message, ".keep(\"10m\") or .keep(bytes=\"1GiB\")"));
            }
        };
        Ok(self.change(|stream| stream.keep(keep)))
    }

    /// Keeps late rows, for `Table.late` and `Running.take_late()`; else they are only counted.
    fn keep_late(&self) -> Self {
        self.change(stream::Stream::keep_late)
    }

    /// Runs on so many worker threads; answers do not depend on it.
    fn threads(&self, threads: usize) -> Self {
        self.change(|stream| stream.threads(threads))
    }

    /// Refuses to hold more than so many bytes of windows and kept rows: `"512MiB"`, `"4GiB"`.
    fn memory_limit(&self, bytes: Bytes) -> Self {
        self.change(|stream| stream.memory_limit(bytes.0))
    }

    /// Encodes a column by a scheme such as `"delta(bit_pack)"` instead of a choice.
    fn encoding(&self, column: String, scheme: String) -> Self {
        self.change(|stream| stream.encoding(column, scheme))
    }

    /// Adds columns of the row of `table` whose key equals the stream's; rows without one are
    /// dropped.
    ///
    /// `on` is a column of both, or a pair: the stream's and the table's. `columns` are names in
    /// the table, or `{"name in the table": "new name"}`.
    fn lookup(
        &self,
        table: &Bound<'_, PyAny>,
        on: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let lookup = Lookup::new(table, on, columns)?;
        Ok(self.change(|stream| lookup.apply(stream)))
    }

    /// Joins rows with equal values of the columns `on`; `other` is read whole and kept first.
    ///
    /// `on` is a column of both, a pair of names, or a list of these. `how` is inner, left,
    /// right, full, semi, anti, right_semi, right_anti or cross; `where` must be true of a pair
    /// as well, and columns of `other` whose names are taken get the suffix.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> hosts = tc.from_arrow(pa.table({"host": [1, 2], "name": ["a", "b"]}))
    /// >>> calls = tc.from_arrow(pa.table({"host": [2, 2, 3]}))
    /// >>> calls.join(hosts, on="host").select("name").to_pylist()
    /// [{'name': 'b'}, {'name': 'b'}]
    #[pyo3(signature = (other, on=Keys::default(), how=INNER, **options))]
    fn join(
        &self,
        other: &Stream,
        on: Keys,
        how: NamedKind,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = join::options(options)?;
        Ok(join::equal(self.both(other), (&on, how), options)?.into())
    }

    /// Joins rows with equal values of the columns `on` in the same window.
    #[pyo3(signature = (other, window, on=Keys::default(), how=INNER))]
    fn window_join(
        &self,
        other: &Stream,
        window: &Window,
        on: Keys,
        how: NamedKind,
    ) -> PyResult<Self> {
        Ok(join::windowed(self.both(other), (&on, how), window.window)?.into())
    }

    /// Joins rows with equal values of the columns `on` where the time of the other row less that
    /// of this one is between `lower` and `upper`: `"-5s"`, `"10s"`.
    #[pyo3(signature = (other, on, lower, upper, how=INNER))]
    fn interval_join(
        &self,
        other: &Stream,
        on: Keys,
        lower: Distance,
        upper: Distance,
        how: NamedKind,
    ) -> PyResult<Self> {
        Ok(join::interval(self.both(other), (&on, how), (&lower, &upper))?.into())
    }

    /// Joins each row with the row of `other` with equal values of the columns `on` that is
    /// nearest in time: `backward`, `forward` or `nearest`, no further away than `tolerance`.
    #[pyo3(signature = (other, on=Keys::default(), direction=BACKWARD, tolerance=None, how=LEFT))]
    fn asof_join(
        &self,
        other: &Stream,
        on: Keys,
        direction: NamedDirection,
        tolerance: Option<Length>,
        how: NamedKind,
    ) -> PyResult<Self> {
        let nearness = (direction, tolerance.map(|length| length.0));
        Ok(join::as_of(self.both(other), (&on, how), nearness)?.into())
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

    /// Runs the stream to its end and keeps all results in memory.
    fn collect(&self, py: Python<'_>) -> PyResult<ResultTable> {
        Drive::start(py, self)?.collect(py)
    }

    /// Runs the stream step by step: iterate over it for one table after the other, as windows
    /// close.
    fn stream(&self, py: Python<'_>) -> PyResult<Running> {
        Running::start(py, self)
    }

    /// Runs the stream and hands out a `pyarrow.Table`.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ResultTable::to_arrow(&Bound::new(py, self.collect(py)?)?)
    }

    /// Runs the stream and hands out a `polars.DataFrame`.
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ResultTable::to_polars(&Bound::new(py, self.collect(py)?)?)
    }

    /// Runs the stream and hands out a `pandas.DataFrame`.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ResultTable::to_pandas(&Bound::new(py, self.collect(py)?)?)
    }

    /// Runs the stream and hands out each column as a NumPy array, by name.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        ResultTable::to_numpy(&Bound::new(py, self.collect(py)?)?)
    }

    /// Runs the stream and hands out the rows as dictionaries.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ResultTable::to_pylist(&Bound::new(py, self.collect(py)?)?)
    }

    /// Runs the stream and prints the first rows.
    #[pyo3(signature = (rows=20))]
    fn show(&self, py: Python<'_>, rows: usize) -> PyResult<()> {
        self.collect(py)?.show(py, rows)
    }

    /// Runs the stream into a file, its format told by its suffix; hands out what was counted.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<Metrics> {
        writing::write(py, self, &path, None)
    }

    /// Runs the stream into a Parquet file; hands out what was counted.
    fn write_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<Metrics> {
        writing::write(py, self, &path, Some("parquet"))
    }

    /// Runs the stream into a CSV file; hands out what was counted.
    fn write_csv(&self, py: Python<'_>, path: PathBuf) -> PyResult<Metrics> {
        writing::write(py, self, &path, Some("csv"))
    }

    /// Runs the stream into a file of JSON lines; hands out what was counted.
    fn write_json(&self, py: Python<'_>, path: PathBuf) -> PyResult<Metrics> {
        writing::write(py, self, &path, Some("jsonl"))
    }

    /// Runs the stream into a file of Arrow IPC; hands out what was counted.
    fn write_ipc(&self, py: Python<'_>, path: PathBuf) -> PyResult<Metrics> {
        writing::write(py, self, &path, Some("arrow"))
    }

    /// The operators, one a line; with `analyze`, the stream runs and says what it counted.
    #[pyo3(signature = (*, analyze=false))]
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<Explanation> {
        Explanation::of(py, self, analyze)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer hand out its own types whatever is asked for.
        drop(requested_schema);
        stream_capsule(py, Box::new(Drive::start(py, self)?))
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
