//! Parquet files: row group by row group, dictionary pages kept as Arrow dictionaries.
//!
//! ```text
//! footer -> schema, text columns declared Dictionary(Int32, Utf8)
//! for each row group: one reader -> batches of batch_rows rows
//! ```
//! A reader never crosses a row group: the dictionary pages of a group then back all its batches,
//! and no string is copied to join two dictionaries. Column chunks that were written plain (high
//! cardinality) are interned batch by batch, so that the type of a column never changes.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use tersecades_columnar::error::{Error, Result};

use super::guard::guard;
use super::parquet_nesting::check_nesting;
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
    mask: ProjectionMask,
    schema: SchemaRef,
    batch_rows: usize,
    groups: std::ops::Range<usize>,
    reader: Option<ParquetRecordBatchReader>,
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
        let mask = ProjectionMask::roots(metadata.parquet_schema(), positions);
        let groups = 0..metadata.metadata().num_row_groups();
        Ok(ParquetSource {
            input,
            file: None,
            metadata,
            mask,
            schema,
            batch_rows: options.batch_rows,
            groups,
            reader: None,
            rejected: Rejected::default(),
        })
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next().transpose()? {
                    Some(batch) if batch.num_rows() == 0 => continue,
                    Some(batch) => return Ok(Some(batch)),
                    None => self.reader = None,
                }
            }
            match self.groups.next() {
                Some(group) => self.reader = Some(self.open_group(group)?),
                None => return Ok(None),
            }
        }
    }

    fn open_group(&self, group: usize) -> Result<ParquetRecordBatchReader> {
        match &self.input {
            Input::File(file) => self.build_reader(file.try_clone()?, group),
            Input::Bytes(bytes) => self.build_reader(bytes.clone(), group),
        }
    }

    fn build_reader<T>(&self, input: T, group: usize) -> Result<ParquetRecordBatchReader>
    where
        T: ChunkReader + 'static,
    {
        ParquetRecordBatchReaderBuilder::new_with_metadata(input, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(self.mask.clone())
            .with_batch_size(self.batch_rows)
            .build()
            .map_err(corrupt)
    }
}

impl Source for ParquetSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        guard("Parquet", || self.advance()).map_err(|error| {
            self.reader = None;
            self.groups = 0..0;
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
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;

    use super::*;

    #[test]
    fn columns_that_are_not_read_are_not_decoded() {
        let numbers = |factor: i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(
                (0..5_000).map(|n| n * factor % 977),
            ))
        };
        let batch = RecordBatch::try_from_iter([("a", numbers(7)), ("b", numbers(11))]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let mut bytes = writer.into_inner().unwrap();
        let whole = ParquetSource::from_bytes(bytes.clone().into(), &SourceOptions::default());
        let metadata = whole.unwrap().metadata.metadata().clone();
        let (start, length) = metadata.row_group(0).column(1).byte_range();
        bytes[start as usize..(start + length) as usize].fill(0xff);
        let read = |columns: Option<Vec<String>>| {
            let options = SourceOptions {
                columns,
                ..SourceOptions::default()
            };
            ParquetSource::from_bytes(bytes.clone().into(), &options)?.next()
        };
        let found = read(Some(vec!["a".to_owned()])).unwrap().unwrap();
        let wanted = batch.column(0).as_primitive::<Int64Type>().values();
        assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), wanted);
        assert!(read(None).is_err(), "the other column is broken");
    }
}
