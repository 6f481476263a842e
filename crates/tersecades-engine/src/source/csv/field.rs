//! One field: from text to a cell of a given type.
//!
//! ```text
//! text -> trim -> null string? -> Cell::{Null, Bool, Int, Float, Text} or the reason why not
//! ```
//! Whole numbers, dates and times are all `Cell::Int`; the column builder knows which.

use std::str::FromStr;

use arrow_array::timezone::Tz;
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use super::exact::{hexadecimal, parse_decimal};
use super::timestamp::{Moment, TimePattern, parse_iso};
use crate::window::calendar::unknown_zone;

/// A parsed field; `Text` stands for the text itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number, days of a date, units of a timestamp, or the bits of an unsigned number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// The digits of a decimal, without its point.
    Decimal(i128),
    /// The text as it stands; hexadecimal digits in a column of bytes.
    Text,
}

/// Why a field is not what its column wants, and what may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Completes "`12.5` …".
    pub reason: String,
    /// Advice.
    pub hint: &'static str,
}

/// What comes of a field.
pub type FieldResult<T> = std::result::Result<T, Misfit>;

/// How to read the fields of one type.
#[derive(Debug, Clone)]
pub enum FieldKind {
    /// `true`, `True`, `TRUE`, `false`, `False`, `FALSE`.
    Bool,
    /// Signed and small unsigned whole numbers within bounds.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// 64-bit unsigned whole numbers.
    UInt64,
    /// Floating-point numbers of 32 bits.
    Float32,
    /// Floating-point numbers of 64 bits.
    Float64,
    /// Dates as days since 1970-01-01.
    Date {
        /// Pattern, if the text is not ISO 8601.
        pattern: Option<TimePattern>,
    },
    /// Dates and times as units since 1970-01-01.
    Time {
        /// Unit of the column.
        unit: TimeUnit,
        /// Time zone of the column, whose clocks texts without an offset go by.
        zone: Option<Tz>,
        /// Pattern, if the text is not ISO 8601.
        pattern: Option<TimePattern>,
    },
    /// Decimals of at most so many digits, so many of them behind the point.
    Decimal {
        /// Digits.
        precision: u8,
        /// Digits behind the point.
        scale: i8,
    },
    /// Bytes, as hexadecimal digits.
    Bytes,
    /// Text.
    Text,
}

impl FieldKind {
    /// The reader of fields for a column of type `data_type`, times following `pattern`.
    ///
    /// # Errors
    /// `Unsupported` for types that text cannot become, `InvalidArgument` for unknown time zones.
    pub fn new(data_type: &DataType, pattern: Option<TimePattern>) -> Result<Self> {
        let int = |min, max| FieldKind::Int { min, max };
        Ok(match data_type {
            DataType::Boolean => FieldKind::Bool,
            DataType::Int8 => int(i8::MIN.into(), i8::MAX.into()),
            DataType::Int16 => int(i16::MIN.into(), i16::MAX.into()),
            DataType::Int32 => int(i32::MIN.into(), i32::MAX.into()),
            DataType::Int64 => int(i64::MIN, i64::MAX),
            DataType::UInt8 => int(0, u8::MAX.into()),
            DataType::UInt16 => int(0, u16::MAX.into()),
            DataType::UInt32 => int(0, u32::MAX.into()),
            DataType::UInt64 => FieldKind::UInt64,
            DataType::Float32 => FieldKind::Float32,
            DataType::Float64 => FieldKind::Float64,
            DataType::Date32 => FieldKind::Date { pattern },
            DataType::Timestamp(unit, zone) => FieldKind::Time {
                unit: *unit,
                zone: match zone {
                    Some(zone) => Some(zone.parse().map_err(|_| unknown_zone(zone))?),
                    None => None,
                },
                pattern,
            },
            DataType::Decimal128(precision @ ..=DECIMAL128_MAX_PRECISION, scale) => {
                FieldKind::Decimal {
                    precision: *precision,
                    scale: *scale,
                }
            }
            DataType::Binary => FieldKind::Bytes,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => FieldKind::Text,
            DataType::Dictionary(_, value) if **value == DataType::Utf8 => FieldKind::Text,
            other => {
                return Err(Error::unsupported(format!("text cannot become {other}"))
                    .hint("use boolean, int, float, decimal, date32, timestamp, binary or utf8"));
            }
        })
    }

    /// Whether `NaN` is a value of this type and not a null.
    pub fn has_nan(&self) -> bool {
        matches!(self, FieldKind::Float32 | FieldKind::Float64)
    }

