//! Every public item of a crate has a doc comment, and every file opens with `//!`.
//!
//! The compiler's `missing_docs` sees only what a crate exports; this sees `pub` items of private
//! modules too. Fields, variants and re-exports are left to the compiler.

use super::Finding;
use super::source::{Code, Repository, Source};

const ITEMS: &[&str] = &[
    "fn", "struct", "enum", "trait", "const", "static", "type", "union", "mod",
];
/// Words that may stand between `pub` and the word that names the kind of item.
const QUALIFIERS: &[&str] = &["async", "unsafe", "extern", "const"];

/// Finds public items without a doc comment and files without an opening one.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let product = repository
        .sources
        .iter()
        .filter(|source| source.is_product());
    product
        .filter(|source| source.path.ends_with(".rs"))
        .flat_map(check_source)
        .collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(Finding::new(
            source,
            1,
            "the file does not open with a `//!` comment",
        ));
    }
    let code = &source.code;
    let mut index = 0;
    while let Some(token) = code.tokens.get(index) {
        if code.matches(index, &["macro_rules", "!"]) {
            index = code.item_end(index).unwrap_or(index) + 1;
            continue;
        }
        let is_candidate = token.text == "pub" && !token.test && !is_documented(code, index);
        if let Some((kind, name)) = public_item(code, index).filter(|_| is_candidate) {
            let message = format!("public {kind} `{name}` has no doc comment");
            findings.push(Finding::new(source, token.line, message));
        }
        index += 1;
    }
    findings
}

/// Kind and name of the item that `pub` at `index` makes public; none for fields, `pub(crate)`,
/// `pub use` and `pub mod name;` (whose own file opens with its comment).
fn public_item(code: &Code, index: usize) -> Option<(&str, &str)> {
    let mut at = index + 1;
    while let Some(word) = code.ident(at) {
        let next = code.ident(at + 1).unwrap_or_default();
        let is_constant = word == "const" && next != "fn" && !QUALIFIERS.contains(&next);
        if !QUALIFIERS.contains(&word) || is_constant {
            break;
        }
        at += 1;
        if code
            .tokens
            .get(at)
            .is_some_and(|token| token.text.starts_with('"'))
        {
            at += 1;
        }
    }
    let kind = code.ident(at).filter(|word| ITEMS.contains(word))?;
    let name = code.ident(at + 1)?;
    let outline = kind == "mod" && code.is(at + 2, ";");
    (!outline).then_some((kind, name))
}

/// Whether one of the attributes before `index` is a doc comment, or its body opens with one.
fn is_documented(code: &Code, index: usize) -> bool {
    let mut end = index;
    while end >= 2 && code.is(end - 1, "]") {
        let open = code.tokens[end - 1].partner;
        if open == 0 || !code.is(open - 1, "#") {
            break;
        }
        if code.is(open + 1, "doc") {
            return true;
        }
        end = open - 1;
    }
    let body = code.body_start(index + 1);
    body.is_some_and(|body| code.matches(body, &["{", "#", "!", "[", "doc"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let repository = Repository::of(&[("crates/a/src/lib.rs", text)]);
        check(&repository)
            .into_iter()
            .map(|found| found.message)
            .collect()
    }

    #[test]
    fn finds_undocumented_items() {
        for item in [
            "pub fn f() {}",
            "pub const fn f() {}",
            "pub unsafe extern \"C\" fn f() {}",
            "pub const A: u8 = 1;",
            "pub struct A;",
            "#[derive(Debug)]\npub enum A {}",
            "pub trait A {}",
            "pub type A = u8;",
            "pub mod a {}",
            "impl A { pub fn f() {} }",
        ] {
            assert_eq!(
                messages(&format!("//! Essay.\n{item}\n")).len(),
                1,
                "{item}"
            );
            if !item.starts_with("impl") {
                let documented = format!("//! Essay.\n\n/// Said.\n{item}\n");
                assert!(messages(&documented).is_empty(), "{documented}");
            }
        }
    }

    #[test]
    fn leaves_the_rest_alone() {
        let rest = "//! Essay.\npub(crate) fn f() {}\npub use a::B;\npub mod c;\n/// D.\n\
                    #[derive(Debug)]\npub struct D { pub e: u8 }\n#[cfg(test)]\npub fn g() {}\n\
                    macro_rules! m { () => { pub fn h() {} }; }\npub mod i { //! Said.\n }\n";
        assert_eq!(messages(rest), Vec::<String>::new());
    }

    #[test]
    fn finds_a_file_without_an_essay() {
        assert_eq!(messages("use std::fmt;\n").len(), 1);
        assert!(check(&Repository::of(&[("bench/src/main.rs", "pub fn f() {}\n")])).is_empty());
    }
}
