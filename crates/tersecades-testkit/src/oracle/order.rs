//! One order over all values: numbers, then NaN, then null; text by bytes.
//!
//! Negative zero equals zero and every NaN is equal, as in PostgreSQL. Numbers of different kinds
//! compare by what they stand for, never by a rounded copy (decimals with floats excepted).

use std::cmp::Ordering;

use tersecades_columnar::types::Value;

/// Where `a` stands relative to `b`.
///
/// Values that cannot be compared (text with numbers) are ordered by kind.
pub fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Float(a), Value::Float(b)) => order_floats(*a, *b),
        (Value::Float(a), Value::Integer(b)) => order_integer(*b, *a).reverse(),
        (Value::Integer(a), Value::Float(b)) => order_integer(*a, *b),
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Float(a), Value::Decimal(d, s)) => order_floats(*a, decimal_as_float(*d, *s)),
        (Value::Decimal(d, s), Value::Float(b)) => order_floats(decimal_as_float(*d, *s), *b),
        (Value::Decimal(a, s), Value::Decimal(b, t)) => order_decimals((*a, *s), (*b, *t)),
        (Value::Decimal(a, s), Value::Integer(b)) => order_decimals((*a, *s), (*b, 0)),
        (Value::Integer(a), Value::Decimal(b, t)) => order_decimals((*a, 0), (*b, *t)),
        _ => match (bytes(a), bytes(b)) {
            (Some(a), Some(b)) => a.cmp(b),
            (Some(_), None) => Ordering::Greater,
            (None, _) => Ordering::Less,
        },
    }
}

/// Where the row `a` stands relative to `b`, first difference first.
pub fn order_rows(a: &[Value], b: &[Value]) -> Ordering {
    let differing = a
        .iter()
        .zip(b)
        .map(|(a, b)| order(a, b))
        .find(|o| o.is_ne());
    differing.unwrap_or(a.len().cmp(&b.len()))
}

fn order_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn order_integer(integer: i128, float: f64) -> Ordering {
    const LIMIT: f64 = 1e38;
    if float.is_nan() || float > LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    let whole = float.floor() as i128;
    match integer.cmp(&whole) {
        Ordering::Equal if float.fract() != 0.0 => Ordering::Less,
        other => other,
    }
}

fn order_decimals((a, s): (i128, i8), (b, t): (i128, i8)) -> Ordering {
    let scale = s.max(t);
    parts(a, s, scale).cmp(&parts(b, t, scale))
}

/// Whole part of a decimal, and the rest in digits of `scale`.
fn parts(digits: i128, from: i8, scale: i8) -> (i128, i128) {
    let power = |exponent: i8| 10i128.pow(exponent.unsigned_abs().into());
    if from < 0 {
        return (digits * power(from), 0);
    }
    let one = power(from);
    (
        digits.div_euclid(one),
        digits.rem_euclid(one) * power(scale - from),
    )
}

/// The float nearest to a decimal.
pub fn decimal_as_float(digits: i128, scale: i8) -> f64 {
    digits as f64 / 10f64.powi(scale.into())
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Binary(bytes) => Some(bytes),
        _ => None,
    }
}
