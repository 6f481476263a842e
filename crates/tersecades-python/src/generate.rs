//! Streams from the seeded generators, made anew for each run.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use tersecades::engine::runtime::ingest::Origin;
use tersecades::engine::source::BATCH_ROWS_DEFAULT;
use tersecades::engine::source::table::Table;
use tersecades::prelude::{Pingmesh, PingmeshOptions, PingmeshSource, Source as _};
use tersecades::{Result, engine::stream};

use crate::duration::Length;
use crate::error::{OrRaise, invalid};
use crate::expression::Column;
use crate::stream::{Stream, timed};

/// Generated probes.
struct PingmeshTable {
    options: PingmeshOptions,
    schema: SchemaRef,
}

impl PingmeshTable {
    fn new(options: PingmeshOptions) -> Result<Self> {
        let generator = Pingmesh::new(options.clone())?;
        let schema = PingmeshSource::new(generator, BATCH_ROWS_DEFAULT).schema();
        Ok(PingmeshTable { options, schema })
    }
}

impl Table for PingmeshTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let generator = Pingmesh::new(self.options.clone())?;
        let source = PingmeshSource::new(generator, BATCH_ROWS_DEFAULT);
        Ok(Origin::Source(Box::new(source)))
    }
}

/// A seeded stream that is made while it is read; the same seed makes the same rows.
///
/// >>> import tersecades as tc
/// >>> probes = tc.generate("pingmesh", rows=5_000, seed=7)
/// >>> len(probes.collect())
/// 5000
#[pyfunction]
#[pyo3(signature = (kind, *, rows=1_000_000, seed=None, event_time=None, lateness=None))]
fn generate(
    kind: &str,
    rows: u64,
    seed: Option<u64>,
    event_time: Option<Column>,
    lateness: Option<Length>,
) -> PyResult<Stream> {
    if kind != "pingmesh" {
        return Err(invalid(
            format!("there is no generator `{kind}`"),
            "generators: pingmesh",
        ));
    }
    let usual = PingmeshOptions::default();
    let options = PingmeshOptions {
        rows,
        seed: seed.unwrap_or(usual.seed),
        ..usual
    };
    let table = PingmeshTable::new(options).or_raise()?;
    let stream = stream::Stream::from_table(table);
    Ok(timed(stream, event_time, lateness).into())
}

/// Adds the function to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(generate, module)?)
}
