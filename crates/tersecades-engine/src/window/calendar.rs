//! `calendar`: days, weeks, months and years as the clocks of a place show them.
//!
//! A boundary is the first instant at which local clocks show midnight of its date or later. Days
//! on which clocks are put forward or back so have 23 or 25 hours; where clocks skip midnight, the
//! day starts when they go on; where they show it twice, the day starts the first time.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, MappedLocalTime, Offset, TimeZone};
use chrono_tz::Tz;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;

use super::civil::{civil_from_days, days_from_civil};
use super::{Boundaries, Shape, Span, Ticks, Window, WindowKind};

/// What users see of the kind.
pub const KIND: WindowKind = WindowKind {
    name: "calendar",
    arguments: "unit, zone [, offset]",
    summary: "local days, weeks from Monday, months, quarters or years of an IANA time zone",
};

/// The length of calendar windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarUnit {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday, as in ISO 8601.
    Week,
    /// From the first of a month to the next.
    Month,
    /// Three months, from January, April, July or October.
    Quarter,
    /// From the first of January to the next.
    Year,
}

/// Every unit and its name.
pub const CALENDAR_UNITS: &[(&str, CalendarUnit)] = &[
    ("day", CalendarUnit::Day),
    ("week", CalendarUnit::Week),
    ("month", CalendarUnit::Month),
    ("quarter", CalendarUnit::Quarter),
    ("year", CalendarUnit::Year),
];

impl FromStr for CalendarUnit {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let lower = name.to_ascii_lowercase();
        let found = CALENDAR_UNITS.iter().find(|(known, _)| *known == lower);
        found.map(|(_, unit)| *unit).ok_or_else(|| {
            let names: Vec<&str> = CALENDAR_UNITS.iter().map(|(name, _)| *name).collect();
            Error::invalid(format!("unknown calendar unit `{name}`"))
                .hint(format!("known units: {}", names.join(", ")))
        })
    }
}

impl CalendarUnit {
    /// The name users write.
    pub fn name(self) -> &'static str {
        let found = CALENDAR_UNITS.iter().find(|(_, unit)| *unit == self);
        found.map_or("", |(name, _)| *name)
    }

    /// The number of the window that holds `day`, days since the epoch.
    fn number(self, day: i64) -> i64 {
        let month = || {
            let (year, month, _) = civil_from_days(day);
            year * 12 + month - 1
        };
        match self {
            CalendarUnit::Day => day,
            // The epoch was a Thursday.
            CalendarUnit::Week => (day + 3).div_euclid(7),
            CalendarUnit::Month => month(),
            CalendarUnit::Quarter => month().div_euclid(3),
            CalendarUnit::Year => month().div_euclid(12),
        }
    }

    /// The first day of window `number`.
    fn first_day(self, number: i64) -> i64 {
        let month = |month: i64| days_from_civil(month.div_euclid(12), month.rem_euclid(12) + 1, 1);
        match self {
            CalendarUnit::Day => number,
            CalendarUnit::Week => number * 7 - 3,
            CalendarUnit::Month => month(number),
            CalendarUnit::Quarter => month(number * 3),
            CalendarUnit::Year => month(number * 12),
        }
    }
}

/// Windows of a `unit` of the calendar in the time zone `zone`, as `Europe/Berlin`; an offset
/// moves their start to another time of day.
///
/// # Errors
/// `InvalidArgument` for unknown zones.
///
/// # Examples
/// ```
/// use tersecades_engine::window::{CalendarUnit, calendar};
/// assert!(calendar(CalendarUnit::Day, "Europe/Berlin").is_ok());
/// let unknown = calendar(CalendarUnit::Day, "Europe/Berlim").unwrap_err();
/// assert_eq!(unknown.hint_text(), Some("did you mean `Europe/Berlin`?"));
/// ```
pub fn calendar(unit: CalendarUnit, zone: &str) -> Result<Window> {
    let zone = zone.parse().map_err(|_| unknown_zone(zone))?;
    Ok(Shape::Calendar { unit, zone }.into())
}

