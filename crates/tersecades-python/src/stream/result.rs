//! Results of a stream: in memory, into files, into other libraries, or step by step.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::capsule::stream_capsule;
use crate::explain::Explanation;
use crate::metrics::Metrics;
use crate::number;
use crate::running::{Drive, Running};
use crate::standing::Standing;
use crate::table::ResultTable;
use crate::writing;

use super::Stream;

#[pymethods]
impl Stream {
    /// Runs the stream to its end and keeps all results in memory.
    fn collect(&self, py: Python<'_>) -> PyResult<ResultTable> {
        Drive::start(py, self)?.collect(py)
    }

    /// Runs the stream to its end and keeps its rows encoded in memory; what comes back reads
    /// them, as often as asked.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=100_000).cache()
    /// >>> probes.agg(n=tc.count()).to_pylist()
    /// [{'n': 100000}]
    fn cache(&self, py: Python<'_>) -> PyResult<Self> {
        Drive::keep_whole(py, self)
    }

    /// Runs the stream step by step: iterate over it for one table after the other, as windows
    /// close.
    ///
    /// With a `snapshot` of an earlier run it goes on where that one stood. The stream is then of
    /// the rows that were not read (`rows_read`), or of all of them with `from_first=True`, as a
    /// file is; streams of joins, unions and merges are always of all of them. Bad rows that are
    /// passed over go to dead letters again.
    ///
    /// >>> import tersecades as tc
    /// >>> probes = tc.generate("pingmesh", rows=100_000)
    /// >>> total = probes.agg(n=tc.count())
    /// >>> first = total.stream()
    /// >>> first.step()
    /// True
    /// >>> [t.to_pylist() for t in total.stream(snapshot=first.snapshot(), from_first=True)]
    /// [[{'n': 100000}]]
    #[pyo3(signature = (*, snapshot=None, from_first=false))]
    fn stream(
        &self,
        py: Python<'_>,
        snapshot: Option<Vec<u8>>,
        from_first: bool,
    ) -> PyResult<Running> {
        let running = Running::start(py, self)?;
        match snapshot {
            Some(snapshot) => running.restored(py, &snapshot, from_first),
            None => Ok(running),
        }
    }

    /// Runs `queries`, by name, together over this stream, which is read once, and encoded once
    /// where it is kept: iterate over it for names and tables, as windows close.
    ///
    /// Each query is made of this very stream, and answers as it does alone.
    fn standing(&self, py: Python<'_>, queries: &Bound<'_, PyDict>) -> PyResult<Standing> {
        Standing::start(py, self, queries)
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
    fn show(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::size)] rows: usize,
    ) -> PyResult<()> {
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
}
