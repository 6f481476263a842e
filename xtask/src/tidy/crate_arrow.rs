//! Crates depend on each other one way: columnar <- store <- engine <- sql <- tersecades <- the
//! front ends; the plots depend on nothing. The testkit is a dev-dependency alone.

use super::Finding;
use super::source::{Repository, Source};

/// Each crate and those of ours that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("tersecades-columnar", &[]),
    ("tersecades-store", &["tersecades-columnar"]),
    ("tersecades-gpu", &["tersecades-columnar"]),
    (
        "tersecades-engine",
        &["tersecades-columnar", "tersecades-store"],
    ),
    (
        "tersecades-sql",
        &[
            "tersecades-columnar",
            "tersecades-store",
            "tersecades-engine",
        ],
    ),
    (
        "tersecades",
        &[
            "tersecades-columnar",
            "tersecades-store",
            "tersecades-gpu",
            "tersecades-engine",
            "tersecades-sql",
        ],
    ),
    ("tersecades-plot", &[]),
    ("tersecades-cli", &["tersecades", "tersecades-plot"]),
    ("tersecades-python", &["tersecades", "tersecades-plot"]),
    (
        "tersecades-testkit",
        &[
            "tersecades-columnar",
            "tersecades-store",
            "tersecades-engine",
        ],
    ),
];

/// Finds dependencies against the arrows.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let manifests = repository.sources.iter().filter(|source| {
        let mut parts = source.path.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("Cargo.toml")
    });
    manifests.flat_map(check_manifest).collect()
}

fn check_manifest(source: &Source) -> Vec<Finding> {
    let name = source.path.split('/').nth(1).unwrap_or_default();
    let Some((_, allowed)) = ARROWS.iter().find(|(owner, _)| *owner == name) else {
        let message = format!("crate `{name}` has no line in ARROWS ({})", file!());
        return vec![Finding::new(source, 1, message)];
    };
    let mut findings = Vec::new();
    for (line, dependency) in dependencies(&source.text) {
        if !allowed.contains(&dependency.as_str()) {
            let message = format!("`{name}` must not depend on `{dependency}`: arrows go one way");
            findings.push(Finding::new(source, line, message));
        }
    }
    findings
}

/// Line and name of each dependency of ours, without dev-dependencies.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let named = section.split_once("dependencies.").map(|(_, name)| name);
            inside = !section.contains("dev-dependencies")
                && (section.ends_with("dependencies") || named.is_some());
            if let Some(name) = named.filter(|_| inside) {
                found.push((index + 1, name.trim_matches('"').to_owned()));
            }
            continue;
        }
        if !inside {
            continue;
        }
        let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
        found.push((index + 1, key.trim_matches('"').to_owned()));
        if let Some((_, renamed)) = line.split_once("package") {
            let package = renamed.split('"').nth(1).unwrap_or_default();
            found.push((index + 1, package.to_owned()));
        }
    }
    found.retain(|(_, name)| name == "tersecades" || name.starts_with("tersecades-"));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, manifest: &str) -> usize {
        check(&Repository::of(&[(
            &format!("crates/{name}/Cargo.toml"),
            manifest,
        )]))
        .len()
    }

    #[test]
    fn finds_arrows_against_the_flow() {
        let engine = "tersecades-engine";
        for manifest in [
            "[dependencies]\ntersecades-engine = { path = \"../tersecades-engine\" }\n",
            "[dependencies]\ntersecades-engine.workspace = true\n",
            "[dependencies.tersecades-engine]\npath = \"../x\"\n",
            "[target.'cfg(unix)'.dependencies]\ntersecades-engine = \"1\"\n",
            "[build-dependencies]\ntersecades-engine = \"1\"\n",
            "[dependencies]\nengine = { package = \"tersecades-engine\", path = \"../x\" }\n",
        ] {
            assert_eq!(count("tersecades-columnar", manifest), 1, "{manifest}");
            assert_eq!(count("tersecades-sql", manifest), 0, "{manifest}");
            assert_eq!(count(engine, manifest), 1, "{manifest}");
        }
    }

    #[test]
    fn the_testkit_is_for_tests() {
        let normal = "[dependencies]\ntersecades-testkit = { path = \"../x\" }\n";
        assert_eq!(count("tersecades-engine", normal), 1);
        let dev = "[dependencies]\nserde = \"1\"\n[dev-dependencies]\ntersecades-testkit = \"1\"\n";
        assert_eq!(count("tersecades-engine", dev), 0);
    }

    #[test]
    fn an_unknown_crate_needs_a_line() {
        assert_eq!(count("tersecades-new", "[package]\n"), 1);
        assert!(check(&Repository::of(&[("bench/Cargo.toml", "[dependencies]\n")])).is_empty());
    }
}