    /// Parses `text`, which is no null string.
    ///
    /// # Errors
    /// A [`Misfit`] that says what is wrong.
    pub fn parse(&self, text: &str) -> FieldResult<Cell> {
        let trimmed = text.trim_ascii();
        match self {
            FieldKind::Text => Ok(Cell::Text),
            FieldKind::Bool => parse_bool(trimmed).map(Cell::Bool).ok_or_else(|| Misfit {
                reason: "is not true or false".into(),
                hint: "give the column the type utf8, or list the text as a null string",
            }),
            FieldKind::Int { min, max } => match trimmed.parse::<i64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(Cell::Int(number)),
                Ok(_) => Err(out_of_range(&format!("{min} to {max}"))),
                Err(_) => Err(not_whole(trimmed)),
            },
            FieldKind::UInt64 => match trimmed.parse::<u64>() {
                Ok(number) => Ok(Cell::Int(number.cast_signed())),
                Err(_) if trimmed.parse::<i64>().is_ok() => Err(out_of_range("0 to 2^64 - 1")),
                Err(_) => Err(not_whole(trimmed)),
            },
            // By way of 64 bits a number would be rounded twice.
            FieldKind::Float32 => parse_float::<f32>(trimmed, "finite float32 numbers"),
            FieldKind::Float64 => parse_float::<f64>(trimmed, "finite float64 numbers"),
            FieldKind::Date { pattern } => parse_day(trimmed, pattern.as_ref()),
            FieldKind::Time {
                unit,
                zone,
                pattern,
            } => parse_time(trimmed, *unit, *zone, pattern.as_ref()),
            FieldKind::Decimal { precision, scale } => parse_decimal(trimmed, *precision, *scale),
            FieldKind::Bytes => match hexadecimal(trimmed) {
                Some(_) => Ok(Cell::Text),
                None => Err(Misfit {
                    reason: "is no pairs of hexadecimal digits".into(),
                    hint: "bytes are written as 48656c6c6f; text has the type utf8",
                }),
            },
        }
    }

    /// Whether what stands in quotes is a value, whatever it says.
    pub fn keeps_quoted(&self) -> bool {
        matches!(self, FieldKind::Text | FieldKind::Bytes)
    }
}

/// The number nearest to `text` of those of type `F`, of which the finite ones are `range`.
fn parse_float<F: FromStr + Into<f64>>(text: &str, range: &str) -> FieldResult<Cell> {
    let number = text.parse::<F>().map_err(|_| Misfit {
        reason: "is not a number".into(),
        hint: "list it as a null string, or give the column the type utf8",
    })?;
    let number: f64 = number.into();
    // `inf` is a value; digits that are too many for one are not.
    let is_digit = |letter: char| letter.is_ascii_digit();
    match number.is_infinite() && text.contains(is_digit) {
        true => Err(out_of_range(range)),
        false => Ok(Cell::Float(number)),
    }
}

pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn out_of_range(range: &str) -> Misfit {
    Misfit {
        reason: format!("is outside {range}"),
        hint: "give the column a wider type, such as int64, float64 or utf8",
    }
}

fn not_whole(text: &str) -> Misfit {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number.fract() == 0.0 && number.abs() > 9e18 => {
            out_of_range("the 64-bit whole numbers")
        }
        Ok(_) => Misfit {
            reason: "is a float in a column of whole numbers".into(),
            hint: "give the column the type float64, or raise the number of inference rows",
        },
        Err(_) => Misfit {
            reason: "is not a whole number".into(),
            hint: "list it as a null string, give the column the type utf8, or raise the number \
                   of inference rows",
        },
    }
}

fn read_moment(text: &str, pattern: Option<&TimePattern>) -> FieldResult<Moment> {
    let moment = match pattern {
        Some(pattern) => pattern.parse(text),
        None => parse_iso(text),
    };
    moment.ok_or_else(|| match pattern {
        Some(pattern) => Misfit {
            reason: "does not follow the timestamp format of the column".into(),
            hint: match pattern.names_zone() {
                true => "%Z reads UTC, GMT and Z; %z reads offsets such as +0100",
                false => "change the timestamp format, or list the text as a null string",
            },
        },
        None => Misfit {
            reason: "is not an ISO 8601 date or time".into(),
            hint: "give the column a timestamp format, for example %d/%m/%Y %H:%M",
        },
    })
}

