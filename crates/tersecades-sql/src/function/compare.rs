//! Comparisons inside of DataFusion's expressions, exact as those of the engine are.
//!
//! ```text
//! CASE WHEN CAST(big AS DOUBLE) = x  ─▶ CASE WHEN exactly(big, x)
//! coalesce(CAST(s AS TIMESTAMP(9)) < ns, false) ─▶ coalesce(exactly(s, ns), false)
//! ```
//! DataFusion compares in one type for both sides, which may round the values of one or not hold
//! them: 64-bit integers as floats, times of seconds as those of nanoseconds.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion_common::{DFSchema, DataFusionError, Result, ScalarValue, exec_err};
use datafusion_expr::expr::BinaryExpr;
use datafusion_expr::utils::disjunction;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use tersecades_columnar::predicate::Comparison;
use tersecades_columnar::types::logical_type;
use tersecades_engine::expression::{Side, compare_arrays};

use crate::lower::expression::{own_sides, unmarked};

/// The name of the function that compares.
pub(crate) const EXACTLY: &str = "exactly";

/// A comparison of values of two types.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Exactly {
    how: Comparison,
    signature: Signature,
}

impl ScalarUDFImpl for Exactly {
    fn name(&self) -> &str {
        EXACTLY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [a, b] = arguments.args.as_slice() else {
            return exec_err!("a comparison has two sides");
        };
        let ((left, a_scalar), (right, b_scalar)) = (values(a)?, values(b)?);
        let side = |array, scalar| Side { array, scalar };
        let compared = compare_arrays(self.how, side(&left, a_scalar), side(&right, b_scalar))
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(match a_scalar && b_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&compared, 0)?),
            false => ColumnarValue::Array(compared),
        })
    }
}

/// The values, and whether there is one for all rows.
fn values(side: &ColumnarValue) -> Result<(ArrayRef, bool)> {
    let (array, scalar) = match side {
        ColumnarValue::Array(array) => (Arc::clone(array), false),
        ColumnarValue::Scalar(value) => (value.to_array()?, true),
    };
    let logical = logical_type(array.data_type());
    Ok(match *array.data_type() == logical {
        true => (array, scalar),
        false => (arrow_cast::cast(&array, &logical)?, scalar),
    })
}

/// How `operator` compares; `None` where it does not.
pub(crate) fn comparison_of(operator: Operator) -> Option<Comparison> {
    Some(match operator {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// `expr` with its sides in their own types, where it compares what was cast to a type for both.
///
/// # Errors
/// What finding types says.
pub(super) fn exactly(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let cast = |left, right| hidden(left, right, schema);
    let compared = |how, left, right| compared(how, left, right, schema);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if cast(left, right)?.is_some() => {
            by_operator(left, *op, right, schema)?
        }
        Expr::Between(between) => {
            let (value, low, high) = (&between.expr, &between.low, &between.high);
            if cast(value, low)?.is_none() && cast(value, high)?.is_none() {
                return Ok(None);
            }
            let low = compared(Comparison::GreaterOrEqual, value, low)?;
            let inside = low.and(compared(Comparison::LessOrEqual, value, high)?);
            Some(negated(inside, between.negated))
        }
        Expr::InList(list) => {
            let mut mixed = false;
            for item in &list.list {
                let types = cast(&list.expr, item)?;
                mixed |= types.is_some_and(|[own, other]| own != other);
            }
            if !mixed {
                return Ok(None);
            }
            let equal = |item| compared(Comparison::Equal, &list.expr, item);
            let terms: Result<Vec<Expr>> = list.list.iter().map(equal).collect();
            disjunction(terms?).map(|inside| negated(inside, list.negated))
        }
        _ => None,
    })
}

/// `left op right` in their own types; `None` where that is no comparison.
///
/// # Errors
/// What finding types says.
pub(super) fn by_operator(
    left: &Expr,
    op: Operator,
    right: &Expr,
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    Ok(match op {
        Operator::IsDistinctFrom => Some(!same(left, right, schema)?),
        Operator::IsNotDistinctFrom => Some(same(left, right, schema)?),
        op => match comparison_of(op) {
            Some(how) => Some(compared(how, left, right, schema)?),
            None => None,
        },
    })
}

fn negated(condition: Expr, negated: bool) -> Expr {
    if negated { !condition } else { condition }
}

fn same(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Expr> {
    let equal = compared(Comparison::Equal, left, right, schema)?;
    let nulls = left.clone().is_null().and(right.clone().is_null());
    Ok(Expr::IsTrue(Box::new(equal)).or(nulls))
}

fn compared(how: Comparison, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Expr> {
    let (left, right) = own_sides(left, right, schema)?;
    let signature = Signature::any(2, Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(Exactly { how, signature });
    Ok(function.call(vec![left.clone(), right.clone()]))
}

/// The types of both sides where a cast hides one.
fn hidden(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<[DataType; 2]>> {
    let sides = own_sides(left, right, schema)?;
    let types = [sides.0.get_type(schema)?, sides.1.get_type(schema)?];
    let are_cast = sides != (unmarked(left), unmarked(right));
    Ok(Some(types).filter(|types| are_cast && !types.contains(&DataType::Null)))
}
