//! The repository's chores: `cargo xtask tidy` checks the style page, `cargo xtask docs`
//! regenerates the tables in the documentation.

#![forbid(unsafe_code)]

mod docs;

mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  tidy                    check style rules that the compiler and clippy cannot see
  tidy --update-ratchet   lower the recorded excess to what is left of it
  docs                    regenerate the `<!-- generated: NAME -->` sections of the documentation
  docs --check            fail when a section differs from what would be generated
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy"] => tidy::check(&root()),
        ["tidy", "--update-ratchet"] => tidy::update_ratchet(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        ["help" | "--help" | "-h"] => Ok(USAGE.trim_end().to_owned()),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: the parent of this crate's folder as cargo names it at run time.
fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let parent = manifest
        .as_deref()
        .and_then(|folder| folder.parent())
        .map(PathBuf::from);
    parent.unwrap_or_else(|| PathBuf::from("."))
}
