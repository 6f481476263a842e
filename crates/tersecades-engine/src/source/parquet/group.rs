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

use super::column::CodedColumn;
use super::corrupt;

/// What a file gives of each row group.
pub(super) struct Wanted<'a> {
    pub(super) metadata: &'a ArrowReaderMetadata,
    /// Positions of the columns in the file's schema, ascending.
    pub(super) positions: &'a [usize],
    /// Those columns.
    pub(super) schema: &'a SchemaRef,
    pub(super) batch_rows: usize,
}

enum Column {
    Coded(Box<CodedColumn>),
    /// At this place among what the Arrow reader reads.
    Other(usize),
}

/// The rows of a row group, batch by batch.
pub(super) struct Group {
    columns: Vec<Column>,
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
        for (field, position) in wanted.schema.fields().iter().zip(wanted.positions) {
            match leaf(wanted.metadata, field, *position, group) {
                Some(leaf) => {
                    let column = CodedColumn::open(&input, field, metadata.column(leaf), left)?;
                    columns.push(Column::Coded(Box::new(column)));
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
        Ok(Group {
            columns,
            others: read,
            schema: Arc::clone(wanted.schema),
            left,
            batch_rows: wanted.batch_rows,
        })
    }

    /// Columns that are read without the Arrow reader.
    #[cfg(test)]
    pub(super) fn coded_columns(&self) -> usize {
        let coded = |column: &&Column| matches!(column, Column::Coded(_));
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
        let columns = self
            .columns
            .iter_mut()
            .map(|column| match (column, &others) {
                (Column::Coded(column), _) => column.next(rows),
                (Column::Other(place), Some(others)) => Ok(Arc::clone(others.column(*place))),
                (Column::Other(_), None) => Err(Error::internal("a column without a reader")),
            });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        Ok(Some(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns,
        )?))
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
