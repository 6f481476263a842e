//! Numbers of rows and the like: never below zero.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::invalid;

/// A number that is not below zero.
///
/// # Errors
/// `InvalidArgument`, which is a `ValueError`, for numbers out of range; `TypeError` for others.
pub(crate) fn count(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    object.extract().map_err(|error: PyErr| {
        match error.is_instance_of::<PyOverflowError>(object.py()) {
            true => invalid(
                format!("{object} is no number of this kind"),
                &format!("give a whole number from 0 to {}", u64::MAX),
            ),
            false => error,
        }
    })
}

/// As [`count`], as a size in memory.
///
/// # Errors
/// As [`count`].
pub(crate) fn size(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(usize::try_from(count(object)?).unwrap_or(usize::MAX))
}
