//! What must be absent: the columnar crate does no input or output, reads no clock and starts no
//! thread, so that its answers depend on its arguments alone.

use super::Finding;
use super::source::{Repository, Source};

/// Where the rule holds.
const PURE: &str = "crates/tersecades-columnar/src/";
/// Modules of the standard library that are out of bounds there.
const MODULES: &[&str] = &["fs", "net", "process", "thread"];
/// Types that read a clock.
const CLOCKS: &[&str] = &["Instant", "SystemTime"];

/// Finds files, sockets, clocks and threads in the columnar crate.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let pure = |source: &&Source| source.path.starts_with(PURE) && !source.is_test();
    repository
        .sources
        .iter()
        .filter(pure)
        .flat_map(check_source)
        .collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let mut findings = Vec::new();
    for (index, token) in code
        .tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !token.test)
    {
        let reached = code.matches(index, &["std", ":", ":"]);
        let module = code
            .ident(index + 3)
            .filter(|word| reached && MODULES.contains(word));
        let clock = code.ident(index).filter(|word| CLOCKS.contains(word));
        if let Some(word) = module.or(clock) {
            let message =
                format!("`{word}`: the columnar crate does no I/O, has no clock, no thread");
            findings.push(Finding::new(source, token.line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_files_clocks_and_threads() {
        for text in [
            "use std::fs::File;\n",
            "fn f() { std::thread::spawn(g); Instant::now(); }\n",
        ] {
            let columnar = ("crates/tersecades-columnar/src/column.rs", text);
            assert!(!check(&Repository::of(&[columnar])).is_empty(), "{text}");
            let engine = ("crates/tersecades-engine/src/worker.rs", text);
            assert!(check(&Repository::of(&[engine])).is_empty());
        }
    }
}
