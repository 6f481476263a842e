//! The SQL spelling of expressions, with no more parentheses than precedence asks for.

use std::fmt::{self, Display, Formatter, Write};

use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::types::Value;

use super::ast::{Arithmetic, Expression};
use super::bind::operands;

/// How tightly an expression binds its parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Compare,
    Add,
    Multiply,
    Primary,
}

fn level(expression: &Expression) -> Level {
    match expression {
        Expression::Or(..) => Level::Or,
        Expression::And(..) => Level::And,
        Expression::Not(inner) => match **inner {
            Expression::IsNull(_) | Expression::OneOf(..) => Level::Compare,
            _ => Level::Not,
        },
        Expression::Compare(..) | Expression::IsNull(_) | Expression::OneOf(..) => Level::Compare,
        Expression::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, ..) => Level::Add,
        Expression::Arithmetic(..) => Level::Multiply,
        Expression::Column(_)
        | Expression::Literal(_)
        | Expression::Cast(..)
        | Expression::MakeTimestamp(_)
        | Expression::Call { .. }
        | Expression::EpochTime(..) => Level::Primary,
    }
}

/// Writes `part`, in parentheses when it binds more loosely than `least`.
fn write_part(f: &mut Formatter<'_>, part: &Expression, least: Level) -> fmt::Result {
    match level(part) < least {
        true => write!(f, "({part})"),
        false => write!(f, "{part}"),
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Column(name) => write_name(f, name),
            Expression::Literal(value) => write_value(f, value),
            Expression::Compare(how, a, b) => write_infix(f, (a, how.symbol(), b), Level::Add),
            Expression::And(..) => write_joined(f, self, " AND "),
            Expression::Or(..) => write_joined(f, self, " OR "),
            Expression::Arithmetic(how, a, b) => {
                let own = level(self);
                write_part(f, a, own)?;
                write!(f, " {} ", how.symbol())?;
                let above = if own == Level::Add {
                    Level::Multiply
                } else {
                    Level::Primary
                };
                write_part(f, b, above)
            }
            Expression::Not(inner) => match &**inner {
                Expression::IsNull(value) => write_suffixed(f, value, " IS NOT NULL"),
                Expression::OneOf(value, list) => write_list(f, value, " NOT IN (", list),
                other => {
                    f.write_str("NOT ")?;
                    write_part(f, other, Level::Not)
                }
            },
            Expression::IsNull(value) => write_suffixed(f, value, " IS NULL"),
            Expression::OneOf(value, list) => write_list(f, value, " IN (", list),
            Expression::Cast(value, to) => write!(f, "CAST({value} AS {})", type_name(to)),
            Expression::MakeTimestamp(parts) => write_call(f, "make_timestamp", parts),
            Expression::Call {
                function,
                arguments,
            } => write_call(f, function.name(), arguments),
            Expression::EpochTime(value, unit) => {
                write!(f, "epoch_{}({value})", unit_name(*unit))
            }
        }
    }
}

fn write_call(f: &mut Formatter<'_>, name: &str, arguments: &[Expression]) -> fmt::Result {
    write!(f, "{name}(")?;
    for (index, argument) in arguments.iter().enumerate() {
        write!(f, "{}{argument}", if index > 0 { ", " } else { "" })?;
    }
    f.write_char(')')
}

fn write_infix(
    f: &mut Formatter<'_>,
    (a, symbol, b): (&Expression, &str, &Expression),
    least: Level,
) -> fmt::Result {
    write_part(f, a, least)?;
    write!(f, " {symbol} ")?;
    write_part(f, b, least)
}

/// Writes a chain of AND or of OR: both are associative, so no side needs parentheses.
fn write_joined(f: &mut Formatter<'_>, chain: &Expression, joiner: &str) -> fmt::Result {
    for (index, part) in operands(chain).into_iter().enumerate() {
        if index > 0 {
            f.write_str(joiner)?;
        }
        write_part(f, part, level(chain))?;
    }
    Ok(())
}

fn write_suffixed(f: &mut Formatter<'_>, value: &Expression, suffix: &str) -> fmt::Result {
    write_part(f, value, Level::Add)?;
    f.write_str(suffix)
}

fn write_list(
    f: &mut Formatter<'_>,
    value: &Expression,
    open: &str,
    list: &[Value],
) -> fmt::Result {
    write_suffixed(f, value, open)?;
    for (index, constant) in list.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write_value(f, constant)?;
    }
    f.write_char(')')
}

/// Words that cannot stand for a column without quotes.
const RESERVED: &[&str] = &[
    "and", "as", "between", "by", "case", "cast", "else", "end", "false", "from", "group",
    "having", "in", "is", "join", "like", "limit", "not", "null", "on", "or", "order", "select",
    "then", "true", "when", "where",
];

fn write_name(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    let plain = |(index, c): (usize, char)| {
        c == '_' || c.is_ascii_alphabetic() || (index > 0 && c.is_ascii_digit())
    };
    let lower = name.to_ascii_lowercase();
    if !name.is_empty() && name.chars().enumerate().all(plain) && !RESERVED.contains(&&*lower) {
        return f.write_str(name);
    }
    write!(f, "\"{}\"", name.replace('"', "\"\""))
}

/// Writes a constant as SQL spells it.
pub(super) fn write_value(f: &mut impl Write, value: &Value) -> fmt::Result {
    match value {
        Value::Null => f.write_str("NULL"),
        Value::Integer(value) => write!(f, "{value}"),
        Value::Float(value) if value.is_finite() => write!(f, "{value:?}"),
        Value::Float(value) => write!(f, "CAST('{value}' AS DOUBLE)"),
        Value::Decimal(digits, scale) => write_decimal(f, *digits, *scale),
        Value::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        Value::Binary(bytes) => {
            f.write_str("X'")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
            f.write_char('\'')
        }
    }
}

fn write_decimal(f: &mut impl Write, digits: i128, scale: i8) -> fmt::Result {
    let Ok(places) = usize::try_from(scale) else {
        return write!(
            f,
            "{digits}{}",
            "0".repeat(usize::from(scale.unsigned_abs()))
        );
    };
    if places == 0 {
        return write!(f, "{digits}");
    }
    let sign = if digits < 0 { "-" } else { "" };
    let all = format!("{:0>width$}", digits.unsigned_abs(), width = places + 1);
    let (whole, fraction) = all.split_at(all.len() - places);
    write!(f, "{sign}{whole}.{fraction}")
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// The SQL name of a type.
pub(super) fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 => "VARCHAR",
        DataType::Binary => "BLOB",
        DataType::Date32 => "DATE",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMPTZ",
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
        DataType::Decimal128(precision, scale) => return format!("DECIMAL({precision}, {scale})"),
        other => return other.to_string(),
    };
    name.to_owned()
}
