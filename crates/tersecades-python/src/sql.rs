//! SQL over streams, and over tables of Python that the caller sees by name.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tersecades::engine::expression::Expression;
use tersecades::engine::stream;
use tersecades::sql::{Session, TableTime};

use crate::arrow_table::is_arrow;
use crate::error::{OrRaise, invalid};
use crate::reading::of_arrow;
use crate::stream::Stream;

/// Makes a stream of a query in SQL.
///
/// Names after FROM and JOIN are streams and tables given by name, or those that the caller has
/// in a variable of that name: streams, and tables of pyarrow, Polars, pandas and their like. A
/// path in quotes is a file.
///
/// >>> import pyarrow as pa, tersecades as tc
/// >>> probes = pa.table({"host": ["a", "b", "a"], "rtt": [10, 20, 30]})
/// >>> tc.sql("SELECT host, sum(rtt) AS total FROM probes GROUP BY host ORDER BY host").to_pylist()
/// [{'host': 'a', 'total': 40}, {'host': 'b', 'total': 20}]
/// >>> tc.sql("SELECT count(*) AS n FROM t", t=probes).to_pylist()
/// [{'n': 3}]
#[pyfunction]
#[pyo3(signature = (query, **tables))]
fn sql(py: Python<'_>, query: &str, tables: Option<&Bound<'_, PyDict>>) -> PyResult<Stream> {
    let mut session = Session::default();
    let mut given = Vec::new();
    for (name, table) in tables.into_iter().flatten() {
        let name: String = name.extract()?;
        if !register_table(&mut session, &name, &table)? {
            let class = table.get_type();
            let hint = "give a stream, a table of pyarrow, Polars or pandas, or the path of a file";
            return Err(invalid(format!("`{name}` is {class}, no table"), hint));
        }
        given.push(name);
    }
    let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    let scopes = [frame.getattr("f_locals")?, frame.getattr("f_globals")?];
    for name in words(query) {
        if given.contains(&name) {
            continue;
        }
        for scope in &scopes {
            if scope.contains(&name)? {
                let table = scope.get_item(&name)?;
                if table.cast::<PyString>().is_err() {
                    register_table(&mut session, &name, &table)?;
                }
                break;
            }
        }
    }
    let planned = py.detach(|| session.stream(query));
    Ok(planned.or_raise()?.into())
}

/// The words of `query` that may be names, each once.
fn words(query: &str) -> Vec<String> {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|c| !inside(c)).filter(|word| !word.is_empty()) {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// Gives `table` its name in the session, and the one that SQL makes of it without quotes; false
/// for what is no table.
pub(crate) fn register_table(
    session: &mut Session,
    name: &str,
    table: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    if let Ok(path) = table.cast::<PyString>() {
        let path = path.to_string();
        session.register_file(name, path, None).or_raise()?;
        return Ok(true);
    }
    let stream = match table.cast::<Stream>() {
        Ok(stream) => stream.get().stream.clone(),
        Err(_) if is_arrow(table)? => of_arrow(table)?,
        Err(_) => return Ok(false),
    };
    let mut names = vec![name.to_owned(), name.to_lowercase()];
    names.dedup();
    for name in names {
        let time = time_of(&stream).or_raise()?;
        session
            .register_stream(&name, stream.clone(), time)
            .or_raise()?;
    }
    Ok(true)
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
    module.add_function(wrap_pyfunction!(sql, module)?)
}