/// The error that there is no time zone `zone`.
pub(crate) fn unknown_zone(zone: &str) -> Error {
    let error = Error::invalid(format!("unknown time zone `{zone}`"));
    let names = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
    match nearest(zone, &names.collect::<Vec<_>>()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("use a name of the IANA database, as Europe/Berlin or UTC"),
    }
}

/// Seconds of a day without a change of clocks.
const DAY_S: i128 = 86_400;

/// The first and last second whose offset is asked for; beyond, it is that of the last.
const KNOWN_S: i128 = 8_000_000_000_000;

/// Local times lie within this of universal time.
const OFFSET_MAX_S: i128 = 86_400;

/// Calendar windows in ticks; each is its own pane.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    unit: CalendarUnit,
    zone: Tz,
    offset_s: i128,
    ticks_per_second: i128,
}

impl Calendar {
    /// The windows of `unit` in `zone`, which start `offset` after local midnight.
    ///
    /// # Errors
    /// `InvalidArgument` for offsets of no whole number of seconds, or of a day and more.
    pub fn bind(unit: CalendarUnit, zone: Tz, offset: Duration, ticks: Ticks) -> Result<Self> {
        let offset_s = i128::from(offset.as_secs());
        if offset.subsec_nanos() != 0 || offset_s >= DAY_S {
            return Err(Error::invalid(format!(
                "calendar windows cannot start {offset:?} after midnight"
            ))
            .hint("use whole seconds below a day"));
        }
        Ok(Calendar {
            unit,
            zone,
            offset_s,
            ticks_per_second: 1_000_000_000 / i128::from(ticks.tick_ns),
        })
    }

    /// Seconds that local clocks are ahead at `second`.
    fn ahead(&self, second: i128) -> i128 {
        let known = second.clamp(-KNOWN_S, KNOWN_S) as i64;
        let utc = DateTime::from_timestamp(known, 0).unwrap_or_default();
        let offset = self.zone.offset_from_utc_datetime(&utc.naive_utc());
        i128::from(offset.fix().local_minus_utc())
    }

    /// The first second at which local clocks show `local` or later.
    fn instant(&self, local: i128) -> i128 {
        let known = local.clamp(-KNOWN_S, KNOWN_S);
        let naive = DateTime::from_timestamp(known as i64, 0).unwrap_or_default();
        let ahead = |offset: &<Tz as TimeZone>::Offset| i128::from(offset.fix().local_minus_utc());
        match self.zone.offset_from_local_datetime(&naive.naive_utc()) {
            MappedLocalTime::Single(offset) => local - ahead(&offset),
            MappedLocalTime::Ambiguous(a, b) => local - ahead(&a).max(ahead(&b)),
            MappedLocalTime::None => {
                // Clocks jump over `local` once between these.
                let (mut before, mut after) = (local - OFFSET_MAX_S, local + OFFSET_MAX_S);
                while before + 1 < after {
                    let middle = (before + after).div_euclid(2);
                    match middle + self.ahead(middle) < local {
                        true => before = middle,
                        false => after = middle,
                    }
                }
                after
            }
        }
    }

    /// The second at which window `number` starts.
    fn start(&self, number: i64) -> i128 {
        self.instant(i128::from(self.unit.first_day(number)) * DAY_S + self.offset_s)
    }
}

impl Boundaries for Calendar {
    fn pane(&self, time: i64) -> Span {
        let second = i128::from(time).div_euclid(self.ticks_per_second);
        let local = second + self.ahead(second) - self.offset_s;
        let mut number = self.unit.number(local.div_euclid(DAY_S) as i64);
        let (mut start, mut end) = (self.start(number), self.start(number + 1));
        // Local dates repeat where clocks are put back over midnight.
        while start > second {
            number -= 1;
            (start, end) = (self.start(number), start);
        }
        while end <= second {
            number += 1;
            (start, end) = (end, self.start(number + 1));
        }
        Span {
            start: start * self.ticks_per_second,
            end: end * self.ticks_per_second,
        }
    }

