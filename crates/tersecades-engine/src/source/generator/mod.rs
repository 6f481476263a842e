//! Seeded generators: endless realistic input from nothing but a seed and a few options.
//!
//! A generator owns no hidden state: row `i` is a pure function of the options and `i`
//! ([`random`] draws by counter). Three promises follow:
//!
//! - the same options give the same rows, on any machine and in batches of any size;
//! - a shorter stream is an exact prefix of a longer one;
//! - a generator can [`seek`](Pingmesh::seek), so a restored pipeline goes on where it stopped.
//!
//! What a generator breaks on purpose it also says: [`InjectedFault`] records are the ground
//! truth that a detection query is judged by.

pub mod pingmesh;
pub mod random;
pub mod topology;
pub mod truth;

mod quantile;

pub use pingmesh::{Pingmesh, PingmeshOptions, PingmeshRows, PingmeshSummary};
pub use truth::{InjectedFault, write_truth};
