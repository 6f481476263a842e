//! Parquet files: row group by row group, dictionary pages kept as Arrow dictionaries.
//!
//! ```text
//! footer -> schema, text columns declared Dictionary(Int32, Utf8)
//! for each row group: columns of dictionary codes -> codes -> arrays   (column.rs)
//!                     all others -> the Arrow reader                   (group.rs joins both)
//!                     -> batches of batch_rows rows
//! ```
//! Columns that rows are tested by are read first, where rows may be left out as codes alone
//! (tested.rs); where few rows pass, single codes of the others are picked out of their pages, and
//! rows that fail are left out, but for the newest where they move the watermark (chosen.rs,
//! newest.rs); where they are wanted for more, they hold any value.
//! Where a query keeps the first rows of an order, those behind the last one that it has are left
//! out too (reached.rs).
//!
//! Where several threads may read, row groups are read ahead, each by a thread (ahead.rs).
//!
//! A reader never crosses a row group: the dictionary pages of a group then back all its batches,
//! and no string is copied to join two dictionaries. Column chunks that were written plain (high
//! cardinality) are listed row by row, so that the type of a column never changes.

mod ahead;
mod chosen;
mod chunk_bytes;
mod column;
mod group;
mod hybrid;
mod nesting;
mod newest;
mod page;
mod prune;
mod reached;
mod table;
mod tested;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use tersecades_columnar::error::{Error, ErrorKind, Result};

use self::ahead::Ahead;
use self::group::Wanted;
use self::nesting::{check_footer, encrypted};
use self::reached::GroupRows;
use super::guard::guard;
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
    /// And where it was opened, if it may be opened again.
    File(File, Option<PathBuf>),
    Bytes(Bytes),
}

impl Input {
    /// The same bytes once more, to be read by another thread.
    fn again(&self) -> Option<Input> {
        match self {
            // A second handle of one opening would share the place that is read next.
            Input::File(file, path) => {
                let again = File::open(path.as_ref()?).ok()?;
                is_same(file, &again).then_some(Input::File(again, None))
            }
            Input::Bytes(bytes) => Some(Input::Bytes(bytes.clone())),
        }
    }

    /// Begins to read a row group.
    fn open_group(&self, wanted: &Wanted, group: usize) -> Result<GroupRows> {
        match self {
            Input::File(file, _) => GroupRows::open(|| Ok(file.try_clone()?), wanted, group),
            Input::Bytes(bytes) => GroupRows::open(|| Ok(bytes.clone()), wanted, group),
        }
    }
}

/// Whether both are openings of one file, which may have been replaced in between.
#[cfg(unix)]
fn is_same(file: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [one, other] = [file, other].map(|file| file.metadata());
    match (one, other) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same(_: &File, _: &File) -> bool {
    false
}

/// Rows of one Parquet file.
pub struct ParquetSource {
    input: Input,
    file: Option<String>,
    /// Whether columns of it may be encrypted.
    is_encrypted: bool,
    wanted: Arc<Wanted>,
    groups: std::vec::IntoIter<usize>,
    /// The first row group that is neither read nor passed over.
    group: usize,
    rows_left_out: u64,
    /// The row group that is read here.
    reader: Option<GroupRows>,
    /// Row groups that threads read, once several have begun to.
    ahead: Option<Ahead>,
    /// Threads that may.
    threads: usize,
    rejected: Rejected,
}

impl ParquetSource {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be opened, `Corrupt` if its footer is damaged, `InvalidArgument` for
    /// unknown columns.
    pub fn open(path: &Path, options: &SourceOptions) -> Result<Self> {
        let input = Input::File(File::open(path)?, Some(path.to_owned()));
        let mut source = Self::new(input, options)?;
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
        let (is_encrypted, metadata) = guard("Parquet", || match &input {
            Input::File(file, _) => Ok((check_footer(file)?, load_metadata(file)?)),
            Input::Bytes(bytes) => Ok((check_footer(bytes)?, load_metadata(bytes)?)),
        })?;
        let positions = options.project(metadata.schema())?;
        check_compression(metadata.metadata(), &positions)?;
        let schema = Arc::new(metadata.schema().project(&positions)?);
        let passing = options
            .passing
            .within(|column| prune::ends_of(&metadata, column));
        let groups = prune::groups(&metadata, &passing);
        let wanted = Arc::new(Wanted {
            metadata,
            positions,
            schema,
            batch_rows: options.batch_rows,
            passing,
        });
        let threads = options.threads.unwrap_or(1);
        Ok(ParquetSource {
            input,
            file: None,
            is_encrypted,
            ahead: None,
            threads,
            wanted,
            groups: groups.into_iter(),
            group: 0,
            rows_left_out: 0,
            reader: None,
            rejected: Rejected::default(),
        })
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let (next, left_out) = match (&mut self.reader, &mut self.ahead) {
                (Some(group), _) => (group.next()?, group.take_left_out()),
                (None, Some(ahead)) if ahead.group().is_some() => ahead.next()?,
                _ => (None, 0),
            };
            self.rows_left_out += left_out;
            match next {
                Some(batch) if batch.num_rows() == 0 => continue,
                Some(batch) => return Ok(Some(batch)),
                None => self.reader = None,
            }
            let next = self.next_group()?;
            self.pass_over(next.unwrap_or(usize::MAX));
            if next.is_none() {
                return Ok(None);
            }
        }
    }

    /// How many threads reading ahead pays for: where most rows are wanted and much is done with
    /// them, that takes one of them.
    fn readers(&self) -> usize {
        let groups = self.wanted.metadata.metadata().row_groups().iter();
        let rows = groups.take(self.group).map(|group| group.num_rows());
        let few = self.rows_left_out as i128 * 2 > rows.map(i128::from).sum();
        let all = few || self.wanted.passing.is_light;
        let threads = self.threads.saturating_sub(usize::from(!all));
        threads.min(self.groups.len())
    }

    /// Threads that read ahead; `None` where there are no more of them, or of the file.
    fn start_ahead(&self, threads: usize) -> Option<Ahead> {
        let inputs: Option<Vec<Input>> = (0..threads).map(|_| self.input.again()).collect();
        Ahead::start(inputs?, &self.wanted).ok()
    }

    /// The row group that is read next, begun.
    fn next_group(&mut self) -> Result<Option<usize>> {
        let readers = self.readers();
        if self.ahead.is_none() && readers > 1 {
            self.ahead = self.start_ahead(readers);
        }
        let Some(ahead) = &mut self.ahead else {
            let next = self.groups.next();
            let open = |group| self.input.open_group(&self.wanted, group);
            self.reader = next.map(open).transpose()?;
            return Ok(next);
        };
        for group in self.groups.by_ref().take(ahead.room()) {
            ahead.push(group);
        }
        Ok(ahead.group())
    }

    /// Counts the rows of the groups before `group` that are not read.
    fn pass_over(&mut self, group: usize) {
        let groups = self.wanted.metadata.metadata().row_groups().iter();
        let passed = groups.take(group).skip(self.group);
        let rows = passed.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        self.rows_left_out += rows.sum::<u64>();
        self.group = group.saturating_add(1);
    }
}

