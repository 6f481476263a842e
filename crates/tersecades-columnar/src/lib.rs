//! Encoded columnar batches, and direct execution on them.
//!
//! ```text
//! Arrow array ──input──▶ choose ──▶ codec ──encode──▶ Chunk (blocks of 1,024 values)
//!                                                       │ compare, fold, gather, codes
//!                                                       ▼
//!                                            Selection, Fold, Values ──▶ Arrow array
//! ```
//! The crate does no I/O, reads no clock and starts no thread.

pub mod decimal;
pub mod error;
pub mod nearest;

pub mod type_name;
pub mod types;

pub mod kernels;

pub mod aligned;
pub mod bitmap;
pub mod block;

pub mod cut;
pub mod dictionary;
pub mod input;
pub mod predicate;
pub mod selection;
pub mod stats;
mod text_order;

mod float_fold;
pub mod fold;
pub mod values;

mod bits;
mod chosen;
pub mod chunk;
pub mod codec;
mod distinct;
mod grid;
mod keys;
mod lane;
mod narrow;
mod patch;
pub mod primitive;
mod scatter;
mod stream;
mod zone;

pub mod codecs;
pub mod registry;

pub mod choose;
pub mod cost_table;
pub mod explain;
pub mod goal;
mod habit;
pub(crate) mod rows;
pub mod scheme;

pub mod arrow;
pub mod batch;
pub mod encoder;
pub mod wire;

pub use error::{Error, ErrorKind, Result};
