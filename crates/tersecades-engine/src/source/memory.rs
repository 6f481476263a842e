//! Record batches that are in memory already.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use super::{Rejected, Source};

/// A source of given batches.
pub struct MemorySource {
    schema: SchemaRef,
    batches: std::vec::IntoIter<RecordBatch>,
    rows: u64,
    rejected: Rejected,
}

impl MemorySource {
    /// Hands out `batches` in order.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let rejected = Rejected::default();
        MemorySource {
            schema,
            batches: batches.into_iter(),
            rows,
            rejected,
        }
    }
}

impl Source for MemorySource {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.batches.next() else {
            return Ok(None);
        };
        let expected = self.schema.fields().iter().map(|field| field.data_type());
        match batch
            .columns()
            .iter()
            .map(|column| column.data_type())
            .eq(expected)
        {
            true => Ok(Some(batch)),
            false => Err(Error::schema(
                "a batch in memory differs from its stream's schema",
            )),
        }
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}
