//! Arithmetic that is checked and never wraps; dividing by zero is null.

use std::sync::Arc;

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, new_empty_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DECIMAL128_MAX_PRECISION, DataType};
use arrow_select::nullif::nullif;

use super::ast::Arithmetic;
use super::compute::Operand;
use super::decimal;

type ArrowResult<T> = std::result::Result<T, ArrowError>;

/// `a how b`, computed in `number`.
///
/// # Errors
/// `ArithmeticOverflow` or `CastError` when a value leaves the range.
pub(super) fn compute(
    how: Arithmetic,
    a: &Operand,
    b: &Operand,
    number: &DataType,
) -> ArrowResult<Operand> {
    let scalar = a.scalar && b.scalar;
    let (a, mut b) = (promote(a, number)?, promote(b, number)?);
    let by_zero = matches!(how, Arithmetic::Divide | Arithmetic::Remainder);
    if by_zero {
        b = b.with(nullif(b.array.as_ref(), &zeros(&b.array))?);
    }
    let array = match how {
        Arithmetic::Add => numeric::add(&a, &b)?,
        Arithmetic::Subtract => numeric::sub(&a, &b)?,
        Arithmetic::Multiply => numeric::mul(&a, &b)?,
        Arithmetic::Divide => numeric::div(&a, &b)?,
        Arithmetic::Remainder => numeric::rem(&a, &b)?,
    };
    check_digits(&array)?;
    Ok(Operand { array, scalar })
}

/// Refuses decimals of more digits than fit their type: 128 bits hold some of 39.
///
/// # Errors
/// `ArithmeticOverflow`.
fn check_digits(array: &ArrayRef) -> ArrowResult<()> {
    let &DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) = array.data_type() else {
        return Ok(());
    };
    let decimals = array.as_primitive::<Decimal128Type>();
    let checked = decimals.validate_decimal_precision(DECIMAL128_MAX_PRECISION);
    checked.map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))
}

/// The type of `a how b` for decimals.
///
/// # Errors
/// When the result needs more than 38 digits after the point.
pub(super) fn decimal_type(how: Arithmetic, a: &DataType, b: &DataType) -> ArrowResult<DataType> {
    let empty = |data_type: &DataType| Operand {
        array: new_empty_array(data_type),
        scalar: false,
    };
    let number = DataType::Decimal128(38, 0);
    Ok(compute(how, &empty(a), &empty(b), &number)?
        .array
        .data_type()
        .clone())
}

/// The operand in the domain of `number`; decimals keep their own scales.
fn promote(operand: &Operand, number: &DataType) -> ArrowResult<Operand> {
    let target = match (number, operand.array.data_type()) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) => return Ok(operand.clone()),
        (DataType::Decimal128(..), _) => &DataType::Decimal128(20, 0),
        _ => number,
    };
    Ok(operand.with(cast_exactly(&operand.array, target)?))
}

/// A cast that fails rather than turn values into nulls.
pub(super) fn cast_exactly(array: &ArrayRef, target: &DataType) -> ArrowResult<ArrayRef> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    if let (DataType::Float64, DataType::Float32) = (array.data_type(), target) {
        let floats = array.as_primitive::<Float64Type>();
        let narrowed = floats.try_unary::<_, Float32Type, _>(narrowed);
        return Ok(Arc::new(narrowed?));
    }
    if let DataType::Decimal128(_, scale) = array.data_type() {
        match target {
            DataType::Float64 => return Ok(Arc::new(decimal::to_doubles(array, *scale))),
            DataType::Float32 => return Ok(Arc::new(decimal::to_floats(array, *scale)?)),
            _ => {}
        }
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array.as_ref(), target, &options)
}

/// `float` in 32 bits, rounded to the nearest.
///
/// # Errors
/// `CastError` when only infinity is near.
pub fn narrowed(float: f64) -> ArrowResult<f32> {
    let narrowed = float as f32;
    match narrowed.is_infinite() && float.is_finite() {
        true => Err(ArrowError::CastError(format!(
            "Can't cast value {float:e} to type Float32"
        ))),
        false => Ok(narrowed),
    }
}

fn zeros(array: &ArrayRef) -> BooleanArray {
    match array.data_type() {
        DataType::Float64 => {
            BooleanArray::from_unary(array.as_primitive::<Float64Type>(), |value| value == 0.0)
        }
        DataType::Int64 => {
            BooleanArray::from_unary(array.as_primitive::<Int64Type>(), |value| value == 0)
        }
        _ => BooleanArray::from_unary(array.as_primitive::<Decimal128Type>(), |value| value == 0),
    }
}
