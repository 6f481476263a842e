//! Where rows come from: one trait, one ordered list of file formats, and what to do with bad rows.
//!
//! A source hands out Arrow record batches of at most `batch_rows` rows until it is empty. Strings
//! come out as Arrow dictionary arrays wherever the format allows, so that the codecs behind the
//! ingest see small integer keys and never a materialised string. Adding a format is one file and
//! one line in [`SOURCES`].

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};
use std::ops::AddAssign;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use crate::runtime::option::RunOptions;
use crate::runtime::state::{StateReader, StateWriter};

pub mod arrival;
pub mod arrow_ipc;
pub mod csv;
pub mod file_set;
pub mod generated;
pub mod generator;
pub(crate) mod guard;
pub mod history;
pub(crate) mod ipc_bounds;
pub mod json;
mod lines;
pub mod live;
pub mod location;
pub mod memory;
pub mod packed;
pub mod parquet;
pub mod partitioned;
pub mod passing;
pub mod query;
pub mod rejected;
pub mod series;
pub mod table;
pub mod text;
pub mod trickle;
pub mod zone;

pub use csv::CsvOptions;
pub use rejected::{
    DEAD_LETTER_ROWS_LIMIT, DeadLetters, OnError, Rejected, RejectedRow, SKIPPED_ROWS_KEPT,
};
pub use trickle::Trickle;

use self::passing::Passing;

/// Rows of a batch unless [`SourceOptions::batch_rows`] says otherwise.
pub const BATCH_ROWS_DEFAULT: usize = 65_536;

/// A stream of record batches that share one schema.
pub trait Source: Send {
    /// The Arrow schema of every batch.
    fn schema(&self) -> SchemaRef;

    /// The next batch, of at most `batch_rows` rows, or `None` at the end.
    ///
    /// A source that has nothing right now, but may have later, gives a batch without rows.
    ///
    /// After an error the source is at its end.
    ///
    /// # Errors
    /// `Io` and `Corrupt` for unreadable files; text sources also report the first bad row here
    /// when the policy is [`OnError::Fail`].
    fn next(&mut self) -> Result<Option<RecordBatch>>;

    /// How many rows there are in all, where the format says so up front; for progress bars.
    fn rows_hint(&self) -> Option<u64> {
        None
    }

    /// The rows that could not be read so far.
    fn rejected(&self) -> &Rejected;

    /// How many rows were not given so far because the query wants nothing of them.
    fn left_out(&self) -> u64 {
        0
    }

    /// What a source that runs queries itself holds and has counted.
    fn state(&self) -> SourceState {
        SourceState::default()
    }

    /// The operators of a source that runs queries itself, one line each.
    fn describe(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it runs queries itself; a fresh one of any other source that goes on at the next
    /// row gives the same rows as this one.
    fn runs_queries(&self) -> bool {
        false
    }

    /// What it does with the rows of the queries that it runs, in full.
    fn identity(&self) -> String {
        String::new()
    }

    /// How many rows the one query that it runs has read of its own source, since the first.
    fn rows_read(&self) -> Option<u64> {
        None
    }

    /// Whether the source of the one query that it runs gives again what was read before a
    /// restore, so that it is passed over; called behind [`Source::restore`].
    ///
    /// # Errors
    /// `Unsupported` for sources of encoded batches.
    fn pass_over(&mut self, _is_given_again: bool) -> Result<()> {
        Ok(())
    }

    /// Writes the state of the queries that it runs.
    ///
    /// # Errors
    /// `Unsupported` where that is not known; what the queries say.
    fn snapshot(&mut self, _out: &mut StateWriter) -> Result<()> {
        Err(no_snapshot())
    }

    /// Reads what [`Source::snapshot`] wrote, before the first batch.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit; as [`Source::snapshot`].
    fn restore(&mut self, _from: &mut StateReader<'_>) -> Result<()> {
        Err(no_snapshot())
    }

    /// The least event time of the last batch and those to come, where the source knows it and rows
    /// do not come in order; `time` is the column that the event time is, if it is one.
    fn oldest_to_come(&self, _time: Option<&str>) -> Option<i64> {
        None
    }

    /// How many partitions there are, each of which is in order by itself.
    fn partitions(&self) -> usize {
        1
    }

    /// The partition of the last batch, from 0.
    fn partition(&self) -> usize {
        0
    }

    /// How a partition stands since the last batch was asked for.
    fn partition_state(&self, _partition: usize) -> PartitionState {
        PartitionState::Flowing
    }

    /// What a partition is called.
    fn partition_name(&self, _partition: usize) -> String {
        "the stream".to_owned()
    }
}

fn no_snapshot() -> Error {
    Error::unsupported("no snapshots of queries over partitions that are queries themselves")
        .hint("take snapshots of the queries that feed it")
}

/// How a partition of a source stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionState {
    /// It sends rows, or has not been asked.
    #[default]
    Flowing,
    /// It was asked and had nothing.
    Waiting,
    /// It will send no more.
    Ended,
}

