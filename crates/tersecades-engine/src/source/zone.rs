//! Where the first rows of an order can lie, by what a source knows of the ends of its parts.

use std::sync::Arc;

use arrow_schema::DataType;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::types::{Physical, Value};
pub use tersecades_store::Ends;

use crate::operator::row::FirstRows;

/// What the first column of an order must pass for a row to be among the `first`; `None` where
/// that rules nothing out.
///
/// ```text
/// by lower ends, greatest first:  [90, 99] 40 rows │ [80, 95] 70 rows │ [0, 85] │ [0, 70]
/// greatest 100 rows: 110 rows are 80 or more, so none below 80 is among them: the last is left out
/// ```
pub(crate) fn of_first_rows(
    mut parts: Vec<Ends>,
    first: &FirstRows<'_>,
    data_type: &DataType,
) -> Option<Arc<Predicate>> {
    let physical = Physical::of(data_type).ok()?;
    let wanted = first.rows as u64;
    let descending = first.order.descending;
    parts.sort_unstable_by_key(|part| if descending { -part.low } else { part.high });
    let mut rows = 0;
    let reaches = |part: &&Ends| {
        rows += part.rows;
        rows >= wanted
    };
    let (bound, how) = match (parts.iter().find(reaches)?, descending) {
        (part, true) => (part.low, Comparison::GreaterOrEqual),
        (part, false) => (part.high, Comparison::LessOrEqual),
    };
    let is_outside = |part: &Ends| match descending {
        true => part.high < bound,
        false => part.low > bound,
    };
    if !parts.iter().any(is_outside) {
        return None;
    }
    let test = Predicate::compare(data_type, how, &Value::Integer(bound)).ok()?;
    matches!(physical, Physical::Integer { .. }).then(|| Arc::new(test))
}
