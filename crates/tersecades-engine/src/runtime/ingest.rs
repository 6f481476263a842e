//! Rows in, encoded batches with event time out.
//!
//! A stream that is kept is encoded once, here; one that is only looked at passes through as plain
//! Arrow. Batches and frames are reused as soon as nobody else holds them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use tersecades_columnar::batch::{Batch, BatchEncoder};
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Uses;
use tersecades_columnar::registry;

use crate::error_bound::{carried, encoded_by};
use crate::observe::{Kept, Reduction};
use crate::source::{PartitionState, Source, SourceState};

use super::encoding::EncodeOptions;
use super::option::RunOptions;

mod snapshot;

pub use super::encoded::EncodedSource;

/// Batches kept for reuse.
const POOL_BATCHES: usize = 16;

/// What is done with classes of values: they are compared.
const CLASS_USES: Uses = Uses {
    compare: 1.0,
    fold: 0.0,
    gather: 0.0,
    decode: 0.0,
    reads: 32.0,
    keyed: true,
};

/// Where encoded batches come from.
pub enum Origin {
    /// A source of Arrow batches, to be encoded.
    Source(Box<dyn Source>),
    /// Batches that are encoded already.
    Encoded(Box<dyn EncodedSource>, SchemaRef),
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
    /// Whether batches that nobody holds are reused.
    reuse: bool,
    /// What is kept of values that are kept as less than they are.
    reduction: Option<Reduction>,
    /// The newest event time of the last batch, where its kept times do not tell.
    newest: Option<i64>,
    /// Rows of each partition of the source since its first, those of an earlier run and those
    /// left out included.
    rows_read: Vec<u64>,
    /// What the source has left out so far.
    left_out: u64,
    /// The same without what an earlier run has read.
    rows_left_out: u64,
    /// Rows of each partition that an earlier run has read, and that come again.
    rows_to_pass: Vec<u64>,
    /// Nanoseconds spent encoding.
    pub encode_ns: u64,
}

impl Ingest {
    /// Reads `origin`, of which only `columns` are read (all when `None`); what is kept is encoded
    /// by choice for its `uses`, the rest plain where `options` do not say otherwise.
    ///
    /// # Errors
    /// `Unsupported`, naming the column, for types that cannot be encoded; what
    /// [`EncodeOptions::apply`](super::EncodeOptions::apply) says.
    pub fn new(
        origin: Origin,
        columns: Option<Vec<String>>,
        options: &RunOptions,
        uses: &dyn Fn(&str) -> Uses,
    ) -> Result<Self> {
        let kept = options.keep.is_some();
        let observed = options.observed.clone();
        let columns = match &observed {
            Some(observed) => Some(observed.kept()),
            None => columns.filter(|_| !kept && !options.keep_late_whole),
        };
        let arriving = origin.schema();
        let wanted = |name: &String| {
            columns
                .as_ref()
                .is_none_or(|columns| columns.contains(name))
        };
        let whole = matches!(origin, Origin::Encoded(..));
        let positions: Vec<usize> = (0..arriving.fields().len())
            .filter(|index| whole || wanted(arriving.field(*index).name()))
            .collect();
        let fields: Vec<_> = positions
            .iter()
            .map(|index| Arc::clone(&arriving.fields()[*index]))
            .collect();
        let metadata = arriving.metadata().clone();
        let mut schema: SchemaRef = Arc::new(Schema::new_with_metadata(fields, metadata));
        let mut encoder = None;
        if !whole {
            let encoding = encoding_of(options);
            let columns = encoder_of(&schema, &arriving, (options, &encoding), uses)?;
            schema = encoded_by(&carried(columns.schema(), &schema), &encoding.schemes);
            encoder = Some(columns);
        }
        let reduction = observed.filter(|_| !whole);
        let reduction = reduction.map(|observed| Reduction::new(&observed, &arriving));
        let partitions = match &origin {
            Origin::Source(source) => source.partitions(),
            Origin::Encoded(..) => 0,
        };
        Ok(Ingest {
            origin,
            encoder,
            positions,
            schema,
            pool: Vec::new(),
            reuse: !options.ablation.reuse,
            reduction: reduction.transpose()?,
            newest: None,
            rows_read: vec![0; partitions],
            left_out: 0,
            rows_left_out: 0,
            rows_to_pass: vec![0; partitions],
            encode_ns: 0,
        })
    }

