//! A result in memory, and its ways into other libraries.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tersecades::engine::sink::{Sink as _, SinkOptions, Target, table::TableSink};
use tersecades::engine::stream::Stream;
use tersecades::{Error, Result};

use crate::arrow_table::push_pieces;
use crate::capsule::{array_capsules, stream_capsule};
use crate::error::{OrRaise, raise};
use crate::metrics::Metrics;
use crate::number;
use crate::running::logical;
use crate::schema::ColumnSchema;

/// Rows that a notebook shows of a table.
const HTML_ROWS: usize = 20;

/// Rows of a result, in memory, as Arrow batches.
///
/// Anything that takes Arrow data takes a table: `pyarrow.table(t)`, `polars.DataFrame(t)`.
#[pyclass(name = "Table", module = "tersecades", frozen)]
pub(crate) struct ResultTable {
    pub(crate) schema: SchemaRef,
    /// As the engine gave them: text may be codes, which becomes text on the way out.
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) metrics: Option<Py<Metrics>>,
    pub(crate) late: Option<Py<ResultTable>>,
    /// The rows for queries, once one reads them.
    pub(crate) read: OnceLock<Stream>,
}

impl ResultTable {
    /// A table of one batch, in the types of `schema`.
    pub(crate) fn of_batch(batch: RecordBatch, schema: &SchemaRef) -> Self {
        ResultTable {
            schema: Arc::clone(schema),
            batches: vec![batch],
            metrics: None,
            late: None,
            read: OnceLock::new(),
        }
    }

    /// The rows; all queries that read them share what is made of them.
    pub(crate) fn stream(&self) -> Result<Stream> {
        if let Some(known) = self.read.get() {
            return Ok(known.clone());
        }
        let mut pieces = Vec::new();
        for batch in &self.batches {
            push_pieces(&logical(batch, &self.schema)?, &mut pieces);
        }
        let stream = Stream::from_batches(Arc::clone(&self.schema), pieces);
        Ok(self.read.get_or_init(|| stream).clone())
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The first `rows` rows as aligned text.
    pub(crate) fn to_text(&self, rows: usize) -> Result<String> {
        let text = SharedText::default();
        let options = SinkOptions {
            table_rows: rows,
            ..SinkOptions::default()
        };
        let target = Target::Writer(Box::new(text.clone()));
        let mut sink = TableSink::create(target, &self.schema, &options)?;
        for batch in &self.batches {
            sink.write(&logical(batch, &self.schema)?)?;
        }
        sink.finish()?;
        text.take()
    }

    /// The first `rows` rows as a table of HTML.
    fn to_html(&self, rows: usize) -> Result<String> {
        let names = self.schema.fields().iter();
        let head: String = names
            .map(|field| {
                let (name, kind) = (escape(field.name()), escape(&field.data_type().to_string()));
                format!("<th>{name}<br><small>{kind}</small></th>")
            })
            .collect();
        let mut html = format!("<table><thead><tr>{head}</tr></thead><tbody>");
        let mut left = rows;
        for batch in &self.batches {
            let shown = left.min(batch.num_rows());
            push_html_rows(&mut html, &batch.slice(0, shown))?;
            left -= shown;
        }
        let more = self.rows() - (rows - left);
        html.push_str("</tbody></table>");
        if more > 0 {
            html.push_str(&format!("<p>… {more} more rows</p>"));
        }
        Ok(html)
    }
}

fn push_html_rows(html: &mut String, batch: &RecordBatch) -> Result<()> {
    let options = FormatOptions::new()
        .with_display_error(true)
        .with_null("null");
    let columns = batch.columns().iter();
    let formatters: std::result::Result<Vec<_>, _> = columns
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
        .collect();
    let formatters = formatters?;
    for row in 0..batch.num_rows() {
        html.push_str("<tr>");
        for formatter in &formatters {
            let cell = escape(&formatter.value(row).to_string());
            html.push_str(&format!("<td>{cell}</td>"));
        }
        html.push_str("</tr>");
    }
    Ok(())
}

/// `text` with what HTML would take for its own written out.
pub(crate) fn escape(text: &str) -> String {
    let replaced = text.replace('&', "&amp;").replace('<', "&lt;");
    replaced.replace('>', "&gt;")
}

/// Text that a sink writes and that is read afterwards.
#[derive(Clone, Default)]
struct SharedText(Arc<Mutex<Vec<u8>>>);

impl SharedText {
    fn take(&self) -> Result<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(|held| held.into_inner()));
        String::from_utf8(bytes).map_err(|_| Error::internal("a table is no text"))
    }
}

