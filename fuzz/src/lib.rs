//! Bytes from outside against every reader.
//!
//! ```text
//! target  ──▶ what each reader does with bytes, and what must hold of what it accepts
//! seed    ──▶ valid inputs, from which both fuzzers start
//! mutate  ──▶ a small fuzzer without coverage: the short form, run by `cargo test`
//! libfuzzer/  the same targets under cargo-fuzz, which needs a nightly toolchain
//! ```
//! A target fails by panicking; refusing bytes with an error is success. Panics of the libraries
//! that read Parquet and Arrow IPC are caught inside the sources and count as refusals.

use std::sync::Once;

pub mod mutate;
pub mod packed;
pub mod sql;
pub mod target;

mod seed;

#[path = "../../crates/tersecades-columnar/tests/wire/exercise.rs"]
mod exercise;

#[allow(clippy::unwrap_used, reason = "samples are made of constants")]
#[path = "../../crates/tersecades-columnar/tests/wire/samples.rs"]
mod samples;

/// Takes away the panic hook of libFuzzer, which ends the process before a source can catch the
/// panic of a library. A panic that nothing catches still ends the run.
pub fn let_sources_catch() {
    static TAKEN: Once = Once::new();
    TAKEN.call_once(|| drop(std::panic::take_hook()));
}
