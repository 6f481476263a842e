//! One row group: columns of dictionary codes read here, all others by the Arrow reader.
//!
//! Texts that are not all codes are read as texts and listed row by row: looking for those that
//! repeat costs more than it gives, as a writer gives up codes where there are too many texts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;
use tersecades_columnar::arrow::row_by_row;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::Predicate;

use super::chosen::{Chosen, Only};
use super::column::{CodedColumn, is_all_codes};
use super::corrupt;
use super::newest::newest_rows;
use super::tested::CodeTest;
use crate::source::passing::{Failing, Passing};
use crate::source::text_type;

/// What a file gives of each row group.
pub(super) struct Wanted {
    pub(super) metadata: ArrowReaderMetadata,
    /// Positions of the columns in the file's schema, ascending.
    pub(super) positions: Vec<usize>,
    /// Those columns.
    pub(super) schema: SchemaRef,
    pub(super) batch_rows: usize,
    pub(super) passing: Passing,
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

/// What was read of a column.
#[derive(Debug, Clone)]
enum Read {
    /// The codes of all rows, by which rows were tested.
    Codes,
    /// All rows of the batch.
    All(ArrayRef),
    /// Those that are given.
    Given(ArrayRef),
}

/// A column that rows are tested by.
struct Tested {
    place: usize,
    tests: Vec<Arc<Predicate>>,
    /// The same by codes, where rows that fail are left out.
    codes: Option<CodeTest>,
}

/// Which rows that fail are left out.
#[derive(Debug, Clone, Copy)]
enum LeftOut {
    None,
    All,
    /// All but the newest, by the column at this place.
    Older(usize),
}

impl LeftOut {
    fn of(wanted: &Wanted) -> Self {
        match &wanted.passing.failing {
            Failing::Nothing => LeftOut::All,
            Failing::Newest(time) => match wanted.schema.index_of(time) {
                Ok(place) => LeftOut::Older(place),
                Err(_) => LeftOut::None,
            },
            Failing::Time => LeftOut::None,
        }
    }
}

/// The rows of a row group, batch by batch.
pub(super) struct Group {
    columns: Vec<Column>,
    /// What rows are tested by, the cheapest first.
    tested: Vec<Tested>,
    chosen: Chosen,
    /// Batches that may still be tested in vain.
    tries: u32,
    left_out: LeftOut,
    /// Rows that were left out so far.
    rows_left_out: u64,
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
    pub(super) fn open<R>(input: R, wanted: &Wanted, group: usize) -> Result<Self>
    where
        R: ChunkReader + 'static,
    {
        let file = wanted.metadata.metadata();
        let metadata = file.row_group(group);
        let left = usize::try_from(metadata.num_rows())
            .map_err(|_| Error::corrupt("a row group with less than no rows"))?;
        let (mut columns, mut others) = (Vec::new(), Vec::new());
        let (mut tested, mut open_columns) = (Vec::new(), 0);
        let left_out = LeftOut::of(wanted);
        let leaves_out = !matches!(left_out, LeftOut::None);
        for (field, position) in wanted.schema.fields().iter().zip(&wanted.positions) {
            match leaf(&wanted.metadata, field, *position, group) {
                Some(leaf) => {
                    let column = CodedColumn::open(&input, field, metadata.column(leaf), left)?;
                    let tests = wanted.passing.tests_of(field);
                    let by_codes = leaves_out && !tests.is_empty();
                    let codes = by_codes.then(|| column.code_test(&tests, left)).flatten();
                    // Other texts are left to the query.
                    if !tests.is_empty() && (codes.is_some() || *field.data_type() != text_type()) {
                        let place = columns.len();
                        tested.push((
                            column.values(),
                            Tested {
                                place,
                                tests,
                                codes,
                            },
                        ));
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
        let read = match others.is_empty() && !columns.is_empty() {
            true => None,
            false => {
                let rows = wanted.batch_rows;
                Some(reader_of(input, wanted, (group, &others), (None, rows))?)
            }
        };
        tested.sort_by_key(|(values, _)| *values);
        // The column that is tested first is read whole.
        let gains = open_columns > 1 || leaves_out;
        let tested = tested.into_iter().filter(|_| gains);
        Ok(Group {
            columns,
            tested: tested.map(|(_, tested)| tested).collect(),
            chosen: Chosen::default(),
            tries: TRIES,
            left_out,
            rows_left_out: 0,
            others: read,
            schema: Arc::clone(&wanted.schema),
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

    /// All columns of the next `rows` rows, or of those that are given of them; `others` has those
    /// of the Arrow reader.
    fn read(&mut self, rows: usize, others: Option<&RecordBatch>) -> Result<Vec<ArrayRef>> {
        let mut read = vec![None; self.columns.len()];
        self.chosen.start(rows);
        if self.tries > 0 && !self.tested.is_empty() {
            self.test(rows, &mut read)?;
            match self.left_out {
                _ if self.chosen.few().is_none() => {}
                LeftOut::None => {}
                LeftOut::All => self.chosen.leave_out(),
                LeftOut::Older(time) => self.leave_out_older((time, rows), others, &mut read)?,
            }
        }
        let given = self.chosen.given();
        let places = given.map(|only| UInt32Array::from(only.rows.to_vec()));
        self.rows_left_out += given.map_or(0, |only| rows - only.rows.len()) as u64;
        let columns = self.columns.iter_mut().zip(read).map(|(column, read)| {
            let few = || self.chosen.few().filter(|_| column.is_open());
            let read = match read {
                Some(Read::Codes) => column.marked(given.map(|only| only.rows))?,
                Some(read) => read,
                None => column.next(rows, others, given.or_else(few))?,
            };
            let array = match (read, &places) {
                (Read::All(array), Some(places)) => take(&array, places, None)?,
                (Read::All(array) | Read::Given(array), _) => array,
                (Read::Codes, _) => return Err(Error::internal("a column of codes alone")),
            };
            coded(array)
        });
        columns.collect()
    }

    /// Leaves out the rows that are not wanted, but for the newest of the column at `time`.
    fn leave_out_older(
        &mut self,
        (time, rows): (usize, usize),
        others: Option<&RecordBatch>,
        read: &mut [Option<Read>],
    ) -> Result<()> {
        let passing = self.chosen.passing();
        let (given, times) = match (&mut self.columns[time], read[time].take()) {
            (Column::Coded { column, .. }, None) if column.has_newest() => {
                let (given, times) = column.newest(rows, passing)?;
                (Some(given), Read::Given(times))
            }
            (column, read) => {
                let read = match read {
                    None => column.next(rows, others, None)?,
                    Some(Read::Codes) => column.marked(None)?,
                    Some(read) => read,
                };
                (
                    read.array().and_then(|times| newest_rows(times, passing)),
                    read,
                )
            }
        };
        read[time] = Some(times);
        if let Some(given) = given {
            self.chosen.leave_out_others(given);
        }
        Ok(())
    }

    /// Finds the rows that may be wanted by the columns that they are tested by, which are `read`.
    fn test(&mut self, rows: usize, read: &mut [Option<Read>]) -> Result<()> {
        for Tested {
            place,
            tests,
            codes,
        } in &self.tested
        {
            let column = &mut self.columns[*place];
            // Where few passed so far, their values are picked out.
            if let (Column::Coded { column, .. }, Some(codes)) = (&mut *column, codes)
                && self.chosen.few().is_none()
            {
                self.chosen.narrow_by(|out| column.mark(rows, codes, out))?;
                read[*place] = Some(Read::Codes);
                continue;
            }
            let only = self.chosen.few().filter(|_| column.is_open());
            let found = column.next(rows, None, only)?;
            if let Some(array) = found.array() {
                self.chosen.narrow(array, tests);
            }
            read[*place] = Some(found);
        }
        self.tries = match self.chosen.few() {
            Some(_) => TRIES,
            None => self.tries - 1,
        };
        Ok(())
    }

    /// Rows that were left out since this was asked last.
    pub(super) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.rows_left_out)
    }
}

impl Read {
    fn array(&self) -> Option<&ArrayRef> {
        match self {
            Read::All(array) | Read::Given(array) => Some(array),
            Read::Codes => None,
        }
    }
}

impl Column {
    /// Whether its rows that fail may say anything.
    fn is_open(&self) -> bool {
        matches!(self, Column::Coded { open: true, .. })
    }

    /// The rows that were marked last, or those of `given`.
    fn marked(&self, given: Option<&[u32]>) -> Result<Read> {
        match (self, given) {
            (Column::Coded { column, .. }, None) => Ok(Read::All(column.marked(None)?)),
            (Column::Coded { column, .. }, rows) => Ok(Read::Given(column.marked(rows)?)),
            (Column::Other(_), _) => Err(Error::internal("a column without codes")),
        }
    }

    /// The next `rows` rows, or what `only` leaves of them where it can be read so; `others` has
    /// those of the Arrow reader.
    fn next(
        &mut self,
        rows: usize,
        others: Option<&RecordBatch>,
        only: Option<Only<'_>>,
    ) -> Result<Read> {
        match (self, others) {
            (Column::Coded { column, .. }, _) => {
                let array = column.next(rows, only)?;
                Ok(match only.is_some_and(|only| only.alone) {
                    true => Read::Given(array),
                    false => Read::All(array),
                })
            }
            (Column::Other(place), Some(others)) => {
                Ok(Read::All(Arc::clone(others.column(*place))))
            }
            (Column::Other(_), None) => Err(Error::internal("a column without a reader")),
        }
    }
}

/// The Arrow reader of the columns at `positions` of a row group, of all rows or of those that are
/// chosen, at most so many at once; texts that are not all codes come as texts.
///
/// # Errors
/// `Corrupt` for damaged columns.
pub(super) fn reader_of<R>(
    input: R,
    wanted: &Wanted,
    (group, positions): (usize, &[usize]),
    (chosen, batch_rows): (Option<RowSelection>, usize),
) -> Result<ParquetRecordBatchReader>
where
    R: ChunkReader + 'static,
{
    let fields = wanted.schema.fields().iter().zip(&wanted.positions);
    let texts = fields.filter(|(field, position)| {
        positions.contains(position) && is_row_by_row(&wanted.metadata, field, **position, group)
    });
    let texts: Vec<usize> = texts.map(|(_, position)| *position).collect();
    let declared = match texts.is_empty() {
        true => wanted.metadata.clone(),
        false => as_texts(&wanted.metadata, &texts)?,
    };
    let mask = ProjectionMask::roots(wanted.metadata.parquet_schema(), positions.iter().copied());
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, declared)
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(batch_rows);
    if let Some(chosen) = chosen {
        builder = builder.with_row_selection(chosen);
    }
    builder.build().map_err(corrupt)
}

/// A column as it comes out: texts listed row by row.
///
/// # Errors
/// What listing says.
pub(super) fn coded(array: ArrayRef) -> Result<ArrayRef> {
    match array.as_string_opt::<i32>() {
        Some(texts) => Ok(Arc::new(row_by_row(texts.clone())?)),
        None => Ok(array),
    }
}

/// The first leaf of the column at `position`.
pub(super) fn leaf_of(schema: &SchemaDescriptor, position: usize) -> Option<usize> {
    (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == position)
}

/// Whether the texts of the column at `position` are not all codes in this group.
fn is_row_by_row(
    metadata: &ArrowReaderMetadata,
    field: &FieldRef,
    position: usize,
    group: usize,
) -> bool {
    let leaf = leaf_of(metadata.parquet_schema(), position);
    let chunk = leaf.map(|leaf| metadata.metadata().row_group(group).column(leaf));
    let is_texts = chunk.is_some_and(|chunk| is_all_codes(chunk) == Some(false));
    *field.data_type() == text_type() && is_texts
}

/// The columns at `positions` declared as texts instead of dictionaries.
fn as_texts(metadata: &ArrowReaderMetadata, positions: &[usize]) -> Result<ArrowReaderMetadata> {
    let schema = metadata.schema();
    let fields = schema.fields().iter().enumerate().map(|(position, field)| {
        let field = Field::clone(field);
        match positions.contains(&position) {
            true => field.with_data_type(DataType::Utf8),
            false => field,
        }
    });
    let fields: Vec<Field> = fields.collect();
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).map_err(corrupt)
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
