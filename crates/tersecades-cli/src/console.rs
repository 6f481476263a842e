//! Standard output and standard error: everything that the program prints goes through here.
//!
//! ```text
//! stdout: reader has gone (`| head`) ─▶ what goes to files and stores is written, then the program
//!                                       ends, well
//!         disk is full               ─▶ an error
//! stderr: cannot be written          ─▶ nobody listens, the work goes on
//! ```

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::outcome::Outcome;

static READER_HAS_GONE: AtomicBool = AtomicBool::new(false);

/// Standard output.
///
/// # Errors
/// What the system says; where the reader has gone, [`reader_has_gone`] knows.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        noted(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        noted(io::stdout().flush())
    }
}

fn noted<T>(written: io::Result<T>) -> io::Result<T> {
    if matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe) {
        READER_HAS_GONE.store(true, Ordering::Relaxed);
    }
    written
}

/// Whether a write to standard output found that nobody reads it.
pub(crate) fn reader_has_gone() -> bool {
    READER_HAS_GONE.load(Ordering::Relaxed)
}

/// Prints a text on standard output.
pub(crate) fn print(text: impl Display) -> Outcome {
    print_bytes(text.to_string().as_bytes())
}

/// Prints bytes on standard output.
pub(crate) fn print_bytes(bytes: &[u8]) -> Outcome {
    Stdout.write_all(bytes)?;
    Ok(Stdout.flush()?)
}

/// Says a line on standard error, whatever the level.
pub(crate) fn say(what: impl Display) {
    // Where stderr cannot be written, there is no place to say so.
    let _ = io::stderr().write_all(format!("{what}\n").as_bytes());
}
