//! Stores: rows on disk that last, are queried where they are, and are followed as they arrive.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::engine::runtime::{self, Interrupt};
use tersecades::engine::source::history::HistoryTable;
use tersecades::engine::stream;
use tersecades::prelude::RecordBatch;
use tersecades::sql::{Session, TableTime};
use tersecades::store::{self, StoreOptions, StoreSchema, Writer, parse_fields};

use crate::arrow_table::is_arrow;
use crate::duration::Length;
use crate::error::{OrRaise, invalid};
use crate::projection::Names;
use crate::reading::of_arrow;
use crate::running::{Drive, interruptible};
use crate::stream::Stream;

/// Rows on disk, compressed, and queried in place. One process writes, any number read.
///
/// >>> import pyarrow as pa, tempfile, tersecades as tc
/// >>> folder = tempfile.mkdtemp() + "/probes"
/// >>> with tc.Store.create(folder, "host TEXT, rtt BIGINT", key=["host"]) as store:
/// ...     store.ingest(pa.table({"host": ["a", "b", "a"], "rtt": [10, 20, 30]}))
/// 3
/// >>> store = tc.Store.open(folder, read_only=True)
/// >>> store.query("SELECT max(rtt) AS worst FROM history").to_pylist()
/// [{'worst': 30}]
#[pyclass(frozen, module = "tersecades")]
struct Store {
    /// `None` when it was closed.
    open: Mutex<Option<Arc<store::Store>>>,
    read_only: bool,
}

/// A stream that is being written to a store.
#[pyclass(frozen, module = "tersecades")]
struct Feeding(Arc<Kept>);

impl Store {
    fn new(store: store::Store, read_only: bool) -> Self {
        Store {
            open: Mutex::new(Some(Arc::new(store))),
            read_only,
        }
    }

    /// What is open. It is never held while Python's lock is waited for.
    fn opened(&self) -> MutexGuard<'_, Option<Arc<store::Store>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> PyResult<Arc<store::Store>> {
        let closed = || invalid("the store was closed", "open it again: tc.Store.open(path)");
        self.opened().clone().ok_or_else(closed)
    }
}

/// Stores that were closed while streams over them were there.
static CLOSING: Mutex<Vec<Arc<store::Store>>> = Mutex::new(Vec::new());

/// How long a store that is still held is left alone.
const REST: Duration = Duration::from_millis(20);

/// Closes `store` as soon as nobody else holds it.
fn close_with_the_last(store: Arc<store::Store>) -> std::io::Result<()> {
    let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
    closing.push(store);
    let wait = || {
        while !close_unheld() {
            std::thread::sleep(REST);
        }
    };
    match closing.len() {
        1 => {
            let waiting = std::thread::Builder::new().spawn(wait);
            // Without a thread it is left as it is, which loses no row.
            waiting.map(|_| ()).inspect_err(|_| drop(closing.pop()))
        }
        // The thread of the others closes this one too.
        _ => Ok(()),
    }
}

/// Closes the stores that nobody holds any more; whether that was all.
fn close_unheld() -> bool {
    let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
    for store in std::mem::take(&mut *closing) {
        match Arc::try_unwrap(store) {
            // Nobody waits for it, and its rows are stored whatever it says.
            Ok(store) => drop(store.close()),
            Err(held) => closing.push(held),
        }
    }
    closing.is_empty()
}

