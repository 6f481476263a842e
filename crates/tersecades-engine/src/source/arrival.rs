//! Tables whose rows are stamped with the time at which they arrive.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::event_time::SharedClock;
use crate::event_time::clock::whole_ticks;
use crate::runtime::ingest::Origin;
use crate::runtime::option::RunOptions;
use crate::runtime::state::{StateReader, StateWriter};

use super::partitioned::as_source;
use super::table::{Table, fewest};
use super::{PartitionState, Rejected, Source, SourceState};

/// The column that says when a row arrived.
pub const ARRIVAL_TIME: &str = "arrival_time";

const TICK_NS: i64 = 1_000;

/// Another table's rows with one more column, the time of the clock when their batch arrived.
pub(crate) struct ArrivalTable {
    table: Arc<dyn Table>,
    clock: SharedClock,
}

impl ArrivalTable {
    /// The rows of `table`, stamped by `clock`.
    ///
    /// # Errors
    /// `SchemaMismatch` when the table has a column of that name.
    pub(crate) fn new(table: Arc<dyn Table>, clock: SharedClock) -> Result<Self> {
        if table.schema().index_of(ARRIVAL_TIME).is_ok() {
            let message = format!("the stream has a column `{ARRIVAL_TIME}` of its own");
            return Err(Error::schema(message)
                .column(ARRIVAL_TIME)
                .hint("use it as the event time, or rename it"));
        }
        Ok(ArrivalTable { table, clock })
    }
}

fn stamped(schema: &Schema) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().map(Arc::clone).collect();
    let stamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    fields.push(Arc::new(Field::new(ARRIVAL_TIME, stamp, false)));
    let metadata = schema.metadata().clone();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

impl Table for ArrivalTable {
    fn schema(&self) -> SchemaRef {
        stamped(&self.table.schema())
    }

    fn may_reject(&self) -> bool {
        self.table.may_reject()
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let others: Option<Vec<String>> = columns.map(|columns| {
            let others = columns.iter().filter(|name| *name != ARRIVAL_TIME);
            others.cloned().collect()
        });
        // Rows without columns have no number in most formats.
        let others = match others {
            Some(none) if none.is_empty() => fewest(&*self.table),
            others => others,
        };
        let source = as_source(self.table.open_with(others.as_deref(), options)?);
        Ok(Origin::Source(Box::new(ArrivalSource {
            schema: stamped(&source.schema()),
            source,
            clock: self.clock.clone(),
        })))
    }
}

struct ArrivalSource {
    source: Box<dyn Source>,
    schema: SchemaRef,
    clock: SharedClock,
}

impl Source for ArrivalSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.source.next()? else {
            return Ok(None);
        };
        let now = whole_ticks(self.clock.0.now(), TICK_NS);
        let stamps: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from_value(now, batch.num_rows()));
        let mut columns = batch.columns().to_vec();
        columns.push(stamps);
        let schema = stamped(&batch.schema());
        Ok(Some(RecordBatch::try_new(schema, columns)?))
    }

    fn rows_hint(&self) -> Option<u64> {
        self.source.rows_hint()
    }

    fn rejected(&self) -> &Rejected {
        self.source.rejected()
    }

    fn state(&self) -> SourceState {
        self.source.state()
    }

    fn describe(&self) -> Vec<String> {
        self.source.describe()
    }

    fn runs_queries(&self) -> bool {
        self.source.runs_queries()
    }

    fn identity(&self) -> String {
        self.source.identity()
    }

    fn rows_read(&self) -> Option<u64> {
        self.source.rows_read()
    }

    fn pass_over(&mut self, is_given_again: bool) -> Result<()> {
        self.source.pass_over(is_given_again)
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.source.snapshot(out)
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.source.restore(from)
    }

    fn partitions(&self) -> usize {
        self.source.partitions()
    }

    fn partition(&self) -> usize {
        self.source.partition()
    }

    fn partition_state(&self, partition: usize) -> PartitionState {
        self.source.partition_state(partition)
    }

    fn partition_name(&self, partition: usize) -> String {
        self.source.partition_name(partition)
    }
}
