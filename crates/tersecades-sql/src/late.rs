//! `LATE INTO 'file'`: the rows that came after their windows had closed, written as they come.

use std::path::PathBuf;

use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;
use tersecades_engine::runtime::Running;
use tersecades_engine::sink::{self, Sink, SinkOptions};

use crate::answer::conform;

/// The file of late rows, with all columns of their table.
pub(crate) struct LateRows {
    path: PathBuf,
    schema: SchemaRef,
    sink: Option<Box<dyn Sink>>,
}

impl LateRows {
    /// Late rows of a table with `schema`, to be written to the file at `path`.
    pub(crate) fn new(path: PathBuf, schema: SchemaRef) -> Self {
        let sink = None;
        LateRows { path, schema, sink }
    }

    /// Writes the rows that a run has found late so far; the file is whole after the last.
    ///
    /// # Errors
    /// What writing says.
    pub(crate) fn take(&mut self, running: &mut Running, is_last: bool) -> Result<()> {
        let sink = match &mut self.sink {
            Some(sink) => sink,
            none => {
                let options = SinkOptions::default();
                none.insert(sink::create(&self.path, &self.schema, &options)?)
            }
        };
        for batch in running.take_late() {
            sink.write(&conform(batch, &self.schema)?)?;
        }
        match is_last {
            true => sink.finish(),
            false => Ok(()),
        }
    }
}
