//! `unsafe` only in a few named places, and each use with the argument that makes it sound.

use super::Finding;
use super::source::{Code, Repository, Source};

/// Where `unsafe` may be, by how the path starts, and why.
const ALLOWED: &[(&str, &str)] = &[
    (
        "crates/tersecades-columnar/src/kernels",
        "vector instructions need it",
    ),
    (
        "crates/tersecades-columnar/src/arrow",
        "foreign buffers are taken without a copy",
    ),
    (
        "crates/tersecades-python/src/capsule.rs",
        "structures of Arrow's C interface are taken over",
    ),
    (
        "crates/tersecades-testkit/src/counting_allocator.rs",
        "a global allocator, for tests",
    ),
    (
        "bench/src/bitpack/target.rs",
        "a rival is compiled for the instruction sets of the kernels",
    ),
];

/// How far above its `unsafe` an argument may end.
const ARGUMENT_LINES_ABOVE: usize = 3;

/// Finds `unsafe` outside the allowed places and without an argument.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    repository.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let allowed = ALLOWED
        .iter()
        .any(|(start, _)| source.path.starts_with(start));
    let lines: Vec<&str> = source.text.lines().collect();
    let mut findings = Vec::new();
    for (index, token) in code.tokens.iter().enumerate() {
        if code.ident(index) != Some("unsafe") {
            continue;
        }
        if !allowed {
            let places: Vec<&str> = ALLOWED.iter().map(|(start, _)| *start).collect();
            let message = format!("`unsafe` is allowed only in {}", places.join(", "));
            findings.push(Finding::new(source, token.line, message));
        }
        let (argued, advice) = match use_of(code, index) {
            Use::Declared => continue,
            Use::Function => (
                has_above(&lines, token.line, "# Safety"),
                "a `# Safety` section",
            ),
            Use::Code => (false, "a `// SAFETY:` comment"),
        };
        if !argued && !has_above(&lines, token.line, "SAFETY:") {
            findings.push(Finding::new(
                source,
                token.line,
                format!("`unsafe` without {advice}"),
            ));
        }
    }
    findings
}

/// What an `unsafe` introduces.
enum Use {
    /// A function or trait, whose callers or implementers have duties.
    Function,
    /// The type of a function pointer, or a method whose trait states the duties.
    Declared,
    /// A block, implementation, foreign item or attribute.
    Code,
}

fn use_of(code: &Code, index: usize) -> Use {
    let mut next = index + 1;
    if code.is(next, "extern") {
        next += 1;
        if code
            .tokens
            .get(next)
            .is_some_and(|token| token.text.starts_with('"'))
        {
            next += 1;
        }
    }
    match code.ident(next) {
        Some("fn") if code.is(next + 1, "(") => Use::Declared,
        Some("fn") if in_trait_implementation(code, index) => Use::Declared,
        Some("fn" | "trait") => Use::Function,
        _ => Use::Code,
    }
}

/// Whether the innermost braces around `index` belong to an `impl Trait for Type`.
fn in_trait_implementation(code: &Code, index: usize) -> bool {
    let encloses = |open: &usize| code.is(*open, "{") && code.tokens[*open].partner > index;
    let Some(open) = (0..index).rev().find(encloses) else {
        return false;
    };
    let ends_header = |token: &&super::source::Token| !["{", "}", ";"].contains(&&*token.text);
    let header = code.tokens[..open].iter().rev().take_while(ends_header);
    let words: Vec<&str> = header.map(|token| token.text.as_str()).collect();
    let of_trait = words.iter().position(|word| *word == "for");
    of_trait.is_some_and(|at| words[at..].contains(&"impl"))
}

/// Whether `mark` stands on the line, within the lines above it, or in a comment (or attribute)
/// block that ends there.
fn has_above(lines: &[&str], line: usize, mark: &str) -> bool {
    let mut at = line - 1;
    let mut others = 0;
    loop {
        let text = lines.get(at).map_or("", |line| line.trim_start());
        if text
            .find("//")
            .is_some_and(|comment| text[comment..].contains(mark))
        {
            return true;
        }
        if !text.starts_with("//") && !text.starts_with("#[") {
            others += 1;
        }
        if at == 0 || others > ARGUMENT_LINES_ABOVE {
            return false;
        }
        at -= 1;
    }
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

    const KERNEL: &str = "crates/tersecades-columnar/src/kernels/scalar.rs";

    #[test]
    fn finds_unsafe_in_the_wrong_place() {
        let argued =
            "fn f() {\n    // SAFETY: the length was checked above.\n    unsafe { g() }\n}\n";
        assert!(messages(KERNEL, argued).is_empty());
        let found = messages("crates/tersecades-engine/src/lib.rs", argued);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("allowed only in"));
        assert!(
            messages(
                "crates/a/src/lib.rs",
                "// unsafe\nconst A: &str = \"unsafe\";\n"
            )
            .is_empty()
        );
    }

    #[test]
    fn finds_unsafe_without_an_argument() {
        assert_eq!(
            messages(KERNEL, "fn f() {\n    unsafe { g() }\n}\n").len(),
            1
        );
        assert_eq!(messages(KERNEL, "unsafe impl Send for A {}\n").len(), 1);
        let far =
            "// SAFETY: far away.\nfn a() {}\nfn b() {}\nfn c() {}\nfn f() { unsafe { g() } }\n";
        assert_eq!(messages(KERNEL, far).len(), 1);
        assert!(messages(KERNEL, "fn f() { unsafe { g() } } // SAFETY: yes.\n").is_empty());
        let inside_macro = "macro_rules! m {\n    () => { unsafe { g() } };\n}\n";
        assert_eq!(messages(KERNEL, inside_macro).len(), 1);
    }

    #[test]
    fn an_unsafe_function_says_its_callers_duties() {
        assert_eq!(
            messages(KERNEL, "/// Adds.\npub unsafe fn add() {}\n").len(),
            1
        );
        let said =
            "/// Adds.\n///\n/// # Safety\n/// 1. AVX2.\n#[inline]\npub unsafe fn add() {}\n";
        assert!(messages(KERNEL, said).is_empty());
        assert!(messages(KERNEL, "type Add = unsafe fn(u8) -> u8;\n").is_empty());
        assert!(messages(KERNEL, "impl Level for A {\n    unsafe fn add() {}\n}\n").is_empty());
        assert_eq!(
            messages(KERNEL, "impl A {\n    unsafe fn add() {}\n}\n").len(),
            1
        );
    }
}
