//! `dayname`, `monthname` and `last_day`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, StringArray};
use arrow_schema::DataType;
use chrono::{Datelike, NaiveDate};
use datafusion_common::{Result, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::super::of_one;
use super::moment::{Times, date_of};
use super::{time_type, udf};

/// Names of days, from Sunday on.
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Names of months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The name of the day of a date.
pub(super) fn day_name(date: NaiveDate) -> &'static str {
    DAYS[date.weekday().num_days_from_sunday() as usize]
}

/// The name of the month of a date.
pub(super) fn month_name(date: NaiveDate) -> &'static str {
    MONTHS[date.month0() as usize]
}

/// What a function gives for a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Gives {
    DayName,
    MonthName,
    LastDay,
}

/// A function of the date of a time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfDate {
    name: &'static str,
    gives: Gives,
    signature: Signature,
}

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [
        ("dayname", Gives::DayName),
        ("monthname", Gives::MonthName),
        ("last_day", Gives::LastDay),
    ];
    named.into_iter().map(|(name, gives)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        udf(OfDate {
            name,
            gives,
            signature,
        })
    })
}

impl ScalarUDFImpl for OfDate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [time] => Ok(vec![time_type(self.name, time)?]),
            _ => plan_err!("{} takes 1 argument, got {}", self.name, given.len()),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.gives {
            Gives::LastDay => DataType::Date32,
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |times| self.of_dates(&Times::of(times)?))
    }
}

impl OfDate {
    fn of_dates(&self, times: &Times) -> Result<ArrayRef> {
        let moments = times.iter();
        let dates = moments.map(|moment| moment.and_then(|moment| date_of(moment.local)));
        let names = |name: fn(NaiveDate) -> &'static str| move |date: Option<_>| date.map(name);
        Ok(match self.gives {
            Gives::DayName => Arc::new(dates.map(names(day_name)).collect::<StringArray>()),
            Gives::MonthName => Arc::new(dates.map(names(month_name)).collect::<StringArray>()),
            Gives::LastDay => {
                let last = dates.map(|date| date.and_then(last_day));
                Arc::new(last.collect::<Date32Array>())
            }
        })
    }
}

/// The last day of the month of `date`, in days since 1970.
fn last_day(date: NaiveDate) -> Option<i32> {
    let days = u32::from(date.num_days_in_month());
    Some(date.with_day(days)?.to_epoch_days())
}
