//! Times as text: ISO 8601 by hand, because it is the hot path, and strftime patterns by chrono.
//!
//! ```text
//! 2013-01-01 | 2013-01-01T10:00[:00[.123456789]] [Z | +HH | +HHMM | +HH:MM]   (T or one blank)
//! ```
//! A time becomes seconds since 1970 and nanoseconds; scaling to the unit of a column refuses to
//! drop digits.

use std::fmt::Write as _;

use arrow_array::timezone::Tz;
use arrow_schema::TimeUnit;
use chrono::format::{Fixed, Item, Numeric, Parsed, StrftimeItems, parse, parse_and_remainder};
use chrono::{DateTime, NaiveDateTime, NaiveTime};
use tersecades_columnar::error::{Error, Result};

use crate::expression::offset_at;

/// A point in time as the text gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Whole seconds since 1970-01-01, of UTC when `zoned`, else of the local clock.
    pub seconds: i64,
    /// Nanoseconds past that second.
    pub nanoseconds: u32,
    /// Whether the text names its offset from UTC.
    pub zoned: bool,
    /// Whether the text is a date alone.
    pub date_only: bool,
}

impl Moment {
    /// The moment in UTC, of a local clock that is one of `zone`; `None` beyond the calendar.
    pub fn in_zone(self, zone: Tz) -> Option<Moment> {
        let ahead = match self.zoned {
            true => 0,
            false => offset_at(self.seconds, zone)?,
        };
        Some(Moment {
            seconds: self.seconds - ahead,
            zoned: true,
            ..self
        })
    }

    /// The moment in whole `unit`s, or `None` if it would overflow or lose digits.
    pub fn scale(&self, unit: TimeUnit) -> Option<i64> {
        let nanoseconds = i64::from(self.nanoseconds);
        let (per_second, nanoseconds_per_unit) = match unit {
            TimeUnit::Second => (1, 1_000_000_000),
            TimeUnit::Millisecond => (1_000, 1_000_000),
            TimeUnit::Microsecond => (1_000_000, 1_000),
            TimeUnit::Nanosecond => (1_000_000_000, 1),
        };
        if nanoseconds % nanoseconds_per_unit != 0 {
            return None;
        }
        let whole = self.seconds.checked_mul(per_second)?;
        whole.checked_add(nanoseconds / nanoseconds_per_unit)
    }
}

/// Reads an ISO 8601 date or date and time.
pub fn parse_iso(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    let days = parse_date(bytes.get(..10)?)?;
    let midnight = days * 86_400;
    let Some((separator, clock)) = bytes.get(10..)?.split_first() else {
        return Some(Moment {
            seconds: midnight,
            nanoseconds: 0,
            zoned: false,
            date_only: true,
        });
    };
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let (seconds_of_day, rest) = parse_clock(clock)?;
    let (nanoseconds, rest) = parse_fraction(rest)?;
    let offset = parse_offset(rest)?;
    Some(Moment {
        seconds: midnight + seconds_of_day - offset.unwrap_or(0),
        nanoseconds,
        zoned: offset.is_some(),
        date_only: false,
    })
}

/// Days since 1970-01-01 of `YYYY-MM-DD` (proleptic Gregorian).
///
/// # Source
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn parse_date(text: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return None;
    };
    let year = i64::from(digits(&[*y1, *y2, *y3, *y4])?);
    let (month, day) = (digits(&[*m1, *m2])?, digits(&[*d1, *d2])?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if day == 0 || day > month_days {
        return None;
    }
    let (month, day) = (i64::from(month), i64::from(day));
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// `HH:MM[:SS]` as seconds, and what follows it.
fn parse_clock(text: &[u8]) -> Option<(i64, &[u8])> {
    let [h1, h2, b':', m1, m2, rest @ ..] = text else {
        return None;
    };
    let (hour, minute) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    let (second, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (digits(&[*s1, *s2])?, rest),
        _ => (0, rest),
    };
    let valid = hour < 24 && minute < 60 && second < 60;
    valid.then_some((i64::from(hour * 3600 + minute * 60 + second), rest))
}

/// `.123` as nanoseconds, and what follows it; digits past the ninth must be zeros.
fn parse_fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else {
        return Some((0, text));
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, rest) = rest.split_at_checked(length)?;
    let mut nanoseconds = 0;
    for place in 0..9 {
        let digit = fraction.get(place).copied().unwrap_or(b'0');
        nanoseconds = nanoseconds * 10 + u32::from(digit - b'0');
    }
    let exact = fraction.iter().skip(9).all(|&digit| digit == b'0');
    (length > 0 && exact).then_some((nanoseconds, rest))
}

