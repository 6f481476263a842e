//! A progress bar for work that takes long: on a terminal, or in a notebook; nowhere else.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pyo3::prelude::*;
use pyo3::types::PyDict;

const TEMPLATE: &str = "{wide_bar} {human_pos} of {human_len} rows, {per_sec}, {eta} left";
const TEMPLATE_RUNS: &str = "running queries {wide_bar} {pos}/{len}";
const TEMPLATE_ENDLESS: &str = "{spinner} {human_pos} rows, {per_sec}";

/// Work that ends before shows nothing.
const DELAY: Duration = Duration::from_millis(700);

const INTERVAL: Duration = Duration::from_millis(150);

static ENABLED: AtomicBool = AtomicBool::new(true);

enum Bar {
    Terminal(ProgressBar),
    /// The handle of what IPython displays.
    Notebook(Py<PyAny>),
    Nowhere,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Rows,
    Runs,
}

/// Shows how many rows have arrived, or how many queries have run.
pub(crate) struct Progress {
    unit: Unit,
    bar: Option<Bar>,
    began: Instant,
    shown: Instant,
}

impl Progress {
    /// A bar of rows that appears when the work takes long.
    pub(crate) fn start() -> Self {
        Progress::of(Unit::Rows)
    }

    /// The same, of runs of queries.
    #[cfg(feature = "sql")]
    pub(crate) fn runs() -> Self {
        Progress::of(Unit::Runs)
    }

    fn of(unit: Unit) -> Self {
        let now = Instant::now();
        Progress {
            unit,
            bar: None,
            began: now,
            shown: now,
        }
    }

    /// Whether it is time for [`Progress::show`].
    pub(crate) fn is_due(&self) -> bool {
        self.began.elapsed() > DELAY && self.shown.elapsed() > INTERVAL
    }

    /// `rows` of `all` have arrived, or have run.
    pub(crate) fn show(&mut self, py: Python<'_>, rows: u64, all: Option<u64>) {
        self.shown = Instant::now();
        match self
            .bar
            .get_or_insert_with(|| Bar::open(py, self.unit, all))
        {
            Bar::Terminal(bar) => bar.set_position(rows),
            Bar::Notebook(handle) => {
                let seconds = self.began.elapsed().as_secs_f64();
                let text = notebook_text(self.unit, rows, all, seconds);
                // What a notebook cannot show is no reason to stop the query.
                let _ = mime(py, &text).and_then(|text| update(handle.bind(py), &text));
            }
            Bar::Nowhere => {}
        }
    }

    /// The work is over.
    pub(crate) fn finish(&mut self, py: Python<'_>) {
        match self.bar.take() {
            Some(Bar::Terminal(bar)) => bar.finish_and_clear(),
            Some(Bar::Notebook(handle)) => {
                let _ = mime(py, "").and_then(|text| update(handle.bind(py), &text));
            }
            Some(Bar::Nowhere) | None => {}
        }
    }
}

impl Bar {
    fn open(py: Python<'_>, unit: Unit, all: Option<u64>) -> Self {
        if !ENABLED.load(Ordering::Relaxed) {
            return Bar::Nowhere;
        }
        if let Ok(Some(handle)) = notebook(py) {
            return Bar::Notebook(handle);
        }
        if !std::io::stderr().is_terminal() {
            return Bar::Nowhere;
        }
        let (bar, template) = match all {
            Some(runs) if unit == Unit::Runs => (ProgressBar::new(runs), TEMPLATE_RUNS),
            Some(rows) => (ProgressBar::new(rows), TEMPLATE),
            None => (ProgressBar::new_spinner(), TEMPLATE_ENDLESS),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar::Terminal(bar)
    }
}

/// The handle of an empty display, when the caller is a notebook.
fn notebook(py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    if !modules.contains("IPython")? {
        return Ok(None);
    }
    let shell = py.import("IPython")?.call_method0("get_ipython")?;
    if shell.get_type().name()? != "ZMQInteractiveShell" {
        return Ok(None);
    }
    let options = PyDict::new(py);
    options.set_item("display_id", true)?;
    options.set_item("raw", true)?;
    let display = py.import("IPython.display")?.getattr("display")?;
    let handle = display.call((mime(py, "")?,), Some(&options))?;
    Ok(Some(handle.unbind()))
}

fn mime<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let bundle = PyDict::new(py);
    bundle.set_item("text/plain", text)?;
    Ok(bundle)
}

fn update(handle: &Bound<'_, PyAny>, bundle: &Bound<'_, PyDict>) -> PyResult<()> {
    let options = PyDict::new(handle.py());
    options.set_item("raw", true)?;
    handle.call_method("update", (bundle,), Some(&options))?;
    Ok(())
}

fn notebook_text(unit: Unit, rows: u64, all: Option<u64>, seconds: f64) -> String {
    let rate = rows as f64 / seconds / 1e6;
    match all {
        Some(all) if all > 0 => {
            let share = 100 * rows / all;
            let full = "█".repeat((share / 4).min(25) as usize);
            if unit == Unit::Runs {
                return format!("{full:░<25} {rows} of {all} runs of queries");
            }
            format!("{full:░<25} {share} % of {all} rows, {rate:.1} M rows/s")
        }
        _ => format!("{rows} rows, {rate:.1} M rows/s"),
    }
}

/// Whether long work shows a progress bar on a terminal or in a notebook; it does unless told.
#[pyfunction]
fn progress(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(progress, module)?)
}
