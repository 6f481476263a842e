//! Times as nanoseconds since 1970, by the clock of UTC and by that of their zone.

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::types::{Int32Type, Int64Type, IntervalMonthDayNano};
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, Months, NaiveDate, Offset, TimeZone};
use datafusion_common::{Result, exec_err};

/// A second in nanoseconds.
pub(super) const SECOND: i128 = 1_000_000_000;
/// A day in nanoseconds.
pub(super) const DAY: i128 = 86_400 * SECOND;

/// The nanoseconds of a tick of `unit`.
pub(super) fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Nanoseconds since 1970 of UTC; of a time without a zone the same as `local`.
    pub(super) instant: i128,
    /// Nanoseconds since 1970 by the clock of its zone.
    pub(super) local: i128,
}

/// The times of an array.
pub(super) struct Times {
    ticks: Int64Array,
    tick: i128,
    zone: Option<Tz>,
}

impl Times {
    /// The times of `array`.
    ///
    /// # Errors
    /// For arrays of something else.
    pub(super) fn of(array: &ArrayRef) -> Result<Self> {
        let (tick, zone) = match array.data_type() {
            DataType::Timestamp(unit, zone) => (nanoseconds(*unit), zone.as_deref()),
            DataType::Date32 => (DAY, None),
            other => return exec_err!("{other} is no time"),
        };
        let zone = match zone {
            Some(zone) => Some(zone.parse()?),
            None => None,
        };
        let ticks = match array.data_type() {
            DataType::Date32 => arrow_cast::cast(array, &DataType::Int32)?,
            _ => arrow_cast::cast(array, &DataType::Int64)?,
        };
        let ticks = match ticks.as_primitive_opt::<Int32Type>() {
            Some(days) => days.unary(i64::from),
            None => ticks.as_primitive::<Int64Type>().clone(),
        };
        Ok(Times { ticks, tick, zone })
    }

    /// The time of `row`; `None` where it is null or its zone has no such year.
    pub(super) fn get(&self, row: usize) -> Option<Moment> {
        let tick = self.ticks.is_valid(row).then(|| self.ticks.value(row))?;
        let instant = i128::from(tick) * self.tick;
        let ahead = match &self.zone {
            Some(zone) => seconds_ahead(instant, *zone)?,
            None => 0,
        };
        let local = instant + i128::from(ahead) * SECOND;
        Some(Moment { instant, local })
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<Moment>> + '_ {
        (0..self.ticks.len()).map(|row| self.get(row))
    }
}

fn seconds_ahead(instant: i128, zone: Tz) -> Option<i32> {
    let seconds = i64::try_from(instant.div_euclid(SECOND)).ok()?;
    let utc = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    Some(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
}

/// The date of `local` nanoseconds; `None` in no year of the calendar.
pub(super) fn date_of(local: i128) -> Option<NaiveDate> {
    let days = i32::try_from(local.div_euclid(DAY)).ok()?;
    NaiveDate::from_epoch_days(days)
}

/// The nanoseconds of the begin of a date.
pub(super) fn begin_of(date: NaiveDate) -> i128 {
    i128::from(date.to_epoch_days()) * DAY
}

/// `local` nanoseconds that much later; the last day of a month where it has too few days.
pub(super) fn later(local: i128, by: IntervalMonthDayNano) -> Option<i128> {
    let shift = i128::from(by.days) * DAY + i128::from(by.nanoseconds);
    if by.months == 0 {
        return Some(local + shift);
    }
    let date = date_of(local)?;
    let months = Months::new(by.months.unsigned_abs());
    let moved = match by.months > 0 {
        true => date.checked_add_months(months)?,
        false => date.checked_sub_months(months)?,
    };
    Some(begin_of(moved) + local.rem_euclid(DAY) + shift)
}
