//! The order of a sort, as Python writes it.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use tersecades::engine::expression::Expression;
use tersecades::engine::operator::row::keys::SortOrder;

use crate::expression::{Column, Expr};

/// What rows are sorted by, and which way; made by `Expr.asc` and `Expr.desc`.
///
/// >>> import tersecades as tc
/// >>> tc.col("rtt_us").desc()
/// rtt_us desc
#[pyclass(name = "SortKey", module = "tersecades", frozen)]
pub(crate) struct SortKey {
    expression: Expression,
    order: SortOrder,
}

impl SortKey {
    /// Sorts by `expression`.
    pub(crate) fn new(expression: Expression, descending: bool, nulls_first: bool) -> Self {
        let order = SortOrder {
            descending,
            nulls_first,
        };
        SortKey { expression, order }
    }
}

#[pymethods]
impl SortKey {
    fn __repr__(&self) -> String {
        format!("{} {}", self.expression, self.order)
    }
}

/// Sort keys given one by one or in lists; names and expressions sort ascending unless told.
pub(crate) fn sort_keys(
    given: &Bound<'_, PyTuple>,
    descending: bool,
    nulls_first: bool,
) -> PyResult<Vec<(Expression, SortOrder)>> {
    let mut keys = Vec::new();
    for object in given {
        let single = object.cast::<PyString>().is_ok()
            || object.cast::<Expr>().is_ok()
            || object.cast::<SortKey>().is_ok();
        if !single && let Ok(items) = object.try_iter() {
            let listed: PyResult<Vec<_>> = items.collect();
            let listed = PyTuple::new(given.py(), listed?)?;
            keys.extend(sort_keys(&listed, descending, nulls_first)?);
            continue;
        }
        keys.push(match object.cast::<SortKey>() {
            Ok(key) => (key.get().expression.clone(), key.get().order),
            Err(_) => {
                let column: Column = object.extract()?;
                let key = SortKey::new(column.expression, descending, nulls_first);
                (key.expression, key.order)
            }
        });
    }
    Ok(keys)
}
