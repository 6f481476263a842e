//! Which row of one result is which of another.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::DataType;
use tersecades_columnar::error::Result;

/// The windows of rows: start and end in ticks.
type Span = (i64, i64);

/// Rows of two results by what identifies them.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// The same row in both.
    pub(super) pairs: Vec<(u32, u32)>,
    /// Rows of the first that the second lacks.
    pub(super) missing: usize,
    /// Rows of the second that the first lacks.
    pub(super) extra: usize,
}

/// Rows of one result with equal keys, if there are any, and their windows.
type Groups = HashMap<Option<OwnedRow>, Vec<(u32, Span)>>;

/// Pairs the rows of `a` and `b` by `keys` and, where both have windows, by these: first by equal
/// windows, then in order by windows that overlap.
///
/// # Errors
/// `SchemaMismatch` when a key is no column or differs in type.
pub(super) fn pair(a: &RecordBatch, b: &RecordBatch, keys: &[String]) -> Result<Pairing> {
    let fields = keys.iter().map(|key| {
        let field = a.schema_ref().field_with_name(key)?;
        Ok(SortField::new(field.data_type().clone()))
    });
    let converter = RowConverter::new(fields.collect::<Result<Vec<_>>>()?)?;
    let windowed = spans(a)?.is_some() && spans(b)?.is_some();
    let (left, mut right) = (
        groups(a, keys, &converter, windowed)?,
        groups(b, keys, &converter, windowed)?,
    );
    let mut pairing = Pairing::default();
    for (key, rows) in left {
        let others = right.remove(&key).unwrap_or_default();
        pairing.group(rows, others);
    }
    pairing.extra += right.values().map(Vec::len).sum::<usize>();
    pairing.pairs.sort_unstable();
    Ok(pairing)
}

fn groups(
    batch: &RecordBatch,
    keys: &[String],
    converter: &RowConverter,
    windowed: bool,
) -> Result<Groups> {
    let mut columns: Vec<ArrayRef> = Vec::new();
    for key in keys {
        columns.push(batch.column(batch.schema_ref().index_of(key)?).clone());
    }
    let spans = match windowed {
        true => spans(batch)?,
        false => None,
    };
    let rows = match columns.is_empty() {
        true => None,
        false => Some(converter.convert_columns(&columns)?),
    };
    let mut groups = Groups::new();
    for row in 0..batch.num_rows() {
        let key = rows.as_ref().map(|rows| rows.row(row).owned());
        let span = spans.as_ref().map_or((0, 1), |spans| spans[row]);
        groups.entry(key).or_default().push((row as u32, span));
    }
    Ok(groups)
}

fn spans(batch: &RecordBatch) -> Result<Option<Vec<Span>>> {
    let ticks = |name: &str| -> Result<Option<ArrayRef>> {
        let column = batch.column_by_name(name);
        let column = column.filter(|column| matches!(column.data_type(), DataType::Timestamp(..)));
        Ok(match column {
            Some(column) => Some(arrow_cast::cast(column, &DataType::Int64)?),
            None => None,
        })
    };
    let (Some(starts), Some(ends)) = (ticks("window_start")?, ticks("window_end")?) else {
        return Ok(None);
    };
    let starts = starts.as_primitive::<Int64Type>();
    let ends = ends.as_primitive::<Int64Type>();
    let both = starts.values().iter().zip(ends.values());
    Ok(Some(both.map(|(start, end)| (*start, *end)).collect()))
}

impl Pairing {
    /// Pairs rows of equal keys.
    fn group(&mut self, mut left: Vec<(u32, Span)>, mut right: Vec<(u32, Span)>) {
        let by_span = |(row, span): &(u32, Span)| (*span, *row);
        left.sort_by_key(by_span);
        right.sort_by_key(by_span);
        let (mut left_rest, mut right_rest) = (Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
            match a.1.cmp(&b.1) {
                std::cmp::Ordering::Equal => {
                    self.pairs.push((a.0, b.0));
                    (i, j) = (i + 1, j + 1);
                }
                std::cmp::Ordering::Less => {
                    left_rest.push(*a);
                    i += 1;
                }
                std::cmp::Ordering::Greater => {
                    right_rest.push(*b);
                    j += 1;
                }
            }
        }
        left_rest.extend(&left[i..]);
        right_rest.extend(&right[j..]);
        self.overlapping(&left_rest, &right_rest);
    }

    fn overlapping(&mut self, left: &[(u32, Span)], right: &[(u32, Span)]) {
        let (mut i, mut j) = (0, 0);
        while let (Some((row, a)), Some((other, b))) = (left.get(i), right.get(j)) {
            if a.0 < b.1 && b.0 < a.1 {
                self.pairs.push((*row, *other));
                (i, j) = (i + 1, j + 1);
            } else if a.1 <= b.1 {
                self.missing += 1;
                i += 1;
            } else {
                self.extra += 1;
                j += 1;
            }
        }
        self.missing += left.len() - i;
        self.extra += right.len() - j;
    }
}