/// `Z`, `+HH`, `+HHMM` or `+HH:MM` as seconds east of UTC; `Some(None)` for nothing at all.
fn parse_offset(text: &[u8]) -> Option<Option<i64>> {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let (sign, rest) = match text {
        [] => return Some(None),
        [b'Z' | b'z'] => return Some(Some(0)),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [h1, h2] => (digits(&[*h1, *h2])?, 0),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?),
        _ => return None,
    };
    let valid = hours < 24 && minutes < 60;
    valid.then_some(Some(sign * i64::from(hours * 3600 + minutes * 60)))
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u32::from(byte - b'0'))
    })
}

/// A strftime pattern, taken apart once.
#[derive(Debug, Clone)]
pub struct TimePattern {
    /// What stands before each `%Z` and behind the last.
    parts: Vec<Vec<Item<'static>>>,
    /// Whether the pattern reads an offset from UTC.
    pub zoned: bool,
}

impl TimePattern {
    /// Takes `pattern` apart.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not a strftime pattern, or reads too little to tell a time.
    pub fn new(pattern: &str) -> Result<Self> {
        let wrong = || Error::invalid(format!("`{pattern}` is not a timestamp format"));
        // As Python and C have it: digits behind a point. `%f` of chrono counts nanoseconds.
        let known = pattern.replace(".%f", "%.f");
        let items = StrftimeItems::new(&known)
            .parse_to_owned()
            .map_err(|_| wrong().hint("use strftime letters, for example %d/%m/%Y %H:%M:%S"))?;
        let is_count = |item: &Item<'_>| matches!(item, Item::Numeric(Numeric::Nanosecond, _));
        if items.iter().any(is_count) {
            return Err(
                wrong().hint("%f stands behind a point; %3f, %6f and %9f are digits without")
            );
        }
        if !tells_moment(&items) {
            return Err(wrong().hint(
                "a time has a year, a month and a day, and an hour where it has minutes, for \
                 example %d/%m/%Y %H:%M",
            ));
        }
        let zoned = items.iter().any(|item| match item {
            Item::Fixed(
                Fixed::TimezoneName
                | Fixed::RFC2822
                | Fixed::RFC3339
                | Fixed::TimezoneOffset
                | Fixed::TimezoneOffsetColon
                | Fixed::TimezoneOffsetDoubleColon
                | Fixed::TimezoneOffsetTripleColon
                | Fixed::TimezoneOffsetColonZ
                | Fixed::TimezoneOffsetZ,
            ) => true,
            Item::Numeric(numeric, _) => *numeric == Numeric::Timestamp,
            _ => false,
        });
        let is_zone = |item: &Item<'_>| matches!(item, Item::Fixed(Fixed::TimezoneName));
        let parts = items.split(is_zone).map(<[Item<'_>]>::to_vec).collect();
        Ok(TimePattern { parts, zoned })
    }

    /// Whether the pattern reads the name of a zone, which is that of UTC.
    pub fn names_zone(&self) -> bool {
        self.parts.len() > 1
    }

    /// Reads `text` by the pattern; a missing time of day is midnight, missing minutes are none.
    pub fn parse(&self, text: &str) -> Option<Moment> {
        let (mut parsed, mut rest) = (Parsed::new(), text);
        for (index, items) in self.parts.iter().enumerate() {
            if index > 0 {
                rest = behind_zone(rest)?;
            }
            rest = parse_and_remainder(&mut parsed, rest, items.iter()).ok()?;
        }
        if !rest.is_empty() {
            return None;
        }
        let offset = parsed.offset().unwrap_or(0);
        let utc = resolve(&mut parsed, offset)?.and_utc();
        Some(Moment {
            seconds: utc.timestamp() - i64::from(offset),
            nanoseconds: utc.timestamp_subsec_nanos().min(999_999_999),
            zoned: self.zoned,
            date_only: false,
        })
    }
}

/// What stands behind a name of UTC; `None` where another zone is named.
fn behind_zone(text: &str) -> Option<&str> {
    let mut names = ["UTC", "GMT", "Z"].into_iter();
    let rest = names.find_map(|name| text.strip_prefix(name))?;
    (!rest.starts_with(|next: char| next.is_alphanumeric())).then_some(rest)
}

/// What was parsed as a time of the clock that is `offset` seconds ahead of UTC.
fn resolve(parsed: &mut Parsed, offset: i32) -> Option<NaiveDateTime> {
    let finer = [parsed.minute(), parsed.second(), parsed.nanosecond()];
    let is_coarse = finer.iter().all(Option::is_none);
    let has_hour = parsed.hour_mod_12().is_some();
    if is_coarse && has_hour {
        parsed.set_minute(0).ok()?;
    }
    match parsed.to_naive_datetime_with_offset(offset) {
        Ok(local) => Some(local),
        Err(_) if is_coarse && !has_hour => {
            let date = parsed.to_naive_date().ok()?;
            Some(date.and_time(NaiveTime::MIN))
        }
        Err(_) => None,
    }
}

/// 2013-11-12 10:11:12, all of whose parts have two digits.
const SAMPLE_SECONDS: i64 = 1_384_251_072;

/// Whether a text of these parts tells which moment it is.
fn tells_moment(items: &[Item<'static>]) -> bool {
    // Offsets, some of which are written otherwise than read, and digits of a second tell no more.
    let is_written = |item: &&Item<'_>| {
        use Fixed::{
            Internal, TimezoneName, TimezoneOffset, TimezoneOffsetColon, TimezoneOffsetColonZ,
            TimezoneOffsetDoubleColon, TimezoneOffsetTripleColon, TimezoneOffsetZ,
        };
        let Item::Fixed(fixed) = item else {
            return true;
        };
        !matches!(
            fixed,
            Internal(_)
                | TimezoneName
                | TimezoneOffset
                | TimezoneOffsetColon
                | TimezoneOffsetColonZ
                | TimezoneOffsetDoubleColon
                | TimezoneOffsetTripleColon
                | TimezoneOffsetZ
        )
    };
    let items = items.iter().filter(is_written);
    let sample = DateTime::from_timestamp(SAMPLE_SECONDS, 0).unwrap_or_default();
    let (mut text, mut parsed) = (String::new(), Parsed::new());
    let written = write!(text, "{}", sample.format_with_items(items.clone()));
    let is_read = written.is_ok() && parse(&mut parsed, &text, items).is_ok();
    is_read && resolve(&mut parsed, 0).is_some()
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;

    fn micros(text: &str) -> Option<i64> {
        parse_iso(text).and_then(|moment| moment.scale(TimeUnit::Microsecond))
    }

    #[test]
    fn iso_forms_agree_with_chrono() {
        let reference = |text: &str| {
            chrono::DateTime::parse_from_rfc3339(text)
                .map(|time| time.timestamp_micros())
                .unwrap()
        };
        for (text, rfc) in [
            ("2013-01-01", "2013-01-01T00:00:00Z"),
            ("2013-01-01T10:00", "2013-01-01T10:00:00Z"),
            ("2016-02-29 23:59:59.5", "2016-02-29T23:59:59.5Z"),
            ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
            ("1900-03-01 00:00:00", "1900-03-01T00:00:00Z"),
            ("2000-02-29T12:00:00+05:30", "2000-02-29T12:00:00+05:30"),
            ("2023-11-16 18:17:03.9799600", "2023-11-16T18:17:03.97996Z"),
            ("2024-06-30 12:00:00 -0700", "2024-06-30T12:00:00-07:00"),
            ("0000-03-01T00:00:00+02", "0000-03-01T00:00:00+02:00"),
        ] {
            assert_eq!(micros(text), Some(reference(rfc)), "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_agrees_with_chrono() {
        let mut date = NaiveDate::from_ymd_opt(1890, 1, 1).unwrap();
        while date < NaiveDate::from_ymd_opt(2290, 1, 2).unwrap() {
            let text = date.format("%Y-%m-%d").to_string();
            let expected = date.and_time(NaiveTime::MIN).and_utc().timestamp();
            assert_eq!(
                parse_iso(&text).map(|moment| moment.seconds),
                Some(expected),
                "{text}"
            );
            date = date.succ_opt().unwrap();
        }
    }

    #[test]
    fn wrong_times_are_refused() {
        for text in [
            "",
            "2013",
            "2013-1-1",
            "2013-02-29",
            "2013-13-01",
            "2013-00-10",
            "2013-01-01X10:00",
            "2013-01-01 24:00",
            "2013-01-01 10:60",
            "2013-01-01 10",
            "2013-01-01 10:00:00.",
            "2013-01-01 10:00:00+1",
            "2013-01-01 10:00:00+25:00",
            "2013-01-01 10:00:00 noon",
            "2013-01-01T10:00:00.0000000001",
            "２013-01-01",
            "2013-01-0é",
        ] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }

    #[test]
    fn scaling_never_drops_digits() {
        let moment = parse_iso("2013-01-01T00:00:00.0000015").unwrap();
        assert_eq!(moment.scale(TimeUnit::Microsecond), None);
        assert_eq!(
            moment.scale(TimeUnit::Nanosecond),
            Some(1_356_998_400_000_001_500)
        );
        let far = parse_iso("9999-01-01").unwrap();
        assert_eq!(far.scale(TimeUnit::Nanosecond), None);
        assert!(far.scale(TimeUnit::Microsecond).is_some());
    }

    #[test]
    fn patterns_read_what_iso_does_not() {
        let seconds = |pattern: &str, text: &str| {
            TimePattern::new(pattern)
                .unwrap()
                .parse(text)
                .map(|moment| moment.seconds)
        };
        let nine = Some(1_356_998_400 + 9 * 3600);
        assert_eq!(seconds("%d/%m/%Y %H:%M", "01/01/2013 09:00"), nine);
        assert_eq!(seconds("%d/%m/%Y", "01/01/2013"), Some(1_356_998_400));
        assert_eq!(seconds("%Y.%m.%d_%H.%M.%S", "2013.01.01_09.00.00"), nine);
        assert_eq!(
            seconds("%d %b %Y %H:%M %z", "01 Jan 2013 10:00 +0100"),
            nine
        );
        assert_eq!(seconds("%s", "1357030800"), nine);
        assert_eq!(seconds("%d/%m/%Y", "13/13/2013"), None);
        assert_eq!(seconds("%d/%m/%Y", "2013-01-01"), None);
        let nanoseconds = |pattern: &str, text: &str| {
            let moment = TimePattern::new(pattern).unwrap().parse(text);
            moment.map(|moment| moment.nanoseconds)
        };
        for (text, wanted) in [
            (".5", 500_000_000),
            (".123", 123_000_000),
            (".000123", 123_000),
        ] {
            let text = format!("2013-01-01 09:00:00{text}");
            assert_eq!(nanoseconds("%Y-%m-%d %H:%M:%S.%f", &text), Some(wanted));
            assert_eq!(nanoseconds("%Y-%m-%d %H:%M:%S%.f", &text), Some(wanted));
        }
        let comma = nanoseconds("%Y-%m-%d %H:%M:%S,%3f", "2013-01-01 09:00:00,123");
        assert_eq!(comma, Some(123_000_000));
        for wrong in ["%Q", "%H:%M:%S,%f", "%f"] {
            assert!(TimePattern::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_may_end_with_the_hour_but_not_before_the_day() {
        let ten = Some(1_356_998_400 + 10 * 3600);
        for (pattern, text, wanted) in [
            ("%Y-%m-%d %H", "2013-01-01 10", ten),
            ("%d.%m.%Y %I %p", "01.01.2013 10 AM", ten),
            ("%Y-%m-%dT%H%z", "2013-01-01T12+0200", ten),
            ("%Y-%m-%dT%H%#z", "2013-01-01T12+02", ten),
            ("%H h, %j/%y", "10 h, 001/13", ten),
            ("%Y-%m-%d %H:%M %::z", "2013-01-01 12:00 +02:00", ten),
            ("%s", "1357034400", ten),
            ("%F %T,%3f", "2013-01-01 10:00:00,000", ten),
            ("%a %d %b %Y %Hh %Z", "Tue 01 Jan 2013 10h UTC", ten),
            ("%Y-%m-%d %H", "2013-01-01 24", None),
            ("%Y-%m-%d %H", "2013-01-01", None),
        ] {
            let moment = TimePattern::new(pattern).unwrap().parse(text);
            assert_eq!(moment.map(|it| it.seconds), wanted, "{pattern} {text}");
        }
        for pattern in [
            "%Y-%m",
            "%Y",
            "%H:%M",
            "%d/%m",
            "%Y-%m-%d %M",
            "%Y-%m-%d %S",
            "%Y-%m-%d %I:%M",
            "%H %Z",
        ] {
            let error = TimePattern::new(pattern).unwrap_err();
            assert!(error.hint_text().unwrap().contains("a day"), "{error}");
        }
    }

    #[test]
    fn zones_by_name_are_utc_alone() {
        let pattern = TimePattern::new("%Y-%m-%d %H:%M %Z").unwrap();
        assert!(pattern.names_zone() && pattern.zoned);
        for zone in ["UTC", "GMT", "Z"] {
            let moment = pattern.parse(&format!("2013-01-01 09:00 {zone}")).unwrap();
            assert_eq!(moment.seconds, 1_356_998_400 + 9 * 3600);
        }
        for zone in [
            "CET",
            "EST",
            "Europe/Berlin",
            "UTCX",
            "GMT+1",
            "utc",
            "",
            "+0100",
        ] {
            let text = format!("2013-01-01 09:00 {zone}");
            assert_eq!(pattern.parse(&text), None, "{text}");
        }
        let both = TimePattern::new("%Z%z, %d/%m/%Y %H:%M").unwrap();
        let moment = both.parse("GMT+0100, 01/01/2013 10:00").unwrap();
        assert_eq!(moment.seconds, 1_356_998_400 + 9 * 3600);
    }
}