impl Source for ParquetSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.wanted.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        guard("Parquet", || self.advance()).map_err(|error| {
            self.reader = None;
            self.ahead = None;
            self.groups = Vec::new().into_iter();
            self.group = usize::MAX;
            let error = match self.is_encrypted && error.kind() == ErrorKind::Corrupt {
                true => encrypted(),
                false => error,
            };
            match &self.file {
                Some(file) => error.file(file),
                None => error,
            }
        })
    }

    fn rows_hint(&self) -> Option<u64> {
        u64::try_from(self.wanted.metadata.metadata().file_metadata().num_rows()).ok()
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
    let plain = ArrowReaderMetadata::load(input, ArrowReaderOptions::new()).map_err(corrupt)?;
    let fields: Vec<Field> = plain
        .schema()
        .fields()
        .iter()
        .map(|f| as_dictionary(f))
        .zip(days_and_nanoseconds(plain.metadata()))
        .map(|(field, is_int96)| {
            if is_int96 {
                as_microseconds(field)
            } else {
                field
            }
        })
        .collect();
    let schema = Schema::new_with_metadata(fields, plain.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(plain.metadata().clone(), options).map_err(corrupt)
}

/// Refuses columns at `positions` of the top under a compression that is not built in.
///
/// # Errors
/// `Unsupported`, naming column and compression.
fn check_compression(metadata: &ParquetMetaData, positions: &[usize]) -> Result<()> {
    let roots = metadata.file_metadata().schema_descr();
    let chunks = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    let roots = (0..roots.num_columns()).map(|leaf| roots.get_column_root_idx(leaf));
    for (chunk, root) in chunks.zip(roots.cycle()) {
        let name = match chunk.compression() {
            Compression::BROTLI(_) => "brotli",
            Compression::LZO => "lzo",
            _ => continue,
        };
        if positions.contains(&root) {
            let column = chunk.column_path().string();
            let message = format!("a column of the Parquet file is compressed by {name}");
            return Err(Error::unsupported(message)
                .column(column)
                .hint("rewrite the file with snappy, zstd, lz4 or gzip compression"));
        }
    }
    Ok(())
}

/// Of each column at the top, whether its times are INT96 and no Arrow schema says their unit.
fn days_and_nanoseconds(metadata: &ParquetMetaData) -> Vec<bool> {
    let file = metadata.file_metadata();
    let mut pairs = file.key_value_metadata().into_iter().flatten();
    let has_arrow = pairs.any(|pair| pair.key == ARROW_SCHEMA_META_KEY);
    let columns = file.schema_descr().root_schema().get_fields().iter();
    columns
        .map(|column| {
            !has_arrow && column.is_primitive() && column.get_physical_type() == PhysicalType::INT96
        })
        .collect()
}

/// INT96 times reach from the year -4713 on, of which nanoseconds of 64 bits hold 584 years.
fn as_microseconds(field: Field) -> Field {
    match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let zone = zone.clone();
            field.with_data_type(DataType::Timestamp(TimeUnit::Microsecond, zone))
        }
        _ => field,
    }
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
