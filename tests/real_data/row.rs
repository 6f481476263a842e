//! Rows as plain values, to be sorted, compared and printed.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::types::logical_type;

/// Sums of floats of both signs cancel; what is left of them is known to this only.
const FLOAT_ABSOLUTE: f64 = 1e-10;
const FLOAT_RELATIVE: f64 = 1e-9;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    /// Integers, and times in ticks.
    Integer(i64),
    Float(f64),
    Text(String),
}

pub(crate) type Row = Vec<Cell>;

impl Cell {
    /// Total order, nulls last; floats by value.
    pub(crate) fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Integer(a), Cell::Integer(b)) => a.cmp(b),
            (Cell::Float(a), Cell::Float(b)) => a.total_cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Cell::Integer(_) => 0,
            Cell::Float(_) => 1,
            Cell::Text(_) => 2,
            Cell::Null => 3,
        }
    }

    /// Equal; floats up to rounding.
    pub(crate) fn agrees(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => {
                let slack = FLOAT_ABSOLUTE.max(FLOAT_RELATIVE * a.abs().max(b.abs()));
                (a - b).abs() <= slack || a == b || (a.is_nan() && b.is_nan())
            }
            _ => self == other,
        }
    }
}

/// Order of whole rows, first column first.
pub(crate) fn row_order(a: &Row, b: &Row) -> Ordering {
    let unequal = a
        .iter()
        .zip(b)
        .map(|(a, b)| a.order(b))
        .find(|order| order.is_ne());
    unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// The rows of record batches, in order.
pub(crate) fn rows_of<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<Cell>> = batch.columns().iter().map(cells).collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            columns
                .iter()
                .map(|column| column[row].clone())
                .collect::<Row>()
        }));
    }
    rows
}

fn cells(array: &ArrayRef) -> Vec<Cell> {
    let known = |row: usize, cell: Cell| if array.is_null(row) { Cell::Null } else { cell };
    let rows = 0..array.len();
    match logical_type(array.data_type()) {
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            rows.map(|row| known(row, Cell::Float(values.value(row))))
                .collect()
        }
        DataType::Utf8 => {
            let texts = cast(array, &DataType::Utf8).unwrap();
            let texts = texts.as_string::<i32>();
            rows.map(|row| match texts.is_null(row) {
                true => Cell::Null,
                false => Cell::Text(texts.value(row).to_owned()),
            })
            .collect()
        }
        _ => {
            let values = cast(array, &DataType::Int64).unwrap();
            let values = values.as_primitive::<Int64Type>();
            rows.map(|row| known(row, Cell::Integer(values.value(row))))
                .collect()
        }
    }
}

/// Fails, showing the first difference, unless the rows agree one by one.
pub(crate) fn assert_rows_agree(what: &str, got: &[Row], expected: &[Row]) {
    for (index, (a, b)) in got.iter().zip(expected).enumerate() {
        let agree = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b));
        assert!(
            agree,
            "{what}, row {index}:\n  got      {a:?}\n  expected {b:?}"
        );
    }
    let (a, b) = (got.len(), expected.len());
    assert_eq!(
        a,
        b,
        "{what}: first row too many: {:?}",
        got.get(b).or(expected.get(a))
    );
}
