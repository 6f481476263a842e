//! Comparisons of decoded values, exact across types: integers never pass through floats,
//! NaN equals itself and is last, negative zero is zero.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_arith::aggregate::{max, min};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::DataType;
use tersecades_columnar::decimal::nearest_float;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::input::Lanes;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::types::{Physical, float_key, logical_type};
use tersecades_columnar::values::float_of_bits;

use super::arithmetic::cast_exactly;
use super::compute::Operand;
use super::literal::{DAY_SECONDS, unit_scale};

/// Which values of `array` pass `predicate`, made for `data_type`; unknown where null.
pub(super) fn test(
    array: &ArrayRef,
    data_type: &DataType,
    predicate: &Predicate,
) -> Result<BooleanArray> {
    let nulls = array.logical_nulls();
    let bits = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            let (no, yes) = (predicate.matches_key(0), predicate.matches_key(1));
            values
                .iter()
                .map(|value| if value { yes } else { no })
                .collect()
        }
        DataType::Dictionary(key, _) if **key == DataType::UInt32 && many_repeats(array) => {
            test_dictionary::<UInt32Type>(array, data_type, predicate)?
        }
        DataType::Dictionary(..) => {
            return test(&cast(array.as_ref(), data_type)?, data_type, predicate);
        }
        _ => test_lanes(array.as_ref(), data_type, predicate)?,
    };
    Ok(BooleanArray::new(bits, nulls))
}

/// Whether a dictionary array has fewer distinct values than rows.
fn many_repeats(array: &ArrayRef) -> bool {
    array.as_any_dictionary().values().len() < array.len()
}

/// Tests each distinct value once.
fn test_dictionary<K: ArrowDictionaryKeyType>(
    array: &ArrayRef,
    data_type: &DataType,
    predicate: &Predicate,
) -> Result<BooleanBuffer> {
    let array = array.as_dictionary::<K>();
    let passed = test(array.values(), data_type, predicate)?;
    let passed = |row| array.key(row).is_some_and(|key| passed.value(key));
    Ok(BooleanBuffer::collect_bool(array.len(), passed))
}

fn test_lanes(
    array: &dyn Array,
    data_type: &DataType,
    predicate: &Predicate,
) -> Result<BooleanBuffer> {
    let lanes = lanes_of(array)?;
    let rows = array.len();
    let physical = Physical::of(data_type)?;
    Ok(match (lanes, physical) {
        (Lanes::Wide(wide), _) => {
            BooleanBuffer::collect_bool(rows, |row| predicate.matches_wide(wide[row]))
        }
        (Lanes::Text { offsets, bytes }, _) => BooleanBuffer::collect_bool(rows, |row| {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            predicate.matches_text(&bytes[range])
        }),
        (lanes, Physical::Float { bytes }) => BooleanBuffer::collect_bool(rows, |row| {
            predicate.matches_key(float_key(float_of_bits(lanes.bits(row), bytes)))
        }),
        (lanes, physical) => BooleanBuffer::collect_bool(rows, |row| {
            predicate.matches_key(lanes.bits(row) ^ physical.flip())
        }),
    })
}

fn lanes_of(array: &dyn Array) -> Result<Lanes<'_>> {
    tersecades_columnar::arrow::lanes(array).ok_or_else(|| {
        Error::unsupported(format!(
            "values of type {} cannot be compared",
            array.data_type()
        ))
    })
}

/// One side of [`compare_arrays`]: a value of each row, or one for all rows.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its values.
    pub array: &'a ArrayRef,
    /// Whether the first of them stands for all rows.
    pub scalar: bool,
}

/// `a how b`, row by row, exact whatever numbers or times the sides are; unknown where either is
/// null. One row comes out where both sides are one value.
///
/// # Errors
/// `Unsupported` for types that do not compare.
pub fn compare_arrays(how: Comparison, a: Side<'_>, b: Side<'_>) -> Result<ArrayRef> {
    let operand = |side: Side<'_>| Operand {
        array: Arc::clone(side.array),
        scalar: side.scalar,
    };
    Ok(compare(how, &operand(a), &operand(b))?.array)
}

