//! Argument values of several commands: counts, durations, types, `name=value` pairs.

use std::ops::Range;
use std::time::Duration;

use tersecades::Error;
use tersecades::columnar::goal::Tier;
use tersecades::columnar::type_name::{TYPE_NAMES, type_of_name};
use tersecades::prelude::DataType;
use tersecades::store;

/// A count such as `5000`, `20_000_000`, `20k`, `20M` or `1G`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let factor: u64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err("write a count as 5000, 20k, 20M or 1G".to_owned()),
    };
    let number: Result<u64, _> = digits.replace('_', "").parse();
    let number = number.map_err(|error| error.to_string())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the count is too large".to_owned())
}

/// A duration such as `500ms`, `30s`, `5m` or `1h`.
#[allow(dead_code, reason = "for commands that read event times")]
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let advice = || "write a duration as 500ms, 30s, 5m or 1h".to_owned();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .ok_or_else(advice)?;
    let (digits, unit) = text.split_at(digits_end);
    let factor_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(advice()),
    };
    let number: u64 = digits.parse().map_err(|_| advice())?;
    let millis = number
        .checked_mul(factor_ms)
        .ok_or("the duration is too long")?;
    Ok(Duration::from_millis(millis))
}

/// A number of bytes such as `512MiB`, `4GiB` or `1000000`.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let shift = match unit {
        "" | "B" => 0,
        "KiB" | "K" => 10,
        "MiB" | "M" => 20,
        "GiB" | "G" => 30,
        _ => return Err("write a size as 512MiB or 4GiB".to_owned()),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| "write a size as 512MiB or 4GiB")?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "the size is too large".to_owned())
}

/// A range of bytes such as `0:100`, `4KiB:8KiB`, `1MiB:` or `:1000`; the end is not part of it.
pub(crate) fn byte_range(text: &str) -> Result<Range<u64>, String> {
    let advice = "write a range as START:END, each in bytes or as 4KiB, or leave one out";
    let (start, end) = text.split_once(':').ok_or(advice)?;
    let place = |text: &str, open: u64| match text {
        "" => Ok(open),
        text => bytes(text).map(|bytes| bytes as u64),
    };
    let range = place(start, 0)?..place(end, u64::MAX)?;
    if range.end < range.start {
        return Err("a range ends before it starts".to_owned());
    }
    Ok(range)
}

/// `name=value`; the name may hold further `=`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    pair_at(text, text.rfind('='))
}

fn pair_at(text: &str, equals: Option<usize>) -> Result<(String, String), String> {
    match equals {
        Some(at @ 1..) => Ok((text[..at].to_owned(), text[at + 1..].to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// `name=type`, where the type may hold a `=` in brackets: `t=timestamp[ms, tz=UTC]`.
fn typed_name(text: &str) -> Result<(String, String), String> {
    let before = &text[..text.rfind('[').unwrap_or(text.len())];
    pair_at(text, before.rfind('=').or_else(|| text.rfind('=')))
}

/// `hot` or `cold`.
pub(crate) fn tier(text: &str) -> Result<Tier, String> {
    text.parse()
        .map_err(|_| "the tiers are hot and cold".to_owned())
}

/// Columns and their types, of one value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnTypes(pub(crate) Vec<(String, DataType)>);

/// `name=type,"a name"=type`.
pub(crate) fn column_types(text: &str) -> Result<ColumnTypes, String> {
    let parts = store::split_list(text).into_iter();
    let types = parts.map(|part| {
        let (name, value) = match part.starts_with('"') {
            false => typed_name(part)?,
            true => {
                let said = |error: Error| error.message().to_owned();
                let (name, rest) = store::take_name(part, |_| false).map_err(said)?;
                let value = rest.strip_prefix('=').ok_or("write NAME=VALUE")?;
                (name, value.to_owned())
            }
        };
        data_type(&value).map(|data_type| (name, data_type))
    });
    types.collect::<Result<_, _>>().map(ColumnTypes)
}

fn data_type(name: &str) -> Result<DataType, String> {
    type_of_name(name)
        .ok_or_else(|| format!("no type is named `{name}`; the types are {TYPE_NAMES}"))
}

#[cfg(test)]
mod tests {
    use tersecades::prelude::TimeUnit;

    use super::*;

    #[test]
    fn counts_take_units_and_refuse_nonsense() {
        assert_eq!(count("20_000"), Ok(20_000));
        assert_eq!(count("3M"), Ok(3_000_000));
        for bad in ["", "M", "-1", "1.5M", "1x", "99999999999G"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_take_units_and_open_ends() {
        assert_eq!(byte_range("0:10"), Ok(0..10));
        assert_eq!(byte_range("4KiB:"), Ok(4_096..u64::MAX));
        assert_eq!(byte_range(":1MiB"), Ok(0..1 << 20));
        for bad in ["", "5", "10:5", "a:b", "1:2:3"] {
            assert!(byte_range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1.5s", "9999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_take_types() {
        let text = r#"a=b=int64,d=decimal(9, 2),"x,""y"=binary,a[0]=int8,t=timestamp[ms],
            u=timestamp[us, tz=UTC],"v"=Timestamp(ns, "+02:00"),w=timestamp_s"#;
        let time = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
        let types = column_types(text).unwrap();
        let expected = [
            ("a=b", DataType::Int64),
            ("d", DataType::Decimal128(9, 2)),
            ("x,\"y", DataType::Binary),
            ("a[0]", DataType::Int8),
            ("t", time(TimeUnit::Millisecond, None)),
            ("u", time(TimeUnit::Microsecond, Some("UTC"))),
            ("v", time(TimeUnit::Nanosecond, Some("+02:00"))),
            ("w", time(TimeUnit::Second, None)),
        ];
        let expected = expected.map(|(name, data_type)| (name.to_owned(), data_type));
        assert_eq!(types.0, expected);
        for bad in [
            "a",
            "=int64",
            "a=varchar",
            "a=decimal(40,2)",
            "\"a=int64",
            "\"a\"int64",
        ] {
            assert!(column_types(bad).is_err(), "{bad}");
        }
    }
}
