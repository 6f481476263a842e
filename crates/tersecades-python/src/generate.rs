//! Streams from the seeded generators, made anew for each run.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use tersecades::engine::source::generated::GeneratorTable;
use tersecades::engine::source::generator::{GENERATORS, SEED_DEFAULT};
use tersecades::engine::stream;

use crate::duration::Length;
use crate::error::OrRaise;
use crate::expression::Column;
use crate::number;
use crate::stream::{Stream, timed};

/// A seeded stream that is made while it is read; the same seed makes the same rows.
///
/// `generators()` names the kinds. Each has parameters of its own, which are given by name, as
/// numbers or as text: `error_share=0.1`, `jitter_max="3s"`.
///
/// >>> import tersecades as tc
/// >>> probes = tc.generate("pingmesh", rows=5_000, seed=7, clusters=8)
/// >>> len(probes.collect())
/// 5000
#[pyfunction]
#[pyo3(signature = (
    kind, *, rows=1_000_000, seed=None, event_time=None, lateness=None, **parameters
))]
fn generate(
    kind: &str,
    #[pyo3(from_py_with = number::count)] rows: u64,
    seed: Option<u64>,
    event_time: Option<Column>,
    lateness: Option<Length>,
    parameters: Option<&Bound<'_, PyDict>>,
) -> PyResult<Stream> {
    let mut given = Vec::new();
    for (name, value) in parameters.into_iter().flatten() {
        let text = match value.cast::<PyBool>() {
            Ok(flag) => flag.is_true().to_string(),
            Err(_) => value.str()?.to_string(),
        };
        given.push((name.extract()?, text));
    }
    let seed = seed.unwrap_or(SEED_DEFAULT);
    let table = GeneratorTable::new(kind, rows, seed, given).or_raise()?;
    let stream = stream::Stream::from_table(table);
    Ok(timed(stream, event_time, lateness)?.into())
}

/// The kinds of streams that `generate` makes: what each is, and its parameters with their
/// defaults.
///
/// >>> import tersecades as tc
/// >>> list(tc.generators())
/// ['pingmesh', 'counters', 'positions', 'weather', 'nexmark', 'yahoo']
#[pyfunction]
fn generators(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let kinds = PyDict::new(py);
    for kind in GENERATORS {
        let parameters = PyDict::new(py);
        for parameter in kind.parameters {
            parameters.set_item(parameter.name, parameter.default)?;
        }
        kinds.set_item(kind.name, (kind.summary, parameters))?;
    }
    Ok(kinds)
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(generate, module)?)?;
    module.add_function(wrap_pyfunction!(generators, module)?)
}
