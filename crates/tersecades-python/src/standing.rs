//! Queries that run together over one stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::engine::runtime;

use crate::error::{OrRaise, invalid};
use crate::lossy::named;
use crate::metrics::Metrics;
use crate::stream::Stream;
use crate::table::ResultTable;
use crate::turn::Turns;

/// How long the engine works before Python looks for Ctrl-C.
const TURN: Duration = Duration::from_millis(20);

/// Queries that run together: an iterator of names and tables, one for each batch of results as
/// windows close.
///
/// >>> import tersecades as tc
/// >>> probes = tc.generate("pingmesh", rows=100_000)
/// >>> second = probes.window(tc.tumble("1s"))
/// >>> queries = {"rows": second.agg(n=tc.count()), "worst": second.agg(rtt=tc.max("rtt_us"))}
/// >>> running = probes.standing(queries)
/// >>> found = [name for name, table in running]
/// >>> found.count("rows") == found.count("worst") > 0
/// True
/// >>> running.metrics["rows"].rows
/// 100000
///
/// Threads take turns at them: each table goes to one of them.
#[pyclass(name = "Standing", module = "tersecades", frozen)]
pub(crate) struct Standing {
    drive: Turns<Drive>,
    schemas: HashMap<Arc<str>, SchemaRef>,
}

/// Queries that are run from Python.
struct Drive {
    run: runtime::Standing,
    over: bool,
}

/// What a turn ended with.
enum Turn {
    Result((Arc<str>, RecordBatch)),
    Time,
    End,
}

impl Standing {
    /// Starts `queries` over `stream`.
    pub(crate) fn start(
        py: Python<'_>,
        stream: &Stream,
        queries: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (stream, queries) = (stream.stream.clone(), named(queries)?);
        let mut run = py.detach(|| stream.standing(queries)).or_raise()?;
        let schemas = run.queries();
        let schemas = schemas.map(|(name, query)| (Arc::from(name), query.schema()));
        Ok(Standing {
            schemas: schemas.collect(),
            drive: Turns::new(Drive { run, over: false }),
        })
    }
}

impl Drop for Standing {
    /// Threads of the queries may be in need of Python's lock to end.
    fn drop(&mut self) {
        let run = &mut self.drive.get_mut().run;
        Python::try_attach(|py| py.detach(|| run.stop()));
    }
}

impl Drive {
    /// Works for a while, or until there is a result.
    fn turn(&mut self, py: Python<'_>) -> PyResult<Turn> {
        if self.over {
            return Ok(Turn::End);
        }
        let run = &mut self.run;
        let turn = py.detach(|| take_turn(run));
        self.over = matches!(turn, Ok(Turn::End) | Err(_));
        turn.or_raise()
    }
}

fn take_turn(run: &mut runtime::Standing) -> tersecades::Result<Turn> {
    let began = Instant::now();
    loop {
        if let Some(result) = run.take_result() {
            return Ok(Turn::Result(result));
        }
        if !run.step()? {
            return Ok(run.take_result().map_or(Turn::End, Turn::Result));
        }
        if began.elapsed() > TURN {
            return Ok(Turn::Time);
        }
    }
}

#[pymethods]
impl Standing {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(String, ResultTable)>> {
        let (name, rows) = loop {
            py.check_signals()?;
            match self.drive.take(py)?.turn(py)? {
                Turn::Result(result) => break result,
                Turn::End => return Ok(None),
                Turn::Time => {}
            }
        };
        let schema = self.schemas.get(&name).cloned();
        let schema = schema.unwrap_or_else(|| rows.schema());
        Ok(Some((
            name.to_string(),
            ResultTable::of_batch(rows, &schema),
        )))
    }

    /// What has been counted so far, by query.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<HashMap<String, Metrics>> {
        let run = &mut self.drive.take(py)?.run;
        let figures = run.queries();
        let figures = figures.map(|(name, query)| (name.to_owned(), Metrics::of(query)));
        Ok(figures.collect())
    }

    /// What is kept of the stream, as a stream of its own; needs `.keep(...)`.
    fn retained(&self, py: Python<'_>) -> PyResult<Stream> {
        match self.drive.take(py)?.run.retained() {
            Some(retained) => Ok(Stream::of_retained(retained)),
            None => Err(invalid(
                "nothing of this stream is kept",
                "call .keep(\"10m\") before .standing(...)",
            )),
        }
    }
}
