//! Exceptions: one class per kind of error, all under `tersecades.Error`, and Python's own
//! exceptions carried through the engine.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::{
    PyException, PyNotImplementedError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use tersecades::{Error, ErrorKind};

/// Every kind, the name of its class, and what the class says of itself.
const KINDS: &[(ErrorKind, &str, &str)] = &[
    (
        ErrorKind::InvalidArgument,
        "InvalidArgument",
        "Something was asked for that makes no sense, as an unknown column.",
    ),
    (
        ErrorKind::SchemaMismatch,
        "SchemaMismatch",
        "Types or columns do not match what is expected.",
    ),
    (
        ErrorKind::Corrupt,
        "Corrupt",
        "Bytes that should be a file or a batch are damaged.",
    ),
    (
        ErrorKind::Unsupported,
        "Unsupported",
        "Legal, but not supported; the hint names what is.",
    ),
    (
        ErrorKind::LimitExceeded,
        "LimitExceeded",
        "A named limit (memory, cardinality, range of a result) would be exceeded.",
    ),
    (ErrorKind::Io, "Io", "The operating system said no."),
    (
        ErrorKind::Interrupted,
        "Interrupted",
        "The work was stopped from outside.",
    ),
    (
        ErrorKind::Internal,
        "Internal",
        "A fault of the engine that was caught before it could give a wrong answer.",
    ),
];

/// Exceptions of Python that are held while an engine error stands for them.
const CARRIED_LIMIT: usize = 64;

/// What the message of an engine error holds that stands for an exception of Python.
const CARRIED_MARK: &str = "[exception ";

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

static CARRIED: Mutex<Carried> = Mutex::new(Carried {
    next: 0,
    held: VecDeque::new(),
});

struct Classes {
    base: Py<PyType>,
    kinds: Vec<Py<PyType>>,
}

struct Carried {
    next: u64,
    held: VecDeque<(u64, PyErr)>,
}

/// Adds the exception classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let classes = classes(py)?;
    module.add("Error", classes.base.clone_ref(py))?;
    for ((_, name, _), class) in KINDS.iter().zip(&classes.kinds) {
        module.add(*name, class.clone_ref(py))?;
    }
    Ok(())
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let doc = "What every exception of this package derives from: `message`, `hint`, and the \
                   `file`, `row` and `column` it is about.";
        let base = make_class(py, "Error", vec![py.get_type::<PyException>()], doc)?;
        for place in ["message", "hint", "file", "row", "column"] {
            base.setattr(place, py.None())?;
        }
        let kinds = KINDS.iter().map(|(kind, name, doc)| {
            let mut bases = vec![base.clone()];
            bases.extend(builtin_base(py, *kind));
            Ok(make_class(py, name, bases, doc)?.unbind())
        });
        let kinds: PyResult<Vec<_>> = kinds.collect();
        Ok(Classes {
            kinds: kinds?,
            base: base.unbind(),
        })
    })
}

fn make_class<'py>(
    py: Python<'py>,
    name: &str,
    bases: Vec<Bound<'py, PyType>>,
    doc: &str,
) -> PyResult<Bound<'py, PyType>> {
    let content = PyDict::new(py);
    content.set_item("__doc__", doc)?;
    content.set_item("__module__", "tersecades")?;
    let bases = PyTuple::new(py, bases)?;
    let class = py.get_type::<PyType>().call1((name, bases, content))?;
    Ok(class.cast_into::<PyType>()?)
}

/// The class of the language that says the same.
fn builtin_base(py: Python<'_>, kind: ErrorKind) -> Option<Bound<'_, PyType>> {
    match kind {
        ErrorKind::InvalidArgument => Some(py.get_type::<PyValueError>()),
        ErrorKind::SchemaMismatch => Some(py.get_type::<PyTypeError>()),
        ErrorKind::Unsupported => Some(py.get_type::<PyNotImplementedError>()),
        ErrorKind::Io => Some(py.get_type::<PyOSError>()),
        ErrorKind::Internal => Some(py.get_type::<PyRuntimeError>()),
        ErrorKind::Corrupt | ErrorKind::LimitExceeded | ErrorKind::Interrupted => None,
    }
}

/// Results of the engine as results of Python.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for tersecades::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| Python::attach(|py| raise(py, &error)))
    }
}

/// The exception for `error`; the first time the one of Python that it stands for, if it does.
///
/// A run that is asked again says of what class that was: to keep it would keep the frames that it
/// came through, and what they hold, the run among it.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(exception) = carried_number(error).and_then(take_carried) {
        return exception;
    }
    match build(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

fn build<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let classes = classes(py)?;
    let position = KINDS.iter().position(|(kind, ..)| *kind == error.kind());
    let class = position.map_or(&classes.base, |position| &classes.kinds[position]);
    let shown = error.to_string();
    let (shown, message) = (without_mark(&shown), without_mark(error.message()));
    let exception = class.bind(py).call1((shown,))?;
    exception.setattr("message", message)?;
    exception.setattr("hint", error.hint_text())?;
    let place = error.context();
    exception.setattr("file", place.file.as_deref())?;
    exception.setattr("row", place.row)?;
    exception.setattr("column", place.column.as_deref())?;
    Ok(exception)
}

/// `InvalidArgument` as an exception.
pub(crate) fn invalid(message: impl Into<String>, hint: &str) -> PyErr {
    Python::attach(|py| raise(py, &Error::invalid(message).hint(hint)))
}

/// An engine error that stands for `exception` until it is raised again.
pub(crate) fn carry(py: Python<'_>, exception: PyErr) -> Error {
    let said = exception.value(py).to_string();
    let class = exception.get_type(py).to_string();
    let (number, forgotten) = lock().hold(exception);
    // What goes with it may run code of Python, which may come here again.
    drop(forgotten);
    let message = format!("Python raised {class}: {said} {CARRIED_MARK}{number}]");
    Error::new(ErrorKind::Interrupted, message)
}

impl Carried {
    /// Holds `exception`; gives its number, and the one that there is no more room for.
    fn hold(&mut self, exception: PyErr) -> (u64, Option<(u64, PyErr)>) {
        let number = self.next;
        self.next += 1;
        let is_full = self.held.len() == CARRIED_LIMIT;
        let forgotten = is_full.then(|| self.held.pop_front()).flatten();
        self.held.push_back((number, exception));
        (number, forgotten)
    }
}

/// The number of the exception that `error` stands for, if it does.
fn carried_number(error: &Error) -> Option<u64> {
    let (_, number) = error.message().rsplit_once(CARRIED_MARK)?;
    let (number, _) = number.split_once(']')?;
    number.parse().ok()
}

/// What `said` says to people.
fn without_mark(said: &str) -> Cow<'_, str> {
    let marked = said.rsplit_once(CARRIED_MARK);
    match marked.and_then(|(before, behind)| Some((before, behind.split_once(']')?))) {
        Some((before, (number, behind))) if number.parse::<u64>().is_ok() => {
            Cow::Owned(format!("{}{behind}", before.trim_end()))
        }
        _ => Cow::Borrowed(said),
    }
}

fn take_carried(number: u64) -> Option<PyErr> {
    let mut carried = lock();
    let at = carried.held.iter().position(|(held, _)| *held == number)?;
    carried.held.remove(at).map(|(_, exception)| exception)
}

fn lock() -> MutexGuard<'static, Carried> {
    CARRIED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
