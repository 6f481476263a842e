//! `generate_series` and `range` in `FROM`: numbers or times at equal steps.
//!
//! ```text
//! generate_series(1, 10, 4)  ─▶ 1 5 9         range(1, 9, 4)  ─▶ 1 5
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::Expr;
use tersecades_columnar::error::{Error, Result};
use tersecades_engine::source::series::{SeriesStep, SeriesTable};

use crate::catalog::Relation;
use crate::error::of_datafusion;
use crate::scalar::PlannedFunction;

/// Their names, and whether the last value is among the rows.
const SERIES: [(&str, bool); 2] = [("generate_series", true), ("range", false)];

/// The name as rows have it of the function that is called `name`, where it makes a series.
pub(crate) fn series_named(name: &str) -> Option<&'static str> {
    let found = SERIES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(known, _)| *known)
}

/// The rows of a series.
///
/// # Errors
/// `InvalidArgument` for arguments that make none, what computing them says.
pub(crate) fn relation(name: &str, arguments: &[Expr]) -> Result<Relation> {
    let nothing = DFSchema::empty();
    let value = |argument: &Expr| -> Result<ScalarValue> {
        let value = PlannedFunction::new(argument, &nothing, &[])?.constant()?;
        // What is computed of `NULL` has a type that nobody wrote.
        Ok(if value.is_null() {
            ScalarValue::Null
        } else {
            value
        })
    };
    let values: Vec<ScalarValue> = arguments.iter().map(value).collect::<Result<_>>()?;
    let table = match values.as_slice() {
        [last] => table(name, &ScalarValue::Int64(Some(0)), last, None),
        [first, last] => table(name, first, last, None),
        [first, last, step] => table(name, first, last, Some(step)),
        _ => Err(wrong(name, "takes one to three arguments")),
    };
    Relation::of_table(Arc::new(table?), None)
}

fn wrong(name: &str, what: &str) -> Error {
    Error::invalid(format!("{name} {what}")).hint(format!(
        "write {name}(1, 10), {name}(10, 1, -1) or \
         {name}(TIMESTAMP '2024-01-01', TIMESTAMP '2024-02-01', INTERVAL '1 day')"
    ))
}

fn table(
    name: &str,
    first: &ScalarValue,
    last: &ScalarValue,
    step: Option<&ScalarValue>,
) -> Result<SeriesTable> {
    let types = [first.data_type(), last.data_type()];
    let is_whole = |value: &DataType| value.is_integer() || value.is_null();
    let has_null = first.is_null() || last.is_null() || step.is_some_and(ScalarValue::is_null);
    let (data_type, step) = if types.iter().all(is_whole) {
        (DataType::Int64, whole_step(name, step)?)
    } else {
        let data_type = time_type(name, &types)?;
        let step = time_step(name, step, &data_type)?;
        (data_type, step)
    };
    // As in PostgreSQL a series has no rows where something is not known.
    let (ends, includes_last) = match has_null {
        true => ((0, 0), false),
        false => {
            let ends = (ticks(first, &data_type)?, ticks(last, &data_type)?);
            (ends, SERIES.contains(&(name, true)))
        }
    };
    SeriesTable::new(name, data_type, ends, step, includes_last)
}

fn whole_step(name: &str, step: Option<&ScalarValue>) -> Result<SeriesStep> {
    let units = match step {
        Some(ScalarValue::Null) | None => 1,
        Some(step) if step.data_type().is_integer() => ticks(step, &DataType::Int64)?,
        Some(_) => return Err(wrong(name, "of whole numbers takes a whole number as step")),
    };
    Ok(SeriesStep { months: 0, units })
}

/// The type of times of both `types`.
fn time_type(name: &str, types: &[DataType; 2]) -> Result<DataType> {
    let as_time = |data_type: &DataType| match data_type {
        DataType::Date32 => Some((TimeUnit::Microsecond, None)),
        DataType::Timestamp(unit, zone) => Some((*unit, zone.clone())),
        _ => None,
    };
    match types.each_ref().map(as_time) {
        [Some((unit, zone)), Some((other, same))] if zone == same => {
            Ok(DataType::Timestamp(unit.max(other), zone))
        }
        [Some(time), None] | [None, Some(time)] if types.iter().any(DataType::is_null) => {
            Ok(DataType::Timestamp(time.0, time.1))
        }
        [Some(_), Some(_)] => Err(wrong(name, "takes two times of one zone")),
        _ => Err(wrong(name, "takes two whole numbers or two times")),
    }
}

fn time_step(name: &str, step: Option<&ScalarValue>, data_type: &DataType) -> Result<SeriesStep> {
    let step = match step {
        Some(ScalarValue::IntervalMonthDayNano(Some(step))) => step,
        Some(ScalarValue::Null) => {
            return Ok(SeriesStep {
                months: 1,
                units: 0,
            });
        }
        _ => return Err(wrong(name, "of times takes an interval as step")),
    };
    let nanoseconds_per_unit: i128 = match data_type {
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let (days, nanoseconds) = (i128::from(step.days), i128::from(step.nanoseconds));
    if days.signum() * nanoseconds.signum() < 0 {
        return Err(wrong(name, "takes a step in one direction"));
    }
    let length = days * 86_400_000_000_000 + nanoseconds;
    let units = i64::try_from(length / nanoseconds_per_unit).ok();
    match units.filter(|_| length % nanoseconds_per_unit == 0) {
        Some(units) => Ok(SeriesStep {
            months: step.months.into(),
            units,
        }),
        None => Err(wrong(name, "takes a step of whole units of its times")),
    }
}

/// The number of `value` as one of `data_type`.
fn ticks(value: &ScalarValue, data_type: &DataType) -> Result<i64> {
    let cast = value.cast_to(data_type);
    let ticks = cast.and_then(|value| value.cast_to(&DataType::Int64));
    match ticks.map_err(|error| of_datafusion(&error))? {
        ScalarValue::Int64(Some(ticks)) => Ok(ticks),
        _ => Err(Error::internal("a value of a series is not null")),
    }
}
