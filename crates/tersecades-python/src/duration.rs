//! Lengths of time and of memory as users write them: `"10s"`, `timedelta(seconds=10)`, `"4GiB"`.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyString};

use crate::error::invalid;

const DURATION_HINT: &str = "write it as \"250ms\", \"10s\", \"5m\", \"1h\", \"7d\", \
                             \"1h30m\", or as a datetime.timedelta";

const BYTES_HINT: &str = "write it as a number of bytes or as \"512MiB\", \"4GiB\"";

/// A length of time that was given as text or as a `timedelta`.
pub(crate) struct Length(pub(crate) Duration);

impl<'py> FromPyObject<'_, 'py> for Length {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_cow()?;
            let refused = || invalid(format!("`{text}` is no duration"), DURATION_HINT);
            return Ok(Length(parse_duration(&text).ok_or_else(refused)?));
        }
        if object.cast::<PyDelta>().is_ok() {
            let negative = || invalid("a duration is below zero", DURATION_HINT);
            return object.extract().map(Length).map_err(|_| negative());
        }
        let class = object.get_type();
        Err(invalid(format!("{class} is no duration"), DURATION_HINT))
    }
}

/// `1h30m` and the like: whole or decimal numbers, each with its unit.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut nanos: u128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')?;
        let (number, tail) = rest.split_at(digits);
        let tail = tail.trim_start();
        let end = tail
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        nanos = nanos.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        rest = tail.trim_start();
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        "w" | "week" | "weeks" => 604_800_000_000_000,
        _ => return None,
    })
}

/// `number` times `unit`, when it is whole.
fn scaled(number: &str, unit: u128) -> Option<u128> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let parsed = |digits: &str| match digits {
        "" => Some(0),
        digits => digits.parse::<u128>().ok(),
    };
    let tens = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = parsed(fraction)?.checked_mul(unit)?;
    let whole = parsed(whole)?.checked_mul(unit)?;
    part.is_multiple_of(tens).then_some(whole + part / tens)
}

/// A number of bytes that was given as a number or as text.
pub(crate) struct Bytes(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = object.cast::<PyString>() else {
            let refused = |_| invalid("this is no number of bytes", BYTES_HINT);
            return object.extract().map(Bytes).map_err(refused);
        };
        let text = text.to_cow()?;
        let refused = || invalid(format!("`{text}` is no number of bytes"), BYTES_HINT);
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit: u128 = match unit.trim() {
            "" | "B" => 1,
            "KiB" | "k" | "K" => 1 << 10,
            "MiB" | "M" => 1 << 20,
            "GiB" | "G" => 1 << 30,
            "TiB" | "T" => 1 << 40,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            _ => return Err(refused()),
        };
        let bytes = scaled(number, unit).and_then(|bytes| usize::try_from(bytes).ok());
        bytes.map(Bytes).ok_or_else(refused)
    }
}
