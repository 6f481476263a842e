//! Whole numbers and floats as keys that compare as the numbers do.
//!
//! ```text
//! big = x ─▶ CAST(big AS DECIMAL(21, 1)) = whole_or_half(x)
//! ```
//! Floats of 64 bits round integers as long. A decimal holds all of these, and half a number above
//! the next integer below stands for every float that is none.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_schema::DataType;
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

use super::of_one;

/// The type of such keys: the digits of 64-bit integers, and one behind the point.
const KEY: DataType = DataType::Decimal128(21, 1);

/// The key of a float.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeOrHalf(Signature);

static WHOLE_OR_HALF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(WholeOrHalf(signature)))
});

impl ScalarUDFImpl for WholeOrHalf {
    fn name(&self) -> &str {
        "whole_or_half"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(KEY)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |floats| {
            Ok(keys(&arrow_cast::cast(floats, &DataType::Float64)?))
        })
    }
}

fn keys(floats: &ArrayRef) -> ArrayRef {
    let floats = floats.as_primitive::<Float64Type>();
    let keys: PrimitiveArray<Decimal128Type> = floats.unary(tenths);
    Arc::new(keys.with_data_type(KEY))
}

/// The key of `float`, in tenths; NaN is greater than all integers.
fn tenths(float: f64) -> i128 {
    /// Twice the end of 63 bits: greater than all 64-bit integers.
    const BEHIND_ALL: f64 = 18_446_744_073_709_551_616.0;
    if float.is_nan() {
        return tenths(f64::INFINITY);
    }
    let whole = float.floor().clamp(-BEHIND_ALL, BEHIND_ALL);
    whole as i128 * 10 + if whole == float { 0 } else { 5 }
}

/// The key of a value of this type beside keys of the `other`; `None` where DataFusion's common
/// type holds both.
pub(crate) fn key_beside(value: &Expr, own: &DataType, other: &DataType) -> Option<Expr> {
    let long = |data_type: &DataType| matches!(data_type, DataType::Int64 | DataType::UInt64);
    let in_type = |wanted: DataType| (*own != wanted).then(|| cast(value.clone(), wanted));
    match (own, other) {
        (own, other) if long(own) && other.is_floating() => in_type(KEY),
        (own, other) if own.is_floating() && long(other) => {
            Some(WHOLE_OR_HALF.call(vec![value.clone()]))
        }
        (own, other) if own.is_decimal() && other.is_floating() => in_type(DataType::Float64),
        (own, other) if own.is_integer() && other.is_floating() => in_type(DataType::Float64),
        (own, other) if own.is_floating() && other.is_integer() => in_type(DataType::Float64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_floats_lie_between_integers_as_they_do() {
        let whole = (1u64 << 53) as f64;
        assert_eq!(tenths(whole), (1 << 53) * 10);
        assert_eq!(tenths(-0.0), 0);
        assert_eq!(tenths(-3.0), -30);
        assert_eq!(tenths(2f64.powi(63)), (1 << 63) * 10);
        assert_eq!((tenths(0.1), tenths(-0.1)), (5, -5));
        let (least, most) = (i128::from(i64::MIN) * 10, i128::from(u64::MAX) * 10);
        for behind in [1e300, f64::NAN, f64::INFINITY, 2f64.powi(64)] {
            let key = tenths(behind);
            assert!(key > most && key < 10i128.pow(21), "{behind}");
        }
        assert!(tenths(f64::NEG_INFINITY) < least);
    }
}
