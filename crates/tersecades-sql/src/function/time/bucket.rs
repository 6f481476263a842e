//! `time_bucket(width, t[, origin or offset])`: where the bucket of a time begins.
//!
//! ```text
//! widths of months          buckets from January 2000 on, or from the month of the origin
//! others                    from Monday, 2000-01-03 on, or from the origin
//! an offset                 moves the begins of all buckets
//! days and months of a zone go by its clock, shorter widths by lengths of time
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNano};
use arrow_array::{ArrayRef, Int32Array, Int64Array, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use chrono::NaiveDate;
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tersecades_engine::expression::cast_time;

use super::difference::month_of;
use super::moment::{DAY, Times, begin_of, later, nanoseconds};
use super::{in_zone, local_type, time_type, udf, zone_of};

const NAME: &str = "time_bucket";
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Nanoseconds of Monday, 2000-01-03.
const MONDAY: i128 = 10_959 * DAY;
/// Months from year 0 to January 2000.
const JANUARY: i64 = 24_000;

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket(Signature);

pub(super) fn function() -> ScalarUDF {
    udf(TimeBucket(Signature::user_defined(Volatility::Immutable)))
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let (width, time, from) = match given {
            [width, time] => (width, time, None),
            [width, time, from] => (width, time, Some(from)),
            _ => return plan_err!("{NAME} takes 2 or 3 arguments, got {}", given.len()),
        };
        if !matches!(width, DataType::Interval(_) | DataType::Null) {
            return plan_err!("{NAME} takes an interval, such as INTERVAL '10 minutes', first");
        }
        let mut time = time_type(NAME, time)?;
        let from = match from {
            None => None,
            Some(DataType::Interval(_) | DataType::Null) => Some(INTERVAL),
            Some(origin @ (DataType::Timestamp(..) | DataType::Date32)) => {
                if let (DataType::Date32, DataType::Timestamp(unit, _)) = (&time, origin) {
                    time = DataType::Timestamp(*unit, None);
                }
                Some(in_zone(origin, zone_of(&time)))
            }
            Some(other) => return plan_err!("{NAME} takes a time or an interval, got {other}"),
        };
        Ok([INTERVAL, time].into_iter().chain(from).collect())
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        plan_err!("{NAME} needs its arguments to know its type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(time) = arguments.arg_fields.get(1) else {
            return plan_err!("{NAME} takes a time");
        };
        let mut data_type = time.data_type().clone();
        for (value, field) in arguments.scalar_arguments.iter().zip(arguments.arg_fields) {
            if *field.data_type() != INTERVAL {
                continue;
            }
            let Some(ScalarValue::IntervalMonthDayNano(length)) = value else {
                return plan_err!("width and offset of {NAME} must be constant intervals");
            };
            if let DataType::Timestamp(unit, zone) = &data_type {
                let unit = (*unit).max(unit_of(length.map_or(0, |length| length.nanoseconds)));
                data_type = DataType::Timestamp(unit, zone.clone());
            }
        }
        Ok(Arc::new(Field::new(NAME, data_type, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = arguments.return_field.data_type();
        let (width, times, from) = match arguments.args.as_slice() {
            [ColumnarValue::Scalar(width), times] => (width, times, None),
            [
                ColumnarValue::Scalar(width),
                times,
                ColumnarValue::Scalar(from),
            ] => (width, times, Some(from)),
            _ => return exec_err!("width, offset and origin of {NAME} must be constants"),
        };
        let times = times.to_array(arguments.number_rows)?;
        let ScalarValue::IntervalMonthDayNano(Some(width)) = width else {
            return nulls(to, times.len());
        };
        let from = match from {
            None => From::Default,
            Some(from) if from.is_null() => return nulls(to, times.len()),
            Some(ScalarValue::IntervalMonthDayNano(Some(offset))) => From::Offset(*offset),
            Some(origin) => {
                let origin = Times::of(&origin.to_array()?)?.get(0);
                let origin = origin.ok_or_else(|| exec_datafusion_err!("an origin is too far"))?;
                From::Origin(origin.local)
            }
        };
        if let (From::Origin(origin), DataType::Timestamp(unit, _)) = (&from, to)
            && width.months == 0
            && origin % nanoseconds(*unit) != 0
        {
            return exec_err!("the origin of {NAME} lies between two {unit} of the times");
        }
        let buckets = Buckets::of(*width, from)?;
        Ok(ColumnarValue::Array(buckets.begins(&times, to)?))
    }
}

fn nulls(of: &DataType, rows: usize) -> Result<ColumnarValue> {
    let nulls = arrow_array::new_null_array(of, rows);
    Ok(ColumnarValue::Array(nulls))
}

/// The coarsest unit of which `length` nanoseconds are a whole number.
fn unit_of(length: i64) -> TimeUnit {
    let units = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
    ];
    let mut units = units.into_iter();
    let found = units.find(|unit| i128::from(length) % nanoseconds(*unit) == 0);
    found.unwrap_or(TimeUnit::Nanosecond)
}

/// Where buckets start from.
enum From {
    Default,
    Offset(IntervalMonthDayNano),
    Origin(i128),
}

/// How times are put into buckets.
enum Buckets {
    /// Of months, from a month on, moved by an offset.
    Months(i64, i64, IntervalMonthDayNano),
    /// Of nanoseconds by the clock, from an origin on.
    Days(i128, i128),
    /// Of nanoseconds between instants, from an origin by the clock on.
    Lengths(i128, i128),
}

impl Buckets {
    fn of(width: IntervalMonthDayNano, from: From) -> Result<Self> {
        let none = IntervalMonthDayNano::new(0, 0, 0);
        let length = i128::from(width.days) * DAY + i128::from(width.nanoseconds);
        if width.months != 0 && length != 0 {
            return exec_err!("a width of {NAME} has months or days and less, not both");
        }
        if width.months < 0 || width.months == 0 && length <= 0 {
            return exec_err!("the width of {NAME} must be greater than zero");
        }
        if width.months > 0 {
            let (first, offset) = match from {
                From::Default => (JANUARY, none),
                From::Offset(offset) => (JANUARY, offset),
                From::Origin(origin) => {
                    let month = month_of(origin);
                    let month =
                        month.ok_or_else(|| exec_datafusion_err!("an origin is too far"))?;
                    (month, none)
                }
            };
            return Ok(Buckets::Months(width.months.into(), first, offset));
        }
        let origin = match from {
            From::Default => MONDAY,
            From::Offset(offset) if offset.months != 0 => {
                return exec_err!("an offset of months of {NAME} needs a width of months");
            }
            From::Offset(offset) => {
                MONDAY + i128::from(offset.days) * DAY + i128::from(offset.nanoseconds)
            }
            From::Origin(origin) => origin,
        };
        Ok(match width.days {
            0 => Buckets::Lengths(length, origin),
            _ => Buckets::Days(length, origin),
        })
    }

    /// The begins of the buckets of `times`, in the type `to`.
    fn begins(&self, times: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let moments = Times::of(times)?;
        let zone = zone_of(to);
        match self {
            Buckets::Months(width, first, offset) => {
                let begins = moments.iter().map(|moment| {
                    let local = moment?.local;
                    month_bucket(local, (*width, *first), *offset)
                });
                cast_time(&ticks(begins, &local_type(to))?, to).map_err(Into::into)
            }
            Buckets::Days(length, origin) => {
                if zone.is_some() && length % DAY != 0 {
                    return exec_err!(
                        "a width of {NAME} of times of a zone has days or less, not both"
                    );
                }
                let local = moments.iter().map(|moment| Some(moment?.local));
                let begins = local.map(|local| Some(begin(local?, *length, *origin)));
                cast_time(&ticks(begins, &local_type(to))?, to).map_err(Into::into)
            }
            Buckets::Lengths(length, origin) => {
                let origin = match zone {
                    Some(zone) => instant_of(*origin, zone)?,
                    None => *origin,
                };
                let instants = moments.iter().map(|moment| Some(moment?.instant));
                let begins = instants.map(|instant| Some(begin(instant?, *length, origin)));
                ticks(begins, to)
            }
        }
    }
}

/// The begin of the bucket of `time`.
fn begin(time: i128, length: i128, origin: i128) -> i128 {
    origin + (time - origin).div_euclid(length) * length
}

/// The begin of the bucket of months of `local`.
fn month_bucket(
    local: i128,
    (width, first): (i64, i64),
    offset: IntervalMonthDayNano,
) -> Option<i128> {
    let back = IntervalMonthDayNano::new(
        offset.months.checked_neg()?,
        offset.days.checked_neg()?,
        offset.nanoseconds.checked_neg()?,
    );
    let month = month_of(later(local, back)?)?;
    let month = first + (month - first).div_euclid(width) * width;
    let year = i32::try_from(month.div_euclid(12)).ok()?;
    let month = u32::try_from(month.rem_euclid(12)).ok()? + 1;
    later(begin_of(NaiveDate::from_ymd_opt(year, month, 1)?), offset)
}

/// Nanoseconds as times of the type `to`, whose ticks they are; dates are cut to days.
fn ticks(begins: impl Iterator<Item = Option<i128>>, to: &DataType) -> Result<ArrayRef> {
    let tick = match to {
        DataType::Timestamp(unit, _) => nanoseconds(*unit),
        _ => DAY,
    };
    let ticks = begins.map(|begin| {
        let tick = begin.map(|begin| i64::try_from(begin.div_euclid(tick)));
        tick.transpose()
            .map_err(|_| exec_datafusion_err!("{NAME} of a time is out of range"))
    });
    let ticks: Int64Array = ticks.collect::<Result<_>>()?;
    let ticks: ArrayRef = match to {
        DataType::Date32 => {
            let days = ticks.try_unary(|days| {
                i32::try_from(days)
                    .map_err(|_| exec_datafusion_err!("{NAME} of a date is out of range"))
            });
            let days: Int32Array = days?;
            Arc::new(days)
        }
        _ => Arc::new(ticks),
    };
    Ok(arrow_cast::cast(&ticks, to)?)
}

/// The instant of a time of `zone`, in nanoseconds.
fn instant_of(local: i128, zone: &Arc<str>) -> Result<i128> {
    let (micros, rest) = (local.div_euclid(1_000), local.rem_euclid(1_000));
    let micros = i64::try_from(micros).map_err(|_| exec_datafusion_err!("an origin is too far"))?;
    let local: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![micros]));
    let to = DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(zone)));
    let instant = arrow_cast::cast(&cast_time(&local, &to)?, &DataType::Int64)?;
    let instant = instant.as_primitive::<Int64Type>().value(0);
    Ok(i128::from(instant) * 1_000 + rest)
}
