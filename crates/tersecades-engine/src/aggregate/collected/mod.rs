//! State that keeps more of a group's values than a fold does.
//!
//! ```text
//! Ranks      every value, in order-preserving form     quantile, median
//! Distinct   each different value once                 count_distinct
//! Extreme    one value and what it was chosen by       arg_min, arg_max
//! ```
//! A collection holds all groups of a pane. Aggregates that collect the same of the same argument
//! share one, as folds are shared.

mod distinct;
mod extreme;
mod rank_log;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::primitive::repeat::Repeats;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;
use tersecades_columnar::values::Values;

use crate::frame::Frame;
use crate::operator::window_aggregate::keys::Translation;
use crate::operator::window_aggregate::plan::{AggregatePlan, Argument};
use crate::runtime::state::{StateReader, StateWriter};

use distinct::Distinct;
use extreme::Extreme;
use rank_log::Ranks;

/// What an aggregate needs kept of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collects {
    /// Every value.
    Ranks,
    /// Each different value.
    Distinct,
    /// The value where another column is least.
    Least,
    /// The value where another column is greatest.
    Greatest,
}

impl Collects {
    /// Whether a second column orders the rows.
    pub fn is_ordered(self) -> bool {
        matches!(self, Collects::Least | Collects::Greatest)
    }
}

/// A collection that a plan needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collecting {
    /// What is kept.
    pub what: Collects,
    /// Index of the argument.
    pub argument: usize,
    /// Index of the argument that orders the rows.
    pub by: Option<usize>,
}

/// Collected values, by group id.
#[derive(Debug, Clone)]
pub enum Collection {
    /// Every value.
    Ranks(Ranks),
    /// Each different value.
    Distinct(Distinct),
    /// One value.
    Extreme(Extreme),
}

/// Rows on their way to collections, and scratch memory.
#[derive(Debug, Default)]
pub struct CollectWork {
    values: Values,
    by: Values,
    repeats: Repeats,
    translations: Vec<Translation>,
}

/// The rows of a batch that go to a pane.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The batch.
    pub frame: &'a Frame,
    /// The rows.
    pub within: &'a Selection,
    /// The group of each; empty where there is one group.
    pub ids: &'a [u32],
    /// Rows of the stream before the batch.
    pub rows_before: u64,
}

impl Rows<'_> {
    /// The group of the selected row `index`.
    fn id(&self, index: usize) -> u32 {
        self.ids.get(index).copied().unwrap_or(0)
    }
}

impl Collection {
    /// No group.
    pub fn new(plan: &AggregatePlan, collecting: Collecting) -> Self {
        let argument = &plan.arguments[collecting.argument];
        match collecting.what {
            Collects::Ranks => Collection::Ranks(Ranks::new(argument)),
            Collects::Distinct => Collection::Distinct(Distinct::new(argument.physical)),
            Collects::Least => Collection::Extreme(Extreme::new(false)),
            Collects::Greatest => Collection::Extreme(Extreme::new(true)),
        }
    }

    /// Makes room for `groups` groups; new ones are empty.
    pub fn grow(&mut self, groups: usize) {
        match self {
            Collection::Ranks(_) => {}
            Collection::Distinct(distinct) => distinct.grow(groups),
            Collection::Extreme(extreme) => extreme.grow(groups),
        }
    }

    /// Forgets all groups, keeps the memory.
    pub fn clear(&mut self) {
        match self {
            Collection::Ranks(ranks) => ranks.clear(),
            Collection::Distinct(distinct) => distinct.clear(),
            Collection::Extreme(extreme) => extreme.clear(),
        }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// `LimitExceeded` when a dictionary outgrows its limit.
    pub fn add(
        &mut self,
        plan: &AggregatePlan,
        collecting: Collecting,
        rows: Rows<'_>,
        (scratch, work): (&mut CollectWork, &mut Work),
    ) -> Result<()> {
        let argument = &plan.arguments[collecting.argument];
        let column = rows.frame.column(argument.slot);
        let arguments = plan.arguments.len();
        scratch
            .translations
            .resize_with(arguments, Translation::default);
        let translation = &mut scratch.translations[collecting.argument];
        match self {
            Collection::Ranks(ranks) => ranks.add(column, rows, &mut scratch.values, work),
            Collection::Distinct(distinct) if rows.ids.is_empty() => {
                column.repeats(rows.within, &mut scratch.repeats, work);
                let values = &mut scratch.repeats.values;
                argument.dictionary.unify(values, translation)?;
                distinct.add(rows, values);
                Ok(())
            }
            Collection::Distinct(distinct) => {
                column.gather(rows.within, &mut scratch.values, work);
                let values = &mut scratch.values;
                argument.dictionary.unify(values, translation)?;
                distinct.add(rows, values);
                Ok(())
            }
            Collection::Extreme(extreme) => {
                column.gather(rows.within, &mut scratch.values, work);
                let values = &mut scratch.values;
                argument.dictionary.unify(values, translation)?;
                if let Some(by) = collecting.by.map(|by| &plan.arguments[by]) {
                    let by = rows.frame.column(by.slot);
                    by.gather(rows.within, &mut scratch.by, work);
                }
                extreme.add(rows, &scratch.values, &scratch.by);
                Ok(())
            }
        }
    }

    /// Adds the groups of `other`, group `id` to group `targets[id]`, or to none where that is
    /// [`NO_GROUP`](crate::operator::window_aggregate::pane::NO_GROUP).
    pub fn merge(&mut self, other: &Collection, targets: &[u32]) {
        match (self, other) {
            (Collection::Ranks(ranks), Collection::Ranks(other)) => ranks.merge(other, targets),
            (Collection::Distinct(distinct), Collection::Distinct(other)) => {
                distinct.merge(other, targets);
            }
            (Collection::Extreme(extreme), Collection::Extreme(other)) => {
                extreme.merge(other, targets);
            }
            _ => debug_assert!(false, "panes of one plan collect alike"),
        }
    }

    /// Hands out the results of the groups `order`; `parameter` is the aggregate's.
    pub fn finish(
        &self,
        argument: &Argument,
        parameter: f64,
        order: &[u32],
        push: impl FnMut(Value),
    ) {
        match self {
            Collection::Ranks(ranks) => ranks.quantiles(parameter, order).for_each(push),
            Collection::Distinct(distinct) => {
                order.iter().map(|id| distinct.count(*id)).for_each(push)
            }
            Collection::Extreme(extreme) => {
                let values = order.iter().map(|id| extreme.value(*id, argument));
                values.for_each(push);
            }
        }
    }

    /// Bytes of memory held.
    pub fn byte_size(&self) -> usize {
        match self {
            Collection::Ranks(ranks) => ranks.byte_size(),
            Collection::Distinct(distinct) => distinct.byte_size(),
            Collection::Extreme(extreme) => extreme.byte_size(),
        }
    }

    /// Writes all groups.
    pub fn snapshot(&self, out: &mut StateWriter) {
        match self {
            Collection::Ranks(ranks) => ranks.snapshot(out),
            Collection::Distinct(distinct) => distinct.snapshot(out),
            Collection::Extreme(extreme) => extreme.snapshot(out),
        }
    }

    /// Reads what [`Collection::snapshot`] wrote for `groups` groups.
    ///
    /// # Errors
    /// `Corrupt` when the bytes do not fit.
    pub fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        match self {
            Collection::Ranks(ranks) => ranks.restore(groups, from),
            Collection::Distinct(distinct) => distinct.restore(groups, from),
            Collection::Extreme(extreme) => extreme.restore(groups, from),
        }
    }
}
