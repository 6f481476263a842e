//! Steps on rows, and several streams made one.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tersecades::engine::operator::row::Extent;
use tersecades::engine::stream;

use crate::error::OrRaise;
use crate::number;
use crate::order::sort_keys;
use crate::projection::Names;
use crate::row_function::{Columns, RowFunction};
use crate::window::Window;

use super::Stream;

fn extent(whole: bool) -> Extent {
    match whole {
        true => Extent::Whole,
        false => Extent::Natural,
    }
}

#[pymethods]
impl Stream {
    /// Sorts the results of each window, after windows, or all rows: by names and expressions, or
    /// by `.asc()` and `.desc()` of them; `whole` sorts the results of all windows together.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> stream = tc.from_arrow(pa.table({"n": [2, 3, 1]}))
    /// >>> stream.sort(tc.col("n").desc()).limit(2).to_pylist()
    /// [{'n': 3}, {'n': 2}]
    #[pyo3(signature = (*by, descending=false, nulls_first=false, whole=false))]
    fn sort(
        &self,
        by: &Bound<'_, PyTuple>,
        descending: bool,
        nulls_first: bool,
        whole: bool,
    ) -> PyResult<Self> {
        let keys = sort_keys(by, descending, nulls_first)?;
        Ok(self.change(|stream| stream.sort_in(extent(whole), keys)))
    }

    /// The first `count` rows after `offset` of them; the source is not read further.
    #[pyo3(signature = (count, offset=0))]
    fn limit(
        &self,
        #[pyo3(from_py_with = number::count)] count: u64,
        #[pyo3(from_py_with = number::count)] offset: u64,
    ) -> Self {
        self.change(|stream| stream.limit(count, offset))
    }

    /// The first `count` rows in the order of a sort: of each window, after windows, or of all.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> stream = tc.from_arrow(pa.table({"n": [2, 3, 1]}))
    /// >>> stream.top_k(1, "n", descending=True).to_pylist()
    /// [{'n': 3}]
    #[pyo3(signature = (count, *by, descending=false, nulls_first=false, whole=false))]
    fn top_k(
        &self,
        #[pyo3(from_py_with = number::size)] count: usize,
        by: &Bound<'_, PyTuple>,
        descending: bool,
        nulls_first: bool,
        whole: bool,
    ) -> PyResult<Self> {
        let keys = sort_keys(by, descending, nulls_first)?;
        Ok(self.change(|stream| stream.top_k_in(extent(whole), (count, 0), keys)))
    }

    /// The first of rows that are equal in every column; null equals null.
    fn distinct(&self) -> Self {
        self.change(stream::Stream::distinct)
    }

    /// Adds the value that `column` had so many rows earlier among those with the same `by`; null
    /// where there are not so many.
    #[pyo3(signature = (column, rows=1, *, by=Names::default(), name=None))]
    fn lag(
        &self,
        column: &str,
        #[pyo3(from_py_with = number::size)] rows: usize,
        by: Names,
        name: Option<String>,
    ) -> Self {
        let name = name.unwrap_or_else(|| format!("previous_{column}"));
        self.change(|stream| stream.lag(column, rows, by.0, &name))
    }

    /// Keeps the rows in which `columns` differ from the row before with the same `by`, and adds
    /// their values before (`previous_...`) and how long they `lasted`, in ticks of event time.
    #[pyo3(signature = (columns, *, by=Names::default()))]
    fn changes(&self, columns: Names, by: Names) -> Self {
        self.change(|stream| stream.changes(columns.0, by.0))
    }

    /// The rows of this stream and then those of the others, which have the same columns.
    #[pyo3(signature = (*others))]
    fn union(&self, others: Vec<Py<Stream>>) -> PyResult<Self> {
        let others = others.iter().map(|other| other.get().stream.clone());
        let all = std::iter::once(self.stream.clone()).chain(others);
        Ok(stream::Stream::union(all).or_raise()?.into())
    }

