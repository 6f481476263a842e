//! Bytes from outside against every reader.
//!
//! ```text
//! targets ──▶ what each reader does with bytes, and what must hold of what it accepts
//! seeds   ──▶ valid inputs, from which both fuzzers start
//! mutate  ──▶ a small fuzzer without coverage: the short form, run by `cargo test`
//! libfuzzer/  the same targets under cargo-fuzz, which needs a nightly toolchain
//! ```
//! A target fails by panicking; refusing bytes with an error is success.

pub mod mutate;
pub mod targets;

mod seeds;

#[path = "../../crates/tersecades-columnar/tests/wire/exercise.rs"]
mod exercise;

#[allow(clippy::unwrap_used, reason = "samples are made of constants")]
#[path = "../../crates/tersecades-columnar/tests/wire/samples.rs"]
mod samples;
