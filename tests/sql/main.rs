//! SQL answers: written down in `cases/*.slt`, and beside DuckDB's on random queries.
//!
//! ```text
//! cases/*.slt ──▶ logic   each query beside the rows that stand under it
//!                   └──▶ DuckDB gives the same rows, but for named rules of the dialect
//! seeds ──▶ random ──▶ differential   the same queries in both engines
//! ```
//! `TERSECADES_SQL_QUERIES` is the number of random queries, `TERSECADES_SQL_SEED` the first seed;
//! one seed in `TERSECADES_SQL_FILES` has tables of thousands of rows in files.
//! `TERSECADES_SQL_WRITE=1` writes DuckDB's rows into the cases that have none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod answer;
mod case;
mod duckdb;
mod random;

mod differential;
mod distinct_text;
mod file;
mod keep;
mod limit;
mod logic;
mod name;
mod types;
