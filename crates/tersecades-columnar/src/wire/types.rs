//! Logical types as a number and two parameters.

use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, Result};

/// Longest name of a time zone.
const ZONE_BYTES_MAX: usize = 255;

/// Most digits of a decimal.
const DIGITS_MAX: u8 = 38;

const DECIMAL: u8 = 11;
const TIMESTAMP: u8 = 13;

/// Types that need no parameters, and their numbers.
const SIMPLE: &[(u8, DataType)] = &[
    (0, DataType::Boolean),
    (1, DataType::Int8),
    (2, DataType::Int16),
    (3, DataType::Int32),
    (4, DataType::Int64),
    (5, DataType::UInt8),
    (6, DataType::UInt16),
    (7, DataType::UInt32),
    (8, DataType::UInt64),
    (9, DataType::Float32),
    (10, DataType::Float64),
    (12, DataType::Date32),
    (14, DataType::Utf8),
    (15, DataType::Binary),
];

const UNITS: [TimeUnit; 4] = [
    TimeUnit::Second,
    TimeUnit::Millisecond,
    TimeUnit::Microsecond,
    TimeUnit::Nanosecond,
];

/// Number and parameters of a type, and its time zone.
pub(super) fn write(data_type: &DataType) -> Result<([u8; 3], &str)> {
    match data_type {
        DataType::Decimal128(precision, scale) => {
            Ok(([DECIMAL, *precision, scale.to_le_bytes()[0]], ""))
        }
        DataType::Timestamp(unit, zone) => {
            let unit = (0u8..)
                .zip(UNITS)
                .find(|(_, known)| known == unit)
                .map_or(0, |(index, _)| index);
            let name = zone.as_deref().unwrap_or("");
            if name.len() > ZONE_BYTES_MAX {
                return Err(Error::limit("a time zone's name is longer than 255 bytes"));
            }
            Ok(([TIMESTAMP, unit, u8::from(zone.is_some())], name))
        }
        simple => {
            let found = SIMPLE.iter().find(|(_, known)| known == simple);
            let (number, _) = found.ok_or_else(|| {
                Error::unsupported(format!("columns of type {simple} cannot be written"))
            })?;
            Ok(([*number, 0, 0], ""))
        }
    }
}

/// The type with this number, these parameters and this time zone.
pub(super) fn read([number, first, second]: [u8; 3], zone: &[u8]) -> Result<DataType> {
    let corrupt = || Error::corrupt("a column has an impossible type");
    if number != TIMESTAMP && !zone.is_empty() {
        return Err(corrupt());
    }
    match (number, first, second) {
        (DECIMAL, precision, scale) => {
            let scale = i8::from_le_bytes([scale]);
            let digits = (1..=DIGITS_MAX).contains(&precision);
            let below = i16::from(scale) <= i16::from(precision);
            match digits && below && scale.unsigned_abs() <= DIGITS_MAX {
                true => Ok(DataType::Decimal128(precision, scale)),
                false => Err(corrupt()),
            }
        }
        (TIMESTAMP, unit, zoned @ (0 | 1)) => {
            let unit = UNITS.get(usize::from(unit)).ok_or_else(corrupt)?;
            if zone.len() > ZONE_BYTES_MAX || (zoned == 0 && !zone.is_empty()) {
                return Err(corrupt());
            }
            let name = std::str::from_utf8(zone).map_err(|_| corrupt())?;
            Ok(DataType::Timestamp(
                *unit,
                (zoned == 1).then(|| name.into()),
            ))
        }
        (number, 0, 0) => {
            let found = SIMPLE.iter().find(|(known, _)| *known == number);
            found
                .map(|(_, data_type)| data_type.clone())
                .ok_or_else(corrupt)
        }
        _ => Err(corrupt()),
    }
}
