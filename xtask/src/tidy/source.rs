//! The files that the checks look at, and Rust files as a flat list of tokens.
//!
//! Tokens tell code from strings and comments without a parser: `dbg!` in a string is a literal,
//! `unsafe` in a comment is nothing. Groups are flattened into an opening and a closing token that
//! know each other's index, so that a check can step over an argument list or a body.
//!
//! ```text
//! fn f(x: u8) { g() }   ->   fn f ( x : u8 ) { g ( ) }
//!                                 |________|  |_______|   partners
//! ```

use super::Finding;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::Path;

/// Where the recorded excess over the length limits is kept.
pub(crate) const RATCHET_PATH: &str = "xtask/ratchet.txt";

/// Folders that hold no source of ours.
const SKIPPED_FOLDERS: &[&str] = &[
    "target",
    "data",
    "out",
    "fuzz/libfuzzer/target",
    "fuzz/libfuzzer/corpus",
    "fuzz/libfuzzer/artifacts",
];
/// Hidden folders that do.
const HIDDEN_FOLDERS: &[&str] = &[".cargo", ".ci", ".config", ".github"];
/// Files whose presence marks a folder as made by a tool.
const TOOL_MARKS: &[&str] = &["CACHEDIR.TAG", "pyvenv.cfg"];
const SUFFIXES: &[&str] = &[
    "rs", "py", "pyi", "toml", "md", "sh", "yml", "yaml", "html", "css", "js", "cu",
];
const NAMES: &[&str] = &["Makefile", "run"];

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word: identifier or keyword.
    Ident,
    /// One punctuation character.
    Punct,
    /// A string, character or number.
    Literal,
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
}

/// One token of a Rust file.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: Kind,
    /// How it is written.
    pub(crate) text: String,
    /// Line on which it starts, starting at 1.
    pub(crate) line: usize,
    /// Index of the token that closes or opens the same group; its own index otherwise.
    pub(crate) partner: usize,
    /// Inside an item under `#[cfg(test)]` or `#[test]`.
    pub(crate) test: bool,
}

/// A Rust file as a flat list of tokens; empty for other files.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The tokens in order.
    pub(crate) tokens: Vec<Token>,
    /// Why the file could not be split into tokens.
    pub(crate) error: Option<(usize, String)>,
}

impl Code {
    fn parse(text: &str) -> Self {
        let mut code = Self::default();
        match text.parse::<TokenStream>() {
            Ok(stream) => flatten(stream, &mut code.tokens),
            Err(error) => code.error = Some((error.span().start().line, error.to_string())),
        }
        code.mark_tests();
        code
    }

    /// Whether the token at `index` is written `text`; false past the end.
    pub(crate) fn is(&self, index: usize, text: &str) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|token| token.text == text)
    }

    /// Whether the tokens from `index` on are written like `texts`.
    pub(crate) fn matches(&self, index: usize, texts: &[&str]) -> bool {
        texts
            .iter()
            .enumerate()
            .all(|(offset, text)| self.is(index + offset, text))
    }

    /// The word at `index`, if there is a word.
    pub(crate) fn ident(&self, index: usize) -> Option<&str> {
        let token = self.tokens.get(index)?;
        (token.kind == Kind::Ident).then_some(token.text.as_str())
    }

    /// Index of the last token of the item whose header holds `index`: the `}` of its body or `;`.
    pub(crate) fn item_end(&self, index: usize) -> Option<usize> {
        let body = self.body_start(index)?;
        Some(self.tokens[body].partner)
    }

    /// Index of the `{` that opens the body of the item whose header holds `index`, or of its `;`.
    pub(crate) fn body_start(&self, index: usize) -> Option<usize> {
        let mut at = index;
        while let Some(token) = self.tokens.get(at) {
            match (token.kind, token.text.as_str()) {
                (Kind::Open, "{") | (Kind::Punct, ";") => return Some(at),
                (Kind::Open, _) => at = token.partner + 1,
                (Kind::Close, _) => return None,
                _ => at += 1,
            }
        }
        None
    }

    /// Marks the tokens of items that exist only in tests.
    fn mark_tests(&mut self) {
        for index in 0..self.tokens.len() {
            if self.matches(index, &["#", "!", "["]) && self.is_test_attribute(index + 2) {
                self.tokens.iter_mut().for_each(|token| token.test = true);
            }
            if !self.matches(index, &["#", "["]) || !self.is_test_attribute(index + 1) {
                continue;
            }
            let mut item = self.tokens[index + 1].partner + 1;
            while self.matches(item, &["#", "["]) {
                item = self.tokens[item + 1].partner + 1;
            }
            let end = self
                .item_end(item)
                .unwrap_or(item)
                .min(self.tokens.len() - 1);
            self.tokens[index..=end]
                .iter_mut()
                .for_each(|token| token.test = true);
        }
    }

    fn is_test_attribute(&self, open: usize) -> bool {
        let inside = &self.tokens[open + 1..self.tokens[open].partner];
        let has = |text: &str| inside.iter().any(|token| token.text == text);
        match inside.first().map(|token| token.text.as_str()) {
            Some("test") => inside.len() == 1,
            Some("cfg") => has("test") && !has("not"),
            _ => false,
        }
    }
}

fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let mut push = |kind, text: String, line| {
            let partner = out.len();
            out.push(Token {
                kind,
                text,
                line,
                partner,
                test: false,
            });
            partner
        };
        match tree {
            TokenTree::Ident(ident) => {
                push(Kind::Ident, ident.to_string(), line);
            }
            TokenTree::Punct(punct) => {
                push(Kind::Punct, punct.as_char().to_string(), line);
            }
            TokenTree::Literal(literal) => {
                push(Kind::Literal, literal.to_string(), line);
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let first = push(Kind::Open, open.to_owned(), line);
                flatten(group.stream(), out);
                let last = out.len();
                let line = group.span_close().start().line;
                out.push(Token {
                    kind: Kind::Close,
                    text: close.to_owned(),
                    line,
                    partner: first,
                    test: false,
                });
                out[first].partner = last;
            }
        }
    }
}

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path below the repository's root, with `/` between its parts.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// Its tokens, where it is a Rust file.
    pub(crate) code: Code,
}

impl Source {
    /// A file at `path` with `text`.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") {
            Code::parse(text)
        } else {
            Code::default()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    /// Whether the file is part of a crate that users build: `crates/<name>/src/`.
    pub(crate) fn is_product(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.next() == Some("crates") && parts.next().is_some() && parts.next() == Some("src")
    }

    /// Whether the whole file exists only for tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("crates/tersecades-testkit/")
            || self
                .path
                .split('/')
                .any(|part| part == "tests" || part == "benches")
            || self.path.ends_with("/tests.rs")
    }
}

/// Everything the checks look at.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    /// The files, ordered by path.
    pub(crate) sources: Vec<Source>,
    /// The recorded excess, as written.
    pub(crate) ratchet: String,
}

impl Repository {
    /// Reads the source files below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut sources = Vec::new();
        walk(root, "", &mut sources)?;
        sources.sort_by(|left: &Source, right: &Source| left.path.cmp(&right.path));
        let ratchet = root.join(RATCHET_PATH);
        let ratchet = if ratchet.exists() {
            read(&ratchet)?
        } else {
            String::new()
        };
        Ok(Self { sources, ratchet })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let sources = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        Self {
            sources,
            ratchet: String::new(),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn walk(folder: &Path, below: &str, sources: &mut Vec<Source>) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}{name}");
        let kind = entry.file_type().map_err(said)?;
        if kind.is_dir() && is_ours(&entry.path(), &name, &path) {
            walk(&entry.path(), &format!("{path}/"), sources)?;
        }
        let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        if kind.is_file() && (SUFFIXES.contains(&suffix) || NAMES.contains(&name.as_str())) {
            sources.push(Source::new(&path, &read(&entry.path())?));
        }
    }
    Ok(())
}

/// Whether the folder called `name`, at `path` below the root, holds sources of ours.
fn is_ours(folder: &Path, name: &str, path: &str) -> bool {
    let hidden = name.starts_with('.') && !HIDDEN_FOLDERS.contains(&name);
    let made = TOOL_MARKS.iter().any(|mark| folder.join(mark).exists());
    !hidden && !made && !SKIPPED_FOLDERS.contains(&path)
}

/// Every Rust file must split into tokens, or the other checks would pass over it.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let broken = |source: &Source| {
        let (line, error) = source.code.error.as_ref()?;
        Some(Finding::new(
            source,
            *line,
            format!("cannot be read as Rust: {error}"),
        ))
    };
    repository.sources.iter().filter_map(broken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_file_that_is_not_rust() {
        let findings = check(&Repository::of(&[("crates/a/src/lib.rs", "fn f() {\n")]));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(check(&Repository::of(&[("crates/a/src/lib.rs", "fn f() {}\n")])).is_empty());
    }

    #[test]
    fn reads_this_repository_without_what_tools_made() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let repository = Repository::read(root).unwrap();
        let has = |path: &str| repository.sources.iter().any(|source| source.path == path);
        assert!(has("xtask/src/tidy/source.rs") && has("Cargo.toml") && has(".cargo/config.toml"));
        let made = |source: &Source| {
            source.path.starts_with("target/") || source.path.starts_with(".git/")
        };
        assert!(!repository.sources.iter().any(made));
        assert!(!is_ours(root, ".venv", ".venv") && !is_ours(root, "data", "data"));
        assert!(is_ours(root, "data", "crates/a/src/data"));
    }

    #[test]
    fn marks_test_items_alone() {
        let text =
            "fn a() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests { fn b() {} }\nfn c() {}\n";
        let source = Source::new("lib.rs", text);
        let test_words: Vec<&str> = source
            .code
            .tokens
            .iter()
            .filter(|token| token.test)
            .map(|token| token.text.as_str())
            .collect();
        assert!(test_words.contains(&"b"));
        assert!(!test_words.contains(&"a") && !test_words.contains(&"c"));
        let not_test = Source::new("lib.rs", "#[cfg(not(test))]\nfn a() {}\n");
        assert!(not_test.code.tokens.iter().all(|token| !token.test));
    }
}
