//! Intervals as other engines take them: clock times, quarters, whole multiples, a sign before all
//! parts.
//!
//! ```text
//! INTERVAL '1 day -02:30'   ─▶ INTERVAL '1 day -2 hours -30 minutes'
//! INTERVAL '2' QUARTER      ─▶ INTERVAL '6 months'
//! INTERVAL '90' SECOND * 3  ─▶ INTERVAL '0 months 0 days 270000000000 nanoseconds'
//! -INTERVAL '1 day 02:00'   ─▶ INTERVAL '0 months -1 days -7200000000000 nanoseconds'
//! ```

use arrow_cast::parse::{IntervalParseConfig, IntervalUnit, parse_interval_month_day_nano_config};
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, DateTimeField, Expr, Interval, UnaryOperator, Value,
};

/// The units of a clock time, in order.
const UNITS: [&str; 3] = ["hours", "minutes", "seconds"];

/// Writes an interval, or a multiple of one, as what the planner knows.
pub(super) fn respell(value: &mut Expr) {
    match value {
        Expr::Interval(interval) => {
            let spelt = match &interval.leading_field {
                None => text_of(&interval.value).and_then(spelt_out),
                Some(DateTimeField::Quarter) => quarters(&interval.value),
                Some(_) => None,
            };
            if let Some(text) = spelt {
                (*interval.value, interval.leading_field) = (quoted(text), None);
            }
        }
        // The planner puts the sign before the first part alone.
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            if let Some(opposite) = times(expr, -1) {
                *value = Expr::Interval(opposite);
            }
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Multiply,
            right,
        } => {
            if let Some(product) = product(left, right).or_else(|| product(right, left)) {
                *value = Expr::Interval(product);
            }
        }
        _ => {}
    }
}

fn quoted(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

fn text_of(value: &Expr) -> Option<&str> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The text with clock times as numbers of units and quarters as months, if there are any.
fn spelt_out(text: &str) -> Option<String> {
    let mut found = false;
    let words = text.split_whitespace().map(|word| match clock(word) {
        Some(units) => {
            found = true;
            units
        }
        None => word.to_owned(),
    });
    let mut words: Vec<String> = words.collect();
    while let Some(at) = position(&words, &["quarter", "quarters"]) {
        let months = words[at - 1].parse().ok().and_then(months_of)?;
        found = true;
        // The planner takes each unit once.
        match position(&words, &["month", "months", "mon", "mons"]) {
            Some(other) => {
                let sum = words[other - 1].parse::<i64>().ok()?.checked_add(months)?;
                words[other - 1] = sum.to_string();
                words.drain(at - 1..=at);
            }
            None => (words[at - 1], words[at]) = (months.to_string(), "months".to_owned()),
        }
    }
    found.then(|| words.join(" "))
}

/// Where one of `units` stands behind another word.
fn position(words: &[String], units: &[&str]) -> Option<usize> {
    let is_unit = |word: &String| units.contains(&word.to_lowercase().as_str());
    (1..words.len()).find(|at| is_unit(&words[*at]))
}

fn months_of(quarters: i64) -> Option<i64> {
    quarters.checked_mul(3)
}

/// So many quarters as months.
fn quarters(number: &Expr) -> Option<String> {
    let quarters = match text_of(number) {
        Some(text) => text.trim().parse().ok()?,
        None => whole(number)?,
    };
    Some(format!("{} months", months_of(quarters)?))
}

/// `-02:30` as `-2 hours -30 minutes`; no minute or second is above 59.
fn clock(word: &str) -> Option<String> {
    let (sign, time) = match word.strip_prefix('-') {
        Some(time) => ("-", time),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let parts: Vec<&str> = time.split(':').collect();
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (last, whole) = parts.split_last()?;
    let (seconds, fraction) = last.split_once('.').unwrap_or((last, "0"));
    let fits = (2..=UNITS.len()).contains(&parts.len())
        && (parts.len() == UNITS.len() || !last.contains('.'))
        && whole.iter().all(|part| is_whole(part))
        && is_whole(seconds)
        && is_whole(fraction);
    let below_60 = |part: &&str| part.parse::<f64>().is_ok_and(|part| part < 60.0);
    if !fits || !parts[1..].iter().all(below_60) {
        return None;
    }
    let units = parts.iter().zip(UNITS);
    let units = units.map(|(number, unit)| format!("{sign}{number} {unit}"));
    Some(units.collect::<Vec<_>>().join(" "))
}

/// The interval `interval` so many times, if the other side is a whole number.
fn product(interval: &Expr, number: &Expr) -> Option<Interval> {
    times(interval, whole(number)?)
}

/// The interval `interval` so many times.
fn times(interval: &Expr, times: i64) -> Option<Interval> {
    let interval = match interval {
        Expr::Nested(inner) => return self::times(inner, times),
        Expr::Interval(interval) => interval,
        _ => return None,
    };
    let text = text_of(&interval.value)?;
    let text = match &interval.leading_field {
        Some(unit) => format!("{text} {unit}"),
        None => text.to_owned(),
    };
    let config = IntervalParseConfig::new(IntervalUnit::Second);
    let once = parse_interval_month_day_nano_config(&text, config).ok()?;
    let many = |number: i64| number.checked_mul(times);
    let (months, days) = (many(once.months.into())?, many(once.days.into())?);
    let nanoseconds = many(once.nanoseconds)?;
    let text = format!("{months} months {days} days {nanoseconds} nanoseconds");
    Some(Interval {
        value: Box::new(quoted(text)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

fn whole(number: &Expr) -> Option<i64> {
    match number {
        Expr::Nested(inner) => whole(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => whole(expr)?.checked_neg(),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
