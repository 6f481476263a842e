//! File names are singular nouns in snake_case that say what is inside.

use super::Finding;
use super::source::Repository;

/// Names that say nothing about what is inside.
const BANNED: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "manager", "core", "misc",
];

/// Last words that end in `s` and are right: mass nouns, fixed terms, and folders of many alike.
const PLURALS: &[&str] = &[
    "address",
    "alias",
    "args",
    "atlas",
    "axis",
    "benches",
    "bins",
    "bits",
    "bounds",
    "bytes",
    "class",
    "cls",
    "codecs",
    "commands",
    "docs",
    "examples",
    "flights",
    "fs",
    "functions",
    "kernels",
    "keys",
    "limits",
    "lists",
    "lines",
    "metrics",
    "nulls",
    "options",
    "positions",
    "process",
    "qos",
    "queries",
    "ranges",
    "rivals",
    "rows",
    "series",
    "stats",
    "status",
    "suites",
    "tests",
    "tools",
    "types",
    "units",
    "values",
    "counters",
];

/// Finds names in the source folders that break the rules.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &repository.sources {
        let is_code = source.path.ends_with(".rs") || source.path.ends_with(".py");
        let below = source.path.split_once("/src/").map(|(_, below)| below);
        let Some(path) = below.filter(|_| is_code) else {
            continue;
        };
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        let parts: Vec<&str> = stem.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            let folder = index.checked_sub(1).and_then(|above| parts.get(above));
            if let Some(message) = wrong(part, folder.copied()) {
                findings.push(Finding::new(source, 1, message));
            }
        }
    }
    findings
}

fn wrong(name: &str, folder: Option<&str>) -> Option<String> {
    let snake = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
    };
    if !name.chars().all(snake) {
        return Some(format!("`{name}` is not snake_case"));
    }
    let words: Vec<&str> = name.split('_').collect();
    if words.iter().any(|word| BANNED.contains(word)) {
        return Some(format!("`{name}` does not say what is inside"));
    }
    let last = words.last().copied().unwrap_or_default();
    if last.ends_with('s') && !PLURALS.contains(&last) {
        return Some(format!("`{name}` is not singular"));
    }
    let repeats = folder.is_some_and(|folder| words.len() > 1 && last == folder);
    repeats.then(|| format!("`{name}` repeats its folder's name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_bad_names() {
        for path in [
            "utils.rs",
            "Filter.rs",
            "operator/filter_operator.rs",
            "operators/filter.rs",
            "row_helpers.rs",
            "filters.rs",
            "common/x.rs",
        ] {
            let path = format!("crates/a/src/{path}");
            assert_eq!(check(&Repository::of(&[(&path, "")])).len(), 1, "{path}");
        }
    }

    #[test]
    fn leaves_good_names_alone() {
        for path in [
            "crates/a/src/operator/filter.rs",
            "crates/a/src/codecs/base_delta.rs",
            "crates/a/src/kernels/x86_64/avx512.rs",
            "crates/a/src/lib.rs",
            "crates/a/build.rs",
            "crates/a/src/stats.rs",
            "tests/many_things.rs",
        ] {
            assert_eq!(check(&Repository::of(&[(path, "")])), Vec::new(), "{path}");
        }
    }
}
