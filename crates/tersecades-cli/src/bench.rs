//! `bench`: hands over to the program of the benches, which is built apart because it holds codecs
//! that are measured against and nothing else needs.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use tersecades::Error;

use crate::outcome::{Outcome, Stop};

const PROGRAM: &str = "tersecades-bench";

/// Measure this machine: limits, codecs, operators, queries (`bench` alone lists what there is)
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// What to run, and its options: `limits search --rows 1000000 -o lines.jsonl`
    #[arg(
        value_name = "NAME",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<String>,
}

/// Runs the benches that are named, or lists them all.
pub(crate) fn run(arguments: &BenchArguments) -> Outcome<ExitCode> {
    let beside = std::env::current_exe()?.with_file_name(PROGRAM);
    // Without a folder it is searched where all programs are.
    let program = match beside.is_file() {
        true => beside,
        false => PathBuf::from(PROGRAM),
    };
    let mut command = Command::new(program);
    match arguments.arguments.is_empty() {
        true => command.arg("--help"),
        false => command.args(&arguments.arguments),
    };
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Stop::Failed(not_built())),
        Err(error) => Err(error.into()),
    }
}

fn not_built() -> Error {
    Error::io(format!(
        "`{PROGRAM}` lies neither beside this program nor in PATH"
    ))
    .hint("build it in the sources: cargo build --release -p tersecades-bench")
}
