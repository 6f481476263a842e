//! The columns of a stream or a result, as Python sees them.

use arrow_schema::{Schema, SchemaRef};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::schema_capsule;

/// Names and types of columns; any Arrow library takes it as a schema.
#[pyclass(name = "Schema", module = "tersecades", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct ColumnSchema {
    schema: SchemaRef,
}

impl From<SchemaRef> for ColumnSchema {
    fn from(schema: SchemaRef) -> Self {
        ColumnSchema { schema }
    }
}

impl ColumnSchema {
    /// Name and type of each column, aligned, one a line.
    pub(crate) fn lines(schema: &Schema) -> Vec<String> {
        let fields = schema.fields();
        let width = fields.iter().map(|field| field.name().chars().count());
        let width = width.max().unwrap_or(0);
        let line = |field: &arrow_schema::FieldRef| {
            format!("{:<width$}  {}", field.name(), field.data_type())
        };
        fields.iter().map(line).collect()
    }
}

#[pymethods]
impl ColumnSchema {
    /// The names, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The types, in order, as Arrow calls them.
    #[getter]
    fn types(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.data_type().to_string()).collect()
    }

    fn __len__(&self) -> usize {
        self.schema.fields().len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.schema.column_with_name(name).is_some()
    }

    fn __getitem__(&self, name: &str) -> PyResult<String> {
        match self.schema.column_with_name(name) {
            Some((_, field)) => Ok(field.data_type().to_string()),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn __repr__(&self) -> String {
        Self::lines(&self.schema).join("\n")
    }
}
