//! Types by name: as people write them, as pyarrow prints them, and as results describe them.

use arrow_schema::{DataType, TimeUnit};

use crate::types::{Physical, logical_type};

/// The names of types, for hints.
pub const TYPE_NAMES: &str = "bool, int8 to int64, uint8 to uint64, float32, float64, string, \
                              binary, date, timestamp[s|ms|us|ns], timestamp[us, UTC], \
                              decimal(38, 2), and types as they are printed, as Timestamp(ms)";

/// The type called `name`; `None` where no column has it.
///
/// # Examples
/// ```
/// use arrow_schema::{DataType, TimeUnit};
/// use tersecades_columnar::type_name::type_of_name;
/// let utc = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
/// let printed = utc.to_string();
/// for name in ["timestamp[ms, UTC]", "timestamp[ms, tz=UTC]", "Timestamp(ms, UTC)", &printed] {
///     assert_eq!(type_of_name(name).as_ref(), Some(&utc));
/// }
/// assert_eq!(type_of_name("int63"), None);
/// ```
pub fn type_of_name(name: &str) -> Option<DataType> {
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
        "date" | "date32" | "date32[day]" => DataType::Date32,
        _ => return with_parameters(name).or_else(|| printed(name)),
    })
}

/// `timestamp[ms]`, `timestamp_ms`, `decimal(9, 2)` and their like.
fn with_parameters(name: &str) -> Option<DataType> {
    let short = between(name, "timestamp[", "]");
    if let Some(inside) = short.or_else(|| between(name, "Timestamp(", ")")) {
        let (unit, zone) = match inside.split_once(',') {
            Some((unit, zone)) => (unit, Some(zone.trim())),
            None => (inside, None),
        };
        let zone = zone.map(|zone| zone.strip_prefix("tz=").unwrap_or(zone));
        let zone = zone.map(|zone| between(zone, "\"", "\"").unwrap_or(zone).into());
        return Some(DataType::Timestamp(unit_of_name(unit.trim())?, zone));
    }
    if let Some(unit) = name.strip_prefix("timestamp_") {
        return Some(DataType::Timestamp(unit_of_name(unit)?, None));
    }
    let inside = between(name, "decimal(", ")").or_else(|| between(name, "decimal128(", ")"))?;
    let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
    let precision: u8 = precision.trim().parse().ok()?;
    valid_decimal(precision, scale.trim().parse().ok()?)
}

/// A type as Arrow prints it, where a column can have it.
fn printed(name: &str) -> Option<DataType> {
    let data_type = logical_type(&name.parse().ok()?);
    match data_type {
        DataType::Decimal128(precision, scale) => valid_decimal(precision, scale),
        _ => Physical::of(&data_type).ok().map(|_| data_type),
    }
}

fn valid_decimal(precision: u8, scale: i8) -> Option<DataType> {
    let fits = (1..=38).contains(&precision) && scale.unsigned_abs() <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// The unit of time called `s`, `ms`, `us` or `ns`.
pub fn unit_of_name(name: &str) -> Option<TimeUnit> {
    Some(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use tersecades_testkit::data::types;

    use super::*;

    #[test]
    fn types_of_columns_are_read_as_they_are_printed() {
        let utc = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
        let few = [
            utc,
            DataType::Decimal128(38, 2),
            DataType::Decimal128(9, -2),
        ];
        for data_type in types().into_iter().chain(few) {
            let (short, printed) = (format!("{data_type:?}"), data_type.to_string());
            assert!(Physical::of(&data_type).is_ok());
            assert_eq!(type_of_name(&printed), Some(data_type), "{short}");
        }
    }

    #[test]
    fn names_of_no_type_of_a_column_are_none() {
        let wrong = [
            "",
            "varchar",
            "timestamp",
            "timestamp[m]",
            "timestamp[ms",
            "Timestamp(ms",
            "decimal(39, 2)",
            "decimal(3, 4)",
            "Decimal128(39, 2)",
            "Decimal256(9, 2)",
            "Time32(s)",
            "List(Int32)",
        ];
        for name in wrong {
            assert_eq!(type_of_name(name), None, "{name}");
        }
    }
}
