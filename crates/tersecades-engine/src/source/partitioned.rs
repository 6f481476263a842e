//! Several tables read as the partitions of one stream, in turns.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::selection::Selection;

use crate::error_bound::{carried, of_any};
use crate::plan::Query;
use crate::runtime::ingest::{EncodedSource, Origin};
use crate::runtime::option::RunOptions;

use super::table::Table;
use super::{PartitionState, Rejected, Source, SourceState};

/// Tables of one schema, each a partition: a batch of each in turn, so that none runs ahead.
///
/// Every partition has a watermark of its own, and the least of them counts: rows need to be in
/// order within their partition only.
pub struct PartitionedTable {
    partitions: Vec<(String, Arc<dyn Table>)>,
    schema: SchemaRef,
}

impl PartitionedTable {
    /// The rows of `tables`, named by their numbers from 0.
    ///
    /// # Errors
    /// As [`PartitionedTable::named`].
    pub fn new(tables: Vec<Arc<dyn Table>>) -> Result<Self> {
        let numbered = tables.into_iter().enumerate();
        PartitionedTable::named(numbered.map(|(index, table)| (index.to_string(), table)))
    }

    /// The rows of tables with names, which say what holds a window open.
    ///
    /// # Errors
    /// `InvalidArgument` without tables, `SchemaMismatch` when their columns differ.
    pub fn named(partitions: impl IntoIterator<Item = (String, Arc<dyn Table>)>) -> Result<Self> {
        let partitions: Vec<(String, Arc<dyn Table>)> = partitions.into_iter().collect();
        let Some((first, table)) = partitions.first() else {
            return Err(Error::invalid("a stream of no partitions").hint("name at least one table"));
        };
        let schema = table.schema();
        let others = partitions[1..].iter();
        let others: Vec<SchemaRef> = others.map(|(_, table)| table.schema()).collect();
        for ((name, _), other) in partitions[1..].iter().zip(&others) {
            if columns(other) != columns(&schema) {
                let message = format!("partitions `{first}` and `{name}` have different columns");
                return Err(Error::schema(message).hint("project each to the same names and types"));
            }
        }
        let schema = of_any(&schema, &others);
        Ok(PartitionedTable { partitions, schema })
    }
}

/// Name, type and whether it may be null, of each column of `schema`.
fn columns(schema: &Schema) -> Vec<(&str, &DataType, bool)> {
    let fields = schema.fields().iter();
    let columns = fields.map(|it| (it.name().as_str(), it.data_type(), it.is_nullable()));
    columns.collect()
}

impl Table for PartitionedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn admit(&self, query: &Query, exact: Option<&str>) -> Result<()> {
        let mut partitions = self.partitions.iter();
        partitions.try_for_each(|(_, table)| table.admit(query, exact))
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn open(&self, columns: Option<&[String]>) -> Result<Origin> {
        self.open_with(columns, &RunOptions::default())
    }

    fn open_with(&self, columns: Option<&[String]>, options: &RunOptions) -> Result<Origin> {
        let mut partitions = Vec::new();
        let mut schema = None;
        for (name, table) in &self.partitions {
            let source = as_source(table.open_with(columns, options)?);
            schema.get_or_insert_with(|| carried(&source.schema(), &self.schema));
            partitions.push(Partition {
                name: name.clone(),
                source,
                state: PartitionState::Flowing,
            });
        }
        Ok(Origin::Source(Box::new(PartitionedSource {
            schema: schema.unwrap_or_else(|| Arc::clone(&self.schema)),
            last: partitions.len() - 1,
            partitions,
            rejected: Rejected::default(),
        })))
    }
}

struct Partition {
    name: String,
    source: Box<dyn Source>,
    state: PartitionState,
}

struct PartitionedSource {
    schema: SchemaRef,
    partitions: Vec<Partition>,
    /// Where the last batch came from.
    last: usize,
    rejected: Rejected,
}

impl PartitionedSource {
    fn count_rejected(&mut self) {
        let sources = || self.partitions.iter().map(|p| p.source.rejected());
        if sources().any(|rejected| rejected.count_rows > 0) {
            self.rejected = Rejected {
                count_rows: sources().map(|rejected| rejected.count_rows).sum(),
                kept: sources()
                    .flat_map(|rejected| rejected.kept.clone())
                    .collect(),
            };
        }
    }
}

impl Source for PartitionedSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let count = self.partitions.len();
        let mut silent = None;
        for turn in 1..=count {
            let index = (self.last + turn) % count;
            let partition = &mut self.partitions[index];
            if partition.state == PartitionState::Ended {
                continue;
            }
            match partition.source.next()? {
                Some(batch) if batch.num_rows() > 0 => {
                    partition.state = PartitionState::Flowing;
                    self.last = index;
                    self.count_rejected();
                    return Ok(Some(batch));
                }
                Some(nothing) => {
                    partition.state = PartitionState::Waiting;
                    silent = Some(nothing);
                }
                None => partition.state = PartitionState::Ended,
            }
        }
        self.count_rejected();
        Ok(silent)
    }

    fn rows_hint(&self) -> Option<u64> {
        let hints = self.partitions.iter().map(|p| p.source.rows_hint());
        hints.sum()
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let mut all = SourceState::default();
        for partition in &self.partitions {
            all += partition.source.state();
        }
        all
    }

    fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        let open = self
            .partitions
            .iter()
            .filter(|p| p.state != PartitionState::Ended);
        open.filter_map(|p| p.source.oldest_to_come(time)).min()
    }

    fn runs_queries(&self) -> bool {
        self.partitions.iter().any(|p| p.source.runs_queries())
    }

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn partition(&self) -> usize {
        self.last
    }

    fn partition_state(&self, partition: usize) -> PartitionState {
        self.partitions[partition].state
    }

    fn partition_name(&self, partition: usize) -> String {
        format!("partition `{}`", self.partitions[partition].name)
    }
}

/// Rows as record batches, decoded where they are encoded.
pub(super) fn as_source(origin: Origin) -> Box<dyn Source> {
    match origin {
        Origin::Source(source) => source,
        Origin::Encoded(batches, schema) => Box::new(DecodedSource {
            batches,
            schema,
            work: Work::default(),
            rejected: Rejected::default(),
        }),
    }
}

/// Encoded batches as record batches.
struct DecodedSource {
    batches: Box<dyn EncodedSource>,
    schema: SchemaRef,
    work: Work,
    rejected: Rejected,
}

impl Source for DecodedSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.batches.next_batch()? else {
            return Ok(None);
        };
        let rows = Selection::all(batch.rows());
        batch.to_arrow(&rows, &mut self.work).map(Some)
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }
}
