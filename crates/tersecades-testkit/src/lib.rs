//! What TerseCades is tested against: a naive engine, seeded streams, seeded queries, suites.
//!
//! Everything here is written to be obviously right, not fast: plain rows of values, loops, sorts.
//! It shares types with the engine (values, expressions, queries) but no code that evaluates them.
//! Equal seeds give equal data and queries on every machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code may stop"
)]

pub mod counting_allocator;

pub mod random;

pub mod data;

pub mod oracle;

pub mod query;

pub mod suite;

pub mod trial;
