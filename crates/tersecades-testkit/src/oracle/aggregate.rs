//! Aggregates of one group, by name, from the list of its values.
//!
//! Nulls are ignored. Integer and decimal sums are exact. Float sums are compensated; variances
//! take two passes. With each result comes its *slack*: how far off a correct engine may be that
//! adds in another order. With `m` the largest magnitude among the inputs it is `1e-9 m` for a
//! mean or deviation, `1e-9 m` times the square root of the count for a sum, and
//! `1e-9 m s + 1e-18 m²` for a variance with deviation `s`; slacks of the inputs are added.

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Value;
use tersecades_engine::expression::Expression;
use tersecades_engine::plan::AggregateCall;

use super::evaluate::{as_float, known, position, type_of, value_of};
use super::order::order;
use super::{Traveller, collected};

/// Relative error a float result may have.
pub const RELATIVE_ERROR: f64 = 1e-9;

/// The type of the result of `call`.
///
/// # Errors
/// `InvalidArgument` for unknown functions, `SchemaMismatch` for arguments without meaning.
pub fn result_type(call: &AggregateCall, columns: &[(String, DataType)]) -> Result<DataType> {
    let argument = match &call.argument {
        Some(argument) => type_of(argument, columns)?,
        None if call.function == "count" => return Ok(DataType::Int64),
        None => {
            return Err(Error::invalid(format!(
                "{} needs an argument",
                call.function
            )));
        }
    };
    match (call.function.as_str(), argument) {
        ("count", _) | ("count_if", DataType::Boolean) => Ok(DataType::Int64),
        ("count_distinct", _) => Ok(DataType::Int64),
        ("min" | "max", argument) => Ok(argument),
        (function, argument) if function.starts_with("arg_") => Ok(argument),
        ("quantile" | "median", argument) if argument.is_numeric() => Ok(DataType::Float64),
        (function, argument) if collected::NAMES.contains(&function) => {
            collected::result_type(function, argument)
        }
        ("sum", argument) if argument.is_unsigned_integer() => Ok(DataType::UInt64),
        ("sum", argument) if argument.is_integer() => Ok(DataType::Int64),
        ("sum", argument) if argument.is_floating() => Ok(DataType::Float64),
        ("sum", DataType::Decimal128(_, scale)) => Ok(DataType::Decimal128(38, scale)),
        (
            "mean" | "variance" | "variance_population" | "stddev" | "stddev_population",
            argument,
        ) if argument.is_numeric() => Ok(DataType::Float64),
        (function, argument) => Err(Error::schema(format!(
            "no aggregate {function}({argument})"
        ))),
    }
}

/// The result of `call` over a group, and its slack.
///
/// # Errors
/// As [`result_type`]; `LimitExceeded` for sums outside their type.
pub(crate) fn compute(
    call: &AggregateCall,
    columns: &[(String, DataType)],
    rows: &[&Traveller],
) -> Result<(Value, f64)> {
    let passing = passing(call, columns, rows)?;
    let rows = passing.as_slice();
    let Some(argument) = &call.argument else {
        return Ok((Value::from(rows.len() as u64), 0.0));
    };
    let mut values = Vec::new();
    let mut input_slack: f64 = 0.0;
    for row in rows {
        values.push(value_of(argument, columns, &row.values)?);
        for name in argument.columns() {
            input_slack = input_slack.max(row.slack[position(name, columns)?]);
        }
    }
    if collected::NAMES.contains(&call.function.as_str()) {
        return collected::compute(call, columns, rows, values);
    }
    if let Some(by) = &call.by {
        let value =
            at_extreme(call, by, columns, rows)?.map_or(Value::Null, |at| values.swap_remove(at));
        return Ok((value, input_slack));
    }
    values.retain(|value| *value != Value::Null);
    let count = values.len() as f64;
    let value = match call.function.as_str() {
        "count" => Value::from(values.len() as u64),
        "count_if" => {
            let hits = values
                .iter()
                .filter(|value| known(value) == Some(true))
                .count();
            Value::from(hits as u64)
        }
        "min" => values
            .iter()
            .min_by(|a, b| order(a, b))
            .cloned()
            .unwrap_or(Value::Null),
        "max" => values
            .iter()
            .max_by(|a, b| order(a, b))
            .cloned()
            .unwrap_or(Value::Null),
        "count_distinct" => {
            values.sort_by(order);
            values.dedup_by(|a, b| order(a, b).is_eq());
            Value::from(values.len() as u64)
        }
        "quantile" | "median" => {
            let fraction = call.parameter.unwrap_or(0.5);
            return Ok((quantile(&mut values, fraction), input_slack));
        }
        "sum" => return sum(&values, &result_type(call, columns)?, input_slack),
        _ => return Ok(moments(&call.function, &values, input_slack)),
    };
    let slack = if matches!(value, Value::Float(_)) {
        input_slack * count
    } else {
        0.0
    };
    Ok((value, slack))
}

