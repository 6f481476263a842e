//! Whether two answers are the same, and where they first differ.
//!
//! Floats may differ by 1e-9 of their size plus the slack the oracle gives them; everything else
//! must be equal, with NaN equal to NaN and negative zero equal to zero.

use arrow_array::RecordBatch;
use tersecades_columnar::types::Value;
use tersecades_engine::plan::{Query, Step};

use super::Answer;
use super::aggregate::RELATIVE_ERROR;
use super::order::order;

/// Whether `got` is as good as `expected`, which may be off by `slack`.
pub fn is_same(expected: &Value, got: &Value, slack: f64) -> bool {
    match (expected, got) {
        (Value::Float(a), Value::Float(b)) if a.is_finite() && b.is_finite() => {
            (a - b).abs() <= RELATIVE_ERROR * a.abs().max(b.abs()) + slack
        }
        (Value::Float(_), Value::Float(_)) => order(expected, got).is_eq(),
        (Value::Integer(a), Value::Integer(b)) if slack > 0.0 => a.abs_diff(*b) as f64 <= slack,
        (Value::Text(a), Value::Binary(b)) | (Value::Binary(b), Value::Text(a)) => {
            a.as_bytes() == b.as_slice()
        }
        _ => expected == got,
    }
}

/// The first difference between two answers, in words; `None` when they are the same.
///
/// Late, skipped and untimed rows are not compared: not every way to run a query reports them.
pub fn difference(expected: &Answer, got: &Answer) -> Option<String> {
    if expected.columns != got.columns {
        return Some(format!(
            "columns\n  expected {:?}\n  got {:?}",
            expected.columns, got.columns
        ));
    }
    for (index, (row, other)) in expected.rows.iter().zip(&got.rows).enumerate() {
        for (column, (value, found)) in row.iter().zip(other).enumerate() {
            let slack = expected.slack.get(index).map_or(0.0, |slack| slack[column]);
            if !is_same(value, found, slack) {
                let name = &expected.columns[column].0;
                return Some(format!(
                    "row {index}, column `{name}`: expected {value:?}, got {found:?}\n\
                     {}",
                    around(expected, got, index)
                ));
            }
        }
    }
    let (rows, other) = (expected.rows.len(), got.rows.len());
    (rows != other).then(|| {
        let index = rows.min(other);
        format!(
            "expected {rows} rows, got {other}\n{}",
            around(expected, got, index)
        )
    })
}

/// Aggregates that add or multiply floats: how they round hangs on what is taken first.
const ADDING: [&str; 22] = [
    "sum",
    "mean",
    "mean_distinct",
    "product",
    "variance",
    "variance_population",
    "stddev",
    "stddev_population",
    "covariance",
    "covariance_population",
    "correlation",
    "skewness",
    "kurtosis",
    "kurtosis_population",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// How results of `query` differ: bit for bit, or as [`difference`] where it adds floats, which may
/// be off by `slack`.
pub fn batch_difference(
    query: &Query,
    expected: &[RecordBatch],
    got: &[RecordBatch],
    slack: &[Vec<f64>],
) -> Option<String> {
    if expected == got {
        return None;
    }
    let adds = |step: &Step| match step {
        Step::Aggregate { aggregates, .. } => {
            let mut functions = aggregates.iter().map(|call| call.function.as_str());
            functions.any(|function| ADDING.contains(&function))
        }
        _ => false,
    };
    let (Some(first), Some(other)) = (expected.first(), got.first()) else {
        return Some(format!("{} and {} batches", expected.len(), got.len()));
    };
    if !query.steps.iter().any(adds) {
        return Some(format!("expected {expected:?}\ngot {got:?}"));
    }
    let expected = Answer {
        slack: slack.to_vec(),
        ..Answer::from_batches(&first.schema(), expected)
    };
    difference(&expected, &Answer::from_batches(&other.schema(), got))
}

/// The rows of both answers around row `index`.
fn around(expected: &Answer, got: &Answer, index: usize) -> String {
    let mut text = String::new();
    for row in index.saturating_sub(2)..index + 3 {
        for (name, answer) in [("expected", expected), ("got     ", got)] {
            if let Some(values) = answer.rows.get(row) {
                text += &format!("  {name} [{row}] {values:?}\n");
            }
        }
    }
    text
}

/// Stops with a readable message when `got` differs from `expected`.
///
/// # Panics
/// When columns, rows or values differ.
#[track_caller]
pub fn assert_same(expected: &Answer, got: &Answer) {
    if let Some(difference) = difference(expected, got) {
        panic!("answers differ: {difference}");
    }
}
