//! `shell`: statements typed one after the other, or piped in.
//!
//! ```text
//! lines ─▶ statement up to `;` ─▶ session ─▶ rows on stdout, through a pager on a terminal
//!       └▶ .command ─▶ what the shell itself does
//! ```

mod command;
#[cfg(any(test, feature = "editor"))]
mod complete;
mod control_c;
#[cfg(feature = "editor")]
mod editor;
mod input;
mod output;
mod statement;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
#[cfg(feature = "editor")]
use tersecades::Error;
use tersecades::sql::{Answer, Session};

use crate::console;
use crate::log::{self, Level};
use crate::outcome::{Outcome, Stop};
use crate::reading::ReadingArguments;
use crate::sql::SessionArguments;
use input::{Input, Line};
use statement::Pending;

/// Type SQL and see its answers; statements end with `;`, `.help` says what else there is
#[derive(Debug, Args)]
pub(crate) struct ShellArguments {
    #[command(flatten)]
    session: SessionArguments,

    /// Where typed lines are remembered [default: .tersecades_history in the home folder]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingArguments,
}

/// A shell at work.
struct Shell {
    session: Session,
    /// How rows are written.
    mode: String,
    /// Whether the time of each statement is said.
    timer: bool,
    /// Whether answers longer than the screen go through a pager.
    pager: bool,
    interactive: bool,
}

/// Reads statements until the end of the input or `.quit`.
pub(crate) fn run(arguments: &ShellArguments) -> Outcome {
    arguments.reading.finish(converse(arguments))
}

fn converse(arguments: &ShellArguments) -> Outcome {
    let interactive = std::io::stdin().is_terminal();
    let mut shell = Shell {
        session: arguments.session.open(&arguments.reading)?,
        mode: "table".to_owned(),
        timer: false,
        pager: true,
        interactive,
    };
    shell.session.interrupt_with(control_c::interrupt());
    let mut input = Input::open(interactive, arguments.history.as_deref())?;
    let mut pending = Pending::default();
    if interactive {
        console::print(concat!(
            "tersecades ",
            env!("CARGO_PKG_VERSION"),
            "; .help for help, Ctrl-D to leave\n"
        ))?;
    }
    loop {
        input.learn(&shell.session);
        match input.line(pending.is_empty())? {
            Line::End => break,
            #[cfg(feature = "editor")]
            Line::Cancelled => pending = Pending::default(),
            Line::Text(line) if pending.is_empty() && line.trim_start().starts_with('.') => {
                if !shell.command(line.trim())? {
                    break;
                }
            }
            Line::Text(line) => {
                for statement in pending.add(&line) {
                    shell.statement(&statement)?;
                }
            }
        }
    }
    if !pending.is_empty() {
        shell.statement(&pending.rest())?;
    }
    // What is kept in stores is there before the shell is left.
    Ok(control_c::during(|| shell.session.finish())?)
}

impl Shell {
    /// Runs a statement; what is wrong with it is said, and ends a script but not a conversation.
    fn statement(&mut self, text: &str) -> Outcome {
        let start = Instant::now();
        let outcome = control_c::during(|| self.answer(text));
        if self.timer {
            let took = start.elapsed().as_secs_f64() * 1e3;
            console::say(format_args!("{took:.1} ms"));
        }
        self.said(outcome)
    }

    fn answer(&mut self, text: &str) -> Outcome {
        for answer in self.session.sql(text)? {
            match answer {
                Answer::Rows(results) => output::show(results, &self.mode, self.pages())?,
                Answer::Done(what) => log::say(Level::Info, what),
            }
        }
        Ok(())
    }

    /// Says an error and goes on, on a terminal.
    fn said(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Err(Stop::Failed(error)) if self.interactive => {
                console::say(format_args!("error: {error}"));
                Ok(())
            }
            // The pager was left; the terminal is still there.
            Err(Stop::PipeClosed) if self.interactive && !console::reader_has_gone() => Ok(()),
            other => other,
        }
    }

    fn pages(&self) -> bool {
        self.pager && self.interactive && std::io::stdout().is_terminal()
    }
}

/// What a line that could not be read means.
#[cfg(feature = "editor")]
fn unreadable(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(Error::io(format!("the terminal cannot be read: {error}")))
}