/// `a how b`, row by row; unknown where either is null.
pub(super) fn compare(how: Comparison, a: &Operand, b: &Operand) -> Result<Operand> {
    let scalar = a.scalar && b.scalar;
    let (left, right) = (
        logical_type(a.array.data_type()),
        logical_type(b.array.data_type()),
    );
    let array = match (&left, &right) {
        (DataType::Float32 | DataType::Float64, DataType::Float32 | DataType::Float64) => kernel(
            how,
            &a.with(canonical(&a.array)?),
            &b.with(canonical(&b.array)?),
        )?,
        _ if left == right => kernel(how, a, b)?,
        (DataType::Timestamp(unit, zone), DataType::Timestamp(other, same)) if zone == same => {
            let finer = DataType::Timestamp(*unit.max(other), zone.clone());
            let cast = |side: &Operand| cast_exactly(&side.array, &finer);
            match (cast(a), cast(b)) {
                (Ok(left), Ok(right)) => kernel(how, &a.with(left), &b.with(right))?,
                // Some time is out of the finer unit's range.
                _ => by_rows(how, a, b)?,
            }
        }
        _ if short_integer(&left) && short_integer(&right) => {
            let widen = |side: &Operand| {
                cast_exactly(&side.array, &DataType::Int64).map(|array| side.with(array))
            };
            kernel(how, &widen(a)?, &widen(b)?)?
        }
        _ if has_doubles(&left, a) && has_doubles(&right, b) => kernel(
            how,
            &a.with(canonical(&a.array)?),
            &b.with(canonical(&b.array)?),
        )?,
        _ => match common_decimal(&left, &right) {
            Some(wider) => {
                let cast = |side: &Operand| cast_exactly(&side.array, &wider);
                match (cast(a), cast(b)) {
                    (Ok(left), Ok(right)) => kernel(how, &a.with(left), &b.with(right))?,
                    // Some number has too many digits for it.
                    _ => by_rows(how, a, b)?,
                }
            }
            None => by_rows(how, a, b)?,
        },
    };
    Ok(Operand {
        array: Arc::new(array),
        scalar,
    })
}

/// Whether each value is one of 64-bit floats: integers up to 2^53 are.
fn has_doubles(data_type: &DataType, side: &Operand) -> bool {
    const WHOLE: i64 = 1 << 53;
    match data_type {
        DataType::UInt64 => {
            let numbers = side.array.as_primitive::<UInt64Type>();
            max(numbers).is_none_or(|most| most <= WHOLE.unsigned_abs())
        }
        DataType::Int64 => {
            let numbers = side.array.as_primitive::<Int64Type>();
            max(numbers).is_none_or(|most| most <= WHOLE)
                && min(numbers).is_none_or(|least| least >= -WHOLE)
        }
        other => other.is_integer() || other.is_floating(),
    }
}

/// The decimal with the digits of both types, as far as there are so many.
fn common_decimal(left: &DataType, right: &DataType) -> Option<DataType> {
    let digits = |data_type: &DataType| match data_type {
        DataType::Decimal128(precision, scale) => {
            Some((precision.cast_signed().saturating_sub(*scale), *scale))
        }
        integer if integer.is_integer() => Some((20, 0)),
        _ => None,
    };
    let ((whole, fraction), (other_whole, other_fraction)) = (digits(left)?, digits(right)?);
    let (whole, fraction) = (whole.max(other_whole), fraction.max(other_fraction));
    let precision = whole.saturating_add(fraction).min(38).cast_unsigned();
    Some(DataType::Decimal128(precision, fraction))
}

fn kernel(how: Comparison, a: &Operand, b: &Operand) -> Result<BooleanArray> {
    Ok(match how {
        Comparison::Equal => cmp::eq(a, b)?,
        Comparison::NotEqual => cmp::neq(a, b)?,
        Comparison::Less => cmp::lt(a, b)?,
        Comparison::LessOrEqual => cmp::lt_eq(a, b)?,
        Comparison::Greater => cmp::gt(a, b)?,
        Comparison::GreaterOrEqual => cmp::gt_eq(a, b)?,
    })
}

