//! A table as rows of plain values, and expressions read on one row at a time.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampMillisecondArray, UInt8Array, UInt64Array,
};
use arrow_schema::DataType;
use tersecades_columnar::predicate::Comparison;
use tersecades_columnar::types::Value;

use super::random::Random;
use crate::expression::{Arithmetic, Expression};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int(i128),
    Decimal(i128, i8),
    Float(f64),
    Text(String),
    Error,
}

impl Cell {
    /// The value in an array that the engine made.
    pub(super) fn of(array: &ArrayRef, row: usize) -> Cell {
        if array.is_null(row) {
            return Cell::Null;
        }
        match array.data_type() {
            DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
            DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Decimal128(_, scale) => {
                Cell::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
            }
            _ => {
                let one = array.slice(row, 1);
                let one = arrow_cast::cast(&one, &DataType::Decimal128(20, 0)).unwrap();
                Cell::Int(one.as_primitive::<Decimal128Type>().value(0))
            }
        }
    }

    pub(super) fn same(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (a, b) => a == b,
        }
    }

    fn float(&self) -> f64 {
        match self {
            Cell::Int(value) => *value as f64,
            Cell::Decimal(digits, scale) => *digits as f64 / 10f64.powi(i32::from(*scale)),
            Cell::Float(value) => *value,
            other => panic!("{other:?} is no number"),
        }
    }
}

fn truth(value: Option<bool>) -> Cell {
    value.map_or(Cell::Null, Cell::Bool)
}

pub(super) struct Table {
    pub(super) batch: RecordBatch,
    rows: Vec<Vec<Cell>>,
    names: Vec<String>,
    failed: std::cell::Cell<bool>,
}

/// How the values of a column vary: the layouts that codecs are made for, and noise.
fn value(random: &mut Random, pattern: usize, row: usize) -> i64 {
    match pattern {
        0 => 1,
        1 if random.below(50) == 0 => random.below(7) as i64 - 3,
        1 => 0,
        2 => row as i64 / 37 % 5,
        3 => row as i64 - 20,
        4 => *random.pick(&[i64::MIN, i64::MAX, -1, 0, 1, 255, 1 << 31]),
        _ => random.below(9) as i64 - 3,
    }
}

impl Table {
    pub(super) fn random(random: &mut Random) -> Table {
        let rows = *random.pick(&[1, 63, 64, 65, 300, 1_000, 1_025, 2_100]);
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        for name in ["i", "b", "c", "u", "d", "s", "f", "t", "m"] {
            let (pattern, nulls) = (random.below(7), *random.pick(&[0, 0, 3, 100]));
            let values: Vec<Option<i64>> = (0..rows)
                .map(|row| {
                    let value = value(random, pattern, row);
                    (random.below(100) >= nulls).then_some(value)
                })
                .collect();
            columns.push((name.to_owned(), column(name, &values)));
        }
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let cells = (0..rows)
            .map(|row| {
                columns
                    .iter()
                    .map(|(_, array)| arriving(array, row))
                    .collect()
            })
            .collect();
        let fields = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(fields).unwrap();
        Table {
            batch,
            rows: cells,
            names,
            failed: false.into(),
        }
    }

    /// Whether `expression` is true on `row`.
    pub(super) fn holds(&self, expression: &Expression, row: usize) -> bool {
        condition(self.evaluate(expression, row)) == Cell::Bool(true)
    }

    /// Whether any part of `expression` overflows on `row`.
    pub(super) fn may_fail(&self, expression: &Expression, row: usize) -> bool {
        self.failed.set(false);
        self.evaluate(expression, row);
        self.failed.get()
    }

