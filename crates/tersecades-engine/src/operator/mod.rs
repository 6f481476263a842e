//! Operators: what happens to a frame on its way from source to window.
//!
//! An operator narrows the frame's selection or adds derived columns; it calls only the waist of
//! the columns it needs and never names a codec. Grouping over windows holds state and lives in
//! [`window_aggregate`]; operators on rows between stages are in [`row`].

pub mod filter;
pub mod lookup_join;
pub mod project;
pub mod window_aggregate;

pub mod row;

pub mod change;
pub mod distinct;
pub mod lag;
pub mod leading;
pub mod limit;
pub mod over;
pub mod reduce;
pub mod sort;
pub mod top_k;

pub mod in_order;
pub mod join;
pub mod merge;
pub mod process;
pub mod union;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::frame::{Frame, Slot};

/// A step that works on frames in place and keeps no state between them.
pub trait Operator: Send {
    /// One line for explain.
    fn describe(&self) -> String;

    /// Says that who comes next folds the column at `slot`, if any, and makes a test of it that is
    /// [left over](Frame::left_over) on the way.
    fn leave_over(&mut self, _slot: Option<Slot>) {}

    /// Narrows the selection or adds columns.
    ///
    /// # Errors
    /// What evaluating expressions says.
    fn push(&mut self, frame: &mut Frame, work: &mut Work) -> Result<()>;
}

/// A kind of operator, for docs.
#[derive(Debug)]
pub struct OperatorKind {
    /// Name in plans.
    pub name: &'static str,
    /// One line of explanation.
    pub summary: &'static str,
}

/// Every kind of operator.
pub const OPERATORS: &[&OperatorKind] = &[
    &filter::KIND,
    &project::KIND,
    &lookup_join::KIND,
    &WINDOW_AGGREGATE,
    &sort::KIND,
    &top_k::KIND,
    &limit::KIND,
    &distinct::KIND,
    &lag::KIND,
    &change::KIND,
    &over::KIND,
    &leading::KIND,
    &reduce::KIND,
    &in_order::KIND,
    &process::KIND,
    &union::KIND,
    &merge::KIND,
    &join::JOIN,
    &join::WINDOW_JOIN,
    &join::INTERVAL_JOIN,
    &join::AS_OF_JOIN,
];

const WINDOW_AGGREGATE: OperatorKind = OperatorKind {
    name: "aggregate",
    summary: "groups rows by window and keys; results come as windows close",
};
