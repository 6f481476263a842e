//! The Pingmesh generator as a source.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use super::generator::Pingmesh;
use super::{Rejected, Source};

/// A source of generated probes.
pub struct PingmeshSource {
    generator: Pingmesh,
    batch_rows: usize,
    rejected: Rejected,
}

impl PingmeshSource {
    /// Hands out what `generator` makes, `batch_rows` at a time.
    pub fn new(generator: Pingmesh, batch_rows: usize) -> Self {
        PingmeshSource {
            generator,
            batch_rows: batch_rows.max(1),
            rejected: Rejected::default(),
        }
    }
}

impl Source for PingmeshSource {
    fn schema(&self) -> SchemaRef {
        self.generator.schema()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.generator.next_batch(self.batch_rows)
    }

    fn rows_hint(&self) -> Option<u64> {
        self.generator.rows_hint()
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}
