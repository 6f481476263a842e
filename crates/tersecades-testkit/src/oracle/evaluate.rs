//! Expressions over one row: type and value.
//!
//! Logic is three-valued with null as unknown. Integer arithmetic is checked 64-bit, truncating;
//! division and remainder by zero are null; an integer with a float is a float.

use std::cmp::Ordering;

use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::Comparison;
use tersecades_columnar::types::{Physical, Value};
use tersecades_engine::expression::{Arithmetic, Expression};

use super::order::{decimal_as_float, order};
use super::tick_ns;
use crate::data::{from_array, to_array};

/// The type of `expression` over `columns`.
///
/// # Errors
/// `InvalidArgument` for unknown columns, `SchemaMismatch` for operands without meaning.
pub fn type_of(expression: &Expression, columns: &[(String, DataType)]) -> Result<DataType> {
    Ok(match expression {
        Expression::Column(name) => columns[position(name, columns)?].1.clone(),
        Expression::Literal(value) => match value {
            Value::Null => DataType::Null,
            Value::Integer(_) => DataType::Int64,
            Value::Float(_) => DataType::Float64,
            Value::Decimal(_, scale) => DataType::Decimal128(38, *scale),
            Value::Text(_) => DataType::Utf8,
            Value::Binary(_) => DataType::Binary,
        },
        Expression::Arithmetic(_, a, b) => {
            let (a, b) = (type_of(a, columns)?, type_of(b, columns)?);
            for operand in [&a, &b] {
                if !(operand.is_integer() || operand.is_floating() || operand.is_null()) {
                    return Err(Error::schema(format!("no arithmetic on {operand}")));
                }
            }
            match a.is_floating() || b.is_floating() {
                true => DataType::Float64,
                false => DataType::Int64,
            }
        }
        Expression::Compare(..)
        | Expression::And(..)
        | Expression::Or(..)
        | Expression::Not(_)
        | Expression::IsNull(_)
        | Expression::OneOf(..) => DataType::Boolean,
        Expression::Cast(_, data_type) => data_type.clone(),
        Expression::MakeTimestamp(_) => DataType::Timestamp(TimeUnit::Second, None),
        Expression::EpochTime(_, unit) => DataType::Timestamp(*unit, None),
        Expression::Call {
            function,
            arguments,
        } => {
            let types = arguments.iter().map(|argument| type_of(argument, columns));
            function.return_type(&types.collect::<Result<Vec<_>>>()?)?
        }
    })
}

/// Position of the column named `name`.
///
/// # Errors
/// `InvalidArgument` when there is none.
pub fn position(name: &str, columns: &[(String, DataType)]) -> Result<usize> {
    let found = columns.iter().position(|(known, _)| known == name);
    found.ok_or_else(|| Error::invalid(format!("unknown column `{name}`")).column(name))
}

/// The value of `expression` in `row`.
///
/// # Errors
/// As [`type_of`]; `LimitExceeded` for results outside their type.
pub fn value_of(
    expression: &Expression,
    columns: &[(String, DataType)],
    row: &[Value],
) -> Result<Value> {
    let value = |part: &Expression| value_of(part, columns, row);
    Ok(match expression {
        Expression::Column(name) => row[position(name, columns)?].clone(),
        Expression::Literal(literal) => literal.clone(),
        Expression::Compare(how, a, b) => {
            let (x, y) = (value(a)?, value(b)?);
            truth(compare(
                *how,
                (&x, &type_of(a, columns)?),
                (&y, &type_of(b, columns)?),
            ))
        }
        Expression::Arithmetic(how, a, b) => {
            let float = type_of(expression, columns)?.is_floating();
            arithmetic(*how, &value(a)?, &value(b)?, float)?
        }
        Expression::And(a, b) => join([value(a), value(b)], false)?,
        Expression::Or(a, b) => join([value(a), value(b)], true)?,
        Expression::Not(a) => truth(known(&value(a)?).map(|known| !known)),
        Expression::IsNull(a) => truth(Some(value(a)? == Value::Null)),
        Expression::OneOf(a, constants) => one_of(&value(a)?, constants),
        Expression::Cast(a, to) => super::step::cast(&value(a)?, &type_of(a, columns)?, to)?,
        Expression::MakeTimestamp(parts) => {
            let parts: Result<Vec<Value>> = parts.iter().map(value).collect();
            make_timestamp(&parts?)?
        }
        Expression::EpochTime(a, _) => in_range(value(a)?, &DataType::Int64)?,
        Expression::Call {
            function,
            arguments,
        } => {
            let mut arrays = Vec::new();
            for argument in arguments {
                arrays.push(to_array(&type_of(argument, columns)?, &[value(argument)?]));
            }
            from_array(&function.evaluate(&arrays, 1)?).swap_remove(0)
        }
    })
}

fn truth(known: Option<bool>) -> Value {
    known.map_or(Value::Null, Value::from)
}