    /// The rows of this stream and the others, which have the same columns and event time,
    /// interleaved by it: each row is as late as it was in its own stream.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> def at(*seconds):
    /// ...     times = pa.array([s * 1_000 for s in seconds], pa.timestamp("ms"))
    /// ...     return tc.from_arrow(pa.table({"timestamp": times, "n": seconds}))
    /// >>> [row["n"] for row in at(1, 4, 5).merge(at(2, 3)).to_pylist()]
    /// [1, 2, 3, 4, 5]
    #[pyo3(signature = (*others))]
    fn merge(&self, others: Vec<Py<Stream>>) -> PyResult<Self> {
        let others = others.iter().map(|other| other.get().stream.clone());
        let all = std::iter::once(self.stream.clone()).chain(others);
        Ok(stream::Stream::merge(all).or_raise()?.into())
    }

    /// The rows by event time, each when no earlier one can come any more; what goes by the order
    /// of rows (`lag`, `changes`, `reduce`) goes by event time behind it. Rows behind the
    /// watermark are left out and counted.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> times = pa.array([4_000, 1_000, 7_000], pa.timestamp("ms"))
    /// >>> rows = pa.table({"timestamp": times, "n": [4, 1, 7]})
    /// >>> stream = tc.from_arrow(rows, event_time="timestamp", lateness="5s")
    /// >>> [row["n"] for row in stream.in_order().to_pylist()]
    /// [1, 4, 7]
    fn in_order(&self) -> PyResult<Self> {
        Ok(self.stream.clone().in_order().or_raise()?.into())
    }

    /// Folds the rows of each key, of each window after windows or of all, with a function.
    ///
    /// It gets the one row it made of earlier rows (a `pyarrow.Table`, or `None`) and the next
    /// rows (a `pyarrow.Table`), and gives one row: a table, or a dictionary. `schema` names the
    /// columns it gives, and is not needed when they are those of the stream. How rows are cut
    /// into calls must not change the result.
    ///
    /// >>> import pyarrow as pa, pyarrow.compute as pc, tersecades as tc
    /// >>> def add(state, rows):
    /// ...     before = state["total"][0].as_py() if state else 0
    /// ...     return {"total": before + pc.sum(rows["n"]).as_py()}
    /// >>> stream = tc.from_arrow(pa.table({"key": ["a", "b", "a"], "n": [1, 2, 3]}))
    /// >>> stream.reduce("key", add, schema={"total": "int64"}).to_pylist()
    /// [{'key': 'a', 'total': 4}, {'key': 'b', 'total': 2}]
    #[pyo3(signature = (by, function, *, schema=None))]
    fn reduce(
        &self,
        by: Names,
        function: &Bound<'_, PyAny>,
        schema: Option<Columns>,
    ) -> PyResult<Self> {
        let function = RowFunction::new(function, schema)?;
        Ok(self.change(|stream| stream.reduce(by.0, function)))
    }

    /// Hands the rows of each window, when it closes, to a function.
    ///
    /// It gets a `pyarrow.Table` of all the window's rows in order of arrival, and gives a table
    /// of any number of rows. `schema` names its columns, and is not needed when they are those
    /// of the stream.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> times = pa.array([0, 4_000, 11_000], pa.timestamp("ms"))
    /// >>> stream = tc.from_arrow(pa.table({"timestamp": times, "n": [5, 7, 6]}))
    /// >>> def largest(rows):
    /// ...     return rows.select(["n"]).sort_by([("n", "descending")]).slice(0, 1)
    /// >>> best = stream.process(tc.tumble("10s"), largest, schema={"n": "int64"})
    /// >>> best.select("n").to_pylist()
    /// [{'n': 7}, {'n': 6}]
    #[pyo3(signature = (window, function, *, schema=None))]
    fn process(
        &self,
        window: &Window,
        function: &Bound<'_, PyAny>,
        schema: Option<Columns>,
    ) -> PyResult<Self> {
        let function = RowFunction::new(function, schema)?;
        let processed = self.stream.clone().process(window.window, function);
        Ok(processed.or_raise()?.into())
    }
}
