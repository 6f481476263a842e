//! What statements give: rows as they come, or word of what was done.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;
use tersecades_engine::runtime::{Metrics, Running};
use tersecades_engine::sink::{SinkOptions, conform};
use tersecades_engine::stream::Stream;

use crate::late::LateRows;

/// What a statement gave.
pub enum Answer {
    /// Rows.
    Rows(Results),
    /// What was done.
    Done(String),
}

impl Answer {
    /// What was done, and with it the rows that did not count, which nobody should miss.
    pub(crate) fn done(mut what: String, metrics: Option<Metrics>) -> Self {
        let metrics = metrics.unwrap_or_default();
        for (rows, one, many) in [
            (metrics.late_rows, "row came too late", "rows came too late"),
            (
                metrics.untimed_rows,
                "row has no event time",
                "rows have no event time",
            ),
            (
                metrics.skipped_rows,
                "row lies between windows",
                "rows lie between windows",
            ),
            (
                metrics.rejected_rows,
                "row could not be read",
                "rows could not be read",
            ),
        ] {
            match rows {
                0 => {}
                1 => what.push_str(&format!("; 1 {one}")),
                rows => what.push_str(&format!("; {rows} {many}")),
            }
        }
        Answer::Done(what)
    }
}

/// The rows of a query, batch by batch as windows close.
pub struct Results {
    schema: SchemaRef,
    rows: Rows,
    /// Where late rows go that are still to be written, if anywhere.
    late: Option<LateRows>,
    writes_late_rows: bool,
}

enum Rows {
    Running(Box<Running>),
    Ready(std::vec::IntoIter<RecordBatch>),
}

impl Results {
    /// Starts `stream`.
    ///
    /// # Errors
    /// What starting says.
    pub(crate) fn of(stream: Stream) -> Result<Self> {
        let running = stream.run()?;
        Ok(Results {
            schema: running.schema(),
            rows: Rows::Running(Box::new(running)),
            late: None,
            writes_late_rows: false,
        })
    }

    /// Rows that are there already.
    pub(crate) fn ready(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Results {
            schema,
            rows: Rows::Ready(batches.into_iter()),
            late: None,
            writes_late_rows: false,
        }
    }

    /// The same rows; late ones of the query are written to a file, where it names one.
    pub(crate) fn with_late(mut self, late: Option<LateRows>) -> Self {
        self.writes_late_rows = late.is_some();
        self.late = late;
        self
    }

    /// Refuses to write the rows to the file that late rows of the query go to.
    ///
    /// # Errors
    /// `InvalidArgument` where both are one file.
    pub fn require_apart(&self, output: &Path) -> Result<()> {
        let late = self.late.as_ref();
        late.map_or(Ok(()), |late| late.require_apart(output))
    }

    /// Whether late rows of the query are written to a file, which is whole with the last result.
    pub fn writes_late_rows(&self) -> bool {
        self.writes_late_rows
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// What has been counted so far, where something runs.
    pub fn metrics(&self) -> Option<Metrics> {
        match &self.rows {
            Rows::Running(running) => Some(running.metrics()),
            Rows::Ready(_) => None,
        }
    }

    /// How the rows are written: by as many threads as make them.
    pub fn sink_options(&self) -> SinkOptions {
        let threads = match &self.rows {
            Rows::Running(running) => running.threads(),
            Rows::Ready(_) => 1,
        };
        SinkOptions {
            threads,
            ..SinkOptions::default()
        }
    }

    /// How many rows will be read, where that is known.
    pub fn rows_hint(&self) -> Option<u64> {
        match &self.rows {
            Rows::Running(running) => running.rows_hint(),
            Rows::Ready(_) => None,
        }
    }
}

impl Iterator for Results {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rows {
            Rows::Running(running) => {
                let batch = running.next();
                let taken = match &mut self.late {
                    Some(late) => late.take(running, batch.is_none()),
                    None => Ok(()),
                };
                if batch.is_none() {
                    self.late = None;
                }
                if let Err(error) = taken {
                    return Some(Err(error));
                }
                Some(batch?.and_then(|batch| conform(batch, &self.schema)))
            }
            Rows::Ready(batches) => batches.next().map(Ok),
        }
    }
}