/// AND of both sides, or OR if `settles`: the truth of one side that settles the whole, whatever is
/// wrong with the other.
fn join(sides: [Result<Value>; 2], settles: bool) -> Result<Value> {
    let settling = |side: &Result<Value>| side.as_ref().is_ok_and(|it| known(it) == Some(settles));
    if sides.iter().any(settling) {
        return Ok(truth(Some(settles)));
    }
    let [a, b] = sides;
    let both = known(&a?).zip(known(&b?));
    Ok(truth(both.map(|_| !settles)))
}

/// What a boolean value says; `None` is unknown.
pub fn known(value: &Value) -> Option<bool> {
    match value {
        Value::Integer(bit) => Some(*bit != 0),
        _ => None,
    }
}

/// Whether `a` compares so with `b`; `None` when either is null.
pub fn compare(how: Comparison, a: (&Value, &DataType), b: (&Value, &DataType)) -> Option<bool> {
    if *a.0 == Value::Null || *b.0 == Value::Null {
        return None;
    }
    let order = match (times(a), times(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => order(a.0, b.0),
    };
    Some(match how {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}

/// Nanoseconds since the epoch of a timestamp or date.
fn times((value, data_type): (&Value, &DataType)) -> Option<i128> {
    const DAY_NS: i128 = 86_400 * 1_000_000_000;
    match (value, data_type) {
        (Value::Integer(ticks), DataType::Timestamp(unit, _)) => Some(ticks * tick_ns(*unit)),
        (Value::Integer(days), DataType::Date32) => Some(days * DAY_NS),
        _ => None,
    }
}

/// SQL's `IN`: nulls among the constants match nothing and make nothing unknown.
fn one_of(value: &Value, constants: &[Value]) -> Value {
    if *value == Value::Null {
        return Value::Null;
    }
    let present = constants
        .iter()
        .filter(|constant| **constant != Value::Null);
    truth(Some(
        present
            .into_iter()
            .any(|constant| order(value, constant).is_eq()),
    ))
}

fn arithmetic(how: Arithmetic, a: &Value, b: &Value, float: bool) -> Result<Value> {
    if *a == Value::Null || *b == Value::Null {
        return Ok(Value::Null);
    }
    if float {
        return Ok(arithmetic_floats(how, as_float(a), as_float(b)));
    }
    let (a, b) = (as_i64(a)?, as_i64(b)?);
    let divides = matches!(how, Arithmetic::Divide | Arithmetic::Remainder);
    if divides && b == 0 {
        return Ok(Value::Null);
    }
    let result = match how {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Remainder => Some(a.wrapping_rem(b)),
    };
    let symbol = how.symbol();
    let overflow = || Error::limit(format!("{a} {symbol} {b} does not fit 64 bits"));
    result.map(Value::from).ok_or_else(overflow)
}

fn arithmetic_floats(how: Arithmetic, a: f64, b: f64) -> Value {
    Value::Float(match how {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide | Arithmetic::Remainder if b == 0.0 => return Value::Null,
        Arithmetic::Divide => a / b,
        Arithmetic::Remainder => a % b,
    })
}

/// The float a number stands for; NaN for anything else.
pub fn as_float(value: &Value) -> f64 {
    match value {
        Value::Integer(integer) => *integer as f64,
        Value::Float(float) => *float,
        Value::Decimal(digits, scale) => decimal_as_float(*digits, *scale),
        _ => f64::NAN,
    }
}

fn as_i64(value: &Value) -> Result<i64> {
    let fits = match value {
        Value::Integer(integer) => i64::try_from(*integer).ok(),
        _ => None,
    };
    fits.ok_or_else(|| Error::limit(format!("{value:?} does not fit a signed 64-bit integer")))
}

/// `value`, if the integer type can hold it.
///
/// # Errors
/// `LimitExceeded` if not.
pub fn in_range(value: Value, data_type: &DataType) -> Result<Value> {
    match value {
        Value::Integer(integer) if Physical::of(data_type)?.key_of(integer).is_none() => {
            Err(Error::limit(format!("{integer} does not fit {data_type}")))
        }
        other => Ok(other),
    }
}

/// Seconds since the epoch of calendar parts; missing parts take their smallest value.
fn make_timestamp(parts: &[Value]) -> Result<Value> {
    let mut numbers = [1970, 1, 1, 0, 0, 0];
    for (number, part) in numbers.iter_mut().zip(parts) {
        match part {
            Value::Null => return Ok(Value::Null),
            part => *number = as_i64(part)?,
        }
    }
    let [year, month, day, hour, minute, second] = numbers;
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let month_days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let valid = (1..=12).contains(&month)
        && (1..=month_days).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    if !valid {
        return Err(Error::invalid(format!(
            "no such date and time: {numbers:?}"
        )));
    }
    let days = i128::from(days_from_civil(year, month, day));
    let seconds = days * 86_400 + i128::from(hour * 3600 + minute * 60 + second);
    Ok(Value::Integer(seconds))
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
///
/// # Source
/// Howard Hinnant, "chrono-compatible low-level date algorithms".
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
