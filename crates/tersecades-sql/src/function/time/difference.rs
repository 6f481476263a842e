//! `date_diff(unit, a, b)`, how often a unit begins between two times, and `date_sub(unit, a, b)`,
//! how many whole units lie between them.

use std::sync::Arc;

use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::DataType;
use chrono::Datelike;
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::moment::{DAY, Moment, SECOND, Times, date_of, later};
use super::{in_zone, time_type, udf, zone_of};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Nanoseconds(i128),
    Days(i128),
    Months(i64),
}

/// Units by their names.
const UNITS: &[(&[&str], Unit)] = &[
    (&["nanosecond", "nanoseconds", "ns"], Unit::Nanoseconds(1)),
    (
        &["microsecond", "microseconds", "us", "usec"],
        Unit::Nanoseconds(1_000),
    ),
    (
        &["millisecond", "milliseconds", "ms", "msec"],
        Unit::Nanoseconds(1_000_000),
    ),
    (
        &["second", "seconds", "sec", "s"],
        Unit::Nanoseconds(SECOND),
    ),
    (
        &["minute", "minutes", "min", "m"],
        Unit::Nanoseconds(60 * SECOND),
    ),
    (
        &["hour", "hours", "hr", "h"],
        Unit::Nanoseconds(3_600 * SECOND),
    ),
    (&["day", "days", "d"], Unit::Days(1)),
    (&["week", "weeks", "w"], Unit::Days(7)),
    (&["month", "months", "mon"], Unit::Months(1)),
    (&["quarter", "quarters"], Unit::Months(3)),
    (&["year", "years", "yr", "y"], Unit::Months(12)),
    (&["decade", "decades"], Unit::Months(120)),
    (&["century", "centuries"], Unit::Months(1_200)),
    (&["millennium", "millennia"], Unit::Months(12_000)),
];

/// How far two times are apart.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Difference {
    name: &'static str,
    aliases: Vec<String>,
    /// Whether units count that lie between both times as a whole, instead of those that begin.
    whole: bool,
    signature: Signature,
}

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [
        ("date_diff", "datediff", false),
        ("date_sub", "datesub", true),
    ];
    named.into_iter().map(|(name, alias, whole)| {
        udf(Difference {
            name,
            aliases: vec![alias.to_owned()],
            whole,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for Difference {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [_, from, to] = given else {
            return plan_err!("{} takes 3 arguments, got {}", self.name, given.len());
        };
        let (from, to) = (time_type(self.name, from)?, time_type(self.name, to)?);
        let zone = zone_of(&from).or(zone_of(&to));
        let times = [in_zone(&from, zone), in_zone(&to, zone)];
        Ok([DataType::Utf8].into_iter().chain(times).collect())
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(unit), from, to] = arguments.args.as_slice() else {
            return exec_err!("the unit of {} must be a constant", self.name);
        };
        let rows = arguments.number_rows;
        let (from, to) = (from.to_array(rows)?, to.to_array(rows)?);
        let apart: ArrayRef = match unit.try_as_str().flatten() {
            Some(unit) => self.apart(unit_of(unit)?, &Times::of(&from)?, &Times::of(&to)?)?,
            None => arrow_array::new_null_array(&DataType::Int64, rows),
        };
        Ok(ColumnarValue::Array(apart))
    }
}

fn unit_of(name: &str) -> Result<Unit> {
    let folded = name.to_lowercase();
    let found = UNITS
        .iter()
        .find(|(names, _)| names.contains(&folded.as_str()));
    match found {
        Some((_, unit)) => Ok(*unit),
        None => {
            let known: Vec<&str> = UNITS.iter().map(|(names, _)| names[0]).collect();
            exec_err!(
                "`{name}` is no unit of time, which are {}",
                known.join(", ")
            )
        }
    }
}

impl Difference {
    fn apart(&self, unit: Unit, from: &Times, to: &Times) -> Result<ArrayRef> {
        let count = if self.whole { whole } else { begun };
        let counts = from.iter().zip(to.iter()).map(|(from, to)| {
            let units = from.zip(to).and_then(|(from, to)| count(unit, from, to));
            let units = units.map(|units| {
                i64::try_from(units)
                    .map_err(|_| exec_datafusion_err!("{} is out of range", self.name))
            });
            units.transpose()
        });
        Ok(Arc::new(counts.collect::<Result<Int64Array>>()?))
    }
}

/// How many units begin behind `from` up to `to`; of weeks those of seven days from `from` on.
fn begun(unit: Unit, from: Moment, to: Moment) -> Option<i128> {
    match unit {
        Unit::Nanoseconds(length) => {
            let begin = |time: Moment| time.instant - time.local.rem_euclid(length);
            Some((begin(to) - begin(from)) / length)
        }
        Unit::Days(days) => Some((to.local.div_euclid(DAY) - from.local.div_euclid(DAY)) / days),
        Unit::Months(months) => {
            let begin = |time: Moment| Some(month_of(time.local)?.div_euclid(months));
            Some(i128::from(begin(to)? - begin(from)?))
        }
    }
}

/// How many whole units lie between `from` and `to`.
fn whole(unit: Unit, from: Moment, to: Moment) -> Option<i128> {
    match unit {
        Unit::Nanoseconds(length) => Some((to.instant - from.instant) / length),
        Unit::Days(days) => Some((to.local - from.local) / (days * DAY)),
        Unit::Months(months) => {
            let apart = match from.local <= to.local {
                true => whole_months(from.local, to.local)?,
                false => -whole_months(to.local, from.local)?,
            };
            Some(i128::from(apart / months))
        }
    }
}

/// How many months later `from` is not behind `to`.
fn whole_months(from: i128, to: i128) -> Option<i64> {
    let months = month_of(to)? - month_of(from)?;
    let by = IntervalMonthDayNano::new(i32::try_from(months).ok()?, 0, 0);
    Some(months - i64::from(later(from, by)? > to))
}

/// Months since the begin of the year 0.
pub(super) fn month_of(local: i128) -> Option<i64> {
    let date = date_of(local)?;
    Some(i64::from(date.year()) * 12 + i64::from(date.month0()))
}
