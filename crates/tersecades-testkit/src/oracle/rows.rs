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

/// Whether two rows have equal values in some columns; null equals null.
fn same(a: &Row, b: &Row, columns: &[usize]) -> bool {
    columns.iter().all(|c| order(&a[*c], &b[*c]).is_eq())
}

/// Each row and the value `column` had `count` rows earlier among rows with equal `keys`.
pub fn lag(rows: &[Row], column: usize, count: usize, keys: &[usize]) -> Vec<Row> {
    let with = |(index, row): (usize, &Row)| {
        let earlier = rows[..index]
            .iter()
            .rev()
            .filter(|other| same(other, row, keys));
        let value = earlier
            .skip(count - 1)
            .map(|other| other[column].clone())
            .next();
        let mut row = row.clone();
        row.push(value.unwrap_or(Value::Null));
        row
    };
    rows.iter().enumerate().map(with).collect()
}

/// Rows in which `columns` differ from the row with equal `keys` before, with their earlier values
/// and, where `time` is a column, what passed since the first row in which they had them.
pub fn changes(rows: &[Row], columns: &[usize], keys: &[usize], time: Option<usize>) -> Vec<Row> {
    let mut changed = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let before: Vec<&Row> = rows[..index]
            .iter()
            .filter(|other| same(other, row, keys))
            .collect();
        let Some(last) = before.last().filter(|last| !same(last, row, columns)) else {
            continue;
        };
        let run = before
            .iter()
            .rev()
            .take_while(|other| same(other, last, columns));
        let first = run.last().unwrap_or(last);
        let mut row = row.clone();
        row.extend(columns.iter().map(|column| first[*column].clone()));
        if let Some(time) = time {
            row.push(match (&row[time], &first[time]) {
                (Value::Integer(now), Value::Integer(since)) => Value::Integer(now - since),
                _ => Value::Null,
            });
        }
        changed.push(row);
    }
    changed
}