/// What a source that runs queries itself holds and has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceState {
    /// Bytes of state.
    pub bytes: usize,
    /// Rows that came too late to be joined or counted.
    pub late_rows: u64,
    /// Rows without an event time.
    pub untimed_rows: u64,
    /// Rows between windows that leave gaps.
    pub skipped_rows: u64,
    /// Rows too far in the future to move a watermark.
    pub future_rows: u64,
}

impl AddAssign for SourceState {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.late_rows += other.late_rows;
        self.untimed_rows += other.untimed_rows;
        self.skipped_rows += other.skipped_rows;
        self.future_rows += other.future_rows;
    }
}

/// How to read a source; every format takes what applies to it.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Most rows in a batch; at least 1.
    pub batch_rows: usize,
    /// Columns to read, by name; `None` reads all. The order of the file is kept.
    pub columns: Option<Vec<String>>,
    /// How text is read: CSV all of it, JSON its types, timestamp formats and `infer_rows`.
    pub csv: CsvOptions,
    /// Name of the format; `None` goes by the suffix.
    pub format: Option<String>,
    /// What happens to bad rows of text formats.
    pub on_error: OnError,
    /// Where bad rows go under [`OnError::DeadLetter`], as they are met.
    pub dead_letters: Option<DeadLetters>,
    /// What nobody wants the rows that fail it of; formats that know no such rows read all.
    pub passing: Passing,
    /// Threads that may read, those of the run where nothing is said and its memory has no limit;
    /// formats whose parts cannot be read apart use one.
    ///
    /// Parquet files are read so many row groups at once, beside the one whose batches are taken:
    /// up to 16 batches of each wait in memory for their turn; CSV without quotes and JSON lines in
    /// files so many stretches of up to 2 MiB at once.
    pub threads: Option<usize>,
}

impl Default for SourceOptions {
    fn default() -> Self {
        SourceOptions {
            batch_rows: BATCH_ROWS_DEFAULT,
            columns: None,
            csv: CsvOptions::default(),
            format: None,
            on_error: OnError::default(),
            dead_letters: None,
            passing: Passing::default(),
            threads: None,
        }
    }
}

impl SourceOptions {
    /// The threads that may read for `run`.
    fn threads_of(&self, run: &RunOptions) -> Option<usize> {
        let unlimited = run.memory_bytes_limit.is_none();
        self.threads.or(unlimited.then_some(run.threads))
    }

    /// What sources do with bad rows that are in the hands of [`SourceOptions::dead_letters`].
    fn policy(&self) -> OnError {
        match (self.on_error, &self.dead_letters) {
            (OnError::DeadLetter, Some(_)) => OnError::Skip,
            (policy, _) => policy,
        }
    }

    /// The same, under which text is read as the types of `schema`.
    fn with_types(mut self, schema: &Schema) -> Self {
        let fields = schema.fields().iter();
        // Binary formats carry their own types, and may have some that no text can become.
        let fields =
            fields.filter(|it| !matches!(it.data_type(), DataType::Struct(_) | DataType::List(_)));
        let types = fields.map(|field| (field.name().clone(), field.data_type().clone()));
        self.csv.types = types.collect();
        self
    }

    /// Refuses options that no source can follow.
    fn validate(&self) -> Result<()> {
        if self.batch_rows == 0 {
            return Err(Error::invalid("batch_rows is 0").hint("give 1 or more rows"));
        }
        let CsvOptions {
            types,
            timestamp_formats,
            ..
        } = &self.csv;
        let twice = named_twice(types).map(|name| ("type", name));
        let twice = twice.or_else(|| Some(("pattern", named_twice(timestamp_formats)?)));
        match twice {
            Some((what, name)) => {
                let message = format!("the {what} of a column is given twice");
                Err(Error::invalid(message).column(name).hint("give one"))
            }
            None => Ok(()),
        }
    }

    /// Positions of the wanted columns in `schema`, ascending; all of them without a projection.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns, `SchemaMismatch` for wanted ones of one name.
    fn project(&self, schema: &Schema) -> Result<Vec<usize>> {
        let mut places = HashMap::with_capacity(schema.fields().len());
        for (place, field) in schema.fields().iter().enumerate() {
            let wanted = self.columns.as_ref();
            let is_wanted = || wanted.is_none_or(|wanted| wanted.contains(field.name()));
            if places.insert(field.name(), place).is_some() && is_wanted() {
                return Err(Error::schema("two columns have one name")
                    .column(field.name())
                    .hint("rename one of them, or read others by their names"));
            }
        }
        let Some(wanted) = &self.columns else {
            return Ok((0..schema.fields().len()).collect());
        };
        let place = |name: &String| places.get(name).copied();
        let found = wanted
            .iter()
            .map(|name| place(name).ok_or_else(|| unknown_column(name, schema)));
        let mut positions: Vec<usize> = found.collect::<Result<_>>()?;
        positions.sort_unstable();
        positions.dedup();
        Ok(positions)
    }
}

