//! Aggregates over the frame of each row.
//!
//! Counts and exact sums are differences of running ones; sums of floats, least and greatest
//! values come from a tree of the aggregates of 2, 4, 8 … neighbours, so a frame costs the
//! logarithm of its length.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, UInt32Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};

use super::OverFunction;
use super::frame::Frames;
use crate::operator::row::keys::{RowKeys, SortOrder};

/// One value for each frame.
///
/// # Errors
/// `LimitExceeded` for sums that do not fit; `Unsupported` for types without one.
pub(super) fn over_frames(
    (function, data_type): (OverFunction, &DataType),
    argument: Option<&ArrayRef>,
    frames: Frames<'_>,
    rows: usize,
) -> Result<ArrayRef> {
    let frames: Vec<Range<usize>> = frames.collect();
    let counts = counted(argument, rows);
    let count = |frame: &Range<usize>| counts[frame.end] - counts[frame.start];
    let argument = match (function, argument) {
        (OverFunction::Count, _) => {
            let counts = frames.iter().map(|frame| count(frame) as i64);
            return Ok(Arc::new(counts.collect::<Int64Array>()));
        }
        (_, Some(argument)) => argument,
        (_, None) => return Err(Error::internal("an aggregate of no column")),
    };
    if matches!(function, OverFunction::Min | OverFunction::Max) {
        return extremes(function, argument, &frames);
    }
    let is_float = matches!(argument.data_type(), DataType::Float32 | DataType::Float64);
    if is_float {
        let values = cast(argument, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        let filled = |row| values.is_valid(row).then(|| values.value(row));
        let tree = Tree::new((0..rows).map(filled), |a, b| a + b);
        let value = |frame: &Range<usize>| {
            let sum = tree.of(frame.clone())?;
            Some(match function {
                OverFunction::Mean => sum / count(frame) as f64,
                _ => sum,
            })
        };
        let result: ArrayRef = Arc::new(frames.iter().map(value).collect::<Float64Array>());
        return Ok(cast(&result, data_type)?);
    }
    let sums = running_sums(argument)?;
    let sum = |frame: &Range<usize>| sums[frame.end] - sums[frame.start];
    if function == OverFunction::Mean {
        let scale = match argument.data_type() {
            DataType::Decimal128(_, scale) => 10f64.powi(i32::from(*scale)),
            _ => 1.0,
        };
        let value = |frame: &Range<usize>| {
            let filled = count(frame);
            (filled > 0).then(|| sum(frame) as f64 / filled as f64 / scale)
        };
        return Ok(Arc::new(frames.iter().map(value).collect::<Float64Array>()));
    }
    let sums: Vec<Option<i128>> = frames
        .iter()
        .map(|frame| (count(frame) > 0).then(|| sum(frame)))
        .collect();
    whole_sums(sums, data_type)
}

/// How many values there are before each row, and in all.
fn counted(argument: Option<&ArrayRef>, rows: usize) -> Vec<usize> {
    let nulls = argument.and_then(|argument| argument.logical_nulls());
    let mut counts = Vec::with_capacity(rows + 1);
    counts.push(0);
    for row in 0..rows {
        let filled = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        counts.push(counts[row] + usize::from(filled));
    }
    counts
}

/// The sum of the values before each row, and of all; null counts nothing.
fn running_sums(argument: &ArrayRef) -> Result<Vec<i128>> {
    let values: Vec<i128> = match argument.data_type() {
        DataType::Decimal128(..) => {
            let values = argument.as_primitive::<Decimal128Type>();
            values.iter().map(Option::unwrap_or_default).collect()
        }
        DataType::UInt64 => {
            let values = argument.as_primitive::<UInt64Type>().iter();
            values
                .map(|value| i128::from(value.unwrap_or_default()))
                .collect()
        }
        other if other.is_integer() || *other == DataType::Boolean => {
            let values = cast(argument, &DataType::Int64)?;
            let values = values.as_primitive::<Int64Type>().iter();
            values
                .map(|value| i128::from(value.unwrap_or_default()))
                .collect()
        }
        other => return Err(Error::unsupported(format!("a sum of {other}"))),
    };
    let mut sums = Vec::with_capacity(values.len() + 1);
    let mut sum = 0i128;
    sums.push(sum);
    for value in values {
        sum = sum.checked_add(value).ok_or_else(too_large)?;
        sums.push(sum);
    }
    Ok(sums)
}

fn too_large() -> Error {
    Error::limit("a sum over rows does not fit its type").hint("cast it: sum(CAST(x AS DOUBLE))")
}

fn whole_sums(sums: Vec<Option<i128>>, data_type: &DataType) -> Result<ArrayRef> {
    fn fitted<T: TryFrom<i128>>(sums: Vec<Option<i128>>) -> Result<Vec<Option<T>>> {
        let fit = |sum: Option<i128>| match sum {
            None => Ok(None),
            Some(sum) => T::try_from(sum).map(Some).map_err(|_| too_large()),
        };
        sums.into_iter().map(fit).collect()
    }
    Ok(match data_type {
        DataType::UInt64 => Arc::new(arrow_array::UInt64Array::from(fitted::<u64>(sums)?)),
        DataType::Decimal128(precision, scale) => {
            let sums = arrow_array::Decimal128Array::from(sums);
            Arc::new(sums.with_precision_and_scale(*precision, *scale)?)
        }
        other => cast(&Int64Array::from(fitted::<i64>(sums)?), other)?,
    })
}

/// The row with the least or greatest value of each frame, as its value.
fn extremes(
    function: OverFunction,
    argument: &ArrayRef,
    frames: &[Range<usize>],
) -> Result<ArrayRef> {
    let keys = RowKeys::new([(argument.data_type().clone(), SortOrder::ASCENDING)])?;
    let keys = keys.of(std::slice::from_ref(argument))?;
    let nulls = argument.logical_nulls();
    let filled = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let rows = (0..argument.len()).map(|row| filled(row).then_some(row as u32));
    let better = |a: u32, b: u32| {
        let (x, y) = (keys.row(a as usize), keys.row(b as usize));
        let second = match function {
            OverFunction::Min => y < x,
            _ => y > x,
        };
        if second { b } else { a }
    };
    let tree = Tree::new(rows, better);
    let places: UInt32Array = frames.iter().map(|frame| tree.of(frame.clone())).collect();
    Ok(take(argument, &places, None)?)
}

/// Aggregates of neighbours, level by level: pairs, pairs of pairs, and so on.
struct Tree<T, F> {
    levels: Vec<Vec<Option<T>>>,
    join: F,
}

impl<T: Copy, F: Fn(T, T) -> T> Tree<T, F> {
    fn new(values: impl Iterator<Item = Option<T>>, join: F) -> Self {
        let mut tree = Tree {
            levels: vec![values.collect()],
            join,
        };
        while tree.levels.last().is_some_and(|level| level.len() > 1) {
            let below = &tree.levels[tree.levels.len() - 1];
            let above = below.chunks(2).map(|pair| match pair {
                [a, b] => tree.both(*a, *b),
                other => other.first().copied().flatten(),
            });
            let above = above.collect();
            tree.levels.push(above);
        }
        tree
    }

    fn both(&self, a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some((self.join)(a, b)),
            (one, None) | (None, one) => one,
        }
    }

    /// The aggregate of the values in a range.
    fn of(&self, range: Range<usize>) -> Option<T> {
        let (mut start, mut end) = (range.start, range.end);
        let (mut front, mut back) = (None, None);
        for level in &self.levels {
            if start >= end {
                break;
            }
            if start % 2 == 1 {
                front = self.both(front, level[start]);
                start += 1;
            }
            if end % 2 == 1 && start < end {
                end -= 1;
                back = self.both(level[end], back);
            }
            start /= 2;
            end /= 2;
        }
        self.both(front, back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gives_what_the_values_give_one_by_one() {
        for len in [0usize, 1, 2, 3, 7, 8, 21] {
            let values: Vec<Option<i64>> = (0..len as i64)
                .map(|value| (value % 5 != 2).then_some(value * 7 % 11))
                .collect();
            let tree = Tree::new(values.iter().copied(), i64::max);
            for start in 0..=len {
                for end in start..=len {
                    let wanted = values[start..end].iter().flatten().max().copied();
                    assert_eq!(tree.of(start..end), wanted, "{start}..{end} of {len}");
                }
            }
        }
    }
}
