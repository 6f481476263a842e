//! Rows of files that could not be read, kept for whoever asks.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;
use tersecades::Error;
use tersecades::engine::source::rejected::{RejectedRow, rejected_batch};
use tersecades::engine::source::{self, DEAD_LETTER_ROWS_LIMIT};

use crate::error::OrRaise as _;
use crate::table::ResultTable;

/// Rows that could not be read: file, line, column, reason and original bytes of each.
///
/// Given as `on_error` to a reader, it is handed such rows as they are met, by every run, and the
/// others are read. It holds 100,000 rows at most; `take()` makes room.
///
/// >>> import pathlib, tempfile, tersecades as tc
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "probes.csv"
/// >>> _ = path.write_text("n\n1\nx\n3\n")
/// >>> letters = tc.DeadLetters()
/// >>> rows = tc.read_csv(path, types={"n": "int64"}, on_error=letters)
/// >>> rows.agg(n=tc.sum("n")).to_pylist()
/// [{'n': 4}]
/// >>> [(row["line"], row["reason"], row["original"]) for row in letters.take().to_pylist()]
/// [(3, '`x` is not a whole number', b'x')]
#[pyclass(name = "DeadLetters", module = "tersecades", frozen)]
#[derive(Default)]
pub(crate) struct DeadLetters {
    rows: Arc<Mutex<Vec<RejectedRow>>>,
}

impl DeadLetters {
    /// What hands rows to it.
    pub(crate) fn letters(&self) -> source::DeadLetters {
        let rows = Arc::clone(&self.rows);
        source::DeadLetters::new(move |row| {
            let mut rows = lock(&rows);
            if rows.len() == DEAD_LETTER_ROWS_LIMIT {
                let message = format!("more than {DEAD_LETTER_ROWS_LIMIT} dead-letter rows");
                return Err(Error::limit(message)
                    .row(row.line)
                    .hint("check delimiter, header and types, or take() them more often"));
            }
            rows.push(row.clone());
            Ok(())
        })
    }
}

fn lock(rows: &Mutex<Vec<RejectedRow>>) -> MutexGuard<'_, Vec<RejectedRow>> {
    rows.lock().unwrap_or_else(|held| held.into_inner())
}

#[pymethods]
impl DeadLetters {
    #[new]
    fn new() -> Self {
        DeadLetters::default()
    }

    /// The rows so far, which it then no longer holds.
    fn take(&self) -> PyResult<ResultTable> {
        let rows = std::mem::take(&mut *lock(&self.rows));
        let batch = rejected_batch(&rows).or_raise()?;
        let schema = batch.schema();
        Ok(ResultTable::of_batch(batch, &schema))
    }

    fn __len__(&self) -> usize {
        lock(&self.rows).len()
    }

    fn __repr__(&self) -> String {
        format!("DeadLetters({} rows)", self.__len__())
    }
}

/// Adds the class to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DeadLetters>()
}
