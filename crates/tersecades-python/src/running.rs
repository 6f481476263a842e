//! Running a stream: the engine works without Python's lock, and is interrupted between batches.

use std::cell::Cell;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tersecades::engine::runtime::{self, Interrupt};
use tersecades::engine::stream;
use tersecades::prelude::{Keep, count};
use tersecades::{Error, Result};

use crate::error::{OrRaise, carry, invalid, raise};
use crate::metrics::{Metrics, time_unit};
use crate::open_window::open_windows;
use crate::progress_bar::Progress;
use crate::schema::ColumnSchema;
use crate::stream::Stream;
use crate::table::ResultTable;
use crate::turn::Turns;

/// How long the engine works before it looks for Ctrl-C, or whether progress is to be shown.
///
/// Taking Python's lock back may wait for another thread, so not every batch does.
const TURN: Duration = Duration::from_millis(20);

thread_local! {
    /// When this thread looked for Ctrl-C; Python tells the main one alone.
    static LOOKED: Cell<Instant> = Cell::new(Instant::now());
}

/// Looks for Ctrl-C, also in the midst of work that gives nothing for long, as reading the right
/// side of a join.
fn control_c() -> Interrupt {
    Interrupt::new(|| {
        if LOOKED.get().elapsed() < TURN {
            return Ok(());
        }
        let signals = Python::attach(|py| py.check_signals().map_err(|raised| carry(py, raised)));
        LOOKED.set(Instant::now());
        signals
    })
}

/// Does `work` on another thread, while this one looks for Ctrl-C, which Python tells no other.
///
/// # Errors
/// What the work says; `KeyboardInterrupt`, and whatever else handlers of signals raise.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Interrupt) -> Result<T> + Send,
) -> PyResult<T> {
    let raised = Arc::new(OnceLock::new());
    let asked = Arc::clone(&raised);
    let interrupt = Interrupt::new(move || asked.get().cloned().map_or(Ok(()), Err));
    let control_c = control_c();
    let worked = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            let working = scope.spawn(move || {
                let _done = done;
                work(interrupt)
            });
            while is_done.recv_timeout(TURN) == Err(mpsc::RecvTimeoutError::Timeout) {
                if let Err(error) = control_c.check() {
                    let _ = raised.set(error);
                }
            }
            let worked = working.join();
            worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    match raised.get() {
        Some(error) => Err(error.clone()).or_raise(),
        None => worked.or_raise(),
    }
}

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
        Drive::run(py, stream.stream.clone())
    }

    fn run(py: Python<'_>, stream: stream::Stream) -> PyResult<Self> {
        let stream = stream.interrupt(control_c());
        let running = py.detach(|| stream.run()).or_raise()?;
        Ok(Drive {
            schema: running.schema(),
            running,
            progress: Progress::start(),
            over: false,
        })
    }

    /// The next batch of results, or `None` at the end; text may still be codes.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            match self.turn(py)? {
                Turn::Result(batch) => return Ok(Some(batch)),
                Turn::End => return Ok(None),
                Turn::Time => {}
            }
        }
    }

    /// Works for a while, or until there is a result.
    fn turn(&mut self, py: Python<'_>) -> PyResult<Turn> {
        if self.over {
            return Ok(Turn::End);
        }
        let running = &mut self.running;
        let turn = py.detach(|| take_turn(running));
        if self.progress.is_due() {
            let all = self.running.rows_hint();
            self.progress.show(py, self.running.metrics().rows, all);
        }
        if matches!(turn, Ok(Turn::End) | Err(_)) {
            self.over = true;
            self.progress.finish(py);
        }
        turn.or_raise()
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
            metrics: Some(Py::new(py, Metrics::of(&self.running))?),
            late: self.take_late().map(|late| Py::new(py, late)).transpose()?,
            read: OnceLock::new(),
        })
    }

    /// Runs `stream` to its end, and hands out all its rows as they are kept, encoded.
    pub(crate) fn keep_whole(py: Python<'_>, stream: &Stream) -> PyResult<Stream> {
        let rows = match stream.stream.is_plain() {
            true => stream.stream.clone(),
            false => stream.stream.clone().as_source().or_raise()?,
        };
        let rows = rows.keep(Keep::Bytes(usize::MAX)).aggregate([count()]);
        let mut drive = Drive::run(py, rows)?;
        while drive.next(py)?.is_some() {}
        match drive.running.retained() {
            Some(retained) => Ok(Stream::of_retained(retained)),
            None => Err(raise(
                py,
                &Error::internal("a stream that is kept has kept nothing"),
            )),
        }
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
            read: OnceLock::new(),
        })
    }
}

impl Drop for Drive {
    /// Threads of the run may be in need of Python's lock to end.
    fn drop(&mut self) {
        let running = &mut self.running;
        Python::try_attach(|py| py.detach(|| running.stop()));
    }
}

