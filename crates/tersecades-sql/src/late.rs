//! `LATE INTO 'file'`: the rows that came after their windows had closed, written as they come.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::runtime::Running;
use tersecades_engine::sink::{self, Sink, SinkOptions, conform};
use tersecades_store::whole_file::is_same;

/// The file of late rows, with all columns of their table.
pub(crate) struct LateRows {
    path: PathBuf,
    schema: SchemaRef,
    sink: Option<Box<dyn Sink>>,
    rows: u64,
}

impl LateRows {
    /// Late rows of a table with `schema`, to be written to the file at `path`.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is there, which may be one that is read.
    pub(crate) fn new(path: PathBuf, schema: SchemaRef) -> Result<Self> {
        require_absent(&path)?;
        Ok(LateRows {
            path,
            schema,
            sink: None,
            rows: 0,
        })
    }

    /// Refuses to write late rows to the file of the results.
    ///
    /// # Errors
    /// `InvalidArgument` where both are one file.
    pub(crate) fn require_apart(&self, output: &Path) -> Result<()> {
        match is_same(&self.path, output) {
            false => Ok(()),
            true => Err(
                Error::invalid("the answer would be replaced by the late rows")
                    .file(output.display().to_string())
                    .hint("give LATE INTO a file of its own"),
            ),
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
                // Another statement may have written it since.
                require_absent(&self.path)?;
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

fn require_absent(path: &Path) -> Result<()> {
    match path.is_file() {
        false => Ok(()),
        true => Err(Error::invalid("the file for late rows is there already")
            .file(path.display().to_string())
            .hint("name one that is not, or remove it")),
    }
}