    fn ending_after(&self, time: i64) -> Span {
        self.pane(time)
    }

    fn last_end(&self, time: i64) -> i128 {
        self.pane(time).start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(unit: CalendarUnit, zone: &str, offset_s: u64) -> Calendar {
        let ticks = Ticks {
            tick_ns: 1_000_000_000,
        };
        let zone = zone.parse().unwrap();
        Calendar::bind(unit, zone, Duration::from_secs(offset_s), ticks).unwrap()
    }

    fn second(utc: &str) -> i64 {
        DateTime::parse_from_rfc3339(utc).unwrap().timestamp()
    }

    /// Start and end of the window that holds `utc`.
    fn window(unit: CalendarUnit, zone: &str, utc: &str) -> (String, String) {
        let span = bound(unit, zone, 0).pane(second(utc));
        let text = |second: i128| {
            let time = DateTime::from_timestamp(second as i64, 0).unwrap();
            time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
        };
        (text(span.start), text(span.end))
    }

    #[test]
    fn days_are_as_long_as_clocks_make_them() {
        // Clocks put forward and back, no midnight, midnight twice, a date left out, weeks, months.
        let cases = "
            day Europe/Berlin 2024-03-31T12:00:00Z 2024-03-30T23:00:00Z 2024-03-31T22:00:00Z
            day Europe/Berlin 2024-10-27T22:59:59Z 2024-10-26T22:00:00Z 2024-10-27T23:00:00Z
            day America/Sao_Paulo 2018-11-04T12:00:00Z 2018-11-04T03:00:00Z 2018-11-05T02:00:00Z
            day America/St_Johns 2010-11-07T03:00:00Z 2010-11-07T02:30:00Z 2010-11-08T03:30:00Z
            day Pacific/Apia 2011-12-30T09:59:59Z 2011-12-29T10:00:00Z 2011-12-30T10:00:00Z
            day Pacific/Apia 2011-12-30T10:00:00Z 2011-12-30T10:00:00Z 2011-12-31T10:00:00Z
            week UTC 1970-01-01T00:00:00Z 1969-12-29T00:00:00Z 1970-01-05T00:00:00Z
            week America/New_York 2024-03-10T12:00:00Z 2024-03-04T05:00:00Z 2024-03-11T04:00:00Z
            month Asia/Kolkata 2024-02-29T12:00:00Z 2024-01-31T18:30:00Z 2024-02-29T18:30:00Z
            quarter UTC 2024-05-05T12:00:00Z 2024-04-01T00:00:00Z 2024-07-01T00:00:00Z
            year UTC 0000-06-01T00:00:00Z 0000-01-01T00:00:00Z 0001-01-01T00:00:00Z";
        for case in cases.lines().skip(1) {
            let parts: Vec<&str> = case.split_whitespace().collect();
            let found = window(parts[0].parse().unwrap(), parts[1], parts[2]);
            assert_eq!((&*found.0, &*found.1), (parts[3], parts[4]), "{case}");
        }
    }

    #[test]
    fn every_time_has_a_window_and_windows_touch() {
        for (_, unit) in CALENDAR_UNITS {
            for zone in ["America/St_Johns", "Pacific/Apia", "Africa/Monrovia", "UTC"] {
                let calendar = bound(*unit, zone, 6 * 3_600);
                for step in 0..3_000i64 {
                    let time = step * 1_000_003 - 1_500_000_000;
                    let span = calendar.pane(time);
                    assert!(span.holds(time), "{unit:?} {zone} {time}");
                    assert_eq!(calendar.pane(span.end as i64).start, span.end);
                    assert_eq!(calendar.last_end(time), span.start);
                }
                for time in [i64::MIN, i64::MAX] {
                    assert!(calendar.pane(time).holds(time), "{unit:?} {zone} {time}");
                }
            }
        }
    }
}
