//! Lines that start with a dot: what the shell itself does.

use tersecades::Error;
use tersecades::engine::sink::SINKS;

use super::{Shell, control_c};
use crate::console;
use crate::outcome::Outcome;
use crate::table::Table;

/// Every command and what it does.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    (".help", "this list"),
    (".tables", "the tables"),
    (".schema", ".schema TABLE: its columns"),
    (".timer", ".timer on|off: say how long statements take"),
    (
        ".mode",
        ".mode FORMAT: how rows are written, as table or csv",
    ),
    (
        ".pager",
        ".pager on|off: page what is longer than the screen",
    ),
    (".read", ".read FILE: run the statements of a file"),
    (".quit", "leave"),
];

impl Shell {
    /// Runs a command; false when the shell is to end.
    pub(super) fn command(&mut self, line: &str) -> Outcome<bool> {
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim().trim_end_matches(';').trim();
        let name = name.trim_end_matches(';');
        if matches!(name, ".quit" | ".exit") {
            return Ok(false);
        }
        let outcome = control_c::during(|| match name {
            ".help" => print_list(COMMANDS.iter().copied()),
            ".tables" => self.answer("SHOW TABLES"),
            ".schema" if argument.is_empty() => self.answer("SHOW TABLES"),
            ".schema" => self.answer(&format!("DESCRIBE {argument}")),
            ".timer" => switch(argument, ".timer").map(|on| self.timer = on),
            ".pager" => switch(argument, ".pager").map(|on| self.pager = on),
            ".mode" => self.set_mode(argument),
            ".read" => self.read(argument),
            _ => Err(unknown(name).into()),
        });
        self.said(outcome).map(|()| true)
    }

    fn set_mode(&mut self, mode: &str) -> Outcome {
        let known: Vec<&str> = SINKS.iter().map(|kind| kind.name).collect();
        if !known.contains(&mode) {
            let error = Error::invalid(format!("unknown mode `{mode}`"));
            return Err(error
                .hint(format!("the modes are: {}", known.join(", ")))
                .into());
        }
        mode.clone_into(&mut self.mode);
        Ok(())
    }

    fn read(&mut self, path: &str) -> Outcome {
        let text = std::fs::read_to_string(path).map_err(|error| Error::from(error).file(path))?;
        self.answer(&text)
    }
}

fn print_list<'l>(lines: impl Iterator<Item = (&'l str, &'l str)>) -> Outcome {
    let mut table = Table::new(&["command", "what it does"]);
    lines.for_each(|(name, what)| table.push([name.to_owned(), what.to_owned()]));
    console::print(table.to_text(""))
}

fn switch(argument: &str, name: &str) -> Outcome<bool> {
    match argument {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Error::invalid(format!("{name} is on or off"))
            .hint(format!("{name} on"))
            .into()),
    }
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
    let error = Error::invalid(format!("unknown command `{name}`"));
    match tersecades::columnar::nearest::nearest(name, &known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("the commands are: {}", known.join(", "))),
    }
}