    /// Columns of the batches that come out.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Gives the source up.
    pub fn stop(&mut self) {
        let none: Vec<Arc<Batch>> = Vec::new();
        self.origin = Origin::Encoded(Box::new(none.into_iter()), Arc::clone(&self.schema));
    }

    /// Whether the next batch is at hand, so that asking for it never waits for the world.
    pub fn never_waits(&self) -> bool {
        matches!(&self.origin, Origin::Encoded(batches, _) if !batches.goes_on())
    }

    /// The batches to come, where all are in memory already.
    pub fn at_hand(&self) -> Option<Vec<&Batch>> {
        match &self.origin {
            Origin::Encoded(batches, _) => batches.at_hand(),
            Origin::Source(_) => None,
        }
    }

    /// The newest event time of the last batch, where its kept times do not tell.
    pub fn newest(&self) -> Option<i64> {
        self.newest
    }

    /// Rows the source could not read and left out.
    pub fn rejected_rows(&self) -> u64 {
        match &self.origin {
            Origin::Source(source) => source.rejected().count_rows,
            Origin::Encoded(..) => 0,
        }
    }

    /// Rows that the source did not give because the query wants nothing of them.
    pub fn rows_left_out(&self) -> u64 {
        self.rows_left_out
    }

    /// How many rows there are in all, where that is known.
    pub fn rows_hint(&self) -> Option<u64> {
        match &self.origin {
            Origin::Source(source) => source.rows_hint(),
            Origin::Encoded(batches, _) => batches.rows_hint(),
        }
    }

    /// The least event time of the last batch and those to come, where rows come out of order and
    /// the source knows it; `time` is the column that the event time is.
    pub fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        match &self.origin {
            Origin::Source(source) => source.oldest_to_come(time),
            Origin::Encoded(batches, _) => batches.oldest_to_come(time),
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

    /// How many partitions the source has.
    pub fn partitions(&self) -> usize {
        match &self.origin {
            Origin::Source(source) => source.partitions(),
            Origin::Encoded(batches, _) => batches.partitions(),
        }
    }

    /// The partition of the last batch.
    pub fn partition(&self) -> usize {
        match &self.origin {
            Origin::Source(source) => source.partition(),
            Origin::Encoded(batches, _) => batches.partition(),
        }
    }

    /// How a partition stands.
    pub fn partition_state(&self, partition: usize) -> PartitionState {
        match &self.origin {
            Origin::Source(source) => source.partition_state(partition),
            Origin::Encoded(batches, _) => batches.partition_state(partition),
        }
    }

    /// What a partition is called.
    pub fn partition_name(&self, partition: usize) -> String {
        match &self.origin {
            Origin::Source(source) => source.partition_name(partition),
            Origin::Encoded(batches, _) => batches.partition_name(partition),
        }
    }

    /// The time of the clock when the last batch came, where that was earlier than it is given.
    pub fn came_at(&self) -> Option<Duration> {
        match &self.origin {
            Origin::Source(_) => None,
            Origin::Encoded(batches, _) => batches.came_at(),
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
        let rows = match &mut self.origin {
            Origin::Encoded(batches, _) => return batches.next_batch(),
            Origin::Source(_) => self.next_rows()?,
        };
        rows.map(|rows| self.encode(&rows)).transpose()
    }

    /// The next rows of a source behind those that were read before.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        let Origin::Source(source) = &mut self.origin else {
            return Ok(None);
        };
        loop {
            let next = source.next()?;
            let partition = source.partition();
            let (read, to_pass) = (
                &mut self.rows_read[partition],
                &mut self.rows_to_pass[partition],
            );
            let left_out = source.left_out() - self.left_out;
            self.left_out += left_out;
            let given = next.as_ref().map_or(0, RecordBatch::num_rows) as u64;
            if left_out > 0 && *to_pass > 0 {
                let passed = to_pass.checked_sub(left_out + given);
                *to_pass = passed.ok_or_else(batched_otherwise)?;
                if next.is_some() {
                    continue;
                }
            } else {
                self.rows_left_out += left_out;
                *read += left_out;
            }
            match next {
                Some(rows) => {
                    if let Some(rows) = behind(rows, to_pass) {
                        *read += rows.num_rows() as u64;
                        return Ok(Some(rows));
                    }
                }
                None if self.rows_to_pass.iter().any(|rows| *rows > 0) => return Err(fewer_rows()),
                None => return Ok(None),
            }
        }
    }

