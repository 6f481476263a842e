//! What lossy encoding costs in answers, and gains in bytes.
//!
//! ```text
//! results on exact data ─┐
//!                        ├─▶ compare: rows matched by key and overlap of windows
//! results on lossy data ─┘        ├─ missing and extra rows ─▶ loss
//!                                 └─ values of matched rows ─▶ relative errors
//! stream ──▶ sizes: bytes of each column, as Arrow and encoded
//! ```
//!
//! # Source
//! The loss is the QoS metric of TerseCades (USENIX ATC 2018), section 5.2: one additional or
//! missing session of a hundred is a loss of 1 %.

mod compare;
mod pairing;
mod size;

pub use compare::{Difference, ValueError, compare, key_columns};
pub use size::{Sizes, sizes};
