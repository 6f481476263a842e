//! Answers of either engine as rows of text, and when two of them are the same.

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use tersecades_engine::Result;
use tersecades_sql::{Answer, Session};

/// Rows of cells.
pub(crate) type Rows = Vec<Vec<String>>;

/// Largest relative difference of two floats that are the same answer.
const TOLERANCE: f64 = 1e-9;

/// Runs `text`; the rows of its last statement.
pub(crate) fn run(session: &mut Session, text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    for answer in session.sql(text)? {
        rows.clear();
        if let Answer::Rows(results) = answer {
            for batch in results {
                push_rows(&batch?, &mut rows);
            }
        }
    }
    Ok(rows)
}

fn push_rows(batch: &RecordBatch, rows: &mut Rows) {
    let options = FormatOptions::new()
        .with_null("NULL")
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    for row in 0..batch.num_rows() {
        let cells = columns
            .iter()
            .map(|column| escaped(&column.value(row).to_string()));
        rows.push(cells.collect());
    }
}

fn escaped(cell: &str) -> String {
    if cell.is_empty() {
        return "(empty)".to_owned();
    }
    cell.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
}

/// What differs between two answers; rows in any order unless `ordered`.
pub(crate) fn difference(ours: &Rows, theirs: &Rows, ordered: bool) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} rows, expected {}", ours.len(), theirs.len()));
    }
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    if !ordered {
        ours.sort_by_cached_key(|row| sort_key(row));
        theirs.sort_by_cached_key(|row| sort_key(row));
    }
    let differs = |(a, b): &(&Vec<String>, &Vec<String>)| {
        a.len() != b.len() || a.iter().zip(b.iter()).any(|(a, b)| !same(a, b))
    };
    let (a, b) = ours.iter().zip(&theirs).find(differs)?;
    Some(format!("{}, expected {}", a.join("\t"), b.join("\t")))
}

/// Cells with floats cut to fewer digits than they may differ in, then with almost all digits.
fn sort_key(row: &[String]) -> Vec<String> {
    let cut = |cell: &String, digits: usize| match cell.parse::<f64>() {
        Ok(number) => format!("{number:.digits$e}"),
        Err(_) => cell.clone(),
    };
    let rough = row.iter().map(|cell| cut(cell, 6));
    rough.chain(row.iter().map(|cell| cut(cell, 14))).collect()
}

fn same(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) if a.is_nan() || b.is_nan() => a.is_nan() == b.is_nan(),
        (Ok(a), Ok(b)) => a == b || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()),
        _ => false,
    }
}
