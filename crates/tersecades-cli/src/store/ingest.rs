//! `store ingest`: rows of a file or a pipe, acknowledged when they are on disk.

use std::io::{BufRead, Cursor, Read as _};
use std::path::PathBuf;

use clap::Args;
use tersecades::engine::source::packed::unpack;
use tersecades::engine::source::trickle::{Trickle, through_pauses};
use tersecades::engine::source::{self, Source, SourceOptions};
use tersecades::prelude::{RecordBatch, SchemaRef};
use tersecades::store::{Store, StoreSchema, Writer};
use tersecades::{Error, ErrorKind};

use crate::console;
use crate::outcome::{Outcome, Stop};
use crate::progress_bar::Progress;
use crate::reading::ReadingArguments;

/// Lines in which the names of columns are looked for.
const HEAD_LINES_MAX: usize = 16;

/// Add rows of a file or a pipe
#[derive(Debug, Args)]
pub(crate) struct IngestArguments {
    /// Folder of the store
    dir: PathBuf,

    /// File to read; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    input: PathBuf,

    /// Format of the input [default: by its suffix]
    #[arg(long)]
    format: Option<String>,

    /// Prints `acked N` when N rows of this run are durable, while somebody reads it
    #[arg(long)]
    ack: bool,

    /// Most rows that are made durable together
    #[arg(long, default_value_t = 16_384, value_name = "ROWS")]
    batch_rows: usize,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// Reads and appends.
pub(crate) fn run(arguments: &IngestArguments) -> Outcome {
    let words = ("rows", "stored");
    let stored = write(arguments, |writer, rows| writer.append(rows), words);
    arguments.reading.finish(stored)
}

/// Reads keys and deletes the rows that have them.
pub(crate) fn delete(arguments: &IngestArguments) -> Outcome {
    let words = ("keys", "deleted");
    let deleted = write(arguments, |writer, keys| writer.delete(keys), words);
    arguments.reading.finish(deleted)
}

/// What is done with rows that come.
type Write = fn(&mut Writer<'_>, &RecordBatch) -> tersecades::Result<u64>;

/// Writes what comes; `words` say what that is and what is done with it.
fn write(arguments: &IngestArguments, how: Write, words: (&str, &str)) -> Outcome {
    let (what, done) = words;
    let store = Store::open(&arguments.dir)?;
    let mut source = open(arguments, &store)?;
    let progress = Progress::start("storing", source.rows_hint());
    let mut writer = store.writer()?;
    let (mut rows, mut acks) = (0, arguments.ack);
    // What fails here is no acknowledgement, also where nobody reads those.
    let failed = |error: Error, rows: u64| match rows {
        0 => Stop::Failed(error),
        _ => Stop::Failed(error.also(format!("the first {rows} {what} of the input are {done}"))),
    };
    while let Some(batch) = source.next().map_err(|error| failed(error, rows))? {
        if batch.num_rows() == 0 {
            continue;
        }
        let written = how(&mut writer, &batch);
        written.map_err(|error| failed(of_input(error, arguments), rows))?;
        rows += batch.num_rows() as u64;
        progress.show(rows);
        acks = acks && acknowledge(rows)?;
    }
    drop(progress);
    let closed = store.close();
    let rejected = source.rejected().count_rows;
    if rejected > 0 {
        console::say(format_args!(
            "warning: {rejected} rows could not be read and were left out"
        ));
    }
    if closed.is_ok() {
        console::say(format_args!("{rows} {what} {done}"));
    }
    closed.map_err(Stop::Failed)
}

/// Prints that so many rows are durable; whether anybody reads that.
fn acknowledge(rows: u64) -> Outcome<bool> {
    match console::print(format_args!("acked {rows}\n")) {
        Err(Stop::PipeClosed) => Ok(false),
        printed => printed.map(|()| true),
    }
}

/// The error of rows that do not fit, with the place where they come from.
fn of_input(error: Error, arguments: &IngestArguments) -> Error {
    if error.kind() != ErrorKind::SchemaMismatch || error.context().file.is_some() {
        return error;
    }
    let error = error.file(arguments.input.display().to_string());
    match (error.context().row, error.hint_text()) {
        (Some(_), Some(_)) => error
            .also("rows count from the first behind a header, without those that cannot be read"),
        _ => error,
    }
}

/// The input, its columns typed as those of the store that have their names.
fn open(arguments: &IngestArguments, store: &Store) -> tersecades::Result<Box<dyn Source>> {
    let mut options = arguments.reading.to_options()?;
    options.batch_rows = arguments.batch_rows.max(1);
    options.format.clone_from(&arguments.format);
    let schema = store.schema();
    if arguments.input.as_os_str() != "-" {
        let found = arguments.input.metadata();
        if found.is_ok_and(|found| !found.is_file()) {
            return Err(
                Error::unsupported("a pipe or folder is not read by its name")
                    .file(arguments.input.display().to_string())
                    .hint(
                        "name files one by one; a pipe is standard input: -i - --format csv < PIPE",
                    ),
            );
        }
        let names = match has_keys(arguments) {
            true => None,
            false => Some(source::open(&arguments.input, &options)?.schema()),
        };
        add_types(&mut options, &schema, names.as_ref());
        return source::open(&arguments.input, &options);
    }
    let mut input = unpack(Trickle::start(std::io::stdin())?)?;
    let mut head = Vec::new();
    let names = match has_keys(arguments) {
        true => None,
        false => read_names(&mut input, &mut head, &options)?,
    };
    add_types(&mut options, &schema, names.as_ref());
    source::read(Cursor::new(head).chain(input), &options)
}

/// Whether the input is JSON, whose rows name their columns one by one.
fn has_keys(arguments: &IngestArguments) -> bool {
    let kind = match &arguments.format {
        Some(name) => source::find_kind(name).ok(),
        None => source::kind_of_name(&arguments.input),
    };
    kind.is_some_and(|kind| kind.name.starts_with("json"))
}

/// The columns of the first row of `input`, which is read into `head` with blank lines before it.
fn read_names(
    input: &mut impl BufRead,
    head: &mut Vec<u8>,
    options: &SourceOptions,
) -> tersecades::Result<Option<SchemaRef>> {
    for _ in 0..HEAD_LINES_MAX {
        through_pauses(|| input.read_until(b'\n', head))?;
        match source::read(Cursor::new(head.clone()), options) {
            Ok(found) => return Ok(Some(found.schema())),
            Err(error) if error.kind() == ErrorKind::SchemaMismatch => {}
            Err(_) => break,
        }
    }
    Ok(None)
}

/// Types the columns that the input has; all where that cannot be told.
fn add_types(options: &mut SourceOptions, schema: &StoreSchema, names: Option<&SchemaRef>) {
    for field in schema.fields().fields() {
        let name = field.name();
        let is_there = names.is_none_or(|names| names.index_of(name).is_ok());
        if is_there && !options.csv.types.iter().any(|(typed, _)| typed == name) {
            options
                .csv
                .types
                .push((name.clone(), field.data_type().clone()));
        }
    }
}
