//! A query as a table: what comes out of one run are the rows of another.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use crate::expression::{Expression, col};
use crate::plan::Step;
use crate::runtime::Running;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::state::{StateReader, StateWriter};
use crate::stream::Stream;

use super::table::Table;
use super::{Rejected, Source, SourceState};

/// The results of a stream, run anew by every query that reads them.
pub struct QueryTable {
    stream: Stream,
    schema: SchemaRef,
}

impl QueryTable {
    /// The results of `stream`.
    ///
    /// # Errors
    /// What binding the stream says.
    pub fn new(stream: Stream) -> Result<Self> {
        let schema = stream.schema()?;
        Ok(QueryTable { stream, schema })
    }
}

/// `stream` cut down to `columns`, in the order of its own; all of them when `None`.
pub(crate) fn narrowed(stream: &Stream, schema: &SchemaRef, columns: Option<&[String]>) -> Stream {
    let Some(columns) = columns.filter(|columns| columns.len() < schema.fields().len()) else {
        return stream.clone();
    };
    let names = schema.fields().iter().map(|field| field.name());
    let kept = names.filter(|name| columns.contains(name));
    let kept = kept.map(|name| (name.clone(), col(name.as_str())));
    stream.clone().step(Step::Project(kept.collect()))
}

impl Table for QueryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn describe(&self) -> Result<Vec<String>> {
        self.stream.describe()
    }

    fn has_updates(&self) -> bool {
        self.stream.has_updates()
    }

    fn stream(&self) -> Option<&Stream> {
        Some(&self.stream)
    }

    fn ends(&self) -> bool {
        self.stream.ends()
    }

    fn may_reject(&self) -> bool {
        self.stream.may_reject()
    }

    fn begins_again(&self) -> bool {
        self.stream.begins_again()
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let stream = narrowed(&self.stream, &self.schema, columns);
        let running = stream.inherit(options).run()?;
        Ok(Origin::Source(Box::new(QuerySource {
            schema: running.schema(),
            time: self.stream.output_time().expression,
            oldest: running.oldest_to_come(),
            running,
            rejected: Rejected::default(),
        })))
    }
}

struct QuerySource {
    schema: SchemaRef,
    /// The event time of the results.
    time: Expression,
    /// The least of it that the last batch and those to come may hold, where they come in no order.
    oldest: Option<i64>,
    running: Running,
    rejected: Rejected,
}

impl Source for QuerySource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.oldest = self.running.oldest_to_come();
        let next = self.running.next_at_hand();
        self.rejected.count_rows = self.running.rejected_rows();
        next
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        self.running.state()
    }

    fn describe(&self) -> Vec<String> {
        self.running.describe()
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        let is_own = time.is_some() && time == self.time.as_column();
        self.oldest.filter(|_| is_own)
    }

    fn rows_read(&self) -> Option<u64> {
        self.running.rows_read()
    }

    fn pass_over(&mut self, is_given_again: bool) -> Result<()> {
        self.running.pass_over(is_given_again)
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.running.snapshot_input(out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.running.restore_input(from)?;
        self.oldest = self.running.oldest_to_come();
        Ok(())
    }
}
