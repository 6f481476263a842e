//! Casts of times, where those of Arrow cut towards 1970 or fail at a change of clocks.
//!
//! ```text
//! 1969-12-31 23:59:59.5 in seconds         ─▶ 1969-12-31 23:59:59, the second that it is in
//! 2024-10-27 02:30, twice in Europe/Berlin ─▶ 01:30 UTC, the second
//! 2024-03-31 02:30, never in Europe/Berlin ─▶ 01:30 UTC, by the clock before the change
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use chrono::{DateTime, MappedLocalTime, Offset, TimeDelta, TimeZone};

use super::arithmetic::cast_exactly;
use super::literal::with_seconds;

type Result<T> = std::result::Result<T, ArrowError>;

/// The times of `array` as those of the type `to`, which are of a zone where local ones are not.
///
/// # Errors
/// `CastError` for times that the type does not hold, and what Arrow says of other types.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, TimestampMillisecondArray, TimestampSecondArray};
/// use arrow_schema::{DataType, TimeUnit};
/// use tersecades_engine::expression::cast_time;
///
/// let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_500, -500]));
/// let seconds = cast_time(&times, &DataType::Timestamp(TimeUnit::Second, None))?;
/// assert_eq!(*seconds, TimestampSecondArray::from(vec![1, -1]));
/// # Ok::<(), arrow_schema::ArrowError>(())
/// ```
pub fn cast_time(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType::Timestamp;
    match (array.data_type(), to) {
        (Timestamp(unit, None), Timestamp(_, Some(zone))) if **zone != *"UTC" => {
            let instants = instants(array, *unit, zone.parse()?)?;
            let own = cast_exactly(&instants, &Timestamp(*unit, Some(Arc::clone(zone))))?;
            cast_time(&own, to)
        }
        (Timestamp(from, _), Timestamp(unit, zone)) if from > unit => {
            let factor = per_second(*from) / per_second(*unit);
            let ticks: Int64Array = ticks(array)?.unary(|tick| tick.div_euclid(factor));
            let coarser: ArrayRef = Arc::new(ticks);
            cast_exactly(&coarser, &Timestamp(*unit, zone.clone()))
        }
        (DataType::Utf8, Timestamp(..) | DataType::Date32) => {
            match texts_with_seconds(array.as_string()) {
                Some(whole) => cast_exactly(&(Arc::new(whole) as ArrayRef), to),
                None => cast_exactly(array, to),
            }
        }
        _ => cast_exactly(array, to),
    }
}

/// Times in texts [with seconds](with_seconds); `None` where none lacks them.
pub fn texts_with_seconds(texts: &StringArray) -> Option<StringArray> {
    let mut known = texts.iter().flatten();
    known.find_map(with_seconds)?;
    let whole = |text| with_seconds(text).map_or(Cow::Borrowed(text), Cow::Owned);
    Some(texts.iter().map(|text| text.map(whole)).collect())
}

fn ticks(array: &ArrayRef) -> Result<Int64Array> {
    let ticks = cast_exactly(array, &DataType::Int64)?;
    Ok(ticks.as_primitive::<Int64Type>().clone())
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The ticks of local times of `zone` as those of UTC.
fn instants(array: &ArrayRef, unit: TimeUnit, zone: Tz) -> Result<ArrayRef> {
    let per_second = per_second(unit);
    let instant = |tick: i64| {
        let offset = offset_at(tick.div_euclid(per_second), zone);
        let instant = offset.and_then(|offset| tick.checked_sub(offset * per_second));
        instant.ok_or_else(|| {
            ArrowError::CastError(format!("the time {tick} is in no year of the calendar"))
        })
    };
    Ok(Arc::new(
        ticks(array)?.try_unary::<_, Int64Type, _>(instant)?,
    ))
}

/// By how many seconds the clocks of `zone` are ahead of UTC where they show the second `local`
/// since 1970: of a time that there is twice by the later clock, of one that there is not by the
/// clock before the change.
pub(crate) fn offset_at(local: i64, zone: Tz) -> Option<i64> {
    let local = DateTime::from_timestamp(local, 0)?.naive_utc();
    let offset = match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(_, offset) => offset,
        // No zone leaves out more than a day, or is further than one from UTC.
        MappedLocalTime::None => {
            zone.offset_from_utc_datetime(&local.checked_sub_signed(TimeDelta::days(2))?)
        }
    };
    Some(offset.fix().local_minus_utc().into())
}

#[cfg(test)]
mod tests {
    use arrow_array::types::TimestampSecondType;
    use arrow_array::{PrimitiveArray, TimestampSecondArray};
    use chrono::NaiveDateTime;

    use super::*;

    fn berlin(local: &str) -> String {
        let local: NaiveDateTime = local.parse().unwrap();
        let array: ArrayRef = Arc::new(TimestampSecondArray::from(vec![
            local.and_utc().timestamp(),
        ]));
        let to = DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into()));
        let cast = cast_time(&array, &to).unwrap();
        let cast: &PrimitiveArray<TimestampSecondType> = cast.as_primitive();
        cast.value_as_datetime(0).unwrap().to_string()
    }

    #[test]
    fn local_times_at_changes_of_clocks_are_times() {
        assert_eq!(berlin("2024-03-31T01:59:59"), "2024-03-31 00:59:59");
        assert_eq!(berlin("2024-03-31T02:30:00"), "2024-03-31 01:30:00");
        assert_eq!(berlin("2024-03-31T03:00:00"), "2024-03-31 01:00:00");
        assert_eq!(berlin("2024-10-27T01:30:00"), "2024-10-26 23:30:00");
        assert_eq!(berlin("2024-10-27T02:30:00"), "2024-10-27 01:30:00");
        assert_eq!(berlin("2024-10-27T03:30:00"), "2024-10-27 02:30:00");
    }

    #[test]
    fn times_that_no_type_holds_are_errors() {
        let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        for unit in [TimeUnit::Second, TimeUnit::Nanosecond] {
            let to = DataType::Timestamp(unit, Some("Europe/Berlin".into()));
            assert!(cast_time(&far, &to).is_err());
        }
    }
}
