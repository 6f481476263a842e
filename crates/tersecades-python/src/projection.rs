//! Columns chosen, added, left out and renamed.

use arrow_schema::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use tersecades::engine::expression::{Expression, col};

use crate::error::invalid;
use crate::expression::{Column, columns};

/// Columns and their names, in order.
pub(crate) type Projection = Vec<(String, Expression)>;

/// Names of columns: one, or a list of them.
#[derive(Default)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Names {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Names(match object.cast::<PyString>() {
            Ok(name) => vec![name.to_string()],
            Err(_) => object.extract()?,
        }))
    }
}

/// Columns given in order and by name.
pub(crate) fn named(
    given: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Projection> {
    let given = columns(given)?.into_iter();
    let given = given.map(|column| (column.name(), column.expression));
    let mut all: Projection = given.collect();
    for (name, column) in named.into_iter().flatten() {
        let column: Column = column.extract()?;
        all.push((name.extract()?, column.expression));
    }
    Ok(all)
}

/// The columns of `schema` with those of `added` put over or after them.
pub(crate) fn with(schema: &Schema, added: Projection) -> Projection {
    let mut all = every(schema);
    for (name, expression) in added {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = expression,
            None => all.push((name, expression)),
        }
    }
    all
}

/// The columns of `schema` without `names`.
pub(crate) fn without(schema: &Schema, names: &[String]) -> PyResult<Projection> {
    let mut known = names.iter();
    if let Some(unknown) = known.find(|name| schema.column_with_name(name).is_none()) {
        let all: Vec<String> = every(schema).into_iter().map(|(name, _)| name).collect();
        let hint = format!("the columns are {}", all.join(", "));
        return Err(invalid(format!("unknown column `{unknown}`"), &hint));
    }
    let mut left = every(schema);
    left.retain(|(name, _)| !names.contains(name));
    Ok(left)
}

/// The columns of `schema`, some under other names.
pub(crate) fn renamed(schema: &Schema, names: &Bound<'_, PyDict>) -> PyResult<Projection> {
    let old: Vec<String> = names.keys().extract()?;
    without(schema, &old)?;
    let mut all = every(schema);
    for (name, _) in &mut all {
        if let Some(new) = names.get_item(&*name)? {
            *name = new.extract()?;
        }
    }
    Ok(all)
}

fn every(schema: &Schema) -> Projection {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), col(field.name())))
        .collect()
}
