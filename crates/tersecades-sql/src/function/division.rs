//! Division where DataFusion divides decimals.
//!
//! ```text
//! d / 3                   ─▶ CAST(d AS DOUBLE) / CAST(3 AS DOUBLE)
//! unsigned / CAST(3 AS …) ─▶ the whole part of the quotient
//! ```
//! It cuts quotients of decimals off four digits behind the scale of the dividend, so they are
//! computed as floats, as in DuckDB. And it makes decimals without a scale of `UInt64` beside
//! signed integers, whose quotient is a whole number all the same, as that of other integers is.

use std::sync::{Arc, LazyLock};

use arrow_arith::numeric;
use arrow_schema::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast,
};
use datafusion_sql::sqlparser::ast::BinaryOperator;
use tersecades_engine::expression::Arithmetic;

use super::arithmetic::{CheckedArithmetic, without_zeros};
use super::signed::SIGNED;

/// Divides decimals as 64-bit floats.
#[derive(Debug)]
pub(crate) struct FloatQuotients;

impl ExprPlanner for FloatQuotients {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let sides = [&raw.left, &raw.right];
        let is_number = |side: &Expr| {
            let own = side.get_type(schema);
            own.is_ok_and(|own| !own.is_floating() && (own.is_numeric() || own.is_null()))
        };
        let has_decimal = sides.iter().any(|side| is_decimal(side, schema));
        let divides = raw.op == BinaryOperator::Divide;
        if !(divides && has_decimal && sides.into_iter().all(is_number)) {
            return Ok(PlannerResult::Original(raw));
        }
        let double = |side: Expr| Box::new(cast(side, DataType::Float64));
        let (left, right) = (double(raw.left), double(raw.right));
        Ok(PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(
            left,
            Operator::Divide,
            right,
        ))))
    }
}

/// Whether a number is a decimal, and not made of integers alone.
fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    let of_either = |a: &Expr, b: &Expr| is_decimal(a, schema) || is_decimal(b, schema);
    match expr {
        Expr::Alias(alias) => is_decimal(&alias.expr, schema),
        Expr::Negative(value) => is_decimal(value, schema),
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => of_either(left, right),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, result)| result);
            let mut results = results.chain(&case.else_expr);
            results.any(|result| is_decimal(result, schema))
        }
        Expr::ScalarFunction(call) if call.func.name() == SIGNED => {
            call.args.iter().any(|value| is_decimal(value, schema))
        }
        other => other.get_type(schema).is_ok_and(|own| own.is_decimal()),
    }
}

/// Least digits of a quotient: those of `u64::MAX`.
const DIGITS_MIN: u8 = 20;

/// The whole part of a quotient.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TruncatedDivision(Signature);

static TRUNCATED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(TruncatedDivision(signature)))
});

impl ScalarUDFImpl for TruncatedDivision {
    fn name(&self) -> &str {
        "/"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let shown: Vec<String> = args.iter().map(ToString::to_string).collect();
        Ok(shown.join(" / "))
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [DataType::Decimal128(digits, _), _] => {
                Ok(DataType::Decimal128(DIGITS_MIN.max(*digits), 0))
            }
            _ => exec_err!("`/` takes two numbers"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [a, b] = arrays.as_slice() else {
            return exec_err!("`/` takes two numbers");
        };
        let divisor = without_zeros(b)?;
        // Nothing is left of the dividend less its remainder.
        let multiple = numeric::sub(a, &numeric::rem(a, &divisor)?)?;
        let quotient = numeric::div(&multiple, &divisor)?;
        let quotient = arrow_cast::cast(&quotient, arguments.return_field.data_type())?;
        let is_constant = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        Ok(match arguments.args.iter().all(is_constant) {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&quotient, 0)?),
            false => ColumnarValue::Array(quotient),
        })
    }
}

/// Whether both are integers that were made decimals to meet each other.
pub(super) fn are_whole(a: &Expr, b: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut has_wide = false;
    Ok(is_whole(a, schema, &mut has_wide)? && is_whole(b, schema, &mut has_wide)? && has_wide)
}

/// Whether `expr` is made of integers alone; sets `has_wide` where one of them is a `UInt64`.
fn is_whole(expr: &Expr, schema: &DFSchema, has_wide: &mut bool) -> Result<bool> {
    match expr {
        Expr::Alias(alias) => is_whole(&alias.expr, schema, has_wide),
        Expr::Cast(cast) if matches!(cast.field.data_type(), DataType::Decimal128(_, 0)) => {
            let from = cast.expr.get_type(schema)?;
            *has_wide |= from == DataType::UInt64;
            Ok(from.is_integer() || is_whole(&cast.expr, schema, has_wide)?)
        }
        Expr::ScalarFunction(call) => {
            let function = call.func.inner();
            let function = function.as_ref();
            let arithmetic = function.downcast_ref::<CheckedArithmetic>();
            let keeps = arithmetic.is_some_and(|it| it.how != Arithmetic::Divide)
                || function.downcast_ref::<TruncatedDivision>().is_some();
            for argument in &call.args {
                if !keeps || !is_whole(argument, schema, has_wide)? {
                    return Ok(false);
                }
            }
            Ok(keeps)
        }
        _ => Ok(false),
    }
}

/// The quotient of two that [`are_whole`].
pub(super) fn truncated(a: Expr, b: Expr) -> Expr {
    let function = Arc::clone(&TRUNCATED);
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![a, b]))
}
