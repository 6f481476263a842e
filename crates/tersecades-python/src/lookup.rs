//! The table of a lookup join, from whatever Python hands over.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tersecades::engine::stream::Stream;
use tersecades::prelude::LookupTable;

use crate::arrow_table::read_batches;
use crate::capsule::exchange_error;
use crate::error::OrRaise;
use crate::table::ResultTable;

/// All rows of an object that hands out Arrow data; those of our own tables are put together once.
pub(crate) fn lookup_table(table: &Bound<'_, PyAny>) -> PyResult<Arc<LookupTable>> {
    if let Ok(result) = table.cast::<ResultTable>() {
        let known = result.get().stream().or_raise()?.lookup_table();
        if let Some(known) = known {
            return Ok(known);
        }
    }
    let (schema, batches) = read_batches(table)?;
    let rows = arrow_select::concat::concat_batches(&schema, &batches);
    let rows: RecordBatch = rows.map_err(|error| exchange_error(table.py(), &error))?;
    let name = table.get_type().name()?.to_string();
    Ok(Arc::new(LookupTable::new(name, rows)))
}

/// A lookup join that is ready to be put on a stream.
pub(crate) struct Lookup {
    table: Arc<LookupTable>,
    stream_key: String,
    table_key: String,
    columns: Vec<(String, String)>,
}

impl Lookup {
    /// Reads `table` whole; `on` and `columns` are as `Stream.lookup` takes them.
    pub(crate) fn new(
        table: &Bound<'_, PyAny>,
        on: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let table = lookup_table(table)?;
        let (stream_key, table_key) = match on.cast::<PyString>() {
            Ok(both) => (both.to_string(), both.to_string()),
            Err(_) => on.extract()?,
        };
        let columns = match columns.cast::<PyDict>() {
            Ok(renamed) => {
                let pairs = renamed
                    .iter()
                    .map(|(name, new)| Ok((name.extract()?, new.extract()?)));
                pairs.collect::<PyResult<_>>()?
            }
            Err(_) => {
                let names: Vec<String> = match columns.cast::<PyString>() {
                    Ok(name) => vec![name.to_string()],
                    Err(_) => columns.extract()?,
                };
                names.into_iter().map(|name| (name.clone(), name)).collect()
            }
        };
        Ok(Lookup {
            table,
            stream_key,
            table_key,
            columns,
        })
    }

    /// `stream` with the columns looked up.
    pub(crate) fn apply(&self, stream: Stream) -> Stream {
        let columns = self.columns.iter();
        let columns: Vec<(&str, &str)> = columns.map(|(name, new)| (&**name, &**new)).collect();
        stream.lookup_join(&self.table, (&self.stream_key, &self.table_key), &columns)
    }
}
