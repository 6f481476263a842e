//! Variances and standard deviations over the frame of each row.
//!
//! Integers: exact, from differences of running sums and sums of squares. Floats, and decimals as
//! floats: from a tree of the means and squared deviations of 2, 4, 8 … neighbours.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use tersecades_columnar::error::Result;
use tersecades_columnar::fold::{Fold, Spread, SquareSum};
use tersecades_columnar::types::Value;

use super::aggregate::{Tree, counted, whole_values};
use crate::aggregate::{Aggregate, find};
use crate::runtime::Interrupt;

/// The variance of a sample or a population, or its root, as an aggregate of groups.
pub(super) fn variance_of(sample: bool, root: bool) -> Result<&'static dyn Aggregate> {
    find(match (sample, root) {
        (true, false) => "variance",
        (false, false) => "variance_population",
        (true, true) => "stddev",
        (false, true) => "stddev_population",
    })
}

/// What `aggregate`, a variance or its root, gives for each frame, of which there is one a row.
///
/// # Errors
/// `Unsupported` for types without one; what the interrupt says, which is asked meanwhile.
pub(super) fn variances(
    aggregate: &dyn Aggregate,
    argument: &ArrayRef,
    frames: &[Range<usize>],
    interrupt: &Interrupt,
) -> Result<ArrayRef> {
    let folds = match argument.data_type() {
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => {
            folds_of_floats(argument, frames, interrupt)?
        }
        _ => folds_of_integers(argument, frames, interrupt)?,
    };
    let data_type = aggregate
        .computes_in(argument.data_type())
        .unwrap_or_else(|| argument.data_type().clone());
    let finish = |fold: &Fold| match aggregate.finish(fold, &data_type)? {
        Value::Float(value) => Ok(Some(value)),
        _ => Ok(None),
    };
    let values = interrupt.collect(folds.iter().map(finish))?;
    let values = values.into_iter().collect::<Result<Float64Array>>()?;
    Ok(Arc::new(values))
}

fn folds_of_floats(
    argument: &ArrayRef,
    frames: &[Range<usize>],
    interrupt: &Interrupt,
) -> Result<Vec<Fold>> {
    let values = cast(argument, &DataType::Float64)?;
    let values = values.as_primitive::<Float64Type>();
    let spreads = values.iter().map(|value| {
        let mut spread = Spread::default();
        spread.add(value?);
        Some(spread)
    });
    let join = |mut one: Spread, other: Spread| {
        one.merge(other);
        one
    };
    let tree = Tree::new(spreads, join, interrupt)?;
    let fold = |frame: &Range<usize>| {
        let spread = tree.of(frame.clone()).unwrap_or_default();
        Fold {
            count: spread.count,
            spread,
            ..Fold::default()
        }
    };
    interrupt.collect(frames.iter().map(fold))
}

fn folds_of_integers(
    argument: &ArrayRef,
    frames: &[Range<usize>],
    interrupt: &Interrupt,
) -> Result<Vec<Fold>> {
    let values = whole_values(argument)?;
    let counts = counted(Some(argument), argument.len());
    let mut running = (0, SquareSum::default());
    let sums = std::iter::once(running).chain(values.into_iter().map(|value| {
        running.0 += value;
        running.1.add_square(value);
        running
    }));
    let sums = interrupt.collect(sums)?;
    let fold = |frame: &Range<usize>| {
        let ((earlier, taken), (sum, mut squares)) = (sums[frame.start], sums[frame.end]);
        squares.unmerge(taken);
        Fold {
            count: (counts[frame.end] - counts[frame.start]) as u64,
            sum: sum - earlier,
            squares,
            ..Fold::default()
        }
    };
    interrupt.collect(frames.iter().map(fold))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Int64Array, UInt64Array};

    use super::*;

    const NAMES: [(&str, f64, bool); 4] = [
        ("variance", 1.0, false),
        ("variance_population", 0.0, false),
        ("stddev", 1.0, true),
        ("stddev_population", 0.0, true),
    ];

    /// The same in two passes over the values of the frame, less a value between them.
    fn slowly(values: &[Option<f64>], less: f64, root: bool) -> Option<f64> {
        let values: Vec<f64> = values.iter().flatten().copied().collect();
        let count = values.len() as f64;
        if count <= less {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let deviation: f64 = values.iter().map(|it| (it - mean) * (it - mean)).sum();
        let variance = deviation / (count - less);
        Some(if root { variance.sqrt() } else { variance })
    }

    /// Checks every frame of `argument`, whose values lie `values` above some base.
    fn check(argument: &ArrayRef, values: &[Option<f64>]) {
        let rows = values.len();
        let frames = (0..=rows).flat_map(|start| (start..=rows).map(move |end| start..end));
        let frames: Vec<Range<usize>> = frames.collect();
        for (name, less, root) in NAMES {
            let none = Interrupt::default();
            let found = variances(find(name).unwrap(), argument, &frames, &none).unwrap();
            for (frame, found) in frames.iter().zip(found.as_primitive::<Float64Type>()) {
                let wanted = slowly(&values[frame.clone()], less, root);
                let near = match (found, wanted) {
                    (Some(found), Some(wanted)) => (found - wanted).abs() <= 1e-9 * (1.0 + wanted),
                    (found, wanted) => found.is_none() && wanted.is_none(),
                };
                let shown = argument.data_type();
                assert!(
                    near,
                    "{name} of {shown} in {frame:?}: {found:?}, not {wanted:?}"
                );
            }
        }
    }

    #[test]
    fn variances_of_frames_are_those_of_their_values() {
        let values: Vec<Option<f64>> = (0..23u32)
            .map(|row| (row % 6 != 4).then_some(f64::from(row * row * 37 % 101)))
            .collect();
        let whole = |base: i64| values.iter().map(move |it| it.map(|it| base + it as i64));
        check(
            &(Arc::new(Float64Array::from(values.clone())) as _),
            &values,
        );
        // Floats at this distance would have no digit of the squares left.
        let far: Int64Array = whole(i64::MAX - 200).collect();
        check(&(Arc::new(far) as _), &values);
        let below: Int64Array = whole(i64::MIN).collect();
        check(&(Arc::new(below) as _), &values);
        let unsigned = whole(0).map(|it| it.map(|it| u64::MAX - it as u64));
        check(&(Arc::new(unsigned.collect::<UInt64Array>()) as _), &values);
        let decimals: Decimal128Array = whole(0)
            .map(|it| it.map(|it| 100 * i128::from(it)))
            .collect();
        let decimals = decimals.with_precision_and_scale(20, 2).unwrap();
        check(&(Arc::new(decimals) as _), &values);
    }

    #[test]
    fn what_is_not_finite_spoils_the_frames_that_hold_it() {
        let values = Float64Array::from(vec![1.0, f64::INFINITY, 2.0, 4.0]);
        let frames = [0..1, 0..2, 2..4, 0..4];
        let none = Interrupt::default();
        let population = find("variance_population").unwrap();
        let found = variances(population, &(Arc::new(values) as _), &frames, &none).unwrap();
        let found = found.as_primitive::<Float64Type>();
        assert_eq!((found.value(0), found.value(2)), (0.0, 1.0));
        assert!(found.value(1).is_nan() && found.value(3).is_nan());
    }
}
