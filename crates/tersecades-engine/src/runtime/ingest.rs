//! Rows in, encoded batches with event time out.
//!
//! A stream that is kept is encoded once, here; one that is only looked at passes through as plain
//! Arrow. Batches and frames are reused as soon as nobody else holds them.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::registry;

use crate::plan::Query;
use crate::source::{Source, SourceState};

use super::encoding::EncodeOptions;

/// Batches kept for reuse.
const POOL_BATCHES: usize = 16;

/// Where encoded batches come from.
pub enum Origin {
    /// A source of Arrow batches, to be encoded.
    Source(Box<dyn Source>),
    /// Batches that are encoded already.
    Encoded(std::vec::IntoIter<Arc<Batch>>, SchemaRef),
}

impl Origin {
    /// Columns that arrive.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Origin::Source(source) => source.schema(),
            Origin::Encoded(_, schema) => Arc::clone(schema),
        }
    }
}

/// Turns what arrives into encoded batches of the columns that are read.
pub struct Ingest {
    origin: Origin,
    encoder: Option<BatchEncoder>,
    positions: Vec<usize>,
    schema: SchemaRef,
    pool: Vec<Arc<Batch>>,
    /// Nanoseconds spent encoding.
    pub encode_ns: u64,
}

impl Ingest {
    /// Reads `origin`, of which only `columns` are wanted (all when `None`); values are encoded by
    /// choice for what `query` does with them when they are `kept`, else plain where `options` do
    /// not say otherwise.
    ///
    /// # Errors
    /// `Unsupported`, naming the column, for types that cannot be encoded; what
    /// [`EncodeOptions::apply`] says.
    pub fn new(
        origin: Origin,
        columns: Option<&[String]>,
        kept: bool,
        options: &EncodeOptions,
        query: &Query,
    ) -> Result<Self> {
        let arriving = origin.schema();
        let wanted = |name: &String| columns.is_none_or(|columns| columns.contains(name));
        let whole = matches!(origin, Origin::Encoded(..));
        let positions: Vec<usize> = (0..arriving.fields().len())
            .filter(|index| whole || wanted(arriving.field(*index).name()))
            .collect();
        let fields: Vec<_> = positions
            .iter()
            .map(|index| Arc::clone(&arriving.fields()[*index]))
            .collect();
        let mut schema: SchemaRef = Arc::new(Schema::new(fields));
        let mut encoder = None;
        if !whole {
            let mut columns = BatchEncoder::new(&schema)?;
            if !kept {
                columns
                    .columns_mut()
                    .iter_mut()
                    .for_each(|c| c.pin(registry::fallback()));
            }
            options.apply(&mut columns, &arriving, |column| query.uses(column))?;
            schema = Arc::clone(columns.schema());
            encoder = Some(columns);
        }
        Ok(Ingest {
            origin,
            encoder,
            positions,
            schema,
            pool: Vec::new(),
            encode_ns: 0,
        })
    }

    /// Columns of the batches that come out.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows the source could not read and left out.
    pub fn rejected_rows(&self) -> u64 {
        match &self.origin {
            Origin::Source(source) => source.rejected().count_rows,
            Origin::Encoded(..) => 0,
        }
    }

    /// How many rows there are in all, where that is known.
    pub fn rows_hint(&self) -> Option<u64> {
        match &self.origin {
            Origin::Source(source) => source.rows_hint(),
            Origin::Encoded(batches, _) => Some(
                batches
                    .as_slice()
                    .iter()
                    .map(|batch| batch.rows() as u64)
                    .sum(),
            ),
        }
    }

    /// What a source that runs queries holds and has counted.
    pub fn source_state(&self) -> SourceState {
        match &self.origin {
            Origin::Source(source) => source.state(),
            Origin::Encoded(..) => SourceState::default(),
        }
    }

    /// The operators of a source that runs queries, one line each.
    pub fn describe(&self) -> Vec<String> {
        match &self.origin {
            Origin::Source(source) => source.describe(),
            Origin::Encoded(..) => Vec::new(),
        }
    }

    /// Refuses sources whose state a snapshot would lose.
    ///
    /// # Errors
    /// `Unsupported` for joins and unions.
    pub fn check_resumable(&self) -> Result<()> {
        match &self.origin {
            Origin::Source(source) if !source.is_resumable() => Err(Error::unsupported(
                "no snapshots of queries over several streams",
            )
            .hint("take snapshots of the queries that feed it")),
            _ => Ok(()),
        }
    }

    /// The next batch; `None` at the end, or when the query is `satisfied`.
    ///
    /// # Errors
    /// What reading and encoding say.
    pub fn next_batch(&mut self, satisfied: bool) -> Result<Option<Arc<Batch>>> {
        if satisfied {
            return Ok(None);
        }
        match &mut self.origin {
            Origin::Encoded(batches, _) => Ok(batches.next()),
            Origin::Source(source) => match source.next()? {
                Some(rows) => self.encode(&rows).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Encodes one record batch of the source's schema.
    ///
    /// # Errors
    /// What encoding says.
    pub fn encode(&mut self, rows: &RecordBatch) -> Result<Arc<Batch>> {
        let started = Instant::now();
        let mut batch = self.take_batch();
        if let (Some(encoder), Some(target)) = (&mut self.encoder, Arc::get_mut(&mut batch)) {
            encoder.encode_projected(rows, &self.positions, target)?;
        }
        self.encode_ns += started.elapsed().as_nanos() as u64;
        if self.pool.len() < POOL_BATCHES {
            self.pool.push(Arc::clone(&batch));
        }
        Ok(batch)
    }

    /// A batch nobody else holds, from the pool if there is one.
    fn take_batch(&mut self) -> Arc<Batch> {
        let free = self
            .pool
            .iter()
            .position(|batch| Arc::strong_count(batch) == 1);
        match free {
            Some(index) => self.pool.swap_remove(index),
            None => Arc::new(Batch::empty(Arc::clone(&self.schema))),
        }
    }
}
