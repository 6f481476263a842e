//! Where the first rows of an order can lie, by what a source knows of the ends of its parts.

use std::sync::Arc;

use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::types::{Physical, Value};
pub use tersecades_store::Ends;

use super::passing::{FirstRows, Test};

/// What the column of an order must pass for a row to be among the `first`; `None` where that rules
/// nothing out.
///
/// ```text
/// by lower ends, greatest first:  [90, 99] 40 rows │ [80, 95] 70 rows │ [0, 85] │ [0, 70]
/// greatest 100 rows: 110 rows are 80 or more, so none below 80 is among them: the last is left out
/// ```
pub(crate) fn of_first_rows(mut parts: Vec<Ends>, first: &FirstRows) -> Option<Test> {
    if parts.iter().any(|part| part.low > part.high) {
        // A writer has taken them in another order.
        return None;
    }
    let descending = first.descending;
    parts.sort_unstable_by_key(|part| if descending { -part.low } else { part.high });
    let mut rows = 0;
    let reaches = |part: &&Ends| {
        rows += part.rows;
        rows >= first.rows
    };
    let (bound, how) = match (parts.iter().find(reaches)?, descending) {
        (part, true) => (part.low, Comparison::GreaterOrEqual),
        (part, false) => (part.high, Comparison::LessOrEqual),
    };
    let is_outside = |part: &Ends| match descending {
        true => part.high < bound,
        false => part.low > bound,
    };
    let is_whole = matches!(Physical::of(&first.data_type), Ok(Physical::Integer { .. }));
    if !is_whole || !parts.iter().any(is_outside) {
        return None;
    }
    let test = Predicate::compare(&first.data_type, how, &Value::Integer(bound)).ok()?;
    Some((
        first.column.clone(),
        first.data_type.clone(),
        Arc::new(test),
    ))
}
