//! Constants of DataFusion as constants of the engine.

use arrow_schema::DataType;
use chrono::DateTime;
use datafusion_common::ScalarValue;
use tersecades_columnar::types::{Value, logical_type};
use tersecades_engine::expression::{Expression, lit};

/// The constant as something to compare columns of its type with; `None` for types that the
/// engine has no constants of.
///
/// Times become text, which the engine reads to the nanosecond whatever the unit of the column.
pub(crate) fn comparable(value: &ScalarValue) -> Option<Value> {
    Some(match value {
        value if value.is_null() => Value::Null,
        ScalarValue::Boolean(Some(value)) => Value::from(*value),
        ScalarValue::Float32(Some(value)) => Value::Float(f64::from(*value)),
        ScalarValue::Float64(Some(value)) => Value::Float(*value),
        ScalarValue::Decimal128(Some(digits), _, scale) => Value::Decimal(*digits, *scale),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Value::Text(text.clone()),
        ScalarValue::Binary(Some(bytes)) => Value::Binary(bytes.clone()),
        ScalarValue::Date32(Some(days)) => Value::Text(date_text(*days)?),
        time if matches!(time.data_type(), DataType::Timestamp(..)) => {
            Value::Text(time_text(time)?)
        }
        other => Value::Integer(integer(other)?),
    })
}

fn integer(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(Some(value)) => i128::from(*value),
        ScalarValue::Int16(Some(value)) => i128::from(*value),
        ScalarValue::Int32(Some(value)) => i128::from(*value),
        ScalarValue::Int64(Some(value)) => i128::from(*value),
        ScalarValue::UInt8(Some(value)) => i128::from(*value),
        ScalarValue::UInt16(Some(value)) => i128::from(*value),
        ScalarValue::UInt32(Some(value)) => i128::from(*value),
        ScalarValue::UInt64(Some(value)) => i128::from(*value),
        _ => return None,
    })
}

fn date_text(days: i32) -> Option<String> {
    let time = DateTime::from_timestamp(i64::from(days) * 86_400, 0)?;
    readable(time, "%Y-%m-%d")
}

fn time_text(value: &ScalarValue) -> Option<String> {
    let time = match value {
        ScalarValue::TimestampSecond(Some(ticks), _) => DateTime::from_timestamp(*ticks, 0),
        ScalarValue::TimestampMillisecond(Some(ticks), _) => {
            DateTime::from_timestamp_millis(*ticks)
        }
        ScalarValue::TimestampMicrosecond(Some(ticks), _) => {
            DateTime::from_timestamp_micros(*ticks)
        }
        ScalarValue::TimestampNanosecond(Some(ticks), _) => {
            Some(DateTime::from_timestamp_nanos(*ticks))
        }
        _ => None,
    };
    readable(time?, "%Y-%m-%dT%H:%M:%S%.9fZ")
}

/// The time in a form that the engine reads: years of four digits.
fn readable(time: DateTime<chrono::Utc>, form: &str) -> Option<String> {
    use chrono::Datelike as _;
    (0..=9999)
        .contains(&time.year())
        .then(|| time.format(form).to_string())
}

/// The constant as an expression of its own type; `None` for types that columns cannot have.
pub(crate) fn typed(value: &ScalarValue) -> Option<Expression> {
    let data_type = logical_type(&value.data_type());
    if value.is_null() {
        return Some(Expression::Literal(Value::Null).cast(data_type));
    }
    let integer_as = |through: DataType| {
        let value = match value {
            ScalarValue::Boolean(Some(value)) => i128::from(*value),
            ScalarValue::Date32(Some(days)) => i128::from(*days),
            ScalarValue::TimestampSecond(Some(ticks), _)
            | ScalarValue::TimestampMillisecond(Some(ticks), _)
            | ScalarValue::TimestampMicrosecond(Some(ticks), _)
            | ScalarValue::TimestampNanosecond(Some(ticks), _) => i128::from(*ticks),
            other => integer(other)?,
        };
        Some(lit(Value::Integer(value)).cast(through))
    };
    match &data_type {
        DataType::Int64 => Some(lit(Value::Integer(integer(value)?))),
        DataType::Float64 | DataType::Utf8 => comparable(value).map(Expression::Literal),
        DataType::Float32 | DataType::Decimal128(..) => {
            Some(Expression::Literal(comparable(value)?).cast(data_type))
        }
        DataType::Date32 => Some(integer_as(DataType::Int32)?.cast(DataType::Date32)),
        DataType::Boolean | DataType::Timestamp(..) => integer_as(data_type),
        other if other.is_integer() => integer_as(data_type),
        _ => None,
    }
}
