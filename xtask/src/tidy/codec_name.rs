//! A codec's name appears only in its own file, in the list and in tests: no operator, kernel or
//! other codec may know which codecs there are.
//!
//! The names come from the tree: a module below `codecs/` that says `impl Codec for Type` is a
//! codec called by its module (`base_delta`), its type (`BaseDelta`) and its name as a string. A
//! name of one word (`plain`, `constant`) is also plain English, so only its path forms count:
//! `codecs::plain`, `plain::Plain`, `use codecs::{Plain}`. Comments and documentation may say it.

use super::Finding;
use super::source::{Code, Kind, Repository, Source};

const FOLDER: &str = "crates/tersecades-columnar/src/codecs/";
const REGISTRY: &str = "crates/tersecades-columnar/src/registry.rs";
const MODULE_LIST: &str = "crates/tersecades-columnar/src/codecs/mod.rs";

/// One codec, by the names it goes under.
struct Codec {
    module: String,
    types: Vec<String>,
}

impl Codec {
    fn owns(&self, path: &str) -> bool {
        let rest = path
            .strip_prefix(FOLDER)
            .and_then(|rest| rest.strip_prefix(&self.module));
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Whether the token at `index` names this codec.
    fn is_named(&self, code: &Code, index: usize) -> bool {
        let token = &code.tokens[index];
        let one_word = !self.module.contains('_');
        if token.kind == Kind::Literal {
            let quoted = token.text.trim_matches('"').replace('-', "_");
            return !one_word && token.text.starts_with('"') && quoted == self.module;
        }
        let is_module = token.text == self.module;
        if !is_module && !self.types.contains(&token.text) {
            return false;
        }
        !one_word || self.is_path(code, index)
    }

    /// Whether the word at `index` is reached through `codecs` or through the codec's module.
    fn is_path(&self, code: &Code, index: usize) -> bool {
        let root = |at: usize| {
            at >= 3
                && code.matches(at - 2, &[":", ":"])
                && (code.is(at - 3, "codecs") || code.is(at - 3, &self.module))
        };
        let encloses = |open: usize| code.tokens[open].partner > index && root(open);
        root(index) || (0..index).any(|open| code.is(open, "{") && encloses(open))
    }
}

/// Finds codec names where they must not be, and codecs that are not in the list.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let codecs = codecs(repository);
    let mut findings = Vec::new();
    for source in repository
        .sources
        .iter()
        .filter(|source| is_restricted(source))
    {
        for codec in codecs.iter().filter(|codec| !codec.owns(&source.path)) {
            findings.extend(named_in(codec, source));
        }
    }
    let registry = repository
        .sources
        .iter()
        .find(|source| source.path == REGISTRY);
    for codec in &codecs {
        let listed = |token: &super::source::Token| {
            token.text == codec.module || codec.types.contains(&token.text)
        };
        if !registry.is_some_and(|source| source.code.tokens.iter().any(listed)) {
            let message = format!("codec `{}` is not in the list CODECS", codec.module);
            findings.push(Finding {
                path: REGISTRY.to_owned(),
                line: 1,
                message,
            });
        }
    }
    findings
}

fn is_restricted(source: &Source) -> bool {
    source.is_product()
        && !source.is_test()
        && source.path != REGISTRY
        && source.path != MODULE_LIST
}

fn named_in(codec: &Codec, source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let names = |index: &usize| !code.tokens[*index].test && codec.is_named(code, *index);
    let found = (0..code.tokens.len()).filter(names).map(|index| {
        let token = &code.tokens[index];
        let message = format!(
            "{} names codec `{}`: go through the waist or a property of the codec",
            token.text, codec.module
        );
        Finding::new(source, token.line, message)
    });
    found.collect()
}

fn codecs(repository: &Repository) -> Vec<Codec> {
    let mut codecs: Vec<Codec> = Vec::new();
    for source in &repository.sources {
        let Some(rest) = source.path.strip_prefix(FOLDER) else {
            continue;
        };
        let module = rest.split(['/', '.']).next().unwrap_or_default();
        let types = codec_types(&source.code);
        if types.is_empty() || source.path == MODULE_LIST {
            continue;
        }
        match codecs.iter_mut().find(|codec| codec.module == module) {
            Some(codec) => codec.types.extend(types),
            None => codecs.push(Codec {
                module: module.to_owned(),
                types,
            }),
        }
    }
    codecs
}

/// The types that a file implements `Codec` for.
fn codec_types(code: &Code) -> Vec<String> {
    let implemented = |index: usize| {
        let is_header = code.matches(index, &["Codec", "for"]) && !code.tokens[index].test;
        is_header
            .then(|| code.ident(index + 2))
            .flatten()
            .map(str::to_owned)
    };
    (0..code.tokens.len()).filter_map(implemented).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let codec = |module: &str| format!("{FOLDER}{module}.rs");
        let files = [
            (codec("base_delta"), "impl Codec for BaseDelta {}\n"),
            (codec("plain"), "impl Codec for Plain {}\n"),
            (codec("patch"), "pub struct Patch;\n"),
            (
                REGISTRY.to_owned(),
                "const CODECS: &[u8] = &[base_delta::ENTRY, &Plain];\n",
            ),
            (path.to_owned(), text),
        ];
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        check(&Repository::of(&files))
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    const OPERATOR: &str = "crates/tersecades-engine/src/operator/filter.rs";

    #[test]
    fn finds_codec_names_in_operators_and_other_codecs() {
        for text in [
            "use tersecades_columnar::codecs::base_delta;\n",
            "fn f(x: BaseDelta) {}\n",
            "fn f() { if name == \"base_delta\" {} }\n",
            "fn f() { if name == \"base-delta\" {} }\n",
            "use tersecades_columnar::codecs::plain;\n",
            "use tersecades_columnar::codecs::Plain;\n",
            "fn f() -> plain::Plain {}\n",
            "use tersecades_columnar::codecs::{patch, Plain};\n",
        ] {
            assert!(!messages(OPERATOR, text).is_empty(), "{text}");
        }
        let path = format!("{FOLDER}patch.rs");
        assert_eq!(messages(&path, "fn f(x: BaseDelta) {}\n").len(), 1);
    }

    #[test]
    fn leaves_tests_prose_and_plain_english_alone() {
        for text in [
            "// base_delta and BaseDelta in a comment\n/// base_delta\nfn f() {}\n",
            "#[cfg(test)]\nmod tests { use codecs::base_delta; }\n",
            "enum Layout { Plain, Row }\nfn plain(x: Layout) -> u8 { Layout::Plain }\n",
            "fn f() { print(\"plain\") }\n",
            "use tersecades_columnar::codecs::patch;\n",
        ] {
            assert_eq!(messages(OPERATOR, text), Vec::<String>::new(), "{text}");
        }
        let test = "crates/tersecades-engine/tests/codec.rs";
        assert!(messages(test, "fn f(x: BaseDelta) {}\n").is_empty());
    }

    #[test]
    fn finds_a_codec_that_is_not_listed() {
        let path = format!("{FOLDER}run_length.rs");
        let found = messages(&path, "impl Codec for RunLength {}\n");
        assert_eq!(
            found,
            vec!["codec `run_length` is not in the list CODECS".to_owned()]
        );
    }
}
