//! `filter`: keeps rows where a condition is true.

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;

use crate::expression::filter::BoundFilter;
use crate::frame::{Frame, Slot};

use super::{Operator, OperatorKind};

/// What users see of the kind.
pub const KIND: OperatorKind = OperatorKind {
    name: "filter",
    summary: "keeps rows where the condition is true; comparisons run on encoded blocks",
};

/// Keeps rows where a condition is true.
pub struct Filter(pub BoundFilter);

impl Operator for Filter {
    fn describe(&self) -> String {
        format!("filter {}", self.0.describe())
    }

    fn leave_over(&mut self, slot: Option<Slot>) {
        self.0.leave_over(slot);
    }

    fn push(&mut self, frame: &mut Frame, work: &mut Work) -> Result<()> {
        self.0.apply(frame, work)
    }
}
