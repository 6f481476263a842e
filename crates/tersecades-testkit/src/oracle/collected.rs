//! Aggregates that look at every value of a group, and what a sketch may be off by.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::Value;
use tersecades_engine::plan::AggregateCall;

use super::Traveller;
use super::aggregate::{self, RELATIVE_ERROR};
use super::evaluate::{as_float, known, value_of};
use super::order::order;
use super::statistic;
use crate::data::{from_array, to_array};

/// Relative error of `approx_quantile`.
const QUANTILE_ERROR: f64 = 0.004;

/// Different values up to which `approx_count_distinct` is exact, and six times its standard
/// error beyond.
const DISTINCT_ERROR: (usize, f64) = (512, 6.0 * 0.0163);

/// The aggregates defined here.
pub(super) const NAMES: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "approx_median",
    "approx_quantile",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "correlation",
    "covariance",
    "covariance_population",
    "first",
    "histogram",
    "kurtosis",
    "kurtosis_population",
    "last",
    "mean_distinct",
    "mode",
    "product",
    "quantile_disc",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "skewness",
    "sum_distinct",
    "top_k",
];

/// The type of `function(argument)`.
///
/// # Errors
/// `SchemaMismatch` for arguments without meaning.
pub(super) fn result_type(function: &str, argument: DataType) -> Result<DataType> {
    let summed = || match &argument {
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, *scale),
        unsigned if unsigned.is_unsigned_integer() => DataType::UInt64,
        float if float.is_floating() => DataType::Float64,
        _ => DataType::Int64,
    };
    let numeric = argument.is_numeric();
    match function {
        "first" | "last" | "mode" | "any_value" | "quantile_disc" => Ok(argument),
        "bool_and" | "bool_or" if argument == DataType::Boolean => Ok(argument),
        "bit_and" | "bit_or" | "bit_xor" if argument.is_integer() => Ok(argument),
        "bit_and" | "bit_or" | "bit_xor" => Err(Error::schema("bits are those of integers")),
        "approx_count_distinct" => Ok(DataType::Int64),
        "regr_count" if numeric => Ok(DataType::Int64),
        "sum_distinct" if numeric => Ok(summed()),
        "top_k" => Ok(list_of(argument, true)),
        "histogram" if numeric => Ok(list_of(DataType::Struct(bucket_fields().into()), false)),
        _ if numeric => Ok(DataType::Float64),
        _ => Err(Error::schema(format!(
            "no aggregate {function}({argument})"
        ))),
    }
}

fn list_of(item: DataType, nullable: bool) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, nullable)))
}

fn bucket_fields() -> Vec<Field> {
    vec![
        Field::new("bucket", DataType::Float64, false),
        Field::new("count", DataType::Int64, false),
    ]
}

/// The result of `call` over rows whose arguments are `values`, and its slack.
///
/// # Errors
/// `LimitExceeded` for sums outside their type.
pub(super) fn compute(
    call: &AggregateCall,
    columns: &[(String, DataType)],
    rows: &[&Traveller],
    mut values: Vec<Value>,
) -> Result<(Value, f64)> {
    let function = call.function.as_str();
    if matches!(function, "first" | "last") {
        return Ok((at_end_of_time(function, rows, values), 0.0));
    }
    if let Some(by) = &call.by {
        let others = rows.iter().map(|row| value_of(by, columns, &row.values));
        let others = others.collect::<Result<Vec<_>>>()?;
        return Ok(match function.starts_with("regr_") {
            true => statistic::regression(function, &values, &others),
            false => together(function, &values, &others),
        });
    }
    values.retain(|value| *value != Value::Null);
    values.sort_by(order);
    if function.ends_with("_distinct") {
        values.dedup_by(|a, b| order(a, b).is_eq());
    }
    let data_type = aggregate::result_type(call, columns)?;
    let exact = |value: Value| Ok((value, 0.0));
    match function {
        "any_value" => exact(values.first().cloned().unwrap_or(Value::Null)),
        "bool_and" | "bool_or" => {
            let all = function == "bool_and";
            let decides = |value: &Value| known(value) == Some(!all);
            exact(match values.is_empty() {
                true => Value::Null,
                false => Value::from(values.iter().any(decides) != all),
            })
        }
        "bit_and" | "bit_or" | "bit_xor" => exact(joined(function, &values)),
        "mean_distinct" => Ok(aggregate::moments("mean", &values, 0.0)),
        "sum_distinct" => aggregate::sum(&values, &data_type, 0.0),
        "approx_count_distinct" => {
            let count = values.len();
            let slack = match count > DISTINCT_ERROR.0 {
                true => DISTINCT_ERROR.1 * count as f64,
                false => 0.0,
            };
            Ok((Value::from(count as u64), slack))
        }
        "approx_quantile" | "approx_median" => {
            let fraction = call.parameter.unwrap_or(0.5);
            let rank = (fraction * values.len().saturating_sub(1) as f64).floor() as usize;
            Ok(values.get(rank).map_or((Value::Null, 0.0), |value| {
                let value = as_float(value);
                (
                    Value::Float(value),
                    QUANTILE_ERROR * value.abs() + f64::MIN_POSITIVE,
                )
            }))
        }
        "product" | "skewness" | "kurtosis" | "kurtosis_population" => {
            Ok(statistic::form(function, &values))
        }
        "quantile_disc" => exact(at(&values, call.parameter.unwrap_or(0.0))),
        "mode" => exact(frequent(&values).into_iter().next().unwrap_or(Value::Null)),
        "top_k" => exact(top(call, &values, &data_type)),
        _ => exact(histogram(
            &values,
            call.parameter.unwrap_or(1.0),
            &data_type,
        )),
    }
}

