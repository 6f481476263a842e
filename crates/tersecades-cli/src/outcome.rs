//! How a command ends: well, with an error to report, or because nobody reads its output.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use tersecades::Error;

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
    fn from(error: Error) -> Self {
        Stop::Failed(error)
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
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
