//! Times and decimals as keys of joins in types that hold the values of both sides.
//!
//! ```text
//! seconds = nanos                ─▶ in_nanoseconds(seconds) = in_nanoseconds(nanos)
//! DECIMAL(38, 0) = DECIMAL(38, 9) ─▶ in_scale(a) = b
//! ```
//! Nanoseconds of 64 bits end in the year 2262, decimals of 128 bits hold as many as seconds reach.
//! A decimal with too many digits for the scale of the other side equals no value there, and is
//! less or greater than all of them: it becomes the first number behind those that decimals hold.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

use super::of_one;

/// Most digits of a decimal.
const DIGITS: u8 = 38;

/// A key whose digits are moved to the left.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Moved {
    name: &'static str,
    /// By how many.
    digits: u32,
    /// How many of them stand behind the point.
    scale: i8,
    signature: Signature,
}

impl Moved {
    fn call(name: &'static str, digits: u32, scale: i8, value: Expr) -> Expr {
        let signature = Signature::any(1, Volatility::Immutable);
        let function = Moved {
            name,
            digits,
            scale,
            signature,
        };
        Arc::new(ScalarUDF::new_from_impl(function)).call(vec![value])
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let numbers: PrimitiveArray<Decimal128Type> = match values.data_type() {
            DataType::Decimal128(..) => values.as_primitive::<Decimal128Type>().clone(),
            _ => {
                let ticks = arrow_cast::cast(values, &DataType::Int64)?;
                ticks.as_primitive::<Int64Type>().unary(i128::from)
            }
        };
        let factor = 10i128.pow(self.digits);
        let end = 10i128.pow(DIGITS.into());
        let moved = |number: i128| match number.checked_mul(factor) {
            Some(moved) if moved.abs() < end => moved,
            _ => end * number.signum(),
        };
        let moved: PrimitiveArray<Decimal128Type> = numbers.unary(moved);
        Ok(Arc::new(moved.with_data_type(self.key())))
    }

    fn key(&self) -> DataType {
        DataType::Decimal128(DIGITS, self.scale)
    }
}

impl ScalarUDFImpl for Moved {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.key())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |values| self.of(values))
    }
}

/// The nanoseconds of a time of this type, since 1970; `None` for what is no time.
pub(crate) fn in_nanoseconds(time: &Expr, own: &DataType) -> Option<Expr> {
    let (digits, time) = match own {
        DataType::Timestamp(unit, _) => (digits_of(*unit), time.clone()),
        // A day is no power of ten of nanoseconds.
        DataType::Date32 => {
            let seconds = DataType::Timestamp(TimeUnit::Second, None);
            (digits_of(TimeUnit::Second), cast(time.clone(), seconds))
        }
        _ => return None,
    };
    Some(Moved::call("in_nanoseconds", digits, 0, time))
}

fn digits_of(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Second => 9,
        TimeUnit::Millisecond => 6,
        TimeUnit::Microsecond => 3,
        TimeUnit::Nanosecond => 0,
    }
}

/// The key of a decimal or whole number of this type beside keys of the `other`; `None` where it is
/// one as it stands.
pub(crate) fn in_scale(value: &Expr, own: &DataType, other: &DataType) -> Option<Expr> {
    let ((digits, scale), (others, other_scale)) = (digits_around(own)?, digits_around(other)?);
    if own == other || own.is_integer() && other.is_integer() {
        return None;
    }
    let common = scale.max(other_scale);
    let (all, moved) = (digits.max(others) + common, common - scale);
    if all <= DIGITS.into() {
        let both = DataType::Decimal128(u8::try_from(all).ok()?, i8::try_from(common).ok()?);
        return (*own != both).then(|| cast(value.clone(), both));
    }
    let whole = match own.is_integer() {
        true => cast(value.clone(), DataType::Decimal128(DIGITS, 0)),
        false => value.clone(),
    };
    let (moved, common) = (u32::try_from(moved).ok()?, i8::try_from(common).ok()?);
    Some(Moved::call("in_scale", moved, common, whole))
}

/// How many digits stand before and behind the point of such numbers.
fn digits_around(number: &DataType) -> Option<(i16, i16)> {
    match number {
        DataType::Decimal128(precision, scale) if *scale >= 0 => {
            let scale = i16::from(*scale);
            Some((i16::from(*precision) - scale, scale))
        }
        number if number.is_integer() => Some((20, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Decimal128Array;

    use super::*;

    #[test]
    fn a_number_that_the_scale_does_not_hold_equals_none() {
        let most = 10i128.pow(38) - 1;
        let numbers = Decimal128Array::from(vec![Some(-5), Some(most), Some(-most), None]);
        let scaled = Moved {
            name: "in_scale",
            digits: 10,
            scale: 10,
            signature: Signature::any(1, Volatility::Immutable),
        };
        let numbers: ArrayRef = Arc::new(numbers.with_precision_and_scale(38, 0).unwrap());
        let keys = scaled.of(&numbers).unwrap();
        let keys: Vec<_> = keys.as_primitive::<Decimal128Type>().iter().collect();
        let none = most + 1;
        assert_eq!(keys, [Some(-50_000_000_000), Some(none), Some(-none), None]);
    }
}
