//! Arithmetic on numbers that is checked and never wraps.
//!
//! DataFusion's own operators wrap on overflow. After its type coercion every one of them on
//! numbers is replaced by [`CheckedArithmetic`], which the lowering turns into the engine's
//! arithmetic, and which runs by itself only inside other functions.

use std::sync::{Arc, LazyLock};

use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, Scalar};
use arrow_schema::{ArrowError, DataType};
use arrow_select::nullif::nullif;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use tersecades_engine::expression::Arithmetic;

use super::division::{are_whole, truncated};

/// An arithmetic operator on two numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CheckedArithmetic {
    /// The operator.
    pub(crate) how: Arithmetic,
    signature: Signature,
}

static OPERATORS: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
    use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
    let operator = |how| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(CheckedArithmetic {
            how,
            signature,
        }))
    };
    [Add, Subtract, Multiply, Divide, Remainder]
        .map(operator)
        .to_vec()
});

fn operator_of(how: Arithmetic) -> Operator {
    match how {
        Arithmetic::Add => Operator::Plus,
        Arithmetic::Subtract => Operator::Minus,
        Arithmetic::Multiply => Operator::Multiply,
        Arithmetic::Divide => Operator::Divide,
        Arithmetic::Remainder => Operator::Modulo,
    }
}

fn arithmetic_of(operator: Operator) -> Option<Arithmetic> {
    Some(match operator {
        Operator::Plus => Arithmetic::Add,
        Operator::Minus => Arithmetic::Subtract,
        Operator::Multiply => Arithmetic::Multiply,
        Operator::Divide => Arithmetic::Divide,
        Operator::Modulo => Arithmetic::Remainder,
        _ => return None,
    })
}

impl ScalarUDFImpl for CheckedArithmetic {
    fn name(&self) -> &str {
        self.how.symbol()
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let shown: Vec<String> = args.iter().map(ToString::to_string).collect();
        Ok(shown.join(&format!(" {} ", self.how.symbol())))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [a, b] = arguments else {
            return exec_err!("`{}` takes two numbers", self.how.symbol());
        };
        BinaryTypeCoercer::new(a, &operator_of(self.how), b).get_result_type()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = arguments.return_field.data_type();
        let [a, b] = arguments.args.as_slice() else {
            return exec_err!("`{}` takes two numbers", self.how.symbol());
        };
        let scalar = matches!((a, b), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let computed =
            compute(self.how, &operand(a)?, &operand(b)?).map_err(|error| match error {
                ArrowError::ArithmeticOverflow(_) => {
                    let symbol = self.how.symbol();
                    let message = format!("`{symbol}` leaves the range of {result}");
                    ArrowError::ArithmeticOverflow(message)
                }
                other => other,
            })?;
        let computed = arrow_cast::cast(&computed, result)?;
        match scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &computed, 0,
            )?)),
            false => Ok(ColumnarValue::Array(computed)),
        }
    }
}

/// One value for all rows, or a value for each.
enum Operand {
    Scalar(Scalar<ArrayRef>),
    Array(ArrayRef),
}

impl Datum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        match self {
            Operand::Scalar(scalar) => scalar.get(),
            Operand::Array(array) => (array.as_ref(), false),
        }
    }
}

fn operand(value: &ColumnarValue) -> Result<Operand> {
    Ok(match value {
        ColumnarValue::Array(array) => Operand::Array(Arc::clone(array)),
        ColumnarValue::Scalar(scalar) => Operand::Scalar(scalar.to_scalar()?),
    })
}

fn compute(how: Arithmetic, a: &Operand, b: &Operand) -> std::result::Result<ArrayRef, ArrowError> {
    let divisor = || -> std::result::Result<Operand, ArrowError> {
        Ok(match b {
            Operand::Array(array) => Operand::Array(without_zeros(array)?),
            Operand::Scalar(scalar) => {
                let value = scalar.clone().into_inner();
                Operand::Scalar(Scalar::new(without_zeros(&value)?))
            }
        })
    };
    match how {
        Arithmetic::Add => numeric::add(a, b),
        Arithmetic::Subtract => numeric::sub(a, b),
        Arithmetic::Multiply => numeric::mul(a, b),
        Arithmetic::Divide => numeric::div(a, &divisor()?),
        Arithmetic::Remainder => numeric::rem(a, &divisor()?),
    }
}

/// The divisors, null where they are zero.
pub(super) fn without_zeros(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    let zeros = match array.data_type() {
        DataType::Float64 => {
            BooleanArray::from_unary(array.as_primitive::<Float64Type>(), |value| value == 0.0)
        }
        DataType::Float32 => {
            BooleanArray::from_unary(array.as_primitive::<Float32Type>(), |value| value == 0.0)
        }
        other => {
            let zero = ScalarValue::new_zero(other).and_then(|zero| zero.to_scalar());
            let zero = zero.map_err(|error| ArrowError::ComputeError(error.to_string()))?;
            arrow_ord::cmp::eq(array, &zero)?
        }
    };
    nullif(array.as_ref(), &zeros)
}

/// Replaces arithmetic operators on numbers by the checked ones.
#[derive(Debug)]
pub(crate) struct CheckArithmetic;

impl FunctionRewrite for CheckArithmetic {
    fn name(&self) -> &str {
        "check_arithmetic"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let number = |expr: &Expr| -> Result<bool> {
            let data_type = expr.get_type(schema)?;
            Ok(data_type.is_numeric() && data_type != DataType::Null)
        };
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match arithmetic_of(op) {
                Some(how) if number(&left)? && number(&right)? => {
                    let is_divided = how == Arithmetic::Divide;
                    Ok(Transformed::yes(
                        match is_divided && are_whole(&left, &right, schema)? {
                            true => truncated(*left, *right),
                            false => checked(how, *left, *right),
                        },
                    ))
                }
                _ => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr {
                    left,
                    op,
                    right,
                }))),
            },
            Expr::Negative(value) if number(&value)? && !matches!(*value, Expr::Literal(..)) => {
                let zero = ScalarValue::new_zero(&value.get_type(schema)?)?;
                let zero = Expr::Literal(zero, None);
                Ok(Transformed::yes(checked(
                    Arithmetic::Subtract,
                    zero,
                    *value,
                )))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn checked(how: Arithmetic, a: Expr, b: Expr) -> Expr {
    let found = OPERATORS
        .iter()
        .find(|operator| operator.name() == how.symbol());
    match found {
        Some(operator) => {
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(operator), vec![a, b]))
        }
        None => Expr::BinaryExpr(BinaryExpr::new(Box::new(a), operator_of(how), Box::new(b))),
    }
}
