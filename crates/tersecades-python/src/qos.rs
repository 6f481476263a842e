//! What tolerances of lossy columns cost in the answers of queries.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tersecades::Error;
use tersecades::sql::{Experiment, Session, Setting, loosest, loss_lines, scheme_within};
use tersecades_plot::{Axis, LinePlot};

use crate::error::OrRaise;
use crate::progress_bar::Progress;
use crate::running::interruptible;
use crate::sql::Given;

/// The name of the data in the queries.
const TABLE: &str = "data";

/// Queries by name, or in order.
#[derive(FromPyObject)]
enum Queries {
    One(String),
    Many(Vec<String>),
    Named(Vec<(String, String)>),
}

/// Runs queries over data of which columns are encoded with a loss, and says what that saves and
/// what it does to the answers.
///
/// The queries are SQL over the table `data`. `tolerances` is the ladder, from strict to loose,
/// for a lossy `codec`; `columns` are those it encodes, all floats unless said.
/// A row of an answer is matched by `keys` (what is no number, unless said) and, where it has a
/// window, by overlap; the loss is missing and extra rows for each exact one.
/// `plot` names a file for loss against compression as SVG, whose text is `svg` of the result.
///
/// >>> import tersecades as tc
/// >>> weather = tc.generate("weather", rows=5_000)
/// >>> query = "SELECT station, max(temperature_c) AS warmest FROM data GROUP BY station"
/// >>> found = tc.qos(weather, query, columns=["temperature_c"], tolerances=[0.01, 1.0])
/// >>> [setting["scheme"] for setting in found["settings"]]
/// ['exact', 'zfp(0.01)', 'zfp(1)']
/// >>> found["loosest"], found["settings"][2]["loss"]
/// ('zfp(1)', 0.0)
#[pyfunction]
#[pyo3(signature = (
    data, queries, *, tolerances=vec![1e-6, 1e-4, 0.01, 0.1, 1.0, 10.0], columns=Vec::new(),
    codec="zfp", keys=Vec::new(), max_loss=0.01, max_error=1.0, plot=None
))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
fn qos<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    queries: &Bound<'py, PyAny>,
    tolerances: Vec<f64>,
    columns: Vec<String>,
    codec: &str,
    keys: Vec<String>,
    max_loss: f64,
    max_error: f64,
    plot: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut session = Session::default();
    let given = Given::new(TABLE, data, None)?;
    py.detach(|| given.register(&mut session, TABLE))
        .or_raise()?;
    let tolerances = tolerances.into_iter();
    let ladder = tolerances.map(|tolerance| scheme_within(codec, tolerance).or_raise());
    let experiment = Experiment {
        table: TABLE.to_owned(),
        columns,
        ladder: ladder.collect::<PyResult<_>>()?,
        queries: named(queries)?,
        keys,
    };
    let mut bar = Progress::runs();
    let ran = interruptible(py, |interrupt| {
        session.interrupt_with(interrupt);
        session.qos(&experiment, |done, runs| {
            if bar.is_due() {
                Python::attach(|py| bar.show(py, done as u64, Some(runs as u64)));
            }
        })
    });
    bar.finish(py);
    let settings = ran?;
    let picture = LinePlot {
        lines: loss_lines(&settings, &experiment.queries),
        title: "What a tolerance does to the answers".to_owned(),
        x: Axis::linear("compression ratio of the lossy columns"),
        y: Axis::linear("loss of rows (%)"),
    };
    let picture = picture.svg();
    if let Some(path) = plot {
        let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
        std::fs::write(&path, &picture).map_err(named).or_raise()?;
    }
    let found = PyDict::new(py);
    let list = PyList::empty(py);
    for setting in &settings {
        list.append(described(py, setting, &experiment)?)?;
    }
    found.set_item("settings", list)?;
    found.set_item("svg", picture)?;
    let loosest = loosest(&settings, max_loss, max_error);
    found.set_item("loosest", loosest.map(|it| it.scheme.as_str()))?;
    found.set_item("ratio", loosest.map(|it| it.column_ratio))?;
    Ok(found)
}

fn named(queries: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let given: Queries = match queries.cast::<PyDict>() {
        Ok(named) => Queries::Named(named.items().extract()?),
        Err(_) => queries.extract()?,
    };
    let numbered = |(index, text)| (format!("q{}", index + 1), text);
    Ok(match given {
        Queries::One(text) => vec![("q1".to_owned(), text)],
        Queries::Many(texts) => texts.into_iter().enumerate().map(numbered).collect(),
        Queries::Named(named) => named,
    })
}

fn described<'py>(
    py: Python<'py>,
    setting: &Setting,
    experiment: &Experiment,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("scheme", &setting.scheme)?;
    found.set_item("error_bound", setting.error_bound)?;
    found.set_item("column_ratio", setting.column_ratio)?;
    found.set_item("table_ratio", setting.table_ratio)?;
    found.set_item("loss", setting.loss())?;
    let queries = PyDict::new(py);
    for ((name, _), difference) in experiment.queries.iter().zip(&setting.differences) {
        let query = PyDict::new(py);
        query.set_item("rows", difference.rows)?;
        query.set_item("missing", difference.missing)?;
        query.set_item("extra", difference.extra)?;
        query.set_item("loss", difference.loss())?;
        let values = PyDict::new(py);
        for error in &difference.values {
            values.set_item(&error.column, (error.mean, error.most))?;
        }
        query.set_item("relative_errors", values)?;
        queries.set_item(name, query)?;
    }
    found.set_item("queries", queries)?;
    Ok(found)
}

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(qos, module)?)
}
