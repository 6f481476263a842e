//! How a command ends: well, with an error to report, or because nobody reads its output.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use tersecades::Error;

use crate::console;

/// Why a command stops before it is done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The reader of our output has gone (`| head`); that is no error.
    PipeClosed,
    /// Something is wrong.
    Failed(Error),
}

/// What a command gives.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

impl From<Error> for Stop {
    /// Errors of sinks do not tell a closed pipe; the console does.
    fn from(error: Error) -> Self {
        match console::reader_has_gone() {
            true => Stop::PipeClosed,
            false => Stop::Failed(error),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Stop::PipeClosed,
            _ => Stop::Failed(error.into()),
        }
    }
}

/// Reports an error on stderr and turns the outcome into what the process exits with.
pub(crate) fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Stop::PipeClosed) => ExitCode::SUCCESS,
        Err(Stop::Failed(error)) => {
            console::say(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints what the parser of the command line tells, help or an error, and gives its exit code.
pub(crate) fn exit_code_of_parser(told: &clap::Error) -> ExitCode {
    match told.print() {
        Err(error) if !told.use_stderr() => exit_code(Err(error.into())),
        _ => u8::try_from(told.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}