    pub(super) fn evaluate(&self, expression: &Expression, row: usize) -> Cell {
        let of = |expression: &Expression| self.evaluate(expression, row);
        match expression {
            Expression::Column(name) => {
                self.rows[row][self.names.iter().position(|known| known == name).unwrap()].clone()
            }
            Expression::Literal(value) => literal(value),
            Expression::Compare(how, a, b) => compare(*how, a, b, (of(a), of(b))),
            Expression::And(a, b) => match (condition(of(a)), condition(of(b))) {
                (Cell::Bool(false), _) | (_, Cell::Bool(false)) => Cell::Bool(false),
                (Cell::Error, _) | (_, Cell::Error) => Cell::Error,
                (Cell::Null, _) | (_, Cell::Null) => Cell::Null,
                _ => Cell::Bool(true),
            },
            Expression::Or(a, b) => match (condition(of(a)), condition(of(b))) {
                (Cell::Bool(true), _) | (_, Cell::Bool(true)) => Cell::Bool(true),
                (Cell::Error, _) | (_, Cell::Error) => Cell::Error,
                (Cell::Null, _) | (_, Cell::Null) => Cell::Null,
                _ => Cell::Bool(false),
            },
            Expression::Not(a) => match condition(of(a)) {
                Cell::Bool(value) => Cell::Bool(!value),
                other => other,
            },
            Expression::IsNull(a) => Cell::Bool(of(a) == Cell::Null),
            Expression::OneOf(a, list) => {
                let (mut found, mut unknown) = (false, of(a) == Cell::Null);
                for value in list {
                    let b = Expression::Literal(value.clone());
                    match compare(Comparison::Equal, a, &b, (of(a), literal(value))) {
                        Cell::Bool(equal) => found |= equal,
                        _ => unknown = true,
                    }
                }
                truth(if found {
                    Some(true)
                } else {
                    (!unknown).then_some(false)
                })
            }
            Expression::Cast(a, DataType::Float64) => match of(a) {
                cell @ (Cell::Null | Cell::Error) => cell,
                value => Cell::Float(value.float()),
            },
            Expression::Cast(a, _) => of(a),
            Expression::Arithmetic(how, a, b) => {
                let float = is_float(a) || is_float(b);
                let result = arithmetic(*how, float, &of(a), &of(b));
                if result == Cell::Error {
                    self.failed.set(true);
                }
                result
            }
            other => panic!("{other} is not drawn"),
        }
    }
}

fn column(name: &str, values: &[Option<i64>]) -> ArrayRef {
    let cut = |values: &[Option<i64>], low: i64, high: i64| -> Vec<Option<i64>> {
        values
            .iter()
            .map(|value| value.map(|value| value.clamp(low, high)))
            .collect()
    };
    match name {
        "i" => Arc::new(Int32Array::from_iter(
            values.iter().map(|value| value.map(|value| value as i32)),
        )),
        "b" => Arc::new(Int64Array::from(values.to_vec())),
        "c" => Arc::new(UInt8Array::from_iter(
            cut(values, 0, 255)
                .into_iter()
                .map(|value| value.map(|value| value as u8)),
        )),
        "u" => Arc::new(UInt64Array::from_iter(values.iter().map(|value| {
            value.map(|value| value.rem_euclid(9) as u64 * (u64::MAX / 8))
        }))),
        "d" => Arc::new(Float64Array::from_iter(values.iter().map(|value| {
            value.map(|value| match value {
                i64::MIN => f64::NAN,
                i64::MAX => f64::INFINITY,
                255 => -0.0,
                -1 => -f64::NAN,
                value => value as f64 / 2.0,
            })
        }))),
        "s" => Arc::new(StringArray::from_iter(values.iter().map(|value| {
            value
                .map(|value| ["", "a", "b", "bb", "c", "zz", "Ärger"][value.rem_euclid(7) as usize])
        }))),
        "f" => Arc::new(BooleanArray::from_iter(
            values.iter().map(|value| value.map(|value| value % 2 == 0)),
        )),
        "t" => Arc::new(TimestampMillisecondArray::from(values.to_vec())),
        _ => {
            let digits = cut(values, -1_000, 1_000);
            let digits = digits
                .into_iter()
                .map(|value| value.map(|value| i128::from(value) * 25));
            let array = Decimal128Array::from_iter(digits);
            Arc::new(array.with_precision_and_scale(10, 2).unwrap())
        }
    }
}

fn arriving(array: &ArrayRef, row: usize) -> Cell {
    match array.data_type() {
        _ if array.is_null(row) => Cell::Null,
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::Timestamp(..) => {
            let one = arrow_cast::cast(&array.slice(row, 1), &DataType::Int64).unwrap();
            Cell::Int(i128::from(one.as_primitive::<Int64Type>().value(0)))
        }
        _ => Cell::of(array, row),
    }
}

fn literal(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Integer(value) => Cell::Int(*value),
        Value::Float(value) => Cell::Float(*value),
        Value::Decimal(digits, scale) => Cell::Decimal(*digits, *scale),
        Value::Text(text) => Cell::Text(text.clone()),
        Value::Binary(_) => panic!("not drawn"),
    }
}

/// Integers that stand for conditions are 0 and 1.
fn condition(cell: Cell) -> Cell {
    match cell {
        Cell::Int(value) => Cell::Bool(value == 1),
        other => other,
    }
}

fn is_float(expression: &Expression) -> bool {
    match expression {
        Expression::Column(name) => name == "d",
        Expression::Literal(value) => matches!(value, Value::Float(_)),
        Expression::Arithmetic(_, a, b) => is_float(a) || is_float(b),
        Expression::Cast(_, to) => *to == DataType::Float64,
        _ => false,
    }
}

