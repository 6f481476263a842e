//! A Rust file that no `mod` line names is not built: its code is dead and its tests never run.

use super::Finding;
use super::source::{Repository, Source};

/// Folders whose files and `main.rs` are programs of their own.
const PROGRAMS: &[&str] = &["tests", "examples", "benches", "bin", "fuzz_targets"];

/// Finds module files that the file above them does not declare.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .sources
        .iter()
        .filter_map(|source| {
            let (folder, name) = module(&source.path)?;
            let declared = parents(folder).iter().any(|parent| {
                let found = repository
                    .sources
                    .iter()
                    .find(|other| other.path == *parent);
                found.is_some_and(|parent| declares(parent, name))
            });
            let message = format!("no `mod {name};` above it: the file is never built");
            (!declared).then(|| Finding::new(source, 1, message))
        })
        .collect()
}

/// The folder that a module is looked for in and its name; none for the root of a crate.
fn module(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = path.strip_suffix(".rs")?.rsplit_once('/')?;
    match name {
        "lib" | "main" | "build" => None,
        "mod" => folder.rsplit_once('/'),
        _ if PROGRAMS.contains(&last(folder)) => None,
        _ => Some((folder, name)),
    }
}

/// The files that may declare the modules of `folder`.
fn parents(folder: &str) -> [String; 4] {
    [
        format!("{folder}/mod.rs"),
        format!("{folder}/lib.rs"),
        format!("{folder}/main.rs"),
        format!("{folder}.rs"),
    ]
}

fn declares(parent: &Source, name: &str) -> bool {
    (0..parent.code.tokens.len()).any(|index| parent.code.matches(index, &["mod", name, ";"]))
}

fn last(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unbuilt(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repository::of(files))
            .into_iter()
            .map(|finding| finding.path)
            .collect()
    }

    #[test]
    fn finds_files_that_nothing_declares() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\n// mod c;\n"),
            ("crates/a/src/b/mod.rs", "mod d;"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/b/e.rs", ""),
            ("crates/a/src/c.rs", ""),
            ("crates/a/src/f/mod.rs", ""),
            ("crates/a/tests/whole/main.rs", "mod seen;"),
            ("crates/a/tests/whole/seen.rs", ""),
            ("crates/a/tests/whole/unseen.rs", ""),
        ];
        let expected = [
            "crates/a/src/b/e.rs",
            "crates/a/src/c.rs",
            "crates/a/src/f/mod.rs",
            "crates/a/tests/whole/unseen.rs",
        ];
        assert_eq!(unbuilt(&files), expected);
    }

    #[test]
    fn programs_need_no_line() {
        let files = [
            ("crates/a/build.rs", ""),
            ("crates/a/tests/one.rs", "mod two;"),
            ("crates/a/tests/one/two.rs", ""),
            ("crates/a/examples/three/main.rs", ""),
            ("crates/a/src/bin/four.rs", ""),
        ];
        assert_eq!(unbuilt(&files), Vec::<String>::new());
    }
}