/// Integers joined bit by bit.
fn joined(function: &str, values: &[Value]) -> Value {
    let integers = values.iter().filter_map(|value| match value {
        Value::Integer(integer) => Some(*integer),
        _ => None,
    });
    let joined = integers.reduce(|a, b| match function {
        "bit_and" => a & b,
        "bit_or" => a | b,
        _ => a ^ b,
    });
    joined.map_or(Value::Null, Value::Integer)
}

fn at_end_of_time(function: &str, rows: &[&Traveller], mut values: Vec<Value>) -> Value {
    let by_time = |index: &usize| (rows[*index].time_ns, rows[*index].arrival);
    let places = 0..rows.len();
    let place = match function {
        "first" => places.min_by_key(by_time),
        _ => places.max_by_key(by_time),
    };
    place.map_or(Value::Null, |place| values.swap_remove(place))
}

/// Covariances and correlation, in two passes.
fn together(function: &str, xs: &[Value], ys: &[Value]) -> (Value, f64) {
    let present = |(x, y): &(&Value, &Value)| **x != Value::Null && **y != Value::Null;
    let pairs: Vec<(f64, f64)> = xs
        .iter()
        .zip(ys)
        .filter(present)
        .map(|(x, y)| (as_float(x), as_float(y)))
        .collect();
    let count = pairs.len() as f64;
    let sums = pairs
        .iter()
        .fold((0.0, 0.0), |sums, (x, y)| (sums.0 + x, sums.1 + y));
    let means = (sums.0 / count, sums.1 / count);
    let product: f64 = pairs
        .iter()
        .map(|(x, y)| (x - means.0) * (y - means.1))
        .sum();
    let magnitude = |side: fn(&(f64, f64)) -> f64| {
        pairs
            .iter()
            .map(side)
            .fold(0.0, |most: f64, value| most.max(value.abs()))
    };
    let slack = 10.0 * RELATIVE_ERROR * magnitude(|pair| pair.0) * magnitude(|pair| pair.1);
    match function {
        "covariance" if pairs.len() > 1 => (Value::Float(product / (count - 1.0)), slack),
        "covariance_population" if !pairs.is_empty() => (Value::Float(product / count), slack),
        "correlation" => correlation(&pairs, means, product),
        _ => (Value::Null, 0.0),
    }
}

fn correlation(pairs: &[(f64, f64)], means: (f64, f64), product: f64) -> (Value, f64) {
    let constant =
        |side: fn(&(f64, f64)) -> f64| pairs.iter().all(|pair| side(pair) == side(&pairs[0]));
    if constant(|pair| pair.0) || constant(|pair| pair.1) {
        return (Value::Null, 0.0);
    }
    let squares: f64 = pairs.iter().map(|(x, _)| (x - means.0).powi(2)).sum();
    let others: f64 = pairs.iter().map(|(_, y)| (y - means.1).powi(2)).sum();
    (
        Value::Float(product / (squares.sqrt() * others.sqrt())),
        1e-7,
    )
}

/// The different ones of sorted values, most frequent first, the least of several first.
fn frequent(values: &[Value]) -> Vec<Value> {
    let mut runs: Vec<&[Value]> = values.chunk_by(|a, b| order(a, b).is_eq()).collect();
    runs.sort_by_key(|run| Reverse(run.len()));
    runs.into_iter().map(|run| canonical(&run[0])).collect()
}

/// The value of the row at a fraction of sorted values.
fn at(values: &[Value], fraction: f64) -> Value {
    let all = values.len() as f64;
    let behind = ((all - all * fraction).floor() as usize).min(values.len());
    let rank = (values.len() - behind).max(1);
    values.get(rank - 1).map_or(Value::Null, canonical)
}

/// The value with the one zero.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Float(float) => Value::Float(float + 0.0),
        other => other.clone(),
    }
}

fn top(call: &AggregateCall, values: &[Value], data_type: &DataType) -> Value {
    let mut frequent = frequent(values);
    frequent.truncate(call.parameter.unwrap_or(1.0) as usize);
    match data_type {
        DataType::List(item) => list(item, to_array(item.data_type(), &frequent)),
        _ => Value::Null,
    }
}

fn histogram(values: &[Value], width: f64, data_type: &DataType) -> Value {
    let mut buckets: Vec<(Value, i64)> = Vec::new();
    for value in values {
        let bucket = Value::Float((as_float(value) / width).floor());
        match buckets.last_mut() {
            Some((last, count)) if order(last, &bucket).is_eq() => *count += 1,
            _ => buckets.push((bucket, 1)),
        }
    }
    let ends = buckets
        .iter()
        .map(|(bucket, _)| (as_float(bucket) + 0.0) * width);
    let counts = buckets.iter().map(|(_, count)| *count);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from_iter_values(ends)),
        Arc::new(Int64Array::from_iter_values(counts)),
    ];
    let items = StructArray::new(bucket_fields().into(), columns, None);
    match data_type {
        DataType::List(item) => list(item, Arc::new(items)),
        _ => Value::Null,
    }
}

fn list(item: &Arc<Field>, items: ArrayRef) -> Value {
    let offsets = OffsetBuffer::from_lengths([items.len()]);
    let list = ListArray::new(Arc::clone(item), offsets, items, None);
    from_array(&list).swap_remove(0)
}
