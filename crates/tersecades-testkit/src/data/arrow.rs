//! Rows of values to Arrow and back.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_array::{Decimal128Array, Float32Array, Float64Array, UInt64Array};
use arrow_schema::{DataType, SchemaRef};
use tersecades_columnar::types::{Value, logical_type};

/// An array of `data_type` with these values.
///
/// # Panics
/// When a value does not fit the type.
pub fn to_array(data_type: &DataType, values: &[Value]) -> ArrayRef {
    let integers = || {
        values.iter().map(|value| match value {
            Value::Integer(integer) => Some(*integer),
            Value::Null => None,
            other => panic!("{other:?} is no {data_type}"),
        })
    };
    let float = |value: &Value| match value {
        Value::Float(float) => Some(*float),
        _ => None,
    };
    match data_type {
        DataType::Boolean => Arc::new(
            integers()
                .map(|bit| bit.map(|bit| bit != 0))
                .collect::<BooleanArray>(),
        ),
        DataType::UInt64 => {
            let lanes = integers().map(|i| i.map(|i| u64::try_from(i).unwrap()));
            Arc::new(lanes.collect::<UInt64Array>())
        }
        DataType::Float32 => {
            let lanes = values
                .iter()
                .map(|value| float(value).map(|float| float as f32));
            Arc::new(lanes.collect::<Float32Array>())
        }
        DataType::Float64 => Arc::new(values.iter().map(float).collect::<Float64Array>()),
        DataType::Decimal128(..) => {
            let digits = values.iter().map(|value| match value {
                Value::Decimal(digits, _) => Some(*digits),
                _ => None,
            });
            let array = digits.collect::<Decimal128Array>();
            Arc::new(array.with_data_type(data_type.clone()))
        }
        DataType::Utf8 => text_array(values),
        DataType::Binary => binary_array(values),
        _ => {
            let lanes = integers().map(|i| i.map(|i| i64::try_from(i).unwrap()));
            let array: ArrayRef = Arc::new(lanes.collect::<Int64Array>());
            narrow(&array, data_type)
        }
    }
}

/// Date32 casts from 32 bits only.
fn narrow(array: &ArrayRef, data_type: &DataType) -> ArrayRef {
    let options = arrow_cast::CastOptions {
        safe: false,
        ..Default::default()
    };
    let cast = |array: &ArrayRef, to: &DataType| {
        arrow_cast::cast_with_options(array, to, &options).unwrap()
    };
    match data_type {
        DataType::Date32 => cast(&cast(array, &DataType::Int32), data_type),
        _ => cast(array, data_type),
    }
}

fn text_array(values: &[Value]) -> ArrayRef {
    let mut builder = StringBuilder::new();
    for value in values {
        match value {
            Value::Text(text) => builder.append_value(text),
            _ => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

fn binary_array(values: &[Value]) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    for value in values {
        match value {
            Value::Binary(bytes) => builder.append_value(bytes),
            _ => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

/// The values of an array; dictionaries give the values behind the codes, lists their text.
///
/// # Panics
/// For types that are not supported.
pub fn from_array(array: &dyn Array) -> Vec<Value> {
    let data_type = logical_type(array.data_type());
    if *array.data_type() != data_type {
        return from_array(&arrow_cast::cast(array, &data_type).unwrap());
    }
    if data_type.is_nested() {
        return texts_of_lists(array);
    }
    let value = |row: usize| match &data_type {
        DataType::Boolean => Value::from(array.as_boolean().value(row)),
        DataType::UInt64 => Value::from(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float32 => {
            Value::Float(f64::from(array.as_primitive::<Float32Type>().value(row)))
        }
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            Value::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
        }
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(row)),
        DataType::Binary => Value::Binary(array.as_binary::<i32>().value(row).to_vec()),
        other => panic!("columns of type {other} are not supported"),
    };
    let integers = match &data_type {
        DataType::Date32 => Some(arrow_cast::cast(array, &DataType::Int32).unwrap()),
        DataType::Timestamp(..) => Some(arrow_cast::cast(array, &DataType::Int64).unwrap()),
        other if other.is_signed_integer() => Some(arrow_cast::cast(array, other).unwrap()),
        other if other.is_integer() && *other != DataType::UInt64 => {
            Some(arrow_cast::cast(array, other).unwrap())
        }
        _ => None,
    };
    if let Some(integers) = integers {
        let integers = arrow_cast::cast(&integers, &DataType::Int64).unwrap();
        let lanes = integers.as_primitive::<Int64Type>();
        return lanes
            .iter()
            .map(|lane| lane.map_or(Value::Null, Value::from))
            .collect();
    }
    let rows = 0..array.len();
    rows.map(|row| {
        if array.is_null(row) {
            Value::Null
        } else {
            value(row)
        }
    })
    .collect()
}

fn texts_of_lists(array: &dyn Array) -> Vec<Value> {
    let options = arrow_cast::display::FormatOptions::new().with_null("null");
    let texts = arrow_cast::display::ArrayFormatter::try_new(array, &options).unwrap();
    let text = |row: usize| match array.is_null(row) {
        true => Value::Null,
        false => Value::Text(texts.value(row).to_string()),
    };
    (0..array.len()).map(text).collect()
}

/// The rows of a batch.
pub fn from_batch(batch: &RecordBatch) -> Vec<Vec<Value>> {
    let columns: Vec<Vec<Value>> = batch
        .columns()
        .iter()
        .map(|array| from_array(array.as_ref()))
        .collect();
    let row = |index: usize| columns.iter().map(|column| column[index].clone()).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// `rows` as record batches of at most `batch_rows` rows each; no rows make one empty batch.
///
/// # Panics
/// When a value does not fit its column.
pub fn to_batches(schema: &SchemaRef, rows: &[Vec<Value>], batch_rows: usize) -> Vec<RecordBatch> {
    let batch = |rows: &[Vec<Value>]| {
        let arrays = schema.fields().iter().enumerate().map(|(index, field)| {
            let values: Vec<Value> = rows.iter().map(|row| row[index].clone()).collect();
            to_array(field.data_type(), &values)
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays.collect(), &options).unwrap()
    };
    match rows.is_empty() {
        true => vec![batch(&[])],
        false => rows.chunks(batch_rows.max(1)).map(batch).collect(),
    }
}
