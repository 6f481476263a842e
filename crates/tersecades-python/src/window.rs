//! Windows of Python: what the engine's constructors take, with lengths as text.

use std::time::Duration;

use pyo3::prelude::*;
use tersecades::engine::window;

use crate::duration::Length;
use crate::error::OrRaise;
use crate::join::Distance;
use crate::number;

/// How a stream is cut into windows of event time; made by `tumble`, `hop` and their like.
///
/// >>> import tersecades as tc
/// >>> tc.hop("60s", every="10s")
/// hop 60s every 10s
#[pyclass(name = "Window", module = "tersecades", frozen)]
pub(crate) struct Window {
    pub(crate) window: window::Window,
}

impl Window {
    /// `window`, shifted where the windows come every `period`.
    fn of(window: window::Window, offset: Option<&Distance>, period: Duration) -> Self {
        let window = match offset {
            Some(offset) => window.offset(offset.shift(period)),
            None => window,
        };
        Window { window }
    }
}

#[pymethods]
impl Window {
    /// The name of the kind.
    #[getter]
    fn kind(&self) -> &'static str {
        self.window.kind().name
    }

    fn __repr__(&self) -> String {
        self.window.to_string()
    }
}

/// Windows of `size`, one after the other.
///
/// They are aligned to 1970 UTC, shifted by `offset`, as `"-3s"`; each holds its start and not its
/// end.
///
/// >>> import tersecades as tc
/// >>> tc.tumble("1m")
/// tumble 60s
#[pyfunction]
#[pyo3(signature = (size, *, offset=None))]
fn tumble(size: Length, offset: Option<Distance>) -> Window {
    Window::of(window::tumble(size.0), offset.as_ref(), size.0)
}

/// Windows of `size`, one of which starts at every multiple of `every`; a row is in each that
/// holds its time.
///
/// >>> import tersecades as tc
/// >>> tc.hop("1h", every="5m", offset="30s")
/// hop 3600s every 300s offset 30s
#[pyfunction]
#[pyo3(signature = (size, *, every, offset=None))]
fn hop(size: Length, every: Length, offset: Option<Distance>) -> Window {
    Window::of(window::hop(size.0, every.0), offset.as_ref(), every.0)
}

/// Windows that start every `size` and end a step, two steps, and so on up to `size` later.
///
/// >>> import tersecades as tc
/// >>> tc.cumulate("1h", step="10m")
/// cumulate 3600s by 600s
#[pyfunction]
#[pyo3(signature = (size, *, step, offset=None))]
fn cumulate(size: Length, step: Length, offset: Option<Distance>) -> Window {
    Window::of(window::cumulate(size.0, step.0), offset.as_ref(), size.0)
}

/// For each group, windows of rows less than `gap` apart.
///
/// >>> import tersecades as tc
/// >>> tc.session("30s")
/// session gap 30s
#[pyfunction]
fn session(gap: Length) -> Window {
    Window::of(window::session(gap.0), None, gap.0)
}

/// For each group, windows of so many rows in order of arrival.
///
/// >>> import tersecades as tc
/// >>> tc.count_window(100)
/// count 100 rows
#[pyfunction]
fn count_window(#[pyo3(from_py_with = number::count)] rows: u64) -> Window {
    Window::of(window::count(rows), None, Duration::ZERO)
}

/// Local days, weeks from Monday, months, quarters or years of a time zone.
///
/// >>> import tersecades as tc
/// >>> tc.calendar("day", zone="Europe/Berlin")
/// calendar day in Europe/Berlin
#[pyfunction]
#[pyo3(signature = (unit, *, zone="UTC", offset=None))]
fn calendar(unit: &str, zone: &str, offset: Option<Length>) -> PyResult<Window> {
    let unit = unit.parse().or_raise()?;
    let window = window::calendar(unit, zone).or_raise()?;
    let window = match offset {
        Some(offset) => window.offset(offset.0),
        None => window,
    };
    Ok(Window { window })
}

/// Adds the class and its functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Window>()?;
    module.add_function(wrap_pyfunction!(tumble, module)?)?;
    module.add_function(wrap_pyfunction!(hop, module)?)?;
    module.add_function(wrap_pyfunction!(cumulate, module)?)?;
    module.add_function(wrap_pyfunction!(session, module)?)?;
    module.add_function(wrap_pyfunction!(count_window, module)?)?;
    module.add_function(wrap_pyfunction!(calendar, module)?)
}
