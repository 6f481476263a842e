//! The command line of TerseCades.
//!
//! ```text
//! arguments ─▶ command ─▶ results on stdout; progress, errors and hints on stderr
//! ```
//! Exit code 0 is good, 1 is an error in query or data, 2 is a command line that makes no sense.

mod cost;
mod demo;
mod generate;
mod inspect;
mod lists;
mod shell;
#[cfg(feature = "sql")]
mod sql;

mod argument;
mod encoding;
mod explain;
mod reading;

mod figure;
mod json;
mod outcome;
mod progress_bar;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Stream analytics that runs on encoded data.
#[derive(Debug, Parser)]
#[command(name = "tersecades", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "sql")]
    Sql(Box<sql::SqlArguments>),
    Demo(demo::DemoArguments),
    Inspect(inspect::InspectArguments),
    Costs(cost::CostsArguments),
    Generate(generate::GenerateArguments),
    Lists(lists::ListsArguments),
    Completions(shell::CompletionsArguments),
    /// Print the manual page (roff)
    Man,
}

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        #[cfg(feature = "sql")]
        Command::Sql(arguments) => sql::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Costs(arguments) => cost::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Lists(arguments) => lists::run(&arguments),
        Command::Completions(arguments) => shell::completions::<CommandLine>(&arguments),
        Command::Man => shell::man::<CommandLine>(),
    };
    outcome::exit_code(outcome)
}
