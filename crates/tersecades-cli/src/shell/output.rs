//! Rows on the screen, through a pager where they are longer than it.

use std::io::Write;
use std::process::{Child, Command, Stdio};

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
    let target: Box<dyn Write + Send> = match pager.as_mut().and_then(Pager::input) {
        Some(input) => input,
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
    if let Some(pager) = pager {
        pager.wait()?;
    }
    written?;
    report(&results);
    Ok(())
}

/// `$PAGER`, or `less`, which shows what fits the screen at once.
struct Pager(Child);

impl Pager {
    fn start() -> Option<Pager> {
        let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let mut words = pager.split_whitespace();
        let mut command = Command::new(words.next()?);
        command.args(words).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "-SFRX");
        }
        command.spawn().ok().map(Pager)
    }

    fn input(&mut self) -> Option<Box<dyn Write + Send>> {
        let input = self.0.stdin.take()?;
        Some(Box::new(input))
    }

    fn wait(mut self) -> std::io::Result<()> {
        self.0.wait().map(|_| ())
    }
}
