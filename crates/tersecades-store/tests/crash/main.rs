//! The store loses no acknowledged row: power cuts, errors, full disks and damage, simulated, and
//! killed processes and power cuts on file systems of the kernel.
//!
//! Long forms: `TERSECADES_CRASH_SEEDS` seeds of each crash point, `TERSECADES_MODEL_OPS`
//! operations of the model check, `TERSECADES_KILLS` killed processes, `TERSECADES_POWER_CUTS`
//! power cuts. Each layer says on the terminal that it ran.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::io::Write as _;

mod beside;
mod damage;
mod device;
mod feed;
mod follow;
mod full;
mod model;
mod power;
mod process;
mod rights;
mod simulated;
mod workload;

/// Says that a layer of the suite ran; tests that pass print nothing else.
fn ran(layer: &str) {
    let _ = writeln!(std::io::stderr(), "crash layer ran: {layer}");
}

/// Says that a layer of the suite did not run, and why.
fn skipped(layer: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "*** crash layer SKIPPED: {layer}: {why}");
}

/// A number that the environment may set.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}

/// What `work` gives on a thread for each processor.
fn on_all_processors<R: Send>(work: impl Fn() -> R + Sync) -> Vec<R> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
