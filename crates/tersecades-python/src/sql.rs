//! SQL over streams, and over tables of Python that the caller sees by name.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tersecades::engine::expression::Expression;
use tersecades::engine::stream;
use tersecades::sql::{FindTable, TableTime};

use crate::arrow_table::is_arrow;
use crate::duration::Length;
use crate::error::{OrRaise, carry, invalid};
use crate::reading::of_arrow;
use crate::running::interruptible;
use crate::stream::Stream;

/// The session of [`sql`].
static SHARED: LazyLock<Mutex<tersecades::sql::Session>> = LazyLock::new(Mutex::default);

/// Makes a stream of a query in SQL, or runs another statement.
///
/// Names after FROM and JOIN are streams and tables given by name, those that statements created,
/// or those that the caller has in a variable of that name: streams, and tables of pyarrow,
/// Polars, pandas and their like. A path in quotes is a file. What CREATE and SET do lasts: all
/// calls share a session, beside those of `Session`. Streams that are kept in stores (`KEEP ...
/// INTO`) are waited for when the interpreter ends.
///
/// Of several statements the last gives the rows; of one without rows they say what was done.
///
/// >>> import pyarrow as pa, tersecades as tc
/// >>> probes = pa.table({"host": ["a", "b", "a"], "rtt": [10, 20, 30]})
/// >>> tc.sql("SELECT host, sum(rtt) AS total FROM probes GROUP BY host ORDER BY host").to_pylist()
/// [{'host': 'a', 'total': 40}, {'host': 'b', 'total': 20}]
/// >>> tc.sql("SELECT count(*) AS n FROM t", t=probes).to_pylist()
/// [{'n': 3}]
/// >>> tc.sql("CREATE OR REPLACE TABLE slow AS SELECT * FROM probes WHERE rtt > 15").to_pylist()
/// [{'done': 'table slow: 2 rows'}]
/// >>> tc.sql("SELECT count(*) AS n FROM slow").to_pylist()
/// [{'n': 2}]
#[pyfunction]
#[pyo3(signature = (query, **tables))]
fn sql(py: Python<'_>, query: &str, tables: Option<&Bound<'_, PyDict>>) -> PyResult<Stream> {
    run(py, &SHARED, query, tables)
}

/// Tables by name, options, and the statements that run over them, apart from those of `sql`.
///
/// >>> import pyarrow as pa, tersecades as tc
/// >>> with tc.Session() as session:
/// ...     session.register("probes", pa.table({"host": ["a", "b", "a"], "rtt": [10, 20, 30]}))
/// ...     _ = session.sql("CREATE STREAM slow AS SELECT * FROM probes WHERE rtt > 15")
/// ...     session.tables, session.sql("SELECT max(rtt) AS worst FROM slow").to_pylist()
/// (['probes', 'slow'], [{'worst': 30}])
#[pyclass(frozen, module = "tersecades")]
struct Session {
    session: Mutex<tersecades::sql::Session>,
}

impl Drop for Session {
    /// Streams that it keeps may be in need of Python's lock to end.
    fn drop(&mut self) {
        let held = self.session.get_mut();
        let session = std::mem::take(held.unwrap_or_else(PoisonError::into_inner));
        Python::try_attach(|py| py.detach(|| drop(session)));
    }
}

#[pymethods]
impl Session {
    #[new]
    fn new() -> Self {
        Session {
            session: Mutex::default(),
        }
    }

    /// Makes a stream of a query, or runs another statement, as the function `sql` does.
    #[pyo3(signature = (query, **tables))]
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        tables: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        run(py, &self.session, query, tables)
    }

    /// Gives a stream, a table of another library, or the file at a path the name `name`.
    ///
    /// `event_time` is the column of when a row happened, `lateness` how far behind the newest row
    /// a row may come; a stream may have its own.
    #[pyo3(signature = (name, table, *, event_time=None, lateness=None))]
    fn register(
        &self,
        py: Python<'_>,
        name: &str,
        table: &Bound<'_, PyAny>,
        event_time: Option<String>,
        lateness: Option<Length>,
    ) -> PyResult<()> {
        let time = match (event_time, lateness) {
            (Some(column), lateness) => Some(TableTime {
                column,
                lateness: lateness.map(|length| length.0).unwrap_or_default(),
            }),
            (None, None) => None,
            (None, Some(_)) => {
                let hint = "give event_time too, the column of when a row happened";
                return Err(invalid("lateness without event_time", hint));
            }
        };
        // Others use the session while an object of Python is asked and a file is opened.
        let given = Given::new(name, table, time)?;
        let mut fork = lock(&self.session).fork();
        let before = fork.tables();
        let registered = py.detach(|| {
            given.register(&mut fork, name)?;
            lock(&self.session).adopt(fork, &before);
            Ok(())
        });
        registered.or_raise()
    }

    /// Names of the tables.
    #[getter]
    fn tables(&self) -> Vec<String> {
        let session = lock(&self.session);
        session
            .table_names()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// Waits until the streams that are kept in stores (`KEEP ... INTO`) have ended and all their
    /// rows are there.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        finish(py, &self.session)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Waits as `finish` does, unless the block raised.
    #[pyo3(signature = (class, _raised, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        class: Option<&Bound<'_, PyAny>>,
        _raised: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match class {
            Some(_) => Ok(()),
            None => self.finish(py),
        }
    }

    fn __repr__(&self) -> String {
        format!("Session(tables={:?})", self.tables())
    }
}

