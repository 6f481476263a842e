//! Floats in DataFusion's expressions, compared as the engine compares them.
//!
//! NaN equals NaN and is greater than every number, and −0 equals 0. DataFusion compares floats by
//! their bits in total order, where a NaN with its sign set is the least and −0 is below 0. So what
//! it compares is made the one NaN and the one zero first.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use tersecades_engine::operator::row::keys::canonical_floats;

use super::compare::exactly;
use super::of_one;

/// Functions that compare their arguments.
const COMPARING: [&str; 3] = ["nullif", "greatest", "least"];

/// The name of the function that makes them.
pub(crate) const CANONICAL_FLOAT: &str = "canonical_float";

/// A float with the one NaN and the one zero.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical(Signature);

static CANONICAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Canonical(signature)))
});

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        CANONICAL_FLOAT
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |floats| Ok(canonical_floats(floats)))
    }
}

/// Whether `operator` compares two values.
pub(crate) fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        operator,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Whether `expr` compares its parts, of `CASE` left alone.
fn compares(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_comparison(binary.op),
        Expr::Between(_) | Expr::InList(_) => true,
        Expr::ScalarFunction(call) => COMPARING.contains(&call.func.name()),
        _ => false,
    }
}

/// Compares constants exactly before DataFusion folds them.
#[derive(Debug)]
pub(crate) struct ExactConstants;

impl FunctionRewrite for ExactConstants {
    fn name(&self) -> &str {
        "exact_constants"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let is_case = matches!(&expr, Expr::Case(case) if case.expr.is_some());
        match (is_case || compares(&expr)) && !expr.any_column_refs() && !expr.is_volatile() {
            true => compare_exactly(expr, schema).map(Transformed::yes),
            false => Ok(Transformed::no(expr)),
        }
    }
}

/// `expr`, in which floats that are compared are canonical, and values of two types are compared
/// as they are.
///
/// # Errors
/// What finding types says.
pub(crate) fn compare_exactly(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let canonical = |child: Expr| -> Result<Transformed<Expr>> {
        Ok(match child.get_type(schema)?.is_floating() {
            true => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                Arc::clone(&CANONICAL),
                vec![child],
            ))),
            false => Transformed::no(child),
        })
    };
    let compared = expr.transform_up(|part| {
        if let Some(exact) = exactly(&part, schema)? {
            return Ok(Transformed::yes(exact));
        }
        if let Expr::Case(mut case) = part {
            if let Some(operand) = case.expr {
                case.expr = Some(Box::new(canonical(*operand)?.data));
                for (when, _) in &mut case.when_then_expr {
                    let found =
                        std::mem::replace(&mut **when, Expr::Literal(ScalarValue::Null, None));
                    **when = canonical(found)?.data;
                }
            }
            return Ok(Transformed::yes(Expr::Case(case)));
        }
        match compares(&part) {
            true => part.map_children(canonical),
            false => Ok(Transformed::no(part)),
        }
    });
    Ok(compared?.data)
}