/// `batch` with the types that `schema` promises: text that is kept as codes becomes text.
///
/// # Errors
/// `CastError` for types that do not fit.
pub(crate) fn logical(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> std::result::Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(
        |(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        },
    );
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
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
///
/// Threads take turns at it: each table goes to one of them. Functions and sources of the query
/// itself cannot wait for it.
#[pyclass(name = "Running", module = "tersecades", frozen)]
pub(crate) struct Running {
    drive: Turns<Drive>,
    schema: SchemaRef,
}

impl Running {
    /// Starts `stream`.
    pub(crate) fn start(py: Python<'_>, stream: &Stream) -> PyResult<Self> {
        let drive = Drive::start(py, stream)?;
        Ok(Running {
            schema: Arc::clone(&drive.schema),
            drive: Turns::new(drive),
        })
    }

    /// The run with the state of an earlier one.
    pub(crate) fn restored(
        mut self,
        py: Python<'_>,
        snapshot: &[u8],
        from_first: bool,
    ) -> PyResult<Self> {
        let running = &mut self.drive.get_mut().running;
        py.detach(|| match from_first {
            true => running.resume(snapshot),
            false => running.restore(snapshot),
        })
        .or_raise()?;
        Ok(self)
    }

    fn table(&self, batch: RecordBatch) -> ResultTable {
        ResultTable::of_batch(batch, &self.schema)
    }
}

#[pymethods]
impl Running {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ResultTable>> {
        loop {
            match self.drive.take(py)?.turn(py)? {
                Turn::Result(batch) => return Ok(Some(self.table(batch))),
                Turn::End => return Ok(None),
                Turn::Time => {}
            }
        }
    }

    /// Columns of the results.
    #[getter]
    fn schema(&self) -> ColumnSchema {
        Arc::clone(&self.schema).into()
    }

    /// What has been counted so far.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Metrics> {
        Ok(Metrics::of(&self.drive.take(py)?.running))
    }

    /// Rows of the stream read so far, those before a snapshot included; `None` where it is made of
    /// several streams, which are read anew, or lies in memory encoded.
    #[getter]
    fn rows_read(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.drive.take(py)?.running.rows_read())
    }

    /// Bytes of window state and retained batches.
    #[getter]
    fn state_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.drive.take(py)?.running.state_bytes())
    }

    /// Takes in one batch, without waiting for a result; false at the end. Results are then had
    /// by `take_ready()`.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        let running = &mut self.drive.take(py)?.running;
        py.detach(|| running.step()).or_raise()
    }

    /// The next result if it is there already, else `None`; nothing is read for it.
    fn take_ready(&self, py: Python<'_>) -> PyResult<Option<ResultTable>> {
        let ready = self.drive.take(py)?.running.take_result();
        Ok(ready.map(|batch| self.table(batch)))
    }

    /// The windows that have rows and have not closed, and what each waits for: a row for each.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> def batches():
    /// ...     for second in (1, 12, 13):
    /// ...         time = pa.array([second * 1_000], pa.timestamp("ms"))
    /// ...         yield pa.record_batch({"timestamp": time})
    /// >>> running = tc.from_batches(batches()).window(tc.tumble("10s")).agg(n=tc.count()).stream()
    /// >>> first = next(running)
    /// >>> running.why_open().to_pylist()[0]["behind_by"]
    /// datetime.timedelta(seconds=8)
    fn why_open(&self, py: Python<'_>) -> PyResult<ResultTable> {
        let running = &mut self.drive.take(py)?.running;
        let windows = py.detach(|| running.why_open()).or_raise()?;
        open_windows(&windows, time_unit(running)).or_raise()
    }

    /// All state of the run, for `Stream.stream(snapshot=...)` of the same query, which goes on
    /// behind `rows_read` rows.
    ///
    /// A run that follows a store finds its place itself: see `docs/store.md`.
    /// Results that wait, as `take_ready()` would give, are part of it. One of other columns, steps
    /// or tables to look up is refused; what Python functions do cannot be compared.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> rows = [pa.record_batch({"n": [n]}) for n in range(10)]
    /// >>> def total(rows):
    /// ...     return tc.from_batches(rows).agg(n=tc.sum("n"))
    /// >>> running = total(rows).stream()
    /// >>> running.step(), running.step()
    /// (True, True)
    /// >>> state = running.snapshot()
    /// >>> rest = total(rows[running.rows_read:]).stream(snapshot=state)
    /// >>> [table.to_pylist() for table in rest]
    /// [[{'n': 45}]]
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let running = &mut self.drive.take(py)?.running;
        let state = py.detach(|| running.snapshot()).or_raise()?;
        Ok(PyBytes::new(py, &state))
    }

    /// Takes the late rows so far, where the stream keeps them; `None` without any.
    fn take_late(&self, py: Python<'_>) -> PyResult<Option<ResultTable>> {
        Ok(self.drive.take(py)?.take_late())
    }

    /// What is kept of the stream, as a stream of its own; needs `.keep(...)`.
    fn retained(&self, py: Python<'_>) -> PyResult<Stream> {
        match self.drive.take(py)?.running.retained() {
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
        let next = next.map_err(external).transpose()?;
        Some(next.and_then(|batch| logical(&batch, &self.schema)))
    }
}

impl RecordBatchReader for Drive {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