fn finish(py: Python<'_>, session: &Mutex<tersecades::sql::Session>) -> PyResult<()> {
    let mut fork = lock(session).fork();
    interruptible(py, |interrupt| {
        fork.interrupt_with(interrupt);
        fork.finish()
    })
}

/// Waits for the streams that statements of [`sql`] keep in stores, as the interpreter ends.
#[pyfunction]
fn _finish_statements(py: Python<'_>) -> PyResult<()> {
    finish(py, &SHARED)
}

fn lock(session: &Mutex<tersecades::sql::Session>) -> MutexGuard<'_, tersecades::sql::Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the statements of `query` in a copy of `session`, which then has what they created.
fn run(
    py: Python<'_>,
    session: &Mutex<tersecades::sql::Session>,
    query: &str,
    tables: Option<&Bound<'_, PyDict>>,
) -> PyResult<Stream> {
    let mut fork = lock(session).fork();
    for (name, table) in tables.into_iter().flatten() {
        let name = name.extract::<String>()?;
        let given = Given::new(&name, &table, None)?;
        py.detach(|| given.register(&mut fork, &name)).or_raise()?;
    }
    fork.find_tables_with(variables(py)?);
    let before = fork.tables();
    let last = interruptible(py, |interrupt| {
        fork.interrupt_with(interrupt);
        let last = fork.last_of(query);
        lock(session).adopt(fork, &before);
        last
    });
    Ok(last?.into())
}

/// Finds tables among the variables of the caller.
fn variables(py: Python<'_>) -> PyResult<FindTable> {
    let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    let scopes = [frame.getattr("f_locals")?, frame.getattr("f_globals")?].map(Bound::unbind);
    Ok(Arc::new(move |name: &str| {
        Python::attach(|py| {
            let found = find_variable(scopes.each_ref().map(|scope| scope.bind(py)), name);
            let stream = match found {
                Ok(Some(variable)) if variable.cast::<PyString>().is_err() => stream_of(&variable),
                other => other.map(|_| None),
            };
            let stream = stream.map_err(|raised| carry(py, raised))?;
            stream
                .map(|stream| Ok((stream.clone(), time_of(&stream)?)))
                .transpose()
        })
    }))
}

/// The variable `name`, or the one that SQL makes `name` of where it stands without quotes.
fn find_variable<'py>(
    scopes: [&Bound<'py, PyAny>; 2],
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    for scope in scopes {
        if scope.contains(name)? {
            return scope.get_item(name).map(Some);
        }
    }
    for scope in scopes {
        for key in scope.try_iter()? {
            let key = key?;
            let same = |key: &str| key.to_lowercase() == name;
            if key.extract::<String>().is_ok_and(|key| same(&key)) {
                return scope.get_item(key).map(Some);
            }
        }
    }
    Ok(None)
}

fn no_table(name: &str, table: &Bound<'_, PyAny>) -> PyErr {
    let class = table.get_type();
    let hint = "give a stream, a table of pyarrow, Polars or pandas, or the path of a file";
    invalid(format!("`{name}` is {class}, no table"), hint)
}

/// The stream that `table` is; `None` for what is no table.
fn stream_of(table: &Bound<'_, PyAny>) -> PyResult<Option<stream::Stream>> {
    match table.cast::<Stream>() {
        Ok(stream) => Ok(Some(stream.get().stream.clone())),
        Err(_) if is_arrow(table)? => of_arrow(table).map(Some),
        Err(_) => Ok(None),
    }
}

/// What is given a name in a session, with its event time.
pub(crate) enum Given {
    /// The file at a path.
    File(String, Option<TableTime>),
    /// Rows of an object of Python.
    Stream(Box<stream::Stream>, Option<TableTime>),
}

impl Given {
    /// What `table`, which is to be `name`, is; a stream may have a time of its own.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no table; what objects of Python raise.
    pub(crate) fn new(
        name: &str,
        table: &Bound<'_, PyAny>,
        time: Option<TableTime>,
    ) -> PyResult<Self> {
        if let Ok(path) = table.cast::<PyString>() {
            return Ok(Given::File(path.to_string(), time));
        }
        let stream = stream_of(table)?.ok_or_else(|| no_table(name, table))?;
        let time = match time {
            None => time_of(&stream).or_raise()?,
            time => time,
        };
        Ok(Given::Stream(Box::new(stream), time))
    }

    /// Gives it the name `name` in `session`.
    ///
    /// # Errors
    /// What opening the file says; `InvalidArgument` where the event time is no column.
    pub(crate) fn register(
        self,
        session: &mut tersecades::sql::Session,
        name: &str,
    ) -> tersecades::Result<()> {
        match self {
            Given::File(path, time) => session.register_file(name, path, time),
            Given::Stream(stream, time) => session.register_stream(name, *stream, time),
        }
    }
}

/// Where `stream` has its event time, if that is a column of it.
fn time_of(stream: &stream::Stream) -> tersecades::Result<Option<TableTime>> {
    let time = stream.output_time();
    let Expression::Column(column) = time.expression else {
        return Ok(None);
    };
    let found = stream.schema()?.column_with_name(&column).is_some();
    Ok(found.then_some(TableTime {
        column,
        lateness: time.lateness,
    }))
}

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Session>()?;
    let at_exit = module.py().import("atexit")?;
    at_exit.call_method1("register", (wrap_pyfunction!(_finish_statements, module)?,))?;
    module.add_function(wrap_pyfunction!(sql, module)?)
}