/// Floats with one NaN and one zero, which Arrow then orders as this crate does.
fn canonical(array: &ArrayRef) -> Result<ArrayRef> {
    let floats = cast(array.as_ref(), &DataType::Float64)?;
    let floats = floats.as_primitive::<Float64Type>();
    let canonical = |value: f64| {
        if value.is_nan() {
            f64::NAN
        } else {
            value + 0.0
        }
    };
    Ok(Arc::new(floats.unary::<_, Float64Type>(canonical)))
}

/// Whether the type is an integer whose values all fit `i64`.
fn short_integer(data_type: &DataType) -> bool {
    data_type.is_integer() && *data_type != DataType::UInt64
}

/// One side of a comparison across types: a float, or `digits * 10^-scale`.
#[derive(Debug, Clone, Copy)]
enum Number {
    Exact { digits: i128, scale: i8 },
    Float(f64),
}

fn by_rows(how: Comparison, a: &Operand, b: &Operand) -> Result<BooleanArray> {
    let (left, right) = (Numbers::of(a)?, Numbers::of(b)?);
    let rows = if a.scalar {
        b.array.len()
    } else {
        a.array.len()
    };
    let compared = (0..rows).map(|row| {
        let (i, j) = (a.index(row), b.index(row));
        let valid = a.array.is_valid(i) && b.array.is_valid(j);
        valid.then(|| holds(how, order(left.get(i), right.get(j))))
    });
    Ok(compared.collect())
}

struct Numbers<'a> {
    lanes: Lanes<'a>,
    physical: Physical,
    scale: i8,
    factor: i128,
}

impl<'a> Numbers<'a> {
    fn of(operand: &'a Operand) -> Result<Self> {
        let data_type = operand.array.data_type();
        let (scale, factor) = match data_type {
            DataType::Decimal128(_, scale) => (*scale, 1),
            DataType::Timestamp(unit, _) => (unit_scale(*unit), 1),
            DataType::Date32 => (0, DAY_SECONDS),
            _ => (0, 1),
        };
        let lanes = lanes_of(operand.array.as_ref())?;
        Ok(Numbers {
            lanes,
            physical: Physical::of(data_type)?,
            scale,
            factor,
        })
    }

    fn get(&self, row: usize) -> Number {
        let digits = match (self.lanes, self.physical) {
            (Lanes::Wide(wide), _) => wide[row],
            (lanes, Physical::Float { bytes }) => {
                return Number::Float(float_of_bits(lanes.bits(row), bytes));
            }
            (lanes, physical) => physical.value_of(lanes.bits(row) ^ physical.flip()),
        };
        Number::Exact {
            digits: digits * self.factor,
            scale: self.scale,
        }
    }
}

fn order(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (
            Number::Exact {
                digits: a,
                scale: s,
            },
            Number::Exact {
                digits: b,
                scale: t,
            },
        ) => order_exact((a, s), (b, t)),
        (Number::Exact { digits, scale }, Number::Float(float)) => {
            order_float(digits, scale, float)
        }
        (Number::Float(float), Number::Exact { digits, scale }) => {
            order_float(digits, scale, float).reverse()
        }
        (Number::Float(a), Number::Float(b)) => float_key(a).cmp(&float_key(b)),
    }
}

/// Compares `a * 10^-s` with `b * 10^-t`: whole parts first, so that nothing overflows.
fn order_exact((a, s): (i128, i8), (b, t): (i128, i8)) -> Ordering {
    if s == t {
        return a.cmp(&b);
    }
    // Scales below zero only make numbers larger; saturating keeps their order against the rest.
    let lift = |value: i128, scale: i8| match scale {
        ..0 => value.saturating_mul(10i128.pow(u32::from(scale.unsigned_abs()).min(38))),
        _ => value,
    };
    let split = |value: i128, scale: i8| {
        let unit = 10i128.pow(u32::from(scale.max(0).unsigned_abs()).min(38));
        let value = lift(value, scale);
        // Digits after the point, brought to 38 places: always below 10^38.
        let rest = value.rem_euclid(unit) * (10i128.pow(38) / unit);
        (value.div_euclid(unit), rest)
    };
    split(a, s).cmp(&split(b, t))
}