    /// Encodes one record batch of the source's schema.
    ///
    /// # Errors
    /// What encoding says.
    pub fn encode(&mut self, rows: &RecordBatch) -> Result<Arc<Batch>> {
        let started = Instant::now();
        let mut batch = self.take_batch();
        let reduced = match &mut self.reduction {
            Some(reduction) => Some(reduction.reduce(rows)?),
            None => None,
        };
        self.newest = reduced.as_ref().and_then(|reduced| reduced.newest);
        if let (Some(encoder), Some(target)) = (&mut self.encoder, Arc::get_mut(&mut batch)) {
            match &reduced {
                Some(reduced) => {
                    let kept = |column: usize| reduced.columns.get(self.positions[column]);
                    let fill =
                        |column, encoder: &mut ColumnEncoder, chunk: &mut Chunk| match kept(column)
                        {
                            Some(Kept::Whole(array)) => encoder.encode(array, chunk),
                            Some(Kept::Few(few, rows)) => encoder.encode_few(few, rows, chunk),
                            None => Err(Error::schema("a record batch lacks the column")),
                        };
                    encoder.encode_rows(rows.num_rows(), target, fill)?;
                }
                None => encoder.encode_projected(rows, &self.positions, target)?,
            }
        }
        self.encode_ns += started.elapsed().as_nanos() as u64;
        if self.reuse && self.pool.len() < POOL_BATCHES {
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

/// How columns are encoded: a class of values is kept as it is, whatever the user allows for the
/// values themselves.
fn encoding_of(options: &RunOptions) -> EncodeOptions {
    let mut encoding = options.encoding.clone();
    if let Some(observed) = &options.observed {
        encoding
            .schemes
            .retain(|(name, _)| !observed.is_class(name));
    }
    encoding
}

/// Encoders of the columns of `schema`, which arrive with others: by choice for their `uses` where
/// they are kept, plain where they are looked at once.
fn encoder_of(
    schema: &SchemaRef,
    arriving: &Schema,
    (options, encoding): (&RunOptions, &EncodeOptions),
    uses: &dyn Fn(&str) -> Uses,
) -> Result<BatchEncoder> {
    let mut encoder = BatchEncoder::new(schema)?;
    if options.keep.is_some() {
        encoding.apply(&mut encoder, arriving, uses)?;
    } else {
        let columns = encoder.columns_mut().iter_mut();
        columns.for_each(|column| column.pin(registry::fallback()));
        let is_given = |name: &str| encoding.schemes.iter().any(|(given, _)| given == name);
        let once = |name: &str| match uses(name) {
            uses if is_given(name) => uses,
            uses => Uses { reads: 1.0, ..uses },
        };
        encoding.apply(&mut encoder, arriving, once)?;
    }
    if let Some(observed) = &options.observed {
        for (column, field) in encoder.columns_mut().iter_mut().zip(schema.fields()) {
            if observed.is_class(field.name()) {
                column.aim(encoding.packed_goal(CLASS_USES));
            }
        }
    }
    Ok(encoder)
}

/// What is left of `rows` behind the first `passed`; `None` when none are.
fn behind(rows: RecordBatch, passed: &mut u64) -> Option<RecordBatch> {
    let count = rows.num_rows();
    if *passed == 0 || count == 0 {
        return Some(rows);
    }
    let first = count.min(usize::try_from(*passed).unwrap_or(usize::MAX));
    *passed -= first as u64;
    (first < count).then(|| rows.slice(first, count - first))
}

fn fewer_rows() -> Error {
    Error::corrupt("an input has fewer rows than the snapshot has seen of it")
        .hint("restore over the same inputs, from their first rows")
}

fn batched_otherwise() -> Error {
    Error::corrupt("the snapshot lies inside a batch of an input of which rows are left out")
        .hint("restore over the same inputs, read in batches of the same size")
}
