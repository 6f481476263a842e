//! The plan: what the builder writes down, before anything runs.

pub mod query;
mod text;

pub use query::{AggregateCall, EventTime, LookupTable, Query, Step, UserCall, uses_of};
