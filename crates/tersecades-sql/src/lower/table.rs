//! A query as a table: what needs a stream of its own, with an event time of its own.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;
use tersecades_engine::runtime::Running;
use tersecades_engine::runtime::ingest::Origin;
use tersecades_engine::source::table::Table;
use tersecades_engine::source::{Rejected, Source};
use tersecades_engine::stream::Stream;

/// The results of a stream as rows of another.
pub(crate) struct QueryTable {
    stream: Stream,
    schema: SchemaRef,
}

impl QueryTable {
    /// The results of `stream`.
    ///
    /// # Errors
    /// What binding the query says.
    pub(crate) fn new(stream: Stream) -> Result<Self> {
        Ok(QueryTable { schema: stream.schema()?, stream })
    }
}

impl Table for QueryTable {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        Ok(Origin::Source(Box::new(QuerySource {
            running: self.stream.clone().run()?,
            schema: SchemaRef::clone(&self.schema),
            rejected: Rejected::default(),
        })))
    }
}

struct QuerySource {
    running: Running,
    schema: SchemaRef,
    rejected: Rejected,
}

impl Source for QuerySource {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.running.next().transpose()
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}
