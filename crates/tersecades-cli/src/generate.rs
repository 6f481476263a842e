//! `generate`: a seeded stream as a file, with the ground truth of what was put into it.
//!
//! ```text
//! generate pingmesh -o probes.parquet ─▶ probes.parquet, probes.parquet.truth.jsonl, tor.parquet
//! ```
//! Each kind of the engine's list is a subcommand, its parameters are the options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use tersecades::engine::sink::{self, SinkOptions, Target, output::Output};
use tersecades::engine::source::generator::parameter::{Parameter, ParameterKind};
use tersecades::engine::source::generator::{
    GENERATORS, Generator, GeneratorKind, SEED_DEFAULT, find_generator,
};
use tersecades::prelude::RecordBatch;
use tersecades::store::whole_file::is_same;
use tersecades::{Error, Result};

use crate::argument;
use crate::console;
use crate::log::{self, Level};
use crate::outcome::Outcome;
use crate::progress_bar::Progress;

/// Rows that are generated and written at a time.
const BATCH_ROWS: usize = 65_536;

const AFTER_HELP: &str = "Side tables are tor.parquet of pingmesh and campaigns.parquet of yahoo; \
    they replace those of an earlier stream in the same folder, which may fit other options.";

/// What to generate.
#[derive(Debug)]
pub(crate) struct GenerateArguments {
    generator: String,
    output: PathBuf,
    rows: u64,
    seed: u64,
    /// Parameters that the user chose, as name and text.
    given: Vec<(String, String)>,
}

impl Args for GenerateArguments {
    fn augment_args(command: Command) -> Command {
        command
            .about("Write a seeded stream to a file, with the truth of what was put into it")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand_value_name("GENERATOR")
            .subcommand_help_heading("Generators")
            .subcommands(GENERATORS.iter().map(command_of))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn command_of(kind: &GeneratorKind) -> Command {
    let output = Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .required(true)
        .help(
            "The file, its format told by its suffix; beside it appear FILE.truth.jsonl and the \
             side tables of the stream",
        );
    let rows = Arg::new("rows")
        .long("rows")
        .default_value("1M")
        .value_parser(argument::count)
        .help("Rows to generate, as 5000, 20k, 20M or 1G");
    let seed = Arg::new("seed")
        .long("seed")
        .value_parser(value_parser!(u64))
        .help("Chooses one of the streams that fit the other options");
    Command::new(kind.name)
        .about(capitalised(kind.summary))
        .args([output, rows, seed])
        .next_help_heading("Shape of the stream")
        .args(kind.parameters.iter().map(option_of))
        .after_help(AFTER_HELP)
}

fn option_of(parameter: &'static Parameter) -> Arg {
    let option = Arg::new(parameter.name)
        .long(parameter.name.replace('_', "-"))
        .help(capitalised(parameter.summary));
    if parameter.kind == ParameterKind::Flag {
        return option.action(ArgAction::SetTrue);
    }
    let check = |text: &str| parameter.check(text).map(|()| text.to_owned());
    option
        .default_value(parameter.default)
        .allow_negative_numbers(true)
        .value_parser(check)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl FromArgMatches for GenerateArguments {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (generator, matches) = matches.subcommand().ok_or_else(missing)?;
        let kind = find_generator(generator).map_err(|_| missing())?;
        let is_given = |parameter: &&Parameter| {
            matches.value_source(parameter.name) == Some(ValueSource::CommandLine)
        };
        let text = |parameter: &Parameter| match parameter.kind {
            ParameterKind::Flag => Some("true".to_owned()),
            _ => matches.get_one::<String>(parameter.name).cloned(),
        };
        let given = kind.parameters.iter().filter(is_given);
        let given = given.filter_map(|it| Some((it.name.to_owned(), text(it)?)));
        Ok(GenerateArguments {
            generator: generator.to_owned(),
            output: matches.get_one("output").cloned().ok_or_else(missing)?,
            rows: matches.get_one("rows").copied().ok_or_else(missing)?,
            seed: matches.get_one("seed").copied().unwrap_or(SEED_DEFAULT),
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Writes the stream, its truth and its tables.
pub(crate) fn run(arguments: &GenerateArguments) -> Outcome {
    let kind = find_generator(&arguments.generator)?;
    let mut stream = kind.start(arguments.rows, arguments.seed, &arguments.given)?;
    let path = &arguments.output;
    let named = |(name, rows)| (path.with_file_name(format!("{name}.parquet")), rows);
    let tables: Vec<(PathBuf, RecordBatch)> = stream.tables()?.into_iter().map(named).collect();
    if tables.iter().any(|(table, _)| is_same(table, path)) {
        return Err(is_side_table(path).into());
    }
    write_stream(&mut *stream, path)?;
    let truth = write_truth_beside(&*stream, path)?;
    if truth.metadata().is_ok_and(|found| found.len() == 0) {
        let what = "these rows hold nothing that was put in on purpose";
        log::say(Level::Info, format!("{} is empty: {what}", truth.display()));
    }
    let mut written = vec![path.clone(), truth];
    for (table, rows) in tables {
        write_table(&rows, &table)?;
        written.push(table);
    }
    let written: Vec<String> = written.iter().map(|it| it.display().to_string()).collect();
    let what = format!("{} rows: {}", stream.position(), written.join(", "));
    console::say(what);
    Ok(())
}

fn is_side_table(path: &Path) -> Error {
    Error::invalid("the stream would be replaced by its side table of the same name")
        .file(path.display().to_string())
        .hint("give the stream another name")
}

fn write_stream(stream: &mut dyn Generator, path: &Path) -> Result<()> {
    let options = SinkOptions {
        has_fixed_dictionaries: true,
        ..SinkOptions::by_processor()
    };
    let mut sink = sink::create(path, &stream.schema(), &options)?;
    let progress = Progress::start("generating", Some(stream.rows()));
    while let Some(batch) = stream.next_batch(BATCH_ROWS)? {
        sink.write(&batch)
            .map_err(|error| error.file(path.display().to_string()))?;
        progress.show(stream.position());
    }
    sink.finish()
        .map_err(|error| error.file(path.display().to_string()))
}

fn write_truth_beside(stream: &dyn Generator, path: &Path) -> Result<PathBuf> {
    let mut name = OsString::from(path);
    name.push(".truth.jsonl");
    let path = PathBuf::from(name);
    let write = || {
        let mut output = Output::create(Target::File(path.clone()))?;
        stream.write_truth(&mut output)?;
        output.commit()
    };
    match write() {
        Ok(()) => Ok(path),
        Err(error) => Err(Error::file(error, path.display().to_string())),
    }
}

fn write_table(rows: &RecordBatch, path: &Path) -> Result<()> {
    let mut sink = sink::create(path, &rows.schema(), &SinkOptions::default())?;
    sink.write(rows)?;
    sink.finish()
        .map_err(|error| error.file(path.display().to_string()))
}
