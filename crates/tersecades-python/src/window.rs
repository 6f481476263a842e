//! Windows of Python: what the engine's constructors take, with lengths as text.

use pyo3::prelude::*;
use tersecades::engine::window;

use crate::duration::Length;

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
    fn of(window: window::Window, offset: Option<Length>) -> Self {
        let window = match offset {
            Some(offset) => window.offset(offset.0),
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
/// They are aligned to 1970 UTC, shifted by `offset`; each holds its start and not its end.
///
/// >>> import tersecades as tc
/// >>> tc.tumble("1m")
/// tumble 60s
#[pyfunction]
#[pyo3(signature = (size, *, offset=None))]
fn tumble(size: Length, offset: Option<Length>) -> Window {
    Window::of(window::tumble(size.0), offset)
}

/// Windows of `size`, one of which starts at every multiple of `every`; a row is in each that
/// holds its time.
///
/// >>> import tersecades as tc
/// >>> tc.hop("1h", every="5m", offset="30s")
/// hop 3600s every 300s offset 30s
#[pyfunction]
#[pyo3(signature = (size, *, every, offset=None))]
fn hop(size: Length, every: Length, offset: Option<Length>) -> Window {
    Window::of(window::hop(size.0, every.0), offset)
}

/// Adds the class and its functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Window>()?;
    module.add_function(wrap_pyfunction!(tumble, module)?)?;
    module.add_function(wrap_pyfunction!(hop, module)?)
}
