//! Operators on rows, by their definitions.

use std::cmp::Ordering;

use tersecades_columnar::types::Value;

use super::Row;
use super::order::{order, order_rows};

/// How rows sort: a column, greatest first, nulls first.
pub type SortColumn = (usize, bool, bool);

/// `rows` in the order of `by`; equal ones as they came.
pub fn sort(rows: &[Row], by: &[SortColumn]) -> Vec<Row> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| {
        let parts = by.iter().map(|(column, descending, nulls_first)| {
            let (a, b) = (&a[*column], &b[*column]);
            match (a == &Value::Null, b == &Value::Null) {
                (true, true) => Ordering::Equal,
                (true, false) if *nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if *nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) if *descending => order(b, a),
                (false, false) => order(a, b),
            }
        });
        parts.fold(Ordering::Equal, Ordering::then)
    });
    sorted
}

/// The first `count` rows after `offset`.
pub fn limit(rows: &[Row], count: usize, offset: usize) -> Vec<Row> {
    rows.iter().skip(offset).take(count).cloned().collect()
}

/// The first of equal rows.
pub fn distinct(rows: &[Row]) -> Vec<Row> {
    let mut first: Vec<Row> = Vec::new();
    for row in rows {
        if !first.iter().any(|known| order_rows(known, row).is_eq()) {
            first.push(row.clone());
        }
    }
    first
}
