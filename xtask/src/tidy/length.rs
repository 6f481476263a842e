//! Files of at most 500 lines (without inline test modules), functions of at most 70, lines of at
//! most 100 characters.
//!
//! Excess that is recorded in `xtask/ratchet.txt` is let through; it may shrink, never grow, and a
//! record that is no longer reached must be lowered, so that it cannot grow back.

use super::Finding;
use super::source::{Code, Repository, Source};
use std::collections::BTreeMap;

const FILE_LINES_LIMIT: usize = 500;
const FUNCTION_LINES_LIMIT: usize = 70;
const LINE_CHARACTERS_LIMIT: usize = 100;

/// Something longer than its limit.
#[derive(Debug, PartialEq, Eq)]
struct Excess {
    path: String,
    /// `file`, or `fn:` and the function's name.
    kind: String,
    line: usize,
    number: usize,
    limit: usize,
}

/// Recorded excess: (path, kind) to (number, line of the record).
type Ratchet = BTreeMap<(String, String), (usize, usize)>;

/// Compares lengths with the limits and the recorded excess.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let (ratchet, mut findings) = parse_ratchet(&repository.ratchet);
    let excesses = measure_all(repository);
    for excess in &excesses {
        let recorded = ratchet.get(&(excess.path.clone(), excess.kind.clone()));
        let ceiling = recorded.map_or(excess.limit, |(number, _)| *number);
        if excess.number > ceiling {
            let message = format!(
                "{} has {} lines, limit {ceiling}: split it",
                excess.kind, excess.number
            );
            findings.push(Finding {
                path: excess.path.clone(),
                line: excess.line,
                message,
            });
        }
    }
    for ((path, kind), (number, line)) in &ratchet {
        let left = reached(&excesses, path, kind);
        if left.is_none_or(|left| left < *number) {
            let left = left.map_or("within its limit".to_owned(), |left| format!("at {left}"));
            let message =
                format!("{path} {kind} is {left}: run `cargo xtask tidy --update-ratchet`");
            let path = super::source::RATCHET_PATH.to_owned();
            findings.push(Finding {
                path,
                line: *line,
                message,
            });
        }
    }
    findings.extend(repository.sources.iter().flat_map(long_lines));
    findings
}

/// The recorded excess with each number lowered to what is left; nothing is added or raised.
pub(crate) fn lowered_ratchet(repository: &Repository) -> String {
    let excesses = measure_all(repository);
    let mut lowered = String::new();
    for line in repository.ratchet.lines() {
        let Some((path, kind, number)) = parse_record(line) else {
            lowered.push_str(&format!("{line}\n"));
            continue;
        };
        if let Some(left) = reached(&excesses, path, kind) {
            lowered.push_str(&format!("{path} {kind} {}\n", left.min(number)));
        }
    }
    lowered
}

fn reached(excesses: &[Excess], path: &str, kind: &str) -> Option<usize> {
    let same = |excess: &&Excess| excess.path == path && excess.kind == kind;
    excesses
        .iter()
        .filter(same)
        .map(|excess| excess.number)
        .max()
}

fn parse_record(line: &str) -> Option<(&str, &str, usize)> {
    let mut words = line.split_whitespace();
    let record = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    (words.next().is_none() && !line.starts_with('#')).then_some(record)
}

fn parse_ratchet(text: &str) -> (Ratchet, Vec<Finding>) {
    let mut ratchet = Ratchet::new();
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((path, kind, number)) = parse_record(line) {
            ratchet.insert((path.to_owned(), kind.to_owned()), (number, index + 1));
        } else {
            let path = super::source::RATCHET_PATH.to_owned();
            let message = "not a record: write `path kind number`".to_owned();
            findings.push(Finding {
                path,
                line: index + 1,
                message,
            });
        }
    }
    (ratchet, findings)
}

fn measure_all(repository: &Repository) -> Vec<Excess> {
    repository.sources.iter().flat_map(measure).collect()
}

fn measure(source: &Source) -> Vec<Excess> {
    let functions = match source.path.rsplit_once('.') {
        Some((_, "rs")) => rust_functions(&source.code),
        Some((_, "py")) => python_functions(&source.text),
        _ => return Vec::new(),
    };
    let file = ("file".to_owned(), 1, file_lines(source), FILE_LINES_LIMIT);
    let functions = functions
        .into_iter()
        .map(|(name, line, number)| (format!("fn:{name}"), line, number, FUNCTION_LINES_LIMIT));
    std::iter::once(file)
        .chain(functions)
        .filter(|(_, _, number, limit)| number > limit)
        .map(|(kind, line, number, limit)| Excess {
            path: source.path.clone(),
            kind,
            line,
            number,
            limit,
        })
        .collect()
}

