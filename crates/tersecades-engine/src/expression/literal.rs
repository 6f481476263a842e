//! Constants in the terms of the column they are compared with.
//!
//! Integers against times are ticks. Text against times is ISO 8601, read to the nanosecond: the
//! result is a decimal number of ticks, so that `ts < '2024-01-01 00:00:00.5'` is right for
//! a column of whole seconds.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int64Array};
use arrow_array::{StringArray, UInt64Array};
use arrow_cast::parse::string_to_datetime;
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::input::Lanes;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::float_of_bits;

/// Seconds of a day.
pub(super) const DAY_SECONDS: i128 = 86_400;

/// What can be compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Boolean,
    Number,
    Time,
    Text,
    Binary,
    Other,
}

impl Family {
    /// The family of `data_type`.
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Family::Boolean,
            DataType::Timestamp(..) | DataType::Date32 => Family::Time,
            DataType::Utf8 => Family::Text,
            DataType::Binary => Family::Binary,
            DataType::Decimal128(..) => Family::Number,
            other if other.is_numeric() => Family::Number,
            _ => Family::Other,
        }
    }

    /// What error messages call it.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Family::Boolean => "condition",
            Family::Number => "number",
            Family::Time => "time",
            Family::Text => "text",
            Family::Binary => "bytes",
            Family::Other => "value",
        }
    }
}

/// Digits after the point of a second that `unit` keeps.
pub(super) fn unit_scale(unit: TimeUnit) -> i8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// A constant and, for times and booleans, the type that says what its integer means.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    pub(super) value: Value,
    /// `None` for literals, whose integers fit any column.
    pub(super) data_type: Option<DataType>,
}

impl Constant {
    /// The value in the terms of a column of `column`; `None` when they cannot be compared.
    pub(super) fn place(&self, column: &DataType) -> Option<Value> {
        let own = self
            .data_type
            .as_ref()
            .filter(|own| Family::of(own) == Family::Time);
        match (Family::of(column), &self.value) {
            (_, Value::Null) => Some(Value::Null),
            (Family::Time, Value::Text(text)) => in_ticks(parse_nanoseconds(text)?, 9, column),
            (Family::Time, Value::Integer(ticks)) => match own {
                None => Some(self.value.clone()),
                Some(DataType::Timestamp(unit, _)) => in_ticks(*ticks, unit_scale(*unit), column),
                Some(_) => in_ticks(*ticks * DAY_SECONDS, 0, column),
            },
            _ if own.is_some() => None,
            (Family::Boolean, Value::Integer(0 | 1)) => Some(self.value.clone()),
            (Family::Number, Value::Integer(_) | Value::Float(_) | Value::Decimal(..))
            | (Family::Text | Family::Binary, Value::Text(_) | Value::Binary(_)) => {
                Some(self.value.clone())
            }
            _ => None,
        }
    }
}

/// `digits * 10^-scale` seconds as ticks or days of a column.
fn in_ticks(digits: i128, scale: i8, column: &DataType) -> Option<Value> {
    if let DataType::Timestamp(unit, _) = column {
        return Some(match scale - unit_scale(*unit) {
            0 => Value::Integer(digits),
            excess => Value::Decimal(digits, excess),
        });
    }
    let day = DAY_SECONDS * 10i128.checked_pow(u32::try_from(scale).ok()?)?;
    let days = digits.div_euclid(day);
    Some(match digits.rem_euclid(day) {
        0 => Value::Integer(days),
        // Any point inside the day compares alike with whole days.
        _ => Value::Decimal(days * 10 + 5, 1),
    })
}

/// Nanoseconds since the epoch of an ISO 8601 date or time; UTC unless it names an offset.
fn parse_nanoseconds(text: &str) -> Option<i128> {
    let utc: Tz = "+00:00".parse().ok()?;
    let text = text.trim();
    let whole = with_seconds(text);
    let time = string_to_datetime(&utc, whole.as_deref().unwrap_or(text)).ok()?;
    let seconds = i128::from(time.timestamp());
    Some(seconds * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos()))
}