/// What is done with rows that come.
type Write = fn(&mut Writer<'_>, &RecordBatch) -> tersecades::Result<u64>;

/// `error`, which came behind `count` rows that are written, with a note of them.
fn behind(py: Python<'_>, count: u64, error: PyErr) -> PyErr {
    if count > 0 {
        let note = format!("the first {count} rows are written");
        // Exceptions take notes from Python 3.11 on.
        drop(error.value(py).call_method1("add_note", (note,)));
    }
    error
}

impl Store {
    fn write(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, how: Write) -> PyResult<u64> {
        let store = self.store()?;
        let mut writer = py.detach(|| store.writer()).or_raise()?;
        let mut drive = Drive::start(py, &stream_of(rows)?.into())?;
        let mut count = 0;
        while let Some(batch) = drive.next(py).map_err(|error| behind(py, count, error))? {
            let written = py.detach(|| how(&mut writer, &batch)).or_raise();
            written.map_err(|error| behind(py, count, error))?;
            count += batch.num_rows() as u64;
        }
        Ok(count)
    }
}

#[pymethods]
impl Store {
    /// Makes an empty store of `columns`, as `"host TEXT, ts TIMESTAMP, rtt DOUBLE"`, and opens it.
    ///
    /// `key` are columns to sort by, `primary_key` those of which each value has one row, each one
    /// name or a list of them, `time` says when a row happened; the other options are those of
    /// `tersecades store create`.
    #[staticmethod]
    #[pyo3(signature = (
        path, columns, *, key=Names::default(), primary_key=Names::default(), time=None, **options
    ))]
    fn create(
        path: PathBuf,
        columns: &str,
        key: Names,
        primary_key: Names,
        time: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut schema = StoreSchema::new(&parse_fields(columns).or_raise()?).or_raise()?;
        let key: Vec<&str> = key.0.iter().map(String::as_str).collect();
        let primary_key: Vec<&str> = primary_key.0.iter().map(String::as_str).collect();
        if !key.is_empty() {
            schema = schema.key(&key).or_raise()?;
        }
        if !primary_key.is_empty() {
            schema = schema.primary_key(&primary_key).or_raise()?;
        }
        if let Some(time) = time {
            schema = schema.time(time).or_raise()?;
        }
        let mut known = StoreOptions::default();
        for (name, value) in options.into_iter().flatten() {
            let (name, value) = (name.to_string(), value.to_string());
            known.set(&name, &value).or_raise()?;
        }
        let made = store::Store::create(&path, schema, known);
        Ok(Store::new(made.or_raise()?, false))
    }

    /// Opens a store for writing, or for reading while another process writes.
    #[staticmethod]
    #[pyo3(signature = (path, *, read_only=false))]
    fn open(py: Python<'_>, path: PathBuf, read_only: bool) -> PyResult<Self> {
        let opened = py.detach(|| {
            // One of them may be this store.
            close_unheld();
            match read_only {
                true => store::Store::open_read_only(&path),
                false => store::Store::open(&path),
            }
        });
        Ok(Store::new(opened.or_raise()?, read_only))
    }

    /// Adds the rows of a stream or a table, which are on disk when this returns; gives their
    /// number.
    fn ingest(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, rows, |writer, rows| writer.append(rows))
    }

    /// Deletes the rows with these primary keys, the columns of a stream or a table; gives the
    /// number of keys.
    fn delete(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, keys, |writer, keys| writer.delete(keys))
    }

    /// The results of a query in SQL over the rows that are there, the table `history`.
    fn query(&self, py: Python<'_>, query: &str) -> PyResult<Stream> {
        let store = self.store()?;
        let planned = interruptible(py, |interrupt| {
            let table = HistoryTable::new(store.snapshot());
            let time = match store.schema().is_primary() {
                true => None,
                false => table.event_time()?,
            };
            let time = time.map(|(column, lateness)| TableTime { column, lateness });
            let mut session = Session::default();
            session.interrupt_with(interrupt);
            session.register("history", Arc::new(table), time)?;
            session.stream(query)
        });
        Ok(planned?.into())
    }

    /// The rows that are there when a query starts, then those that arrive, as one stream, which
    /// ends when the stream that feeds the store does. Of a store that was opened with
    /// `read_only=True` these are the rows that another process writes, until that closes it. A
    /// query that runs holds its store open: `close` does not end it. Rows that arrive may be
    /// `lateness` behind.
    #[pyo3(signature = (*, lateness=None))]
    fn follow(&self, lateness: Option<Length>) -> PyResult<Stream> {
        let store = self.store()?;
        let stream = stream::Stream::from_store(&store).or_raise()?;
        let time = stream.output_time().expression;
        let lateness = lateness.map_or_else(Default::default, |length| length.0);
        Ok(stream.event_time(time, lateness).into())
    }

    /// Writes the rows of `rows` as they flow, on a thread of its own; a stream that begins again
    /// with its first row, known by its `name`, leaves out what is there.
    fn keep(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, name: &str) -> PyResult<Feeding> {
        let (store, rows) = (self.store()?, stream_of(rows)?);
        let feeding = py.detach(|| rows.feed(name, &store)?.start());
        Ok(Feeding::new(feeding.or_raise()?))
    }

    /// Adds columns, as `"w BIGINT"`, which are null in the rows that are there.
    fn add_column(&self, py: Python<'_>, column: &str) -> PyResult<()> {
        let store = self.store()?;
        let fields = parse_fields(column).or_raise()?;
        py.detach(|| store.add_columns(&fields)).or_raise()
    }

    /// Merges all runs into one.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.store()?;
        py.detach(|| store.compact()).or_raise()
    }

    /// Rows ever acknowledged.
    #[getter]
    fn rows(&self) -> PyResult<u64> {
        Ok(self.store()?.snapshot().sequence())
    }

    /// Closes the store, which ends the queries of other processes that follow it; where streams of
    /// `follow` or `keep`, or queries over them, are still held, it closes with the last of them.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.opened().take();
        let close = || match open.map(Arc::try_unwrap) {
            Some(Ok(store)) => store.close(),
            Some(Err(held)) if !self.read_only => Ok(close_with_the_last(held)?),
            // Of one that is read there is nothing to note.
            Some(Err(_)) | None => Ok(()),
        };
        py.detach(close).or_raise()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

