//! Results of Python functions in the type that was promised for them, or not at all.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::cmp::not_distinct;
use arrow_schema::{DataType, TimeUnit};
use tersecades::{Error, Result};

/// `values`, which the function `name` returned, in the type `promised`.
///
/// # Errors
/// `SchemaMismatch`, with the first value that the type cannot hold: fractions and numbers out of
/// range for integers, digits below the scale of a decimal or the unit of a time. Floats are
/// rounded to the nearest that their type has.
pub(crate) fn as_promised(name: &str, values: &ArrayRef, promised: &DataType) -> Result<ArrayRef> {
    if values.data_type() == promised {
        return Ok(values.clone());
    }
    if let DataType::Dictionary(_, kind) = values.data_type() {
        return as_promised(name, &cast(values, kind)?, promised);
    }
    // What has no value in the type becomes null here, and is told below.
    let held = cast_with_options(values, promised, &CastOptions::default()).map_err(|_| {
        let given = values.data_type();
        let error = Error::schema(format!("{name} returned {given} instead of {promised}"));
        error.hint("return the type that was promised, or promise another one")
    })?;
    match first_changed(values, &held)? {
        None => Ok(held),
        Some(row) => {
            let value = array_value_to_string(values, row)?;
            let message = format!("{name} returned {value}, which {promised} does not hold");
            let hint = "round it in the function, or promise a type that holds it";
            Err(Error::schema(message).hint(hint))
        }
    }
}

/// The first of `values` that is not the same in `held`.
fn first_changed(values: &ArrayRef, held: &ArrayRef) -> Result<Option<usize>> {
    let nulls = values.logical_nulls();
    let is_given = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let lost = |row: &usize| held.is_null(*row) && is_given(*row);
    let lost = match held.null_count() > 0 {
        true => (0..held.len()).find(lost),
        false => None,
    };
    if lost.is_some() {
        return Ok(lost);
    }
    if let (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) =
        (values.data_type(), held.data_type())
    {
        // Whatever zones say, only digits of a finer unit are lost.
        let finer = ticks_per_second(*from) / ticks_per_second(*to).min(ticks_per_second(*from));
        let ticks = cast(values, &DataType::Int64)?;
        let mut ticks = ticks.as_primitive::<Int64Type>().iter();
        return Ok(ticks.position(|ticks| ticks.is_some_and(|ticks| ticks % finer != 0)));
    }
    let of_text = matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8);
    if !(is_quantity(values.data_type()) || of_text) || !is_quantity(held.data_type()) {
        return Ok(None);
    }
    if held.data_type().is_floating() {
        let floats = cast(held, &DataType::Float64)?;
        let given = cast(values, &DataType::Float64)?;
        let pairs = floats.as_primitive::<Float64Type>().iter();
        let mut pairs = pairs.zip(given.as_primitive::<Float64Type>());
        return Ok(pairs.position(|(held, given)| {
            held.is_some_and(f64::is_infinite) && given.is_some_and(f64::is_finite)
        }));
    }
    if of_text {
        return Ok(None);
    }
    let back = cast(held, values.data_type())?;
    if values.data_type().is_floating() {
        let back = cast(&back, &DataType::Float64)?;
        let given = cast(values, &DataType::Float64)?;
        let mut pairs = back.as_primitive::<Float64Type>().iter();
        let given = given.as_primitive::<Float64Type>();
        return Ok(given.iter().position(|value| Some(value) != pairs.next()));
    }
    let same = not_distinct(&back, values)?;
    Ok((0..same.len()).find(|row| !same.value(*row)))
}

fn ticks_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Whether values of the type are amounts, so that a cast that keeps them can be taken back.
fn is_quantity(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_temporal() || *data_type == DataType::Boolean
}