/// A time in ISO 8601 of hours and minutes, `2024-02-29 01:02`, with the seconds that Arrow asks
/// for; `None` for all other texts.
pub fn with_seconds(text: &str) -> Option<String> {
    let (minute, rest) = text.split_at_checked("YYYY-MM-DD hh:mm".len())?;
    let separates = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        10 => b" Tt".contains(byte),
        13 => *byte == b':',
        _ => byte.is_ascii_digit(),
    };
    let is_minute = minute.as_bytes().iter().enumerate().all(separates);
    let ends = !rest.starts_with(|next: char| next.is_ascii_digit() || ":.,".contains(next));
    (is_minute && ends).then(|| format!("{minute}:00{rest}"))
}

/// A literal as an array of one value.
///
/// # Errors
/// `LimitExceeded` for integers of more than 38 digits, `Unsupported` for a bare NULL.
pub(super) fn literal_array(value: &Value) -> Result<ArrayRef> {
    Ok(match value {
        Value::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => Arc::new(Int64Array::from(vec![value])),
            (_, Ok(value)) => Arc::new(UInt64Array::from(vec![value])),
            _ => decimal_array(*value, 0)?,
        },
        Value::Float(value) => Arc::new(Float64Array::from(vec![*value])),
        Value::Decimal(digits, scale) => decimal_array(*digits, *scale)?,
        Value::Text(text) => Arc::new(StringArray::from(vec![text.as_str()])),
        Value::Binary(bytes) => Arc::new(BinaryArray::from(vec![bytes.as_slice()])),
        Value::Null => {
            return Err(Error::unsupported("NULL alone has no type")
                .hint("say which: CAST(NULL AS BIGINT)"));
        }
    })
}

fn decimal_array(digits: i128, scale: i8) -> Result<ArrayRef> {
    let array = Decimal128Array::from(vec![digits]);
    let array = array.with_precision_and_scale(38, scale).map_err(|_| {
        Error::limit(format!(
            "the constant {digits} (scale {scale}) has more than 38 digits"
        ))
    })?;
    array.validate_decimal_precision(38).map_err(|_| {
        Error::limit(format!("the constant {digits} has more than 38 digits"))
            .hint("write it as a float, for example 1e40")
    })?;
    Ok(Arc::new(array))
}

/// The value of an array of one value.
pub(super) fn constant_of(array: &ArrayRef) -> Option<Constant> {
    let data_type = Some(array.data_type().clone());
    let value = match array.data_type() {
        _ if array.is_null(0) => Value::Null,
        DataType::Boolean => Value::from(array.as_boolean().value(0)),
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(0)),
        DataType::Binary => Value::Binary(array.as_binary::<i32>().value(0).to_vec()),
        DataType::Decimal128(_, scale) => {
            Value::Decimal(array.as_primitive::<Decimal128Type>().value(0), *scale)
        }
        other => {
            let bits = lane(array.as_ref())?;
            match Physical::of(other).ok()? {
                Physical::Float { bytes } => Value::Float(float_of_bits(bits, bytes)),
                physical => Value::Integer(physical.value_of(bits ^ physical.flip())),
            }
        }
    };
    Some(Constant { value, data_type })
}

fn lane(array: &dyn Array) -> Option<u64> {
    let lanes = tersecades_columnar::arrow::lanes(array)?;
    (!matches!(lanes, Lanes::Wide(_) | Lanes::Text { .. })).then(|| lanes.bits(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_that_end_with_minutes_are_given_seconds() {
        for (text, expected) in [
            ("2024-02-29 01:02", Some("2024-02-29 01:02:00")),
            ("2024-02-29T01:02Z", Some("2024-02-29T01:02:00Z")),
            ("2024-02-29 01:02+02:00", Some("2024-02-29 01:02:00+02:00")),
            ("2024-02-29 01:02:03", None),
            ("2024-02-29 01:023", None),
            ("2024-02-29 01:02.5", None),
            ("2024-02-29", None),
            ("2024-02-29 01", None),
            ("2024-02-29_01:02", None),
            ("2024-02-2é 01:02", None),
            ("", None),
        ] {
            assert_eq!(with_seconds(text).as_deref(), expected, "{text}");
        }
        let seconds = 1_709_168_520;
        assert_eq!(
            parse_nanoseconds(" 2024-02-29 01:02 "),
            Some(seconds * 1_000_000_000)
        );
    }
}
