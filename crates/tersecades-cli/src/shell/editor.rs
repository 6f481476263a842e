//! The terminal with history and completion.

use std::path::{Path, PathBuf};

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use super::complete::Words;
use super::input::Line;
use super::unreadable;
use crate::outcome::Outcome;

/// Most lines that are remembered.
const HISTORY_LINES: usize = 10_000;

/// A terminal whose lines are remembered.
pub(super) struct Terminal {
    editor: Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

impl Terminal {
    /// Opens the terminal; `history` stands in for the file in the home folder.
    pub(super) fn open(history: Option<&Path>) -> Outcome<Terminal> {
        let config = Config::builder().auto_add_history(true);
        let config = config.max_history_size(HISTORY_LINES).map_err(unreadable)?;
        let mut editor = Editor::with_config(config.build()).map_err(unreadable)?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let history = history
            .map(Path::to_path_buf)
            .or_else(|| home.map(|home| home.join(".tersecades_history")));
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        editor.set_helper(Some(Words::default()));
        Ok(Terminal { editor, history })
    }

    /// The words that can be completed.
    pub(super) fn words(&mut self) -> Option<&mut Words> {
        self.editor.helper_mut()
    }

    /// The next line.
    pub(super) fn line(&mut self, prompt: &str) -> Outcome<Line> {
        let line = match self.editor.readline(prompt) {
            Ok(line) => Line::Text(line),
            Err(ReadlineError::Interrupted) => Line::Cancelled,
            Err(ReadlineError::Eof) => Line::End,
            Err(error) => return Err(unreadable(error)),
        };
        if let (Line::Text(_), Some(path)) = (&line, &self.history) {
            // A history that cannot be written is no reason to stop.
            let _ = self.editor.append_history(path);
        }
        Ok(line)
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.at(&line[..at]);
        let pair = |word: String| Pair {
            display: word.clone(),
            replacement: word,
        };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}
