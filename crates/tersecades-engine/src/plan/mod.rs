//! The plan: what the builder writes down, before anything runs.

pub mod query;
mod text;
mod usage;

pub use query::{AggregateCall, EventTime, LookupTable, Query, Step, UserCall};
pub use usage::uses_of;
