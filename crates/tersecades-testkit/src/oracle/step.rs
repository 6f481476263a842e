//! The steps that work row by row: filter, project, look up; and casts.

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, Value};
use tersecades_engine::expression::Expression;
use tersecades_engine::plan::LookupTable;

use super::evaluate::{as_float, in_range, known, position, type_of, value_of};
use super::order::order;
use super::{Flow, tick_ns};

/// Keeps rows where `condition` is true.
pub(crate) fn filter(mut flow: Flow, condition: &Expression) -> Result<Flow> {
    let mut kept = Vec::new();
    for row in flow.rows {
        if known(&value_of(condition, &flow.columns, &row.values)?) == Some(true) {
            kept.push(row);
        }
    }
    flow.rows = kept;
    Ok(flow)
}

/// Replaces the columns by the listed ones.
pub(crate) fn project(flow: Flow, list: &[(String, Expression)]) -> Result<Flow> {
    let mut columns = Vec::new();
    for (name, expression) in list {
        columns.push((name.clone(), type_of(expression, &flow.columns)?));
    }
    let mut rows = Vec::new();
    for mut row in flow.rows {
        let mut values = Vec::new();
        let mut slack = Vec::new();
        for (_, expression) in list {
            values.push(value_of(expression, &flow.columns, &row.values)?);
            let mut off = 0.0;
            for name in expression.columns() {
                off += row.slack[position(name, &flow.columns)?];
            }
            slack.push(off);
        }
        (row.values, row.slack) = (values, slack);
        rows.push(row);
    }
    Ok(Flow {
        columns,
        rows,
        unit: flow.unit,
        zone: flow.zone.clone(),
        timed: flow.timed,
    })
}

/// Adds columns of the table row whose key is equal; rows without one are dropped.
pub(crate) fn look_up(
    mut flow: Flow,
    table: &LookupTable,
    (stream_key, table_key): (&str, &str),
    added: &[(String, String)],
) -> Result<Flow> {
    let table_columns = super::columns_of(&table.rows.schema());
    let table_rows = crate::data::from_batch(&table.rows);
    let key = position(stream_key, &flow.columns)?;
    let other = position(table_key, &table_columns)?;
    for (index, row) in table_rows.iter().enumerate() {
        let same = |earlier: &Vec<Value>| order(&earlier[other], &row[other]).is_eq();
        if row[other] != Value::Null && table_rows[..index].iter().any(same) {
            return Err(Error::invalid(format!(
                "a key of table `{}` repeats",
                table.name
            )));
        }
    }
    let mut kept = Vec::new();
    for mut row in flow.rows {
        let matches = |candidate: &&Vec<Value>| {
            row.values[key] != Value::Null && order(&candidate[other], &row.values[key]).is_eq()
        };
        let Some(found) = table_rows.iter().find(matches) else {
            continue;
        };
        for (from, _) in added {
            row.values
                .push(found[position(from, &table_columns)?].clone());
            row.slack.push(0.0);
        }
        kept.push(row);
    }
    flow.rows = kept;
    for (from, to) in added {
        let data_type = table_columns[position(from, &table_columns)?].1.clone();
        flow.columns.push((to.clone(), data_type));
    }
    Ok(hide_repeats(flow))
}

/// Of columns with one name, the last stays.
fn hide_repeats(mut flow: Flow) -> Flow {
    let mut index = 0;
    while index < flow.columns.len() {
        let name = flow.columns[index].0.clone();
        if flow.columns[index + 1..]
            .iter()
            .any(|(later, _)| *later == name)
        {
            flow.columns.remove(index);
            for row in &mut flow.rows {
                row.values.remove(index);
                row.slack.remove(index);
            }
        } else {
            index += 1;
        }
    }
    flow
}

/// `value` of type `from` as type `to`.
///
/// Floats become integers by cutting the fraction off, and become narrower floats by rounding.
///
/// # Errors
/// `LimitExceeded` when `to` cannot hold it, `Unsupported` for pairs without a cast.
pub fn cast(value: &Value, from: &DataType, to: &DataType) -> Result<Value> {
    if *value == Value::Null || from == to {
        return Ok(value.clone());
    }
    let outside = || Error::limit(format!("{value:?} does not fit {to}"));
    match (value, from, to) {
        (Value::Integer(ticks), DataType::Timestamp(a, _), DataType::Timestamp(b, _)) => {
            let nanos = ticks * tick_ns(*a);
            in_range(Value::Integer(nanos.div_euclid(tick_ns(*b))), to)
        }
        (Value::Integer(integer), _, DataType::Boolean) => Ok(Value::from(*integer != 0)),
        (_, _, DataType::Float64) if from.is_numeric() => Ok(Value::Float(as_float(value))),
        (_, _, DataType::Float32) if from.is_numeric() => {
            Ok(Value::Float(f64::from(as_float(value) as f32)))
        }
        (Value::Integer(_), _, _) if matches!(Physical::of(to)?, Physical::Integer { .. }) => {
            in_range(value.clone(), to)
        }
        (Value::Float(float), _, _) if to.is_integer() => {
            let whole = float.trunc();
            match whole.abs() < 1e30 {
                true => in_range(Value::Integer(whole as i128), to),
                false => Err(outside()),
            }
        }
        _ => Err(Error::unsupported(format!("no cast from {from} to {to}"))),
    }
}
