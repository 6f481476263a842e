//! `<<` and `>>`, checked: `a << n` is `a * 2^n`, `a >> n` the floor of `a / 2^n`.
//!
//! DataFusion's own take the count modulo the width of the type, so that `1 << 64` would be 1.

use std::sync::{Arc, LazyLock};

use arrow_arith::arity::try_binary;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{ArrowError, DataType};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, exec_err};
use datafusion_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion_functions::utils::make_scalar_function;

/// A shift of integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedShift {
    /// Whether it is to the left.
    left: bool,
    signature: Signature,
}

/// To the right, and to the left.
static SHIFTS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| {
    [false, true].map(|left| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(CheckedShift { left, signature }))
    })
});

impl ScalarUDFImpl for CheckedShift {
    fn name(&self) -> &str {
        if self.left { "<<" } else { ">>" }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let shown: Vec<String> = args.iter().map(ToString::to_string).collect();
        Ok(shown.join(&format!(" {} ", self.name())))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [own, _] => Ok(own.clone()),
            _ => exec_err!("`{}` takes two integers", self.name()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let own = arguments.return_field.data_type();
        let compute = |arrays: &[ArrayRef]| {
            let [a, by] = arrays else {
                return exec_err!("`{}` takes two integers", self.name());
            };
            let shifted = match own.is_unsigned_integer() {
                true => self.shifted::<UInt64Type>(a, by)?,
                false => self.shifted::<Int64Type>(a, by)?,
            };
            Ok(arrow_cast::cast(&shifted, own)?)
        };
        make_scalar_function(compute, Vec::new())(&arguments.args)
    }
}

impl CheckedShift {
    /// The shifted values, computed in the widest type of their kind.
    fn shifted<T>(&self, a: &ArrayRef, by: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError>
    where
        T: ArrowPrimitiveType<Native: Into<i128> + TryFrom<i128>>,
    {
        let own = a.data_type().clone();
        let bits = own.primitive_width().unwrap_or_default() * 8;
        let range = match own.is_unsigned_integer() {
            true => 0..1i128 << bits,
            false => -(1i128 << (bits - 1))..1i128 << (bits - 1),
        };
        let a = arrow_cast::cast(a, &T::DATA_TYPE)?;
        let by = arrow_cast::cast(by, &T::DATA_TYPE)?;
        let shift = |a: T::Native, by: T::Native| {
            let shifted = self.shift(a.into(), by.into());
            let fitting = shifted.filter(|shifted| range.contains(shifted));
            let fitting = fitting.and_then(|shifted| T::Native::try_from(shifted).ok());
            fitting.ok_or_else(|| {
                let message = format!("`{}` leaves the range of {own}", self.name());
                ArrowError::ArithmeticOverflow(message)
            })
        };
        let (a, by) = (a.as_primitive::<T>(), by.as_primitive::<T>());
        let shifted: PrimitiveArray<T> = try_binary(a, by, shift)?;
        Ok(Arc::new(shifted))
    }

    /// `a`, of 64 bits, shifted; `None` where the count is negative, or the result far too large.
    fn shift(&self, a: i128, by: i128) -> Option<i128> {
        let by = u32::try_from(by.min(64)).ok()?;
        match self.left {
            true if by == 64 => (a == 0).then_some(0),
            true => Some(a << by),
            false => Some(a >> by),
        }
    }
}

/// Replaces shifts by the checked ones.
#[derive(Debug)]
pub(crate) struct CheckShifts;

impl FunctionRewrite for CheckShifts {
    fn name(&self) -> &str {
        "check_shifts"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
            return Ok(Transformed::no(expr));
        };
        let [to_right, to_left] = &*SHIFTS;
        let shift = match op {
            Operator::BitwiseShiftLeft => Some(to_left),
            Operator::BitwiseShiftRight => Some(to_right),
            _ => None,
        };
        let is_integer = |side: &Expr| side.get_type(schema).is_ok_and(|own| own.is_integer());
        Ok(match shift {
            Some(shift) if is_integer(&left) && is_integer(&right) => {
                let call = ScalarFunction::new_udf(Arc::clone(shift), vec![*left, *right]);
                Transformed::yes(Expr::ScalarFunction(call))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    }
}
