//! Conformance suites: what every codec must do, checked against plain values.

pub mod codec;

mod case;
mod expected;
mod primitive;

pub use codec::check_codec;
