//! Timestamps from calendar parts and from numbers; what names no time is null.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray, TimestampSecondArray};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::error::Result;

use super::compute::Operand;

/// Years beyond this, either way, are null.
const YEAR_LIMIT: i64 = 262_142;

/// Least value of month, day, hour, minute and second, for parts that are not given.
const LEAST: [i64; 6] = [1970, 1, 1, 0, 0, 0];

/// Timestamps in seconds from year, month, day, hour, minute, second.
pub(super) fn make_timestamp(parts: &[Operand], rows: usize) -> Result<Operand> {
    let mut columns: Vec<(ArrayRef, bool)> = Vec::with_capacity(parts.len());
    for part in parts {
        columns.push((cast(part.array.as_ref(), &DataType::Int64)?, part.scalar));
    }
    let columns: Vec<(&Int64Array, bool)> = columns
        .iter()
        .map(|(array, scalar)| (array.as_primitive(), *scalar))
        .collect();
    let seconds = |row: usize| {
        let mut fields = LEAST;
        for (field, (array, scalar)) in fields.iter_mut().zip(&columns) {
            let index = if *scalar { 0 } else { row };
            *field = array.is_valid(index).then(|| array.value(index))?;
        }
        seconds_of(fields)
    };
    let scalar = columns.iter().all(|(_, scalar)| *scalar);
    let rows = if scalar { 1 } else { rows };
    let array: TimestampSecondArray = (0..rows).map(seconds).collect();
    Ok(Operand {
        array: Arc::new(array),
        scalar,
    })
}

/// Seconds since 1970-01-01 of year, month, day, hour, minute and second of the proleptic
/// Gregorian calendar; `None` for a date or a time that there is not.
///
/// # Examples
/// ```
/// use tersecades_engine::expression::seconds_of;
///
/// assert_eq!(seconds_of([1970, 1, 2, 0, 0, 5]), Some(86_405));
/// assert_eq!(seconds_of([2023, 2, 29, 0, 0, 0]), None);
/// ```
///
/// # Source
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
pub fn seconds_of([year, month, day, hour, minute, second]: [i64; 6]) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    let date = (-YEAR_LIMIT..=YEAR_LIMIT).contains(&year)
        && (1..=12).contains(&month)
        && (1..=month_days).contains(&day);
    let clock = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    if !date || !clock {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Timestamps from numbers of `unit`s since the epoch: of one with a fraction, the unit that it is
/// in, before 1970 too.
pub(super) fn epoch_time(input: &Operand, unit: TimeUnit) -> Result<Operand> {
    let ticks: ArrayRef = if input.array.data_type().is_floating() {
        let floats = cast(input.array.as_ref(), &DataType::Float64)?;
        let limit = 2f64.powi(63);
        let floats = floats.as_primitive::<Float64Type>();
        Arc::new(floats.unary_opt::<_, Int64Type>(|value| {
            let whole = value.floor();
            // In range by the test, so the conversion is exact.
            (-limit <= whole && whole < limit).then_some(whole as i64)
        }))
    } else {
        cast(input.array.as_ref(), &DataType::Int64)?
    };
    let ticks = ticks.as_primitive::<Int64Type>();
    Ok(input.with(match unit {
        TimeUnit::Second => timestamps::<TimestampSecondType>(ticks),
        TimeUnit::Millisecond => timestamps::<TimestampMillisecondType>(ticks),
        TimeUnit::Microsecond => timestamps::<TimestampMicrosecondType>(ticks),
        TimeUnit::Nanosecond => timestamps::<TimestampNanosecondType>(ticks),
    }))
}

fn timestamps<T>(ticks: &Int64Array) -> ArrayRef
where
    T: arrow_array::ArrowPrimitiveType<Native = i64>,
{
    Arc::new(PrimitiveArray::<T>::new(
        ticks.values().clone(),
        ticks.nulls().cloned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_parts_agree_with_iso_text() {
        for (parts, text) in [
            ([1970, 1, 1, 0, 0, 0], "1970-01-01T00:00:00Z"),
            ([2013, 1, 1, 23, 59, 59], "2013-01-01T23:59:59Z"),
            ([2000, 2, 29, 1, 2, 3], "2000-02-29T01:02:03Z"),
            ([1899, 12, 31, 12, 0, 0], "1899-12-31T12:00:00Z"),
        ] {
            let utc: arrow_array::timezone::Tz = "+00:00".parse().unwrap();
            let time = arrow_cast::parse::string_to_datetime(&utc, text).unwrap();
            assert_eq!(seconds_of(parts), Some(time.timestamp()), "{text}");
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_null() {
        for parts in [
            [2013, 2, 29, 0, 0, 0],
            [1900, 2, 29, 0, 0, 0],
            [2013, 13, 1, 0, 0, 0],
            [2013, 4, 31, 0, 0, 0],
            [2013, 1, 0, 0, 0, 0],
            [2013, 1, 1, 24, 0, 0],
            [2013, 1, 1, 0, -1, 0],
            [2013, 1, 1, 0, 0, 60],
            [i64::MAX, 1, 1, 0, 0, 0],
        ] {
            assert_eq!(seconds_of(parts), None, "{parts:?}");
        }
    }
}
