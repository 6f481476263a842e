//! Types as users name them: `"int64"`, `int`, or anything that describes itself to Arrow.

use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use tersecades::columnar::type_name::{TYPE_NAMES, type_of_name, unit_of_name};

use crate::capsule::import_field;
use crate::error::invalid;

fn hint() -> String {
    format!("the types are {TYPE_NAMES}, Python's int, float, str, bool and bytes, and pyarrow's")
}

/// A type that was given by name or as a type of Python or of another library.
pub(crate) struct NamedType(pub(crate) DataType);

impl<'py> FromPyObject<'_, 'py> for NamedType {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.cast::<PyString>() {
            let name = name.to_cow()?;
            let refused = || invalid(format!("there is no type `{name}`"), &hint());
            return type_of_name(&name).map(NamedType).ok_or_else(refused);
        }
        if let Ok(class) = object.cast::<PyType>() {
            let name = class.qualname()?.to_string();
            let refused = || invalid(format!("`{name}` is no type of a column"), &hint());
            return of_class(&name).map(NamedType).ok_or_else(refused);
        }
        if object.hasattr("__arrow_c_schema__")? {
            let field = import_field(&object)?;
            return Ok(NamedType(field.data_type().clone()));
        }
        let class = object.get_type();
        Err(invalid(format!("{class} is no type of a column"), &hint()))
    }
}

fn of_class(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Boolean,
        "int" => DataType::Int64,
        "float" => DataType::Float64,
        "str" => DataType::Utf8,
        "bytes" => DataType::Binary,
        "date" => DataType::Date32,
        "datetime" => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}

/// A unit of time that was given by name.
pub(crate) struct NamedUnit(pub(crate) TimeUnit);

impl<'py> FromPyObject<'_, 'py> for NamedUnit {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name: String = object.extract()?;
        let refused = || invalid(format!("`{name}` is no unit of time"), "s, ms, us or ns");
        unit_of_name(&name).map(NamedUnit).ok_or_else(refused)
    }
}