impl Write for SharedText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut text = self.0.lock().unwrap_or_else(|held| held.into_inner());
        text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A module of another library.
///
/// # Errors
/// `Unsupported`, saying what to install.
pub(crate) fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|_| {
        let error = Error::unsupported(format!("this needs `{name}`, which is not installed"));
        raise(py, &error.hint(format!("pip install {name}")))
    })
}

/// A column on its way to a function of Python.
#[pyclass(module = "tersecades", frozen)]
pub(crate) struct ArrowArray {
    array: ArrayRef,
}

impl ArrowArray {
    /// Hands out `array` to whoever asks by Arrow's interface.
    pub(crate) fn new(array: ArrayRef) -> Self {
        ArrowArray { array }
    }
}

#[pymethods]
impl ArrowArray {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        array_capsules(py, self.array.as_ref())
    }
}

#[pymethods]
impl ResultTable {
    /// Columns of the rows.
    #[getter]
    fn schema(&self) -> ColumnSchema {
        Arc::clone(&self.schema).into()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows()
    }

    /// What the run counted that made the rows, where the table is a whole result.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> Option<Py<Metrics>> {
        self.metrics.as_ref().map(|metrics| metrics.clone_ref(py))
    }

    /// The rows that came too late for their windows, where the stream keeps them.
    #[getter]
    fn late(&self, py: Python<'_>) -> Option<Py<ResultTable>> {
        self.late.as_ref().map(|late| late.clone_ref(py))
    }

    /// One table for each batch the rows came in.
    fn to_batches(&self) -> Vec<ResultTable> {
        let batches = self.batches.iter().cloned();
        batches
            .map(|batch| Self::of_batch(batch, &self.schema))
            .collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer hand out its own types whatever is asked for.
        drop(requested_schema);
        let schema = Arc::clone(&self.schema);
        let batches = self.batches.clone().into_iter();
        let batches = batches.map(move |batch| logical(&batch, &schema));
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        stream_capsule(py, Box::new(reader))
    }

    /// The rows as a `pyarrow.Table`, without a copy.
    pub(crate) fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow")?.call_method1("table", (slf,))
    }

    /// The rows as a `polars.DataFrame`.
    pub(crate) fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars")?.call_method1("DataFrame", (slf,))
    }

    /// The rows as a `pandas.DataFrame`.
    pub(crate) fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pandas")?;
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// Each column as a NumPy array, by name.
    pub(crate) fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let table = Self::to_arrow(slf)?;
        let arrays = PyDict::new(slf.py());
        for name in slf.get().columns() {
            let column = table.call_method1("column", (&name,))?;
            arrays.set_item(name, column.call_method0("to_numpy")?)?;
        }
        Ok(arrays)
    }

    /// The rows as dictionaries.
    pub(crate) fn to_pylist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pylist")
    }

    /// Prints the first rows.
    #[pyo3(signature = (rows=20))]
    pub(crate) fn show(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::size)] rows: usize,
    ) -> PyResult<()> {
        let text = self.to_text(rows).or_raise()?;
        py.import("builtins")?
            .call_method1("print", (text.trim_end(),))?;
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> PyResult<String> {
        let text = self.to_text(10).or_raise()?;
        Ok(text.trim_end().to_owned())
    }

    fn _repr_html_(&self) -> PyResult<String> {
        self.to_html(HTML_ROWS).or_raise()
    }
}

/// Adds the class to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ResultTable>()?;
    module.add_class::<ColumnSchema>()?;
    module.add_class::<Metrics>()
}
