//! Real data through the whole engine: files in, encoded batches, windows, answers.
//!
//! ```text
//! data folder ─▶ sources ─▶ oddities      missing values, odd times and separators
//!                   │
//!                   ├─▶ round_trip        what was encoded comes back bit for bit
//!                   ├─▶ answers ◀─ DuckDB on the same files (questions, each asked of both)
//!                   ├─▶ polars ◀── Polars on the same files: windows of its own
//!                   ├─▶ determinism       arrival order and restarts change nothing
//!                   ├─▶ stages            windows over windows, retained ranges
//!                   ├─▶ late              late rows, counted by the definition
//!                   ├─▶ disorder          recorded disorder, covered by lateness or partitions
//!                   ├─▶ session ◀─ DuckDB  sessions, order, joins near in time
//!                   ├─▶ vm_health         states of machines and how long they lasted
//!                   └─▶ many_files        globs, JSON, formats written and read back
//! ```
//! `TERSECADES_DATA` names the folder (default `data/` at the root of the repository). A set that
//! is not there, or a missing DuckDB, skips its tests with a line on the terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod data_set;
mod question;
mod questions;
mod row;

mod duckdb;

mod answers;
mod determinism;
mod disorder;
mod join;
mod late;
mod many_files;
mod oddities;
mod polars;
mod round_trip;
mod session;
mod stages;
mod vm_health;

use std::io::Write;

/// Says on the terminal that a test did nothing.
fn skip(what: &str) {
    report(&format!("*** SKIPPED: {what}"));
}

/// Says on the terminal, whatever the harness captures, what a passing test has to tell.
fn report(line: &str) {
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}
