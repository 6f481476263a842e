//! Functions of times by the names that DuckDB gives them.
//!
//! ```text
//! year(t) … epoch(t)                  part       what date_part gives, as long numbers
//! dayname, monthname, last_day        calendar
//! epoch_ms, epoch_us, epoch_ns        epoch      both ways
//! date_diff, date_sub                 difference
//! time_bucket(width, t[, from])       bucket
//! strftime(t, format)                 written ┐
//! strptime(text, format)              read    ┴─ format
//! ```
//! Times of a zone go by its clock; times in no year of the calendar have no parts.

mod bucket;
mod calendar;
mod difference;
mod epoch;
mod format;
mod moment;
mod part;
mod read;
mod written;

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{Result, plan_err};
use datafusion_expr::ScalarUDF;

/// All of them.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = part::functions().chain(calendar::functions());
    let named = named.chain(epoch::functions());
    let named = named.chain(difference::functions());
    let rest = [bucket::function(), written::function()];
    named.chain(rest).chain(read::functions())
}

/// The type of a time that `function` takes where it is given one of type `given`.
fn time_type(function: &str, given: &DataType) -> Result<DataType> {
    match given {
        DataType::Date32 | DataType::Timestamp(..) => Ok(given.clone()),
        DataType::Date64 => Ok(DataType::Timestamp(TimeUnit::Millisecond, None)),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        other => plan_err!("{function} takes a time, got {other}"),
    }
}

/// The function that `implementation` says.
fn udf(implementation: impl datafusion_expr::ScalarUDFImpl + 'static) -> ScalarUDF {
    ScalarUDF::new_from_impl(implementation)
}

/// A type without its zone.
fn local_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

/// `data_type` in the zone `zone`, where it has a time of day.
fn in_zone(data_type: &DataType, zone: Option<&Arc<str>>) -> DataType {
    match (data_type, zone) {
        (DataType::Timestamp(unit, _), zone) => DataType::Timestamp(*unit, zone.cloned()),
        (DataType::Date32, Some(zone)) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(zone)))
        }
        (other, _) => other.clone(),
    }
}

/// The zone of a type.
fn zone_of(data_type: &DataType) -> Option<&Arc<str>> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.as_ref(),
        _ => None,
    }
}
