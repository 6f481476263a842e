//! Numbers as people read them.

use std::time::Duration;

const DAY_MS: i64 = 86_400_000;

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `part / whole`, 0 where there is no whole.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// A share as `12.3 %`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * ratio(part, whole))
}

/// A rate as `12.3 M rows/s`.
pub(crate) fn rate(rows: u64, elapsed: Duration) -> String {
    let per_second = rows as f64 / elapsed.as_secs_f64().max(1e-9);
    match per_second {
        fast if fast >= 1e7 => format!("{:.0} M rows/s", fast / 1e6),
        fair if fair >= 1e6 => format!("{:.1} M rows/s", fair / 1e6),
        slow => format!("{:.0} k rows/s", slow / 1e3),
    }
}

/// Bytes as `12.3 MiB`.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// An age as `3 min`, in the largest unit of which it has one.
pub(crate) fn age(age: Duration) -> String {
    let units = [(86_400, "days"), (3_600, "h"), (60, "min"), (1, "s")];
    let seconds = age.as_secs();
    let (length, unit) = units
        .into_iter()
        .find(|(length, _)| seconds >= *length)
        .unwrap_or((1, "s"));
    format!("{} {unit}", seconds / length)
}

/// Time of day, in UTC, of a time in milliseconds.
pub(crate) fn clock(time_ms: i64) -> String {
    let seconds = time_ms.rem_euclid(DAY_MS) / 1000;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 999, 1_000, 65_536, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "65,536", "1,234,567"]);
    }

    #[test]
    fn shares_of_nothing_are_nothing() {
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(percent(1, 8), "12.5 %");
    }

    #[test]
    fn clocks_show_times_before_1970_too() {
        assert_eq!(clock(-1_000), "23:59:59");
        assert_eq!(clock(DAY_MS + 3_723_999), "01:02:03");
    }
}
