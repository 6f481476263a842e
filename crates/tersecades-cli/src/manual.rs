//! What shells and manuals want to know about the commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::console;
use crate::outcome::Outcome;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints the completions of `C` for a shell.
pub(crate) fn completions<C: CommandFactory>(arguments: &CompletionsArguments) -> Outcome {
    let mut script = Vec::new();
    let mut command = C::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    console::print_bytes(&script)
}

/// Prints the manual page of `C`.
pub(crate) fn man<C: CommandFactory>() -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(C::command()).render(&mut page)?;
    console::print_bytes(&page)
}
