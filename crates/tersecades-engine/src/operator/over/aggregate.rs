//! Aggregates over the frame of each row.
//!
//! Counts and exact sums are differences of running ones; sums of floats, least and greatest
//! values come from a tree of the aggregates of 2, 4, 8 … neighbours, so a frame costs the
//! logarithm of its length.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, UInt32Array, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::take::take;
use tersecades_columnar::error::{Error, Result};

use super::OverFunction;
use crate::aggregate::sum::too_large;
use crate::operator::row::keys::{RowKeys, SortOrder};
use crate::runtime::Interrupt;

/// One value for each frame, of which there is one a row.
///
/// # Errors
/// `LimitExceeded` for sums that do not fit; `Unsupported` for types without one; what the
/// interrupt says, which is asked meanwhile.
pub(super) fn over_frames(
    (function, data_type): (OverFunction, &DataType),
    argument: Option<&ArrayRef>,
    frames: &[Range<usize>],
    interrupt: &Interrupt,
) -> Result<ArrayRef> {
    let rows = frames.len();
    let counts = counted(argument, rows);
    let count = |frame: &Range<usize>| counts[frame.end] - counts[frame.start];
    let argument = match (function, argument) {
        (OverFunction::Count, _) => {
            let counts = frames.iter().map(|frame| count(frame) as i64);
            return Ok(Arc::new(Int64Array::from(interrupt.collect(counts)?)));
        }
        (_, Some(argument)) => argument,
        (_, None) => return Err(Error::internal("an aggregate of no column")),
    };
    if matches!(function, OverFunction::Min | OverFunction::Max) {
        return extremes(function, argument, frames, interrupt);
    }
    let is_float = matches!(argument.data_type(), DataType::Float32 | DataType::Float64);
    if is_float {
        let values = cast(argument, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        let filled = |row| values.is_valid(row).then(|| values.value(row));
        let tree = Tree::new((0..rows).map(filled), |a, b| a + b, interrupt)?;
        let value = |frame: &Range<usize>| {
            let sum = tree.of(frame.clone())?;
            Some(match function {
                OverFunction::Mean => sum / count(frame) as f64,
                _ => sum,
            })
        };
        let values = interrupt.collect(frames.iter().map(value))?;
        let result: ArrayRef = Arc::new(Float64Array::from(values));
        return Ok(cast(&result, data_type)?);
    }
    let sums = running_sums(argument)?;
    interrupt.check()?;
    let sum = |frame: &Range<usize>| -> Result<i128> {
        let sum = sums[frame.end].less(sums[frame.start]);
        sum.ok_or_else(|| too_large(argument.data_type()))
    };
    let sum = |frame: &Range<usize>| match count(frame) {
        0 => Ok(None),
        _ => sum(frame).map(Some),
    };
    if function == OverFunction::Mean {
        let scale = match argument.data_type() {
            DataType::Decimal128(_, scale) => 10f64.powi(i32::from(*scale)),
            _ => 1.0,
        };
        let value = |frame: &Range<usize>| {
            let mean = |sum| sum as f64 / count(frame) as f64 / scale;
            Ok(sum(frame)?.map(mean))
        };
        let means = frames.iter().map(value).collect::<Result<Float64Array>>()?;
        return Ok(Arc::new(means));
    }
    let sums = frames.iter().map(sum).collect::<Result<Vec<_>>>()?;
    interrupt.check()?;
    whole_sums(&sums, data_type).ok_or_else(|| too_large(argument.data_type()))
}

/// How many values there are before each row, and in all.
pub(super) fn counted(argument: Option<&ArrayRef>, rows: usize) -> Vec<usize> {
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
fn running_sums(argument: &ArrayRef) -> Result<Vec<RunningSum>> {
    let values = match argument.data_type() {
        DataType::Decimal128(..) => {
            let values = argument.as_primitive::<Decimal128Type>();
            values.iter().map(Option::unwrap_or_default).collect()
        }
        _ => whole_values(argument)?,
    };
    Ok(running(values.into_iter()))
}

/// The values of integers, 0 for null.
///
/// # Errors
/// `Unsupported` for other types.
pub(super) fn whole_values(argument: &ArrayRef) -> Result<Vec<i128>> {
    Ok(match argument.data_type() {
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
    })
}

fn running(values: impl ExactSizeIterator<Item = i128>) -> Vec<RunningSum> {
    let mut sums = Vec::with_capacity(values.len() + 1);
    let mut sum = RunningSum::default();
    sums.push(sum);
    for value in values {
        sum.add(value);
        sums.push(sum);
    }
    sums
}

/// A sum that no number of rows overflows: upper and lower halves of the values apart.
#[derive(Debug, Clone, Copy, Default)]
struct RunningSum {
    upper: i128,
    lower: i128,
}

impl RunningSum {
    fn add(&mut self, value: i128) {
        self.upper += value >> 64;
        self.lower += i128::from(value as u64);
    }

    /// The sum of the rows that `earlier` lacks, if 128 bits hold it.
    fn less(self, earlier: RunningSum) -> Option<i128> {
        let lower = self.lower - earlier.lower;
        // Both halves have the sign of the whole where their carries are settled.
        let upper = self.upper - earlier.upper + (lower >> 64);
        let upper = i64::try_from(upper).ok()?;
        Some(i128::from(upper) << 64 | i128::from(lower as u64))
    }
}

/// Sums in their type; none if one does not fit it.
fn whole_sums(sums: &[Option<i128>], data_type: &DataType) -> Option<ArrayRef> {
    fn fitted<T: TryFrom<i128>>(sums: &[Option<i128>]) -> Option<Vec<Option<T>>> {
        let fit = |sum: &Option<i128>| match sum {
            None => Some(None),
            Some(sum) => T::try_from(*sum).ok().map(Some),
        };
        sums.iter().map(fit).collect()
    }
    Some(match data_type {
        DataType::UInt64 => Arc::new(UInt64Array::from(fitted::<u64>(sums)?)),
        DataType::Decimal128(precision, scale) => {
            let sums = Decimal128Array::from(sums.to_vec());
            let sums = sums.with_precision_and_scale(*precision, *scale).ok()?;
            sums.validate_decimal_precision(*precision).ok()?;
            Arc::new(sums)
        }
        _ => Arc::new(Int64Array::from(fitted::<i64>(sums)?)),
    })
}

/// The row with the least or greatest value of each frame, as its value.
fn extremes(
    function: OverFunction,
    argument: &ArrayRef,
    frames: &[Range<usize>],
    interrupt: &Interrupt,
) -> Result<ArrayRef> {
    let keys = RowKeys::new([(argument.data_type().clone(), SortOrder::ASCENDING)])?;
    let keys = keys.of(std::slice::from_ref(argument))?;
    interrupt.check()?;
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
    let tree = Tree::new(rows, better, interrupt)?;
    let places = frames.iter().map(|frame| tree.of(frame.clone()));
    let places = UInt32Array::from(interrupt.collect(places)?);
    Ok(take(argument, &places, None)?)
}

/// Aggregates of neighbours, level by level: pairs, pairs of pairs, and so on.
pub(super) struct Tree<T, F> {
    levels: Vec<Vec<Option<T>>>,
    join: F,
}

impl<T: Copy, F: Fn(T, T) -> T> Tree<T, F> {
    pub(super) fn new(
        values: impl Iterator<Item = Option<T>>,
        join: F,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut tree = Tree {
            levels: vec![interrupt.collect(values)?],
            join,
        };
        while tree.levels.last().is_some_and(|level| level.len() > 1) {
            let below = &tree.levels[tree.levels.len() - 1];
            let above = below.chunks(2).map(|pair| match pair {
                [a, b] => tree.both(*a, *b),
                other => other.first().copied().flatten(),
            });
            let above = interrupt.collect(above)?;
            tree.levels.push(above);
        }
        Ok(tree)
    }

    fn both(&self, a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some((self.join)(a, b)),
            (one, None) | (None, one) => one,
        }
    }

    /// The aggregate of the values in a range.
    pub(super) fn of(&self, range: Range<usize>) -> Option<T> {
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
    fn sums_of_frames_are_exact_however_far_the_running_sum_goes() {
        let values = [
            i128::MAX,
            i128::MAX,
            -1,
            i128::MIN,
            5,
            -(1 << 64),
            1 << 64,
            i128::MIN,
        ];
        let sums = running(values.into_iter());
        for start in 0..=values.len() {
            for end in start..=values.len() {
                // The frame as a sum of two halves, which 128 bits hold.
                let range = &values[start..end];
                let lower: i128 = range.iter().map(|value| value & 0xFFFF_FFFF).sum();
                let upper: i128 =
                    range.iter().map(|value| value >> 32).sum::<i128>() + (lower >> 32);
                let wanted = upper
                    .checked_mul(1 << 32)
                    .map(|upper| upper | lower & 0xFFFF_FFFF);
                assert_eq!(sums[end].less(sums[start]), wanted, "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_tree_gives_what_the_values_give_one_by_one() {
        for len in [0usize, 1, 2, 3, 7, 8, 21] {
            let values: Vec<Option<i64>> = (0..len as i64)
                .map(|value| (value % 5 != 2).then_some(value * 7 % 11))
                .collect();
            let tree = Tree::new(values.iter().copied(), i64::max, &Interrupt::default());
            let tree = tree.unwrap();
            for start in 0..=len {
                for end in start..=len {
                    let wanted = values[start..end].iter().flatten().max().copied();
                    assert_eq!(tree.of(start..end), wanted, "{start}..{end} of {len}");
                }
            }
        }
    }
}