/// The rows that the filter of `call` lets pass.
fn passing<'a>(
    call: &AggregateCall,
    columns: &[(String, DataType)],
    rows: &[&'a Traveller],
) -> Result<Vec<&'a Traveller>> {
    let mut passing = Vec::new();
    for row in rows {
        let passes = match &call.filter {
            Some(condition) => known(&value_of(condition, columns, &row.values)?) == Some(true),
            None => true,
        };
        passing.extend(passes.then_some(*row));
    }
    Ok(passing)
}

/// The first row, or the last, whose `by` is least, or greatest.
fn at_extreme(
    call: &AggregateCall,
    by: &Expression,
    columns: &[(String, DataType)],
    rows: &[&Traveller],
) -> Result<Option<usize>> {
    let mut best: Option<(usize, Value, usize)> = None;
    for (index, row) in rows.iter().enumerate() {
        let value = value_of(by, columns, &row.values)?;
        if value == Value::Null {
            continue;
        }
        let better = best.as_ref().is_none_or(|(_, known, arrival)| {
            let order = match call.function.starts_with("arg_min") {
                true => order(&value, known),
                false => order(known, &value),
            };
            let arrival = match call.function.ends_with("_last") {
                true => arrival.cmp(&row.arrival),
                false => row.arrival.cmp(arrival),
            };
            order.then(arrival).is_lt()
        });
        if better {
            best = Some((index, value, row.arrival));
        }
    }
    Ok(best.map(|(index, ..)| index))
}

/// The value a share `fraction` of the way through the sorted values, between two of them by
/// straight line.
fn quantile(values: &mut [Value], fraction: f64) -> Value {
    values.sort_by(order);
    let Some(last) = values.len().checked_sub(1) else {
        return Value::Null;
    };
    let position = fraction * last as f64;
    let below = position.floor();
    let low = as_float(&values[below as usize]);
    let high = as_float(&values[last.min(below as usize + 1)]);
    let share = position - below;
    Value::Float(match share == 0.0 || low == high {
        true => low,
        false => low + share * (high - low),
    })
}

pub(super) fn sum(
    values: &[Value],
    data_type: &DataType,
    input_slack: f64,
) -> Result<(Value, f64)> {
    if values.is_empty() {
        return Ok((Value::Null, 0.0));
    }
    if data_type.is_floating() {
        let floats: Vec<f64> = values.iter().map(as_float).collect();
        let count = floats.len() as f64;
        let slack = RELATIVE_ERROR * largest(&floats) * count.sqrt() + input_slack * count;
        return Ok((Value::Float(total(&floats)), slack));
    }
    let overflow = || Error::limit(format!("a sum does not fit {data_type}"));
    let mut exact: i128 = 0;
    for value in values {
        let (Value::Integer(part) | Value::Decimal(part, _)) = value else {
            return Err(Error::schema(format!("cannot add {value:?}")));
        };
        exact = exact.checked_add(*part).ok_or_else(overflow)?;
    }
    let fits = match data_type {
        DataType::UInt64 => u64::try_from(exact).is_ok(),
        DataType::Decimal128(..) => exact.unsigned_abs() < 10u128.pow(38),
        _ => i64::try_from(exact).is_ok(),
    };
    match (fits, data_type) {
        (false, _) => Err(overflow()),
        (true, DataType::Decimal128(_, scale)) => Ok((Value::Decimal(exact, *scale), 0.0)),
        (true, _) => Ok((Value::Integer(exact), 0.0)),
    }
}

/// Mean, variances and deviations.
pub(super) fn moments(function: &str, values: &[Value], input_slack: f64) -> (Value, f64) {
    let floats: Vec<f64> = values.iter().map(as_float).collect();
    let count = floats.len() as f64;
    let fewest = if matches!(function, "variance" | "stddev") {
        2
    } else {
        1
    };
    if floats.len() < fewest {
        return (Value::Null, 0.0);
    }
    let mean = total(&floats) / count;
    let magnitude = largest(&floats);
    let off = RELATIVE_ERROR * magnitude + input_slack;
    if function == "mean" {
        return (Value::Float(mean), off);
    }
    let squares: Vec<f64> = floats
        .iter()
        .map(|float| (float - mean) * (float - mean))
        .collect();
    let degrees = if fewest == 2 { count - 1.0 } else { count };
    let variance = total(&squares) / degrees;
    match function {
        "variance" | "variance_population" => {
            (Value::Float(variance), off * variance.sqrt() + off * off)
        }
        _ => (Value::Float(variance.sqrt()), off),
    }
}

fn largest(floats: &[f64]) -> f64 {
    let finite = floats.iter().filter(|float| float.is_finite());
    finite.fold(0.0, |largest: f64, float| largest.max(float.abs()))
}

/// A sum that keeps what rounding would lose.
///
/// # Source
/// Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974.
fn total(floats: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for float in floats {
        let next = sum + float;
        lost += match sum.abs() >= float.abs() {
            true => (sum - next) + float,
            false => (float - next) + sum,
        };
        sum = next;
    }
    if sum.is_finite() { sum + lost } else { sum }
}
