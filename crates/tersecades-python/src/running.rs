//! Running a stream: the engine works without Python's lock, and is interrupted between batches.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use tersecades::Result;
use tersecades::engine::runtime;

use crate::error::{OrRaise, invalid};
use crate::metrics::Metrics;
use crate::progress_bar::Progress;
use crate::schema::ColumnSchema;
use crate::stream::Stream;
use crate::table::ResultTable;

/// How long the engine works before it looks for Ctrl-C.
///
/// Taking Python's lock back may wait for another thread, so not every batch does.
const TURN: Duration = Duration::from_millis(20);

/// What a turn ended with.
enum Turn {
    Result(RecordBatch),
    Time,
    End,
}

/// A query that is run from Python.
pub(crate) struct Drive {
    running: runtime::Running,
    schema: SchemaRef,
    progress: Progress,
    over: bool,
}

impl Drive {
    /// Starts `stream`.
    pub(crate) fn start(py: Python<'_>, stream: &Stream) -> PyResult<Self> {
        let stream = stream.stream.clone();
        let running = py.detach(|| stream.run()).or_raise()?;
        Ok(Drive {
            schema: running.schema(),
            running,
            progress: Progress::start(),
            over: false,
        })
    }

    /// The next batch of results, or `None` at the end.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if self.over {
            return Ok(None);
        }
        let next = self.next_of_open(py);
        if !matches!(next, Ok(Some(_))) {
            self.over = true;
            self.progress.finish(py);
        }
        next
    }

    fn next_of_open(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            let running = &mut self.running;
            let turn = py.detach(|| take_turn(running));
            py.check_signals()?;
            if self.progress.is_due() {
                let all = self.running.rows_hint();
                self.progress.show(py, self.running.metrics().rows, all);
            }
            match turn.or_raise()? {
                Turn::Result(batch) => return logical(&batch, &self.schema).map(Some),
                Turn::End => return Ok(None),
                Turn::Time => {}
            }
        }
    }

    /// All results.
    pub(crate) fn collect(mut self, py: Python<'_>) -> PyResult<ResultTable> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next(py)? {
            batches.push(batch);
        }
        Ok(ResultTable {
            schema: Arc::clone(&self.schema),
            batches,
            metrics: Some(Py::new(py, Metrics::from(self.running.metrics()))?),
            late: self.take_late().map(|late| Py::new(py, late)).transpose()?,
        })
    }

    /// The query itself.
    pub(crate) fn running(&self) -> &runtime::Running {
        &self.running
    }

    fn take_late(&mut self) -> Option<ResultTable> {
        let batches = self.running.take_late();
        let schema = batches.first()?.schema();
        Some(ResultTable {
            schema,
            batches,
            metrics: None,
            late: None,
        })
    }
}

/// `batch` with the types that `schema` promises: text that is kept as codes becomes text.
fn logical(batch: &RecordBatch, schema: &SchemaRef) -> PyResult<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(
        |(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        },
    );
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let converted = columns
        .collect::<std::result::Result<Vec<_>, _>>()
        .and_then(|columns| {
            RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        });
    converted.map_err(tersecades::Error::from).or_raise()
}

fn take_turn(running: &mut runtime::Running) -> Result<Turn> {
    let began = Instant::now();
    loop {
        if let Some(batch) = running.take_result() {
            return Ok(Turn::Result(batch));
        }
        if !running.step()? {
            return Ok(running.take_result().map_or(Turn::End, Turn::Result));
        }
        if began.elapsed() > TURN {
            return Ok(Turn::Time);
        }
    }
}

/// A stream that runs: an iterator of tables, one for each batch of results as windows close.
///
/// >>> import tersecades as tc
/// >>> probes = tc.generate("pingmesh", rows=100_000)
/// >>> counts = probes.window(tc.tumble("1s")).agg(n=tc.count())
/// >>> sum(len(table) for table in counts.stream()) == len(counts.collect())
/// True
#[pyclass(name = "Running", module = "tersecades")]
pub(crate) struct Running {
    drive: Mutex<Drive>,
}

impl Running {
    /// Starts `stream`.
    pub(crate) fn start(py: Python<'_>, stream: &Stream) -> PyResult<Self> {
        let drive = Mutex::new(Drive::start(py, stream)?);
        Ok(Running { drive })
    }

    /// Nobody else can hold the lock while `self` is borrowed alone.
    fn drive(&mut self) -> &mut Drive {
        self.drive
            .get_mut()
            .unwrap_or_else(|held| held.into_inner())
    }
}

#[pymethods]
impl Running {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<ResultTable>> {
        let batch = self.drive().next(py)?;
        Ok(batch.map(ResultTable::of_batch))
    }

    /// Columns of the results.
    #[getter]
    fn schema(&mut self) -> ColumnSchema {
        self.drive().running.schema().into()
    }

    /// What has been counted so far.
    #[getter]
    fn metrics(&mut self) -> Metrics {
        self.drive().running.metrics().into()
    }

    /// Bytes of window state and retained batches.
    #[getter]
    fn state_bytes(&mut self) -> usize {
        self.drive().running.state_bytes()
    }

    /// Takes the late rows so far, where the stream keeps them; `None` without any.
    fn take_late(&mut self) -> Option<ResultTable> {
        self.drive().take_late()
    }

    /// What is kept of the stream, as a stream of its own; needs `.keep(...)`.
    fn retained(&mut self) -> PyResult<Stream> {
        match self.drive().running.retained() {
            Some(retained) => Ok(Stream::of_retained(retained)),
            None => Err(invalid(
                "nothing of this stream is kept",
                "call .keep(\"10m\") first",
            )),
        }
    }
}

/// Results for a library that pulls them through Arrow's C interface.
impl Iterator for Drive {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::attach(|py| Drive::next(self, py));
        let external = |raised: PyErr| ArrowError::ExternalError(Box::new(raised));
        next.map_err(external).transpose()
    }
}

impl RecordBatchReader for Drive {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
