//! The groups that can be among the first rows of an order, where a query asks for those alone: the
//! others are neither sorted nor written.
//!
//! ```text
//! top_k 3 by n desc     n: 5 9 5 1 7 5    9 and 7 are in, 1 is out, and of the three with 5
//!                                         the one with the least key
//! ```

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::{take, take_record_batch};
use tersecades_columnar::error::Result;

use crate::operator::row::keys::{RowKeys, SortOrder};
use crate::operator::row::word::OrderWords;

use super::emit::{Windows, emit, result_column};
use super::pane::Pane;
use super::plan::AggregatePlan;
use super::sort::Sorter;

/// So many more groups than are asked for cost less to write than to look through.
const SLACK: usize = 1_024;

/// The first rows that what follows a group-by keeps of its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstGroups {
    /// Columns of the result that say which, the most significant first; rows that are equal in
    /// all of them are in the order of their keys.
    pub by: Vec<(usize, SortOrder)>,
    /// How many rows, at least one.
    pub count: usize,
}

/// The results of the groups of `pane` that are asked for, in key order.
///
/// # Errors
/// As [`emit`].
pub(super) fn emit_asked(
    plan: &AggregatePlan,
    pane: &Pane,
    sorter: &mut Sorter,
) -> Result<RecordBatch> {
    match &plan.first {
        Some(first) => in_key_order(plan, &[first.emit(plan, pane)?]),
        None => emit(plan, Windows::None, pane, sorter.sort(&plan.keys, pane)),
    }
}

/// As [`emit_asked`], but in any order where not all groups are asked for.
///
/// # Errors
/// As [`emit`].
pub(super) fn emit_share(plan: &AggregatePlan, pane: &Pane) -> Result<RecordBatch> {
    match &plan.first {
        Some(first) => first.emit(plan, pane),
        None => emit_asked(plan, pane, &mut Sorter::default()),
    }
}

/// The rows of `shares`, results of `plan` of which no two have one key, in the order of keys.
///
/// # Errors
/// What sorting says.
pub(super) fn in_key_order(plan: &AggregatePlan, shares: &[RecordBatch]) -> Result<RecordBatch> {
    let Some(share) = shares.first() else {
        return Ok(RecordBatch::new_empty(SchemaRef::clone(&plan.schema)));
    };
    let rows = concat_batches(&share.schema(), shares)?;
    let order = sorted(&rows.columns()[plan.key_columns()])?;
    Ok(take_record_batch(&rows, &order)?)
}

/// The places of rows of no two equal `keys` in ascending order, nulls last.
fn sorted(keys: &[ArrayRef]) -> Result<UInt32Array> {
    let types = keys.iter().map(|key| key.data_type().clone());
    let keys = RowKeys::new(types.map(|kind| (kind, SortOrder::ASCENDING)))?.of(keys)?;
    let mut order: Vec<u32> = (0..keys.num_rows() as u32).collect();
    order.sort_unstable_by_key(|at| keys.row(*at as usize));
    Ok(order.into())
}

impl FirstGroups {
    /// The results of groups of `pane` among which the first rows are, in any order.
    fn emit(&self, plan: &AggregatePlan, pane: &Pane) -> Result<RecordBatch> {
        emit(plan, Windows::None, pane, &self.chosen(plan, pane)?)
    }

    /// Groups of `pane` among which the first rows are.
    fn chosen(&self, plan: &AggregatePlan, pane: &Pane) -> Result<Vec<u32>> {
        let mut chosen = Vec::new();
        let mut open: Vec<u32> = (0..pane.len() as u32).collect();
        let keys = plan.key_columns().map(|key| (key, SortOrder::ASCENDING));
        for (column, order) in self.by.iter().copied().chain(keys) {
            let wanted = self.count - chosen.len();
            if open.len() <= wanted + SLACK {
                break;
            }
            let values = result_column(plan, column, pane, &open)?;
            let places = Places::of(&values, order, wanted)?;
            chosen.extend(places.before.iter().map(|at| open[*at as usize]));
            open = places.last.iter().map(|at| open[*at as usize]).collect();
        }
        chosen.extend(open);
        Ok(chosen)
    }
}

/// Which of some values come before the last of the first ones, and which are equal to it.
struct Places {
    before: Vec<u32>,
    last: Vec<u32>,
}

impl Places {
    /// Of the first `wanted` of more than that many `values`.
    fn of(values: &ArrayRef, order: SortOrder, wanted: usize) -> Result<Places> {
        let kind = [(values.data_type().clone(), order)];
        let (maker, mut words) = (OrderWords::new(kind.clone()), Vec::new());
        maker.of(std::slice::from_ref(values), values.len(), &mut words)?;
        let mut places = Places::among((0..values.len() as u32).collect(), &words, wanted);
        if maker.is_whole() || places.last.len() == 1 {
            return Ok(places);
        }
        let ties = UInt32Array::from(std::mem::take(&mut places.last));
        let keys = RowKeys::new(kind)?.of(&[take(values, &ties, None)?])?;
        let keys: Vec<_> = keys.iter().collect();
        let inner = (0..keys.len() as u32).collect();
        let inner = Places::among(inner, &keys, wanted - places.before.len());
        let of_ties = |at: &u32| ties.value(*at as usize);
        places.before.extend(inner.before.iter().map(of_ties));
        places.last.extend(inner.last.iter().map(of_ties));
        Ok(places)
    }

    fn among<T: Ord>(places: Vec<u32>, keys: &[T], wanted: usize) -> Places {
        let mut order = places.clone();
        let by_key = |a: &u32, b: &u32| keys[*a as usize].cmp(&keys[*b as usize]);
        let (_, last, _) = order.select_nth_unstable_by(wanted - 1, by_key);
        let last = &keys[*last as usize];
        let (mut before, mut equal) = (Vec::new(), Vec::new());
        for at in places {
            match keys[at as usize].cmp(last) {
                std::cmp::Ordering::Less => before.push(at),
                std::cmp::Ordering::Equal => equal.push(at),
                std::cmp::Ordering::Greater => {}
            }
        }
        Places {
            before,
            last: equal,
        }
    }
}
