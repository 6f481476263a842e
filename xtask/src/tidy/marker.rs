//! Things left behind: unfinished code, debug prints, notes without an issue, machine paths,
//! trailing white space, code in comments.

use super::Finding;
use super::source::{Repository, Source};

/// Macros that mark unfinished work.
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];
/// Notes that need an issue number.
const NOTES: &[&str] = &["TODO", "FIXME", "XXX"];
/// Folders at the root of a file system whose paths exist on one machine only.
const MACHINE_FOLDERS: &[&str] = &["work", "root", "home"];
/// First words of lines that are code when they also end like code.
const CODE_WORDS: &[&str] = &[
    "let",
    "fn",
    "pub",
    "use",
    "impl",
    "struct",
    "enum",
    "mod",
    "if",
    "for",
    "while",
    "match",
    "return",
    "assert!",
    "assert_eq!",
    "println!",
];
/// This file spells out what it looks for.
const OWN_FILE: &str = "xtask/src/tidy/marker.rs";

/// Finds what should not have been committed.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let others = repository
        .sources
        .iter()
        .filter(|source| source.path != OWN_FILE);
    others
        .flat_map(|source| [macros(source), lines(source)].concat())
        .collect()
}

fn macros(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let found = |(index, token): (usize, &super::source::Token)| {
        let word = code
            .ident(index)
            .filter(|word| MACROS.contains(word) && code.is(index + 1, "!"))?;
        Some(Finding::new(
            source,
            token.line,
            format!("`{word}!` is for work in progress"),
        ))
    };
    code.tokens.iter().enumerate().filter_map(found).collect()
}

fn lines(source: &Source) -> Vec<Finding> {
    let is_prose = source.path.ends_with(".md");
    let is_rust = source.path.ends_with(".rs");
    let mut findings = Vec::new();
    let mut code_before = false;
    for (index, line) in source.text.lines().enumerate() {
        let mut say = |message: String| findings.push(Finding::new(source, index + 1, message));
        if line.ends_with([' ', '\t', '\r']) {
            say("white space at the end of the line".to_owned());
        }
        let mut paths = MACHINE_FOLDERS.iter().map(|folder| format!("/{folder}/"));
        if let Some(path) = paths.find(|path| line.contains(path)) {
            say(format!("`{path}` is a path of one machine"));
        }
        if let Some(note) = note_without_issue(line).filter(|_| !is_prose) {
            say(format!(
                "`{note}` without the number of an issue: write `{note}(#123)`"
            ));
        }
        let code_here = is_rust && is_commented_code(line);
        if code_here && code_before {
            say("code in a comment: delete it, git remembers".to_owned());
        }
        code_before = code_here;
    }
    findings
}

fn note_without_issue(line: &str) -> Option<&'static str> {
    let is_note = |note: &&&str| {
        let mut words = line.split(|character: char| !character.is_alphanumeric());
        words.any(|word| word == **note)
    };
    let note = NOTES.iter().find(is_note)?;
    let (_, rest) = line.split_once(note)?;
    let digit = rest.find('#').and_then(|at| rest[at + 1..].chars().next());
    (!digit.is_some_and(|digit| digit.is_ascii_digit())).then_some(*note)
}

fn is_commented_code(line: &str) -> bool {
    let Some(text) = line.trim_start().strip_prefix("// ") else {
        return false;
    };
    let text = text.trim();
    let first = text.split([' ', '(']).next().unwrap_or_default();
    let ends = text.ends_with([';', '{', '}', ',']);
    let is_end = ["}", "};", "})", "});", "},"].contains(&text);
    is_end || text.ends_with(");") || (CODE_WORDS.contains(&first) && ends && !text.ends_with(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&Repository::of(&[(path, text)]))
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    #[test]
    fn finds_what_was_left_behind() {
        for text in [
            "fn f() { todo!() }\n",
            "fn f() { dbg!(x); }\n",
            "fn f() { unimplemented!(\"later\") }\n",
            "// TODO: later\n",
            "// FIXME(someone) #later\n",
            concat!("const A: &str = \"/", "home/me/data\";\n"),
            "fn f() {} \n",
            "// let a = 1;\n// let b = a;\n",
            "// if x {\n// }\n",
        ] {
            assert_eq!(messages("crates/a/src/lib.rs", text).len(), 1, "{text}");
        }
        assert_eq!(
            messages("Makefile", concat!("x:\n\tcd /", "root/x\n")).len(),
            1
        );
        assert_eq!(messages("docs/a.md", "Text. \n").len(), 1);
    }

    #[test]
    fn leaves_prose_alone() {
        for text in [
            "// TODO(#12): later\n",
            "const A: &str = \"todo!\"; // the dbg! macro\n",
            "// let the caller choose\n// for each row, one by one,\n// use the last.\n",
            "// let a = 1;\n",
        ] {
            assert_eq!(
                messages("crates/a/src/lib.rs", text),
                Vec::<String>::new(),
                "{text}"
            );
        }
        assert!(messages("docs/a.md", "A `TODO` needs an issue.\n").is_empty());
    }
}
