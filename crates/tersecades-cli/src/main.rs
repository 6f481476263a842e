//! The command line of TerseCades.
//!
//! ```text
//! arguments ─▶ command ─▶ results on stdout; progress, errors and hints on stderr
//! ```
//! Exit code 0 is good, also where the reader of stdout goes (`| head`); 1 is an error in query or
//! data, 2 is a command line that makes no sense.

// `console` prints, and copes with readers that have gone.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod cost;
mod demo;
mod generate;
mod inspect;
mod lists;
mod manual;
mod pack;
#[cfg(feature = "sql")]
mod qos;
#[cfg(feature = "shell")]
mod shell;
#[cfg(feature = "sql")]
mod sql;
mod store;

mod argument;
mod dead_letter;
mod encoding;
mod explain;
mod reading;

mod console;
mod figure;
mod json;
mod log;
mod outcome;
mod progress_bar;
mod signal;
mod table;

use std::process::ExitCode;

use clap::{ArgAction, Parser, Subcommand};

// It keeps the memory of batches for the next ones; the system's allocator gives it back to the
// kernel, and queries over small files then spend a quarter of their time on page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stream analytics that runs on encoded data.
#[derive(Debug, Parser)]
#[command(
    name = "tersecades",
    version,
    max_term_width = 100,
    disable_help_flag = true
)]
struct CommandLine {
    /// Print help; `tersecades help COMMAND` says more
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// How much is said on stderr
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "LEVEL",
        default_value = "info"
    )]
    log_level: log::Level,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "sql")]
    Sql(Box<sql::SqlArguments>),
    #[cfg(feature = "sql")]
    Qos(Box<qos::QosArguments>),
    #[cfg(feature = "shell")]
    Shell(Box<shell::ShellArguments>),
    Demo(demo::DemoArguments),
    Inspect(inspect::InspectArguments),
    Costs(cost::CostsArguments),
    Bench(bench::BenchArguments),
    Generate(generate::GenerateArguments),
    Pack(pack::PackArguments),
    Cat(pack::cat::CatArguments),
    Lists(lists::ListsArguments),
    Store(store::StoreArguments),
    Completions(manual::CompletionsArguments),
    /// Print the manual page (roff)
    Man,
}

fn main() -> ExitCode {
    let CommandLine {
        log_level, command, ..
    } = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(told) => return outcome::exit_code_of_parser(&told),
    };
    log::set(log_level);
    if let Err(stop) = signal::watch() {
        return outcome::exit_code(Err(stop));
    }
    let outcome = match command {
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => sql::run(&arguments),
        #[cfg(feature = "sql")]
        Command::Qos(arguments) => qos::run(&arguments),
        #[cfg(feature = "shell")]
        Command::Shell(arguments) => shell::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Costs(arguments) => cost::run(&arguments),
        Command::Bench(arguments) => match bench::run(&arguments) {
            Ok(code) => return code,
            Err(stop) => Err(stop),
        },
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Pack(arguments) => pack::run(&arguments),
        Command::Cat(arguments) => pack::cat::run(&arguments),
        Command::Lists(arguments) => lists::run(&arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Completions(arguments) => manual::completions::<CommandLine>(&arguments),
        Command::Man => manual::man::<CommandLine>(),
    };
    outcome::exit_code(outcome)
}
