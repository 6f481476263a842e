//! The store loses no acknowledged row: power cuts, errors, full disks and damage, simulated.
//!
//! Long forms: `TERSECADES_CRASH_SEEDS` seeds of each crash point, `TERSECADES_MODEL_OPS`
//! operations of the model check.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod beside;
mod damage;
mod feed;
mod model;
mod power;
mod simulated;
mod workload;

/// A number that the environment may set.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}
