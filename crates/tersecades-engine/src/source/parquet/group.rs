//! One row group: columns of dictionary codes read here, all others by the Arrow reader.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::Predicate;

use super::chosen::Chosen;
use super::column::CodedColumn;
use super::corrupt;
use crate::source::passing::Passing;

/// What a file gives of each row group.
pub(super) struct Wanted<'a> {
    pub(super) metadata: &'a ArrowReaderMetadata,
    /// Positions of the columns in the file's schema, ascending.
    pub(super) positions: &'a [usize],
    /// Those columns.
    pub(super) schema: &'a SchemaRef,
    pub(super) batch_rows: usize,
    pub(super) passing: &'a Passing,
}

/// Batches of a row group in which rows may be tested without leaving few.
const TRIES: u32 = 2;

enum Column {
    /// Its rows that fail may say anything, if it is open.
    Coded {
        column: Box<CodedColumn>,
        open: bool,
    },
    /// At this place among what the Arrow reader reads.
    Other(usize),
}

/// The rows of a row group, batch by batch.
pub(super) struct Group {
    columns: Vec<Column>,
    /// Places of the columns that rows are tested by, the cheapest first, and the tests.
    tested: Vec<(usize, Vec<Arc<Predicate>>)>,
    chosen: Chosen,
    /// Batches that may still be tested in vain.
    tries: u32,
    others: Option<ParquetRecordBatchReader>,
    schema: SchemaRef,
    left: usize,
    batch_rows: usize,
}

impl Group {
    /// Row group number `group` of the file `input`.
    ///
    /// # Errors
    /// `Corrupt` for damaged columns, `Unsupported` for features that are not built in.
    pub(super) fn open<R>(input: R, wanted: &Wanted<'_>, group: usize) -> Result<Self>
    where
        R: ChunkReader + 'static,
    {
        let file = wanted.metadata.metadata();
        let metadata = file.row_group(group);
        let left = usize::try_from(metadata.num_rows())
            .map_err(|_| Error::corrupt("a row group with less than no rows"))?;
        let (mut columns, mut others) = (Vec::new(), Vec::new());
        let (mut tested, mut open_columns) = (Vec::new(), 0);
        for (field, position) in wanted.schema.fields().iter().zip(wanted.positions) {
            match leaf(wanted.metadata, field, *position, group) {
                Some(leaf) => {
                    let column = CodedColumn::open(&input, field, metadata.column(leaf), left)?;
                    let tests = wanted.passing.tests_of(field);
                    if !tests.is_empty() {
                        tested.push((column.values(), columns.len(), tests));
                    }
                    let open = wanted.passing.leaves_open(field);
                    open_columns += usize::from(open);
                    let column = Box::new(column);
                    columns.push(Column::Coded { column, open });
                }
                None => {
                    columns.push(Column::Other(others.len()));
                    others.push(*position);
                }
            }
        }
        let read = if others.is_empty() && !columns.is_empty() {
            None
        } else {
            let mask = ProjectionMask::roots(wanted.metadata.parquet_schema(), others);
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(input, wanted.metadata.clone());
            let reader = builder
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(wanted.batch_rows)
                .build();
            Some(reader.map_err(corrupt)?)
        };
        tested.sort_by_key(|(values, ..)| *values);
        // The column that is tested first is read whole.
        let gains = open_columns > 1 || tested.is_empty();
        let tested = tested.into_iter().filter(|_| gains);
        Ok(Group {
            columns,
            tested: tested.map(|(_, place, tests)| (place, tests)).collect(),
            chosen: Chosen::default(),
            tries: TRIES,
            others: read,
            schema: Arc::clone(wanted.schema),
            left,
            batch_rows: wanted.batch_rows,
        })
    }

    /// Columns that are read without the Arrow reader.
    #[cfg(test)]
    pub(super) fn coded_columns(&self) -> usize {
        let coded = |column: &&Column| matches!(column, Column::Coded { .. });
        self.columns.iter().filter(coded).count()
    }

    /// The next batch, or `None` at the end of the group.
    ///
    /// # Errors
    /// `Corrupt` for damaged pages.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let others = match &mut self.others {
            Some(reader) => match reader.next().transpose()? {
                Some(batch) => Some(batch),
                None if self.left == 0 => return Ok(None),
                None => {
                    return Err(Error::corrupt(
                        "the columns of a row group differ in length",
                    ));
                }
            },
            None if self.left == 0 => return Ok(None),
            None => None,
        };
        let rows = match &others {
            Some(batch) => batch.num_rows(),
            None => self.batch_rows.min(self.left),
        };
        self.left = self
            .left
            .checked_sub(rows)
            .ok_or_else(|| Error::corrupt("the columns of a row group differ in length"))?;
        if let (true, Some(others)) = (self.columns.is_empty(), &others) {
            return Ok(Some(others.clone()));
        }
        let columns = self.read(rows, others.as_ref())?;
        Ok(Some(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns,
        )?))
    }

    /// All columns of the next `rows` rows; `others` has those of the Arrow reader.
    fn read(&mut self, rows: usize, others: Option<&RecordBatch>) -> Result<Vec<ArrayRef>> {
        let mut read: Vec<Option<ArrayRef>> = vec![None; self.columns.len()];
        self.chosen.start(rows);
        if self.tries > 0 && !self.tested.is_empty() {
            for (place, tests) in &self.tested {
                if let Column::Coded { column, open } = &mut self.columns[*place] {
                    let array = column.next(rows, self.chosen.few().filter(|_| *open))?;
                    self.chosen.narrow(&array, tests);
                    read[*place] = Some(array);
                }
            }
            self.tries = match self.chosen.few() {
                Some(_) => TRIES,
                None => self.tries - 1,
            };
        }
        let columns =
            self.columns
                .iter_mut()
                .zip(read)
                .map(|(column, read)| match (column, others) {
                    (_, _) if read.is_some() => Ok(read),
                    (Column::Coded { column, open }, _) => {
                        let few = self.chosen.few().filter(|_| *open);
                        column.next(rows, few).map(Some)
                    }
                    (Column::Other(place), Some(others)) => {
                        Ok(Some(Arc::clone(others.column(*place))))
                    }
                    (Column::Other(_), None) => Ok(None),
                });
        let columns = columns
            .map(|column| column?.ok_or_else(|| Error::internal("a column without a reader")));
        columns.collect()
    }
}

/// The first leaf of the column at `position`.
pub(super) fn leaf_of(schema: &SchemaDescriptor, position: usize) -> Option<usize> {
    (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == position)
}

/// The leaf of the column at `position`, if it can be read here from this group.
fn leaf(
    metadata: &ArrowReaderMetadata,
    field: &FieldRef,
    position: usize,
    group: usize,
) -> Option<usize> {
    let leaf = leaf_of(metadata.parquet_schema(), position)?;
    let chunk = metadata.metadata().row_group(group).column(leaf);
    (chunk.num_values() > 0 && CodedColumn::reads(field, chunk)).then_some(leaf)
}
