//! Style as a test: each rule of the style page that a program can check is one function over the
//! sources, in one file, in one ordered list.
//!
//! A check takes the whole [`Repository`] and returns findings; it never prints and never stops at
//! the first finding. To add one: write `tidy/<name>.rs` and add a line to [`CHECKS`].

mod source;

mod codec_name;

mod crate_arrow;

mod doc_comment;

mod file_name;

mod length;

mod marker;

mod module_file;

mod purity;

mod unsafe_code;

pub(crate) use source::{Repository, Source};

use std::fmt;
use std::path::Path;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path below the repository's root, with `/` between its parts.
    pub(crate) path: String,
    /// Line, starting at 1.
    pub(crate) line: usize,
    /// What is wrong and what to do about it.
    pub(crate) message: String,
}

impl Finding {
    /// A finding in `source` at `line`.
    pub(crate) fn new(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: source.path.clone(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

type Check = fn(&Repository) -> Vec<Finding>;

/// Every check, cheapest to understand first.
const CHECKS: &[Check] = &[
    source::check,
    file_name::check,
    module_file::check,
    marker::check,
    length::check,
    doc_comment::check,
    unsafe_code::check,
    crate_arrow::check,
    purity::check,
    codec_name::check,
];

/// Runs every check; the error is the findings, one a line.
pub(crate) fn check(root: &Path) -> Result<String, String> {
    let repository = Repository::read(root)?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&repository)).collect();
    findings.sort();
    findings.dedup();
    if findings.is_empty() {
        let lines: usize = repository
            .sources
            .iter()
            .map(|source| source.text.lines().count())
            .sum();
        let files = repository.sources.len();
        return Ok(format!(
            "tidy: {files} files, {lines} lines, {} checks, 0 findings",
            CHECKS.len()
        ));
    }
    let mut report: String = findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    report.push_str(&format!("tidy: {} findings", findings.len()));
    Err(report)
}

/// Lowers the recorded excess to what is left of it.
pub(crate) fn update_ratchet(root: &Path) -> Result<String, String> {
    let repository = Repository::read(root)?;
    let updated = length::lowered_ratchet(&repository);
    let path = root.join(source::RATCHET_PATH);
    std::fs::write(&path, updated).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("{}: lowered to what is left", source::RATCHET_PATH))
}
