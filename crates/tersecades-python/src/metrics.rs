//! What a run counted, as Python sees it.

use arrow_schema::{DataType, Field, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::engine::runtime;

use crate::error::OrRaise;
use crate::open_window::late_windows;
use crate::table::ResultTable;

/// What a run counted: rows, bytes, and how values were worked on.
#[pyclass(name = "Metrics", module = "tersecades", frozen)]
pub(crate) struct Metrics {
    metrics: runtime::Metrics,
    unit: TimeUnit,
}

impl Metrics {
    /// What `running` has counted so far.
    pub(crate) fn of(running: &runtime::Running) -> Self {
        Metrics {
            metrics: running.metrics(),
            unit: time_unit(running),
        }
    }
}

/// The unit of the windows that come out.
pub(crate) fn time_unit(running: &runtime::Running) -> TimeUnit {
    let schema = running.schema();
    match schema.field_with_name("window_start").map(Field::data_type) {
        Ok(DataType::Timestamp(unit, _)) => *unit,
        _ => TimeUnit::Millisecond,
    }
}

#[pymethods]
impl Metrics {
    /// Rows that arrived, or were passed over.
    #[getter]
    fn rows(&self) -> u64 {
        self.metrics.rows
    }

    /// Batches that arrived.
    #[getter]
    fn batches(&self) -> u64 {
        self.metrics.batches
    }

    /// Rows that came after all their windows had closed.
    #[getter]
    fn late_rows(&self) -> u64 {
        self.metrics.late_rows
    }

    /// The same by window, a row for each, for the newest 1,000 windows; a row of several windows
    /// is counted in the last of them.
    fn late_by_window(&self) -> PyResult<ResultTable> {
        late_windows(&self.metrics.late_by_window, self.unit).or_raise()
    }

    /// Rows too far ahead of the clock to move the watermark.
    #[getter]
    fn future_rows(&self) -> u64 {
        self.metrics.future_rows
    }

    /// Kept rows that were dropped to stay below the memory limit.
    #[getter]
    fn shortened_rows(&self) -> u64 {
        self.metrics.shortened_rows
    }

    /// Encoded bytes of kept rows that lie in files to stay below the memory limit.
    #[getter]
    fn spilled_bytes(&self) -> u64 {
        self.metrics.spilled_bytes
    }

    /// Seconds spent encoding.
    #[getter]
    fn encode_seconds(&self) -> f64 {
        self.metrics.encode_ns as f64 / 1e9
    }

    /// Rows without an event time, which no window takes.
    #[getter]
    fn untimed_rows(&self) -> u64 {
        self.metrics.untimed_rows
    }

    /// Rows between windows that leave gaps.
    #[getter]
    fn skipped_rows(&self) -> u64 {
        self.metrics.skipped_rows
    }

    /// Rows the source could not read and left out.
    #[getter]
    fn rejected_rows(&self) -> u64 {
        self.metrics.rejected_rows
    }

    /// Rows that the source passed over because the query wants nothing of them.
    #[getter]
    fn left_out_rows(&self) -> u64 {
        self.metrics.left_out_rows
    }

    /// Windows that came out.
    #[getter]
    fn windows(&self) -> u64 {
        self.metrics.windows
    }

    /// Result rows that came out.
    #[getter]
    fn result_rows(&self) -> u64 {
        self.metrics.result_rows
    }

    /// How many values were `skipped` (answered for by statistics), computed on `encoded`,
    /// `decoded` first, and `fetched` for the answer.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tally = &self.metrics.tally;
        let values = PyDict::new(py);
        values.set_item("skipped", tally.skipped)?;
        values.set_item("encoded", tally.direct)?;
        values.set_item("decoded", tally.decoded)?;
        values.set_item("fetched", tally.gathered)?;
        Ok(values)
    }

    /// Name, codec, bytes as Arrow and bytes as encoded of each column that was read.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let column = |column: &runtime::ColumnMetrics| {
            let found = PyDict::new(py);
            found.set_item("name", &column.name)?;
            found.set_item("codec", &column.codec)?;
            found.set_item("raw_bytes", column.raw_bytes)?;
            found.set_item("encoded_bytes", column.encoded_bytes)?;
            Ok(found)
        };
        self.metrics.columns.iter().map(column).collect()
    }

    fn __repr__(&self) -> String {
        let runtime::Metrics {
            rows,
            late_rows,
            untimed_rows,
            windows,
            result_rows,
            ..
        } = &self.metrics;
        format!(
            "Metrics(rows={rows}, late_rows={late_rows}, untimed_rows={untimed_rows}, \
             windows={windows}, result_rows={result_rows})"
        )
    }
}
