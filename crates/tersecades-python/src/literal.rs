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
    let class = object.get_type().name()?;
    // NumPy's class of booleans is no subclass of Python's.
    Ok(match class.to_cow()?.as_ref() {
        "bool" | "bool_" => literal.cast(DataType::Boolean),
        _ => literal,
    })
}

/// A constant as the operand of an operator.
pub(crate) fn literal(object: &Bound<'_, PyAny>) -> PyResult<Expression> {
    if is_missing(object)? {
        return Ok(Expression::Literal(Value::Null));
    }
    if object.cast::<PyDateTime>().is_ok() {
        return datetime(object);
    }
    if object.cast::<PyDate>().is_ok() {
        return Ok(lit(iso(object)?).cast(DataType::Date32));
    }
    if object.get_type().name()? == "datetime64" {
        let (time, unit) = datetime64(object)?;
        let ticks: i64 = time.call_method1("astype", ("int64",))?.extract()?;
        return Ok(Expression::EpochTime(Box::new(lit(ticks)), unit));
    }
    value(object).map(Expression::Literal)
}

/// A constant of a list, such as that of `is_in`; times are written out.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if is_missing(object)? {
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
        "datetime64" => {
            let (time, _) = datetime64(object)?;
            Ok(Value::from(time.str()?.to_cow()?.into_owned()))
        }
        _ => match object.call_method0("item") {
            Ok(item) if !item.hasattr("item")? => value(&item),
            _ => Err(invalid(format!("`{class}` is no constant"), HINT)),
        },
    }
}

/// Whether it is `None`, or what NumPy and pandas have for a value that is not there.
fn is_missing(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = object.get_type().name()?;
    Ok(match class.to_cow()?.as_ref() {
        "NoneType" | "NaTType" | "NAType" => true,
        "datetime64" => object.ne(object)?,
        _ => false,
    })
}

/// A point in time of NumPy in the unit of it that columns have, seconds for coarser ones.
fn datetime64<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, TimeUnit)> {
    let numpy = object.py().import("numpy")?;
    let dtype = object.getattr("dtype")?;
    let kind = numpy.call_method1("datetime_data", (&dtype,))?;
    let (unit, _): (String, u64) = kind.extract()?;
    let (name, unit) = match unit.as_str() {
        "Y" | "M" | "W" | "D" | "h" | "m" | "s" => ("datetime64[s]", TimeUnit::Second),
        "ms" => ("datetime64[ms]", TimeUnit::Millisecond),
        "us" => ("datetime64[us]", TimeUnit::Microsecond),
        _ => ("datetime64[ns]", TimeUnit::Nanosecond),
    };
    let time = object.call_method1("astype", (name,))?;
    // NumPy wraps around.
    match time.call_method1("astype", (dtype,))?.eq(object)? {
        true => Ok((time, unit)),
        false => Err(invalid(
            format!("{object} is no time of 64 bits"),
            "times are of seconds, milliseconds, microseconds or nanoseconds",
        )),
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
