//! Windows of the calendar, found by looking at local clocks minute by minute.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};
use tersecades_engine::window::{CalendarUnit, Tz};

use super::Span;

const MINUTE_S: i64 = 60;

/// No local clock is further from universal time.
const OFFSET_MAX_S: i64 = 26 * 3_600;

/// The windows of one unit in one zone.
pub(super) struct Calendar {
    unit: CalendarUnit,
    zone: Tz,
    offset: Duration,
    ticks_per_second: i128,
    starts: RefCell<HashMap<NaiveDate, i64>>,
}

impl Calendar {
    pub(super) fn new(unit: CalendarUnit, zone: Tz, offset: Duration, tick: i128) -> Self {
        Calendar {
            unit,
            zone,
            offset,
            ticks_per_second: 1_000_000_000 / tick,
            starts: RefCell::default(),
        }
    }

    /// What local clocks show at a second of universal time.
    fn local(&self, second: i64) -> NaiveDateTime {
        let utc = DateTime::from_timestamp(second, 0).unwrap_or_default();
        let utc = utc.naive_utc();
        utc + self.zone.offset_from_utc_datetime(&utc).fix()
    }

    /// Whether a window starts on `date`.
    fn is_start(&self, date: NaiveDate) -> bool {
        match self.unit {
            CalendarUnit::Day => true,
            CalendarUnit::Week => date.weekday() == chrono::Weekday::Mon,
            CalendarUnit::Month => date.day() == 1,
            CalendarUnit::Quarter => date.day() == 1 && date.month() % 3 == 1,
            CalendarUnit::Year => date.ordinal() == 1,
        }
    }

    /// The first minute in which local clocks show the start of `date` or later.
    fn start(&self, date: NaiveDate) -> i64 {
        if let Some(known) = self.starts.borrow().get(&date) {
            return *known;
        }
        let midnight = date.and_time(NaiveTime::MIN) + self.offset;
        let mut second = midnight.and_utc().timestamp() - OFFSET_MAX_S;
        while self.local(second) < midnight {
            second += MINUTE_S;
        }
        self.starts.borrow_mut().insert(date, second);
        second
    }

    /// The window that holds `time`, in ticks.
    pub(super) fn holding(&self, time: i128) -> Span {
        let second = time.div_euclid(self.ticks_per_second) as i64;
        let near = self.local(second).date();
        let mut start = near + Days::new(3);
        while !self.is_start(start) || self.start(start) > second {
            start = start - Days::new(1);
        }
        let mut end = start + Days::new(1);
        while !self.is_start(end) || self.start(end) <= second {
            end = end + Days::new(1);
        }
        let tick = |date| i128::from(self.start(date)) * self.ticks_per_second;
        (tick(start), tick(end))
    }
}
