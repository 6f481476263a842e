//! Joins of two streams: a source whose inputs are running queries.
//!
//! ```text
//! left  ─▶ Running ─┐
//!                   ├─▶ equal / window / interval / as_of ─▶ rows ─▶ the query over the join
//! right ─▶ Running ─┘
//! ```
//! Every join gives the answer of its definition whichever input is read first and however its
//! rows come in batches; what it keeps is encoded and counts against the memory limit.

pub mod as_of;
pub mod bucket;
mod built;
pub mod equal;
pub mod interval;
pub mod kind;
mod pair_condition;
mod probe;
pub mod residual;
pub mod side;
pub mod table;
pub mod timed;
pub(crate) mod waiting;
pub mod window;

pub use kind::{JoinKind, JoinOptions};
pub use table::JoinTable;

use super::OperatorKind;

/// What users see of the join of equal keys.
pub const JOIN: OperatorKind = OperatorKind {
    name: "join",
    summary: "pairs of rows of two bounded streams with equal keys, and rows without a pair",
};

/// What users see of the join inside windows.
pub const WINDOW_JOIN: OperatorKind = OperatorKind {
    name: "window_join",
    summary: "pairs of rows with equal keys in the same window",
};

/// What users see of the join by distance in time.
pub const INTERVAL_JOIN: OperatorKind = OperatorKind {
    name: "interval_join",
    summary: "pairs of rows with equal keys whose times are so far apart",
};

/// What users see of the join with the nearest row.
pub const AS_OF_JOIN: OperatorKind = OperatorKind {
    name: "asof_join",
    summary: "each row with the row of equal key that is nearest in time; also versioned tables",
};