#[pymethods]
impl Feeding {
    /// Waits for the end of the stream; gives the number of its rows that are in the store.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        self.end(py, |feeding, interrupt| feeding.finish_unless(&interrupt))
    }

    /// Stops behind the batch that is written; gives the number of rows that are in the store.
    fn stop(&self, py: Python<'_>) -> PyResult<u64> {
        self.end(py, |feeding, interrupt| feeding.stop_unless(&interrupt))
    }
}

type Kept = Mutex<Option<runtime::Feeding>>;

/// All that may be stopped when the interpreter ends.
static FEEDINGS: Mutex<Vec<Weak<Kept>>> = Mutex::new(Vec::new());

/// How long a stream that nobody holds any more is waited for.
const GRACE: Duration = Duration::from_secs(2);

impl Feeding {
    fn new(feeding: runtime::Feeding) -> Self {
        let kept = Arc::new(Mutex::new(Some(feeding)));
        let mut all = FEEDINGS.lock().unwrap_or_else(|held| held.into_inner());
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&kept));
        Feeding(kept)
    }

    /// Ends the stream by `work`; one that goes on after an interrupt is held.
    fn end(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut runtime::Feeding, Interrupt) -> tersecades::Result<u64> + Send,
    ) -> PyResult<u64> {
        let Some(mut feeding) = take(&self.0) else {
            return Ok(0);
        };
        let ended = interruptible(py, |interrupt| work(&mut feeding, interrupt));
        if feeding.is_running() {
            let mut kept = self.0.lock().unwrap_or_else(|held| held.into_inner());
            *kept = Some(feeding);
        }
        ended
    }
}

fn take(kept: &Kept) -> Option<runtime::Feeding> {
    kept.lock().unwrap_or_else(|held| held.into_inner()).take()
}

/// Stops a stream whose rows may be in need of Python's lock.
fn give_up(feeding: runtime::Feeding) {
    Python::try_attach(|py| {
        py.detach(|| {
            // Those who follow have heard of a failure.
            let _ = feeding.stop_within(GRACE);
        });
    });
}

impl Drop for Feeding {
    fn drop(&mut self) {
        take(&self.0).into_iter().for_each(give_up);
    }
}

/// Stops all streams that are being kept, as the interpreter ends, and closes the stores that were
/// closed but for them.
#[pyfunction]
fn _stop_feedings(py: Python<'_>) {
    let all = std::mem::take(&mut *FEEDINGS.lock().unwrap_or_else(|held| held.into_inner()));
    let kept = all.iter().filter_map(Weak::upgrade);
    kept.filter_map(|kept| take(&kept)).for_each(give_up);
    py.detach(close_unheld);
}

/// A stream, or the rows of a table.
fn stream_of(rows: &Bound<'_, PyAny>) -> PyResult<stream::Stream> {
    match rows.cast::<Stream>() {
        Ok(stream) => Ok(stream.get().stream.clone()),
        Err(_) if is_arrow(rows)? => of_arrow(rows),
        Err(_) => {
            let class = rows.get_type();
            let hint = "give a stream, or a table of pyarrow, Polars or pandas";
            Err(invalid(format!("{class} has no rows"), hint))
        }
    }
}

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Store>()?;
    module.add_class::<Feeding>()?;
    let at_exit = module.py().import("atexit")?;
    at_exit.call_method1("register", (wrap_pyfunction!(_stop_feedings, module)?,))?;
    Ok(())
}
