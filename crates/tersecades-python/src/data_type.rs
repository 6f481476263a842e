//! Types as users name them: `"int64"`, `int`, or anything that describes itself to Arrow.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::capsule::import_field;
use crate::error::invalid;

const HINT: &str = "the types are bool, int8 to int64, uint8 to uint64, float32, float64, \
                    string, binary, date, timestamp[s|ms|us|ns], timestamp[us, UTC], \
                    decimal(38, 2), Python's int, float, str, bool and bytes, and pyarrow's types";

/// A type that was given by name or as a type of Python or of another library.
pub(crate) struct NamedType(pub(crate) DataType);

impl<'py> FromPyObject<'_, 'py> for NamedType {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.cast::<PyString>() {
            let name = name.to_cow()?;
            let refused = || invalid(format!("there is no type `{name}`"), HINT);
            return parse_type(&name).map(NamedType).ok_or_else(refused);
        }
        if let Ok(class) = object.cast::<PyType>() {
            let name = class.qualname()?.to_string();
            let refused = || invalid(format!("`{name}` is no type of a column"), HINT);
            return of_class(&name).map(NamedType).ok_or_else(refused);
        }
        if object.hasattr("__arrow_c_schema__")? {
            let field = import_field(&object)?;
            return Ok(NamedType(field.data_type().clone()));
        }
        let class = object.get_type();
        Err(invalid(format!("{class} is no type of a column"), HINT))
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

/// The type called `name`.
pub(crate) fn parse_type(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" | "boolean" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" | "int" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" | "float" | "double" => DataType::Float64,
        "string" | "utf8" | "str" => DataType::Utf8,
        "binary" | "bytes" => DataType::Binary,
        "date" | "date32" => DataType::Date32,
        _ => return parse_parameters(name),
    })
}

fn parse_parameters(name: &str) -> Option<DataType> {
    if let Some(inside) = between(name, "timestamp[", "]") {
        let (unit, zone) = match inside.split_once(',') {
            Some((unit, zone)) => (unit, Some(Arc::from(zone.trim()))),
            None => (inside, None),
        };
        return Some(DataType::Timestamp(parse_unit(unit.trim())?, zone));
    }
    if let Some(unit) = name.strip_prefix("timestamp_") {
        return Some(DataType::Timestamp(parse_unit(unit)?, None));
    }
    let inside = between(name, "decimal(", ")").or_else(|| between(name, "decimal128(", ")"))?;
    let (precision, scale) = inside.split_once(',')?;
    let precision: u8 = precision.trim().parse().ok()?;
    let scale: i8 = scale.trim().parse().ok()?;
    let fits = (1..=38).contains(&precision) && scale.unsigned_abs() <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// `s`, `ms`, `us` or `ns`.
pub(crate) fn parse_unit(name: &str) -> Option<TimeUnit> {
    Some(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
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
        parse_unit(&name).map(NamedUnit).ok_or_else(refused)
    }
}
