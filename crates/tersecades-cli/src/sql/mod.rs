//! `sql`: statements over files, answers on stdout.
//!
//! ```text
//! --table NAME=PATH ─▶ session ─▶ each statement in turn ─▶ sink of the format ─▶ stdout or -o
//! ```

pub(crate) mod output;
mod table;

use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use clap::Args;
use tersecades::engine::sink::SINKS;
use tersecades::sql::{Answer, Session};
use tersecades::{Error, Result};

use crate::argument;
use crate::log::{self, Level};
use crate::outcome::{Outcome, Stop};
use crate::reading::ReadingArguments;
use table::TableArgument;

/// Run SQL over files; `FROM 'file.parquet'` needs no --table
#[derive(Debug, Args)]
#[command(after_help = "docs/sql.md describes the language. \
    Exit code 1: error in query or data; 2: wrong command line.")]
pub(crate) struct SqlArguments {
    /// Statements, separated by `;`
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    query: Option<String>,

    /// Read the statements from a file; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    session: SessionArguments,

    /// How rows are written [default: by the suffix of -o, else table]
    #[arg(long, value_parser = format_name)]
    format: Option<String>,

    /// Write the rows of the last statement to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// What makes a session.
#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// Names a file: NAME=PATH[,event_time=COLUMN][,lateness=2s][,format=csv]; `-` is stdin;
    /// may be repeated
    #[arg(short, long, value_name = "NAME=PATH", value_parser = table::parse)]
    table: Vec<TableArgument>,

    /// Worker threads [default: one for each processor]
    #[arg(long)]
    threads: Option<NonZero<usize>>,

    /// Most memory for windows and tables, as 4GiB
    #[arg(long, value_name = "SIZE", value_parser = argument::bytes)]
    memory_limit: Option<usize>,

    /// Sets an option, as batch_rows=8192; may be repeated
    #[arg(long, value_name = "OPTION=VALUE", value_parser = argument::pair)]
    set: Vec<(String, String)>,
}

/// Runs the statements.
pub(crate) fn run(arguments: &SqlArguments) -> Outcome {
    arguments.reading.finish(run_statements(arguments))
}

fn run_statements(arguments: &SqlArguments) -> Outcome {
    let output = arguments.output.as_deref();
    arguments.reading.require_apart(output)?;
    let text = arguments.text()?;
    let start = Instant::now();
    let mut session = arguments.session.open(&arguments.reading)?;
    let opened = start.elapsed();
    let answers = session.sql(&text)?;
    let planned = start.elapsed();
    answer(answers, &mut session, arguments.format.as_deref(), output)?;
    let times = [opened, planned - opened, start.elapsed() - planned];
    let [opened, planned, ran] = times.map(|time| time.as_secs_f64() * 1e3);
    let times = format!("opened in {opened:.1} ms, planned in {planned:.1} ms, ran in {ran:.1} ms");
    log::say(Level::Debug, times);
    Ok(())
}

/// Writes what statements of `session` answered, the rows of the last one to `output`, where that
/// is no `-`; waits for the streams that they keep.
///
/// Where the reader of stdout goes, that is done nevertheless.
pub(crate) fn answer(
    answers: Vec<Answer>,
    session: &mut Session,
    format: Option<&str>,
    output: Option<&Path>,
) -> Outcome {
    let last = answers.len().saturating_sub(1);
    if let (Some(path), Some(Answer::Done(done))) = (output, answers.last()) {
        let message = format!(
            "no rows for {}: the last statement gives none",
            path.display()
        );
        return Err(Error::invalid(message)
            .hint(format!("end with a SELECT ({done})"))
            .into());
    }
    let mut written = Ok(());
    for (index, answer) in answers.into_iter().enumerate() {
        let file = output.filter(|path| index == last && path.as_os_str() != "-");
        match answer {
            Answer::Rows(results) if written.is_err() && file.is_none() => output::pass(results)?,
            Answer::Rows(results) => match output::write(results, format, file) {
                Err(Stop::PipeClosed) => written = Err(Stop::PipeClosed),
                done => done?,
            },
            Answer::Done(what) => log::say(Level::Info, what),
        }
    }
    session.finish().map_err(Stop::Failed)?;
    written
}

impl SqlArguments {
    fn text(&self) -> Result<String> {
        if let Some(query) = &self.query {
            return Ok(query.clone());
        }
        let path = self.file.clone().unwrap_or_default();
        let named = |error: std::io::Error| Error::from(error).file(path.display().to_string());
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(named)?;
            return Ok(text);
        }
        std::fs::read_to_string(&path).map_err(named)
    }
}

impl SessionArguments {
    /// The name of the first table, if one is given.
    pub(crate) fn first_table(&self) -> Option<&str> {
        self.table.first().map(|table| table.name.as_str())
    }

    /// Whether a table is given the name.
    pub(crate) fn names(&self, table: &str) -> bool {
        self.table.iter().any(|given| given.name == table)
    }

    /// The session that the arguments describe.
    ///
    /// # Errors
    /// `InvalidArgument` for two tables of one name; what opening the tables says.
    pub(crate) fn open(&self, reading: &ReadingArguments) -> Result<Session> {
        let mut session = Session::default();
        session.read_files_with(reading.to_options()?);
        let threads = self.threads.or_else(|| available_parallelism().ok());
        session.set("threads", &threads.map_or(1, NonZero::get).to_string())?;
        if let Some(bytes) = self.memory_limit {
            session.set("memory_limit_bytes", &bytes.to_string())?;
        }
        // Encodings are of tables, the other options are what tables are read by.
        let of_table = |(option, _): &&(String, String)| option.starts_with("encoding.");
        for (option, value) in self.set.iter().filter(|set| !of_table(set)) {
            session.set(option, value)?;
        }
        for (index, table) in self.table.iter().enumerate() {
            if self.table[..index]
                .iter()
                .any(|other| other.name == table.name)
            {
                let message = format!("two tables are named `{}`", table.name);
                return Err(Error::invalid(message).hint("give each --table a name of its own"));
            }
            let (format, time) = (table.format.as_deref(), table.time.clone());
            session.register_file_as(&table.name, &table.path, format, time)?;
        }
        for (option, value) in self.set.iter().filter(of_table) {
            session.set(option, value)?;
        }
        Ok(session)
    }
}

pub(crate) fn format_name(text: &str) -> std::result::Result<String, String> {
    let known: Vec<&str> = SINKS.iter().map(|kind| kind.name).collect();
    match known.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the formats are {}", known.join(", "))),
    }
}
