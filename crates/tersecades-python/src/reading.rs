//! Streams from files and from Python's other libraries.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tersecades::Error;
use tersecades::engine::source::file_set::FilesTable;
use tersecades::engine::source::location::files_at;
use tersecades::engine::source::table::OneRun;
use tersecades::engine::source::{CsvOptions, OnError, SourceOptions, kind_of_name};
use tersecades::engine::stream;

use crate::arrow_table::{IterableTable, ReaderSource, is_reader, push_pieces, read_batches};
use crate::capsule::{import_schema, import_stream};
use crate::data_type::NamedType;
use crate::dead_letter::DeadLetters;
use crate::duration::Length;
use crate::error::{OrRaise, invalid};
use crate::expression::Column;
use crate::stream::{Stream, timed};
use crate::table::ResultTable;

/// Options that every format takes.
const SHARED: &[&str] = &["batch_rows", "on_error"];

/// Options of CSV.
const CSV: &[&str] = &[
    "delimiter",
    "header",
    "null_strings",
    "types",
    "timestamp_formats",
    "infer_rows",
    "trim",
];

/// Options of JSON.
const JSON: &[&str] = &["types", "timestamp_formats", "infer_rows"];

/// Reads `options`, of which only those in `known` and [`SHARED`] may be given.
fn source_options(options: Option<&Bound<'_, PyDict>>, known: &[&str]) -> PyResult<SourceOptions> {
    let mut read = SourceOptions::default();
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        if !known.contains(&&*name) && !SHARED.contains(&&*name) {
            let all: Vec<&str> = SHARED.iter().chain(known).copied().collect();
            let hint = format!("the options are {}", all.join(", "));
            return Err(invalid(format!("unknown option `{name}`"), &hint));
        }
        match &*name {
            "batch_rows" => read.batch_rows = value.extract()?,
            "on_error" => match value.cast::<DeadLetters>() {
                Ok(letters) => {
                    read.on_error = OnError::DeadLetter;
                    read.dead_letters = Some(letters.get().letters());
                }
                Err(_) => read.on_error = on_error(&value)?,
            },
            _ => set_csv_option(&mut read.csv, &name, &value)?,
        }
    }
    Ok(read)
}

fn on_error(policy: &Bound<'_, PyAny>) -> PyResult<OnError> {
    match policy.extract::<String>() {
        Ok(name) if name == "fail" => Ok(OnError::Fail),
        Ok(name) if name == "skip" => Ok(OnError::Skip),
        _ => Err(invalid(
            format!("`{policy}` is nothing to do with a bad row"),
            "\"fail\", \"skip\" or a tersecades.DeadLetters()",
        )),
    }
}

fn set_csv_option(csv: &mut CsvOptions, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "delimiter" => {
            let text: String = value.extract()?;
            let [delimiter] = text.as_bytes() else {
                return Err(invalid("a delimiter is one ASCII character", "as \";\""));
            };
            csv.delimiter = Some(*delimiter);
        }
        "header" => csv.header = value.extract()?,
        "null_strings" => csv.null_strings = value.extract()?,
        "types" => {
            for (column, data_type) in value.cast::<PyDict>()? {
                let data_type: NamedType = data_type.extract()?;
                csv.types.push((column.extract()?, data_type.0));
            }
        }
        "timestamp_formats" => {
            for (column, format) in value.cast::<PyDict>()? {
                let pair = (column.extract()?, format.extract()?);
                csv.timestamp_formats.push(pair);
            }
        }
        "infer_rows" => csv.infer_rows = value.extract()?,
        _ => csv.trim = value.extract()?,
    }
    Ok(())
}

/// A path, a glob or a folder, or several files.
enum Place {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(path) => Ok(Place::One(path)),
            Err(_) => object.extract().map(Place::Many),
        }
    }
}

