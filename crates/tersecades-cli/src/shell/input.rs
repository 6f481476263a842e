//! Lines from a terminal, or from a pipe.

use std::io::{BufRead as _, StdinLock};
use std::path::Path;

use tersecades::sql::Session;

#[cfg(feature = "editor")]
use super::editor::Terminal;
use crate::console;
use crate::outcome::Outcome;

/// A line, or why there is none.
pub(super) enum Line {
    /// What was typed.
    Text(String),
    /// Ctrl-C: the statement that was begun is dropped.
    #[cfg(feature = "editor")]
    Cancelled,
    /// The end of the input.
    End,
}

/// Where lines come from.
pub(super) enum Input {
    /// A terminal with history and completion.
    #[cfg(feature = "editor")]
    Terminal(Box<Terminal>),
    /// Anything else, and whether to ask for lines.
    Plain(StdinLock<'static>, bool),
}

impl Input {
    /// Opens the input; `history` stands in for the file in the home folder.
    #[cfg(feature = "editor")]
    pub(super) fn open(interactive: bool, history: Option<&Path>) -> Outcome<Input> {
        Ok(match interactive {
            true => Input::Terminal(Box::new(Terminal::open(history)?)),
            false => Input::Plain(std::io::stdin().lock(), false),
        })
    }

    /// Opens the input; nothing is remembered.
    #[cfg(not(feature = "editor"))]
    pub(super) fn open(interactive: bool, _history: Option<&Path>) -> Outcome<Input> {
        Ok(Input::Plain(std::io::stdin().lock(), interactive))
    }

    /// Takes over the names that can be completed.
    pub(super) fn learn(&mut self, _session: &Session) {
        #[cfg(feature = "editor")]
        if let Input::Terminal(terminal) = self
            && let Some(words) = terminal.words()
        {
            words.learn(_session);
        }
    }

    /// The next line; `is_first` when no statement has begun.
    pub(super) fn line(&mut self, is_first: bool) -> Outcome<Line> {
        let prompt = if is_first {
            "tersecades> "
        } else {
            "        ..> "
        };
        match self {
            #[cfg(feature = "editor")]
            Input::Terminal(terminal) => terminal.line(prompt),
            Input::Plain(input, asks) => {
                if *asks {
                    console::print(prompt)?;
                }
                let mut line = String::new();
                Ok(match input.read_line(&mut line)? {
                    0 => Line::End,
                    _ => Line::Text(line.trim_end_matches(['\n', '\r']).to_owned()),
                })
            }
        }
    }
}