/// Compares `digits * 10^-scale` with a float without rounding an integer; other decimals beside
/// floats are floats.
fn order_float(digits: i128, scale: i8, float: f64) -> Ordering {
    if scale != 0 {
        return float_key(nearest_float(digits, scale)).cmp(&float_key(float));
    }
    if float.is_nan() {
        return Ordering::Less;
    }
    let floor = float.floor();
    // The conversion saturates, which keeps the order.
    digits.cmp(&(floor as i128)).then(match float > floor {
        true => Ordering::Less,
        false => Ordering::Equal,
    })
}

fn holds(how: Comparison, order: Ordering) -> bool {
    match how {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_of_different_scale_compare_without_overflow() {
        let most = 10i128.pow(38) - 1;
        assert_eq!(order_exact((15, 1), (150, 2)), Ordering::Equal);
        assert_eq!(order_exact((-15, 1), (-14, 1)), Ordering::Less);
        assert_eq!(order_exact((-15, 1), (-1, 0)), Ordering::Less);
        assert_eq!(order_exact((most, 0), (most, 38)), Ordering::Greater);
        assert_eq!(order_exact((most, 38), (1, 0)), Ordering::Less);
        assert_eq!(order_exact((2, -3), (2000, 0)), Ordering::Equal);
    }

    #[test]
    fn integers_compare_with_floats_exactly() {
        let wide = (1i128 << 53) + 1;
        assert_eq!(order_float(wide, 0, (1u64 << 53) as f64), Ordering::Greater);
        assert_eq!(
            order_float(i128::from(i64::MAX), 0, 2f64.powi(63)),
            Ordering::Less
        );
        assert_eq!(order_float(-3, 0, -2.5), Ordering::Less);
        assert_eq!(order_float(-2, 0, -2.5), Ordering::Greater);
        assert_eq!(order_float(5, 0, f64::INFINITY), Ordering::Less);
        assert_eq!(order_float(5, 0, f64::NEG_INFINITY), Ordering::Greater);
        assert_eq!(order_float(5, 0, f64::NAN), Ordering::Less);
        assert_eq!(order_float(7, 2, 0.07), Ordering::Equal);
        assert_eq!(order_float(7, 2, 0.071), Ordering::Less);
        assert_eq!(order_float(7, 2, f64::NAN), Ordering::Less);
    }

    #[test]
    fn no_common_type_rounds_what_is_compared() {
        let whole = 1i64 << 53;
        let wide = arrow_array::Int64Array::from(vec![Some(whole + 1), Some(5), None]);
        let floats = arrow_array::Float64Array::from(vec![whole as f64, 5.0, f64::NAN]);
        let number = |digits: i128, precision, scale| -> ArrayRef {
            let decimals = arrow_array::Decimal128Array::from(vec![digits]);
            Arc::new(decimals.with_precision_and_scale(precision, scale).unwrap())
        };
        let sides: [(ArrayRef, ArrayRef); 3] = [
            (Arc::new(wide.clone()), Arc::new(floats)),
            (Arc::new(wide), number(5, 38, 38)),
            (number(10i128.pow(37), 38, 0), number(15, 38, 10)),
        ];
        let compared = sides.map(|(left, right)| {
            let scalar = right.len() == 1 && left.len() > 1;
            let side = |array, scalar| Side { array, scalar };
            let greater = Comparison::Greater;
            let found = compare_arrays(greater, side(&left, false), side(&right, scalar)).unwrap();
            found.as_boolean().iter().collect::<Vec<_>>()
        });
        let rows = [Some(true), Some(false), None];
        assert_eq!(compared[0], rows);
        assert_eq!(compared[1], [Some(true), Some(true), None]);
        assert_eq!(compared[2], [Some(true)]);
    }
}