/// A name that comes again.
fn named_twice<T>(named: &[(String, T)]) -> Option<&str> {
    let mut seen = HashSet::new();
    let mut names = named.iter().map(|(name, _)| name.as_str());
    names.find(|name| !seen.insert(*name))
}

fn unknown_column(name: &str, schema: &Schema) -> Error {
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    Error::invalid(format!("unknown column `{name}`"))
        .column(name)
        .hint(format!("the columns are: {}", names.join(", ")))
}

/// The type in which text columns leave the sources: `Dictionary(Int32, Utf8)`.
pub fn text_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// One file format that can be read.
pub struct SourceKind {
    /// Name, as front ends spell it.
    pub name: &'static str,
    /// File name endings, lower case, with the leading dot.
    pub suffixes: &'static [&'static str],
    /// One line for help texts and tables.
    pub summary: &'static str,
    /// Opens a file of this format.
    pub open: fn(&Path, &SourceOptions) -> Result<Box<dyn Source>>,
    /// Reads text of this format as it comes; `None` for formats that need the whole file.
    pub read: Option<ReadText>,
}

/// Reads rows from plain text.
pub type ReadText = fn(Box<dyn BufRead + Send>, &SourceOptions) -> Result<Box<dyn Source>>;

/// Every file format that can be read; the first whose suffix fits is taken.
pub const SOURCES: &[SourceKind] = &[
    parquet::KIND,
    arrow_ipc::KIND,
    csv::KIND,
    json::LINES_KIND,
    json::ARRAY_KIND,
];

/// The format of the name `name`.
///
/// # Errors
/// `InvalidArgument` for an unknown name; the hint lists the known ones.
pub fn find_kind(name: &str) -> Result<&'static SourceKind> {
    SOURCES
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = SOURCES.iter().map(|kind| kind.name).collect();
            Error::invalid(format!("unknown input format `{name}`"))
                .hint(format!("known formats: {}", known.join(" ")))
        })
}

/// The format of the file `path`: the one that `options` name, or that of its suffix.
fn kind_of(path: &Path, options: &SourceOptions) -> Result<&'static SourceKind> {
    if let Some(name) = &options.format {
        return find_kind(name);
    }
    kind_of_name(path).ok_or_else(|| {
        let suffixes = SOURCES.iter().flat_map(|kind| kind.suffixes);
        let known: Vec<&str> = suffixes.copied().collect();
        Error::invalid("the file name has no suffix of a known format")
            .hint(format!("known suffixes: {}", known.join(" ")))
    })
}

/// The format that the suffix of `path` tells.
pub fn kind_of_name(path: &Path) -> Option<&'static SourceKind> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let fits = |kind: &&SourceKind| kind.suffixes.iter().any(|suffix| name.ends_with(suffix));
    SOURCES.iter().find(fits)
}

/// Reads `input`, plain or packed, as the text format that `options` name.
///
/// Of a [`Trickle`] the rows come as they are written: a batch ends early where nothing has come
/// for 50 ms.
///
/// # Errors
/// `InvalidArgument` without a format or for one that needs a whole file, and what reading says.
pub fn read(input: impl Read + Send + 'static, options: &SourceOptions) -> Result<Box<dyn Source>> {
    let names = || {
        let text = SOURCES.iter().filter(|kind| kind.read.is_some());
        text.map(|kind| kind.name).collect::<Vec<_>>().join(", ")
    };
    let Some(name) = &options.format else {
        return Err(Error::invalid("a pipe has no suffix that tells its format")
            .hint(format!("name the format: {}", names())));
    };
    match find_kind(name)?.read {
        Some(read) => read(packed::unpack(input)?, options),
        None => Err(
            Error::invalid(format!("{name} cannot be read from a pipe")).hint(format!(
                "write it to a file first, or use one of: {}",
                names()
            )),
        ),
    }
}

/// Opens `path` with the format that `options` name, or else its suffix.
///
/// # Errors
/// `InvalidArgument` for an unknown suffix, zero `batch_rows` or an unknown column; `Io` and
/// `Corrupt` for files that cannot be read; all of them name the file.
///
/// # Examples
/// ```no_run
/// use tersecades_engine::source::{SourceOptions, open};
/// # fn main() -> tersecades_columnar::error::Result<()> {
/// let mut source = open("probes.parquet".as_ref(), &SourceOptions::default())?;
/// while let Some(batch) = source.next()? {
///     println!("{} rows", batch.num_rows());
/// }
/// # Ok(())
/// # }
/// ```
pub fn open(path: &Path, options: &SourceOptions) -> Result<Box<dyn Source>> {
    kind_of(path, options)
        .and_then(|kind| (kind.open)(path, options))
        .map_err(|error| error.file(path.display().to_string()))
}

#[cfg(test)]
mod tests;
