//! Cost tables: what codecs cost on this machine, as Python measures, stores and reads them.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use tersecades::Error;
use tersecades::columnar::cost_table;
use tersecades::engine::cost;

use crate::duration::Length;
use crate::error::OrRaise;

/// What every codec costs for each operation; the choice of codecs goes by it.
///
/// >>> import tersecades as tc
/// >>> table = tc.CostTable.shipped()
/// >>> stream = tc.generate("pingmesh", rows=1_000).costs(table)
#[pyclass(name = "CostTable", module = "tersecades", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct CostTable {
    pub(crate) table: Arc<cost_table::CostTable>,
}

#[pymethods]
impl CostTable {
    /// The table that is used unless another one is given.
    #[staticmethod]
    fn shipped() -> Self {
        CostTable {
            table: cost_table::CostTable::shipped(),
        }
    }

    /// Measures this machine, in about so much time.
    #[staticmethod]
    #[pyo3(signature = (budget=None))]
    fn measure(py: Python<'_>, budget: Option<Length>) -> PyResult<Self> {
        let budget = budget.map_or(cost::BUDGET, |length| length.0);
        let table = py.detach(|| cost::measure(budget)).or_raise()?;
        Ok(CostTable {
            table: Arc::new(table),
        })
    }

    /// Reads a table that `save` or `tersecades costs --measure` wrote.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(Error::from);
        let table = text.and_then(|text| text.parse::<cost_table::CostTable>());
        Ok(CostTable {
            table: Arc::new(table.map_err(|error| error.file(shown)).or_raise()?),
        })
    }

    /// Writes the table as text.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let shown = path.display().to_string();
        let written = std::fs::write(path, self.table.to_string()).map_err(Error::from);
        written.map_err(|error| error.file(shown)).or_raise()
    }

    fn __str__(&self) -> String {
        self.table.to_string()
    }

    fn __repr__(&self) -> &'static str {
        match *self.table == *cost_table::CostTable::shipped() {
            true => "CostTable(shipped)",
            false => "CostTable(measured)",
        }
    }
}

/// Adds the class to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CostTable>()
}
