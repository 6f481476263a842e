//! Dates of the proleptic Gregorian calendar as days since 1970-01-01, for any year.
//!
//! # Source
//! Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;

/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// The day of a date; `month` is 1 to 12.
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - EPOCH_DAYS
}

/// Year, month and day of `days`.
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::*;

    #[test]
    fn dates_are_those_of_another_library() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for step in -3_000..3_000 {
            let days = step * 1_009;
            let date = epoch + chrono::TimeDelta::days(days);
            let parts = (date.year().into(), date.month().into(), date.day().into());
            assert_eq!(civil_from_days(days), parts);
            assert_eq!(days_from_civil(parts.0, parts.1, parts.2), days);
        }
    }
}