fn parse_day(text: &str, pattern: Option<&TimePattern>) -> FieldResult<Cell> {
    let moment = read_moment(text, pattern)?;
    if moment.seconds.rem_euclid(86_400) != 0 || moment.nanoseconds != 0 || moment.zoned {
        return Err(Misfit {
            reason: "is a time in a column of dates".into(),
            hint: "give the column the type timestamp, or raise the number of inference rows",
        });
    }
    let days = i32::try_from(moment.seconds.div_euclid(86_400));
    days.map(|days| Cell::Int(days.into()))
        .map_err(|_| out_of_range("date32"))
}

fn parse_time(
    text: &str,
    unit: TimeUnit,
    zone: Option<Tz>,
    pattern: Option<&TimePattern>,
) -> FieldResult<Cell> {
    let moment = read_moment(text, pattern)?;
    let instant = match zone {
        Some(zone) => moment.in_zone(zone),
        None if moment.zoned => {
            return Err(Misfit {
                reason: "names a time zone in a column without one".into(),
                hint: "give the column the type timestamp with time zone UTC",
            });
        }
        None => Some(moment),
    };
    let ticks = instant.and_then(|instant| instant.scale(unit));
    ticks.map(Cell::Int).ok_or_else(|| Misfit {
        reason: format!("does not fit a timestamp in {unit:?}s without losing digits or range"),
        hint: "give the column a timestamp type of another unit",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(data_type: DataType, text: &str) -> std::result::Result<Cell, String> {
        let kind = FieldKind::new(&data_type, None).unwrap();
        kind.parse(text).map_err(|misfit| misfit.reason)
    }

    #[test]
    fn bounds_of_every_whole_type_hold() {
        for (data_type, least, most) in [
            (DataType::Int8, "-128", "127"),
            (DataType::Int16, "-32768", "32767"),
            (DataType::Int32, "-2147483648", "2147483647"),
            (
                DataType::Int64,
                "-9223372036854775808",
                "9223372036854775807",
            ),
            (DataType::UInt8, "0", "255"),
            (DataType::UInt16, "0", "65535"),
            (DataType::UInt32, "0", "4294967295"),
            (DataType::UInt64, "0", "18446744073709551615"),
        ] {
            assert!(
                parse(data_type.clone(), least).is_ok(),
                "{data_type} {least}"
            );
            assert!(parse(data_type.clone(), most).is_ok(), "{data_type} {most}");
            let over = (most.parse::<i128>().unwrap() + 1).to_string();
            assert!(
                parse(data_type.clone(), &over)
                    .unwrap_err()
                    .contains("outside")
            );
            let under = (least.parse::<i128>().unwrap() - 1).to_string();
            assert!(
                parse(data_type.clone(), &under)
                    .unwrap_err()
                    .contains("outside")
            );
        }
    }

    #[test]
    fn numbers_of_32_bits_are_rounded_once() {
        for (text, number) in [
            ("3.4028235e38", f32::MAX),
            ("-3.4028235e38", f32::MIN),
            // A hair above the middle of two numbers, which 64 bits do not tell from it.
            ("1.0000000596046447753906251", 1.000_000_1),
            ("1e-45", f32::from_bits(1)),
            ("inf", f32::INFINITY),
        ] {
            let cell = parse(DataType::Float32, text).unwrap();
            assert_eq!(cell, Cell::Float(number.into()), "{text}");
        }
        for (data_type, text) in [
            (DataType::Float32, "3.4028236e38"),
            (DataType::Float64, "1e309"),
        ] {
            assert!(parse(data_type, text).unwrap_err().contains("finite"));
        }
    }

    #[test]
    fn misfits_say_why() {
        let reason = |data_type, text| parse(data_type, text).unwrap_err();
        assert!(reason(DataType::Int64, "12.5").contains("float in a column of whole numbers"));
        assert!(reason(DataType::Int64, "abc").contains("not a whole number"));
        assert!(reason(DataType::Float32, "1e39").contains("float32"));
        assert!(reason(DataType::Boolean, "1").contains("true or false"));
        assert!(reason(DataType::Date32, "2013-01-01 10:00").contains("column of dates"));
        let local = DataType::Timestamp(TimeUnit::Second, None);
        assert!(reason(local.clone(), "2013-01-01T10:00:00Z").contains("time zone"));
        assert!(reason(local, "2013-01-01T10:00:00.5").contains("losing digits"));
        for none in [DataType::Float16, DataType::Decimal128(39, 0)] {
            assert!(FieldKind::new(&none, None).is_err());
        }
    }
}
