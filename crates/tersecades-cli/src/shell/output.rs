//! Rows on the screen, through a pager where they are longer than it.

use std::io::{ErrorKind, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tersecades::engine::sink::{self, Target};
use tersecades::sql::Results;

use crate::console::Stdout;
use crate::outcome::Outcome;
use crate::sql::output::report;

/// Writes all rows of `results` in a format.
pub(super) fn show(mut results: Results, mode: &str, pages: bool) -> Outcome {
    // A pager takes the terminal, so it starts when there is something to show.
    let first = results.next().transpose()?;
    let mut pager = if pages { Pager::start() } else { None };
    let input = pager.as_mut().and_then(Pager::input);
    let target: Box<dyn Write + Send> = match input {
        Some(input) => Box::new(input),
        None => Box::new(Stdout),
    };
    let create = sink::find_kind(mode)?.create;
    let schema = results.schema();
    let mut sink = create(Target::Writer(target), &schema, &results.sink_options())?;
    let mut batches = first.into_iter().map(Ok).chain(results.by_ref());
    let written = batches
        .try_for_each(|batch| sink.write(&batch?))
        .and_then(|()| sink.finish());
    drop(batches);
    drop(sink);
    if let Some(pager) = pager
        && pager.wait()? == Left::Early
    {
        return Ok(());
    }
    written?;
    report(&results);
    Ok(())
}

/// `$PAGER`, or `less`, which shows what fits the screen at once.
struct Pager {
    process: Child,
    /// Whether it was left before it had read all.
    left: Arc<AtomicBool>,
}

/// When a pager was left.
#[derive(PartialEq, Eq)]
enum Left {
    /// Before it had read all rows: nobody asks for the others.
    Early,
    AtEnd,
}

/// What is written to a pager.
struct PagerInput {
    input: ChildStdin,
    left: Arc<AtomicBool>,
}

impl Pager {
    fn start() -> Option<Pager> {
        let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let mut words = pager.split_whitespace();
        let mut command = Command::new(words.next()?);
        command.args(words).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "-SFRX");
        }
        let process = command.spawn().ok()?;
        let left = Arc::default();
        Some(Pager { process, left })
    }

    fn input(&mut self) -> Option<PagerInput> {
        let input = self.process.stdin.take()?;
        let left = Arc::clone(&self.left);
        Some(PagerInput { input, left })
    }

    fn wait(mut self) -> std::io::Result<Left> {
        self.process.wait()?;
        match self.left.load(Ordering::Relaxed) {
            true => Ok(Left::Early),
            false => Ok(Left::AtEnd),
        }
    }
}

impl PagerInput {
    fn note<T>(&self, written: std::io::Result<T>) -> std::io::Result<T> {
        let gone = matches!(&written, Err(error) if error.kind() == ErrorKind::BrokenPipe);
        self.left.fetch_or(gone, Ordering::Relaxed);
        written
    }
}

impl Write for PagerInput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.input.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.input.flush();
        self.note(flushed)
    }
}
