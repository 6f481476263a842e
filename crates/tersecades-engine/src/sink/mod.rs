//! Where answers go: one trait and one ordered list of formats.
//!
//! A sink takes batches of one schema and is whole only after `finish`: files are written beside
//! their final name and renamed at the end (see [`output`]), so a reader never meets half a file
//! under a whole one's name. Adding a format is one file and one line in [`SINKS`].

use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::error::{Error, Result};

pub mod arrow_ipc;
pub mod csv;
pub mod json;
pub mod output;
pub mod parquet;
pub mod table;

use crate::runtime::on_thread::on_threads;

pub use output::Target;

/// Rows of a batch that a thread makes text of at once.
const PIECE_ROWS: usize = 4_096;

/// A consumer of record batches that share one schema.
pub trait Sink: Send {
    /// Takes one batch.
    ///
    /// # Errors
    /// `SchemaMismatch` for a batch of another schema, `Io` if it cannot be written,
    /// `InvalidArgument` after `finish`.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Lets readers see the rows so far, where the format can show some before it has all.
    ///
    /// # Errors
    /// `Io` if they cannot be written.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Writes what is held back and puts a file under its final name.
    ///
    /// Without it a file sink leaves nothing behind when it is dropped.
    ///
    /// # Errors
    /// `Io` if it cannot be written or renamed, `InvalidArgument` when called twice.
    fn finish(&mut self) -> Result<()>;
}

/// How to write; every format takes what applies to it.
#[derive(Debug, Clone)]
pub struct SinkOptions {
    /// Rows that a table shows before it only counts.
    pub table_rows: usize,
    /// Field delimiter of CSV.
    pub csv_delimiter: u8,
    /// zstd level of Parquet, 1 to 22.
    pub zstd_level: i32,
    /// Threads that may work on a batch; what is written does not depend on it.
    pub threads: usize,
    /// Whether the dictionaries of the first batch are those of all, as of a generator's stream;
    /// Arrow IPC keeps them then, texts that no row has included.
    pub has_fixed_dictionaries: bool,
}

impl Default for SinkOptions {
    fn default() -> Self {
        SinkOptions {
            table_rows: 40,
            csv_delimiter: b',',
            zstd_level: 3,
            threads: 1,
            has_fixed_dictionaries: false,
        }
    }
}

impl SinkOptions {
    /// The defaults, with a thread for each processor.
    pub fn by_processor() -> Self {
        SinkOptions {
            threads: available_parallelism().map_or(1, NonZero::get),
            ..SinkOptions::default()
        }
    }
}

/// One format that can be written.
pub struct SinkKind {
    /// Name, as front ends spell it.
    pub name: &'static str,
    /// File name endings, lower case, with the leading dot; none for formats made for the eye.
    pub suffixes: &'static [&'static str],
    /// One line for help texts and tables.
    pub summary: &'static str,
    /// Starts a sink of this format for batches of a schema.
    pub create: fn(Target, &SchemaRef, &SinkOptions) -> Result<Box<dyn Sink>>,
}

/// Every format that can be written.
pub const SINKS: &[SinkKind] = &[
    parquet::KIND,
    arrow_ipc::KIND,
    csv::KIND,
    json::LINES_KIND,
    json::ARRAY_KIND,
    table::KIND,
];

/// Starts a sink for the file `path` with the format its suffix names.
///
/// # Errors
/// `InvalidArgument` for an unknown suffix, `Io` if the file cannot be created; both name it.
pub fn create(path: &Path, schema: &SchemaRef, options: &SinkOptions) -> Result<Box<dyn Sink>> {
    let shown = path.display().to_string();
    let name = shown.to_lowercase();
    let fits = |kind: &&SinkKind| kind.suffixes.iter().any(|suffix| name.ends_with(suffix));
    match SINKS.iter().find(fits) {
        Some(kind) => (kind.create)(Target::File(path.to_path_buf()), schema, options)
            .map_err(|error| error.file(shown)),
        None => {
            let known: Vec<&str> = SINKS
                .iter()
                .flat_map(|kind| kind.suffixes)
                .copied()
                .collect();
            Err(
                Error::invalid("the file name has no suffix of a known format")
                    .file(shown)
                    .hint(format!("known suffixes: {}", known.join(" "))),
            )
        }
    }
}

/// The sink of the name `name`, for front ends that let the user choose a format.
///
/// # Errors
/// `InvalidArgument` for an unknown name; the hint lists the known ones.
pub fn find_kind(name: &str) -> Result<&'static SinkKind> {
    SINKS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let known: Vec<&str> = SINKS.iter().map(|kind| kind.name).collect();
        Error::invalid(format!("unknown output format `{name}`"))
            .hint(format!("known formats: {}", known.join(" ")))
    })
}

/// The batch in the types of `schema`, as a sink for that wants it: text that came out as codes
/// becomes text.
///
/// # Errors
/// `SchemaMismatch` for types that do not fit.
pub fn conform(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema() == *schema {
        return Ok(batch);
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns: std::result::Result<Vec<ArrayRef>, _> = columns
        .map(|(column, field)| cast(column, field.data_type()))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        SchemaRef::clone(schema),
        columns?,
        &options,
    )?)
}

/// Texts of the rows of a batch, piece by piece, and the memory of those before.
#[derive(Debug, Default)]
struct Texts(Vec<String>);

impl Texts {
    /// What `write` makes of so many rows, by at most so many threads.
    ///
    /// # Errors
    /// What `write` says.
    fn of(
        &mut self,
        rows: usize,
        threads: usize,
        write: impl Fn(Range<usize>, &mut String) -> Result<()> + Sync,
    ) -> Result<&[String]> {
        let firsts = (0..rows).step_by(PIECE_ROWS);
        let pieces = firsts.len();
        self.0.resize_with(self.0.len().max(pieces), String::new);
        on_threads(threads, firsts.zip(&mut self.0), |(first, text)| {
            text.clear();
            write(first..rows.min(first + PIECE_ROWS), text)
        })?;
        Ok(&self.0[..pieces])
    }
}

/// Refuses a batch whose columns are not those of `schema`.
fn check_schema(schema: &SchemaRef, batch: &RecordBatch) -> Result<()> {
    let found = batch.schema();
    let same = schema.fields().len() == found.fields().len()
        && schema
            .fields()
            .iter()
            .zip(found.fields())
            .all(|(wanted, given)| {
                wanted.name() == given.name() && wanted.data_type() == given.data_type()
            });
    match same {
        true => Ok(()),
        false => Err(Error::schema(
            "a batch has other columns than the sink was made for",
        )),
    }
}

fn finished() -> Error {
    Error::invalid("the sink is finished").hint("start another one")
}

/// The columns of `batch` in a form that displays without a time zone database: times with a zone
/// are shown in UTC, with a `Z`.
fn display_columns(batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let in_utc = |column: &ArrayRef| match column.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            Ok(make_array(
                column.to_data().into_builder().data_type(utc).build()?,
            ))
        }
        _ => Ok(Arc::clone(column)),
    };
    batch.columns().iter().map(in_utc).collect()
}

/// One formatter for each column, showing nulls as `null`.
fn formatters<'a>(columns: &'a [ArrayRef], null: &'a str) -> Result<Vec<ArrayFormatter<'a>>> {
    let options = FormatOptions::new()
        .with_display_error(false)
        .with_null(null);
    let format = |column: &'a ArrayRef| Ok(ArrayFormatter::try_new(column.as_ref(), &options)?);
    columns.iter().map(format).collect()
}

#[cfg(test)]
mod tests;
