//! Seeded generators: endless realistic input from nothing but a seed and a few options.
//!
//! A generator owns no hidden state: row `i` is a pure function of the options and `i`
//! ([`random`] draws by counter). Three promises follow:
//!
//! - the same options give the same rows, on any machine and in batches of any size;
//! - a shorter stream is an exact prefix of a longer one;
//! - a generator can [`seek`](Generator::seek), so a restored pipeline goes on where it stopped.
//!
//! What a generator breaks on purpose it also says ([`Generator::write_truth`]): the ground truth
//! that a detection query is judged by. Adding a kind is one file and one line in [`GENERATORS`].

pub mod counters;
pub mod kind;
pub mod nexmark;
pub mod parameter;
pub mod pingmesh;
pub mod positions;
pub mod random;
pub mod topology;
pub mod truth;
pub mod weather;
pub mod yahoo;

mod arrival;
mod grid;
mod name;
mod quantile;
mod signal;

#[cfg(test)]
mod tests;

pub use kind::{GENERATORS, Generator, GeneratorKind, SEED_DEFAULT, find_generator};
pub use pingmesh::{Pingmesh, PingmeshOptions, PingmeshRows, PingmeshSummary};
pub use truth::{InjectedFault, write_truth};
