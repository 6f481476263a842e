//! Conformance suites: what every codec must do, checked against plain values.

pub mod codec;

pub mod lossy;

mod case;
mod expected;
mod primitive;
mod search;

pub use codec::{check_codec, check_scheme};
pub use lossy::check_lossy_codec;