fn compare(how: Comparison, a: &Expression, b: &Expression, cells: (Cell, Cell)) -> Cell {
    let is_literal = |side: &Expression| matches!(side, Expression::Literal(_));
    let is_time = |side: &Expression| *side == Expression::Column("t".into());
    let milliseconds = |text: &str| match text {
        "1970-01-01" => Cell::Int(0),
        _ => Cell::Decimal(25, 1),
    };
    let order = match cells {
        (Cell::Error, _) | (_, Cell::Error) => return Cell::Error,
        (Cell::Null, _) | (_, Cell::Null) => return Cell::Null,
        (x, Cell::Text(text)) if is_time(a) => order(&x, &milliseconds(&text)),
        (Cell::Text(text), y) if is_time(b) => order(&milliseconds(&text), &y),
        (Cell::Text(x), Cell::Text(y)) => x.as_bytes().cmp(y.as_bytes()),
        (Cell::Bool(x), y) => Cell::Bool(x).flag().cmp(&y.flag()),
        (x, Cell::Bool(y)) => x.flag().cmp(&Cell::Bool(y).flag()),
        // Integer constants take the type of a float column.
        (Cell::Int(x), y @ Cell::Float(_)) if is_literal(a) => order(&Cell::Float(x as f64), &y),
        (x @ Cell::Float(_), Cell::Int(y)) if is_literal(b) => order(&x, &Cell::Float(y as f64)),
        (x, y) => order(&x, &y),
    };
    Cell::Bool(match how {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    })
}

impl Cell {
    fn flag(&self) -> i128 {
        match self {
            Cell::Bool(value) => i128::from(*value),
            Cell::Int(value) => *value,
            other => panic!("{other:?} is no condition"),
        }
    }
}

fn order(a: &Cell, b: &Cell) -> Ordering {
    match (a, b) {
        (Cell::Float(x), Cell::Float(y)) => match (x.is_nan(), y.is_nan()) {
            (false, false) => x.partial_cmp(y).unwrap(),
            (x, y) => x.cmp(&y),
        },
        (Cell::Float(x), _) if x.is_nan() => Ordering::Greater,
        (_, Cell::Float(y)) if y.is_nan() => Ordering::Less,
        (Cell::Float(_), y) => order(y, a).reverse(),
        (_, Cell::Float(y)) if y.abs() > 1e25 => 0.0.partial_cmp(y).unwrap(),
        (x, Cell::Float(y)) => {
            // The whole part in integers, then what follows the point.
            let (digits, scale) = exact(x);
            let unit = 10i128.pow(scale as u32);
            let (whole, rest) = (digits.div_euclid(unit), digits.rem_euclid(unit));
            whole.cmp(&(y.floor() as i128)).then_with(|| {
                (rest as f64 / unit as f64)
                    .partial_cmp(&(y - y.floor()))
                    .unwrap()
            })
        }
        (x, y) => {
            let ((x, s), (y, t)) = (exact(x), exact(y));
            (x * 10i128.pow(6 - s as u32)).cmp(&(y * 10i128.pow(6 - t as u32)))
        }
    }
}

fn exact(cell: &Cell) -> (i128, i8) {
    match cell {
        Cell::Int(value) => (*value, 0),
        Cell::Decimal(digits, scale) => (*digits, *scale),
        other => panic!("{other:?} is not exact"),
    }
}

fn arithmetic(how: Arithmetic, float: bool, a: &Cell, b: &Cell) -> Cell {
    if *a == Cell::Error || *b == Cell::Error {
        return Cell::Error;
    }
    let wide = |cell: &Cell| matches!(cell, Cell::Int(value) if i64::try_from(*value).is_err());
    if !float && (wide(a) || wide(b)) {
        return Cell::Error;
    }
    if *a == Cell::Null || *b == Cell::Null {
        return Cell::Null;
    }
    let by_zero = b.float() == 0.0 && matches!(how, Arithmetic::Divide | Arithmetic::Remainder);
    if by_zero {
        return Cell::Null;
    }
    if float {
        let (x, y) = (a.float(), b.float());
        return Cell::Float(match how {
            Arithmetic::Add => x + y,
            Arithmetic::Subtract => x - y,
            Arithmetic::Multiply => x * y,
            Arithmetic::Divide => x / y,
            Arithmetic::Remainder => x % y,
        });
    }
    let ((x, _), (y, _)) = (exact(a), exact(b));
    let result = match how {
        Arithmetic::Add => x + y,
        Arithmetic::Subtract => x - y,
        Arithmetic::Multiply => x * y,
        Arithmetic::Divide => x / y,
        Arithmetic::Remainder => x % y,
    };
    match i64::try_from(result) {
        Ok(_) => Cell::Int(result),
        Err(_) => Cell::Error,
    }
}
