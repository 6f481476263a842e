//! Decimals as floats, rounded once; Arrow rounds the digits first, then what their division gives.
//!
//! ```text
//! 9007199254740993 / 10^1  ─▶ 900719925474099.3, the float that is nearest
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type};
use arrow_array::{ArrayRef, Float32Array, Float64Array};
use arrow_schema::ArrowError;
use tersecades_columnar::decimal::{nearest_float, text};

/// The decimals of `array`, which have `scale` digits behind the point, as floats of 64 bits.
pub(super) fn to_doubles(array: &ArrayRef, scale: i8) -> Float64Array {
    let decimals = array.as_primitive::<Decimal128Type>();
    decimals.unary::<_, Float64Type>(|digits| nearest_float(digits, scale))
}

/// The decimals of `array`, which have `scale` digits behind the point, as floats of 32 bits.
///
/// # Errors
/// `CastError` where only infinity is near.
pub(super) fn to_floats(array: &ArrayRef, scale: i8) -> Result<Float32Array, ArrowError> {
    let decimals = array.as_primitive::<Decimal128Type>();
    decimals.try_unary::<_, Float32Type, _>(|digits| {
        // Digits with an exponent are always a number; doubles would round twice.
        let float: f32 = text(digits, scale).parse().unwrap_or(f32::NAN);
        match float.is_finite() {
            true => Ok(float),
            false => Err(ArrowError::CastError(format!(
                "Can't cast value {} to type Float32",
                text(digits, scale)
            ))),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array as _, Decimal128Array};
    use arrow_schema::DataType;
    use proptest::prelude::*;

    use super::super::arithmetic::cast_exactly;
    use super::*;

    fn decimals(digits: i128, scale: i8) -> ArrayRef {
        let array = Decimal128Array::from(vec![Some(digits), None]);
        Arc::new(array.with_precision_and_scale(38, scale).unwrap())
    }

    proptest! {
        #[test]
        fn decimals_become_the_nearest_floats(
            digits in -(10i128.pow(38) - 1)..10i128.pow(38),
            shift in 0u32..127,
            scale in 0i8..=38,
        ) {
            let array = decimals(digits >> shift, scale);
            // The text with its point, as it is displayed.
            let text = array.as_primitive::<Decimal128Type>().value_as_string(0);
            let found = cast_exactly(&array, &DataType::Float64).unwrap();
            let found = found.as_primitive::<Float64Type>();
            prop_assert_eq!(found.value(0), text.parse::<f64>().unwrap());
            prop_assert!(!found.is_valid(1));
            let found = cast_exactly(&array, &DataType::Float32).unwrap();
            let found = found.as_primitive::<Float32Type>();
            prop_assert_eq!(found.value(0), text.parse::<f32>().unwrap());
        }
    }

    #[test]
    fn powers_of_ten_and_of_two_that_are_no_floats_are_read() {
        for (digits, scale, wanted) in [
            (9_007_199_254_740_993, 1, 900_719_925_474_099.3),
            (123, 23, 123e-23),
            (-7, 38, -7e-38),
            (5, -30, 5e30),
            (1, 0, 1.0),
        ] {
            assert_eq!(to_doubles(&decimals(digits, scale), scale).value(0), wanted);
        }
        let far = decimals(10i128.pow(37), -5);
        let error = to_floats(&far, -5).unwrap_err().to_string();
        assert!(error.contains("Float32"), "{error}");
    }
}
