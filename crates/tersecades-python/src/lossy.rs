//! Ranges kept for queries, and schemes by column.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::engine::stream;
use tersecades::prelude::Keep;

use crate::duration::{Bytes, Length};
use crate::error::{OrRaise, invalid};
use crate::stream::Stream;

/// How much is kept: a length of event time, or so many bytes.
pub(crate) fn extent(duration: Option<Length>, bytes: Option<Bytes>) -> PyResult<Keep> {
    match (duration, bytes) {
        (Some(duration), None) => Ok(Keep::Duration(duration.0)),
        (None, Some(bytes)) => Ok(Keep::Bytes(bytes.0)),
        _ => {
            let message = "keep takes a duration or a number of bytes";
            Err(invalid(message, ".keep(\"10m\") or .keep(bytes=\"1GiB\")"))
        }
    }
}

/// `rows`, of which so much is kept for `queries`, by name.
pub(crate) fn keep_for(
    rows: &stream::Stream,
    queries: &Bound<'_, PyDict>,
    keep: Keep,
) -> PyResult<stream::Stream> {
    rows.clone().keep_for(keep, named(queries)?).or_raise()
}

/// Queries by name.
pub(crate) fn named(queries: &Bound<'_, PyDict>) -> PyResult<Vec<(String, stream::Stream)>> {
    let mut named = Vec::with_capacity(queries.len());
    for (name, query) in queries {
        let query = query.cast::<Stream>()?.get().stream.clone();
        named.push((name.extract()?, query));
    }
    Ok(named)
}

/// Schemes by column: of one, or of a mapping.
pub(crate) fn schemes(
    column: &Bound<'_, PyAny>,
    scheme: Option<String>,
) -> PyResult<Vec<(String, String)>> {
    match (column.cast::<PyDict>(), scheme) {
        (Ok(given), None) => given.items().extract(),
        (Err(_), Some(scheme)) => Ok(vec![(column.extract()?, scheme)]),
        _ => {
            let message = "encoding takes a column and a scheme, or schemes by column";
            Err(invalid(message, ".encoding({\"rtt\": \"zfp(0.01)\"})"))
        }
    }
}