impl Place {
    /// The format of files of JSON: that of their suffixes, lines where these tell none.
    ///
    /// # Errors
    /// `InvalidArgument` for files of other formats; what finding the files says.
    fn json_format(&self) -> tersecades::Result<Option<String>> {
        let files = match self {
            Place::One(path) => files_at(path, &SourceOptions::default())?,
            Place::Many(files) => files.clone(),
        };
        let (mut has_json, mut untold) = (false, None);
        for file in &files {
            match kind_of_name(file).map(|kind| kind.name) {
                None => untold = Some(file),
                Some("json") => has_json = true,
                Some("jsonl") => {}
                Some(name) => {
                    let error = Error::invalid(format!("read_json is to read a file of {name}"));
                    let hint = "read_csv, read_parquet and read_ipc read the other formats";
                    return Err(error.file(file.display().to_string()).hint(hint));
                }
            }
        }
        match (has_json, untold) {
            (false, _) => Ok(Some("jsonl".to_owned())),
            (true, None) => Ok(None),
            (true, Some(file)) => Err(Error::invalid("its suffix tells no format")
                .file(file.display().to_string())
                .hint("beside files of .json, read_json takes .jsonl; others are read apart")),
        }
    }

    fn open(&self, mut options: SourceOptions) -> tersecades::Result<stream::Stream> {
        if options.format.is_none() {
            options.format = self.json_format()?;
        }
        match self {
            Place::One(path) => stream::Stream::open(path, &options),
            Place::Many(files) => {
                let table = FilesTable::from_files(files.clone(), &options)?;
                Ok(stream::Stream::from_table(table))
            }
        }
    }
}

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident($format:expr): $known:expr),* $(,)?) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (path, *, event_time=None, lateness=None, **options))]
            fn $name(
                py: Python<'_>,
                path: Place,
                event_time: Option<Column>,
                lateness: Option<Length>,
                options: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Stream> {
                let mut options = source_options(options, $known)?;
                options.format = $format.map(str::to_owned);
                let opened = py.detach(|| path.open(options)).or_raise()?;
                Ok(timed(opened, event_time, lateness)?.into())
            }
        )*

        fn register_readers(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

readers! {
    /// The rows of a Parquet file, of the files of a glob or a folder (`key=value` folders are
    /// columns), or of a list of files.
    ///
    /// `event_time` is the column, or expression, of when a row happened, and `lateness` how far
    /// behind the newest row a row may come; `batch_rows` is the size of batches.
    read_parquet(Some("parquet")): &[],
    /// The rows of CSV files, plain, gzip or zstd; delimiter and types are found out.
    ///
    /// `path` is a file, a glob, a folder, a list of files, or `"-"` for standard input.
    ///
    /// Options: `delimiter`, `header`, `null_strings`, `types={"column": "int64"}`,
    /// `timestamp_formats={"column": "%d.%m.%Y"}`, `infer_rows`, `trim`, `batch_rows`, and
    /// `on_error`: `"fail"`, `"skip"` or a `DeadLetters`. Without `null_strings` these are `""`,
    /// `NA`, `N/A`, `null`, `NULL`, `NaN` and `-`; in text columns a field in quotes is text.
    read_csv(Some("csv")): CSV,
    /// The rows of files of JSON arrays (`.json`) or of JSON lines (any other suffix, as `.jsonl`),
    /// plain, gzip or zstd; types are found out.
    ///
    /// `path` is a file, a glob, a folder or a list of files. Options: `types`,
    /// `timestamp_formats`, `infer_rows`, `batch_rows` and `on_error`.
    read_json(None::<&str>): JSON,
    /// The rows of files of Arrow IPC, the file or the stream format.
    read_ipc(Some("arrow")): &[],
}

/// The rows of a table of another library: pyarrow, Polars, pandas, DuckDB, and whatever else
/// hands out Arrow data; without a copy where its types allow it.
///
/// What hands out its batches only once, as a `pyarrow.RecordBatchReader`, is read while the
/// query runs, and by one query.
///
/// >>> import pyarrow as pa, tersecades as tc
/// >>> table = pa.table({"n": [1, 2, 3]})
/// >>> tc.from_arrow(table).filter(tc.col("n") > 1).to_pylist()
/// [{'n': 2}, {'n': 3}]
#[pyfunction]
#[pyo3(signature = (data, *, event_time=None, lateness=None))]
fn from_arrow(
    data: &Bound<'_, PyAny>,
    event_time: Option<Column>,
    lateness: Option<Length>,
) -> PyResult<Stream> {
    Ok(timed(of_arrow(data)?, event_time, lateness)?.into())
}

/// The rows of an Arrow object: for one run when it is a reader, else for any number.
pub(crate) fn of_arrow(data: &Bound<'_, PyAny>) -> PyResult<stream::Stream> {
    if let Ok(result) = data.cast::<ResultTable>() {
        return result.get().stream().or_raise();
    }
    if is_reader(data)? {
        // Through the interface an exception of the reader would come as a text.
        if let Some(schema) = data.getattr_opt("schema")?
            && schema.hasattr("__arrow_c_schema__")?
        {
            let table = IterableTable::new(data, Some(import_schema(&schema)?))?;
            return Ok(stream::Stream::from_table(table));
        }
        let source = ReaderSource::new(import_stream(data)?);
        return Ok(stream::Stream::from_table(OneRun::new(Box::new(source))));
    }
    let (schema, batches) = read_batches(data)?;
    let mut pieces = Vec::new();
    batches
        .iter()
        .for_each(|batch| push_pieces(batch, &mut pieces));
    Ok(stream::Stream::from_batches(schema, pieces))
}

/// The rows of batches that Python hands out one after the other: a list, a generator, or an
/// object whose `__iter__` begins anew for each run.
///
/// The first batch tells the columns unless `schema` does. A batch without rows says that there is
/// nothing right now: idle partitions and processing time go by it.
///
/// >>> import pyarrow as pa, tersecades as tc
/// >>> def batches():
/// ...     for n in range(3):
/// ...         yield pa.record_batch({"n": [n]})
/// >>> tc.from_batches(batches()).to_pylist()
/// [{'n': 0}, {'n': 1}, {'n': 2}]
#[pyfunction]
#[pyo3(signature = (batches, *, schema=None, event_time=None, lateness=None))]
fn from_batches(
    batches: &Bound<'_, PyAny>,
    schema: Option<&Bound<'_, PyAny>>,
    event_time: Option<Column>,
    lateness: Option<Length>,
) -> PyResult<Stream> {
    if batches.cast::<PyString>().is_ok() {
        let hint = "files are opened by read_parquet, read_csv and read_ipc";
        return Err(invalid("from_batches got text", hint));
    }
    let schema = schema.map(import_schema).transpose()?;
    let table = IterableTable::new(batches, schema)?;
    let stream = stream::Stream::from_table(table);
    Ok(timed(stream, event_time, lateness)?.into())
}

/// The rows of several streams of the same columns, each a partition: a batch of each in turn.
///
/// Every partition needs to be in order only by itself, as the files of several writers: the one
/// furthest behind holds the watermark, unless it has ended or fallen silent.
///
/// >>> import pyarrow as pa, tersecades as tc
/// >>> def at(*seconds):
/// ...     times = pa.array([s * 1_000 for s in seconds], pa.timestamp("ms"))
/// ...     return tc.from_arrow(pa.table({"timestamp": times}))
/// >>> both = tc.from_partitions([at(1, 50), at(2, 3)])
/// >>> counts = both.window(tc.tumble("10s")).agg(n=tc.count()).collect()
/// >>> [row["n"] for row in counts.to_pylist()], counts.metrics.late_rows
/// ([3, 1], 0)
#[pyfunction]
#[pyo3(signature = (streams, *, event_time=None, lateness=None))]
fn from_partitions(
    streams: Vec<Py<Stream>>,
    event_time: Option<Column>,
    lateness: Option<Length>,
) -> PyResult<Stream> {
    let tables = streams.iter().map(|stream| stream.get().stream.clone());
    let tables = tables.map(stream::Stream::into_table);
    let tables = tables.collect::<tersecades::Result<Vec<_>>>().or_raise()?;
    let all = stream::Stream::from_partitions(tables).or_raise()?;
    Ok(timed(all, event_time, lateness)?.into())
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_readers(module)?;
    module.add_function(wrap_pyfunction!(from_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(from_partitions, module)?)?;
    module.add_function(wrap_pyfunction!(from_batches, module)?)
}
