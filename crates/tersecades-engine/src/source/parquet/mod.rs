//! Parquet files: row group by row group, dictionary pages kept as Arrow dictionaries.
//!
//! ```text
//! footer -> schema, text columns declared Dictionary(Int32, Utf8)
//! for each row group: columns of dictionary codes -> codes -> arrays   (column.rs)
//!                     all others -> the Arrow reader                   (group.rs joins both)
//!                     -> batches of batch_rows rows
//! ```
//! Columns that rows are tested by are read first; where few rows pass, single codes of the others
//! are picked out of their pages, and rows that fail are left out, but for the newest where they
//! move the watermark (chosen.rs, newest.rs); where they are wanted for more, they hold any value.
//!
//! A reader never crosses a row group: the dictionary pages of a group then back all its batches,
//! and no string is copied to join two dictionaries. Column chunks that were written plain (high
//! cardinality) are interned batch by batch, so that the type of a column never changes.

mod chosen;
mod chunk_bytes;
mod column;
mod group;
mod hybrid;
mod nesting;
mod newest;
mod page;
mod prune;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use tersecades_columnar::error::{Error, Result};

use self::group::{Group, Wanted};
use self::nesting::check_nesting;
use super::guard::guard;
use super::passing::Passing;
use super::{Rejected, Source, SourceKind, SourceOptions, text_type};

/// The line of this format in [`super::SOURCES`].
pub const KIND: SourceKind = SourceKind {
    name: "parquet",
    suffixes: &[".parquet", ".pq"],
    summary: "Apache Parquet; dictionary pages stay dictionaries",
    open: |path, options| Ok(Box::new(ParquetSource::open(path, options)?)),
    read: None,
};

enum Input {
    File(File),
    Bytes(Bytes),
}

/// Rows of one Parquet file.
pub struct ParquetSource {
    input: Input,
    file: Option<String>,
    metadata: ArrowReaderMetadata,
    positions: Vec<usize>,
    schema: SchemaRef,
    batch_rows: usize,
    groups: std::vec::IntoIter<usize>,
    /// The first row group that is neither read nor passed over.
    group: usize,
    rows_left_out: u64,
    reader: Option<Group>,
    passing: Passing,
    rejected: Rejected,
}

impl ParquetSource {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, `Corrupt` if its footer is damaged, `InvalidArgument` for
    /// unknown columns.
    pub fn open(path: &Path, options: &SourceOptions) -> Result<Self> {
        let mut source = Self::new(Input::File(File::open(path)?), options)?;
        source.file = Some(path.display().to_string());
        Ok(source)
    }

    /// Reads a whole Parquet file that lies in memory.
    ///
    /// # Errors
    /// As [`Self::open`]; any bytes may be given.
    pub fn from_bytes(bytes: Bytes, options: &SourceOptions) -> Result<Self> {
        Self::new(Input::Bytes(bytes), options)
    }

    fn new(input: Input, options: &SourceOptions) -> Result<Self> {
        options.validate()?;
        let metadata = guard("Parquet", || match &input {
            Input::File(file) => load_metadata(file),
            Input::Bytes(bytes) => load_metadata(bytes),
        })?;
        let positions = options.project(metadata.schema())?;
        let schema = Arc::new(metadata.schema().project(&positions)?);
        let groups = prune::groups(&metadata, &options.passing).into_iter();
        Ok(ParquetSource {
            input,
            file: None,
            metadata,
            positions,
            schema,
            batch_rows: options.batch_rows,
            groups,
            group: 0,
            rows_left_out: 0,
            reader: None,
            passing: options.passing.clone(),
            rejected: Rejected::default(),
        })
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(reader) = &mut self.reader {
                let next = reader.next()?;
                self.rows_left_out += reader.take_left_out();
                match next {
                    Some(batch) if batch.num_rows() == 0 => continue,
                    Some(batch) => return Ok(Some(batch)),
                    None => self.reader = None,
                }
            }
            let next = self.groups.next();
            self.pass_over(next.unwrap_or(usize::MAX));
            match next {
                Some(group) => self.reader = Some(self.open_group(group)?),
                None => return Ok(None),
            }
        }
    }

    /// Counts the rows of the groups before `group` that are not read.
    fn pass_over(&mut self, group: usize) {
        let groups = self.metadata.metadata().row_groups().iter();
        let passed = groups.take(group).skip(self.group);
        let rows = passed.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        self.rows_left_out += rows.sum::<u64>();
        self.group = group.saturating_add(1);
    }

    fn open_group(&self, group: usize) -> Result<Group> {
        let wanted = Wanted {
            metadata: &self.metadata,
            positions: &self.positions,
            schema: &self.schema,
            batch_rows: self.batch_rows,
            passing: &self.passing,
        };
        match &self.input {
            Input::File(file) => Group::open(file.try_clone()?, &wanted, group),
            Input::Bytes(bytes) => Group::open(bytes.clone(), &wanted, group),
        }
    }
}

impl Source for ParquetSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        guard("Parquet", || self.advance()).map_err(|error| {
            self.reader = None;
            self.groups = Vec::new().into_iter();
            match &self.file {
                Some(file) => error.file(file),
                None => error,
            }
        })
    }

    fn rows_hint(&self) -> Option<u64> {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).ok()
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn left_out(&self) -> u64 {
        self.rows_left_out
    }
}

/// Reads the footer twice over: as it is, then with its text columns declared as dictionaries.
fn load_metadata<T: ChunkReader>(input: &T) -> Result<ArrowReaderMetadata> {
    check_nesting(input)?;
    let plain = ArrowReaderMetadata::load(input, ArrowReaderOptions::new()).map_err(corrupt)?;
    let fields: Vec<Field> = plain
        .schema()
        .fields()
        .iter()
        .map(|f| as_dictionary(f))
        .collect();
    let schema = Schema::new_with_metadata(fields, plain.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(plain.metadata().clone(), options).map_err(corrupt)
}

fn as_dictionary(field: &Field) -> Field {
    let value_type = match field.data_type() {
        DataType::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    match value_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            field.clone().with_data_type(text_type())
        }
        _ => field.clone(),
    }
}

fn corrupt(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(what) => Error::unsupported(format!("Parquet feature: {what}"))
            .hint("rewrite the file with snappy, zstd, lz4 or gzip compression"),
        other => Error::corrupt(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