/// Lines of a file, without those of its inline test modules.
fn file_lines(source: &Source) -> usize {
    let mut counted = vec![true; source.text.lines().count()];
    let tokens = &source.code.tokens;
    for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.test) {
        let next = tokens
            .get(index + 1)
            .filter(|next| next.test)
            .unwrap_or(token);
        let last = next.line.min(counted.len());
        counted[(token.line - 1).min(last)..last].fill(false);
    }
    counted.iter().filter(|counted| **counted).count()
}

/// Name, first line and number of lines of every function with a body.
fn rust_functions(code: &Code) -> Vec<(String, usize, usize)> {
    let mut functions = Vec::new();
    for (index, token) in code.tokens.iter().enumerate() {
        let Some(name) = code.ident(index + 1) else {
            continue;
        };
        if token.text != "fn" {
            continue;
        }
        let Some(body) = code.body_start(index + 2) else {
            continue;
        };
        let last = &code.tokens[code.tokens[body].partner];
        functions.push((name.to_owned(), token.line, last.line + 1 - token.line));
    }
    functions
}

/// Name, first line and number of lines of every Python function, by indentation.
fn python_functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut functions = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let header = line.trim_start();
        let header = header.strip_prefix("async ").unwrap_or(header);
        let Some(rest) = header.strip_prefix("def ") else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or(rest);
        let mut last = first;
        for (index, inside) in lines.iter().enumerate().skip(first + 1) {
            if inside.trim().is_empty() {
                continue;
            }
            if indent(inside) <= indent(line) && !inside.trim_start().starts_with(')') {
                break;
            }
            last = index;
        }
        functions.push((name.to_owned(), first + 1, last + 1 - first));
    }
    functions
}

fn long_lines(source: &Source) -> Vec<Finding> {
    if !source.path.ends_with(".rs") && !source.path.ends_with(".py") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let characters = line.chars().count();
        if characters > LINE_CHARACTERS_LIMIT {
            let message = format!("{characters} characters, limit {LINE_CHARACTERS_LIMIT}");
            findings.push(Finding::new(source, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/long.rs";

    fn function_of(lines: usize) -> String {
        format!(
            "fn long(values: [u8; 4]) {{\n{}}}\n",
            "    work();\n".repeat(lines - 2)
        )
    }

    fn check_with(text: &str, ratchet: &str) -> Vec<Finding> {
        let mut repository = Repository::of(&[(PATH, text)]);
        repository.ratchet = ratchet.to_owned();
        check(&repository)
    }

    #[test]
    fn finds_long_functions_and_files() {
        assert!(check_with(&function_of(70), "").is_empty());
        let findings = check_with(&function_of(71), "");
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].message.contains("fn:long has 71 lines"),
            "{}",
            findings[0]
        );
        assert!(check_with(&"static A: u8 = 1;\n".repeat(500), "").is_empty());
        assert_eq!(check_with(&"static A: u8 = 1;\n".repeat(501), "").len(), 1);
    }

    #[test]
    fn leaves_inline_test_modules_out() {
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    // text\n".repeat(200)
        );
        let text = format!("{}{tests}", "static A: u8 = 1;\n".repeat(499));
        assert!(check_with(&text, "").is_empty());
        assert_eq!(
            check_with(&format!("{text}static A: u8 = 1;\n").repeat(2), "").len(),
            1
        );
    }

    #[test]
    fn recorded_excess_shrinks_and_never_grows() {
        assert!(check_with(&function_of(80), &format!("{PATH} fn:long 80\n")).is_empty());
        assert_eq!(
            check_with(&function_of(81), &format!("{PATH} fn:long 80\n")).len(),
            1
        );
        assert_eq!(
            check_with(&function_of(79), &format!("{PATH} fn:long 80\n")).len(),
            1
        );
        assert_eq!(
            check_with(&function_of(60), &format!("{PATH} fn:long 80\n")).len(),
            1
        );
        assert_eq!(check_with("", "what is this line\n").len(), 1);
    }

    #[test]
    fn update_only_lowers() {
        let lower = |lines, ratchet: &str| {
            let text = function_of(lines);
            let mut repository = Repository::of(&[(PATH, text.as_str())]);
            repository.ratchet = ratchet.to_owned();
            lowered_ratchet(&repository)
        };
        let recorded = format!("# note\n{PATH} fn:long 80\n");
        assert_eq!(lower(75, &recorded), format!("# note\n{PATH} fn:long 75\n"));
        assert_eq!(lower(90, &recorded), recorded);
        assert_eq!(lower(60, &recorded), "# note\n");
        assert_eq!(lower(90, "# note\n"), "# note\n");
    }

    #[test]
    fn finds_long_python_functions_and_long_lines() {
        let text = format!(
            "def long(a):\n{}\ndef next():\n    pass\n",
            "    work()\n".repeat(70)
        );
        let findings = check(&Repository::of(&[("bench/peer.py", &text)]));
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].message.starts_with("fn:long has 71"),
            "{}",
            findings[0]
        );
        assert_eq!(check_with(&format!("// {}\n", "x".repeat(98)), "").len(), 1);
    }
}
