//! Constants: values of Python as values of the engine.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyFloat, PyInt, PyString, PyTzInfo, PyTzInfoAccess,
};
use tersecades::engine::expression::{Expression, lit};
use tersecades::prelude::{DataType, TimeUnit, Value};

use crate::error::invalid;

const HINT: &str = "constants are None, bool, int, float, str, bytes, Decimal, date, datetime, \
                    and scalars of NumPy and pandas";

/// A constant as an expression; whether it is true is a boolean, not a number.
pub(crate) fn typed_literal(object: &Bound<'_, PyAny>) -> PyResult<Expression> {
    let literal = literal(object)?;
    Ok(match object.cast::<PyBool>() {
        Ok(_) => literal.cast(DataType::Boolean),
        Err(_) => literal,
    })
}

/// A constant as the operand of an operator.
pub(crate) fn literal(object: &Bound<'_, PyAny>) -> PyResult<Expression> {
    if object.cast::<PyDateTime>().is_ok() {
        return datetime(object);
    }
    if object.cast::<PyDate>().is_ok() {
        return Ok(lit(iso(object)?).cast(DataType::Date32));
    }
    if object.get_type().name()? == "datetime64" {
        let nanos = object.call_method1("astype", ("datetime64[ns]",))?;
        let nanos: i64 = nanos.call_method1("astype", ("int64",))?.extract()?;
        return Ok(Expression::EpochTime(
            Box::new(lit(nanos)),
            TimeUnit::Nanosecond,
        ));
    }
    value(object).map(Expression::Literal)
}

/// A constant of a list, such as that of `is_in`; times are written out.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::from(value.is_true()));
    }
    if object.cast::<PyInt>().is_ok() {
        let refused = |_| invalid(format!("{object} has more than 128 bits"), HINT);
        return object.extract().map(Value::Integer).map_err(refused);
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Value::Float(value.value()));
    }
    if let Ok(value) = object.cast::<PyString>() {
        return Ok(Value::from(value.to_cow()?.into_owned()));
    }
    if let Ok(value) = object.cast::<PyBytes>() {
        return Ok(Value::Binary(value.as_bytes().to_vec()));
    }
    if object.cast::<PyDate>().is_ok() {
        return Ok(Value::from(iso(object)?));
    }
    let class = object.get_type().name()?;
    match class.to_cow()?.as_ref() {
        "Decimal" => decimal(object),
        "datetime64" => Ok(Value::from(object.str()?.to_cow()?.into_owned())),
        _ if object.hasattr("item")? => {
            let item = object.call_method0("item")?;
            match item.hasattr("item")? {
                false => value(&item),
                true => Err(invalid(format!("`{class}` is no constant"), HINT)),
            }
        }
        _ => Err(invalid(format!("`{class}` is no constant"), HINT)),
    }
}

fn iso(date: &Bound<'_, PyAny>) -> PyResult<String> {
    date.call_method0("isoformat")?.extract()
}

/// A point in time; without a zone it is taken as it stands, as columns without a zone are.
fn datetime(object: &Bound<'_, PyAny>) -> PyResult<Expression> {
    let py = object.py();
    let utc = match object.cast::<PyDateTime>()?.get_tzinfo() {
        Some(_) => Some(PyTzInfo::utc(py)?),
        None => None,
    };
    let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, utc.as_deref())?;
    let since = object.sub(epoch)?;
    let part = |name: &str| since.getattr(name)?.extract::<i64>();
    let seconds = part("days")? * 86_400 + part("seconds")?;
    let micros = seconds * 1_000_000 + part("microseconds")?;
    let nanos: i64 = match object.getattr_opt("nanosecond")? {
        Some(nanos) => nanos.extract()?,
        None => 0,
    };
    let (number, unit) = match nanos {
        0 => (micros, TimeUnit::Microsecond),
        nanos => (micros * 1_000 + nanos, TimeUnit::Nanosecond),
    };
    Ok(Expression::EpochTime(Box::new(lit(number)), unit))
}

fn decimal(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) =
        object.call_method0("as_tuple")?.extract()?;
    let refused = || {
        invalid(
            format!("{object} is no decimal of at most 38 digits"),
            "give a float for numbers without end and for NaN",
        )
    };
    let exponent: i32 = exponent.extract().map_err(|_| refused())?;
    let mut number: i128 = 0;
    let trailing = usize::try_from(exponent).unwrap_or(0);
    for digit in digits.into_iter().chain(std::iter::repeat_n(0, trailing)) {
        let shifted = number.checked_mul(10).ok_or_else(refused)?;
        number = shifted.checked_add(digit.into()).ok_or_else(refused)?;
    }
    let scale = i8::try_from(-exponent.min(0)).map_err(|_| refused())?;
    let number = if sign == 1 { -number } else { number };
    Ok(Value::Decimal(number, scale))
}
