//! Conformance suites: what every codec must do, checked against plain values.

pub mod codec;

mod case;
mod expected;

pub use codec::{check_codec, check_scheme};
