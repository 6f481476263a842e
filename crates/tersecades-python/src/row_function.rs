//! Functions of Python over whole tables: of the rows of a window, and folds of rows by key.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tersecades::engine::operator::process::WindowFunction;
use tersecades::engine::operator::reduce::Reducer;
use tersecades::engine::window::Span;
use tersecades::{Error, Result};

use crate::arrow_table::read_batches;
use crate::capsule::{exchange_error, import_schema};
use crate::data_type::NamedType;
use crate::error::{carry, raise};
use crate::promise::as_promised;
use crate::table::{ResultTable, library};
use crate::turn::call_in_query;

/// A function of Python over tables, and the columns that it gives.
pub(crate) struct RowFunction {
    callable: Py<PyAny>,
    name: String,
    /// The columns that it gives; those that it gets when `None`.
    schema: Option<SchemaRef>,
}

/// Columns as users name them: `{"name": "int64"}`, or anything with an Arrow schema.
pub(crate) struct Columns(SchemaRef);

impl<'py> FromPyObject<'_, 'py> for Columns {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(named) = object.cast::<PyDict>() else {
            return Ok(Columns(Arc::new(import_schema(&object)?)));
        };
        let field = |(name, kind): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
            let kind: NamedType = kind.extract()?;
            Ok(Field::new(name.extract::<String>()?, kind.0, true))
        };
        let fields: PyResult<Vec<Field>> = named.iter().map(field).collect();
        Ok(Columns(Arc::new(Schema::new(fields?))))
    }
}

impl RowFunction {
    /// `callable`, which gives the columns of `schema`.
    pub(crate) fn new(callable: &Bound<'_, PyAny>, schema: Option<Columns>) -> PyResult<Self> {
        let name = match callable.getattr_opt("__name__")? {
            Some(name) => name.extract()?,
            None => "function".to_owned(),
        };
        Ok(RowFunction {
            callable: callable.clone().unbind(),
            name,
            schema: schema.map(|columns| columns.0),
        })
    }

    fn gives(&self, input: &Schema) -> SchemaRef {
        let schema = self.schema.as_ref().map(Arc::clone);
        schema.unwrap_or_else(|| Arc::new(input.clone()))
    }

    /// What it gives for `tables`, of which a missing one is `None`.
    fn call(&self, tables: &[Option<&RecordBatch>], expected: &SchemaRef) -> Result<RecordBatch> {
        call_in_query(|py| {
            let called = self.call_attached(py, tables, expected);
            called.map_err(|raised| carry(py, raised))
        })
    }

    fn call_attached(
        &self,
        py: Python<'_>,
        tables: &[Option<&RecordBatch>],
        expected: &SchemaRef,
    ) -> PyResult<RecordBatch> {
        let arrow = library(py, "pyarrow")?;
        let given = tables.iter().map(|table| match table {
            Some(rows) => {
                let schema = logical_schema(&rows.schema());
                let table = Bound::new(py, ResultTable::of_batch((*rows).clone(), &schema))?;
                ResultTable::to_arrow(&table)
            }
            None => Ok(py.None().into_bound(py)),
        });
        let given: PyResult<Vec<_>> = given.collect();
        let mut result = self.callable.bind(py).call1(PyTuple::new(py, given?)?)?;
        if result.cast::<PyDict>().is_ok() {
            let class = arrow.getattr("Table")?;
            result = class.call_method1("from_pylist", ((result,),))?;
        }
        let (schema, batches) = read_batches(&result)?;
        let rows = concat_batches(&schema, &batches);
        self.conform(rows.map_err(|error| exchange_error(py, &error))?, expected)
            .map_err(|error| raise(py, &error))
    }

    /// `rows` in the columns that were promised, by name.
    fn conform(&self, rows: RecordBatch, expected: &SchemaRef) -> Result<RecordBatch> {
        let column = |field: &Arc<Field>| {
            let found = rows.column_by_name(field.name()).ok_or_else(|| {
                let message = format!("{} gave no column `{}`", self.name, field.name());
                let hint = "name the columns it gives: schema={\"name\": \"int64\"}";
                Error::schema(message).column(field.name()).hint(hint)
            })?;
            as_promised(&self.name, found, field.data_type())
                .map_err(|error| error.column(field.name()))
        };
        let columns = expected.fields().iter().map(column);
        let columns = columns.collect::<Result<Vec<_>>>()?;
        if rows.num_columns() > expected.fields().len() {
            let message = format!("{} gave more columns than it said", self.name);
            return Err(Error::schema(message).hint("name them all in schema="));
        }
        Ok(RecordBatch::try_new(Arc::clone(expected), columns)?)
    }
}

/// Text as text, however it is kept.
fn logical_schema(schema: &Schema) -> SchemaRef {
    let field = |field: &Arc<Field>| match field.data_type() {
        arrow_schema::DataType::Dictionary(_, value) => {
            Field::new(field.name(), (**value).clone(), true)
        }
        kind => Field::new(field.name(), kind.clone(), true),
    };
    Arc::new(Schema::new(
        schema.fields().iter().map(field).collect::<Vec<_>>(),
    ))
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)
    }
}

impl WindowFunction for RowFunction {
    fn schema(&self, input: &Schema) -> Result<SchemaRef> {
        Ok(self.gives(input))
    }

    fn process(&self, _window: &Span, rows: &RecordBatch) -> Result<RecordBatch> {
        self.call(&[Some(rows)], &self.gives(&logical_schema(&rows.schema())))
    }
}

impl Reducer for RowFunction {
    fn schema(&self, input: &Schema) -> Result<SchemaRef> {
        Ok(self.gives(input))
    }

    fn reduce(&self, state: Option<&RecordBatch>, rows: &RecordBatch) -> Result<RecordBatch> {
        let expected = self.gives(&logical_schema(&rows.schema()));
        self.call(&[state, Some(rows)], &expected)
    }
}
