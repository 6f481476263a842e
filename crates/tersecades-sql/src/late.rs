//! `LATE INTO 'file'`: the rows that came after their windows had closed, written as they come.

use std::path::PathBuf;

use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::runtime::Running;
use tersecades_engine::sink::{self, Sink, SinkOptions, conform};

/// The file of late rows, with all columns of their table.
pub(crate) struct LateRows {
    path: PathBuf,
    schema: SchemaRef,
    sink: Option<Box<dyn Sink>>,
    rows: u64,
}

impl LateRows {
    /// Late rows of a table with `schema`, to be written to the file at `path`.
    pub(crate) fn new(path: PathBuf, schema: SchemaRef) -> Self {
        LateRows {
            path,
            schema,
            sink: None,
            rows: 0,
        }
    }

    /// Writes the rows that a run has found late so far; the file is whole after the last.
    ///
    /// # Errors
    /// What writing says; `Unsupported` where further rows came late to inner windows and joins.
    pub(crate) fn take(&mut self, running: &mut Running, is_last: bool) -> Result<()> {
        let sink = match &mut self.sink {
            Some(sink) => sink,
            none => {
                let options = SinkOptions::default();
                none.insert(sink::create(&self.path, &self.schema, &options)?)
            }
        };
        for batch in running.take_late() {
            self.rows += batch.num_rows() as u64;
            sink.write(&conform(batch, &self.schema)?)?;
        }
        if !is_last {
            return Ok(());
        }
        sink.finish()?;
        match running.metrics().late_rows - self.rows.min(running.metrics().late_rows) {
            0 => Ok(()),
            missing => {
                let message = format!("{missing} late rows are of a subquery or of a join by time");
                let file = self.path.display().to_string();
                Err(Error::unsupported(message).file(file).hint(
                    "LATE INTO takes those of the window behind the last FROM; \
                     put the inner windows into a query of their own",
                ))
            }
        }
    }
}
